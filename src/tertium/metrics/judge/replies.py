"""Responses of a server: chat completions, error statuses and the Retry-After header."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import httpx

MAX_RESPONSE_BYTES = 8 << 20
MAX_MODEL_NAME = 200  # characters


@dataclass(frozen=True, kw_only=True)
class Reply:
    """Content of a chat completion, and its tokens if the server reports them."""

    content: str
    model: str
    tokens: tuple[int, int] | None
    problem: str = ""


class RequestError(Exception):
    """A request without a usable response; `kind` is the reason in a few words."""

    def __init__(self, kind: str, *, may_be_charged: bool = False) -> None:
        super().__init__(kind)
        self.kind, self.may_be_charged = kind, may_be_charged


class StatusError(RequestError):
    """A response with an error status."""

    def __init__(self, status: int, text: str, retry_after: float | None) -> None:
        super().__init__(f"HTTP status {status}")
        self.status, self.text, self.retry_after = status, text, retry_after


async def read_body(response: httpx.Response) -> bytes:
    """Read the body of a response, up to a maximum size."""
    parts: list[bytes] = []
    size = 0
    async for part in response.aiter_bytes():
        parts.append(part)
        size += len(part)
        if size > MAX_RESPONSE_BYTES:
            raise RequestError("response too large", may_be_charged=True)
    return b"".join(parts)


def parse_reply(body: bytes) -> Reply:
    """Read a chat completion; raise if the response is not one."""
    try:
        value = json.loads(body)
        choice = value["choices"][0]
        message = choice["message"]
        content, refusal = message.get("content"), message.get("refusal")
        if not isinstance(content, str | None) or not isinstance(value, dict):
            raise TypeError
    except (ValueError, KeyError, IndexError, TypeError, AttributeError, RecursionError):
        raise RequestError("response is not a chat completion", may_be_charged=True) from None
    model = value.get("model") or ""
    reply = Reply(content=content or "", model=model, tokens=_token_counts(value))
    if not is_model_name(model):
        return replace(reply, model="", problem="name of the model is not valid")
    reason = choice.get("finish_reason")
    if refusal or reason == "content_filter":
        return replace(reply, problem="refusal")
    if reason == "length":
        return replace(reply, problem="answer cut off at max_tokens")
    return reply


def is_model_name(name: Any) -> bool:
    """Return whether a value can be the name of a model: a short text in printable characters.

    >>> is_model_name("qwen2.5:7b"), is_model_name("\\ud800"), is_model_name(7)
    (True, False, False)
    """
    return isinstance(name, str) and len(name) <= MAX_MODEL_NAME and name.isprintable()


def _token_counts(value: Mapping[str, Any]) -> tuple[int, int] | None:
    usage = value.get("usage")
    if not isinstance(usage, dict):
        return None
    counts = [usage.get(name) for name in ("prompt_tokens", "completion_tokens")]
    if not all(isinstance(count, int) and 0 <= count < 1 << 40 for count in counts):
        return None
    return counts[0], counts[1]  # type: ignore[return-value]


def parse_retry_after(value: str | None) -> float | None:
    """Return the seconds of a Retry-After header, a number or a date; None without a valid one.

    >>> parse_retry_after("1.5"), parse_retry_after("soon"), parse_retry_after(None)
    (1.5, None, None)
    """
    if value is None:
        return None
    try:
        seconds = float(value)
    except ValueError:
        try:
            seconds = (parsedate_to_datetime(value) - datetime.now(UTC)).total_seconds()
        except (ValueError, TypeError, OverflowError):
            return None
    return max(0.0, seconds) if seconds == seconds else None
