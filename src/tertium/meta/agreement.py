"""What all statistics share: how both sides are laid out, and what comes out.

People's judgments are (systems, segments) or a plain vector, NaN where nobody judged; metrics are
the same shape with any leading axes, so that one call compares many metrics. Pairs with a missing
value on either side are dropped and counted; a constant vector has no correlation (NaN), is dropped
from averages over groups, and is counted too. `by` is the grouping, a choice orthogonal to the
statistic:

    none      all cells are one long vector
    item      one vector per segment (its systems); the statistic is averaged over segments
    system    one vector per system (its segments); the statistic is averaged over systems

A `Replicate` is a statistic as a function of weights (draws, units), what it would be, had other
segments or systems been drawn.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal, get_args

import numpy as np
from numpy.typing import ArrayLike

from tertium.arrays import LARGEST, BoolArray, FloatArray, IntArray, mean_known
from tertium.errors import DataError, LengthError, UnknownNameError, UsageError

Grouping = Literal["none", "item", "system"]
Replicate = Callable[[FloatArray], FloatArray]  # weights (draws, units) to (draws, metrics)
TestFunction = Callable[..., FloatArray]  # of samples and rng
Finest = Callable[[int], float]  # of samples


@dataclass(frozen=True, eq=False, kw_only=True)
class Agreement:
    """How far metrics agree with people, and on how much of the evidence.

    `value` has the leading axes of the metrics and is NaN where the statistic is undefined (fewer
    than two points, a constant vector). `judged` counts what people said (cells, or comparisons for
    pairwise statistics), `used` what entered the value; the rest, `left_out`, had no metric score.
    Of `groups` vectors that people judged, `undefined` gave no value and are not in the average.
    `epsilon` is the metric difference that counted as a tie, where a statistic chooses one.
    """

    value: FloatArray
    judged: int
    used: IntArray
    groups: int = 1
    undefined: IntArray
    epsilon: FloatArray | None = None

    @property
    def left_out(self) -> IntArray:
        """What people judged and the metric did not score, (...)."""
        return self.judged - self.used

    def __float__(self) -> float:
        if self.value.size != 1:
            raise UsageError(f"{self.value.size} metrics give {self.value.size} values: use .value")
        return float(self.value.reshape(-1)[0])


@dataclass(frozen=True, eq=False, kw_only=True)
class Layout:
    """Both sides as groups of points: human (groups, points), metrics (metrics, groups, points)."""

    human: FloatArray
    metrics: FloatArray
    shape: tuple[int, ...]  # the leading axes of the metrics, as they were given

    @property
    def present(self) -> BoolArray:
        """Where both sides have a value, (metrics, groups, points)."""
        return ~np.isnan(self.metrics) & ~np.isnan(self.human)

    @property
    def judged(self) -> int:
        return int((~np.isnan(self.human)).sum())


@dataclass(frozen=True, kw_only=True, eq=False)
class Measured:
    """One statistic of many metrics: values, how they vary with the sample, tests between them.

    `strata` are the numbers of units that the bootstrap draws from; `tests` map a name to a
    function of the number of samples and a generator, giving p-values (metrics, metrics). `finest`
    says of tests that are more than draws which p-value is the smallest that they can give.
    """

    agreement: Agreement
    replicate: Replicate
    strata: tuple[int, ...]
    tests: Mapping[str, TestFunction] = field(default_factory=dict)
    finest: Mapping[str, Finest] = field(default_factory=dict)

    def least_p(self, test: str, samples: int) -> float:
        """The smallest p-value that a test of so many samples can give."""
        return self.finest[test](samples) if test in self.finest else 1 / (1 + samples)


def lay_out(human: ArrayLike, metrics: ArrayLike, by: Grouping = "none") -> Layout:
    """Check the shapes and arrange both sides by group.

    >>> lay_out([[1, 2, 3], [4, 5, 6]], [[1, 2, 3], [4, 5, 6]], by="item").human.shape
    (3, 2)
    """
    people = finite(human, "human scores")
    scores = finite(metrics, "metric scores")
    if by not in get_args(Grouping):
        raise UnknownNameError("grouping", str(by), get_args(Grouping))
    if people.ndim not in (1, 2):
        raise DataError(f"human scores are (points,) or (systems, segments), not {people.shape}")
    if scores.shape[scores.ndim - people.ndim :] != people.shape or scores.ndim < people.ndim:
        raise LengthError(f"metric scores {scores.shape} do not end in the human {people.shape}")
    if by != "none" and people.ndim == 1:
        raise UsageError(f"grouping by {by} needs matrices (systems, segments), got a vector")
    shape = scores.shape[: scores.ndim - people.ndim]
    stack = scores.reshape((int(np.prod(shape)), *people.shape))
    if by == "item":
        return Layout(human=people.T, metrics=stack.transpose(0, 2, 1), shape=shape)
    if by == "system":
        return Layout(human=people, metrics=stack, shape=shape)
    pooled = stack.reshape(len(stack), 1, people.size)
    return Layout(human=people.reshape(1, -1), metrics=pooled, shape=shape)


def judged_columns(
    name: str, human: FloatArray, scores: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """The columns (segments or systems) that people judged at all; the bootstrap draws these."""
    judged = (~np.isnan(human)).any(axis=0)
    if not judged.any():
        raise DataError(f"{name}: people gave no scores that this statistic could use")
    return human[:, judged], scores[:, :, judged]


def finite(values: ArrayLike, what: str) -> FloatArray:
    """As an array of floats; NaN is a missing value, what cannot be squared is refused."""
    array = np.asarray(values, dtype=np.float64)
    if count := int((np.abs(array) > LARGEST).sum()):
        raise DataError(
            f"{what} hold {count} values that are infinite or above {LARGEST:g}: mend them, or "
            "write NaN for missing"
        )
    return array


def pool_agreement(
    value: FloatArray, shape: tuple[int, ...], *, judged: int, used: FloatArray, groups: int = 1
) -> Agreement:
    """The agreement of one value a metric, given flat, in the leading axes of the metrics."""
    return Agreement(
        value=value.reshape(shape),
        judged=judged,
        used=used.astype(np.int64).reshape(shape),
        groups=groups,
        undefined=np.isnan(value).astype(np.int64).reshape(shape),
    )


def average_groups(layout: Layout, values: FloatArray) -> Agreement:
    """The mean of group values (metrics, groups) over the groups where each is defined."""
    asked = (~np.isnan(layout.human)).any(axis=-1)  # (groups,)
    values = values[:, asked]
    return Agreement(
        value=mean_known(values).reshape(layout.shape),
        judged=layout.judged,
        used=layout.present.sum(axis=(1, 2)).reshape(layout.shape),
        groups=int(asked.sum()),
        undefined=np.isnan(values).sum(axis=1).reshape(layout.shape),
    )
