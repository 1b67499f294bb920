"""Input layout and result types shared by all agreement statistics.

Human scores are (systems, segments) or a vector, NaN where a translation was not judged. Metric
scores have the same shape after any leading axes, so one call evaluates many metrics. Cells without
a value on either side are dropped and counted. A constant vector has no correlation (NaN); it is
dropped from averages over groups and counted.

`grouping` is independent of the statistic:

    none      all cells form one vector
    item      one vector per segment (its systems); the statistic is averaged over segments
    system    one vector per system (its segments); the statistic is averaged over systems

A `Replicate` computes a statistic from weights (resamples, units), as the bootstrap needs it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from tertium.core.arrays import MAX_ABS_SCORE, BoolArray, FloatArray, IntArray, divide, nan_mean
from tertium.core.errors import DataError, LengthError, UnknownNameError, UsageError
from tertium.core.fields import choices

Grouping = Literal["none", "item", "system"]
Replicate = Callable[[FloatArray], FloatArray]  # weights (resamples, units) to (resamples, metrics)
TestFunction = Callable[..., FloatArray]  # (resamples, rng) to p-values (metrics, metrics)


@dataclass(frozen=True, eq=False, kw_only=True)
class Agreement:
    """Agreement of metrics with human scores, and how much data it is based on.

    `value` has the leading axes of the metrics and is NaN where the statistic is undefined (fewer
    than two points, a constant vector). `judged_count` is the number of human judgments (cells, or
    comparisons for pairwise statistics), `used` the number with a metric score. Of `groups` judged
    vectors, `undefined` have no value and are not in the average. `epsilon` is the largest
    metric difference that counts as a tie, for statistics that choose one.
    """

    value: FloatArray
    judged_count: int
    used: IntArray
    groups: int = 1
    undefined: IntArray
    epsilon: FloatArray | None = None

    @property
    def excluded_counts(self) -> IntArray:
        """Judgments without a metric score, (...)."""
        return self.judged_count - self.used

    def __float__(self) -> float:
        if self.value.size != 1:
            raise UsageError(f"float() needs one metric, got {self.value.size}: use .value")
        return float(self.value.reshape(-1)[0])


class Layout(NamedTuple):
    """Scores as groups of points: human (groups, points), metrics (metrics, groups, points)."""

    human: FloatArray
    metrics: FloatArray
    shape: tuple[int, ...]  # the leading axes of the metrics in the input

    @property
    def present(self) -> BoolArray:
        """Mask of points with a human and a metric score, (metrics, groups, points)."""
        return ~np.isnan(self.metrics) & ~np.isnan(self.human)


class Measurement(NamedTuple):
    """One statistic of many metrics: values, bootstrap replicate and significance tests.

    `strata` are the numbers of units that the bootstrap draws from. `tests` maps names to functions
    that return p-values (metrics, metrics).
    """

    agreement: Agreement
    replicate: Replicate
    strata: tuple[int, ...]
    tests: Mapping[str, TestFunction] = MappingProxyType({})


def make_layout(human: ArrayLike, metrics: ArrayLike, grouping: Grouping = "none") -> Layout:
    """Check the shapes and arrange both sides by group.

    >>> make_layout([[1, 2, 3], [4, 5, 6]], [[1, 2, 3], [4, 5, 6]], grouping="item").human.shape
    (3, 2)
    """
    human_array = to_float_array(human, "human scores")
    scores = to_float_array(metrics, "metric scores")
    if grouping not in choices(Grouping):
        raise UnknownNameError("grouping", str(grouping), choices(Grouping))
    if human_array.ndim not in (1, 2):
        raise DataError(
            f"human scores have shape {human_array.shape}: expected (points,) or "
            "(systems, segments)"
        )
    extra = scores.ndim - human_array.ndim
    if extra < 0 or scores.shape[extra:] != human_array.shape:
        raise LengthError(
            f"metric scores have shape {scores.shape}, which does not end in that of the human "
            f"scores, {human_array.shape}"
        )
    if grouping != "none" and human_array.ndim == 1:
        raise UsageError(f"grouping={grouping} needs matrices (systems, segments), got a vector")
    shape = scores.shape[:extra]
    stack = scores.reshape((int(np.prod(shape)), *human_array.shape))
    if grouping == "item":
        return Layout(human_array.T, stack.transpose(0, 2, 1), shape)
    if grouping == "system":
        return Layout(human_array, stack, shape)
    pooled = stack.reshape(len(stack), 1, human_array.size)
    return Layout(human_array.reshape(1, -1), pooled, shape)


def select_judged_columns(
    name: str, human: FloatArray, scores: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Keep the columns (segments or systems) with a human score: those that are resampled."""
    is_judged = (~np.isnan(human)).any(axis=0)
    if not is_judged.any():
        raise DataError(f"{name}: no human scores that this statistic can use")
    return human[:, is_judged], scores[:, :, is_judged]


def to_float_array(values: ArrayLike, name: str) -> FloatArray:
    """Convert to floats; NaN is a missing value, values that cannot be squared are an error."""
    array = np.asarray(values, dtype=np.float64)
    if count := int((np.abs(array) > MAX_ABS_SCORE).sum()):
        raise DataError(
            f"{name} hold {count} values that are infinite or above {MAX_ABS_SCORE:g}: "
            "fix them, or use NaN for missing values"
        )
    return array


def make_pooled_agreement(
    value: FloatArray,
    shape: tuple[int, ...],
    *,
    judged_count: int,
    used: FloatArray,
    groups: int = 1,
) -> Agreement:
    """Make an `Agreement` from one value per metric; `shape` restores the leading axes."""
    return Agreement(
        value=value.reshape(shape),
        judged_count=judged_count,
        used=used.astype(np.int64).reshape(shape),
        groups=groups,
        undefined=np.isnan(value).astype(np.int64).reshape(shape),
    )


