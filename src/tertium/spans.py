"""Where a translation is wrong: marked stretches of text, and what they turn into and come from.

A `Span` counts code points, so that `text[span.start:span.end]` is what was marked. People mark
(MQM, ESA), word tags mark, and some metrics mark (`Metric.spans`); all of it is the same value,
which becomes scores, masks of characters, word tags and marked-up text, and comes back from these.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from operator import index
from typing import Any, Literal, Self, get_args

import numpy as np
import numpy.typing as npt

from tertium.errors import DataError, LengthError, UnknownNameError

Side = Literal["hypothesis", "source"]
Severity = Literal["neutral", "minor", "major", "critical", "bad"]

SIDES: tuple[Side, ...] = get_args(Side)
SEVERITIES: tuple[Severity, ...] = get_args(Severity)  # "bad": an error, nobody said how grave

# Freitag et al. 2021; those who mark critical errors, too, let them weigh 10 (Lommel et al. 2014)
MQM_WEIGHTS: Mapping[str, float] = {
    "critical": 10.0,
    "major": 5.0,
    "minor": 1.0,
    "neutral": 0.0,
    "no-error": 0.0,
    "major/non-translation": 25.0,
    "minor/fluency/punctuation": 0.1,
}
# Kocmi et al. 2024: two severities and no categories; an undecided one is taken as the lesser
ESA_WEIGHTS: Mapping[str, float] = {"major": 5.0, "minor": 1.0, "bad": 1.0, "neutral": 0.0}

OK, BAD = "OK", "BAD"

_WORD = re.compile(r"\S+")
_MARK = re.compile(r"</?v>")


@dataclass(frozen=True, slots=True)
class Span:
    """A stretch of the hypothesis or the source that is wrong, `text[start:end]`.

    `category` and `rater` are empty where they are not known; `chance` is how sure a metric is
    that the stretch is wrong, None where people said so.

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

    def __post_init__(self) -> None:
        for name in ("start", "end"):
            object.__setattr__(self, name, _offset(getattr(self, name), name))
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
        """What is marked of the text it stands in."""
        check_places([self], text, self.side)
        return text[self.start : self.end]

    def as_dict(self) -> dict[str, Any]:
        """Plain values for JSON, without what is not known."""
        values = {name: getattr(self, name) for name in self.__slots__}
        return {name: value for name, value in values.items() if value not in ("", None)}


@dataclass(frozen=True, slots=True)
class Unplaced:
    """An error that someone saw and whose place in the text is not known, such as an omission."""

    severity: Severity
    category: str = ""
    rater: str = ""


@dataclass(frozen=True, slots=True)
class Markings:
    """All that raters marked in one translation: errors with a place, and those without.

    >>> Markings((Span(0, 3, severity="major"),), (Unplaced("minor"),), raters=2).score()
    -3.0
    """

    spans: tuple[Span, ...] = ()
    missing: tuple[Unplaced, ...] = ()
    raters: int = 1

    @classmethod
    def of(cls, errors: Sequence[Span | Unplaced], raters: int = 1) -> Self:
        """Errors of both kinds, each kind in its order."""
        spans = tuple(error for error in errors if isinstance(error, Span))
        return cls(spans, tuple(e for e in errors if isinstance(e, Unplaced)), raters)

    def score(self, weights: Mapping[str, float] = MQM_WEIGHTS) -> float:
        """Minus the mean weight of what a rater marked."""
        return score_spans([*self.spans, *self.missing], raters=self.raters, weights=weights)


def merge_markings(markings: Sequence[Markings]) -> Markings:
    """What several raters marked, taken together."""
    return Markings(
        tuple(span for marked in markings for span in marked.spans),
        tuple(error for marked in markings for error in marked.missing),
        sum(marked.raters for marked in markings),
    )


def check_places(spans: Iterable[Span], text: str, side: Side, where: str = "") -> None:
    """Refuse spans of one side that end behind their text."""
    for span in spans:
        if span.side == side and span.end > len(text):
            raise DataError(
                f"{where}{': ' if where else ''}a span ends at {span.end}, but its {side} has "
                f"{len(text)} code points; count code points, not bytes or UTF-16 units"
            )


def count_overlaps(spans: Iterable[Span]) -> int:
    """How many spans begin inside an earlier one of the same side and rater."""
    reach: dict[tuple[str, str], int] = {}
    overlapping = 0
    for span in sorted(spans, key=lambda s: (s.start, s.end)):
        key = (span.side, span.rater)
        overlapping += span.start < reach.get(key, 0)
        reach[key] = max(reach.get(key, 0), span.end)
    return overlapping


