"""Is one metric better than another, or might chance have it so? Williams' test and PERM-BOTH.

Each returns one-sided p-values (metrics, metrics): entry [i, j] is small where metric i agrees with
people significantly better than metric j. Williams' test is of Pearson's r, PERM-BOTH of any
statistic of scores; what begins with `finest` says how small a p can be at all, and `holm` adjusts
p-values of many tests. The bootstrap, which serves every statistic, is `correlation.bootstrap`;
tests on pairs lie beside their statistics (`accuracy`, `systems`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import ArrayLike

from tertium.arrays import BoolArray, FloatArray
from tertium.errors import UsageError
from tertium.meta.agreement import Agreement, Finest, finite, lay_out
from tertium.meta.correlation import correlate, standardise
from tertium.meta.replicates import BLOCK

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


def perm_both(
    human: ArrayLike, metrics: ArrayLike, *, samples: int = 1000, rng: np.random.Generator
) -> FloatArray:
    """PERM-BOTH for Pearson's r of pooled points (Deutsch et al. 2021).

    Both metrics are standardised; under the null hypothesis it does not matter which of the two
    gave which score, so each point swaps them with probability 1/2. The p-value is the share of
    swaps whose difference of correlations is at least the observed one. Of few points all swaps are
    looked at; of many as many as `samples`, the data as they are counted as one more. With swaps U
    (samples, n) and standardised metrics X, the three products U(hX), UX, UX^2 serve all pairs of
    metrics.
    """
    _check_samples(samples)
    return all_pairs(human, metrics, lambda h, m: _perm_both_block(h, m, samples, rng))


def _perm_both_block(
    human: FloatArray, metrics: FloatArray, samples: int, rng: np.random.Generator
) -> FloatArray:
    h, x = standardise(human), standardise(metrics)  # (n,), (metrics, n)
    count, n = x.shape
    columns = np.concatenate([h * x, x, x * x]).T  # (n, 3 metrics)
    sums = np.concatenate([block @ columns for block in _swaps(n, samples, rng)])
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
            result[i, j], result[j, i] = _shares(mixed[0] - mixed[1], observed, n, samples)
    undefined = np.isnan(r)
    result[undefined] = result[:, undefined] = np.nan
    return result


def _mixed_r(product: FloatArray, plain: FloatArray, squares: FloatArray, n: int) -> FloatArray:
    """Pearson's r of a mixture with standardised h from its sums of hm, m, m^2; NaN if constant."""
    spread = squares - plain**2 / n
    spread = np.where(spread > 1e-12 * n, spread, np.nan)  # of equal scores rounding is left
    r: FloatArray = product / np.sqrt(n * spread)
    return r


def perm_both_any(
    human: ArrayLike,
    metrics: ArrayLike,
    statistic: Statistic,
    *,
    samples: int = 1000,
    rng: np.random.Generator,
) -> FloatArray:
    """PERM-BOTH for any statistic of (human, metrics), which is computed anew for each swap."""
    _check_samples(samples)
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
    shared, null = ~np.isnan(human), []
    for block in _swaps(int(shared.sum()), samples, rng):
        swap = np.zeros((len(block), *human.shape), dtype=bool)
        swap[:, shared] = block == 1
        first = statistic(human, np.where(swap, two[0], two[1])).value
        null.append(first - statistic(human, np.where(swap, two[1], two[0])).value)
    return _shares(np.concatenate(null), observed, int(shared.sum()), samples)


def _swaps(points: int, samples: int, rng: np.random.Generator) -> Iterator[FloatArray]:
    """Which points swap, 1 or 0, (some, points): every way once where there are no more than
    `samples`, else as many of them, drawn as bits, a block at a time."""
    if _are_few(points, samples):
        ways = np.arange(2**points)[:, None] >> np.arange(points)
        yield (ways & 1).astype(np.float64)
        return
    step, width = max(1, BLOCK // points), -(-points // 8)
    for start in range(0, samples, step):
        rows = min(step, samples - start)
        bits = np.frombuffer(rng.bytes(rows * width), dtype=np.uint8).reshape(rows, width)
        yield np.unpackbits(bits, axis=1, count=points).astype(np.float64)


def _are_few(points: int, samples: int) -> bool:
    """Whether all 2^points swaps are no more than `samples`; of many, 2^points is no float."""
    return points < int(samples).bit_length()


def finest_swaps(human: FloatArray) -> Finest:
    """The smallest p of PERM-BOTH on such judgments: few points have few swaps."""
    points = int((~np.isnan(human)).sum())
    return lambda samples: 2.0**-points if _are_few(points, samples) else 1 / (1 + samples)


def finest_t(human: FloatArray, samples: int) -> float:
    """The smallest p of Williams' test on such judgments: it asks for four points."""
    return 0.0 if (~np.isnan(human)).sum() > 3 else 1.0


def undrawn_p(samples: int) -> float:
    """The smallest p of a test that draws nothing."""
    return 0.0


def _shares(null: FloatArray, observed: float, points: int, samples: int) -> tuple[float, float]:
    """How often swaps of points differ as much as what was observed, upwards and downwards.

    The data as they are are among all swaps, and one more beside those that were drawn. Swaps that
    leave a metric without a value are left out.
    """
    more = 0 if _are_few(points, samples) else 1
    null = null[~np.isnan(null)]
    above, below = (null >= observed - 1e-12).sum(), (null <= observed + 1e-12).sum()
    return float((more + above) / (more + len(null))), float((more + below) / (more + len(null)))


def _check_samples(samples: int) -> None:
    if samples < 1:
        raise UsageError(f"at least one permutation is needed, got {samples}")


def _standardise_at(values: FloatArray, shared: BoolArray) -> FloatArray:
    """Standardised where both are there, rounded so that equal scores of two metrics stay equal."""
    result = np.full(values.shape, np.nan)
    result[shared] = standardise(values[shared]).round(12) if shared.any() else np.nan
    return result


def all_pairs(
    human: ArrayLike, metrics: ArrayLike, test: Callable[[FloatArray, FloatArray], FloatArray]
) -> FloatArray:
    """Run a test of complete vectors: once where metrics score the same points, else by pair."""
    layout = lay_out(human, metrics)
    people, scores, present = layout.human[0], layout.metrics[:, 0], layout.present[:, 0]
    if len(scores) and (present == present[0]).all():
        if present[0].sum() < 2:
            return np.full((len(scores), len(scores)), np.nan)
        return test(people[present[0]], scores[:, present[0]])
    result = np.ones((len(scores), len(scores)))
    for i in range(len(scores)):
        for j in range(i + 1, len(scores)):
            both = present[i] & present[j]
            block = np.full((2, 2), np.nan)
            if both.sum() >= 2:
                block = test(people[both], scores[[i, j]][:, both])
            result[i, j], result[j, i] = block[0, 1], block[1, 0]
    return result