def average_groups(layout: Layout, values: FloatArray) -> Agreement:
    """Average group values (metrics, groups) over the groups where they are defined."""
    is_judged = ~np.isnan(layout.human)  # (groups, points)
    judged_groups = is_judged.any(axis=-1)
    values = values[:, judged_groups]
    return Agreement(
        value=nan_mean(values).reshape(layout.shape),
        judged_count=int(is_judged.sum()),
        used=layout.present.sum(axis=(1, 2)).reshape(layout.shape),
        groups=int(judged_groups.sum()),
        undefined=np.isnan(values).sum(axis=1).reshape(layout.shape),
    )


def pearson(human: ArrayLike, metrics: ArrayLike, *, grouping: Grouping = "none") -> Agreement:
    """Compute Pearson's r between metric and human scores.

        r = sum (h - mean h)(m - mean m) / sqrt(sum (h - mean h)^2 sum (m - mean m)^2)

    `human` is (points,) or (systems, segments), `metrics` is (..., the same shape).

    >>> float(pearson([1, 2, 3, 4], [1, 3, 2, 4]))
    0.8
    >>> pearson([1, 2, 3], [[1, 2, 3], [3, 2, 1], [5, 5, 5]]).value
    array([ 1., -1., nan])
    """
    layout = make_layout(human, metrics, grouping)
    return average_groups(layout, pearson_values(layout))


def spearman(human: ArrayLike, metrics: ArrayLike, *, grouping: Grouping = "none") -> Agreement:
    """Compute Spearman's rho: Pearson's r of the ranks, where ties share their mean rank.

    >>> float(spearman([1, 2, 3, 4], [1, 10, 100, 90]))
    0.8
    """
    layout = make_layout(human, metrics, grouping)
    return average_groups(layout, spearman_values(layout))


def pearson_values(layout: Layout) -> FloatArray:
    """Return Pearson's r of each group, (metrics, groups)."""
    return correlate(layout.human, layout.metrics, layout.present)


def spearman_values(layout: Layout) -> FloatArray:
    """Return Spearman's rho of each group, (metrics, groups)."""
    present = layout.present
    human = np.where(present, layout.human, np.nan)
    scores = np.where(present, layout.metrics, np.nan)
    return correlate(ranks(human), ranks(scores), present)


def correlate(x: FloatArray, y: FloatArray, present: BoolArray) -> FloatArray:
    """Compute Pearson's r along the last axis over the points marked present, (..., n) -> (...)."""
    left = _center(x, present)
    right = _center(y, present)
    covariance = (left * right).sum(axis=-1)
    spread = np.sqrt((left * left).sum(axis=-1) * (right * right).sum(axis=-1))
    return np.clip(divide(covariance, spread), -1.0, 1.0)


def describe_correlation(x: FloatArray, y: FloatArray) -> str:
    """Return Pearson's r over pairs of finite values and their number, as text.

    >>> describe_correlation(np.array([1.0, 2, np.nan]), np.array([2.0, 4, 5]))
    'r = 1.000, n = 2'
    """
    present = np.isfinite(x) & np.isfinite(y)
    r = float(correlate(x, y, present))
    count = f"n = {present.sum():,}"
    return f"r = {r:z.3f}, {count}" if r == r else count


def _center(values: FloatArray, present: BoolArray) -> FloatArray:
    """Subtract the mean of the present points and scale to about 1; constants become zero."""
    count = present.sum(axis=-1, keepdims=True)
    filled = np.where(present, values, 0.0)
    centered = np.where(present, filled - divide(filled.sum(axis=-1, keepdims=True), count), 0.0)
    highest = np.where(present, values, -np.inf).max(axis=-1, keepdims=True, initial=-np.inf)
    lowest = np.where(present, values, np.inf).min(axis=-1, keepdims=True, initial=np.inf)
    # Rounding gives a constant vector a tiny spread, so compare the values themselves.
    varies = highest > lowest
    spread = np.subtract(highest, lowest, out=np.ones(varies.shape), where=varies)
    return centered * np.where(varies, unit_scale(spread), 0.0)


def unit_scale(spread: FloatArray) -> FloatArray:
    """Return the power of two that scales values of this spread to about 1.

    Squares of very small scores (1e-170) would underflow. Scaling by a power of two does not change
    a correlation.

    >>> unit_scale(np.array([0.75, 3e-200])) * [0.75, 3e-200]
    array([0.75      , 0.57408789])
    """
    _, exponents = np.frexp(spread)
    return np.ldexp(1.0, -np.maximum(exponents, -1000))


def ranks(values: FloatArray) -> FloatArray:
    """Rank from 1 along the last axis; ties share their mean rank, NaN stays NaN.

    >>> ranks(np.array([30.0, 10.0, 20.0, 10.0]))
    array([4. , 1.5, 3. , 1.5])
    """
    from scipy.stats import rankdata

    return np.asarray(rankdata(values, axis=-1, nan_policy="omit"))


def standardize(values: FloatArray) -> FloatArray:
    """Scale to mean 0 and variance 1 along the last axis; a constant becomes NaN."""
    centered = values - values.mean(axis=-1, keepdims=True)
    centered *= unit_scale(np.abs(centered).max(axis=-1, keepdims=True))
    constant = values.max(axis=-1, keepdims=True) == values.min(axis=-1, keepdims=True)
    spread = np.where(constant, np.nan, np.sqrt((centered**2).mean(axis=-1, keepdims=True)))
    result: FloatArray = centered / spread
    return result
