"""Significance tests between metrics: Williams' test, PERM-BOTH and the bootstrap.

Tests return one-sided p-values (metrics, metrics): entry [i, j] is small if metric i agrees
significantly better with the human scores than metric j. Williams' test is for Pearson's r,
PERM-BOTH for any statistic of scores, the bootstrap for values of `replicates`. Tests on pairs are
next to their statistics (`accuracy`, `systems`).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import combinations

import numpy as np
from numpy.typing import ArrayLike

from tertium.core.arrays import BoolArray, FloatArray
from tertium.core.resampling import can_enumerate, check_resamples, draw_swaps, p_value
from tertium.meta.agreement import Agreement, make_layout, to_float_array
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
    test = partial(_perm_both_block, resamples=resamples, rng=rng)
    return run_pairwise_test(human, metrics, test)


def _perm_both_block(
    human: FloatArray, metrics: FloatArray, resamples: int, rng: np.random.Generator
) -> FloatArray:
    h, x = standardize(human), standardize(metrics)  # (n,), (metrics, n)
    count, n = x.shape
    columns = np.concatenate([h * x, x, x * x]).T  # (n, 3 metrics)
    sums = np.concatenate([block @ columns for block in draw_swaps(n, resamples, rng)])
    products, plain, squares = np.split(sums, 3, axis=1)
    r = x @ h / n

    def mixed_r(a: int, b: int) -> FloatArray:
        """Return Pearson's r of metric b with some scores of a, from sums of hm, m and m^2."""
        product, total = products[:, a] - products[:, b] + n * r[b], plain[:, a] - plain[:, b]
        spread = squares[:, a] - squares[:, b] + n - total**2 / n
        spread = np.where(spread > 1e-12 * n, spread, np.nan)  # constant up to rounding
        mixed: FloatArray = product / np.sqrt(n * spread)
        return mixed

    def test(i: int, j: int) -> tuple[float, float]:
        return _tail_shares(mixed_r(i, j) - mixed_r(j, i), float(r[i] - r[j]), n, resamples)

    result = p_values_of_pairs(count, test)
    undefined = np.isnan(r)
    result[undefined] = result[:, undefined] = np.nan
    return result


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

    def test(i: int, j: int) -> tuple[float, float]:
        shared = ~np.isnan(human_scores) & ~np.isnan(stack[i]) & ~np.isnan(stack[j])
        known_scores = np.where(shared, human_scores, np.nan)
        first, second = (_standardize_at(stack[metric], shared) for metric in (i, j))
        values = statistic(known_scores, np.stack([first, second])).value
        observed, points = float(values[0] - values[1]), int(shared.sum())
        if np.isnan(observed):
            return np.nan, np.nan
        null = []
        for block in draw_swaps(points, resamples, rng):
            swap = np.zeros((len(block), *shared.shape), dtype=bool)
            swap[:, shared] = block == 1
            mixed = statistic(known_scores, np.where(swap, first, second)).value
            null.append(mixed - statistic(known_scores, np.where(swap, second, first)).value)
        return _tail_shares(np.concatenate(null), observed, points, resamples)

    return p_values_of_pairs(len(stack), test)


def p_values_of_pairs(count: int, test: Callable[[int, int], tuple[float, float]]) -> FloatArray:
    """Return the p-values of a test that returns both directions of two metrics."""
    result = np.ones((count, count))
    for i, j in combinations(range(count), 2):
        result[i, j], result[j, i] = test(i, j)
    return result


def bootstrap_p_values(replicates: FloatArray) -> FloatArray:
    """Return the share of resamples (plus one) in which metric i is not better than j."""

    def test(i: int, j: int) -> tuple[float, float]:
        difference = replicates[:, i] - replicates[:, j]
        difference = difference[~np.isnan(difference)]
        if not len(difference):
            return np.nan, np.nan
        # equal metrics on different scales differ by rounding
        losses = [int((gain <= 1e-12).sum()) for gain in (difference, -difference)]
        return p_value(losses[0], len(difference)), p_value(losses[1], len(difference))

    return p_values_of_pairs(replicates.shape[1], test)


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

    def run(chosen: list[int]) -> FloatArray:
        """Test metrics on the points that all of them score."""
        shared = present[chosen].all(axis=0)
        if shared.sum() < 2:
            return np.full((len(chosen), len(chosen)), np.nan)
        return test(human_scores[shared], scores[chosen][:, shared])

    def run_pair(i: int, j: int) -> tuple[float, float]:
        block = run([i, j])
        return float(block[0, 1]), float(block[1, 0])

    everything = [*range(len(scores))]
    if everything and (present == present[0]).all():
        return run(everything)
    return p_values_of_pairs(len(scores), run_pair)
