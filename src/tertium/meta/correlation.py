"""Pearson, Spearman and Kendall's tau-b between people and many metrics at once.

Pairs with a missing value on either side are dropped and counted; a constant vector has no
correlation (NaN), is dropped from averages over groups, and is counted too.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from tertium.arrays import BoolArray, FloatArray, divide
from tertium.meta import pairs
from tertium.meta.agreement import Agreement, Grouping, Layout, average_groups, lay_out

SMALL_GROUP = 64  # up to here all pairs at once beat one merge sort for each group


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


def kendall_b(human: ArrayLike, metrics: ArrayLike, *, by: Grouping = "none") -> Agreement:
    """Kendall's tau-b: concordant less discordant pairs of points, corrected for ties.

        tau_b = (C - D) / sqrt((C + D + T_h)(C + D + T_m))

    T_h and T_m count pairs tied by people only and by the metric only.

    >>> float(kendall_b([1, 2, 3, 4], [1, 3, 2, 4])).__round__(6)
    0.666667
    """
    layout = lay_out(human, metrics, by)
    return average_groups(layout, kendall_b_values(layout))


def pearson_values(layout: Layout) -> FloatArray:
    """Pearson's r of each group, (metrics, groups)."""
    return correlate(layout.human, layout.metrics, layout.present)


def spearman_values(layout: Layout) -> FloatArray:
    """Spearman's rho of each group, (metrics, groups)."""
    present = layout.present
    people = np.where(present, layout.human, np.nan)
    scores = np.where(present, layout.metrics, np.nan)
    return correlate(ranks(people), ranks(scores), present)


def kendall_b_values(layout: Layout) -> FloatArray:
    """Kendall's tau-b of each group, (metrics, groups)."""
    if layout.human.shape[1] <= SMALL_GROUP:
        return pairs.tau_b(pairs.count_groups(layout))
    from scipy.stats import kendalltau

    present = layout.present
    values = np.full(present.shape[:2], np.nan)
    for metric, group in zip(*np.nonzero(present.sum(axis=-1) > 1), strict=True):
        keep = present[metric, group]
        x, y = layout.human[group, keep], layout.metrics[metric, group, keep]
        if x.min() < x.max() and y.min() < y.max():
            values[metric, group] = kendalltau(x, y).statistic
    return values


def correlate(x: FloatArray, y: FloatArray, present: BoolArray) -> FloatArray:
    """Pearson's r along the last axis over the points marked present, (..., n) -> (...)."""
    counts = present.sum(axis=-1, keepdims=True)
    left, right = _centre(x, present, counts), _centre(y, present, counts)
    covariance = (left * right).sum(axis=-1)
    spread = np.sqrt((left * left).sum(axis=-1) * (right * right).sum(axis=-1))
    r: FloatArray = np.clip(divide(covariance, spread), -1.0, 1.0)
    return r


def _centre(values: FloatArray, present: BoolArray, counts: FloatArray) -> FloatArray:
    """Less the mean of the present points, zero elsewhere and in constant vectors."""
    filled = np.where(present, values, 0.0)
    centred = np.where(present, filled - divide(filled.sum(axis=-1, keepdims=True), counts), 0.0)
    highest = np.where(present, values, -np.inf).max(axis=-1, keepdims=True, initial=-np.inf)
    lowest = np.where(present, values, np.inf).min(axis=-1, keepdims=True, initial=np.inf)
    # Rounding leaves a constant vector with a tiny spread, so constancy is read off the values.
    return np.where(highest > lowest, centred, 0.0)


def ranks(values: FloatArray) -> FloatArray:
    """Ranks from 1 along the last axis, ties sharing their mean rank; NaN ranks last.

    >>> ranks(np.array([30.0, 10.0, 20.0, 10.0]))
    array([4. , 1.5, 3. , 1.5])
    """
    n = values.shape[-1]
    order = np.argsort(values, axis=-1, kind="stable")
    ordered = np.take_along_axis(values, order, axis=-1)
    fresh = np.ones(values.shape, dtype=bool)
    fresh[..., 1:] = ordered[..., 1:] != ordered[..., :-1]
    final = np.ones(values.shape, dtype=bool)
    final[..., :-1] = fresh[..., 1:]
    place = np.arange(n)
    first = np.maximum.accumulate(np.where(fresh, place, 0), axis=-1)
    last = np.minimum.accumulate(np.where(final, place, n)[..., ::-1], axis=-1)[..., ::-1]
    result = np.empty(values.shape)
    np.put_along_axis(result, order, (first + last) / 2 + 1, axis=-1)
    return result
