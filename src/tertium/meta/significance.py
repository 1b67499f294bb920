"""Significance tests between metrics: Williams' test and PERM-BOTH.

Tests return one-sided p-values (metrics, metrics): entry [i, j] is small if metric i agrees
significantly better with the human scores than metric j. Williams' test is for Pearson's r,
PERM-BOTH for any statistic of scores. The bootstrap is in `replicates`; tests on pairs are next to
their statistics (`accuracy`, `systems`).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from tertium.core.arrays import BoolArray, FloatArray
from tertium.core.resampling import can_enumerate, check_resamples, draw_swaps
from tertium.meta.agreement import Agreement, SmallestP, make_layout, to_float_array
from tertium.meta.correlation import correlate, standardize

Statistic = Callable[[FloatArray, FloatArray], Agreement]


def williams(human: ArrayLike, metrics: ArrayLike) -> FloatArray:
    """Test metric_pair correlations with the same human scores (Williams; Graham & Baldwin 2014).

    `human` is (points,) or (systems, segments), pooled; `metrics` is (metrics, the same shape).
    With r12, r13 the correlations with the human scores, r23 between the metrics, and n points:

        t = (r12 - r13) sqrt((n-1)(1+r23)) / sqrt(2K(n-1)/(n-3) + rbar^2 (1-r23)^3)
        K = 1 - r12^2 - r13^2 - r23^2 + 2 r12 r13 r23,   rbar = (r12 + r13) / 2

    which follows Student's t with n-3 degrees of freedom.
    """
    return run_pairwise_test(human, metrics, _williams_block)


def williams_t(r12: ArrayLike, r13: ArrayLike, r23: ArrayLike, n: int) -> FloatArray:
    """Return the t of `williams`, NaN where it is undefined (n < 4, equal metrics)."""
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


def perm_both(
    human: ArrayLike, metrics: ArrayLike, *, resamples: int = 1000, rng: np.random.Generator
) -> FloatArray:
    """Run PERM-BOTH for Pearson's r of pooled points (Deutsch et al. 2021).

    Both metrics are standardized. Each point swaps their scores with probability 1/2, and the
    p-value is the share of swaps whose difference in correlation is at least the observed one. If
    all swaps are at most `resamples`, they are enumerated; otherwise `resamples` are drawn and the
    observed data count as one more. With swaps U (resamples, n) and standardized metrics X, the
    products U(hX), UX and UX^2 serve all pairs of metrics.
    """
    check_resamples(resamples)
    return run_pairwise_test(human, metrics, lambda h, m: _perm_both_block(h, m, resamples, rng))


def _perm_both_block(
    human: FloatArray, metrics: FloatArray, resamples: int, rng: np.random.Generator
) -> FloatArray:
    h, x = standardize(human), standardize(metrics)  # (n,), (metrics, n)
    count, n = x.shape
    columns = np.concatenate([h * x, x, x * x]).T  # (n, 3 metrics)
    sums = np.concatenate([block @ columns for block in draw_swaps(n, resamples, rng)])
    products, plain, squares = np.split(sums, 3, axis=1)
    r = x @ h / n
    result = np.ones((count, count))
    for i in range(count):
        for j in range(i + 1, count):
            mixed = [
                _mixed_r(
                    products[:, a] - products[:, b] + n * r[b],
                    plain[:, a] - plain[:, b],
                    squares[:, a] - squares[:, b] + n,
                    n,
                )
                for a, b in ((i, j), (j, i))
            ]
            observed = float(r[i] - r[j])
            result[i, j], result[j, i] = _tail_shares(mixed[0] - mixed[1], observed, n, resamples)
    undefined = np.isnan(r)
    result[undefined] = result[:, undefined] = np.nan
    return result


def _mixed_r(product: FloatArray, plain: FloatArray, squares: FloatArray, n: int) -> FloatArray:
    """Return Pearson's r of a mixture with standardized h from its sums of hm, m and m^2."""
    spread = squares - plain**2 / n
    spread = np.where(spread > 1e-12 * n, spread, np.nan)  # constant up to rounding
    return product / np.sqrt(n * spread)


