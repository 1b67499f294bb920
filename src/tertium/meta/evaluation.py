"""Run tasks: metrics beside people on judged sets, by whichever statistic, tests and draws.

Of a task and its judged sets a statistic makes a `Measured`: a value, its `Replicate` (the value as
a function of weights) and the tests that suit it; the rest knows nothing of single statistics.
Every task draws from a generator of its own, seeded by the evaluation's seed and the task's
choices, so a figure does not depend on which other tasks are run beside it, or in which order.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Literal

import numpy as np

from tertium.arrays import FloatArray, generator
from tertium.errors import DataError, UnknownNameError, UsageError
from tertium.meta.accuracy import measure_accuracy
from tertium.meta.agreement import (
    Agreement,
    Grouping,
    Layout,
    Measured,
    TestFunction,
    judged_columns,
)
from tertium.meta.correlation import pearson, pearson_values, spearman, spearman_values
from tertium.meta.judged import JudgedSet
from tertium.meta.pairwise import kendall_b, kendall_b_values, measure_comparisons, measure_darr
from tertium.meta.replicates import (
    Pooled,
    bootstrap,
    by_group,
    of_kendall_b,
    of_pearson,
    of_spearman,
)
from tertium.meta.results import Results, TaskResult, bootstrap_p_values, figures_of, no_p_values
from tertium.meta.significance import finest_swaps, finest_t, perm_both, perm_both_any, williams
from tertium.meta.systems import measure_accuracies, measure_spa, measure_tie_aware
from tertium.meta.tasks import Task
from tertium.runtime import track


def measure(task: Task, sets: Sequence[JudgedSet], rng: np.random.Generator) -> Measured:
    """Compute a task on its judged sets, which list the same metrics in the same order."""
    first = sets[0]
    if task.statistic == "accuracy":
        return measure_accuracies(sets)
    if task.statistic == "spa":
        return measure_spa(first, rng)
    if task.statistic == "tie-aware":
        return measure_tie_aware(first, task)
    if task.kind.reads == "comparisons":
        if first.comparisons is None:
            raise DataError(
                f"{first.name}: {task.statistic} needs human comparisons, and there are only scores"
            )
        return measure_comparisons(first.comparisons, first.scores, task.statistic)
    if task.level == "system":
        return _correlation(*first.system_columns(), task.statistic, "none")
    people, scores = judged_columns(first.name, first.human, first.scores)
    if task.statistic in ("darr", "darr17"):
        year: Literal[2017, 2018] = 2018 if task.statistic == "darr" else 2017
        return measure_darr(people, scores, year, task.threshold)
    by = task.by or "none"
    if task.over == "systems":
        people, scores = judged_columns(first.name, people.T, np.swapaxes(scores, 1, 2))
        by = _TRANSPOSED[by]
    if task.statistic in ("acc-eq", "acc-eq*"):
        return measure_accuracy(people, scores, by, calibrated=task.statistic == "acc-eq*")
    return _correlation(people, scores, task.statistic, by)


_TRANSPOSED: Mapping[Grouping, Grouping] = {"none": "none", "item": "system", "system": "item"}

_CORRELATIONS: Mapping[
    str, tuple[Callable[..., Agreement], Callable[[Layout], FloatArray], Pooled]
] = {
    "pearson": (pearson, pearson_values, of_pearson),
    "spearman": (spearman, spearman_values, of_spearman),
    "kendall": (kendall_b, kendall_b_values, of_kendall_b),
}


def _correlation(human: FloatArray, scores: FloatArray, statistic: str, by: Grouping) -> Measured:
    function, group_values, pool = _CORRELATIONS[statistic]
    correlate = partial(function, by=by)
    tests: dict[str, TestFunction] = {"perm-both": partial(perm_both_any, human, scores, correlate)}
    if statistic == "pearson" and by == "none":
        tests["perm-both"] = partial(perm_both, human, scores)
        tests["williams"] = lambda **_: williams(human, scores)
    return Measured(
        agreement=correlate(human, scores),
        replicate=by_group(human, scores, by, pool, group_values),
        strata=(human.shape[1],),
        tests=tests,
        finest={"perm-both": finest_swaps(human), "williams": partial(finest_t, human)},
    )


class MetaEvaluation:
    """Metrics against people on one or more judged sets.

    >>> from tertium.scores import ScoreMatrix
    >>> people = ScoreMatrix("da", ("A", "B"), np.array([[80.0, 90, 70], [40, 50, 45]]))
    >>> good = ScoreMatrix("good", ("A", "B"), np.array([[0.8, 0.9, 0.6], [0.4, 0.6, 0.5]]))
    >>> bad = ScoreMatrix("bad", ("A", "B"), np.array([[0.1, 0.9, 0.3], [0.8, 0.2, 0.4]]))
    >>> both = JudgedSet.align("de-en", [good, bad], human=people)
    >>> MetaEvaluation([both]).run([Task(sets=("de-en",))]).tasks[0].values.round(3)
    array([0.946, 0.037])
    """

    def __init__(self, sets: Sequence[JudgedSet], *, seed: int = 12345) -> None:
        if not sets:
            raise DataError("there is nothing to evaluate: no judged set was given")
        names = [judged.name for judged in sets]
        repeated = next((name for name in names if names.count(name) > 1), None)
        if repeated is not None:
            raise DataError(f"two judged sets are named {repeated!r}; name them apart")
        self.metrics = tuple(dict.fromkeys(m for judged in sets for m in judged.metrics))
        if not self.metrics:
            raise UsageError("there is no metric to evaluate")
        self.sets = {judged.name: judged.with_metrics(self.metrics) for judged in sets}
        self.seed = seed

    def run(self, tasks: Sequence[Task]) -> Results:
        """The figures of every task."""
        if not tasks:
            raise UsageError("no task was given")
        done = [self.run_task(task) for task in track(tasks, "meta-evaluation")]
        return Results(
            metrics=self.metrics,
            tasks=tuple(done),
            seed=self.seed,
            left_out={name: judged.left_out for name, judged in self.sets.items()},
        )

    def run_task(self, task: Task) -> TaskResult:
        """The figures of one task, which no other task changes."""
        for name in task.sets:
            if name not in self.sets:
                raise UnknownNameError("judged set", name, self.sets)
        # a value that is drawn must not change with the test, its level or its samples
        own = generator(self.seed, zlib.crc32(task.name.encode()))
        rng = generator(self.seed, zlib.crc32(task.drawn_by.encode()))
        measured = measure(task, [self.sets[name] for name in task.sets], own)
        drawn = np.zeros((0, len(self.metrics)))
        if task.samples:
            drawn = bootstrap(measured.replicate, measured.strata, samples=task.samples, rng=rng)
        values, p = measured.agreement.value, _p_values(task, measured, drawn, rng)
        figures = figures_of(self.metrics, values, drawn, p, task.confidence, task.alpha)
        least = measured.least_p(task.test, task.samples)
        return TaskResult(**vars(figures), task=task, agreement=measured.agreement, least_p=least)


def _p_values(
    task: Task, measured: Measured, drawn: FloatArray, rng: np.random.Generator
) -> FloatArray:
    metrics = measured.agreement.value
    if not task.samples or task.test == "none":
        return no_p_values(len(metrics))
    if task.test == "bootstrap":
        p = bootstrap_p_values(drawn)
    else:
        p = measured.tests[task.test](samples=task.samples, rng=rng)
    undefined = np.isnan(metrics)
    p[undefined] = p[:, undefined] = np.nan
    return p
