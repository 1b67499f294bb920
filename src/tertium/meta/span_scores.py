"""Agreement of marked error spans with human annotations, by characters and by spans.

Each translation gives a row (credit, human, metric) that can be summed. Precision is credit /
metric, recall is credit / human, F1 their harmonic mean, 2 credit / (human + metric). Micro values
come from summed rows; macro values are means over rows. The precision of a metric that marks
nothing and the recall of no errors are undefined (NaN), and left out of macro means. If neither
side marks anything, F1 is 1: both agree that there is no error, as in the shared tasks.

Characters (WMT25 error span task): at each character, errors on both sides are matched. The same
severity earns 1, another severity 1/2. Critical counts as major. As in that task, errors of unknown
severity are left out, unless there are no human severities at all, as in word tags: then only
positions are compared. WMT23 ignored how often a character is marked, and gave full credit for
either of two severities.

Spans (partial credit): spans are paired one to one to maximize the sum of intersection over union,
halved if severities differ.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from tertium.core.arrays import FloatArray, divide
from tertium.core.spans import ErrorAnnotations, Span

WRONG_SEVERITY_CREDIT = 0.5
SEVERITY_GRADES = {"minor": 0, "major": 1, "critical": 1}

Spans = Sequence[Span]
Count = Callable[[Sequence[Spans], Sequence[Spans], Sequence[int]], FloatArray]


@dataclass(frozen=True)
class PrecisionRecall:
    """Precision, recall and F1; NaN if undefined."""

    precision: float
    recall: float
    f1: float


def count_characters(
    human: Sequence[Spans], metric: Sequence[Spans], lengths: Sequence[int]
) -> FloatArray:
    """Count characters as in WMT25; one row per translation, (n, 3).

    >>> human, metric = [[Span(0, 4, severity="major")]], [[Span(2, 6, severity="minor")]]
    >>> count_characters(human, metric, [9])  # two characters, half credit each
    array([[1., 4., 4.]])
    """
    has_grades = has_severities(human)
    gold, marked = (_count_per_character(spans, lengths, has_grades) for spans in (human, metric))
    full = np.minimum(gold, marked)
    rest = np.minimum((gold - full).sum(0), (marked - full).sum(0))
    credit = full.sum(0) + WRONG_SEVERITY_CREDIT * rest
    return _rows(credit, gold.sum(0), marked.sum(0), lengths)


def count_characters_once(
    human: Sequence[Spans], metric: Sequence[Spans], lengths: Sequence[int]
) -> FloatArray:
    """Count characters as in WMT23, where a character is marked or not, (n, 3)."""
    has_grades = has_severities(human)
    gold, marked = (_count_per_character(own, lengths, has_grades) > 0 for own in (human, metric))
    human_any, metric_any = (np.asarray(marks.any(0), dtype=np.float64) for marks in (gold, marked))
    credit = np.where((gold & marked).any(0), 1.0, WRONG_SEVERITY_CREDIT * human_any * metric_any)
    return _rows(credit, human_any, metric_any, lengths)


def match_spans(
    human: Sequence[Spans], metric: Sequence[Spans], lengths: Sequence[int]
) -> FloatArray:
    """Pair spans one to one with partial credit; one row per translation, (n, 3)."""
    from scipy.optimize import linear_sum_assignment

    has_grades = has_severities(human)
    rows = np.zeros((len(lengths), 3))
    for n, (human_spans, marked) in enumerate(zip(human, metric, strict=True)):
        gold = _countable_spans(human_spans, has_grades)
        predicted = _countable_spans(marked, has_grades)
        credit = np.zeros((len(gold), len(predicted)))
        for i, j in np.ndindex(credit.shape):
            credit[i, j] = _credit(gold[i], predicted[j], has_grades)
        pairs = linear_sum_assignment(credit, maximize=True)
        rows[n] = credit[pairs].sum(), len(gold), len(predicted)
    return rows


COUNTING_METHODS: dict[str, Count] = {
    "characters": count_characters,
    "characters-once": count_characters_once,
    "spans": match_spans,
}


def micro(rows: FloatArray) -> PrecisionRecall:
    """Compute precision, recall and F1 of the summed rows."""
    values = _precision_recall_f1(rows.sum(axis=0))
    return PrecisionRecall(*map(float, values))


def macro(rows: FloatArray) -> PrecisionRecall:
    """Average the precision, recall and F1 of the translations."""
    defined = [value[~np.isnan(value)] for value in _precision_recall_f1(rows)]
    return PrecisionRecall(*(float(v.mean()) if len(v) else math.nan for v in defined))


def f1_from_totals(totals: FloatArray) -> FloatArray:
    """Compute F1 from sums of rows, (..., 3) -> (...)."""
    return _precision_recall_f1(totals)[2]


def count_by_severity(
    human: Sequence[Spans], metric: Sequence[Spans], lengths: Sequence[int]
) -> dict[str, FloatArray]:
    """Count the characters of each severity separately; a wrong severity earns nothing."""
    rows = {}
    for name, severities in (("minor", {"minor"}), ("major", {"major", "critical"})):
        gold = _select(human, "severity", severities)
        if any(gold):
            rows[name] = count_characters(gold, _select(metric, "severity", severities), lengths)
    return rows


def count_by_category(
    human: Sequence[Spans], metric: Sequence[Spans], lengths: Sequence[int]
) -> dict[str, FloatArray]:
    """Count the characters of each human category; if the metric has none, only recall matters."""
    names = {span.category for spans in human for span in spans} - {""}
    has_categories = any(span.category for spans in metric for span in spans)
    rows = {}
    for name in sorted(names):
        marked = _select(metric, "category", {name}) if has_categories else metric
        rows[name] = count_characters(_select(human, "category", {name}), marked, lengths)
    return rows


def _select(sets: Sequence[Spans], field: str, values: Collection[str]) -> list[list[Span]]:
    """Return the spans whose field, such as the category, has one of the values."""
    return [[span for span in spans if getattr(span, field) in values] for spans in sets]


def split_by_rater(error_annotations: ErrorAnnotations) -> list[tuple[Span, ...]]:
    """Return the spans of each rater; raters without errors get an empty tuple.

    >>> annotations = ErrorAnnotations((Span(0, 1, rater="a"), Span(2, 3, rater="b")), raters=3)
    >>> [len(spans) for spans in split_by_rater(annotations)]
    [1, 1, 0]
    """
    by_rater: dict[str, tuple[Span, ...]] = {}
    for span in error_annotations.spans:
        by_rater[span.rater] = (*by_rater.get(span.rater, ()), span)
    return [*by_rater.values(), *[()] * (error_annotations.raters - len(by_rater))]


def has_severities(human: Iterable[Spans]) -> bool:
    """Return whether the human annotations have severities; word tags have none."""
    severities = {span.severity for spans in human for span in spans}
    return severities != {"bad"}


def _countable_spans(spans: Spans, has_grades: bool) -> list[Span]:
    """Return the errors of the translation that count; neutral remarks never do."""
    own = [s for s in spans if s.side == "hypothesis" and s.severity != "neutral"]
    return [s for s in own if s.severity in SEVERITY_GRADES] if has_grades else own


def _count_per_character(
    sets: Sequence[Spans], lengths: Sequence[int], has_grades: bool
) -> FloatArray:
    """Return the number of errors at each character of all texts, (grades, characters)."""
    starts = np.concatenate([[0], np.cumsum(lengths)]).astype(int)
    steps = np.zeros((2 if has_grades else 1, starts[-1] + 1))
    for spans, start in zip(sets, starts, strict=False):
        for span in _countable_spans(spans, has_grades):
            layer = SEVERITY_GRADES[span.severity] if has_grades else 0
            steps[layer, start + span.start] += 1
            steps[layer, start + span.end] -= 1
    return np.cumsum(steps, axis=1)[:, :-1]


def _rows(
    credit: FloatArray, gold: FloatArray, marked: FloatArray, lengths: Sequence[int]
) -> FloatArray:
    """Sum over the characters of each text; an empty text has none."""
    every = np.stack([credit, gold, marked], axis=1).astype(float)  # (characters, 3)
    sums = np.concatenate([np.zeros((1, 3)), np.cumsum(every, axis=0)])
    ends = np.cumsum(lengths).astype(int)
    starts = ends - np.asarray(lengths, dtype=int)
    rows: FloatArray = sums[ends] - sums[starts]
    return rows


def _precision_recall_f1(rows: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    credit, gold, marked = (rows[..., n] for n in range(3))
    f1 = np.where(gold + marked > 0, divide(2 * credit, gold + marked), 1.0)
    return divide(credit, marked), divide(credit, gold), f1


def _credit(a: Span, b: Span, has_grades: bool) -> float:
    """Return intersection over union, halved if severities differ."""
    overlap = max(0, min(a.end, b.end) - max(a.start, b.start))
    union = len(a) + len(b) - overlap
    same = not has_grades or SEVERITY_GRADES[a.severity] == SEVERITY_GRADES[b.severity]
    return overlap / union * (1.0 if same else WRONG_SEVERITY_CREDIT)
