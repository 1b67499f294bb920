"""Read and check the answers of a judge; anything that is not a valid answer raises an error.

An answer is exactly one JSON object. Thoughts of a reasoning model before it and a code fence
around it are removed; with any other text around it, an answer is not valid, because the object may
be quoted from the texts to judge. Nothing is repaired: a missing or repeated key, a score as text
or an unknown severity is invalid.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any, Literal

from tertium.core.spans import Severity
from tertium.metrics.judge.protocols import MAX_SCORE, MIN_SCORE, JudgeProtocol

MAX_ERRORS = 200  # per answer; a model that repeats itself lists thousands
MAX_ANSWER_LENGTH = 100_000  # characters, without the thoughts before the answer
_THINKING = re.compile(r"\s*<think(?:ing)?>.*?</think(?:ing)?>", re.DOTALL)
_FENCE = "```"


class InvalidAnswerError(Exception):
    """An answer that cannot be used; `kind` is the reason in a few words, for counts."""

    def __init__(self, kind: str, detail: str = "") -> None:
        self.kind, self.detail = kind, detail
        super().__init__(f"{kind}: {detail}" if detail else kind)


@dataclass(frozen=True, slots=True)
class ReportedError:
    """An error as the judge reported it; `before` are the words before the quote."""

    quote: str
    before: str
    side: Literal["translation", "source"]
    severity: Severity
    category: str
    reason: str


@dataclass(frozen=True, slots=True)
class Answer:
    """A valid answer: a score, if the protocol asks for one, and errors or a reason."""

    score: float | None
    errors: tuple[ReportedError, ...] = ()
    reason: str = ""


def parse_answer(content: str, protocol: JudgeProtocol) -> Answer:
    """Parse the text of an answer; raise `InvalidAnswerError` if it is not valid.

    >>> from tertium.metrics.judge.protocols import PROTOCOLS
    >>> parse_answer('<think>fine</think> {"reason": "", "score": 90}', PROTOCOLS["da"]).score
    90.0
    """
    if not is_unicode(content):
        raise InvalidAnswerError("not valid Unicode")
    return _check_answer(_parse_object(_unwrap(content)), protocol)


def is_unicode(text: str) -> bool:
    """Return whether a text can be encoded: JSON escapes can hold half of a surrogate pair.

    >>> is_unicode("ok"), is_unicode("\\ud800")
    (True, False)
    """
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _unwrap(content: str) -> str:
    """Remove one block of thoughts before an answer, and one code fence around it."""
    thoughts = _THINKING.match(content)
    text = content[thoughts.end() :] if thoughts else content
    text = text.strip()
    is_fenced = text.startswith(_FENCE) and text.endswith(_FENCE) and len(text) > len(_FENCE)
    if is_fenced:
        text = text[len(_FENCE) : -len(_FENCE)].removeprefix("json").strip()
    return text


def _parse_object(text: str) -> dict[str, Any]:
    """Parse a text that is exactly one JSON object."""
    if not text:
        raise InvalidAnswerError("empty answer")
    if len(text) > MAX_ANSWER_LENGTH:
        raise InvalidAnswerError(
            "answer too long", f"expected at most {MAX_ANSWER_LENGTH:,} characters"
        )
    try:
        value = json.loads(text, object_pairs_hook=_make_object, parse_constant=_refuse_constant)
    except (ValueError, RecursionError):  # also a number of more than 4,300 digits
        value = None
    if not isinstance(value, dict):
        raise InvalidAnswerError("not exactly one JSON object")
    return value


def _make_object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) != len(pairs):
        raise InvalidAnswerError("repeated key")
    return value


def _refuse_constant(name: str) -> float:
    raise ValueError(f"{name} is not JSON")


def _check_answer(value: dict[str, Any], protocol: JudgeProtocol) -> Answer:
    names = protocol.schema["properties"]
    if {*value} != {*names}:  # do not repeat its keys: they may be copied from a text
        raise InvalidAnswerError("wrong form", f"expected exactly the keys {', '.join(names)}")
    score = _check_score(value["score"]) if protocol.has_score else None
    if not protocol.severities:
        return Answer(score, reason=_check_text(value, "reason"))
    errors = value["errors"]
    if not isinstance(errors, list) or len(errors) > MAX_ERRORS:
        raise InvalidAnswerError("wrong form", f"errors is not a list of at most {MAX_ERRORS}")
    return Answer(score, tuple(_check_error(error, protocol) for error in errors))


def _check_score(score: Any) -> float:
    if isinstance(score, bool) or not isinstance(score, int | float):
        raise InvalidAnswerError("wrong form", "score is not a number")
    if not MIN_SCORE <= score <= MAX_SCORE:
        raise InvalidAnswerError("score out of range", f"expected {MIN_SCORE:g} to {MAX_SCORE:g}")
    return float(score)


def _check_error(error: Any, protocol: JudgeProtocol) -> ReportedError:
    names = protocol.schema["properties"]["errors"]["items"]["properties"]
    if not isinstance(error, dict) or {*error} != {*names}:
        raise InvalidAnswerError("wrong form", f"an error needs the keys {', '.join(names)}")
    for name in names:
        allowed = names[name].get("enum")
        if _check_text(error, name) not in (allowed or [error[name]]):
            expected = ", ".join(allowed)
            raise InvalidAnswerError(
                "wrong form", f"{name} of an error: expected one of {expected}"
            )
    return ReportedError(**error)


def _check_text(value: dict[str, Any], name: str) -> str:
    text = value[name]
    if not isinstance(text, str):
        raise InvalidAnswerError("wrong form", f"{name} is not a text")
    if not is_unicode(text):
        raise InvalidAnswerError("wrong form", f"{name} is not valid Unicode")
    return text
