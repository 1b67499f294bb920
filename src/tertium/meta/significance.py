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
from tertium.errors import DataError, UsageError
from tertium.meta import pairwise
from tertium.meta.correlation import Agreement, Layout, correlate, finite, lay_out

Statistic = Callable[[FloatArray, FloatArray], Agreement]
BLOCK = 1 << 22  # numbers in memory at a time


def interval(replicates: FloatArray, confidence: float = 0.95) -> tuple[FloatArray, FloatArray]:
    """Percentile bounds of bootstrap values (samples, metrics), undefined samples left out.

    >>> [bound.round(2).tolist() for bound in interval(np.arange(101.0)[:, None], 0.9)]
    [[5.0], [95.0]]
    """
    if not 0.0 < confidence < 1.0:
        raise UsageError(f"a confidence level lies between 0 and 1, got {confidence}")
    bounds = np.full((2, replicates.shape[1]), np.nan)
    tail = (1.0 - confidence) / 2
    for metric, values in enumerate(replicates.T):
        defined = values[~np.isnan(values)]
        if len(defined):
            bounds[:, metric] = np.quantile(defined, [tail, 1.0 - tail])
    return bounds[0], bounds[1]


def bootstrap_p_values(replicates: FloatArray) -> FloatArray:
    """The share of samples (samples, metrics) in which metric i is not better than metric j.

    One more sample is counted on either side, so that no p-value is 0.
    """
    count = replicates.shape[1]
    result = np.ones((count, count))
    for i in range(count):
        for j in range(count):
            difference = replicates[:, i] - replicates[:, j]
            defined = ~np.isnan(difference)
            if i != j:
                known, losses = int(defined.sum()), int((difference[defined] <= 0).sum())
                result[i, j] = (1 + losses) / (1 + known) if known else np.nan
    return result


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


def wilson(right: ArrayLike, of: ArrayLike) -> FloatArray:
    """Wilson's 95 % bounds of shares right / of, (..., 2).

    >>> wilson(8, 10).round(3).tolist()
    [0.49, 0.943]
    """
    count, total = np.broadcast_arrays(np.asarray(right, float), np.asarray(of, float))
    z = 1.959963984540054  # the normal quantile of .975
    share = count / total
    middle = (share + z**2 / (2 * total)) / (1 + z**2 / total)
    half = z / (1 + z**2 / total) * np.sqrt(share * (1 - share) / total + z**2 / (4 * total**2))
    bounds: FloatArray = np.clip(np.stack([middle - half, middle + half], axis=-1), 0.0, 1.0)
    return bounds