def perm_both_any(
    human: ArrayLike,
    metrics: ArrayLike,
    statistic: Statistic,
    *,
    resamples: int = 1000,
    rng: np.random.Generator,
) -> FloatArray:
    """Run PERM-BOTH for any statistic of (human, metrics), computed again for each swap."""
    check_resamples(resamples)
    human_scores = to_float_array(human, "human scores")
    stack = to_float_array(metrics, "metric scores")
    count = len(stack)
    result = np.ones((count, count))
    for i in range(count):
        for j in range(i + 1, count):
            shared = ~np.isnan(human_scores) & ~np.isnan(stack[i]) & ~np.isnan(stack[j])
            result[i, j], result[j, i] = _perm_pair(
                np.where(shared, human_scores, np.nan),
                np.stack([_standardize_at(stack[m], shared) for m in (i, j)]),
                statistic,
                resamples,
                rng,
            )
    return result


def _perm_pair(
    human: FloatArray,
    metric_pair: FloatArray,
    statistic: Statistic,
    resamples: int,
    rng: np.random.Generator,
) -> tuple[float, float]:
    values = statistic(human, metric_pair).value
    observed = float(values[0] - values[1])
    if np.isnan(observed):
        return np.nan, np.nan
    shared, null = ~np.isnan(human), []
    for block in draw_swaps(int(shared.sum()), resamples, rng):
        swap = np.zeros((len(block), *human.shape), dtype=bool)
        swap[:, shared] = block == 1
        first = statistic(human, np.where(swap, metric_pair[0], metric_pair[1])).value
        null.append(first - statistic(human, np.where(swap, metric_pair[1], metric_pair[0])).value)
    return _tail_shares(np.concatenate(null), observed, int(shared.sum()), resamples)


def smallest_p_of_swaps(human: FloatArray) -> SmallestP:
    """Return the smallest p-value of PERM-BOTH: few points have few swaps."""
    points = int((~np.isnan(human)).sum())
    return lambda resamples: (
        2.0**-points if can_enumerate(points, resamples) else 1 / (1 + resamples)
    )


def smallest_p_of_t(human: FloatArray, resamples: int) -> float:
    """Return the smallest p-value of Williams' test, which needs four points."""
    return 0.0 if (~np.isnan(human)).sum() > 3 else 1.0


def zero_p(resamples: int) -> float:
    """Return the smallest p-value of a test without resampling."""
    return 0.0


def _tail_shares(
    null: FloatArray, observed: float, points: int, resamples: int
) -> tuple[float, float]:
    """Return the shares of swaps with at least the observed difference, upwards and downwards."""
    extra = 0 if can_enumerate(points, resamples) else 1
    null = null[~np.isnan(null)]
    above, below = (null >= observed - 1e-12).sum(), (null <= observed + 1e-12).sum()
    total = extra + len(null)
    return float((extra + above) / total), float((extra + below) / total)


def _standardize_at(values: FloatArray, shared: BoolArray) -> FloatArray:
    """Standardize the shared cells; rounding keeps equal scores of two metrics equal."""
    result = np.full(values.shape, np.nan)
    result[shared] = standardize(values[shared]).round(12) if shared.any() else np.nan
    return result


def run_pairwise_test(
    human: ArrayLike, metrics: ArrayLike, test: Callable[[FloatArray, FloatArray], FloatArray]
) -> FloatArray:
    """Run a test on complete vectors: once if all metrics score the same points, else by pair."""
    layout = make_layout(human, metrics)
    human_scores, scores, present = layout.human[0], layout.metrics[:, 0], layout.present[:, 0]
    if len(scores) and (present == present[0]).all():
        if present[0].sum() < 2:
            return np.full((len(scores), len(scores)), np.nan)
        return test(human_scores[present[0]], scores[:, present[0]])
    result = np.ones((len(scores), len(scores)))
    for i in range(len(scores)):
        for j in range(i + 1, len(scores)):
            both = present[i] & present[j]
            block = np.full((2, 2), np.nan)
            if both.sum() >= 2:
                block = test(human_scores[both], scores[[i, j]][:, both])
            result[i, j], result[j, i] = block[0, 1], block[1, 0]
    return result
