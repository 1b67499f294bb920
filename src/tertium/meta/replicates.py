"""How statistics vary with what is drawn: their `Replicate`s, and the bootstrap, which draws.

    sums        `reduce(weights @ statistics)` (Pearson, statistics on pairs within units)
    values      the mean of one value a unit (whatever is averaged over groups)
    ranks       Spearman: ranks are running sums of weights in sorted order
    pairs       w' A w: statistics on pairs that cross units (tau-b, pooled accuracy, SPA)

Matrices are (rows, units); a unit is drawn with its whole column.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np

from tertium.arrays import BoolArray, Float32Array, FloatArray, IntArray, divide, mean_known
from tertium.errors import DataError, UsageError
from tertium.meta.agreement import Grouping, Layout, Replicate, lay_out
from tertium.meta.correlation import unit_scale
from tertium.scores import Reduce

PairMatrix = Callable[[slice], Float32Array]
Pooled = Callable[[FloatArray, FloatArray], Replicate]
BLOCK = 1 << 22  # numbers in memory at a time


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


def of_sums(statistics: FloatArray, reduce: Reduce) -> Replicate:
    """`reduce(weights @ statistics)` with statistics (metrics, units, k)."""
    return lambda weights: reduce(np.swapaxes(weights @ statistics, 0, 1))


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
    return centred * unit_scale(np.abs(centred).max(axis=(1, 2), keepdims=True, initial=0.0))


def _moments_to_r(sums: FloatArray) -> FloatArray:
    n, x, y, xx, yy, xy = np.moveaxis(sums, -1, 0)
    spread_x, spread_y = n * xx - x * x, n * yy - y * y
    # A sample of equal values leaves rounding, not variance.
    flat = (spread_x <= 1e-12 * n * xx) | (spread_y <= 1e-12 * n * yy)
    r = divide(n * xy - x * y, np.where(flat, 0.0, np.sqrt(np.abs(spread_x * spread_y))))
    return np.clip(r, -1.0, 1.0)  # which rounding may miss


def of_spearman(human: FloatArray, metrics: FloatArray) -> Replicate:
    """Spearman's rho of all cells, ranked anew in each sample."""
    parts = [(g, WeightedRanks(g.human)) for g in _shared_points(human, metrics)]

    def replicate(weights: FloatArray) -> FloatArray:
        result = np.full((len(weights), len(metrics)), np.nan)
        for points, people in parts:
            for rows in _row_blocks(len(weights), len(points.unit)):
                drawn = weights[rows][:, points.unit]  # (draws, cells)
                left, spread = people.centred_ranks(drawn) * drawn, people.spread(drawn)
                for metric, scores in zip(points.metrics, points.scores, strict=True):
                    ranked = WeightedRanks(scores)
                    top = np.einsum("dc,dc->d", left, ranked.centred_ranks(drawn))
                    below = np.sqrt(spread * ranked.spread(drawn))
                    result[rows, metric] = np.clip(divide(top, below), -1.0, 1.0)
        return result

    return replicate


class WeightedRanks:
    """Mid-ranks of fixed values under weights: a cell weighs as if it occurred that often.

    >>> WeightedRanks(np.array([3.0, 1.0, 2.0])).centred_ranks(np.array([[1.0, 2.0, 1.0]]))
    array([[ 1.5, -1. ,  0.5]])
    """

    def __init__(self, values: FloatArray) -> None:
        self.order = np.argsort(values, kind="stable")
        ordered = values[self.order]
        fresh = np.append(True, ordered[1:] != ordered[:-1])[: len(ordered)]
        self.starts = np.flatnonzero(fresh)  # where runs of equal values begin
        self.run_of = np.empty(len(values), dtype=np.int64)
        self.run_of[self.order] = np.cumsum(fresh) - 1

    def runs(self, weights: FloatArray) -> FloatArray:
        """The weight of each run of equal values, (draws, runs)."""
        ordered: FloatArray = weights[:, self.order]
        if len(self.starts) == len(self.order):
            return ordered
        return np.add.reduceat(ordered, self.starts, axis=1)

    def centred_ranks(self, weights: FloatArray) -> FloatArray:
        """Ranks less their mean, (draws, cells)."""
        runs = self.runs(weights)
        middle = np.cumsum(runs, axis=1) - runs / 2 - runs.sum(axis=1, keepdims=True) / 2
        ranks: FloatArray = middle[:, self.run_of]
        return ranks

    def spread(self, weights: FloatArray) -> FloatArray:
        """The sum of squared centred ranks, (W^3 - sum of t^3 over runs of weight t) / 12."""
        runs = self.runs(weights)
        result: FloatArray = (runs.sum(axis=1) ** 3 - (runs**3).sum(axis=1)) / 12
        return result

    def untied_weight(self, weights: FloatArray) -> FloatArray:
        """Twice the weighted number of pairs that are not tied, (draws,)."""
        runs = self.runs(weights)
        result: FloatArray = runs.sum(axis=1) ** 2 - np.einsum("dr,dr->d", runs, runs)
        return result


