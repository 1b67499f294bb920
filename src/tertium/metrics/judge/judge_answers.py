"""Protocols of judges, and their answers: exactly one JSON object with the declared fields.

Thoughts of a reasoning model before the object and a code fence around it are removed. With any
other text around it, an answer is not valid, because the object may be quoted from the texts to
judge. Nothing is repaired: a missing or repeated key, a score as text or an unknown severity is
invalid.

Answers of judges, in memory and in the cache on disk, stored one by one as they arrive.

The key of an answer is everything that was sent except the API key and the address of the server:
model, messages, pass and parameters. Failures are remembered in memory only, so that a later run
asks again.

Place quotes of a judge in the text: from a quote and the words before it to a `Span`.

A quote is searched without differences of case, white space and typographic quotes, which models
often change; exact occurrences win. A quote that is not in the text is not placed.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from typing import Annotated, Any, Literal

import numpy as np

from tertium.core.errors import ModelError
from tertium.core.fields import Rule, json_schema, read_dataclass, reject_duplicate_keys
from tertium.core.runtime import current_runtime
from tertium.core.spans import Side, Span, score_spans
from tertium.core.store import ANSWERS, Store, open_store

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

    content = ""  # the start of the answer

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


_SIMPLE_CHARACTERS = str.maketrans("‘’‚‛“”„‟«»‐‑–—", '\'\'\'\'""""""----')
CONTEXT_LENGTH = 40  # characters before an occurrence that are compared


def place_errors(
    errors: Iterable[ReportedError], hypothesis: str, source: str | None
) -> tuple[list[tuple[Span, ReportedError]], int]:
    """Return the errors that can be placed, and the number of others.

    An error that repeats another one at the same place counts as not placed.

    >>> error = ReportedError("the", "on", "translation", "minor", "style", "")
    >>> [(span, _)], dropped = place_errors([error], "The cat sat on the mat.", None)
    >>> span.start, span.end, dropped
    (15, 18, 0)
    """
    placed: list[tuple[Span, ReportedError]] = []
    dropped = 0
    for error in errors:
        side: Side = "source" if error.side == "source" else "hypothesis"
        text = hypothesis if side == "hypothesis" else source or ""
        occupied = [(span.start, span.end) for span, _ in placed if span.side == side]
        place = find_quote(text, error.quote, error.before, occupied)
        if place is None:
            dropped += 1
        else:
            category, reason = (" ".join(text.split()) for text in (error.category, error.reason))
            span = Span(*place, side, error.severity, category, message=reason)
            placed.append((span, error))
    return placed, dropped


def find_quote(
    text: str, quote: str, before: str = "", occupied: Collection[tuple[int, int]] = ()
) -> tuple[int, int] | None:
    """Return start and end of a quote that is not occupied, best after the words `before`.

    >>> find_quote("a cat, a cat", "cat"), find_quote("a cat, a cat", "cat", "cat, a")
    ((2, 5), (9, 12))
    >>> find_quote("He said “No”.", 'said "no"'), find_quote("He said no.", "yes")
    ((3, 12), None)
    """
    similar = list(_find_similar(text, quote))
    exact = [place for place in similar if text[slice(*place)] == quote.strip()]
    free = [place for place in exact or similar if place not in occupied]
    words = _simplify(before)[0].strip()
    for start, end in free:
        text_before = _simplify(text[max(0, start - CONTEXT_LENGTH) : start])[0]
        if words and text_before.rstrip().endswith(words):
            return start, end
    return free[0] if free else None


def _find_similar(text: str, quote: str) -> Iterator[tuple[int, int]]:
    """Yield places of a quote, ignoring case, white space and kinds of quotes and dashes."""
    characters, offsets = _simplify(text)
    pattern = _simplify(quote)[0].strip()
    start = characters.find(pattern) if pattern else -1
    while start >= 0:
        yield offsets[start], offsets[start + len(pattern) - 1] + 1
        start = characters.find(pattern, start + 1)


def _simplify(text: str) -> tuple[str, list[int]]:
    """Return a text in simple characters, and the offset of each one in the original."""
    characters: list[str] = []
    offsets: list[int] = []
    for offset, character in enumerate(text.translate(_SIMPLE_CHARACTERS)):
        simple = " " if character.isspace() else character.casefold()
        if simple == " " and characters[-1:] == [" "]:
            continue
        characters += simple
        offsets += [offset] * len(simple)
    return "".join(characters), offsets


FORMAT_VERSION = 2
MAX_STORED_BYTES = 16 << 30


@dataclass(frozen=True, slots=True)
class StoredAnswer:
    """A valid answer: its text, the model that the server named, and tokens of all attempts."""

    content: str
    model: str
    prompt_tokens: int
    completion_tokens: int


answers_in_memory: dict[str, StoredAnswer] = {}
failures: dict[str, str] = {}  # why a question has no valid answer


def get_answers(
    keys: Iterable[str], protocol: JudgeProtocol
) -> dict[str, tuple[StoredAnswer, Answer]]:
    """Return the valid answers of keys that are in memory or in the cache."""
    missing = [key for key in keys if key not in answers_in_memory]
    rows = open_answers().read(ANSWERS.name, missing) if current_runtime().cache else {}
    for key, row in rows.items():
        with suppress(ValueError, ModelError):  # a damaged answer is requested again
            stored = read_dataclass(StoredAnswer, json.loads(row), "cached answer")
            answers_in_memory[key] = stored
    answers = {}
    for key in keys:
        with suppress(InvalidAnswerError, KeyError):
            stored = answers_in_memory[key]
            answers[key] = stored, protocol.parse(stored.content)
    return answers


def put_answer(key: str, answer: StoredAnswer) -> None:
    """Store an answer in memory and, unless the cache is off, on disk."""
    answers_in_memory[key] = answer
    failures.pop(key, None)
    row = json.dumps(asdict(answer), ensure_ascii=False).encode()
    if current_runtime().cache:
        open_answers().write(ANSWERS.name, {key: row})


def open_answers() -> Store:
    """Return the cache on disk, which warns if it cannot be used."""
    return open_store(ANSWERS.path(str(FORMAT_VERSION)), MAX_STORED_BYTES)


NO_REQUEST = StoredAnswer("", "", 0, 0)


@dataclass(frozen=True)
class PassResult:
    """The answer of one pass: score, placed errors, and the number of quotes without a place."""

    score: float
    answer: StoredAnswer = NO_REQUEST
    errors: Sequence[tuple[Span, ReportedError]] = ()
    unplaced: int = 0
    reason: str = ""


def read_pass(
    stored: StoredAnswer, answer: Answer, hypothesis: str, source: str | None, worst_score: float
) -> PassResult:
    """Place the errors of an answer in the texts, and compute its score."""
    reported = getattr(answer, "errors", ())
    errors, unplaced = place_errors(reported, hypothesis, source)
    score = getattr(answer, "score", None)
    if score is None:
        score = max(score_spans(span for span, _ in errors), worst_score)
    return PassResult(score, stored, errors, unplaced, getattr(answer, "reason", ""))


@dataclass(frozen=True)
class SegmentResult:
    """The answers of all passes for a segment, and the reasons of those without one.

    `key` identifies the first question; it is empty if none is asked.
    """

    key: str
    passes: Sequence[PassResult]
    failures: Sequence[str] = ()

    @property
    def score(self) -> float:
        """The mean score of the passes, NaN without a valid answer."""
        return float(np.mean([p.score for p in self.passes])) if self.passes else np.nan

    @property
    def spread(self) -> float:
        """The standard deviation of the scores of the passes, 0 for one pass."""
        scores = [p.score for p in self.passes]
        return float(np.std(scores, ddof=1)) if len(scores) > 1 else 0.0

    def reasons(self) -> tuple[str, ...]:
        """Return the distinct reasons of the judge as sentences, each error with its quote."""
        lines = []
        for p in self.passes:
            if p.reason:
                lines.append(p.reason)
            for span, error in p.errors:
                quote = error.quote.strip()
                lines.append(f"{span.severity}, {span.category}, {quote!r}: {error.reason}")
        return tuple(dict.fromkeys(lines))

    def spans(self) -> tuple[Span, ...]:
        """Merge the spans of all passes; with several, `chance` is the share that agrees.

        A span gets the severity and category that most passes give it, the first one in a tie, and
        the message of the first pass that marks it.
        """
        votes: dict[tuple[str, int, int], list[Span]] = {}
        for p in self.passes:
            for span, _ in p.errors:
                votes.setdefault((span.side, span.start, span.end), []).append(span)
        spans = []
        for marked in votes.values():
            kinds = Counter((span.severity, span.category) for span in marked)
            [((severity, category), _)] = kinds.most_common(1)
            chance = round(len(marked) / len(self.passes), 4) if len(self.passes) > 1 else None
            span = replace(marked[0], severity=severity, category=category, chance=chance)
            spans.append(span)
        return tuple(
            sorted(spans, key=lambda span: (span.side != "hypothesis", span.start, span.end))
        )
