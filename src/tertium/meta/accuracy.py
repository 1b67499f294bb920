"""Pairwise accuracy with ties, acc_eq (Deutsch et al. 2023): values, bootstrap and tests.

    acc_eq = (C + T_hm) / (C + D + T_h + T_m + T_hm)

computed from the counts of `pairwise` in each group and averaged over groups with a pair.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial

import numpy as np
from numpy.typing import ArrayLike

from tertium.core.arrays import Float32Array, FloatArray, divide, iterate_blocks
from tertium.core.errors import DataError, LengthError
from tertium.core.resampling import check_resamples, draw_heads, draw_signs, p_value
from tertium.meta import pairwise
from tertium.meta.agreement import (
    Agreement,
    Grouping,
    Layout,
    Measurement,
    Replicate,
    TestFunction,
    average_groups,
    make_layout,
    make_pooled_agreement,
)
from tertium.meta.aligned_scores import AlignedScores
from tertium.meta.pairwise import (
    MISSING,
    UNKNOWN,
    check_epsilon,
    compare_pairs,
    count_groups,
    pair_differences,
    preference_signs,
)
from tertium.meta.replicates import (
    SharedCells,
    pair_matrix_replicate,
    quadratic_form,
    shared_cells_replicate,
)


def acc_eq(
    human: ArrayLike, metrics: ArrayLike, *, grouping: Grouping = "item", epsilon: float = 0.0
) -> Agreement:
    """Compute acc_eq, where a metric difference of at most `epsilon` is a tie.

    >>> float(acc_eq([[1, 5], [1, 3], [2, 4]], [[7, 3], [7, 1], [9, 9]])).__round__(6)
    0.833333
    """
    layout = make_layout(human, metrics, grouping)
    agreement, _ = average_accuracy(layout, np.full(len(layout.metrics), check_epsilon(epsilon)))
    return agreement


def acc_eq_calibrated(
    human: ArrayLike, metrics: ArrayLike, *, grouping: Grouping = "item"
) -> Agreement:
    """Compute acc_eq*: acc_eq with the best tie threshold of each metric (Deutsch et al. 2023).

    One epsilon per metric, shared by all groups, maximizes acc_eq. Candidates are 0 and every
    difference of the metric. `epsilon` of the result is the smallest of the best candidates.

    >>> result = acc_eq_calibrated([[1, 5], [1, 3]], [[0.50, 0.9], [0.52, 0.1]])
    >>> float(result), round(float(result.epsilon), 2)
    (1.0, 0.02)
    """
    layout = make_layout(human, metrics, grouping)
    agreement, _ = average_accuracy(layout, calibrate_all(layout))
    return agreement


def average_accuracy(layout: Layout, epsilon: FloatArray) -> tuple[Agreement, FloatArray]:
    """Compute acc_eq with one epsilon per metric, averaged over groups and (metrics, groups)."""
    counts = count_groups(layout, epsilon=epsilon)  # (metrics, groups, 6)
    used = counts[..., :MISSING].sum(axis=-1)  # (metrics, groups)
    judged_counts = counts.sum(axis=-1).max(axis=0, initial=0)  # the same for all metrics
    groups = int((judged_counts > 0).sum())
    values = pairwise.accuracy(counts)
    agreement = replace(
        average_groups(layout, values),
        judged_count=int(judged_counts.sum()),
        used=used.sum(axis=-1).astype(np.int64).reshape(layout.shape),
        groups=groups,
        undefined=(groups - (used > 0).sum(axis=-1)).reshape(layout.shape),
        epsilon=epsilon.reshape(layout.shape),
    )
    return agreement, values


def calibrate_all(layout: Layout) -> FloatArray:
    """Return the best epsilon of each metric, (metrics,)."""
    layouts = [layout._replace(metrics=scores[None]) for scores in layout.metrics]
    return np.array([calibrate(own) for own in layouts])


def calibrate(layout: Layout) -> float:
    """Find the epsilon that maximizes the average acc_eq of the only metric.

    A pair with a smaller difference is a tie, so one sort and a cumulative sum are enough.
    """
    sizes = [np.zeros(0)]
    gains = [np.zeros(0)]
    points = layout.present[0].sum(axis=-1)  # of each group
    weights = divide(1.0, np.maximum(points * (points - 1) / 2, 1.0))
    is_uniform = len(np.unique(weights)) == 1
    if is_uniform:
        weights = np.ones(len(weights))
    for human_differences, (difference,) in pair_differences(layout):  # (pairs, groups)
        human = preference_signs(human_differences)
        scores = preference_signs(difference)
        is_decided = (scores & 1).view(bool)  # neither tied nor unknown
        changes = is_decided & ((human == scores) | (human == 0))
        sizes.append(np.abs(difference[changes]))
        gains.append(np.where(human == 0, weights, -weights)[changes])
    all_sizes = np.concatenate(sizes)
    all_gains = np.concatenate(gains)
    if is_uniform:
        # Sorting numbers is faster than sorting their places. Sizes sort like their bits; the sign
        # bit is free, and a shift makes it the last bit, which holds the gain.
        keys = np.sort(all_sizes.view(np.uint64) * 2 + (all_gains > 0))
        ordered = (keys >> 1).view(np.float64)
        all_gains = np.where(keys & 1, 1.0, -1.0)
    else:
        order = np.argsort(all_sizes)
        ordered = all_sizes[order]
        all_gains = all_gains[order]
    running = np.cumsum(all_gains)
    ends = np.flatnonzero(np.append(ordered[1:] != ordered[:-1], True)[: len(ordered)])
    if not len(ends) or running[ends].max() <= 1e-9:
        return 0.0
    # Equal sums differ by rounding; report the smallest of the best candidates.
    best = ends[np.argmax(running[ends] >= running[ends].max() - 1e-9)]
    return float(ordered[best])


def accuracy_replicate(human: FloatArray, metrics: FloatArray, epsilon: FloatArray) -> Replicate:
    """Return the replicate of accuracy over all pairs of cells; `epsilon` is (metrics,)."""

    def shares(points: SharedCells, drawn: FloatArray) -> Iterator[FloatArray]:
        below = drawn.sum(axis=1) ** 2 - np.einsum("dc,dc->d", drawn, drawn)
        for scores, threshold in zip(points.scores, epsilon[points.metrics], strict=True):
            matrix = partial(_same_outcome, points.human, scores, float(threshold))
            yield divide(quadratic_form(matrix, drawn), below)

    return shared_cells_replicate(human, metrics, shares)


def _same_outcome(
    human: FloatArray, scores: FloatArray, epsilon: float, rows: slice
) -> Float32Array:
    """Return 1 where metric and human scores agree on a pair of distinct cells, else 0."""
    difference = scores[rows, None] - scores
    signs = np.where(np.abs(difference) <= epsilon, 0.0, np.sign(difference))
    human_signs = np.sign(human[rows, None] - human)
    right: Float32Array = (human_signs == signs).astype(np.float32)
    right[np.arange(len(right)), np.arange(len(human))[rows]] = 0.0
    return right


def accuracy_pair_test(
    layout: Layout, epsilon: ArrayLike = 0.0, *, resamples: int = 10_000, rng: np.random.Generator
) -> FloatArray:
    """Test differences in acc_eq by permuting pairs; exact if all pairs have the same weight.

    Under the null hypothesis, a pair that only one of two metrics gets right is as likely to be won
    by either. With equal weights, the number of wins is binomial and the p-value exact. If groups
    differ in size, pairs weigh 1 / (pairs of their group) and the sum of binomials is sampled.
    """
    return coin_p_values(*count_wins(layout, epsilon), resamples=resamples, rng=rng)


def count_wins(layout: Layout, epsilon: ArrayLike = 0.0) -> tuple[FloatArray, FloatArray]:
    """Count the pairs that metric i gets right and j wrong, and return their weights.

    Groups of one size have pairs of one weight: (weights, metrics, metrics) and (weights,).
    """
    metrics = len(layout.metrics)
    size = (~np.isnan(layout.human)).sum(axis=-1)
    sizes, kind = np.unique(size * (size - 1) // 2, return_inverse=True)
    wins = np.zeros((len(sizes), metrics, metrics))
    for differences, signs in compare_pairs(layout, epsilon):
        human = preference_signs(differences)
        is_known = (human != UNKNOWN) & (signs != UNKNOWN)
        right = ((signs == human) & is_known).astype(np.float32)
        wrong = ((signs != human) & is_known).astype(np.float32)
        for k in range(len(sizes)):
            same_size = slice(None) if len(sizes) == 1 else kind == k
            won = right[..., same_size].reshape(metrics, -1)
            lost = wrong[..., same_size].reshape(metrics, -1)
            wins[k] += won @ lost.T
    if not sizes.any():
        raise DataError("no pair to test: no group has two judged points")
    return wins[sizes > 0], 1.0 / sizes[sizes > 0]


def coin_p_values(
    wins: FloatArray, weights: FloatArray, *, resamples: int = 10_000, rng: np.random.Generator
) -> FloatArray:
    """Return P(fair coins give metric i at least its wins) for wins (weights, metrics, metrics).

    >>> wins = np.array([[[0.0, 8.0], [2.0, 0.0]]])
    >>> coin_p_values(wins, np.ones(1), rng=np.random.default_rng(1)).round(4).tolist()
    [[1.0, 0.0547], [0.9893, 1.0]]
    """
    from scipy.stats import binom

    decided = wins + np.swapaxes(wins, 1, 2)
    if len(weights) == 1:
        return np.asarray(binom.sf(wins[0] - 1, decided[0], 0.5))
    result = np.ones(wins.shape[1:])
    for i, j in zip(*np.nonzero(decided.sum(axis=0)), strict=True):
        n = decided[:, i, j].astype(np.int64)
        heads = draw_heads(n, resamples, rng)
        observed = float(weights @ wins[:, i, j])
        result[i, j] = p_value(int(np.sum(heads @ weights >= observed - 1e-9)), resamples)
    return result


SPA_RESAMPLES = 1000  # permutations of the WMT shared task


def system_accuracy(human: Sequence[ArrayLike], metrics: Sequence[ArrayLike]) -> Agreement:
    """Compute the share of system pairs that the metric orders as the human scores do (Kocmi et al.
    2021).

    Each list has one entry per language pair: `human` (systems,), `metrics` (..., systems). Pairs
    are formed within a language pair and pooled over all. A metric tie is correct only if the human
    scores tie too. A metric without a pair in one of the language pairs gets NaN.

    >>> float(system_accuracy([[3, 2, 1], [1, 2]], [[3, 1, 2], [5, 9]]))
    0.75
    """
    if len(human) != len(metrics):
        raise LengthError(f"{len(human)} sets of human scores, but {len(metrics)} of metric scores")
    if not human:
        raise DataError("system accuracy needs at least one test set")
    layouts = [make_layout(h, m) for h, m in zip(human, metrics, strict=True)]
    if len({layout.shape for layout in layouts}) != 1:
        raise LengthError(f"metrics differ between test sets: {[lay.shape for lay in layouts]}")
    parts = np.stack([count_groups(layout)[:, 0] for layout in layouts])
    absent = (parts[..., :MISSING].sum(axis=-1) == 0) & (parts.sum(axis=-1) > 0)

    def value(counts: FloatArray) -> FloatArray:
        return np.where(absent.any(axis=0), np.nan, pairwise.accuracy(counts))

    return pairwise.pool_pairs(parts.sum(axis=0), value, layouts[0].shape, len(layouts))


def soft_pairwise_accuracy(
    human: ArrayLike,
    metrics: ArrayLike,
    *,
    rng: np.random.Generator,
    resamples: int = SPA_RESAMPLES,
) -> Agreement:
    """Compute SPA: pairwise accuracy that weighs how certain each order is (Thompson et al. 2024).

        SPA = 1 - mean over system pairs of |p_human - p_metric|

    where p is the one-sided p-value of "the first system is better", from a paired permutation test
    on the segments judged for both systems. `human` is (systems, segments), `metrics` (..., same).
    Human and metric scores see the same permutations. Each pair counts in both orders, half each,
    because systems have no given order and it would matter where a metric ties them.
    """
    check_resamples(resamples)
    layout = make_layout(human, metrics, "system")
    gaps = p_value_gaps(layout.human, layout.metrics, rng=rng, resamples=resamples)
    return spa_from_gaps(gaps, layout.human, layout.shape)


def spa_from_gaps(gaps: FloatArray, human: FloatArray, shape: tuple[int, ...]) -> Agreement:
    """Compute SPA from the gaps between p-values, (metrics, pairs)."""
    used = (~np.isnan(gaps)).sum(axis=-1)
    value = 1.0 - divide(np.nansum(gaps, axis=-1), used)
    present = (~np.isnan(human)).astype(np.float64)
    together = np.triu(present @ present.T, k=1) > 0  # pairs with a segment judged for both
    return make_pooled_agreement(value, shape, judged_count=int(together.sum()), used=used)


def p_value_gaps(
    human: FloatArray, metrics: FloatArray, *, rng: np.random.Generator, resamples: int
) -> FloatArray:
    """Return |p_human - p_metric| of each system pair, the mean of both directions."""
    used = (~np.isnan(human)).any(axis=0)
    signs = draw_signs(resamples, int(used.sum()), rng)
    left, right = np.triu_indices(len(human), k=1)
    human_difference = (human[left] - human[right])[:, used]  # (pairs, segments)
    gaps = np.full((len(metrics), len(left)), np.nan)
    for n, scores in enumerate(metrics):
        difference = (scores[left] - scores[right])[:, used]
        both = ~np.isnan(human_difference) & ~np.isnan(difference)
        human_p = permutation_p_values(np.where(both, human_difference, 0.0), signs)
        metric_p = permutation_p_values(np.where(both, difference, 0.0), signs)
        gap = np.abs(human_p - metric_p).mean(axis=0)
        gaps[n] = np.where(both.any(axis=-1), gap, np.nan)
    return gaps


def permutation_p_values(differences: FloatArray, signs: FloatArray) -> FloatArray:
    """Return one-sided p-values of sums by sign flips, (..., n) -> (2, ...).

    They are the shares of flips whose sum is at least the observed one, and at most.
    """
    observed = differences.sum(axis=-1)
    slack = 1e-10 * np.abs(differences).sum(axis=-1)  # so that equal sums compare equal
    counts = np.zeros((2, *observed.shape))
    for block in iterate_blocks(len(signs), observed.size):
        flipped = np.moveaxis(differences @ signs[block].T, -1, 0)  # (resamples, ...)
        counts[0] += (flipped >= observed - slack).sum(axis=0)
        counts[1] += (flipped <= observed + slack).sum(axis=0)
    return counts / len(signs)


def sign_flip_p_values(
    errors: FloatArray, *, resamples: int = 10_000, rng: np.random.Generator
) -> FloatArray:
    """Test means over pairs (metrics, pairs), other than right or wrong, by sign flips."""
    result = np.ones((len(errors), len(errors)))
    signs = draw_signs(resamples, errors.shape[1], rng)
    for i, own in enumerate(errors):
        difference = errors - own  # positive where i is the better one
        result[i] = permutation_p_values(np.nan_to_num(difference), signs)[0]
        result[i, np.isnan(difference).all(axis=1)] = np.nan
    np.fill_diagonal(result, 1.0)
    return result


def measure_accuracies(sets: Sequence[AlignedScores]) -> Measurement:
    """Measure pairwise accuracy of systems, pooled over sets, for a task."""
    columns = [s.system_columns() for s in sets]
    agreement = system_accuracy([h[0] for h, _ in columns], [m[:, 0] for _, m in columns])
    sizes = [h.shape[1] for h, _ in columns]
    correct, eligible = np.zeros((2, len(columns[0][1]), sum(sizes), sum(sizes)))
    start = 0
    for human, scores in columns:
        human_signs = preference_signs(human.T - human)  # (systems, systems)
        signs = preference_signs(np.swapaxes(scores, 1, 2) - scores)
        is_known = np.triu((human_signs != UNKNOWN) & (signs != UNKNOWN), k=1)
        rows = slice(start, start + human.shape[1])
        correct[:, rows, rows] = is_known & (human_signs == signs)
        eligible[:, rows, rows] = is_known
        start = rows.stop
    wins = np.tensordot(correct, eligible - correct, axes=((1, 2), (1, 2)))
    test = partial(coin_p_values, wins[None], np.ones(1))
    return _measure_pairs(agreement, correct, eligible, sizes, test)


def measure_spa(aligned: AlignedScores, rng: np.random.Generator) -> Measurement:
    present = (~np.isnan(aligned.human)).any(axis=1)
    human = aligned.human[present]
    scores = aligned.scores[:, present]
    size = len(human)
    if size < 2:
        raise DataError(f"{aligned.name}: SPA needs two systems with judged segments")
    gaps = p_value_gaps(human, scores, rng=rng, resamples=SPA_RESAMPLES)
    agreement = spa_from_gaps(gaps, human, (len(scores),))
    left, right = np.triu_indices(size, k=1)
    soft, eligible = np.zeros((2, len(scores), size, size))
    soft[:, left, right] = np.nan_to_num(1.0 - gaps)
    eligible[:, left, right] = ~np.isnan(gaps)
    return _measure_pairs(agreement, soft, eligible, [size], partial(sign_flip_p_values, gaps))


def _measure_pairs(
    agreement: Agreement,
    credit: FloatArray,
    eligible: FloatArray,
    strata: Sequence[int],
    test: TestFunction,
) -> Measurement:
    """Measure the credit for pairs of systems, (metrics, systems, systems) above the diagonal."""
    both_orders = [pairs + np.swapaxes(pairs, 1, 2) for pairs in (credit, eligible)]
    return Measurement(
        agreement=agreement,
        replicate=pair_matrix_replicate(*both_orders),
        strata=tuple(strata),
        tests={"pairs": test},
    )
