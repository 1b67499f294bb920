"""Pearson's and Spearman's correlation, and the sums and ranks they are made of."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from tertium.arrays import BoolArray, FloatArray, divide
from tertium.meta.agreement import Agreement, Grouping, Layout, average_groups, lay_out


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
    result: FloatArray = centred * np.where(varies, unit_scale(spread), 0.0)
    return result


def unit_scale(spread: FloatArray) -> FloatArray:
    """The power of two that brings numbers so far apart near 1.

    Squares of probabilities of whole sentences (1e-170) would be no numbers. Powers of two change
    no bit of a correlation.

    >>> unit_scale(np.array([0.75, 3e-200])) * [0.75, 3e-200]
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


def standardise(values: FloatArray) -> FloatArray:
    """Mean 0 and variance 1 along the last axis; NaN for a constant."""
    centred = values - values.mean(axis=-1, keepdims=True)
    centred *= unit_scale(np.abs(centred).max(axis=-1, keepdims=True))
    constant = values.max(axis=-1, keepdims=True) == values.min(axis=-1, keepdims=True)
    spread = np.where(constant, np.nan, np.sqrt((centred**2).mean(axis=-1, keepdims=True)))
    result: FloatArray = centred / spread
    return result
