"""What a metric is good for when something has to be decided: accept, choose, or ask a person.

accept    is this translation good enough? precision and recall over thresholds
choose    which output of a segment is best? reranking
ask       where does the metric know that it does not know? calibration and risk-coverage
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from tertium.arrays import FloatArray, IntArray, divide
from tertium.errors import DataError, LengthError
from tertium.meta.agreement import finite


@dataclass(frozen=True, eq=False)
class AcceptanceCurve:
    """Precision and recall of "good enough" at each threshold of a metric, the highest first.

    Accepted is what scores the threshold or more; good is what people gave `bar` or more.
    """

    bar: float
    thresholds: FloatArray
    precision: FloatArray
    recall: FloatArray
    judged: int
    good: int

    @property
    def average_precision(self) -> float:
        """Precision averaged over steps of recall; that of a coin is good / judged."""
        return float(np.diff(self.recall, prepend=0.0) @ self.precision)

    @property
    def best(self) -> int:
        """Where F1, the harmonic mean of precision and recall, is highest."""
        return int(np.argmax(self.f1))

    @property
    def f1(self) -> FloatArray:
        both = self.precision + self.recall
        return np.nan_to_num(divide(2 * self.precision * self.recall, both))

    def precision_at(self, recall: float) -> float:
        """Precision at the highest threshold that accepts such a share of what is good."""
        return float(self.precision[np.argmax(self.recall >= recall - 1e-12)])


def acceptance_curve(human: ArrayLike, metric: ArrayLike, bar: float) -> AcceptanceCurve:
    """How well thresholds of a metric find translations that people gave `bar` or more.

    >>> curve = acceptance_curve([90, 80, 40, 30], [0.9, 0.5, 0.6, 0.1], bar=70)
    >>> curve.thresholds.tolist(), curve.precision.round(2).tolist(), curve.recall.tolist()
    ([0.9, 0.6, 0.5, 0.1], [1.0, 0.5, 0.67, 0.5], [0.5, 0.5, 1.0, 1.0])
    """
    people, scores = _common_values(human, metric)
    good = people >= bar
    if not good.any() or good.all():
        what = "all" if good.all() else "none"
        raise DataError(
            f"{what} of {len(people)} judged translations reach {bar:g} (people gave "
            f"{people.min():g} to {people.max():g}): choose another bar for good enough"
        )
    order = np.argsort(-scores, kind="stable")
    ends = np.flatnonzero(np.append(np.diff(scores[order]) != 0, True))
    found = np.cumsum(good[order])[ends]
    return AcceptanceCurve(
        bar=bar,
        thresholds=scores[order][ends],
        precision=found / (ends + 1.0),
        recall=found / good.sum(),
        judged=len(people),
        good=int(good.sum()),
    )


@dataclass(frozen=True)
class Reranking:
    """What comes of taking each segment's best output by a metric.

    `accuracy` is the share of segments whose chosen output people put first (with others or alone),
    `gain` how much of the way from a random to the best choice it goes, in human scores.
    """

    segments: int
    accuracy: float
    chance: float
    chosen: float
    random: float
    best: float

    @property
    def gain(self) -> float:
        """1 where the metric always chooses the best, 0 where it chooses as if at random."""
        reach = self.best - self.random
        return (self.chosen - self.random) / reach if reach > 0 else np.nan


def rerank_outputs(human: ArrayLike, metric: ArrayLike) -> Reranking:
    """Choose the output of each segment that the metric scores best; ties are drawn by lot.

    Matrices are (systems, segments); a segment with one scored output leaves nothing to choose, and
    where all are such, figures are NaN. A tie counts with its expectation.

    >>> rerank_outputs([[3, 1, 5], [2, 4, 5]], [[0.9, 0.8, 0.1], [0.1, 0.2, 0.1]])
    Reranking(segments=3, accuracy=0.6666666666666666, chance=0.6666666666666666, chosen=3.0...
    """
    people, scores = finite(human, "human scores"), finite(metric, "metric scores")
    if people.shape != scores.shape or people.ndim != 2:
        raise LengthError(
            f"reranking needs matrices of one shape, not {people.shape}, {scores.shape}"
        )
    known = ~np.isnan(people) & ~np.isnan(scores)
    used = known.sum(axis=0) > 1
    if not used.any():
        return Reranking(0, *[np.nan] * 5)
    known, people = known[:, used], np.where(known, people, -np.inf)[:, used]
    scores = np.where(known, scores[:, used], -np.inf)
    first, top = people == people.max(axis=0), scores == scores.max(axis=0)
    values = np.where(known, people, 0.0)
    return Reranking(
        segments=int(used.sum()),
        accuracy=float(((first & top).sum(axis=0) / top.sum(axis=0)).mean()),
        chance=float((first.sum(axis=0) / known.sum(axis=0)).mean()),
        chosen=float(((values * top).sum(axis=0) / top.sum(axis=0)).mean()),
        random=float((values.sum(axis=0) / known.sum(axis=0)).mean()),
        best=float(people.max(axis=0).mean()),
    )


@dataclass(frozen=True, eq=False)
class RiskCurve:
    """The mean error of what is kept, as the most uncertain translations go to a person.

    `area` under it is low where uncertainty foretells errors; `ideal` is that of knowing the
    errors, `flat` the mean error, that of an uncertainty that says nothing.
    """

    coverage: FloatArray
    risk: FloatArray
    ideal: float

    @property
    def area(self) -> float:
        return float(self.risk.mean())

    @property
    def flat(self) -> float:
        return float(self.risk[-1])

    @property
    def skill(self) -> float:
        """1 where the area is ideal, 0 where uncertainty says nothing, below where it misleads."""
        reach = self.flat - self.ideal
        return (self.flat - self.area) / reach if reach > 0 else np.nan


def risk_coverage(errors: ArrayLike, uncertainty: ArrayLike) -> RiskCurve:
    """Keep the most certain first; of equal uncertainty all have the mean error of their group.

    >>> curve = risk_coverage([0.0, 1.0, 2.0], [0.1, 0.2, 0.3])
    >>> curve.risk.tolist(), curve.skill
    ([0.0, 0.5, 1.0], 1.0)
    """
    sizes, doubts = _common_values(np.abs(finite(errors, "errors")), uncertainty)
    _, group = np.unique(doubts, return_inverse=True)
    shared = (np.bincount(group, sizes) / np.bincount(group))[group]
    kept = np.arange(1, len(sizes) + 1)
    risk = np.cumsum(shared[np.argsort(doubts, kind="stable")]) / kept
    ideal = float((np.cumsum(np.sort(sizes)) / kept).mean())
    return RiskCurve(kept / len(sizes), risk, ideal)


@dataclass(frozen=True, eq=False)
class ErrorCalibration:
    """Errors that a metric expects beside those it makes, from the most certain tenth on.

    `expected` and `observed` are root mean squares, `counts` the translations of each bin.
    """

    expected: FloatArray
    observed: FloatArray
    counts: IntArray

    @property
    def gap(self) -> float:
        """The mean distance of expected and observed errors, bins by their size."""
        return float(np.average(np.abs(self.expected - self.observed), weights=self.counts))


def calibrate_errors(
    errors: ArrayLike, uncertainty: ArrayLike, *, bins: int = 10
) -> ErrorCalibration:
    """Compare the standard deviations that a metric tells with the errors it makes.

    >>> calibration = calibrate_errors([1.0, -1.0, 3.0, -3.0], [1.0, 1.0, 2.0, 2.0], bins=2)
    >>> calibration.expected.tolist(), calibration.observed.tolist(), calibration.gap
    ([1.0, 2.0], [1.0, 3.0], 0.5)
    """
    made, told = _common_values(errors, uncertainty)
    parts = [p for p in np.array_split(np.argsort(told, kind="stable"), bins) if len(p)]
    return ErrorCalibration(
        expected=np.array([np.sqrt((told[p] ** 2).mean()) for p in parts]),
        observed=np.array([np.sqrt((made[p] ** 2).mean()) for p in parts]),
        counts=np.array([len(p) for p in parts]),
    )


def residuals(human: ArrayLike, metric: ArrayLike) -> tuple[FloatArray, float]:
    """Errors of a metric in human units by the best straight line, NaN where unknown; its slope.

    A deviation on the metric's scale, times the slope, is one in human units.
    """
    people, scores = finite(human, "human scores"), finite(metric, "metric scores")
    known = ~np.isnan(people) & ~np.isnan(scores)
    if known.sum() < 2 or np.ptp(scores[known]) == 0:
        raise DataError("errors need two translations that the metric scores differently")
    slope, shift = np.polyfit(scores[known], people[known], 1)
    return np.where(known, people - slope * scores - shift, np.nan), float(slope)


def decide(curve: AcceptanceCurve, choice: Reranking) -> Mapping[str, float]:
    """The figures of a table: what accepting and choosing by one metric come to."""
    return {
        "good": curve.good / curve.judged,
        "average_precision": curve.average_precision,
        "threshold": float(curve.thresholds[curve.best]),
        "precision": float(curve.precision[curve.best]),
        "recall": float(curve.recall[curve.best]),
        "precision_at_90": curve.precision_at(0.9),
        "reranking": choice.accuracy,
        "reranking_chance": choice.chance,
        "gain": choice.gain,
    }


def _common_values(first: ArrayLike, second: ArrayLike) -> tuple[FloatArray, FloatArray]:
    """Both as vectors, where both have a value."""
    a, b = finite(first, "human scores").ravel(), finite(second, "metric scores").ravel()
    if a.shape != b.shape:
        raise LengthError(f"{len(a)} values on one side, {len(b)} on the other")
    known = ~np.isnan(a) & ~np.isnan(b)
    if not known.any():
        raise DataError("there is no translation that both people and the metric scored")
    return a[known], b[known]
