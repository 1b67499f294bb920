"""The ranking protocols of WMT metrics tasks: statistics, weights and tests.

Each language pair has two tasks: soft pairwise accuracy of systems and acc_eq* of segments. The
weighted mean ranks the metrics; metrics that do not differ significantly share a rank. See
docs/meta-evaluation for the definition of every step.
"""

from __future__ import annotations

import math
import os
import zlib
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tertium.arrays import FloatArray, check_resamples, make_rng
from tertium.errors import UnknownNameError, UsageError
from tertium.execution import track_progress
from tertium.meta.agreement import make_layout, select_judged_columns
from tertium.meta.aligned_scores import AlignedScores
from tertium.meta.evaluation import MetaEvaluation
from tertium.meta.permutation import (
    PermutationTest,
    average_tests,
    permute_accuracy,
    permute_soft_accuracy,
)
from tertium.meta.results import MetricEstimates, TaskResult, make_estimates
from tertium.meta.tasks import Task

WORKERS = 4  # tasks in parallel; each has its own random generator


@dataclass(frozen=True, kw_only=True)
class Protocol:
    """The rules of one year; `caveats` list what is assumed rather than published."""

    name: str
    title: str
    lps: tuple[str, ...]
    statistics: tuple[str, ...] = ("spa", "acc-eq*")
    caveats: tuple[str, ...] = ()

    def tasks(self, sets: Sequence[str], **choices: Any) -> list[Task]:
        """Make the tasks on these judged sets, in the order of the shared task's table."""
        return [
            Task(sets=(name,), statistic=statistic, test="none", **choices)
            for name in sorted(sets)
            for statistic in self.statistics
        ]


PROTOCOLS: Mapping[str, Protocol] = {
    "wmt24": Protocol(name="wmt24", title="WMT24 metrics task", lps=("en-de", "en-es", "ja-zh")),
    "wmt25": Protocol(
        name="wmt25",
        title="WMT25 evaluation task, quality scores",
        lps=tuple(
            "cs-de cs-uk en-ar en-bho en-cs en-et en-is en-it en-ja en-ko en-mas en-ru en-sr en-uk "
            "en-zh ja-zh".split()
        ),
        caveats=("assumed: statistics, tests and equal weights are those of WMT24",),
    ),
}


@dataclass(frozen=True, kw_only=True, eq=False)
class ProtocolResults:
    """The results of a protocol: estimates of each task and of their weighted mean."""

    protocol: Protocol
    metrics: tuple[str, ...]
    tasks: tuple[TaskResult, ...]
    weights: tuple[float, ...]
    average: MetricEstimates
    resamples: int
    seed: int

    @property
    def missing(self) -> tuple[str, ...]:
        """The language pairs of the shared task that are not among the sets."""
        here = {task.task.label for task in self.tasks}
        return tuple(lp for lp in self.protocol.lps if lp not in here)

    def records(self) -> dict[str, Any]:
        """Return all results as plain values, for JSON."""
        tasks = [
            {
                **record,
                "test": "perm-both" if task.task.statistic == "spa" else "pairs",
                "weight": w,
            }
            for task, w in zip(self.tasks, self.weights, strict=True)
            for record in task.records()
        ]
        average = [
            {
                "metric": metric,
                "value": float(self.average.values[n]),
                "rank": self.average.ranks[n],
                "p_better_than": dict(
                    zip(self.metrics, self.average.p_values[n].tolist(), strict=True)
                ),
            }
            for n, metric in enumerate(self.metrics)
        ]
        return {
            "protocol": self.protocol.name,
            "missing": list(self.missing),
            "assumed": list(self.protocol.caveats),
            "samples": self.resamples,
            "seed": self.seed,
            "tasks": tasks,
            "average": average,
        }


def run_protocol(
    sets: Sequence[AlignedScores],
    name: str = "wmt24",
    *,
    resamples: int = 1000,
    alpha: float = 0.05,
    seed: int = 12345,
) -> ProtocolResults:
    """Rank metrics by the rules of a shared task; `resamples=0` ranks by value without tests."""
    check_resamples(resamples, least=0)
    if name not in PROTOCOLS:
        raise UnknownNameError("protocol", name, PROTOCOLS)
    protocol = PROTOCOLS[name]
    unscored = next((s.name for s in sets if np.isnan(s.human).all()), None)
    if unscored is not None:
        raise UsageError(f"{unscored}: {protocol.title} needs human segment scores")
    evaluation = MetaEvaluation(sets, seed=seed)
    tasks = protocol.tasks([*evaluation.sets], resamples=0, alpha=alpha)

    def run(task: Task) -> tuple[TaskResult, PermutationTest | None]:
        result = evaluation.run_task(task)
        aligned = evaluation.sets[task.sets[0]]
        return result, _permute(result, aligned, resamples, seed) if resamples else None

    with ThreadPoolExecutor(min(WORKERS, os.cpu_count() or 1)) as pool:
        futures = [pool.submit(run, task) for task in tasks]
        try:
            results = [future.result() for future in track_progress(futures, "tasks")]
        finally:  # after Ctrl-C, leaving the pool would wait for all tasks
            pool.shutdown(cancel_futures=True)
    weights = tuple(1.0 / len(results) for _ in results)
    tests = [test for _, test in results if test is not None]
    values: FloatArray = np.sum(
        [w * result.values for w, (result, _) in zip(weights, results, strict=True)], axis=0
    )
    average = average_tests(tests, weights) if tests else None
    return ProtocolResults(
        protocol=protocol,
        metrics=evaluation.metrics,
        tasks=tuple(
            replace(result, **vars(_rank(evaluation.metrics, result.values, test, alpha)))
            for result, test in results
        ),
        weights=weights,
        average=_rank(evaluation.metrics, values, average, alpha),
        resamples=resamples,
        seed=seed,
    )


def _permute(
    result: TaskResult, aligned: AlignedScores, resamples: int, seed: int
) -> PermutationTest:
    rng = make_rng(seed, zlib.crc32(result.task.name.encode()), 1)
    human, scores = select_judged_columns(aligned.name, aligned.human, aligned.scores)
    if result.task.statistic == "spa":
        return permute_soft_accuracy(human, scores, resamples=resamples, rng=rng)
    epsilon = np.nan_to_num(np.asarray(result.agreement.epsilon))
    return permute_accuracy(
        make_layout(human, scores, "item"), epsilon, resamples=resamples, rng=rng
    )


def _rank(
    metrics: tuple[str, ...], values: FloatArray, test: PermutationTest | None, alpha: float
) -> MetricEstimates:
    p = np.full((len(values), len(values)), np.nan) if test is None else test.p_values
    p[np.isnan(values)] = p[:, np.isnan(values)] = np.nan
    # mt-metrics-eval counts a p-value equal to alpha as significant
    return make_estimates(
        metrics, values, np.zeros((0, len(values))), p, 0.95, math.nextafter(alpha, 1)
    )
