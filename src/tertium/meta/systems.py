"""System-level statistics: pairwise accuracy and soft pairwise accuracy.

Pearson's r over systems is `correlation.pearson` on vectors of system scores.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np
from numpy.typing import ArrayLike

from tertium.core.arrays import FloatArray, divide
from tertium.core.errors import DataError, LengthError
from tertium.core.resampling import check_resamples, draw_signs, iterate_blocks
from tertium.meta import pairwise
from tertium.meta.accuracy import coin_p_values
from tertium.meta.agreement import Agreement, Measurement, make_layout, make_pooled_agreement
from tertium.meta.aligned_scores import AlignedScores
from tertium.meta.replicates import pair_matrix_replicate

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
    parts = np.stack([pairwise.count_groups(layout)[:, 0] for layout in layouts])
    counts = parts.sum(axis=0)  # (metrics, 6)
    absent = (parts[..., : pairwise.MISSING].sum(axis=-1) == 0) & (parts.sum(axis=-1) > 0)
    value = np.where(absent.any(axis=0), np.nan, pairwise.accuracy(counts))
    judged_count = int(counts.sum(axis=-1).max(initial=0))
    used = counts[:, : pairwise.MISSING].sum(axis=-1)
    return make_pooled_agreement(
        value, layouts[0].shape, judged_count=judged_count, used=used, groups=len(layouts)
    )


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
    human_scores, stack = human[:, used], metrics[:, :, used]
    signs = draw_signs(resamples, human_scores.shape[1], rng)
    gaps = np.empty((len(stack), len(human_scores) * (len(human_scores) - 1) // 2))
    complete = ~np.isnan(stack).any(axis=(1, 2)) & used.any() & (not np.isnan(human_scores).any())
    for number in np.flatnonzero(~complete):
        gaps[number] = _gaps_with_missing_scores(human_scores, stack[number], signs)
    if complete.any():
        human_p, *metric_p = pair_p_values(
            np.concatenate([human_scores[None], stack[complete]]), signs
        )
        gaps[complete] = np.abs(human_p - np.array(metric_p)).mean(axis=-1)
    return gaps


def pair_p_values(scores: FloatArray, signs: FloatArray) -> FloatArray:
    """Return one-sided p-values of "i better than j" and "j better than i", (..., pairs, 2)."""
    left, right = np.triu_indices(scores.shape[-2], k=1)
    totals, sizes = scores.sum(axis=-1), np.abs(scores).sum(axis=-1)
    slack = 1e-10 * (sizes[..., left] + sizes[..., right])  # so that equal sums compare equal
    flat = scores.reshape(-1, scores.shape[-1])
    flipped = (flat @ signs.T).reshape(*scores.shape[:-1], -1)  # (..., systems, resamples)
    observed = totals[..., left] - totals[..., right]
    result = np.zeros((*scores.shape[:-2], len(left), 2))
    for n, (i, j) in enumerate(zip(left, right, strict=True)):
        difference = flipped[..., i, :] - flipped[..., j, :]
        low, high = observed[..., n] - slack[..., n], observed[..., n] + slack[..., n]
        result[..., n, 0] = np.mean(difference >= low[..., None], axis=-1)
        result[..., n, 1] = np.mean(difference <= high[..., None], axis=-1)
    return result


def _gaps_with_missing_scores(
    human: FloatArray, scores: FloatArray, signs: FloatArray
) -> FloatArray:
    """Return the gaps if values are missing: each pair has its own segments, (pairs,)."""
    left, right = np.triu_indices(len(human), k=1)
    human_difference, difference = human[left] - human[right], scores[left] - scores[right]
    both = ~np.isnan(human_difference) & ~np.isnan(difference)
    sides = [np.where(both, values, 0.0) for values in (human_difference, difference)]
    gaps = [
        np.abs(np.subtract(*(permutation_p_values(direction * side, signs) for side in sides)))
        for direction in (1.0, -1.0)  # i better, j better
    ]
    return np.where(both.any(axis=-1), np.mean(gaps, axis=0), np.nan)


def permutation_p_values(differences: FloatArray, signs: FloatArray) -> FloatArray:
    """Return the share of sign flips whose sum is at least the observed one, (..., n) -> (...)."""
    observed = differences.sum(axis=-1)
    slack = 1e-10 * np.abs(differences).sum(axis=-1)
    share = np.zeros(observed.shape)
    for block in iterate_blocks(len(signs), observed.size):
        flipped = differences @ signs[block].T  # (..., resamples)
        share += (flipped >= (observed - slack)[..., None]).sum(axis=-1)
    return share / len(signs)


def sign_flip_p_values(
    errors: FloatArray, *, resamples: int = 10_000, rng: np.random.Generator
) -> FloatArray:
    """Test means over pairs (metrics, pairs), other than right or wrong, by sign flips."""
    count = len(errors)
    result = np.ones((count, count))
    signs = draw_signs(resamples, errors.shape[1], rng)
    for i in range(count):
        difference = errors - errors[i]  # positive where i is the better one
        unknown = np.isnan(difference)
        result[i] = permutation_p_values(np.where(unknown, 0.0, difference), signs)
        result[i, unknown.all(axis=1)] = np.nan
    np.fill_diagonal(result, 1.0)
    return result


def measure_accuracies(sets: Sequence[AlignedScores]) -> Measurement:
    """Measure pairwise accuracy of systems, pooled over sets, for a task."""
    columns = [s.system_columns() for s in sets]
    agreement = system_accuracy([h[0] for h, _ in columns], [m[:, 0] for _, m in columns])
    sizes = tuple(h.shape[1] for h, _ in columns)
    metrics = len(columns[0][1])
    right, eligible = np.zeros((2, metrics, sum(sizes), sum(sizes)))
    start = 0
    for (human, scores), size in zip(columns, sizes, strict=True):
        block = slice(start, start + size)
        human_signs = np.sign(human[0][:, None] - human[0])  # (systems, systems)
        signs = np.sign(scores[:, 0, :, None] - scores[:, 0, None])
        is_known = ~np.isnan(human_signs) & ~np.isnan(signs) & ~np.eye(size, dtype=bool)
        right[:, block, block] = (human_signs == signs) & is_known
        eligible[:, block, block] = is_known
        start += size
    wins = right.reshape(metrics, -1) @ (eligible - right).reshape(metrics, -1).T / 2
    return Measurement(
        agreement=agreement,
        replicate=pair_matrix_replicate(right, eligible),
        strata=sizes,
        tests={"pairs": partial(coin_p_values, wins[None], np.ones(1))},
        exact_pairs=True,
    )


def measure_spa(aligned: AlignedScores, rng: np.random.Generator) -> Measurement:
    present = (~np.isnan(aligned.human)).any(axis=1)
    human, scores = aligned.human[present], aligned.scores[:, present]
    if len(human) < 2:
        raise DataError(f"{aligned.name}: SPA needs two systems with judged segments")
    gaps = p_value_gaps(human, scores, rng=rng, resamples=SPA_RESAMPLES)
    agreement = spa_from_gaps(gaps, human, (len(scores),))
    size = len(human)
    left, right = np.triu_indices(size, k=1)
    soft, eligible = np.zeros((2, len(scores), size, size))
    is_known = ~np.isnan(gaps)
    soft[:, left, right] = soft[:, right, left] = np.where(is_known, 1.0 - gaps, 0.0)
    eligible[:, left, right] = eligible[:, right, left] = is_known
    return Measurement(
        agreement=agreement,
        replicate=pair_matrix_replicate(soft, eligible),
        strata=(size,),
        tests={"pairs": partial(sign_flip_p_values, gaps)},
        exact_pairs=True,  # a plain share of flips, which may be 0
    )
