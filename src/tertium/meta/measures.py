"""Statistics on pairs and on systems as a task asks for them: values, replicates, tests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

import numpy as np

from tertium.arrays import FloatArray
from tertium.errors import DataError
from tertium.meta import pairwise, replicates, significance, systems
from tertium.meta.correlation import (
    Grouping,
    Layout,
    Measured,
    Replicate,
    by_group,
    lay_out,
    of_sums,
)
from tertium.meta.tasks import JudgedSet, Task
from tertium.scores import Reduce


def accuracy(human: FloatArray, scores: FloatArray, by: Grouping, *, calibrated: bool) -> Measured:
    function = partial(pairwise.acc_eq_calibrated if calibrated else pairwise.acc_eq, by=by)
    agreement = function(human, scores)
    epsilon = np.asarray(agreement.epsilon)

    def group_values(layout: Layout) -> FloatArray:
        return pairwise.accuracy(pairwise.count_groups(layout, epsilon=epsilon))

    def pool(people: FloatArray, metrics: FloatArray) -> Replicate:
        return replicates.of_accuracy(people, metrics, epsilon)

    return Measured(
        agreement=agreement,
        replicate=by_group(human, scores, by, pool, group_values),
        strata=(human.shape[1],),
        tests={
            "pairs": partial(significance.pair_test, lay_out(human, scores, by), epsilon),
            "perm-both": partial(significance.perm_both_any, human, scores, function),
        },
    )


def darr(human: FloatArray, scores: FloatArray, task: Task) -> Measured:
    late = task.statistic == "darr"
    statistic = partial(pairwise.darr, year=2018 if late else 2017, threshold=task.threshold)
    counts = pairwise.count_groups(lay_out(human, scores, "item"), threshold=task.threshold)
    reduce = pairwise.tau_strict if late else pairwise.tau_wmt14
    return Measured(
        agreement=statistic(human, scores),
        replicate=of_sums(counts, reduce),
        strata=(human.shape[1],),
        tests={"perm-both": partial(significance.perm_both_any, human, scores, statistic)},
    )


_FORMULAS: Mapping[str, tuple[Reduce, bool]] = {
    "tau-strict": (pairwise.tau_strict, False),
    "tau13": (pairwise.tau_wmt13, False),
    "tau14": (pairwise.tau_wmt14, False),
    "consistency": (pairwise.accuracy, True),
}


def comparisons(judged: JudgedSet, task: Task) -> Measured:
    compared = judged.comparisons
    if compared is None:
        raise DataError(
            f"{judged.name}: {task.statistic} needs human comparisons, and there are only scores"
        )
    reduce, human_ties = _FORMULAS[task.statistic]
    left = judged.scores[:, compared.left, compared.item]
    right = judged.scores[:, compared.right, compared.item]
    items, unit = np.unique(compared.item, return_inverse=True)
    counts = pairwise.count_verdicts(compared.verdicts, left, right, units=unit)
    return Measured(
        agreement=pairwise.count_agreement(
            counts.sum(axis=1),
            reduce,
            compared.verdicts,
            human_ties=human_ties,
            shape=left.shape[:1],
        ),
        replicate=of_sums(counts, reduce),
        strata=(len(items),),
    )


def system_accuracy(sets: Sequence[JudgedSet]) -> Measured:
    judged = [s.system_columns() for s in sets]
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

    def coins(*, samples: int, rng: np.random.Generator) -> FloatArray:
        wins = [significance.count_wins(lay_out(h, m))[0].sum(axis=0) for h, m in judged]
        total: FloatArray = np.sum(wins, axis=0)[None]
        return significance.coin_p_values(total, np.ones(1), samples=samples, rng=rng)

    replicate = replicates.of_matrix(right, eligible)
    return Measured(agreement=agreement, replicate=replicate, strata=sizes, tests={"pairs": coins})


def spa(judged: JudgedSet, task: Task, rng: np.random.Generator) -> Measured:
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
        tests={"pairs": partial(significance.flip_p_values, gaps)},
    )


def tie_aware(judged: JudgedSet, task: Task) -> Measured:
    assert task.tie_rate is not None
    known = ~np.isnan(judged.human_systems)
    human, scores = judged.human_systems[known], judged.scores[:, known]
    agreement = systems.tie_aware_spearman(human, scores, tie_rate=task.tie_rate)
    epsilons = np.asarray(agreement.epsilon)
    shares = [systems.best_shares(m, e) for m, e in zip(scores, epsilons, strict=True)]
    replicate = replicates.of_spearman(human[None], np.stack(shares)[:, None])
    return Measured(agreement=agreement, replicate=replicate, strata=(len(human),))
