"""Protocols of judges, and their answers: exactly one JSON object with the declared fields.

Thoughts of a reasoning model before the object and a code fence around it are removed. With any
other text around it, an answer is not valid, because the object may be quoted from the texts to
judge. Nothing is repaired: a missing or repeated key, a score as text or an unknown severity is
invalid.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any, Literal

from tertium.core.errors import ModelError
from tertium.core.fields import Rule, json_schema, read_dataclass, reject_duplicate_keys

ProtocolName = Literal["esa", "da", "mqm"]
MAX_ERRORS = 200  # per answer; a model that repeats itself lists thousands
MAX_ANSWER_LENGTH = 100_000  # characters, without the thoughts before the answer
MAX_MQM_POINTS = 25.0  # a segment is not worse than a text that is not a translation
_THINKING = re.compile(r"\A\s*<think(?:ing)?>.*?</think(?:ing)?>", re.DOTALL)
_FENCED = re.compile(r"```(?:json)?(.*)```", re.DOTALL)
_FEW = Rule(lambda errors: len(errors) <= MAX_ERRORS, f"at most {MAX_ERRORS} errors")

Score = Annotated[float, Rule(lambda score: 0 <= score <= 100, "0 to 100")]


class InvalidAnswerError(Exception):
    """An answer that cannot be used; `kind` is the reason in a few words, for counts."""

    def __init__(self, kind: str, detail: str = "") -> None:
        self.kind = kind
        super().__init__(f"{kind}: {detail}" if detail else kind)


@dataclass(frozen=True)
class ReportedError:
    """An error as the judge reported it; `before` are the words before the quote."""

    quote: str
    before: str
    side: Literal["translation", "source"]
    severity: Literal["minor", "major", "critical"]
    category: str
    reason: str


@dataclass(frozen=True)
class GradedError(ReportedError):
    """An error under ESA, which has no critical errors."""

    severity: Literal["minor", "major"]


@dataclass(frozen=True)
class ErrorsAndScore:
    """An answer under ESA."""

    errors: Annotated[tuple[GradedError, ...], _FEW]
    score: Score


@dataclass(frozen=True)
class ReasonAndScore:
    """An answer under DA."""

    reason: str
    score: Score


@dataclass(frozen=True)
class Errors:
    """An answer under MQM."""

    errors: Annotated[tuple[ReportedError, ...], _FEW]


Answer = ErrorsAndScore | ReasonAndScore | Errors


@dataclass(frozen=True, kw_only=True)
class JudgeProtocol:
    """What a judge is asked for; `answer_tokens` is the usual length of an answer."""

    name: ProtocolName
    answer: type[Answer]
    answer_tokens: int
    worst_score: float = 0.0
    best_score: float = 100.0

    @cached_property
    def schema(self) -> dict[str, Any]:
        """The JSON schema of an answer, in the subset that servers enforce strictly."""
        return json_schema(self.answer)

    @property
    def response_format(self) -> dict[str, Any]:
        """The schema, as a parameter of a request."""
        schema = {"name": f"{self.name}_answer", "strict": True, "schema": self.schema}
        return {"type": "json_schema", "json_schema": schema}

    def parse(self, content: str) -> Answer:
        """Parse the text of an answer; raise `InvalidAnswerError` if it is not valid.

        >>> PROTOCOLS["da"].parse('<think>fine</think> {"reason": "", "score": 90}').score
        90.0
        """
        text = _THINKING.sub("", content).strip()
        fenced = _FENCED.fullmatch(text)
        text = fenced[1].strip() if fenced else text
        if not text:
            raise InvalidAnswerError("empty answer")
        if len(text) > MAX_ANSWER_LENGTH:
            limit = f"expected at most {MAX_ANSWER_LENGTH:,} characters"
            raise InvalidAnswerError("answer too long", limit)
        try:
            value = json.loads(text, object_pairs_hook=reject_duplicate_keys)
            json.dumps([content, value], ensure_ascii=False).encode()  # all of it is Unicode
        except (ValueError, RecursionError):  # also a number of more than 4,300 digits
            raise InvalidAnswerError("not exactly one JSON object") from None
        try:
            return read_dataclass(self.answer, value, "answer")
        except ModelError:  # not its message: it may repeat a text
            expected = f"expected the JSON schema {json.dumps(self.schema)}"
            raise InvalidAnswerError("wrong form", expected) from None


PROTOCOLS: Mapping[ProtocolName, JudgeProtocol] = {
    "esa": JudgeProtocol(name="esa", answer=ErrorsAndScore, answer_tokens=120),
    "da": JudgeProtocol(name="da", answer=ReasonAndScore, answer_tokens=30),
    "mqm": JudgeProtocol(
        name="mqm",
        answer=Errors,
        answer_tokens=110,
        worst_score=-MAX_MQM_POINTS,
        best_score=0.0,
    ),
}
