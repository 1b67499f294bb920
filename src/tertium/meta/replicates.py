"""Bootstrap replicates: each statistic as a function of resampling weights.

    sums        `reduce(weights @ statistics)` (Pearson, statistics on pairs within units)
    means       the mean of one value per unit (statistics averaged over groups)
    ranks       Spearman: ranks are cumulative weights in sorted order
    pairs       w' A w: statistics on pairs across units (tau-b, pooled accuracy, SPA)

Matrices are (rows, units); a unit is drawn with its whole column.

Significance tests between metrics: Williams' test, PERM-BOTH and the bootstrap.

Tests return one-sided p-values (metrics, metrics): entry [i, j] is small if metric i agrees
significantly better with the human scores than metric j. Williams' test and PERM-BOTH are for
Pearson's r of pooled points, the bootstrap for values of `replicates`. Tests on pairs are next to
their statistics (`accuracy`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import combinations
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from tertium.core.arrays import (
    BoolArray,
    Float32Array,
    FloatArray,
    IntArray,
    divide,
    iterate_blocks,
    nan_mean,
)
from tertium.core.errors import DataError
from tertium.core.resampling import (
    can_enumerate,
    check_resamples,
    draw_counts,
    draw_swaps,
    p_value,
)
from tertium.core.scores import Reduce
from tertium.meta.agreement import (
    Grouping,
    Replicate,
    correlate,
    make_layout,
    standardize,
    unit_scale,
)

PairMatrix = Callable[[slice], Float32Array]
Pooled = Callable[[FloatArray, FloatArray], Replicate]


def bootstrap(
    replicate: Replicate, units: Sequence[int], *, resamples: int, rng: np.random.Generator
) -> FloatArray:
    """Return the values of bootstrap samples within strata of `units`, (resamples, metrics)."""
    if not units or min(units) < 1:
        raise DataError("the bootstrap needs at least one judged unit in each set")
    blocks = iterate_blocks(resamples, sum(units))
    sizes = [block.stop - block.start for block in blocks]
    return np.concatenate([replicate(draw_counts(units, size, rng)) for size in sizes])


def sums_replicate(statistics: FloatArray, reduce: Reduce) -> Replicate:
    """Return `reduce(weights @ statistics)` for statistics (metrics, units, k)."""
    return lambda weights: reduce(np.swapaxes(weights @ statistics, 0, 1))


def means_replicate(values: FloatArray) -> Replicate:
    """Return the weighted mean of the defined values, values (metrics, units)."""
    defined = ~np.isnan(values)
    filled = np.where(defined, values, 0.0).T
    return lambda weights: divide(weights @ filled, weights @ defined.T.astype(np.float64))


def grouped_replicate(
    human: FloatArray, scores: FloatArray, grouping: Grouping, pool: Pooled, values: FloatArray
) -> Replicate:
    """Return the replicate of a grouped statistic when columns (items) are resampled.

    `values` are those of the groups, (metrics, groups).
    """
    if grouping == "none":
        return pool(human, scores)
    if grouping == "item":
        return means_replicate(values)
    parts = [pool(human[r : r + 1], scores[:, r : r + 1]) for r in range(len(human))]
    return lambda weights: nan_mean(np.stack([part(weights) for part in parts], axis=-1))


def pearson_replicate(human: FloatArray, metrics: FloatArray) -> Replicate:
    """Return the replicate of Pearson's r: human (rows, units), metrics (metrics, rows, units)."""
    present = ~np.isnan(human) & ~np.isnan(metrics)
    x = _center_cells(human, present)
    y = _center_cells(metrics, present)
    columns = (present * 1.0, x, y, x * x, y * y, x * y)
    return sums_replicate(np.stack([c.sum(axis=1) for c in columns], axis=-1), _moments_to_r)


