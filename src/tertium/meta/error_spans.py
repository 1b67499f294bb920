"""How well marked errors agree with those that people marked: by characters, and span by span.

Each translation gives a row (credit, marked by people, marked by the metric), which may be added;
precision is credit by what the metric marked, recall credit by what people marked, and F1 their
harmonic mean. Sums of rows give the micro figures; the mean of the rows' own F1 is the macro one.
Where nobody marked anything, precision and recall are 1.

Characters (the error span task of WMT25): at each code point of the translation as many errors
meet as were marked there; one of the same severity earns 1, one of another severity 1/2. A critical
error counts as major. As in that task, errors of unknown severity are left out, unless people gave
no severities at all, as in word tags: then places alone are compared. WMT23 looked at whether a
code point is marked, not how often, and gave full credit for either of two severities.

Spans (partial credit): pairs of spans, each used once, so that the sum of their overlap by union,
halved where severities differ, is largest.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from tertium.arrays import FloatArray, divide
from tertium.errors import LengthError
from tertium.spans import Markings, Side, Span

HALF = 0.5  # what the right place earns under the wrong severity
COLUMNS = ("credit", "human", "metric")
GRADES = {"minor": 0, "major": 1, "critical": 1}

Spans = Sequence[Span]
Count = Callable[[Sequence[Spans], Sequence[Spans], Sequence[int]], FloatArray]


@dataclass(frozen=True)
class SpanFigures:
    """Precision, recall and F1."""

    precision: float
    recall: float
    f1: float


def count_characters(
    human: Sequence[Spans], metric: Sequence[Spans], lengths: Sequence[int]
) -> FloatArray:
    """Rows of translations under WMT25's count of characters, (n, 3).

    >>> people, metric = [[Span(0, 4, severity="major")]], [[Span(2, 6, severity="minor")]]
    >>> count_characters(people, metric, [9])  # two code points, each for half
    array([[1., 4., 4.]])
    """
    graded = is_graded(human)
    gold, found = (_layers(spans, lengths, graded) for spans in (human, metric))
    full = np.minimum(gold, found)
    rest = np.minimum((gold - full).sum(0), (found - full).sum(0))
    credit = full.sum(0) + HALF * rest
    return _rows(credit, gold.sum(0), found.sum(0), lengths)


def count_characters_once(
    human: Sequence[Spans], metric: Sequence[Spans], lengths: Sequence[int]
) -> FloatArray:
    """Rows under WMT23's count, in which a code point is marked or is not, (n, 3)."""
    graded = is_graded(human)
    gold, found = (_layers(spans, lengths, graded) > 0 for spans in (human, metric))
    human_any, metric_any = (np.asarray(marks.any(0), dtype=np.float64) for marks in (gold, found))
    credit = np.where((gold & found).any(0), 1.0, HALF * human_any * metric_any)
    return _rows(credit, human_any, metric_any, lengths)


def match_spans(
    human: Sequence[Spans], metric: Sequence[Spans], lengths: Sequence[int]
) -> FloatArray:
    """Rows of translations whose spans are paired one to one with partial credit, (n, 3)."""
    if not len(human) == len(metric) == len(lengths):
        sizes = f"{len(human)}, {len(metric)} and {len(lengths)}"
        raise LengthError(f"markings of people, of a metric and lengths of texts: {sizes}")
    graded = is_graded(human)
    rows = np.zeros((len(lengths), 3))
    for n, (people, found) in enumerate(zip(human, metric, strict=True)):
        gold, marked = _usable(people, graded), _usable(found, graded)
        rows[n] = _best_pairing(gold, marked, graded), len(gold), len(marked)
    return rows


COUNTS: dict[str, Count] = {
    "characters": count_characters,
    "characters-once": count_characters_once,
    "spans": match_spans,
}


def micro(rows: FloatArray) -> SpanFigures:
    """Precision, recall and F1 of sums of rows."""
    values = _figures(rows.sum(axis=0))
    return SpanFigures(*(float(value) for value in values))


def macro(rows: FloatArray) -> SpanFigures:
    """The means of the translations' own precision, recall and F1."""
    return SpanFigures(*(float(value.mean()) for value in _figures(rows)))


def f1_of(totals: FloatArray) -> FloatArray:
    """Sums of rows to F1, (..., 3) -> (...)."""
    return _figures(totals)[2]


