"""How well metrics support decisions: accept a translation, choose an output, defer to a human.

accept    is this translation good enough? precision and recall over thresholds
choose    which output of a segment is best? reranking
defer     does the metric's uncertainty predict its errors? risk-coverage
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from tertium.core.arrays import FloatArray, IntArray, divide
from tertium.core.errors import DataError, LengthError
from tertium.meta.agreement import to_float_array


@dataclass(frozen=True, eq=False)
class AcceptanceCurve:
    """Precision and recall of accepting translations at each threshold of a metric, highest first.

    A translation is good if its human score reaches `min_good_score`.
    """

    min_good_score: float
    thresholds: FloatArray
    precision: FloatArray
    recall: FloatArray
    judged_count: int
    good: int

    @property
    def average_precision(self) -> float:
        """Precision averaged over steps of recall; random scores reach good / judged."""
        return float(np.diff(self.recall, prepend=0.0) @ self.precision)

    @property
    def best(self) -> int:
        """The index with the highest F1."""
        return int(np.argmax(self.f1))

    @property
    def f1(self) -> FloatArray:
        both = self.precision + self.recall
        return np.nan_to_num(divide(2 * self.precision * self.recall, both))

    def precision_at(self, recall: float) -> float:
        """Return the precision at the highest threshold that reaches this recall."""
        return float(self.precision[np.argmax(self.recall >= recall - 1e-12)])


def acceptance_curve(human: ArrayLike, metric: ArrayLike, min_good_score: float) -> AcceptanceCurve:
    """Measure how well a metric finds translations with a human score of at least `min_good_score`.

    >>> curve = acceptance_curve([90, 80, 40, 30], [0.9, 0.5, 0.6, 0.1], min_good_score=70)
    >>> curve.thresholds.tolist(), curve.precision.round(2).tolist(), curve.recall.tolist()
    ([0.9, 0.6, 0.5, 0.1], [1.0, 0.5, 0.67, 0.5], [0.5, 0.5, 1.0, 1.0])
    """
    human_scores, scores = _common_values(human, metric)
    good = human_scores >= min_good_score
    if not good.any() or good.all():
        share = "all" if good.all() else "none"
        raise DataError(
            f"{share} of {len(human_scores)} judged translations reach {min_good_score:g} (human "
            f"scores are {human_scores.min():g} to {human_scores.max():g}): choose another minimum"
        )
    order = np.argsort(-scores, kind="stable")
    ends = np.flatnonzero(np.append(np.diff(scores[order]) != 0, True))
    good_accepted = np.cumsum(good[order])[ends]
    return AcceptanceCurve(
        min_good_score=min_good_score,
        thresholds=scores[order][ends],
        precision=good_accepted / (ends + 1.0),
        recall=good_accepted / good.sum(),
        judged_count=len(human_scores),
        good=int(good.sum()),
    )


@dataclass(frozen=True)
class Reranking:
    """Result of choosing each segment's best output by a metric.

    `accuracy` is the share of segments whose chosen output has the best human score; `chance` is
    that of a random choice. `chosen`, `random` and `best` are mean human scores.
    """

    segments: int
    accuracy: float
    chance: float
    chosen: float
    random: float
    best: float

    @property
    def gain(self) -> float:
        """Share of the possible improvement over a random choice: 1 if always best, 0 if random."""
        reach = self.best - self.random
        return (self.chosen - self.random) / reach if reach > 0 else np.nan


def rerank_outputs(human: ArrayLike, metric: ArrayLike) -> Reranking:
    """Choose the output of each segment that the metric scores best; ties count by expectation.

    Matrices are (systems, segments). Segments with fewer than two scored outputs are left out; if
    none remain, all values are NaN.

    >>> rerank_outputs([[3, 1, 5], [2, 4, 5]], [[0.9, 0.8, 0.1], [0.1, 0.2, 0.1]])
    Reranking(segments=3, accuracy=0.6666666666666666, chance=0.6666666666666666, chosen=3.0...
    """
    human_scores = to_float_array(human, "human scores")
    scores = to_float_array(metric, "metric scores")
    if human_scores.shape != scores.shape or human_scores.ndim != 2:
        raise LengthError(
            f"reranking needs two matrices of one shape, got {human_scores.shape}, {scores.shape}"
        )
    is_known = ~np.isnan(human_scores) & ~np.isnan(scores)
    used = is_known.sum(axis=0) > 1
    if not used.any():
        return Reranking(0, *[np.nan] * 5)
    is_known, human_scores = is_known[:, used], np.where(is_known, human_scores, -np.inf)[:, used]
    scores = np.where(is_known, scores[:, used], -np.inf)
    first, top = human_scores == human_scores.max(axis=0), scores == scores.max(axis=0)
    values = np.where(is_known, human_scores, 0.0)
    return Reranking(
        segments=int(used.sum()),
        accuracy=float(((first & top).sum(axis=0) / top.sum(axis=0)).mean()),
        chance=float((first.sum(axis=0) / is_known.sum(axis=0)).mean()),
        chosen=float(((values * top).sum(axis=0) / top.sum(axis=0)).mean()),
        random=float((values.sum(axis=0) / is_known.sum(axis=0)).mean()),
        best=float(human_scores.max(axis=0).mean()),
    )


@dataclass(frozen=True, eq=False)
class RiskCurve:
    """Mean error of the kept translations as the most uncertain ones are deferred to a human.

    `area` is low if uncertainty predicts errors. `ideal` is the area if the errors were known,
    `flat` the mean error, which an uninformative uncertainty reaches.
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
        """1 if the area is ideal, 0 if uncertainty is uninformative, negative if it misleads."""
        reach = self.flat - self.ideal
        return (self.flat - self.area) / reach if reach > 0 else np.nan


def risk_coverage(errors: ArrayLike, uncertainty: ArrayLike) -> RiskCurve:
    """Compute the risk-coverage curve; equal uncertainties share their mean error.

    >>> curve = risk_coverage([0.0, 1.0, 2.0], [0.1, 0.2, 0.3])
    >>> curve.risk.tolist(), curve.skill
    ([0.0, 0.5, 1.0], 1.0)
    """
    sizes, uncertainties = _common_values(np.abs(to_float_array(errors, "errors")), uncertainty)
    _, group = np.unique(uncertainties, return_inverse=True)
    shared = (np.bincount(group, sizes) / np.bincount(group))[group]
    kept_counts = np.arange(1, len(sizes) + 1)
    risk = np.cumsum(shared[np.argsort(uncertainties, kind="stable")]) / kept_counts
    ideal = float((np.cumsum(np.sort(sizes)) / kept_counts).mean())
    return RiskCurve(kept_counts / len(sizes), risk, ideal)


def residuals(human: ArrayLike, metric: ArrayLike) -> FloatArray:
    """Return the errors of a metric in human units by the best linear fit, or NaN."""
    human_scores = to_float_array(human, "human scores")
    scores = to_float_array(metric, "metric scores")
    is_known = ~np.isnan(human_scores) & ~np.isnan(scores)
    if is_known.sum() < 2 or np.ptp(scores[is_known]) == 0:
        raise DataError("residuals need two translations with different metric scores")
    slope, shift = np.polyfit(scores[is_known], human_scores[is_known], 1)
    return np.where(is_known, human_scores - slope * scores - shift, np.nan)


def summarize_decisions(curve: AcceptanceCurve, choice: Reranking) -> Mapping[str, float]:
    """Return the table values of accepting and choosing by one metric."""
    return {
        "good": curve.good / curve.judged_count,
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
    a = to_float_array(first, "human scores").ravel()
    b = to_float_array(second, "metric scores").ravel()
    if a.shape != b.shape:
        raise LengthError(f"{len(a)} human values, but {len(b)} metric values")
    is_known = ~np.isnan(a) & ~np.isnan(b)
    if not is_known.any():
        raise DataError("no translation has both a human and a metric score")
    return a[is_known], b[is_known]