def _center_cells(values: FloatArray, present: BoolArray) -> FloatArray:
    """Subtract the mean of the present cells and scale to about 1; zero elsewhere."""
    filled = np.where(present, values, 0.0)
    mean = divide(filled.sum(axis=(1, 2)), present.sum(axis=(1, 2)))[:, None, None]
    centered = np.where(present, filled - mean, 0.0)
    return centered * unit_scale(np.abs(centered).max(axis=(1, 2), keepdims=True, initial=0.0))


def _moments_to_r(sums: FloatArray) -> FloatArray:
    n, x, y, xx, yy, xy = np.moveaxis(sums, -1, 0)
    spread_x = n * xx - x * x
    spread_y = n * yy - y * y
    # The variance of equal values is not 0 but a rounding error.
    flat = (spread_x <= 1e-12 * n * xx) | (spread_y <= 1e-12 * n * yy)
    r = divide(n * xy - x * y, np.where(flat, 0.0, np.sqrt(np.abs(spread_x * spread_y))))
    return np.clip(r, -1.0, 1.0)  # rounding may exceed the bounds


def spearman_replicate(human: FloatArray, metrics: FloatArray) -> Replicate:
    """Return the replicate of Spearman's rho; each sample is ranked again."""

    def correlations(cells: SharedCells, drawn: FloatArray) -> Iterator[FloatArray]:
        human_ranks = WeightedRanks(cells.human)
        left = human_ranks.centered_ranks(drawn) * drawn
        spread = human_ranks.spread(drawn)
        for scores in cells.scores:
            ranked = WeightedRanks(scores)
            top = np.einsum("dc,dc->d", left, ranked.centered_ranks(drawn))
            below = np.sqrt(spread * ranked.spread(drawn))
            yield np.clip(divide(top, below), -1.0, 1.0)

    return shared_cells_replicate(human, metrics, correlations)


class WeightedRanks:
    """Mid-ranks of fixed values, where a cell counts as often as its weight says.

    >>> WeightedRanks(np.array([3.0, 1.0, 2.0])).centered_ranks(np.array([[1.0, 2.0, 1.0]]))
    array([[ 1.5, -1. ,  0.5]])
    """

    def __init__(self, values: FloatArray) -> None:
        _, self.run_of, counts = np.unique(values, return_inverse=True, return_counts=True)
        self.order = np.argsort(self.run_of, kind="stable")
        self.starts = np.cumsum(counts) - counts  # of the runs of equal values

    def runs(self, weights: FloatArray) -> FloatArray:
        """Return the weight of each run of equal values, (resamples, runs)."""
        return np.add.reduceat(weights[:, self.order], self.starts, axis=1)

    def centered_ranks(self, weights: FloatArray) -> FloatArray:
        """Return the ranks minus their mean, (resamples, cells)."""
        runs = self.runs(weights)
        middle: FloatArray = np.cumsum(runs, axis=1) - runs / 2 - runs.sum(axis=1)[:, None] / 2
        return middle[:, self.run_of]

    def spread(self, weights: FloatArray) -> FloatArray:
        """Return the sum of squared centered ranks, (W^3 - sum of t^3 over runs) / 12."""
        return self.power_difference(weights, 3) / 12

    def power_difference(self, weights: FloatArray, power: int) -> FloatArray:
        """Return the power of the sum of runs minus the sum of their powers, (resamples,).

        The difference of squares is twice the weighted number of untied pairs.
        """
        runs = self.runs(weights)
        difference: FloatArray = runs.sum(axis=1) ** power - (runs**power).sum(axis=1)
        return difference


def kendall_b_replicate(human: FloatArray, metrics: FloatArray) -> Replicate:
    """Return the replicate of Kendall's tau-b: w' (sign H * sign M) w over the untied pairs."""

    def taus(cells: SharedCells, drawn: FloatArray) -> Iterator[FloatArray]:
        untied = WeightedRanks(cells.human).power_difference(drawn, 2)
        for scores in cells.scores:
            top = quadratic_form(partial(_same_order, cells.human, scores), drawn)
            below = np.sqrt(untied * WeightedRanks(scores).power_difference(drawn, 2))
            yield np.clip(divide(top, below), -1.0, 1.0)

    return shared_cells_replicate(human, metrics, taus)


