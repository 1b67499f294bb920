"""Thresholds with a guaranteed precision, from judged rows (conformal risk control).

A threshold is accepted if the precision of the rows beyond it is shown to reach a target: the lower
Clopper-Pearson bound of the share of right rows is at least the target. Many thresholds are tried,
so they are tested in a fixed order (Angelopoulos et al. 2021, "Learn then Test"): from strict to
lenient, up to the first that fails, from `STARTS` places that share the error probability. The
chance that the precision of the chosen threshold is below the target is at most `alpha`, for
independent rows drawn like those of the fit. Rows of one document or source are alike, so counts
are divided by the design effect (Korn and Graubard 1998).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

import numpy as np

from tertium.core.arrays import BoolArray, FloatArray
from tertium.core.fields import NON_NEGATIVE, Rule

STARTS = (0.1, 0.3)  # shares of the rows at which tests start
STEP = 0.02  # share of the rows from one tested threshold to the next
DRIFT_LEVEL, MIN_DRIFT = 0.01, 0.1  # p-value and distance from which a change is reported
MAX_STORED_SCORES = 501

Share = Annotated[float, Rule(lambda value: 0 <= value <= 1, "a number from 0 to 1")]


@dataclass(frozen=True, kw_only=True)
class Threshold:
    """A threshold on oriented scores, and the judged rows at or above it.

    `low` is the lower bound of `precision` that was tested, `high` an upper bound of the same kind,
    `share` the share of all judged rows, `effective_rows` their number after the design effect.
    """

    score: float
    rows: Annotated[int, NON_NEGATIVE]
    effective_rows: Annotated[float, NON_NEGATIVE]
    share: Share
    precision: Share
    low: Share
    high: Share


def precision_bounds(
    right: FloatArray, rows: FloatArray, alpha: float
) -> tuple[FloatArray, FloatArray]:
    """Return one-sided Clopper-Pearson bounds of shares, each wrong with probability `alpha`.

    >>> low, high = precision_bounds(np.array([59.0]), np.array([59.0]), 0.05)
    >>> low.round(3).tolist(), high.tolist()
    ([0.95], [1.0])
    """
    from scipy.special import betaincinv

    wrong = rows - right
    low = np.where(right > 0, betaincinv(np.maximum(right, 1e-9), wrong + 1, alpha), 0.0)
    high = np.where(wrong > 0, betaincinv(right + 1, np.maximum(wrong, 1e-9), 1 - alpha), 1.0)
    return low, high


def min_rows(target: float, alpha: float) -> int:
    """Return how many rows without a wrong one show that the target is reached.

    >>> min_rows(0.95, 0.05)
    59
    """
    return math.ceil(math.log(alpha) / math.log(target))


def intraclass_correlation(labels: BoolArray, clusters: Sequence[str]) -> float:
    """Estimate how alike labels of one cluster are, 0 to 1, by analysis of variance.

    >>> intraclass_correlation(np.array([True, True, False, False]), ["a", "a", "b", "b"])
    1.0
    """
    _, index, sizes = np.unique(np.asarray(clusters), return_inverse=True, return_counts=True)
    count, groups = len(labels), len(sizes)
    if groups < 2 or groups == count:
        return 0.0
    means = np.bincount(index, labels) / sizes
    between = float(sizes @ (means - labels.mean()) ** 2) / (groups - 1)
    within = float(((labels - means[index]) ** 2).sum()) / (count - groups)
    mean_size = (count - float(sizes @ sizes) / count) / (groups - 1)
    total = between + (mean_size - 1) * within
    return min(1.0, max(0.0, (between - within) / total)) if total > 0 else 0.0


def find_threshold(
    scores: FloatArray,
    labels: BoolArray,
    clusters: Sequence[str],
    target: float,
    alpha: float,
    *,
    sign: int = 1,
    above: float = -math.inf,
) -> tuple[Threshold | None, Threshold | None]:
    """Find the lowest score such that rows at or above it are right with the target precision.

    `scores` (n,), times `sign`, are higher for rows that are more probably right. Only thresholds
    for which this product is `above` a value are tried. Also returns the threshold with the highest
    lower bound, which tells how far the target is if no threshold reaches it.
    """
    order = np.argsort(-sign * scores, kind="stable")
    scores, labels = scores[order], labels[order]
    count = len(scores)
    rows = np.arange(1, count + 1)
    effects = _design_effects(labels, [clusters[n] for n in order])
    right = np.cumsum(labels)
    level = alpha / len(STARTS)
    low, high = precision_bounds(right / effects, rows / effects, level)
    ends = np.flatnonzero(np.append(np.diff(scores) != 0, True))  # the last row of each score
    ends = ends[sign * scores[ends] > above]
    tested: list[int] = []
    passed: list[int] = []
    for start in STARTS:
        first = max(min_rows(target, level), start * count)
        steps = np.arange(first, count + 1, max(1.0, STEP * count))
        places = np.searchsorted(rows[ends], steps)
        sequence = ends[np.unique(places[places < len(ends)])].tolist()
        failures = (n for n, row in enumerate(sequence) if low[row] < target)
        stop = next(failures, len(sequence))
        tested += sequence[: stop + 1]
        passed += sequence[:stop]

    def measure(row: int | None) -> Threshold | None:
        if row is None:
            return None
        return Threshold(
            score=float(scores[row]),
            rows=row + 1,
            effective_rows=round(float((row + 1) / effects[row]), 1),
            share=(row + 1) / count,
            precision=float(right[row] / (row + 1)),
            low=float(low[row]),
            high=float(high[row]),
        )

    best = max(sorted(tested), key=lambda row: low[row], default=None)
    return measure(max(passed, default=None)), measure(best)


def _design_effects(labels: BoolArray, clusters: Sequence[str]) -> FloatArray:
    """Return, for the first 1, 2, ... n rows, by how much clusters shrink their number, (n,).

    effect = 1 + (sum of squared cluster sizes / rows - 1) correlation
    """
    sizes: Counter[str] = Counter()
    growth = np.empty(len(clusters))
    for n, cluster in enumerate(clusters):
        growth[n] = 2 * sizes[cluster] + 1  # of the sum of squared sizes
        sizes[cluster] += 1
    mean_sizes = np.cumsum(growth) / np.arange(1, len(clusters) + 1)
    return 1 + (mean_sizes - 1) * intraclass_correlation(labels, clusters)


def stored_quantiles(scores: FloatArray) -> tuple[float, ...]:
    """Return sorted scores, at most `MAX_STORED_SCORES` evenly spaced quantiles of them."""
    count = len(scores)
    places = np.linspace(0, count - 1, min(count, MAX_STORED_SCORES)).round().astype(int)
    return tuple(np.sort(scores)[places].tolist())


@dataclass(frozen=True, kw_only=True)
class Drift:
    """The Kolmogorov-Smirnov distance of two samples of scores, and its p-value."""

    distance: float
    p_value: float

    @property
    def is_large(self) -> bool:
        """Whether the scores differ significantly and by more than a trifle."""
        return self.p_value < DRIFT_LEVEL and self.distance >= MIN_DRIFT


def measure_drift(calibration_scores: Sequence[float], scores: FloatArray) -> Drift:
    """Compare scores with those of a fit, or with quantiles of them.

    >>> measure_drift([0.1, 0.2, 0.3, 0.4], np.array([0.5, 0.6, 0.7])).distance
    1.0
    """
    from scipy.stats import ks_2samp

    test = ks_2samp(calibration_scores, scores, method="asymp")
    return Drift(distance=float(test.statistic), p_value=float(test.pvalue))
