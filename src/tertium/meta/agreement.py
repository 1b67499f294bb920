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
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from tertium.core.arrays import MAX_ABS_SCORE, BoolArray, FloatArray, IntArray, nan_mean
from tertium.core.errors import DataError, LengthError, UnknownNameError, UsageError
from tertium.core.fields import choices
from tertium.core.resampling import can_enumerate

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


@dataclass(frozen=True, eq=False, kw_only=True)
class Layout:
    """Scores as groups of points: human (groups, points), metrics (metrics, groups, points)."""

    human: FloatArray
    metrics: FloatArray
    shape: tuple[int, ...]  # the leading axes of the metrics in the input

    @property
    def present(self) -> BoolArray:
        """Mask of points with a human and a metric score, (metrics, groups, points)."""
        return ~np.isnan(self.metrics) & ~np.isnan(self.human)

    @property
    def judged_count(self) -> int:
        return int((~np.isnan(self.human)).sum())


@dataclass(frozen=True, kw_only=True, eq=False)
class Measurement:
    """One statistic of many metrics: values, bootstrap replicate and significance tests.

    `strata` are the numbers of units that the bootstrap draws from. `tests` maps names to functions
    that return p-values (metrics, metrics). `points` is the number of judged cells, which limits
    PERM-BOTH and Williams' test. `exact_pairs` is true if the test of pairs samples nothing.
    """

    agreement: Agreement
    replicate: Replicate
    strata: tuple[int, ...]
    tests: Mapping[str, TestFunction] = field(default_factory=dict)
    points: int = 0
    exact_pairs: bool = False

    def smallest_p_value(self, test: str, resamples: int) -> float:
        """Return the smallest p-value that a test can give with this number of resamples."""
        if test == "perm-both" and can_enumerate(self.points, resamples):
            return 2.0**-self.points
        if test == "williams":
            return 0.0 if self.points > 3 else 1.0  # it needs four points
        return 0.0 if test == "pairs" and self.exact_pairs else 1 / (1 + resamples)


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
        return Layout(human=human_array.T, metrics=stack.transpose(0, 2, 1), shape=shape)
    if grouping == "system":
        return Layout(human=human_array, metrics=stack, shape=shape)
    pooled = stack.reshape(len(stack), 1, human_array.size)
    return Layout(human=human_array.reshape(1, -1), metrics=pooled, shape=shape)


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
    judged_groups = (~np.isnan(layout.human)).any(axis=-1)  # (groups,)
    values = values[:, judged_groups]
    return Agreement(
        value=nan_mean(values).reshape(layout.shape),
        judged_count=layout.judged_count,
        used=layout.present.sum(axis=(1, 2)).reshape(layout.shape),
        groups=int(judged_groups.sum()),
        undefined=np.isnan(values).sum(axis=1).reshape(layout.shape),
    )
