"""Run meta-evaluation tasks on aligned human and metric scores.

`measure` turns a task and its sets into a `Measurement`: values, a bootstrap `Replicate` and the
available tests. Every task has its own generator, seeded by the evaluation's seed and the task's
options, so its results do not depend on other tasks.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping, Sequence
from functools import partial

import numpy as np

from tertium.core.arrays import FloatArray
from tertium.core.errors import DataError, UnknownNameError, UsageError
from tertium.core.resampling import make_rng
from tertium.core.runtime import track_progress
from tertium.meta.accuracy import (
    accuracy_pair_test,
    accuracy_replicate,
    average_accuracy,
    calibrate_all,
    measure_accuracies,
    measure_spa,
)
from tertium.meta.agreement import (
    Grouping,
    Layout,
    Measurement,
    TestFunction,
    average_groups,
    make_layout,
    pearson_values,
    select_judged_columns,
    spearman_values,
)
from tertium.meta.agreement_results import Results, TaskResult, nan_p_values
from tertium.meta.aligned_scores import AlignedScores
from tertium.meta.pairwise import kendall_b_values, measure_comparisons, measure_darr
from tertium.meta.replicates import (
    Pooled,
    bootstrap,
    bootstrap_p_values,
    grouped_replicate,
    kendall_b_replicate,
    pearson_replicate,
    perm_both,
    spearman_replicate,
    williams,
)
from tertium.meta.tasks import Task


def measure(task: Task, sets: Sequence[AlignedScores], rng: np.random.Generator) -> Measurement:
    """Compute a task on its sets, which must list the same metrics in the same order."""
    first = sets[0]
    if task.statistic == "accuracy":
        return measure_accuracies(sets)
    if task.statistic == "spa":
        return measure_spa(first, rng)
    if task.kind.reads_comparisons:
        if first.comparisons is None:
            raise DataError(
                f"{first.name}: {task.statistic} needs human comparisons, but there are only scores"
            )
        return measure_comparisons(first.comparisons, first.scores, task.statistic)
    if task.level == "system":
        return _measure_scores(*first.system_columns(), task.statistic, "none")
    human, scores = select_judged_columns(first.name, first.human, first.scores)
    if task.statistic in ("darr", "darr17"):
        year = 2018 if task.statistic == "darr" else 2017
        return measure_darr(make_layout(human, scores, "item"), year, task.threshold)
    return _measure_scores(human, scores, task.statistic, task.grouping or "none")


# The values of a correlation by group, and its bootstrap replicate if all cells are pooled.
_CORRELATIONS: Mapping[str, tuple[Callable[[Layout], FloatArray], Pooled]] = {
    "pearson": (pearson_values, pearson_replicate),
    "spearman": (spearman_values, spearman_replicate),
    "kendall": (kendall_b_values, kendall_b_replicate),
}


def _measure_scores(
    human: FloatArray, scores: FloatArray, statistic: str, grouping: Grouping
) -> Measurement:
    """Measure a correlation or acc_eq of (systems, segments) and (metrics, systems, segments)."""
    tests: dict[str, TestFunction] = {}
    layout = make_layout(human, scores, grouping)
    if statistic in _CORRELATIONS:
        compute, pool = _CORRELATIONS[statistic]
        values = compute(layout)
        agreement = average_groups(layout, values)
    else:
        epsilon = calibrate_all(layout) if statistic == "acc-eq*" else np.zeros(len(scores))
        agreement, values = average_accuracy(layout, epsilon)
        pool = partial(accuracy_replicate, epsilon=epsilon)
        tests["pairs"] = partial(accuracy_pair_test, layout, epsilon)
    if statistic == "pearson" and grouping == "none":
        tests["perm-both"] = partial(perm_both, human, scores)
        tests["williams"] = lambda **_: williams(human, scores)
    return Measurement(
        agreement=agreement,
        replicate=grouped_replicate(human, scores, grouping, pool, values),
        strata=(human.shape[1],),
        tests=tests,
    )


class MetaEvaluation:
    """Evaluate metrics against human scores on one or more sets.

    >>> from tertium.core.scores import ScoreMatrix
    >>> human = ScoreMatrix("da", ("A", "B"), np.array([[80.0, 90, 70], [40, 50, 45]]))
    >>> good = ScoreMatrix("good", ("A", "B"), np.array([[0.8, 0.9, 0.6], [0.4, 0.6, 0.5]]))
    >>> bad = ScoreMatrix("bad", ("A", "B"), np.array([[0.1, 0.9, 0.3], [0.8, 0.2, 0.4]]))
    >>> aligned = AlignedScores.align("de-en", [good, bad], human=human)
    >>> MetaEvaluation([aligned]).run([Task(sets=("de-en",))]).tasks[0].values.round(3)
    array([0.946, 0.037])
    """

    def __init__(self, sets: Sequence[AlignedScores], *, seed: int = 12345) -> None:
        if not sets:
            raise DataError("no human judgments to evaluate: give at least one judged set")
        names = [aligned.name for aligned in sets]
        repeated = next((name for name in names if names.count(name) > 1), None)
        if repeated is not None:
            raise DataError(f"two judged sets are named {repeated!r}: give them different names")
        self.metrics = tuple(dict.fromkeys(m for aligned in sets for m in aligned.metrics))
        if not self.metrics:
            raise UsageError("no metric to evaluate: give at least one")
        self.sets = {aligned.name: aligned.with_metrics(self.metrics) for aligned in sets}
        self.seed = seed

    def run(self, tasks: Sequence[Task]) -> Results:
        if not tasks:
            raise UsageError("no task to run: give at least one")
        results = [self.run_task(task) for task in track_progress(tasks, "meta-evaluation")]
        return Results(
            metrics=self.metrics,
            tasks=tuple(results),
            seed=self.seed,
            sets=self.sets,
        )

    def run_task(self, task: Task) -> TaskResult:
        """Run one task, independently of all others."""
        for name in task.sets:
            if name not in self.sets:
                raise UnknownNameError("judged set", name, self.sets)
        # a sampled value (SPA) must not change with the test, alpha or the number of resamples
        value_rng = make_rng(self.seed, zlib.crc32(task.name.encode()))
        rng = make_rng(self.seed, zlib.crc32(task.seed_key.encode()))
        measured = measure(task, [self.sets[name] for name in task.sets], value_rng)
        drawn = np.zeros((0, len(self.metrics)))
        if task.resamples:
            drawn = bootstrap(
                measured.replicate, measured.strata, resamples=task.resamples, rng=rng
            )
        return TaskResult(
            metrics=self.metrics,
            values=measured.agreement.value,
            p_values=_p_values(task, measured, drawn, rng),
            replicates=drawn,
            confidence_level=task.confidence_level,
            alpha=task.alpha,
            task=task,
            agreement=measured.agreement,
        )


def _p_values(
    task: Task, measured: Measurement, drawn: FloatArray, rng: np.random.Generator
) -> FloatArray:
    metrics = measured.agreement.value
    if not task.resamples or task.test == "none":
        return nan_p_values(len(metrics))
    if task.test == "bootstrap":
        p = bootstrap_p_values(drawn)
    else:
        p = measured.tests[task.test](resamples=task.resamples, rng=rng)
    undefined = np.isnan(metrics)
    p[undefined] = p[:, undefined] = np.nan
    return p
