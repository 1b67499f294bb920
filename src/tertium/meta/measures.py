"""From a task to its figures: each statistic with what its bootstrap and its tests need.

A `Measured` is a value, its `Replicate` (the value as a function of weights) and the tests that
suit it; `evaluation` knows nothing of single statistics.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache

import numpy as np

from tertium.arrays import FloatArray
from tertium.errors import DataError
from tertium.meta import pairs, replicates, significance, systems
from tertium.meta.agreement import Agreement, Grouping, Layout, lay_out
from tertium.meta.correlation import (
    kendall_b,
    kendall_b_values,
    pearson,
    pearson_values,
    spearman,
    spearman_values,
)
from tertium.meta.judged import JudgedSet
from tertium.meta.pairwise import acc_eq, acc_eq_calibrated, count_agreement, darr
from tertium.meta.replicates import Replicate
from tertium.meta.tasks import Task
from tertium.scores import Reduce

TestFunction = Callable[[int, np.random.Generator], FloatArray]
Pooled = Callable[[FloatArray, FloatArray], Replicate]


@dataclass(frozen=True, kw_only=True, eq=False)
class Measured:
    """One statistic of many metrics: values, how they vary with the sample, tests between them.

    `strata` are the numbers of units that the bootstrap draws from; `tests` map a name to a
    function of the number of samples and a generator, giving p-values (metrics, metrics).
    """

    agreement: Agreement
    replicate: Replicate
    strata: tuple[int, ...]
    tests: Mapping[str, TestFunction] = field(default_factory=dict)


def measure(task: Task, sets: Sequence[JudgedSet], rng: np.random.Generator) -> Measured:
    """Compute a task on its judged sets, which list the same metrics in the same order."""
    first = sets[0]
    if task.statistic == "accuracy":
        return _system_accuracy(sets)
    if task.statistic == "spa":
        return _spa(first, task, rng)
    if task.statistic == "tie-aware":
        return _tie_aware(first, task)
    if task.kind.reads == "comparisons":
        return _comparisons(first, task)
    if task.level == "system":
        people, scores = judged_columns(
            first.name, first.human_systems[None], first.system_scores[:, None]
        )
        return _correlation(people, scores, task.statistic, "none")
    people, scores = judged_columns(first.name, first.human, first.scores)
    if task.statistic in ("darr", "darr17"):
        return _darr(people, scores, task)
    by = task.by or "none"
    if task.over == "systems":
        people, scores = judged_columns(first.name, people.T, np.swapaxes(scores, 1, 2))
        by = _TRANSPOSED[by]
    if task.statistic in ("acc-eq", "acc-eq*"):
        return _accuracy(people, scores, by, calibrated=task.statistic == "acc-eq*")
    return _correlation(people, scores, task.statistic, by)


_TRANSPOSED: Mapping[Grouping, Grouping] = {"none": "none", "item": "system", "system": "item"}

_CORRELATIONS: Mapping[
    str,
    tuple[Callable[..., Agreement], Callable[[Layout], FloatArray], Pooled],
] = {
    "pearson": (pearson, pearson_values, replicates.of_pearson),
    "spearman": (spearman, spearman_values, replicates.of_spearman),
    "kendall": (kendall_b, kendall_b_values, replicates.of_kendall_b),
}


def judged_columns(
    name: str, human: FloatArray, scores: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """The columns (segments or systems) that people judged at all; the bootstrap draws these."""
    judged = (~np.isnan(human)).any(axis=0)
    if not judged.any():
        raise DataError(f"{name}: people gave no scores that this statistic could use")
    return human[:, judged], scores[:, :, judged]


def _correlation(human: FloatArray, scores: FloatArray, statistic: str, by: Grouping) -> Measured:
    function, group_values, pool = _CORRELATIONS[statistic]
    agreement = function(human, scores, by=by)
    tests: dict[str, TestFunction] = {
        "perm-both": lambda samples, rng: significance.perm_both_any(
            human, scores, lambda h, m: function(h, m, by=by), samples=samples, rng=rng
        )
    }
    if statistic == "pearson" and by == "none":
        tests["perm-both"] = lambda samples, rng: significance.perm_both(
            human, scores, samples=samples, rng=rng
        )
        tests["williams"] = lambda samples, rng: significance.williams(human, scores)
    replicate = _by_group(human, scores, by, pool, group_values)
    return Measured(agreement=agreement, replicate=replicate, strata=(human.shape[1],), tests=tests)


def _by_group(
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
        return _late(lambda: replicates.of_values(group_values(lay_out(human, scores, "item"))))
    rows = range(len(human))
    return replicates.mean_replicate([pool(human[r : r + 1], scores[:, r : r + 1]) for r in rows])


def _late(make: Callable[[], Replicate]) -> Replicate:
    """A replicate that is made when it is asked for: without samples nobody does."""
    made = cache(make)
    return lambda weights: made()(weights)


def _accuracy(human: FloatArray, scores: FloatArray, by: Grouping, *, calibrated: bool) -> Measured:
    function = acc_eq_calibrated if calibrated else acc_eq
    agreement = function(human, scores, by=by)
    epsilon = np.asarray(agreement.epsilon)

    def group_values(layout: Layout) -> FloatArray:
        return pairs.accuracy(pairs.count_groups(layout, epsilon=epsilon))

    def pool(people: FloatArray, metrics: FloatArray) -> Replicate:
        return replicates.of_accuracy(people, metrics, epsilon)

    return Measured(
        agreement=agreement,
        replicate=_by_group(human, scores, by, pool, group_values),
        strata=(human.shape[1],),
        tests={
            "pairs": lambda samples, rng: significance.pair_test(
                lay_out(human, scores, by), epsilon, samples=samples, rng=rng
            ),
            "perm-both": lambda samples, rng: significance.perm_both_any(
                human, scores, lambda h, m: function(h, m, by=by), samples=samples, rng=rng
            ),
        },
    )


def _darr(human: FloatArray, scores: FloatArray, task: Task) -> Measured:
    year = 2018 if task.statistic == "darr" else 2017

    def statistic(h: FloatArray, m: FloatArray) -> Agreement:
        return darr(h, m, year=year, threshold=task.threshold)  # type: ignore[arg-type]

    layout = lay_out(human, scores, "item")
    counts = pairs.count_groups(layout, threshold=task.threshold)
    reduce = pairs.tau_strict if year == 2018 else pairs.tau_wmt14
    return Measured(
        agreement=statistic(human, scores),
        replicate=replicates.of_sums(counts, reduce),
        strata=(human.shape[1],),
        tests={
            "perm-both": lambda samples, rng: significance.perm_both_any(
                human, scores, statistic, samples=samples, rng=rng
            )
        },
    )


_FORMULAS: Mapping[str, tuple[Reduce, bool]] = {
    "tau-strict": (pairs.tau_strict, False),
    "tau13": (pairs.tau_wmt13, False),
    "tau14": (pairs.tau_wmt14, False),
    "consistency": (pairs.accuracy, True),
}


def _comparisons(judged: JudgedSet, task: Task) -> Measured:
    compared = judged.comparisons
    if compared is None:
        raise DataError(
            f"{judged.name}: {task.statistic} needs human comparisons, and there are only scores"
        )
    reduce, human_ties = _FORMULAS[task.statistic]
    left = judged.scores[:, compared.left, compared.item]
    right = judged.scores[:, compared.right, compared.item]
    items, unit = np.unique(compared.item, return_inverse=True)
    counts = pairs.count_verdicts(compared.verdicts, left, right, units=unit)
    return Measured(
        agreement=count_agreement(
            counts.sum(axis=1),
            reduce,
            compared.verdicts,
            human_ties=human_ties,
            shape=left.shape[:1],
        ),
        replicate=replicates.of_sums(counts, reduce),
        strata=(len(items),),
    )


def _system_accuracy(sets: Sequence[JudgedSet]) -> Measured:
    judged = [judged_columns(s.name, s.human_systems[None], s.system_scores[:, None]) for s in sets]
    agreement = systems.system_accuracy([h[0] for h, _ in judged], [m[:, 0] for _, m in judged])
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

    def coins(samples: int, rng: np.random.Generator) -> FloatArray:
        wins = [significance.count_wins(lay_out(h, m))[0].sum(axis=0) for h, m in judged]
        total: FloatArray = np.sum(wins, axis=0)[None]
        return significance.coin_p_values(total, np.ones(1), samples=samples, rng=rng)

    replicate = replicates.of_matrix(right, eligible)
    return Measured(agreement=agreement, replicate=replicate, strata=sizes, tests={"pairs": coins})


def _spa(judged: JudgedSet, task: Task, rng: np.random.Generator) -> Measured:
    present = (~np.isnan(judged.human)).any(axis=1)
    human, scores = judged.human[present], judged.scores[:, present]
    if len(human) < 2:
        raise DataError(f"{judged.name}: SPA needs two systems with judged segments")
    permutations = task.samples or 1000
    gaps = systems.p_value_gaps(human, scores, rng=rng, permutations=permutations)
    agreement = systems.gap_agreement(gaps, human, (len(scores),))
    size = len(human)
    left, right = np.triu_indices(size, k=1)
    soft, eligible = np.zeros((2, len(scores), size, size))
    known = ~np.isnan(gaps)
    soft[:, left, right] = soft[:, right, left] = np.where(known, 1.0 - gaps, 0.0)
    eligible[:, left, right] = eligible[:, right, left] = known
    return Measured(
        agreement=agreement,
        replicate=replicates.of_matrix(soft, eligible),
        strata=(size,),
        tests={
            "pairs": lambda samples, rng: significance.flip_p_values(gaps, samples=samples, rng=rng)
        },
    )


def _tie_aware(judged: JudgedSet, task: Task) -> Measured:
    assert task.tie_rate is not None
    known = ~np.isnan(judged.human_systems)
    human, scores = judged.human_systems[known], judged.scores[:, known]
    agreement = systems.tie_aware_spearman(human, scores, tie_rate=task.tie_rate)
    epsilons = np.asarray(agreement.epsilon)
    shares = [systems.best_shares(m, e) for m, e in zip(scores, epsilons, strict=True)]
    replicate = replicates.of_spearman(human[None], np.stack(shares)[:, None])
    return Measured(agreement=agreement, replicate=replicate, strata=(len(human),))