def _same_order(human: FloatArray, scores: FloatArray, rows: slice) -> Float32Array:
    """Return +1 for a concordant pair of cells, -1 for a discordant one, 0 for a tie."""
    product = np.sign(human[rows, None] - human) * np.sign(scores[rows, None] - scores)
    return product.astype(np.float32)


def pair_matrix_replicate(agreement: FloatArray, eligible: FloatArray) -> Replicate:
    """Return w' A w / w' E w for A, E (metrics, units, units), symmetric with zero diagonals."""

    def total(matrices: FloatArray, weights: FloatArray) -> FloatArray:
        singles = matrices.astype(np.float32)
        return np.stack([quadratic_form(own.__getitem__, weights) for own in singles], axis=1)

    return lambda weights: divide(total(agreement, weights), total(eligible, weights))


def quadratic_form(matrix: PairMatrix, weights: FloatArray) -> FloatArray:
    """Compute w' A w for each row of weights (resamples, n); float32 is exact for small counts."""
    n = weights.shape[1]
    single = weights.astype(np.float32)
    total = np.zeros(len(weights))
    for rows in iterate_blocks(n, n):
        product = single @ matrix(rows).T  # (resamples, rows)
        total += np.einsum("dr,dr->d", product, weights[:, rows])
    return total


class SharedCells(NamedTuple):
    """The cells that a group of metrics share: their values and the unit of each cell."""

    metrics: list[int]
    human: FloatArray  # (cells,)
    scores: FloatArray  # (metrics, cells)
    unit: IntArray  # (cells,)


def shared_cells_replicate(
    human: FloatArray,
    metrics: FloatArray,
    values: Callable[[SharedCells, FloatArray], Iterator[FloatArray]],
) -> Replicate:
    """Apply `values` to the weights of shared cells (resamples, cells), metric by metric.

    Metrics share the cells where they have values; usually there is one group of metrics.
    """
    present = ~np.isnan(human) & ~np.isnan(metrics)
    members: dict[bytes, list[int]] = {}
    for metric, mask in enumerate(present):
        members.setdefault(mask.tobytes(), []).append(metric)
    groups = []
    for same in members.values():
        mask = present[same[0]]
        groups.append(SharedCells(same, human[mask], metrics[same][:, mask], np.nonzero(mask)[1]))

    def replicate(weights: FloatArray) -> FloatArray:
        result = np.full((len(weights), len(metrics)), np.nan)
        for cells in groups:
            for rows in iterate_blocks(len(weights), len(cells.unit)):
                columns = values(cells, weights[rows][:, cells.unit])
                for metric, column in zip(cells.metrics, columns, strict=True):
                    result[rows, metric] = column
        return result

    return replicate


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
    h = standardize(human)
    x = standardize(metrics)  # (n,), (metrics, n)
    count, n = x.shape
    columns = np.concatenate([h * x, x, x * x]).T  # (n, 3 metrics)
    sums = np.concatenate([block @ columns for block in draw_swaps(n, resamples, rng)])
    products, plain, squares = np.split(sums, 3, axis=1)
    r = x @ h / n

    def mixed_r(a: int, b: int) -> FloatArray:
        """Return Pearson's r of metric b with some scores of a, from sums of hm, m and m^2."""
        product = products[:, a] - products[:, b] + n * r[b]
        total = plain[:, a] - plain[:, b]
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
    above = (null >= observed - 1e-12).sum()
    below = (null <= observed + 1e-12).sum()
    total = extra + len(null)
    return float((extra + above) / total), float((extra + below) / total)


def run_pairwise_test(
    human: ArrayLike, metrics: ArrayLike, test: Callable[[FloatArray, FloatArray], FloatArray]
) -> FloatArray:
    """Run a test on complete vectors: once if all metrics score the same points, else by pair."""
    layout = make_layout(human, metrics)
    human_scores = layout.human[0]
    scores = layout.metrics[:, 0]
    present = layout.present[:, 0]

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
