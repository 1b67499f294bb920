"""Pearson and Spearman correlation, and the ranks and standardization they use."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from tertium.core.arrays import BoolArray, FloatArray, divide
from tertium.meta.agreement import Agreement, Grouping, Layout, average_groups, make_layout


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
    counts = present.sum(axis=-1, keepdims=True)
    left, right = _center(x, present, counts), _center(y, present, counts)
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


def _center(values: FloatArray, present: BoolArray, counts: FloatArray) -> FloatArray:
    """Subtract the mean of the present points and scale to about 1; constants become zero."""
    filled = np.where(present, values, 0.0)
    centered = np.where(present, filled - divide(filled.sum(axis=-1, keepdims=True), counts), 0.0)
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
    places = np.arange(values.shape[-1])
    order = np.argsort(values, axis=-1, kind="stable")  # NaN goes last
    ordered = np.take_along_axis(values, order, axis=-1)
    begins = np.ones(values.shape, dtype=bool)  # of a run of equal values
    begins[..., 1:] = ordered[..., 1:] != ordered[..., :-1]
    ends = np.roll(begins, -1, axis=-1)
    first = np.maximum.accumulate(np.where(begins, places, 0), axis=-1)
    last = np.where(ends, places, len(places))[..., ::-1]
    last = np.minimum.accumulate(last, axis=-1)[..., ::-1]
    result = np.empty(values.shape)
    np.put_along_axis(result, order, (first + last) / 2 + 1, axis=-1)
    result[np.isnan(values)] = np.nan
    return result


def standardize(values: FloatArray) -> FloatArray:
    """Scale to mean 0 and variance 1 along the last axis; a constant becomes NaN."""
    centered = values - values.mean(axis=-1, keepdims=True)
    centered *= unit_scale(np.abs(centered).max(axis=-1, keepdims=True))
    constant = values.max(axis=-1, keepdims=True) == values.min(axis=-1, keepdims=True)
    spread = np.where(constant, np.nan, np.sqrt((centered**2).mean(axis=-1, keepdims=True)))
    result: FloatArray = centered / spread
    return result
