"""Error spans: marked parts of a translation or source, and their conversions.

Offsets of a `Span` count code points, so `text[span.start:span.end]` is the marked text. Human
annotation (MQM, ESA), word tags and metrics (`Metric.spans`) all produce the same class. Spans are
converted to and from scores, character masks, word tags and marked-up text.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from operator import index
from typing import Any, Literal, Self

from tertium.core.errors import DataError, LengthError, UnknownNameError
from tertium.core.fields import choices

Side = Literal["hypothesis", "source"]
Severity = Literal["neutral", "minor", "major", "critical", "bad"]

SIDES: tuple[Side, ...] = choices(Side)
SEVERITIES: tuple[Severity, ...] = choices(Severity)  # "bad": an error of unknown severity

# Freitag et al. 2021; critical errors, where annotated, weigh 10 (Lommel et al. 2014).
MQM_WEIGHTS: Mapping[str, float] = {
    "critical": 10.0,
    "major": 5.0,
    "minor": 1.0,
    "neutral": 0.0,
    "no-error": 0.0,
    "major/non-translation": 25.0,
    "minor/fluency/punctuation": 0.1,
}
# Kocmi et al. 2024: two severities and no categories; an unknown severity counts as minor.
ESA_WEIGHTS: Mapping[str, float] = {"major": 5.0, "minor": 1.0, "bad": 1.0, "neutral": 0.0}

OK = "OK"
BAD = "BAD"

_WORD = re.compile(r"\S+")
_MARKUP_TAG = re.compile(r"(</?v>)")


@dataclass(frozen=True, slots=True)
class Span:
    """A marked error in the hypothesis or the source: `text[start:end]`.

    `category` and `rater` are empty if unknown. `chance` is the probability of an error that a
    metric predicts; it is None for human annotation. `message` explains the error to a reader.

    >>> Span(4, 7, severity="major").of("the cat sat")
    'cat'
    """

    start: int
    end: int
    side: Side = "hypothesis"
    severity: Severity = "bad"
    category: str = ""
    rater: str = ""
    chance: float | None = None
    message: str = ""

    def __post_init__(self) -> None:
        for name in ("start", "end"):
            object.__setattr__(self, name, _to_offset(getattr(self, name), name))
        if not 0 <= self.start < self.end:
            raise DataError(
                f"a span from {self.start} to {self.end}: expected 0 <= start < end, in code points"
            )
        if self.side not in SIDES:
            raise UnknownNameError("side of a span", str(self.side), SIDES)
        if self.severity not in SEVERITIES:
            raise UnknownNameError("severity", str(self.severity), SEVERITIES)
        if self.chance is not None and not 0.0 <= self.chance <= 1.0:
            raise DataError(f"the chance of a span is {self.chance!r}; expected 0 to 1")

    def __len__(self) -> int:
        return self.end - self.start

    def of(self, text: str) -> str:
        """Return the marked part of `text`."""
        check_span_bounds([self], text, self.side)
        return text[self.start : self.end]

    def as_dict(self) -> dict[str, Any]:
        """Convert to a dictionary for JSON, without empty fields."""
        values = {name: getattr(self, name) for name in self.__slots__}
        return {name: value for name, value in values.items() if value not in ("", None)}


@dataclass(frozen=True, slots=True)
class UnlocatedError:
    """An error without a position in the text, such as an omission."""

    severity: Severity
    category: str = ""
    rater: str = ""


@dataclass(frozen=True, slots=True)
class ErrorAnnotations:
    """All errors marked in one translation: `spans` with a position, `missing` without one.

    >>> ErrorAnnotations((Span(0, 3, severity="major"),), (UnlocatedError("minor"),), 2).score()
    -3.0
    """

    spans: tuple[Span, ...] = ()
    missing: tuple[UnlocatedError, ...] = ()
    raters: int = 1

    @classmethod
    def of(cls, errors: Sequence[Span | UnlocatedError], raters: int = 1) -> Self:
        """Separate errors with and without a position."""
        spans = tuple(error for error in errors if isinstance(error, Span))
        return cls(spans, tuple(e for e in errors if isinstance(e, UnlocatedError)), raters)

    @property
    def errors(self) -> tuple[Span | UnlocatedError, ...]:
        """All errors, with and without a position."""
        return (*self.spans, *self.missing)

    def score(self, weights: Mapping[str, float] = MQM_WEIGHTS) -> float:
        """Compute minus the mean error weight per rater."""
        return score_spans(self.errors, raters=self.raters, weights=weights)


def merge_annotations(annotations: Sequence[ErrorAnnotations]) -> ErrorAnnotations:
    """Combine the annotations of several raters."""
    return ErrorAnnotations(
        tuple(span for entry in annotations for span in entry.spans),
        tuple(error for entry in annotations for error in entry.missing),
        sum(entry.raters for entry in annotations),
    )


def check_span_bounds(spans: Iterable[Span], text: str, side: Side, where: str = "") -> None:
    """Raise `DataError` if a span of one side ends after its text."""
    for span in spans:
        if span.side == side and span.end > len(text):
            raise DataError(
                f"{where}{': ' if where else ''}a span ends at {span.end}, but its {side} has "
                f"{len(text)} code points; count code points, not bytes or UTF-16 units"
            )


def count_overlaps(spans: Iterable[Span]) -> int:
    """Count spans that start inside an earlier span of the same side and rater."""
    last_end: dict[tuple[str, str], int] = {}
    overlaps = 0
    for span in sorted(spans, key=lambda s: (s.start, s.end)):
        key = (span.side, span.rater)
        overlaps += span.start < last_end.get(key, 0)
        last_end[key] = max(last_end.get(key, 0), span.end)
    return overlaps


def error_weight(
    severity: str, category: str, weights: Mapping[str, float] = MQM_WEIGHTS, where: str = "error"
) -> float:
    """Look up the weight of an error: the most specific `severity[/category[/subcategory]]`.

    >>> error_weight("Minor", "Fluency/Punctuation"), error_weight("Minor", "Fluency/Grammar")
    (0.1, 1.0)
    >>> error_weight("Major", "Non-translation!")
    25.0
    """
    parts = (severity, *category.split("/"))
    path = [part.strip().lower().rstrip("!").replace("_", "-") for part in parts]
    while path:
        weight = weights.get("/".join(path), math.nan)
        if weight == weight:
            return weight
        path.pop()
    raise DataError(f"{where}: no weight for severity {severity!r} (known: {', '.join(weights)})")


def score_spans(
    errors: Iterable[Span | UnlocatedError],
    *,
    raters: int = 1,
    weights: Mapping[str, float] = MQM_WEIGHTS,
) -> float:
    """Compute minus the sum of error weights divided by the number of raters; 0 is best.

    >>> score_spans([Span(0, 3, severity="major"), UnlocatedError("minor", "Fluency/Punctuation")])
    -5.1
    """
    if raters < 1:
        raise DataError(f"{raters} raters: expected at least one")
    total = sum(error_weight(error.severity, error.category, weights) for error in errors)
    return 0.0 - total / raters


def tags_to_spans(text: str, tags: Sequence[str], side: Side = "hypothesis") -> tuple[Span, ...]:
    """Convert runs of words tagged `BAD` to spans of severity `bad`.

    There is one tag per word, or one more for the end of the text, or one for each word and each
    gap before, between and after the words. Tags of gaps and of the end are ignored.

    >>> [span.of("the cat sat") for span in tags_to_spans("the cat sat", ["OK", "BAD", "BAD"])]
    ['cat sat']
    """
    offsets = word_offsets(text)
    word_level_tags = _select_word_tags(tags, len(offsets))
    runs: list[list[int]] = []
    for n, tag in enumerate(word_level_tags):
        if tag not in (OK, BAD):
            raise UnknownNameError("word tag", tag, (OK, BAD))
        if tag == BAD and n and word_level_tags[n - 1] == BAD:
            runs[-1][1] = offsets[n][1]
        elif tag == BAD:
            runs.append(list(offsets[n]))
    return tuple(Span(start, end, side) for start, end in runs)


def _select_word_tags(tags: Sequence[str], word_count: int) -> list[str]:
    """Select the tags of words from tags of words, gaps and the end of a text."""
    if len(tags) == 2 * word_count + 1 and word_count:
        return list(tags[1::2])
    if len(tags) in (word_count, word_count + 1):
        return list(tags[:word_count])
    raise LengthError(
        f"{len(tags)} tags for {word_count} words: expected {word_count}, {word_count + 1} (with "
        f"the end) or {2 * word_count + 1} (with gaps)"
    )


def word_offsets(text: str) -> list[tuple[int, int]]:
    """Return the start and end of each whitespace-separated word."""
    return [match.span() for match in _WORD.finditer(text)]


def parse_markup(
    marked: str, side: Side = "hypothesis", severity: Severity = "bad", category: str = ""
) -> tuple[str, tuple[Span, ...]]:
    """Remove `<v>` tags from a text and return it with a span for each non-empty pair of tags.

    >>> parse_markup("the <v>cat</v> sat", severity="minor")[1][0].of("the cat sat")
    'cat'
    """
    text, *tagged = _MARKUP_TAG.split(marked)
    spans = []
    opened = None
    for tag, piece in zip(tagged[::2], tagged[1::2], strict=True):
        if (tag == "<v>") != (opened is None):
            raise DataError(f"unbalanced tags at {tag} in {marked[:60]!r}")
        if opened is None:
            opened = len(text)
        else:
            if opened < len(text):
                spans.append(Span(opened, len(text), side, severity, category))
            opened = None
        text += piece
    if opened is not None:
        raise DataError(f"a tag <v> is not closed in {marked[:60]!r}")
    return text, tuple(spans)


def split_at_spans(
    text: str, spans: Iterable[Span], side: Side = "hypothesis"
) -> Iterator[tuple[str, tuple[Span, ...]]]:
    """Split a text at all span boundaries; yield each piece with the spans that cover it.

    >>> [(piece, len(over)) for piece, over in split_at_spans("abcdef", [Span(1, 4), Span(2, 5)])]
    [('a', 0), ('b', 1), ('cd', 2), ('e', 1), ('f', 0)]
    """
    side_spans = [span for span in spans if span.side == side]
    check_span_bounds(side_spans, text, side)
    edges = sorted({0, len(text), *(e for span in side_spans for e in (span.start, span.end))})
    for start, end in pairwise(edges):
        covering = tuple(span for span in side_spans if span.start <= start and end <= span.end)
        yield text[start:end], covering


def _to_offset(value: Any, name: str) -> int:
    try:
        return index(value)
    except TypeError:
        raise DataError(f"the {name} of a span is {value!r}, not a whole number") from None
