"""Is one metric better than another, or might chance have it so? Tests of all pairs of metrics.

Every test returns one-sided p-values (metrics, metrics): entry [i, j] is small where metric i
agrees with people significantly better than metric j. The bootstrap works for every statistic,
through its `Replicate`; the others are exact or cheaper for the statistics they were made for.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from tertium.arrays import BoolArray, FloatArray
from tertium.meta.correlation import BLOCK, Agreement, all_pairs, correlate, finite, standardise

Statistic = Callable[[FloatArray, FloatArray], Agreement]


def holm(p_values: ArrayLike) -> FloatArray:
    """Holm's (1979) adjustment of p-values of any shape: the chance of any false finding is p.

    The k-th smallest of m is multiplied by m - k + 1, and is no smaller than those before it; what
    is undefined stays so and is not counted.

    >>> holm([0.01, 0.04, 0.03, np.nan]).tolist()
    [0.03, 0.06, 0.06, nan]
    """
    given = np.asarray(p_values, dtype=np.float64)
    adjusted = np.full(given.shape, np.nan)
    known = ~np.isnan(given)
    ordered = np.sort(given[known])
    steps = np.maximum.accumulate(ordered * np.arange(len(ordered), 0, -1))
    order = np.argsort(given[known], kind="stable")
    values = np.empty(len(ordered))
    values[order] = np.minimum(steps, 1.0)
    adjusted[known] = values
    return adjusted


def williams(human: ArrayLike, metrics: ArrayLike) -> FloatArray:
    """Williams' test of two correlations with the same human scores (Graham & Baldwin 2014).

    human is (points,) or (systems, segments), pooled; metrics (metrics, the same). With r12, r13
    the metrics' correlations with people, r23 the one between them, and n points:

        t = (r12 - r13) sqrt((n-1)(1+r23)) / sqrt(2K(n-1)/(n-3) + rbar^2 (1-r23)^3)
        K = 1 - r12^2 - r13^2 - r23^2 + 2 r12 r13 r23,   rbar = (r12 + r13) / 2

    which follows Student's t with n-3 degrees of freedom.
    """
    return all_pairs(human, metrics, _williams_block)


def williams_t(r12: ArrayLike, r13: ArrayLike, r23: ArrayLike, n: int) -> FloatArray:
    """The statistic t of `williams`, NaN where it is undefined (n < 4, equal metrics)."""
    a, b, c = (np.asarray(r, dtype=np.float64) for r in (r12, r13, r23))
    if n < 4:
        return np.full(np.broadcast(a, b, c).shape, np.nan)
    k = 1 - a**2 - b**2 - c**2 + 2 * a * b * c
    below = 2 * np.maximum(k, 0.0) * (n - 1) / (n - 3) + ((a + b) / 2) ** 2 * (1 - c) ** 3
    with np.errstate(divide="ignore", invalid="ignore"):
        t: FloatArray = (a - b) * np.sqrt((n - 1) * (1 + c)) / np.sqrt(below)
    return t


def _williams_block(human: FloatArray, metrics: FloatArray) -> FloatArray:
    from scipy.stats import t as student

    n = len(human)
    present = np.ones(n, dtype=bool)
    r = correlate(human, metrics, present)  # (metrics,)
    between = correlate(metrics[:, None], metrics[None], present)
    p = np.asarray(student.sf(williams_t(r[:, None], r[None], between, n), max(n - 3, 1)))
    equal = np.isclose(between, 1.0, rtol=0, atol=1e-12)
    return np.where(equal & ~np.isnan(r[:, None]), 1.0, p)


def perm_both_any(
    human: ArrayLike,
    metrics: ArrayLike,
    statistic: Statistic,
    *,
    samples: int = 1000,
    rng: np.random.Generator,
) -> FloatArray:
    """PERM-BOTH for any statistic of (human, metrics), which is computed anew for each swap."""
    people, stack = finite(human, "human scores"), finite(metrics, "metric scores")
    count = len(stack)
    result = np.ones((count, count))
    for i in range(count):
        for j in range(i + 1, count):
            shared = ~np.isnan(people) & ~np.isnan(stack[i]) & ~np.isnan(stack[j])
            result[i, j], result[j, i] = _perm_pair(
                np.where(shared, people, np.nan),
                np.stack([_standardise_at(stack[m], shared) for m in (i, j)]),
                statistic,
                samples,
                rng,
            )
    return result


def _perm_pair(
    human: FloatArray, two: FloatArray, statistic: Statistic, samples: int, rng: np.random.Generator
) -> tuple[float, float]:
    values = statistic(human, two).value
    observed = float(values[0] - values[1])
    if np.isnan(observed):
        return np.nan, np.nan
    above = below = 0
    step = max(1, BLOCK // max(1, human.size))
    for start in range(0, samples, step):
        swap = rng.random((min(step, samples - start), *human.shape)) < 0.5
        first = statistic(human, np.where(swap, two[0], two[1])).value
        null = first - statistic(human, np.where(swap, two[1], two[0])).value
        above += int((null >= observed - 1e-12).sum())
        below += int((null <= observed + 1e-12).sum())
    return (1 + above) / (1 + samples), (1 + below) / (1 + samples)


def _standardise_at(values: FloatArray, shared: BoolArray) -> FloatArray:
    result = np.full(values.shape, np.nan)
    result[shared] = standardise(values[shared]) if shared.any() else np.nan
    return result
