"""Pearson's and Spearman's correlation, and what statistics share: layout, results, bootstrap.

People's judgements are (systems, segments) or a plain vector, NaN where nobody judged; metrics are
the same shape with any leading axes, so that one call compares many metrics. Pairs with a missing
value on either side are dropped and counted; a constant vector has no correlation (NaN), is dropped
from averages over groups, and is counted too. `by` is the grouping, a choice orthogonal to the
statistic:

    none      all cells are one long vector
    item      one vector per segment (its systems); the statistic is averaged over segments
    system    one vector per system (its segments); the statistic is averaged over systems

A `Replicate` is a statistic as a function of weights (draws, units), what it would be, had other
segments or systems been drawn; the bootstrap is the same function of multinomial counts.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Literal, get_args

import numpy as np
from numpy.typing import ArrayLike

from tertium.arrays import LARGEST, BoolArray, FloatArray, IntArray, divide, mean_known
from tertium.errors import DataError, LengthError, UnknownNameError, UsageError
from tertium.scores import Reduce

Grouping = Literal["none", "item", "system"]
Replicate = Callable[[FloatArray], FloatArray]  # weights (draws, units) to (draws, metrics)
Pooled = Callable[[FloatArray, FloatArray], Replicate]
TestFunction = Callable[..., FloatArray]  # of samples and rng
Finest = Callable[[int], float]  # of samples
BLOCK = 1 << 22  # numbers in memory at a time


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


def pearson(human: ArrayLike, metrics: ArrayLike, *, by: Grouping = "none") -> Agreement:
    """Pearson's r: how far a metric is a linear function of the human scores.

        r = sum (h - mean h)(m - mean m) / sqrt(sum (h - mean h)^2 sum (m - mean m)^2)

    `human` is (points,) or (systems, segments), `metrics` (..., the same).

    >>> float(pearson([1, 2, 3, 4], [1, 3, 2, 4]))
    0.8
    >>> pearson([1, 2, 3], [[1, 2, 3], [3, 2, 1], [5, 5, 5]]).value
    array([ 1., -1., nan])
    """
    layout = lay_out(human, metrics, by)
    return average_groups(layout, pearson_values(layout))


def spearman(human: ArrayLike, metrics: ArrayLike, *, by: Grouping = "none") -> Agreement:
    """Spearman's rho: Pearson's r of the ranks, ties sharing their mean rank.

    >>> float(spearman([1, 2, 3, 4], [1, 10, 100, 90]))
    0.8
    """
    layout = lay_out(human, metrics, by)
    return average_groups(layout, spearman_values(layout))


def pearson_values(layout: Layout) -> FloatArray:
    """Pearson's r of each group, (metrics, groups)."""
    return correlate(layout.human, layout.metrics, layout.present)


def spearman_values(layout: Layout) -> FloatArray:
    """Spearman's rho of each group, (metrics, groups)."""
    present = layout.present
    people = np.where(present, layout.human, np.nan)
    scores = np.where(present, layout.metrics, np.nan)
    return correlate(ranks(people), ranks(scores), present)


def correlate(x: FloatArray, y: FloatArray, present: BoolArray) -> FloatArray:
    """Pearson's r along the last axis over the points marked present, (..., n) -> (...)."""
    counts = present.sum(axis=-1, keepdims=True)
    left, right = _centre(x, present, counts), _centre(y, present, counts)
    covariance = (left * right).sum(axis=-1)
    spread = np.sqrt((left * left).sum(axis=-1) * (right * right).sum(axis=-1))
    return np.clip(divide(covariance, spread), -1.0, 1.0)


def _centre(values: FloatArray, present: BoolArray, counts: FloatArray) -> FloatArray:
    """Less the mean of the present points and near 1; zero elsewhere and in constant vectors."""
    filled = np.where(present, values, 0.0)
    centred = np.where(present, filled - divide(filled.sum(axis=-1, keepdims=True), counts), 0.0)
    highest = np.where(present, values, -np.inf).max(axis=-1, keepdims=True, initial=-np.inf)
    lowest = np.where(present, values, np.inf).min(axis=-1, keepdims=True, initial=np.inf)
    # Rounding leaves a constant vector with a tiny spread, so constancy is read off the values.
    varies = highest > lowest
    spread = np.subtract(highest, lowest, out=np.ones(varies.shape), where=varies)
    result: FloatArray = centred * np.where(varies, _unit_scale(spread), 0.0)
    return result


def _unit_scale(spread: FloatArray) -> FloatArray:
    """The power of two that brings numbers so far apart near 1.

    Squares of probabilities of whole sentences (1e-170) would be no numbers. Powers of two change
    no bit of a correlation.

    >>> _unit_scale(np.array([0.75, 3e-200])) * [0.75, 3e-200]
    array([0.75      , 0.57408789])
    """
    _, exponents = np.frexp(spread)
    scales: FloatArray = np.ldexp(1.0, -np.maximum(exponents, -1000))
    return scales


