"""Does the metric order whole systems as people do? Accuracy, soft accuracy, tie-aware prediction.

Pearson's r over systems is `correlation.pearson` on vectors of system scores; here are the
statistics that compare systems two by two or predict which of them is best on how many segments.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import numpy as np
from numpy.typing import ArrayLike

from tertium.arrays import FloatArray, divide
from tertium.errors import DataError, LengthError, UsageError
from tertium.meta import pairwise
from tertium.meta.accuracy import coin_p_values, count_wins
from tertium.meta.agreement import Agreement, Measured, finite, lay_out, pool_agreement
from tertium.meta.correlation import spearman
from tertium.meta.judged import JudgedSet
from tertium.meta.replicates import of_matrix, of_spearman
from tertium.meta.significance import undrawn_p
from tertium.meta.tasks import Task

BLOCK = 1 << 22  # numbers in memory at a time
PERMUTATIONS = 1000  # of segments, in soft pairwise accuracy: those of the shared task


def system_accuracy(human: Sequence[ArrayLike], metrics: Sequence[ArrayLike]) -> Agreement:
    """The share of system pairs that the metric orders as people do (Kocmi et al. 2021).

    One entry for each language pair: `human` of (systems,), `metrics` of (..., systems). Pairs are
    formed within a language pair and pooled over all of them; a tie is right only if both tie. A
    metric that has no pair in one of them gets NaN: it would be judged on fewer than the others.

    >>> float(system_accuracy([[3, 2, 1], [1, 2]], [[3, 1, 2], [5, 9]]))
    0.75
    """
    if len(human) != len(metrics):
        raise LengthError(f"{len(human)} test sets of people, {len(metrics)} of metric scores")
    if not human:
        raise DataError("system accuracy needs at least one test set")
    layouts = [lay_out(h, m) for h, m in zip(human, metrics, strict=True)]
    if len({layout.shape for layout in layouts}) != 1:
        raise LengthError(f"metrics differ between test sets: {[lay.shape for lay in layouts]}")
    parts = np.stack([pairwise.count_groups(layout)[:, 0] for layout in layouts])
    counts = parts.sum(axis=0)  # (metrics, 6)
    absent = (parts[..., : pairwise.MISSING].sum(axis=-1) == 0) & (parts.sum(axis=-1) > 0)
    value = np.where(absent.any(axis=0), np.nan, pairwise.accuracy(counts))
    judged = int(counts.sum(axis=-1).max(initial=0))
    used = counts[:, : pairwise.MISSING].sum(axis=-1)
    return pool_agreement(value, layouts[0].shape, judged=judged, used=used, groups=len(layouts))


def soft_pairwise_accuracy(
    human: ArrayLike,
    metrics: ArrayLike,
    *,
    rng: np.random.Generator,
    permutations: int = PERMUTATIONS,
) -> Agreement:
    """SPA: system accuracy that also asks how sure the order is (Thompson et al. 2024).

        SPA = 1 - mean over system pairs of |p_human - p_metric|

    where p is the one-sided p-value of "the first system is better", from a paired permutation of
    the segments that people judged for both. `human` is (systems, segments), `metrics` (..., same).
    People and metrics see the same permutations. A pair counts with either system first, half each:
    by definition no order of systems is given, and it would matter where a metric ties them.
    """
    if permutations < 1:
        raise UsageError(f"at least one permutation is needed, got {permutations}")
    layout = lay_out(human, metrics, "system")
    gaps = p_value_gaps(layout.human, layout.metrics, rng=rng, permutations=permutations)
    return gap_agreement(gaps, layout.human, layout.shape)


def gap_agreement(gaps: FloatArray, human: FloatArray, shape: tuple[int, ...]) -> Agreement:
    """SPA from the gaps between p-values, (metrics, pairs)."""
    used = (~np.isnan(gaps)).sum(axis=-1)
    value = 1.0 - divide(np.nansum(gaps, axis=-1), used)
    present = (~np.isnan(human)).astype(np.float64)
    together = np.triu(present @ present.T, k=1) > 0  # pairs with a segment judged for both
    return pool_agreement(value, shape, judged=int(together.sum()), used=used)


def p_value_gaps(
    human: FloatArray, metrics: FloatArray, *, rng: np.random.Generator, permutations: int
) -> FloatArray:
    """|p_human - p_metric| of each system pair i < j, (metrics, pairs); NaN without evidence.

    It is the mean of "i is better" and "j is better", which differ where permutations tie.
    """
    used = (~np.isnan(human)).any(axis=0)
    people, stack = human[:, used], metrics[:, :, used]
    signs: FloatArray = rng.choice([-1.0, 1.0], size=(permutations, people.shape[1]))
    gaps = np.empty((len(stack), len(people) * (len(people) - 1) // 2))
    whole = ~np.isnan(stack).any(axis=(1, 2)) & used.any() & (not np.isnan(people).any())
    for number in np.flatnonzero(~whole):
        gaps[number] = _gaps_with_holes(people, stack[number], signs)
    if whole.any():
        asked, *given = pair_p_values(np.concatenate([people[None], stack[whole]]), signs)
        gaps[whole] = np.abs(asked - np.array(given)).mean(axis=-1)
    return gaps


def pair_p_values(scores: FloatArray, signs: FloatArray) -> FloatArray:
    """One-sided p-values of "i is better than j" and of the opposite, i < j, (..., pairs, 2).

    A flipped sum of differences is the difference of flipped sums, so systems (..., systems,
    segments), which are complete, are flipped once, all in one product.
    """
    left, right = np.triu_indices(scores.shape[-2], k=1)
    totals, sizes = scores.sum(axis=-1), np.abs(scores).sum(axis=-1)
    slack = 1e-10 * (sizes[..., left] + sizes[..., right])  # so that equal sums compare equal
    flat = scores.reshape(-1, scores.shape[-1])
    flipped = (flat @ signs.T).reshape(*scores.shape[:-1], -1)  # (..., systems, permutations)
    observed = totals[..., left] - totals[..., right]
    result = np.zeros((*scores.shape[:-2], len(left), 2))
    for n, (i, j) in enumerate(zip(left, right, strict=True)):
        difference = flipped[..., i, :] - flipped[..., j, :]
        low, high = observed[..., n] - slack[..., n], observed[..., n] + slack[..., n]
        result[..., n, 0] = np.mean(difference >= low[..., None], axis=-1)
        result[..., n, 1] = np.mean(difference <= high[..., None], axis=-1)
    return result


def _gaps_with_holes(human: FloatArray, scores: FloatArray, signs: FloatArray) -> FloatArray:
    """The same where values are missing: each pair has segments of its own, (pairs,)."""
    left, right = np.triu_indices(len(human), k=1)
    people, difference = human[left] - human[right], scores[left] - scores[right]
    both = ~np.isnan(people) & ~np.isnan(difference)
    sides = [np.where(both, values, 0.0) for values in (people, difference)]
    gaps = [
        np.abs(np.subtract(*(permutation_p_values(way * side, signs) for side in sides)))
        for way in (1.0, -1.0)  # i better, j better
    ]
    return np.where(both.any(axis=-1), np.mean(gaps, axis=0), np.nan)


def permutation_p_values(differences: FloatArray, signs: FloatArray) -> FloatArray:
    """The share of sign flips whose sum is at least the observed one, (..., n) -> (...)."""
    observed = differences.sum(axis=-1)
    slack = 1e-10 * np.abs(differences).sum(axis=-1)
    share = np.zeros(observed.shape)
    step = max(1, BLOCK // max(1, observed.size))
    for start in range(0, len(signs), step):
        flipped = differences @ signs[start : start + step].T  # (..., permutations)
        share += (flipped >= (observed - slack)[..., None]).sum(axis=-1)
    return share / len(signs)


def tie_epsilon(scores: ArrayLike, rate: float) -> float:
    """The smallest epsilon under which ties for first place are at least as frequent as `rate`.

    The second-best system ties with the best where it is at most epsilon worse.

    >>> tie_epsilon([[9, 9, 9, 9], [8, 7, 6, 5]], rate=0.5)
    2.0
    """
    if not 0.0 <= rate <= 1.0:
        raise UsageError(f"a tie rate is a share between 0 and 1, got {rate}")
    gaps = np.sort(_lead(finite(scores, "scores")))
    gaps = gaps[~np.isnan(gaps)]
    if not len(gaps):
        raise DataError("no segment has two scored systems: ties for first place are undefined")
    needed = int(np.ceil(rate * len(gaps) - 1e-9))  # a product may round above a whole number
    return float(gaps[needed - 1]) if needed else 0.0


def best_shares(scores: ArrayLike, epsilon: float = 0.0) -> FloatArray:
    """The share of its segments on which each system is best or at most epsilon worse, (systems,).

    The tie-aware system score of Pado et al. 2009.

    >>> best_shares([[9, 9, 9, 9], [8, 7, 6, 5]], epsilon=2)
    array([1. , 0.5])
    """
    matrix = finite(scores, "scores")
    present = ~np.isnan(matrix)
    best = np.where(present, matrix, -np.inf).max(axis=0, initial=-np.inf)
    near = present & (best - np.where(present, matrix, 0.0) <= epsilon)
    return divide(near.sum(axis=1), present.sum(axis=1))


def tie_aware_spearman(
    human_systems: ArrayLike, scores: ArrayLike, *, tie_rate: float
) -> Agreement:
    """Spearman's rho of human system scores and tie-aware predictions (Pado et al. 2009).

    `human_systems` is (systems,); `scores` (..., systems, segments); each metric gets the epsilon
    under which first places are tied as often as `tie_rate`.
    """
    stack = finite(scores, "scores")
    shape = stack.shape[:-2]
    flat = stack.reshape((int(np.prod(shape)), *stack.shape[-2:]))
    scored = [(~np.isnan(_lead(m))).any() for m in flat]
    epsilons = np.array(
        [tie_epsilon(m, tie_rate) if s else np.nan for m, s in zip(flat, scored, strict=True)]
    )
    shares = [best_shares(m, e) for m, e in zip(flat, epsilons, strict=True)]
    result = spearman(human_systems, np.stack(shares).reshape(stack.shape[:-1]))
    return replace(result, epsilon=epsilons.reshape(shape))


def _lead(matrix: FloatArray) -> FloatArray:
    """How far the best system is ahead of the next on each segment, (segments,); NaN if alone."""
    present = ~np.isnan(matrix)
    ordered = np.sort(np.where(present, matrix, -np.inf), axis=0)
    if len(ordered) < 2:
        return np.full(matrix.shape[1], np.nan)
    two = present.sum(axis=0) >= 2
    return np.where(two, ordered[-1] - np.where(two, ordered[-2], 0.0), np.nan)


def flip_p_values(
    errors: FloatArray, *, samples: int = 10_000, rng: np.random.Generator
) -> FloatArray:
    """Paired sign flips of what two metrics get wrong on each pair, errors (metrics, pairs).

    For statistics that are a mean over pairs of something finer than right or wrong, such as SPA.
    """
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


def measure_accuracies(sets: Sequence[JudgedSet]) -> Measured:
    judged = [s.system_columns() for s in sets]
    agreement = system_accuracy([h[0] for h, _ in judged], [m[:, 0] for _, m in judged])
    sizes = tuple(h.shape[1] for h, _ in judged)
    metrics = len(judged[0][1])
    right, eligible = np.zeros((2, metrics, sum(sizes), sum(sizes)))
    start = 0
    for (human, scores), size in zip(judged, sizes, strict=True):
        block = slice(start, start + size)
        people = np.sign(human[0][:, None] - human[0])  # (systems, systems)
        order = np.sign(scores[:, 0, :, None] - scores[:, 0, None])
        known = ~np.isnan(people) & ~np.isnan(order) & ~np.eye(size, dtype=bool)
        right[:, block, block] = (people == order) & known
        eligible[:, block, block] = known
        start += size

    def coins(*, samples: int, rng: np.random.Generator) -> FloatArray:
        wins = [count_wins(lay_out(h, m))[0].sum(axis=0) for h, m in judged]
        total: FloatArray = np.sum(wins, axis=0)[None]
        return coin_p_values(total, np.ones(1), samples=samples, rng=rng)

    replicate = of_matrix(right, eligible)
    return Measured(
        agreement=agreement,
        replicate=replicate,
        strata=sizes,
        tests={"pairs": coins},
        finest={"pairs": undrawn_p},
    )


def measure_spa(judged: JudgedSet, rng: np.random.Generator) -> Measured:
    present = (~np.isnan(judged.human)).any(axis=1)
    human, scores = judged.human[present], judged.scores[:, present]
    if len(human) < 2:
        raise DataError(f"{judged.name}: SPA needs two systems with judged segments")
    gaps = p_value_gaps(human, scores, rng=rng, permutations=PERMUTATIONS)
    agreement = gap_agreement(gaps, human, (len(scores),))
    size = len(human)
    left, right = np.triu_indices(size, k=1)
    soft, eligible = np.zeros((2, len(scores), size, size))
    known = ~np.isnan(gaps)
    soft[:, left, right] = soft[:, right, left] = np.where(known, 1.0 - gaps, 0.0)
    eligible[:, left, right] = eligible[:, right, left] = known
    return Measured(
        agreement=agreement,
        replicate=of_matrix(soft, eligible),
        strata=(size,),
        tests={"pairs": partial(flip_p_values, gaps)},
        finest={"pairs": undrawn_p},  # a plain share of flips, which may be none
    )


def measure_tie_aware(judged: JudgedSet, task: Task) -> Measured:
    assert task.tie_rate is not None
    known = ~np.isnan(judged.human_systems)
    human, scores = judged.human_systems[known], judged.scores[:, known]
    agreement = tie_aware_spearman(human, scores, tie_rate=task.tie_rate)
    epsilons = np.asarray(agreement.epsilon)
    shares = [best_shares(m, e) for m, e in zip(scores, epsilons, strict=True)]
    replicate = of_spearman(human[None], np.stack(shares)[:, None])
    return Measured(agreement=agreement, replicate=replicate, strata=(len(human),))
