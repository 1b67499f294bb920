"""HTTP client for OpenAI-compatible servers: concurrency, retries, rate limits and budget.

`ask` sends questions with at most `concurrency` requests at the same time and reports each outcome
as soon as it is known. Three kinds of problems are handled differently:

- The server is busy or the connection fails (429, 5xx, timeout): wait, longer each time, or as long
  as `Retry-After` says, and send the request again.
- The answer is not valid (not one JSON object, wrong keys, refusal): ask again with the reason, up
  to `retries` times. Then the question has no answer.
- The server refuses (401, 403, 404), does not answer at all, or the budget is reached: finish the
  requests in progress, then raise an error. Answers so far are cached.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import logging
import os
import re
import time
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from tertium.core.errors import UsageError
from tertium.metrics.base.judge_run import JudgeConnection, JudgeRun, JudgeServerError, token_cost
from tertium.metrics.judge.judge_answers import InvalidAnswerError, JudgeProtocol, StoredAnswer
from tertium.metrics.judge.prompts import escape_control_tokens

if TYPE_CHECKING:
    import httpx2

API_KEY = "OPENAI_API_KEY"
BASE_URL = "OPENAI_BASE_URL"
FIRST_WAIT, LONGEST_WAIT = 0.5, 30.0  # seconds between attempts, doubled each time
BUDGET_WAIT = 0.02  # seconds until the budget is asked again
LONGEST_RETRY_AFTER = 600.0  # seconds; a server that asks for more ends the run
MAX_FAILURES = 6  # of a request
MAX_ATTEMPTS = 60  # of a request, with those that the server limits
MAX_FAILED_IN_A_ROW = 5  # requests that fail for good, without an answer in between
MAX_RESPONSE_BYTES = 8 << 20
MAX_MODEL_NAME = 200  # characters
MAX_TOKENS = 1 << 40  # that a server can report
FILTERED = "content_filter"
MAX_QUOTED_ANSWER = 4000  # characters of an invalid answer that are sent back
NO_STATUS = 0
RATE_LIMITED = 429
RETRY_STATUSES = frozenset(
    {NO_STATUS, 408, 409, 425, RATE_LIMITED, 500, 502, 503, 504, 507, 509, 520, 522, 524, 529}
)
FATAL_STATUSES = frozenset({*range(300, 400), 401, 402, 407})
FATAL_BEFORE_ANSWERS = frozenset({403, 404, 405})  # later they concern single texts
LOOPBACK = re.compile(r"localhost|127(\.\d{1,3}){3}|::1")
HINTS = {401: f" (check {API_KEY})", 404: " (check the URL and the name of the model)"}
# Parameters that some servers refuse, in the order in which they are given up.
OPTIONAL_PARAMETERS = ("response_format", "seed", "max_tokens", "temperature")

logger = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class Question:
    """What is sent to a judge; `key` identifies its answer in the cache."""

    key: str
    payload: Mapping[str, Any]


@dataclass(frozen=True)
class Reply:
    """Content of a chat completion, and its tokens if the server reports them."""

    content: str
    model: str
    tokens: tuple[int, int] | None
    problem: str = ""


@dataclass(eq=False)
class RequestError(InvalidAnswerError):
    """A request without a usable response: why, and the status and text of the response, if any."""

    kind: str
    may_be_charged: bool = True
    status: int = NO_STATUS
    text: str = ""
    retry_after: float | None = None


Outcome = StoredAnswer | str  # the answer, or the reason for a failure
OnOutcome = Callable[[Question, Outcome], None]


@dataclass(kw_only=True)
class JudgeClient:
    """Sends questions to the server of a run, and keeps the state of the server.

    `dropped` are parameters that the server refuses, `resume_at` is the time before which it wants
    no request.
    """

    run: JudgeRun
    protocol: JudgeProtocol
    retries: int
    dropped: frozenset[str] = frozenset()
    resume_at: float = 0.0
    failed_in_a_row: int = 0
    has_answers: bool = False
    stop_error: JudgeServerError | None = None

    def __post_init__(self) -> None:
        self.url = server_url(self.run.server)
        self.headers = request_headers()

    def ask(self, questions: Sequence[Question], on_outcome: OnOutcome) -> None:
        """Ask all questions; `on_outcome` gets each answer or failure as it arrives.

        Raise the error that ended the run, if any.
        """
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            asyncio.run(self._ask(questions, on_outcome))
        else:  # a notebook
            with ThreadPoolExecutor(1) as pool:
                context = copy_context()
                start = self._ask(questions, on_outcome)
                pool.submit(context.run, asyncio.run, start).result()
        if self.stop_error is not None:
            raise self.stop_error

    async def _ask(self, questions: Sequence[Question], on_outcome: OnOutcome) -> None:
        import httpx2

        server = self.run.server
        waiting = iter(questions)
        context = httpx2.create_ssl_context(trust_env=server.use_proxy)

        async def work() -> None:  # with a client of its own: one is slow with many connections
            async with httpx2.AsyncClient(
                verify=context,
                timeout=server.request_timeout,
                trust_env=server.use_proxy,
                headers=self.headers,
            ) as http:
                await self._answer_all(waiting, http, on_outcome)

        await asyncio.gather(*(work() for _ in range(min(server.concurrency, len(questions)))))

    async def _answer_all(
        self, waiting: Iterator[Question], http: httpx2.AsyncClient, on_outcome: OnOutcome
    ) -> None:
        """Answer questions until there are no more, or the run ends."""
        usage = self.run.usage
        while self.stop_error is None and (question := next(waiting, None)) is not None:
            outcome: Outcome
            try:
                outcome = await self._answer(question, http)
            except JudgeServerError as error:
                self.stop_error = self.stop_error or error
                return
            except InvalidAnswerError as error:
                outcome = error.kind
                usage.count_failure(outcome, error.content)
            else:
                usage.answers += 1
            on_outcome(question, outcome)

    async def _answer(self, question: Question, http: httpx2.AsyncClient) -> StoredAnswer:
        """Ask until the answer is valid, at most `retries` times again."""
        payload = {**question.payload}
        prompt_tokens = completion_tokens = 0
        for attempt in itertools.count():
            reply = await self._complete(payload, http)
            self.failed_in_a_row = 0
            self.has_answers = True
            if reply.tokens is not None:
                prompt_tokens += reply.tokens[0]
                completion_tokens += reply.tokens[1]
            try:
                if reply.problem:
                    raise InvalidAnswerError(reply.problem)
                self.protocol.parse(reply.content)
                break
            except InvalidAnswerError as error:
                error.content = reply.content[:MAX_QUOTED_ANSWER]
                if attempt == self.retries:
                    raise
                payload["messages"] = [*question.payload["messages"], *_correction(error)]
        return StoredAnswer(reply.content, reply.model, prompt_tokens, completion_tokens)

    async def _complete(self, payload: Mapping[str, Any], http: httpx2.AsyncClient) -> Reply:
        """Send one request, again after a pause if the server is busy or the connection fails."""
        dropped = self.dropped
        failures = 0
        last = RequestError("no attempt")
        for attempt in range(MAX_ATTEMPTS):
            sent = {name: value for name, value in payload.items() if name not in dropped}
            if "max_tokens" in dropped:  # the name for reasoning models
                sent["max_completion_tokens"] = payload["max_tokens"]
            data = json.dumps(sent, ensure_ascii=False).encode()
            try:
                reply = await self._send(data, payload["max_tokens"], http)
            except RequestError as error:
                last = error
            else:
                self.dropped |= dropped
                return reply
            if name := _refused_parameter(last, sent):
                logger.info("judge: the server refuses %s (%s)", name, last.kind)
                dropped |= {name}
                continue
            self._check_fatal(last)
            failures += last.status != RATE_LIMITED
            if last.status not in RETRY_STATUSES or failures == MAX_FAILURES:
                break
            if last.retry_after is not None:
                self.resume_at = max(self.resume_at, time.monotonic() + last.retry_after)
            else:
                jitter = zlib.crc32(data) % 256 / 512  # not all at the same time
                await asyncio.sleep(min(FIRST_WAIT * 2**attempt, LONGEST_WAIT) * (0.75 + jitter))
        self.failed_in_a_row += last.status in RETRY_STATUSES
        if self.failed_in_a_row >= MAX_FAILED_IN_A_ROW:
            raise JudgeServerError(
                f"judge: {self.url} fails ({last.kind}); answers so far are cached: run the same "
                "command again to continue"
            )
        raise last

    def _check_fatal(self, error: RequestError) -> None:
        """End the run if the server would refuse other requests, too."""
        if error.retry_after is not None and error.retry_after > LONGEST_RETRY_AFTER:
            raise JudgeServerError(
                f"judge: the server asks to wait {error.retry_after:,.0f} seconds; answers so far "
                "are cached: run the same command later to continue"
            )
        fatal = FATAL_STATUSES if self.has_answers else FATAL_STATUSES | FATAL_BEFORE_ANSWERS
        if error.status not in fatal:
            return
        key = self.headers.get("Authorization", "").removeprefix("Bearer ")
        text = error.text.replace(key, "***") if key else error.text
        detail = " ".join(text.split())[:300] or "no message"
        hint = HINTS.get(error.status, "")
        raise JudgeServerError(
            f"judge: {self.url} refuses with status {error.status}{hint}: {detail}"
        )

    async def _send(self, data: bytes, max_tokens: int, http: httpx2.AsyncClient) -> Reply:
        """Send one request within the budget and count what it uses."""
        usage = self.run.usage
        budget = self.run.budget
        price = self.run.server.price
        while (delay := self.resume_at - time.monotonic()) > 0:
            await asyncio.sleep(delay)
        # A token has at least one byte.
        bound = token_cost(len(data), max_tokens, price)
        while (loan := budget.borrow(bound)) is None:
            await asyncio.sleep(BUDGET_WAIT)
        cost: float | None = None  # of a lost answer: all of the loan
        usage.requests += 1
        try:
            reply = await self._post(data, http)
            if reply.tokens is not None:
                usage.prompt_tokens += reply.tokens[0]
                usage.completion_tokens += reply.tokens[1]
                cost = token_cost(*reply.tokens, price)
            return reply
        except RequestError as error:
            cost = None if error.may_be_charged else 0.0
            raise
        finally:
            budget.settle(loan, cost)
            if cost is None:
                usage.unreported += 1
                usage.unreported_cost += bound

    async def _post(self, data: bytes, http: httpx2.AsyncClient) -> Reply:
        """Send one request and read the response, all within the timeout."""
        import httpx2

        body = b""
        headers = {"Content-Type": "application/json"}
        request = http.stream("POST", self.url, content=data, headers=headers)
        try:
            async with asyncio.timeout(self.run.server.request_timeout), request as response:
                async for part in response.aiter_bytes():
                    body += part
                    if len(body) > MAX_RESPONSE_BYTES:
                        raise RequestError("response too large")
        except (httpx2.ConnectError, httpx2.ConnectTimeout) as error:
            raise RequestError("no connection", may_be_charged=False) from error
        except (TimeoutError, httpx2.TimeoutException) as error:
            raise RequestError("timeout") from error
        except httpx2.HTTPError as error:
            raise RequestError("connection lost") from error
        if response.status_code == 200:
            return _parse_reply(body)
        raise RequestError(
            f"HTTP status {response.status_code}",
            may_be_charged=False,
            status=response.status_code,
            text=body[:2000].decode("utf-8", errors="replace"),
            retry_after=parse_retry_after(response.headers.get("Retry-After", "")),
        )


def server_url(server: JudgeConnection) -> str:
    """Return the URL of chat completions; refuse unencrypted connections to other machines."""
    base = read_url(server)
    if not base:
        raise UsageError(
            "judge: no server: give --judge-url URL, such as http://localhost:8080/v1, or set "
            f"{BASE_URL} (in Python: JudgeConnection(judge_url=...))"
        )
    return f"{base}/chat/completions"


def read_url(server: JudgeConnection) -> str:
    """Return the base URL of the server, or an empty text; refuse unsafe and invalid ones."""
    url = (server.judge_url or os.environ.get(BASE_URL, "")).strip().rstrip("/")
    if not url:
        return ""
    try:
        parts = urlsplit(url)
        host = parts.hostname or ""
        _ = parts.port
        is_valid = bool(host.encode("idna")) and parts.scheme in ("http", "https")
    except ValueError:  # such as a port of 99999
        is_valid = False
    is_plain = url.isprintable() and not set(" @?#") & set(url)
    if not (is_valid and is_plain):
        raise UsageError(
            "judge: the URL of the server is not valid: expected https:// or http://, a host and "
            f"a path, without a password (set {API_KEY}) and without a part after ?"
        )
    if parts.scheme == "http" and not server.allow_http and not LOOPBACK.fullmatch(host):
        raise UsageError(
            f"judge: {url} is not encrypted and not on this machine: use https://, or give "
            "--allow-http (allow_http=True) if you trust the network"
        )
    return url


def request_headers() -> dict[str, str]:
    """Return the header with the API key, if there is one; the key is never shown."""
    key = os.environ.get(API_KEY, "").strip()
    if key and not (key.isascii() and key.isprintable() and " " not in key):
        raise UsageError(f"{API_KEY} is not a valid key: it contains blanks or other characters")
    return {"Authorization": f"Bearer {key}"} if key else {}


def is_model_name(name: Any) -> bool:
    """Return whether a value can be the name of a model: a short text in printable characters.

    >>> is_model_name("qwen2.5:7b"), is_model_name("\\ud800"), is_model_name(7)
    (True, False, False)
    """
    return isinstance(name, str) and len(name) <= MAX_MODEL_NAME and name.isprintable()


def parse_retry_after(value: str) -> float | None:
    """Return the seconds of a Retry-After header; None without a number of them.

    >>> parse_retry_after("1.5"), parse_retry_after("soon"), parse_retry_after("")
    (1.5, None, None)
    """
    try:
        seconds = float(value)
    except ValueError:
        return None
    return seconds if seconds >= 0 else None


def _parse_reply(body: bytes) -> Reply:
    """Read a chat completion; raise if the response is not one."""
    try:
        value = json.loads(body)
        choice = value["choices"][0]
        content = choice["message"].get("content") or ""
        is_refusal = choice["message"].get("refusal") or choice.get("finish_reason") == FILTERED
        model = value.get("model") or ""
        usage = value.get("usage") or {}
        tokens: Any = usage.get("prompt_tokens"), usage.get("completion_tokens")
        if not isinstance(content, str):
            raise TypeError
    except (ValueError, KeyError, IndexError, TypeError, AttributeError, RecursionError):
        raise RequestError("response is not a chat completion") from None
    is_counted = all(isinstance(count, int) and 0 <= count < MAX_TOKENS for count in tokens)
    problem = ""
    if not is_model_name(model):
        model = ""
        problem = "name of the model is not valid"
    elif is_refusal:
        problem = "refusal"
    elif choice.get("finish_reason") == "length":
        problem = "answer cut off at max_tokens"
    return Reply(content, model, tokens if is_counted else None, problem)


def _refused_parameter(error: RequestError, payload: Mapping[str, Any]) -> str:
    """Return a parameter that the server may not support, or an empty text."""
    if error.status not in (400, 415, 422, 501):
        return ""
    optional = [name for name in OPTIONAL_PARAMETERS if name in payload]
    in_message = [name for name in optional if name in error.text]
    return next(iter(in_message), "response_format" * ("response_format" in payload))


def _correction(error: InvalidAnswerError) -> list[dict[str, str]]:
    """Return messages that ask again, with the invalid answer and what is wrong with it."""
    request = f"This answer is not valid ({error}). Answer again with the JSON object only."
    quoted = escape_control_tokens(error.content)  # it may repeat a text
    quoted = quoted.encode(errors="replace").decode()  # without lone surrogates
    answer = [{"role": "assistant", "content": quoted}] if quoted else []
    return [*answer, {"role": "user", "content": request}]
