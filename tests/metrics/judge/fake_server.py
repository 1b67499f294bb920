"""An OpenAI-compatible server on this machine that answers by a fixed rule and injects faults.

It speaks real HTTP over real sockets. `faults` maps a translation to the faults of its first
requests, in order; later requests get a valid answer. The server records what it received and what
it would charge: every completed answer, also one that is lost on the way.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from tertium.metrics.judge import judge_answers

PROMPT_TOKENS, COMPLETION_TOKENS = 400, 20
Payload = Mapping[str, Any]


def forget_answers() -> None:
    """Forget answers in memory, as in another process; the cache on disk is unchanged."""
    judge_answers.answers_in_memory.clear()
    judge_answers.failures.clear()


def texts_of(payload: Payload) -> dict[str, Any]:
    """The texts in the first user message, which is a JSON object."""
    user = next(m["content"] for m in payload["messages"] if m["role"] == "user")
    return json.loads(user)


def translation_of(payload: Payload) -> str:
    return texts_of(payload)["translation"]


def make_error(quote: str, severity: str, category: str, reason: str) -> dict[str, str]:
    place = {"quote": quote, "before": "", "side": "translation"}
    return {**place, "severity": severity, "category": category, "reason": reason}


def answer_by_length(payload: Payload) -> str:
    """A valid answer: long translations are better, and one that equals a reference is perfect."""
    text = translation_of(payload)
    is_reference = text in texts_of(payload).get("references", ())
    score = 100.0 if is_reference else float(min(99, len(text)))
    properties = _schema_properties(payload)
    errors = [make_error(text.split()[0], "minor", "style", "the first word")]
    parts = {"errors": [] if is_reference else errors, "score": score, "reason": "short"}
    return json.dumps({name: parts[name] for name in properties}, ensure_ascii=False)


def _schema_properties(payload: Payload) -> list[str]:
    """Return the keys of the answer, from the schema or, without it, from the prompt."""
    if "response_format" in payload:
        return list(payload["response_format"]["json_schema"]["schema"]["properties"])
    prompt = payload["messages"][0]["content"]
    if '"errors"' not in prompt:
        return ["reason", "score"]
    return ["errors", "score"] if '"score": 0' in prompt else ["errors"]


@dataclass
class FakeServer:
    """State of the server; tests set `faults`, `answer` and `refused`, and read the records."""

    url: str = ""
    answer: Callable[[Payload], str] = answer_by_length
    faults: dict[str, list[str]] = field(default_factory=dict)
    refused: dict[str, int] = field(default_factory=dict)  # parameters that lead to a 400
    status: int = 0  # of all responses, if set
    latency: float = 0.0
    usage: bool = True
    model: Any = None  # name in the replies; None: the requested one with a suffix
    requests: list[Payload] = field(default_factory=list)
    headers: list[Mapping[str, str]] = field(default_factory=list)
    completions: Counter[str] = field(default_factory=Counter)
    active: int = 0
    most_active: int = 0

    @property
    def charged_tokens(self) -> tuple[int, int]:
        total = self.completions.total()
        return PROMPT_TOKENS * total, COMPLETION_TOKENS * total

    async def handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
            while await self._handle_request(reader, writer):
                pass
        writer.close()

    async def _handle_request(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> bool:
        """Answer one request; return whether the connection stays open."""
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        first, *lines = head.strip().split("\r\n")
        headers = {k.lower(): v for k, v in (line.split(": ", 1) for line in lines)}
        body = await reader.readexactly(int(headers["content-length"]))
        payload = json.loads(body)
        assert first == "POST /v1/chat/completions HTTP/1.1", first
        self.requests.append(payload)
        self.headers.append(headers)
        self.active += 1
        self.most_active = max(self.most_active, self.active)
        try:
            await asyncio.sleep(self.latency)
            return await self._respond(payload, writer)
        finally:
            self.active -= 1

    async def _respond(self, payload: Payload, writer: asyncio.StreamWriter) -> bool:
        if self.status:
            echo = {"error": {"message": f"refused: {self.headers[-1].get('authorization')}"}}
            await _send(writer, json.dumps(echo), self.status)
            return True
        for name, status in self.refused.items():
            if name in payload:
                await _send(writer, json.dumps({"error": {"message": f"no {name}"}}), status)
                return True
        text = translation_of(payload)
        faults = self.faults.get(text, [])
        fault = faults.pop(0) if faults else ""
        if fault[:3].isdecimal():
            seconds = {"429": 0.01, "429 for an hour": 3600}.get(fault)
            await _send(writer, "{}", int(fault[:3]), seconds and f"Retry-After: {seconds}\r\n")
            return True
        if fault == "reset before":
            writer.transport.abort()
            return False
        self.completions[text] += 1
        return await self._complete(payload, fault, writer)

    async def _complete(self, payload: Payload, fault: str, writer: asyncio.StreamWriter) -> bool:
        if fault == "garbage body":
            await _send(writer, "<html>busy</html>", 200)
            return True
        reply = json.dumps(self._completion(payload, fault)).encode()
        sent = reply[: len(reply) // 2] if fault in ("truncated", "reset", "stall") else reply
        step = 16 if fault == "drip" else len(sent)
        writer.write(f"HTTP/1.1 200 OK\r\nContent-Length: {len(reply)}\r\n\r\n".encode())
        for place in range(0, len(sent), step):
            writer.write(sent[place : place + step])
            await writer.drain()
            await asyncio.sleep(0.001 * (fault == "drip"))
        if fault == "reset":
            writer.transport.abort()
        await asyncio.sleep(30 * (fault == "stall"))
        return sent == reply

    def _completion(self, payload: Payload, fault: str) -> dict[str, Any]:
        message: dict[str, Any] = {"role": "assistant", "content": ""}
        finish = "stop"
        contents = {
            "not json": "I think it is fine.",
            "wrong schema": '{"quality": 90}',
            "out of range": '{"errors": [], "score": 140}',
            "text score": '{"errors": [], "score": "90"}',
            "empty": "",
        }
        if fault == "refusal":
            message["refusal"] = "I cannot do that."
        elif fault == "cut off":
            message["content"], finish = '{"errors": [{"quo', "length"
        else:
            message["content"] = contents[fault] if fault in contents else self.answer(payload)
        reply: dict[str, Any] = {
            "model": f"{payload['model']}-2026" if self.model is None else self.model,
            "choices": [{"message": message, "finish_reason": finish}],
        }
        if self.usage:
            counts = {"prompt_tokens": PROMPT_TOKENS, "completion_tokens": COMPLETION_TOKENS}
            reply["usage"] = counts
        return reply


async def _send(
    writer: asyncio.StreamWriter, text: str, status: int, extra: str | None = None
) -> None:
    data = text.encode()
    head = f"HTTP/1.1 {status} X\r\n{extra or ''}Content-Length: {len(data)}\r\n\r\n"
    writer.write(head.encode() + data)
    await writer.drain()


@contextmanager
def run_server(faults: Mapping[str, Sequence[str]] | None = None) -> Iterator[FakeServer]:
    """Run a server in a thread, on a free port of this machine."""
    server = FakeServer(faults={text: [*kinds] for text, kinds in (faults or {}).items()})
    is_ready = threading.Event()
    stop: list[Callable[[], object]] = []

    async def serve() -> None:
        is_done, loop = asyncio.Event(), asyncio.get_running_loop()
        stop.append(lambda: loop.call_soon_threadsafe(is_done.set))
        listener = await asyncio.start_server(server.handle, "127.0.0.1", 0, backlog=2048)
        server.url = f"http://127.0.0.1:{listener.sockets[0].getsockname()[1]}/v1"
        is_ready.set()
        await is_done.wait()
        listener.close()

    thread = threading.Thread(target=lambda: asyncio.run(serve()), daemon=True)
    thread.start()
    assert is_ready.wait(10)
    try:
        yield server
    finally:
        stop[0]()
        thread.join(10)