def weigh(
    severity: str, category: str, weights: Mapping[str, float] = MQM_WEIGHTS, where: str = "error"
) -> float:
    """What one error weighs: the most specific entry of `severity[/category[/subcategory]]`.

    >>> weigh("Minor", "Fluency/Punctuation"), weigh("Minor", "Fluency/Grammar")
    (0.1, 1.0)
    >>> weigh("Major", "Non-translation!")
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
    errors: Iterable[Span | Unplaced],
    *,
    raters: int = 1,
    weights: Mapping[str, float] = MQM_WEIGHTS,
) -> float:
    """Minus the weight of all errors, by the number of raters who marked them; 0 is best.

    >>> score_spans([Span(0, 3, severity="major"), Unplaced("minor", "Fluency/Punctuation")])
    -5.1
    """
    if raters < 1:
        raise DataError(f"{raters} raters: errors are marked by one or more")
    return 0.0 - sum(weigh(error.severity, error.category, weights) for error in errors) / raters


def mask_of(spans: Iterable[Span], length: int, side: Side = "hypothesis") -> npt.NDArray[np.bool_]:
    """Which of a text's code points lie in a span of one side, (length,).

    >>> mask_of([Span(1, 3)], 4).tolist()
    [False, True, True, False]
    """
    mask = np.zeros(length, dtype=np.bool_)
    for span in spans:
        if span.side == side:
            if span.end > length:
                raise DataError(f"a span ends at {span.end}, but its {side} has {length} points")
            mask[span.start : span.end] = True
    return mask


def spans_of_mask(
    mask: Sequence[bool] | npt.NDArray[np.bool_],
    side: Side = "hypothesis",
    severity: Severity = "bad",
    category: str = "",
) -> tuple[Span, ...]:
    """The runs of a mask as spans.

    >>> spans_of_mask([False, True, True, False, True], severity="minor")[0]
    Span(start=1, end=3, side='hypothesis', severity='minor', category='', rater='', chance=None)
    """
    steps = np.diff(np.asarray(mask, dtype=np.int8), prepend=0, append=0)
    places = zip(np.flatnonzero(steps > 0), np.flatnonzero(steps < 0), strict=True)
    return tuple(Span(int(a), int(b), side, severity, category) for a, b in places)


def word_tags(text: str, spans: Iterable[Span], side: Side = "hypothesis") -> list[str]:
    """`BAD` for each word that a span touches, `OK` for the others; words are split at blanks.

    >>> word_tags("the cat sat", [Span(4, 6)])
    ['OK', 'BAD', 'OK']
    """
    mask = mask_of(spans, len(text), side)
    return [BAD if mask[a:b].any() else OK for a, b in word_places(text)]


def spans_of_tags(text: str, tags: Sequence[str], side: Side = "hypothesis") -> tuple[Span, ...]:
    """Runs of words tagged `BAD` as spans of severity `bad`.

    There is a tag for each word; or one more, for the end; or one for each word and each gap, which
    is before, between and behind the words. Tags of gaps and of the end have no place in the text.

    >>> [span.of("the cat sat") for span in spans_of_tags("the cat sat", ["OK", "BAD", "BAD"])]
    ['cat sat']
    """
    places = word_places(text)
    words = select_word_tags(tags, len(places))
    runs: list[list[int]] = []
    for n, tag in enumerate(words):
        if tag not in (OK, BAD):
            raise UnknownNameError("word tag", tag, (OK, BAD))
        if tag == BAD and n and words[n - 1] == BAD:
            runs[-1][1] = places[n][1]
        elif tag == BAD:
            runs.append(list(places[n]))
    return tuple(Span(start, end, side) for start, end in runs)


def select_word_tags(tags: Sequence[str], words: int) -> list[str]:
    """The tags of words among those of words, gaps and the end of a text."""
    if len(tags) == 2 * words + 1 and words:
        return list(tags[1::2])
    if len(tags) in (words, words + 1):
        return list(tags[:words])
    raise LengthError(
        f"{len(tags)} tags for {words} words: expected {words}, {words + 1} (with the end) or "
        f"{2 * words + 1} (with gaps)"
    )


def word_places(text: str) -> list[tuple[int, int]]:
    """Start and end of each word, as blanks split them."""
    return [match.span() for match in _WORD.finditer(text)]


def mark_up(text: str, span: Span) -> str:
    """The text with `<v>` and `</v>` around one span, as tables of MQM have it.

    >>> mark_up("the cat sat", Span(4, 7))
    'the <v>cat</v> sat'
    """
    marked = span.of(text)
    return f"{text[: span.start]}<v>{marked}</v>{text[span.end :]}"


def read_markup(
    marked: str, side: Side = "hypothesis", severity: Severity = "bad", category: str = ""
) -> tuple[str, tuple[Span, ...]]:
    """The text without its `<v>` marks, and a span for each pair of them; empty pairs mark nothing.

    >>> read_markup("the <v>cat</v> sat", severity="minor")[1][0].of("the cat sat")
    'cat'
    """
    pieces, spans, opened, length = [], [], None, 0
    end = 0
    for match in _MARK.finditer(marked):
        pieces.append(marked[end : match.start()])
        length, end = length + len(pieces[-1]), match.end()
        if (match[0] == "<v>") != (opened is None):
            raise DataError(f"marks do not pair at {match[0]} in {marked[:60]!r}")
        if opened is None:
            opened = length
            continue
        if length > opened:
            spans.append(Span(opened, length, side, severity, category))
        opened = None
    if opened is not None:
        raise DataError(f"a mark <v> is not closed in {marked[:60]!r}")
    return "".join([*pieces, marked[end:]]), tuple(spans)


def pieces_of(
    text: str, spans: Iterable[Span], side: Side = "hypothesis"
) -> Iterator[tuple[str, tuple[Span, ...]]]:
    """A text cut at every edge of a span, each piece with the spans that cover it.

    >>> [(piece, len(over)) for piece, over in pieces_of("abcdef", [Span(1, 4), Span(2, 5)])]
    [('a', 0), ('b', 1), ('cd', 2), ('e', 1), ('f', 0)]
    """
    own = [span for span in spans if span.side == side]
    check_places(own, text, side)
    edges = sorted({0, len(text), *(e for span in own for e in (span.start, span.end))})
    for start, end in pairwise(edges):
        covering = tuple(span for span in own if span.start <= start and end <= span.end)
        yield text[start:end], covering


def _offset(value: Any, name: str) -> int:
    try:
        return index(value)
    except TypeError:
        raise DataError(f"the {name} of a span is {value!r}, not a whole number") from None