def ranks(values: FloatArray) -> FloatArray:
    """Ranks from 1 along the last axis, ties sharing their mean rank; NaN has none.

    >>> ranks(np.array([30.0, 10.0, 20.0, 10.0]))
    array([4. , 1.5, 3. , 1.5])
    """
    places = np.arange(values.shape[-1])
    order = np.argsort(values, axis=-1, kind="stable")  # NaN goes last
    ordered = np.take_along_axis(values, order, axis=-1)
    begins = np.ones(values.shape, dtype=bool)  # a run of equals
    begins[..., 1:] = ordered[..., 1:] != ordered[..., :-1]
    ends = np.roll(begins, -1, axis=-1)
    first = np.maximum.accumulate(np.where(begins, places, 0), axis=-1)
    last = np.where(ends, places, len(places))[..., ::-1]
    last = np.minimum.accumulate(last, axis=-1)[..., ::-1]
    result = np.empty(values.shape)
    np.put_along_axis(result, order, (first + last) / 2 + 1, axis=-1)
    result[np.isnan(values)] = np.nan
    return result


def of_sums(statistics: FloatArray, reduce: Reduce) -> Replicate:
    """`reduce(weights @ statistics)` with statistics (metrics, units, k)."""
    return lambda weights: reduce(np.swapaxes(weights @ statistics, 0, 1))


def of_pearson(human: FloatArray, metrics: FloatArray) -> Replicate:
    """Pearson's r of all cells; human (rows, units), metrics (metrics, rows, units)."""
    present = ~np.isnan(human) & ~np.isnan(metrics)
    x, y = _centre_cells(human, present), _centre_cells(metrics, present)
    columns = (present * 1.0, x, y, x * x, y * y, x * y)
    return of_sums(np.stack([c.sum(axis=1) for c in columns], axis=-1), _moments_to_r)


def _centre_cells(values: FloatArray, present: BoolArray) -> FloatArray:
    """Less the mean of the present cells, so that sums do not cancel, near 1; zero elsewhere."""
    filled = np.where(present, values, 0.0)
    mean = divide(filled.sum(axis=(1, 2)), present.sum(axis=(1, 2)))[:, None, None]
    centred = np.where(present, filled - mean, 0.0)
    return centred * _unit_scale(np.abs(centred).max(axis=(1, 2), keepdims=True, initial=0.0))


def _moments_to_r(sums: FloatArray) -> FloatArray:
    n, x, y, xx, yy, xy = np.moveaxis(sums, -1, 0)
    spread_x, spread_y = n * xx - x * x, n * yy - y * y
    # A sample of equal values leaves rounding, not variance.
    flat = (spread_x <= 1e-12 * n * xx) | (spread_y <= 1e-12 * n * yy)
    r = divide(n * xy - x * y, np.where(flat, 0.0, np.sqrt(np.abs(spread_x * spread_y))))
    return np.clip(r, -1.0, 1.0)  # which rounding may miss


def of_values(values: FloatArray) -> Replicate:
    """The weighted mean of what is defined among values (metrics, units)."""
    defined = ~np.isnan(values)
    filled = np.where(defined, values, 0.0).T
    return lambda weights: divide(weights @ filled, weights @ defined.T.astype(np.float64))


def by_group(
    human: FloatArray,
    scores: FloatArray,
    by: Grouping,
    pool: Pooled,
    group_values: Callable[[Layout], FloatArray],
) -> Replicate:
    """How a grouped statistic varies when columns (items) are drawn."""
    if by == "none":
        return pool(human, scores)
    if by == "item":
        made = cache(lambda: of_values(group_values(lay_out(human, scores, "item"))))
        return lambda weights: made()(weights)  # made when asked for: without samples nobody does
    parts = [pool(human[r : r + 1], scores[:, r : r + 1]) for r in range(len(human))]
    return lambda weights: mean_known(np.stack([part(weights) for part in parts], axis=-1))


def bootstrap(
    replicate: Replicate, units: Sequence[int], *, samples: int, rng: np.random.Generator
) -> FloatArray:
    """Values of bootstrap samples, (samples, metrics), in blocks of bounded size.

    `units` lists the sizes of the strata: units are drawn with replacement within each (one number
    for one pool of segments, one a language pair where several are pooled).
    """
    if samples < 1:
        raise UsageError(f"at least one bootstrap sample is needed, got {samples}")
    if not units or min(units) < 1:
        raise DataError("there is nothing to draw a bootstrap sample from")
    rows = max(1, BLOCK // sum(units))
    blocks = [min(rows, samples - start) for start in range(0, samples, rows)]
    return np.concatenate([replicate(_draw(units, count, rng)) for count in blocks])


def _draw(units: Sequence[int], count: int, rng: np.random.Generator) -> FloatArray:
    """How often each unit was drawn, (count, all units)."""
    parts = []
    for size in units:
        drawn = rng.integers(0, size, size=(count, size)) + np.arange(count)[:, None] * size
        parts.append(np.bincount(drawn.ravel(), minlength=count * size).reshape(count, size))
    return np.concatenate(parts, axis=1).astype(np.float64)


def standardise(values: FloatArray) -> FloatArray:
    """Mean 0 and variance 1 along the last axis; NaN for a constant."""
    centred = values - values.mean(axis=-1, keepdims=True)
    centred *= _unit_scale(np.abs(centred).max(axis=-1, keepdims=True))
    constant = values.max(axis=-1, keepdims=True) == values.min(axis=-1, keepdims=True)
    spread = np.where(constant, np.nan, np.sqrt((centred**2).mean(axis=-1, keepdims=True)))
    result: FloatArray = centred / spread
    return result
