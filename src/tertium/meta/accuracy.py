"""Pairwise accuracy in which ties must be predicted (Deutsch et al. 2023): values, draws, tests.

    acc_eq = (C + T_hm) / (C + D + T_h + T_m + T_hm)

of the counts of `pairwise`, in each group, averaged over groups that have a pair.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np
from numpy.typing import ArrayLike

from tertium.arrays import BoolArray, Float32Array, FloatArray, divide
from tertium.errors import DataError
from tertium.meta import pairwise
from tertium.meta.agreement import (
    Agreement,
    Grouping,
    Layout,
    Measured,
    Replicate,
    average_groups,
    lay_out,
)
from tertium.meta.pairwise import (
    MISSING,
    UNKNOWN,
    check_epsilon,
    count_groups,
    order,
    pair_blocks,
)
from tertium.meta.replicates import PairMatrix, Points, by_group, of_points, quadratic
from tertium.meta.significance import finest_swaps, perm_both_any, undrawn_p


def acc_eq(
    human: ArrayLike, metrics: ArrayLike, *, by: Grouping = "item", epsilon: float = 0.0
) -> Agreement:
    """acc_eq, a metric difference of at most `epsilon` being a tie.

    >>> float(acc_eq([[1, 5], [1, 3], [2, 4]], [[7, 3], [7, 1], [9, 9]])).__round__(6)
    0.833333
    """
    layout = lay_out(human, metrics, by)
    return average_accuracy(layout, np.full(len(layout.metrics), check_epsilon(epsilon)))


def acc_eq_calibrated(human: ArrayLike, metrics: ArrayLike, *, by: Grouping = "item") -> Agreement:
    """acc_eq*: acc_eq under the tie threshold that serves the metric best (Deutsch et al. 2023).

    One epsilon, shared by all groups, maximises acc_eq; the candidates are 0 and every difference
    the metric makes. `epsilon` of the result tells which was chosen (the smallest of the best).

    >>> result = acc_eq_calibrated([[1, 5], [1, 3]], [[0.50, 0.9], [0.52, 0.1]])
    >>> float(result), round(float(result.epsilon), 2)
    (1.0, 0.02)
    """
    layout = lay_out(human, metrics, by)
    return average_accuracy(layout, np.array([calibrate(layout, m) for m in layout.metrics]))


def average_accuracy(layout: Layout, epsilon: FloatArray) -> Agreement:
    """acc_eq with one epsilon for each metric, averaged over groups."""
    counts = count_groups(layout, epsilon=epsilon)  # (metrics, groups, 6)
    judged = counts[0].sum(axis=-1) if len(counts) else np.zeros(0)
    averaged = average_groups(layout, pairwise.accuracy(counts))
    undefined = int((judged > 0).sum()) - (counts[..., :MISSING].sum(axis=-1) > 0).sum(axis=-1)
    return Agreement(
        value=averaged.value,
        judged=int(judged.sum()),
        used=counts[..., :MISSING].sum(axis=(1, 2)).astype(np.int64).reshape(layout.shape),
        groups=int((judged > 0).sum()),
        undefined=undefined.reshape(layout.shape),
        epsilon=epsilon.reshape(layout.shape),
    )


def calibrate(layout: Layout, metric: FloatArray) -> float:
    """The epsilon that maximises average acc_eq of one metric, (groups, points).

    Raising epsilon past a pair's difference makes it a tie, which is a gain where people tie and a
    loss where the pair was concordant, so one sort and a running sum try every candidate.
    """
    sizes, ties, gains = [np.zeros(0)], [np.zeros(0, dtype=bool)], [np.zeros(0)]
    weights = _pair_weights(layout.human, metric)
    alike = len(np.unique(weights)) < 2
    for i, j in pair_blocks(layout.human.shape[1], len(layout.human)):
        people = order(layout.human.T[i] - layout.human.T[j])  # (block, groups)
        difference = metric.T[i] - metric.T[j]
        scores = order(difference)
        decided = (scores & 1).view(bool)  # neither a tie nor unknown
        changes = decided & ((people == scores) | (people == 0))
        sizes.append(np.abs(difference[changes]))
        ties.append(people[changes] == 0)
        if not alike:
            own = np.broadcast_to(weights, changes.shape)[changes]
            gains.append(np.where(ties[-1], own, -own))
    if alike:
        return _best_threshold(*_order_alike(np.concatenate(sizes), np.concatenate(ties)))
    return _best_threshold(*_order_gains(np.concatenate(sizes), np.concatenate(gains)))


def _pair_weights(human: FloatArray, metric: FloatArray) -> FloatArray:
    """What one pair weighs in the average over groups: 1 / pairs of its group, (groups,)."""
    n = (~np.isnan(human) & ~np.isnan(metric)).sum(axis=-1)
    return divide(1.0, np.maximum(n * (n - 1) / 2, 1.0))


def _order_alike(sizes: FloatArray, ties: BoolArray) -> tuple[FloatArray, FloatArray]:
    """Differences in order and the running gain, where all pairs weigh the same.

    The bits of floats from 0 up are in order, and the one for the sign is free to carry the tie:
    such keys are sorted several times as fast as places are.
    """
    keys = np.sort((sizes.view(np.uint64) << np.uint64(1)) | ties)
    gains = 2.0 * (keys & np.uint64(1)) - 1.0
    return (keys >> np.uint64(1)).view(np.float64), np.cumsum(gains)


def _order_gains(sizes: FloatArray, gains: FloatArray) -> tuple[FloatArray, FloatArray]:
    order = np.argsort(sizes)
    return sizes[order], np.cumsum(gains[order])


def _best_threshold(ordered: FloatArray, running: FloatArray) -> float:
    ends = np.flatnonzero(np.append(ordered[1:] != ordered[:-1], True)[: len(ordered)])
    if not len(ends) or running[ends].max() <= 1e-9:
        return 0.0
    # Equal sums differ by rounding; the smallest epsilon among the best is the one to report.
    best = ends[np.argmax(running[ends] >= running[ends].max() - 1e-9)]
    return float(ordered[best])


def of_accuracy(human: FloatArray, metrics: FloatArray, epsilon: FloatArray) -> Replicate:
    """Pairwise accuracy over all pairs of distinct cells, ties within epsilon (metrics,)."""

    def shares(points: Points, drawn: FloatArray) -> Iterator[FloatArray]:
        below = drawn.sum(axis=1) ** 2 - np.einsum("dc,dc->d", drawn, drawn)
        for metric, scores in zip(points.metrics, points.scores, strict=True):
            matrix = _same_outcome(points.human, scores, float(epsilon[metric]))
            yield divide(quadratic(matrix, drawn), below)

    return of_points(human, metrics, shares)


def _same_outcome(human: FloatArray, scores: FloatArray, epsilon: float) -> PairMatrix:
    """1 where the metric makes of a pair of distinct cells what people make of it, else 0."""

    def matrix(rows: slice) -> Float32Array:
        difference = scores[rows, None] - scores
        order = np.where(np.abs(difference) <= epsilon, 0.0, np.sign(difference))
        people = np.sign(human[rows, None] - human)
        right: Float32Array = (people == order).astype(np.float32)
        right[np.arange(len(right)), np.arange(len(human))[rows]] = 0.0
        return right

    return matrix


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
    for i, j in pair_blocks(n, groups * metrics):
        people = order(layout.human.T[i] - layout.human.T[j])  # (block, groups)
        orders = np.stack(
            [
                order(scores.T[i] - scores.T[j], float(epsilon))
                for scores, epsilon in zip(layout.metrics, epsilons, strict=True)
            ]
        )  # (metrics, block, groups)
        known = (people != UNKNOWN) & (orders != UNKNOWN)
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
        return np.asarray(binom.sf(wins[0] - 1, decided[0], 0.5))
    result = np.ones(wins.shape[1:])
    for i, j in zip(*np.nonzero(decided.sum(axis=0)), strict=True):
        n = decided[:, i, j].astype(np.int64)
        heads = rng.binomial(n, 0.5, size=(samples, len(n)))
        observed = float(weights @ wins[:, i, j])
        result[i, j] = (1 + np.sum(heads @ weights >= observed - 1e-9)) / (1 + samples)
    return result


def measure_accuracy(
    human: FloatArray, scores: FloatArray, by: Grouping, *, calibrated: bool
) -> Measured:
    function = partial(acc_eq_calibrated if calibrated else acc_eq, by=by)
    agreement = function(human, scores)
    epsilon = np.asarray(agreement.epsilon)
    laid_out = lay_out(human, scores, by)
    judged = (~np.isnan(laid_out.human)).sum(axis=-1)
    alike = len(np.unique(judged[judged > 1])) < 2  # groups, so that pairs need not be drawn

    def group_values(layout: Layout) -> FloatArray:
        return pairwise.accuracy(count_groups(layout, epsilon=epsilon))

    def pool(people: FloatArray, metrics: FloatArray) -> Replicate:
        return of_accuracy(people, metrics, epsilon)

    return Measured(
        agreement=agreement,
        replicate=by_group(human, scores, by, pool, group_values),
        strata=(human.shape[1],),
        tests={
            "pairs": partial(pair_test, laid_out, epsilon),
            "perm-both": partial(perm_both_any, human, scores, function),
        },
        finest={"perm-both": finest_swaps(human), **({"pairs": undrawn_p} if alike else {})},
    )