def by_severity(
    human: Sequence[Spans], metric: Sequence[Spans], lengths: Sequence[int], count: Count
) -> dict[str, FloatArray]:
    """Rows of the errors of each severity alone, on both sides: a wrong one earns nothing."""
    present = {GRADES[s.severity] for spans in human for s in spans if s.severity in GRADES}
    names = {0: "minor", 1: "major"}

    def only(sets: Sequence[Spans], grade: int) -> list[list[Span]]:
        return [[s for s in spans if GRADES.get(s.severity) == grade] for spans in sets]

    return {names[g]: count(only(human, g), only(metric, g), lengths) for g in sorted(present)}


def by_category(
    human: Sequence[Spans], metric: Sequence[Spans], lengths: Sequence[int], count: Count
) -> dict[str, FloatArray]:
    """Rows of the errors of each category of people's, beside all that the metric marked.

    Only recall can be read from them where a metric names no categories; where it does, what it
    marked counts under its own category.
    """
    names = {s.category for spans in human for s in spans if s.category}
    names_it = any(s.category for spans in metric for s in spans)

    def only(sets: Sequence[Spans], category: str) -> list[list[Span]]:
        return [[s for s in spans if s.category == category] for spans in sets]

    return {
        name: count(only(human, name), only(metric, name) if names_it else metric, lengths)
        for name in sorted(names)
    }


def split_raters(markings: Markings) -> list[tuple[Span, ...]]:
    """What each rater marked; those who marked nothing stand for an empty tuple each.

    >>> marked = Markings((Span(0, 1, rater="a"), Span(2, 3, rater="b")), raters=3)
    >>> [len(spans) for spans in split_raters(marked)]
    [1, 1, 0]
    """
    own: dict[str, list[Span]] = {}
    for span in markings.spans:
        own.setdefault(span.rater, []).append(span)
    silent = max(0, markings.raters - len(own))
    return [*(tuple(spans) for spans in own.values()), *[()] * silent]


def is_graded(human: Iterable[Spans]) -> bool:
    """Whether people said how grave errors are; tags of words do not."""
    marked = [span.severity for spans in human for span in spans]
    return not marked or any(severity != "bad" for severity in marked)


def _usable(spans: Spans, graded: bool, side: Side = "hypothesis") -> list[Span]:
    """Errors of the translation that count; neutral remarks never do."""
    own = [s for s in spans if s.side == side and s.severity != "neutral"]
    return [s for s in own if s.severity in GRADES] if graded else own


def _layers(sets: Sequence[Spans], lengths: Sequence[int], graded: bool) -> FloatArray:
    """How many errors of each grade meet at each code point of all texts, (grades, code points)."""
    if len(sets) != len(lengths):
        raise LengthError(f"{len(sets)} marked translations, but {len(lengths)} texts")
    starts = np.concatenate([[0], np.cumsum(lengths)]).astype(int)
    steps = np.zeros((2 if graded else 1, starts[-1] + 1))
    for spans, start in zip(sets, starts, strict=False):
        for span in _usable(spans, graded):
            layer = GRADES[span.severity] if graded else 0
            steps[layer, start + span.start] += 1
            steps[layer, start + span.end] -= 1
    return np.cumsum(steps, axis=1)[:, :-1]


def _rows(
    credit: FloatArray, gold: FloatArray, found: FloatArray, lengths: Sequence[int]
) -> FloatArray:
    """Sums over each text's code points; an empty text has none."""
    every = np.stack([credit, gold, found], axis=1).astype(float)  # (code points, 3)
    sums = np.concatenate([np.zeros((1, 3)), np.cumsum(every, axis=0)])
    ends = np.cumsum(lengths).astype(int)
    starts = ends - np.asarray(lengths, dtype=int)
    rows: FloatArray = sums[ends] - sums[starts]
    return rows


def _figures(rows: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Precision, recall and F1 of rows (..., 3), each (...)."""
    credit, gold, found = (rows[..., n] for n in range(3))
    precision = np.where(found > 0, divide(credit, found), 1.0)
    recall = np.where(gold > 0, divide(credit, gold), 1.0)
    total = precision + recall
    f1 = np.where(total > 0, divide(2 * precision * recall, total), 0.0)
    return precision, recall, f1


def _best_pairing(gold: Spans, found: Spans, graded: bool) -> float:
    if not gold or not found:
        return 0.0
    from scipy.optimize import linear_sum_assignment

    credit = np.array([[_credit(a, b, graded) for b in found] for a in gold])
    pairs = linear_sum_assignment(credit, maximize=True)
    return float(credit[pairs].sum())


def _credit(a: Span, b: Span, graded: bool) -> float:
    """Overlap by union, halved where severities differ."""
    overlap = max(0, min(a.end, b.end) - max(a.start, b.start))
    union = len(a) + len(b) - overlap
    same = not graded or GRADES[a.severity] == GRADES[b.severity]
    return overlap / union * (1.0 if same else HALF)