def of_kendall_b(human: FloatArray, metrics: FloatArray) -> Replicate:
    """Kendall's tau-b of all cells: w' (sign H * sign M) w over the untied pairs."""

    def taus(points: Points, drawn: FloatArray) -> Iterator[FloatArray]:
        untied = WeightedRanks(points.human).untied_weight(drawn)
        for scores in points.scores:
            top = quadratic(_same_order(points.human, scores), drawn)
            below = np.sqrt(untied * WeightedRanks(scores).untied_weight(drawn))
            yield np.clip(divide(top, below), -1.0, 1.0)

    return of_points(human, metrics, taus)


def _same_order(human: FloatArray, scores: FloatArray) -> PairMatrix:
    """+1 for a concordant pair of cells, -1 for a discordant one, 0 for a tie."""

    def matrix(rows: slice) -> Float32Array:
        product = np.sign(human[rows, None] - human) * np.sign(scores[rows, None] - scores)
        return product.astype(np.float32)

    return matrix


def of_matrix(agreement: FloatArray, eligible: FloatArray) -> Replicate:
    """w' A w / w' E w with A, E (metrics, units, units), symmetric and zero on the diagonal."""

    def replicate(weights: FloatArray) -> FloatArray:
        top = [quadratic(_rows_of(a), weights) for a in agreement]
        below = [quadratic(_rows_of(e), weights) for e in eligible]
        return divide(np.stack(top, axis=1), np.stack(below, axis=1))

    return replicate


def _rows_of(matrix: FloatArray) -> PairMatrix:
    return lambda rows: matrix[rows].astype(np.float32)


def quadratic(matrix: PairMatrix, weights: FloatArray) -> FloatArray:
    """w' A w for each row of weights (draws, n), A given a few rows at a time, (draws,).

    Single precision is exact for counts: entries of A are -1, 0 or 1, and weights are small.
    """
    n = weights.shape[1]
    light = weights.astype(np.float32)
    total = np.zeros(len(weights))
    for rows in _row_blocks(n, n):
        product = light @ matrix(rows).T  # (draws, rows)
        total += np.einsum("dr,dr->d", product, weights[:, rows])
    return total


@dataclass(frozen=True, eq=False)
class Points:
    """The cells that some metrics share: their values and the unit each belongs to."""

    metrics: list[int]
    human: FloatArray  # (cells,)
    scores: FloatArray  # (metrics, cells)
    unit: IntArray  # (cells,)


def _shared_points(human: FloatArray, metrics: FloatArray) -> list[Points]:
    """Metrics grouped by where they have values; usually there is one group."""
    groups: dict[bytes, list[int]] = {}
    present = ~np.isnan(human) & ~np.isnan(metrics)
    for metric, mask in enumerate(present):
        groups.setdefault(mask.tobytes(), []).append(metric)
    return [
        Points(
            same,
            human[present[same[0]]],
            metrics[same][:, present[same[0]]],
            np.nonzero(present[same[0]])[1],
        )
        for same in groups.values()
    ]


def of_points(
    human: FloatArray,
    metrics: FloatArray,
    values: Callable[[Points, FloatArray], Iterator[FloatArray]],
) -> Replicate:
    """What `values` makes of the weights of shared cells (draws, cells), metric by metric."""
    groups = _shared_points(human, metrics)

    def replicate(weights: FloatArray) -> FloatArray:
        result = np.full((len(weights), len(metrics)), np.nan)
        for points in groups:
            own = values(points, weights[:, points.unit])
            for metric, column in zip(points.metrics, own, strict=True):
                result[:, metric] = column
        return result

    return replicate


def _row_blocks(count: int, width: int) -> Iterator[slice]:
    step = max(1, BLOCK // max(1, width))
    for start in range(0, count, step):
        yield slice(start, min(count, start + step))