def williams(human: ArrayLike, metrics: ArrayLike) -> FloatArray:
    """Williams' test of two correlations with the same human scores (Graham & Baldwin 2014).

    human is (points,) or (systems, segments), pooled; metrics (metrics, the same). With r12, r13
    the metrics' correlations with people, r23 the one between them, and n points:

        t = (r12 - r13) sqrt((n-1)(1+r23)) / sqrt(2K(n-1)/(n-3) + rbar^2 (1-r23)^3)
        K = 1 - r12^2 - r13^2 - r23^2 + 2 r12 r13 r23,   rbar = (r12 + r13) / 2

    which follows Student's t with n-3 degrees of freedom.
    """
    return _all_pairs(human, metrics, _williams_block)


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
    swaps whose difference of correlations is at least the observed one, the data as they are
    counted as one more swap. With swaps U (samples, n) and standardised metrics X, the three
    products U(hX), UX, UX^2 serve all pairs of metrics.
    """
    if samples < 1:
        raise UsageError(f"at least one permutation is needed, got {samples}")
    return _all_pairs(human, metrics, lambda h, m: _perm_both_block(h, m, samples, rng))


def _perm_both_block(
    human: FloatArray, metrics: FloatArray, samples: int, rng: np.random.Generator
) -> FloatArray:
    h, x = _standardise(human), _standardise(metrics)  # (n,), (metrics, n)
    count, n = x.shape
    columns = np.concatenate([h * x, x, x * x]).T  # (n, 3 metrics)
    products, plain, squares = np.split(_swapped_sums(columns, samples, rng), 3, axis=1)
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
            null, observed = mixed[0] - mixed[1], r[i] - r[j]
            result[i, j] = (1 + np.sum(null >= observed - 1e-12)) / (1 + samples)
            result[j, i] = (1 + np.sum(null <= observed + 1e-12)) / (1 + samples)
    undefined = np.isnan(r)
    result[undefined] = result[:, undefined] = np.nan
    return result


def _mixed_r(product: FloatArray, plain: FloatArray, squares: FloatArray, n: int) -> FloatArray:
    """Pearson's r of a mixture with standardised h from its sums of hm, m, m^2."""
    spread = np.maximum(squares - plain**2 / n, 0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        r: FloatArray = product / np.sqrt(n * spread)
    return r


def _swapped_sums(columns: FloatArray, samples: int, rng: np.random.Generator) -> FloatArray:
    """U @ columns for a random 0/1 matrix U (samples, n), drawn as bits, a block at a time."""
    n = len(columns)
    step = max(1, BLOCK // n)
    width = -(-n // 8)
    sums = []
    for start in range(0, samples, step):
        rows = min(step, samples - start)
        bits = np.frombuffer(rng.bytes(rows * width), dtype=np.uint8).reshape(rows, width)
        sums.append(np.unpackbits(bits, axis=1, count=n).astype(np.float64) @ columns)
    return np.concatenate(sums)


def _standardise(values: FloatArray) -> FloatArray:
    """Mean 0 and variance 1 along the last axis; NaN for a constant."""
    centred = values - values.mean(axis=-1, keepdims=True)
    constant = values.max(axis=-1, keepdims=True) == values.min(axis=-1, keepdims=True)
    spread = np.where(constant, np.nan, np.sqrt((centred**2).mean(axis=-1, keepdims=True)))
    result: FloatArray = centred / spread
    return result


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
    result[shared] = _standardise(values[shared]) if shared.any() else np.nan
    return result


def pair_test(
    layout: Layout, epsilon: ArrayLike = 0.0, *, samples: int = 10_000, rng: np.random.Generator
) -> FloatArray:
    """The paired permutation of pairs for acc_eq, exact where it can be.

    Of the pairs that just one of two metrics gets right, the null hypothesis gives each to either
    metric like a coin: where all pairs weigh the same, the number that metric i wins is binomial
    and the p-value exact. Where groups differ in size, pairs weigh 1 / (pairs of their group) and
    the sum of binomials over sizes is sampled.
    """
    return coin_p_values(*count_wins(layout, epsilon), samples=samples, rng=rng)


def count_wins(layout: Layout, epsilon: ArrayLike = 0.0) -> tuple[FloatArray, FloatArray]:
    """How many pairs metric i gets right and j wrong, (weights, metrics, metrics), and weights."""
    metrics, groups, n = layout.metrics.shape
    epsilons = np.broadcast_to(np.asarray(epsilon, dtype=np.float64), (metrics,))
    size = (~np.isnan(layout.human)).sum(axis=-1)
    sizes, kind = np.unique(size * (size - 1) // 2, return_inverse=True)
    wins = np.zeros((len(sizes), metrics, metrics))
    for i, j in pairwise.pair_blocks(n, groups * metrics):
        people = pairwise.order(layout.human.T[i] - layout.human.T[j])  # (block, groups)
        orders = np.stack(
            [
                pairwise.order(scores.T[i] - scores.T[j], float(epsilon))
                for scores, epsilon in zip(layout.metrics, epsilons, strict=True)
            ]
        )  # (metrics, block, groups)
        known = (people != pairwise.UNKNOWN) & (orders != pairwise.UNKNOWN)
        right, wrong = (orders == people) & known, (orders != people) & known
        for k in range(len(sizes)):
            sides = (side if len(sizes) == 1 else side[..., kind == k] for side in (right, wrong))
            a, b = (side.reshape(metrics, -1).astype(np.float32) for side in sides)
            wins[k] += a @ b.T
    used = sizes > 0
    weights: FloatArray = 1.0 / sizes[used]
    return wins[used], weights


def coin_p_values(
    wins: FloatArray, weights: FloatArray, *, samples: int = 10_000, rng: np.random.Generator
) -> FloatArray:
    """P(coins give metric i at least what it won) from wins (weights, metrics, metrics).

    >>> wins = np.array([[[0.0, 8.0], [2.0, 0.0]]])
    >>> coin_p_values(wins, np.ones(1), rng=np.random.default_rng(1)).round(4).tolist()
    [[1.0, 0.0547], [0.9893, 1.0]]
    """
    from scipy.stats import binom

    if not len(weights):
        raise DataError("no group has two judged points, so there is no pair to test")
    decided = wins + np.swapaxes(wins, 1, 2)
    if len(weights) == 1:
        exact: FloatArray = np.asarray(binom.sf(wins[0] - 1, decided[0], 0.5))
        return exact
    result = np.ones(wins.shape[1:])
    for i, j in zip(*np.nonzero(decided.sum(axis=0)), strict=True):
        n = decided[:, i, j].astype(np.int64)
        heads = rng.binomial(n, 0.5, size=(samples, len(n)))
        observed = float(weights @ wins[:, i, j])
        result[i, j] = (1 + np.sum(heads @ weights >= observed - 1e-9)) / (1 + samples)
    return result


def flip_p_values(
    errors: FloatArray, *, samples: int = 10_000, rng: np.random.Generator
) -> FloatArray:
    """Paired sign flips of what two metrics get wrong on each pair, errors (metrics, pairs).

    For statistics that are a mean over pairs of something finer than right or wrong, such as SPA.
    """
    from tertium.meta.systems import permutation_p_values

    count = len(errors)
    result = np.ones((count, count))
    signs: FloatArray = rng.choice([-1.0, 1.0], size=(samples, errors.shape[1]))
    for i in range(count):
        difference = errors - errors[i]  # positive where i is the better one
        unknown = np.isnan(difference)
        result[i] = permutation_p_values(np.where(unknown, 0.0, difference), signs)
        result[i, unknown.all(axis=1)] = np.nan
    np.fill_diagonal(result, 1.0)
    return result


def clusters(values: FloatArray, p_values: FloatArray, alpha: float = 0.05) -> list[int]:
    """The rank of each metric, shared by metrics that cannot be told apart (as mt-metrics-eval).

    From the best metric down, a new rank begins with the first metric that some metric of the
    current rank beats significantly. A metric without a value gets the rank after the last.

    >>> clusters(np.array([0.5, 0.9, 0.8]), np.array([[1, 1, 1], [0.01, 1, 0.3], [0.02, 1, 1]]))
    [2, 1, 1]
    """
    order = [int(m) for m in np.argsort(-values, kind="stable") if not np.isnan(values[m])]
    ranks = [0] * len(values)
    current: list[int] = []
    rank = 1
    for metric in order:
        if any(p_values[member, metric] < alpha for member in current):
            rank, current = rank + 1, []
        current.append(metric)
        ranks[metric] = rank
    last = rank + 1 if order else 1
    return [r or last for r in ranks]


def _all_pairs(
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
