"""Read and check the answers of a judge; anything that is not a valid answer raises an error.

Servers that enforce a JSON schema return one JSON object. Others may put text or a code block
around it. Nothing is repaired: a missing key, a score as text or an unknown severity is invalid.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from json import JSONDecodeError, JSONDecoder
from typing import Any, Literal

from tertium.metrics.judge.protocols import MAX_SCORE, MIN_SCORE, JudgeProtocol
from tertium.spans import Severity

MAX_ERRORS = 200  # per answer; a model that repeats itself lists thousands
_THINKING = re.compile(r"\A\s*<think(?:ing)?>.*?</think(?:ing)?>", re.DOTALL)


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
    >>> parse_answer('Here it is: {"reason": "", "score": 90}', PROTOCOLS["da"]).score
    90.0
    """
    if not content.strip():
        raise InvalidAnswerError("empty answer")
    values = find_objects(content)
    if not values:
        raise InvalidAnswerError("no JSON object in the answer")
    valid: list[Answer] = []
    problem: InvalidAnswerError | None = None
    for value in values:
        try:
            answer = _check_answer(value, protocol)
        except InvalidAnswerError as error:
            problem = problem or error
        else:
            valid += [answer] if answer not in valid else []
    if len(valid) > 1:  # one of them may be copied from the translation
        raise InvalidAnswerError("several answers")
    if not valid:
        raise problem or InvalidAnswerError("no JSON object in the answer")
    return valid[0]


def find_objects(content: str) -> list[dict[str, Any]]:
    """Return the outermost JSON objects of a text, without the thoughts before the answer.

    >>> find_objects('<think>{"a": 0}</think> ```json\\n{"a": 1}\\n```')
    [{'a': 1}]
    """
    text = _THINKING.sub("", content)
    decoder, objects, position = JSONDecoder(), [], text.find("{")
    while position >= 0:
        try:
            value, end = decoder.raw_decode(text, position)
        except (JSONDecodeError, RecursionError):
            end = position + 1
        else:
            objects.append(value)
        position = text.find("{", end)
    return objects


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
    if not (abs(score) < math.inf and MIN_SCORE <= score <= MAX_SCORE):
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
    try:
        text.encode()
    except UnicodeEncodeError:  # JSON escapes can hold half of a surrogate pair
        raise InvalidAnswerError("wrong form", f"{name} is not valid Unicode") from None
    return text
