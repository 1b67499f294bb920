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

from tertium.core.arrays import FloatArray
from tertium.core.errors import UnknownNameError, UsageError
from tertium.core.resampling import check_resamples, make_rng
from tertium.core.result import Cell, Column, Emphasis, Table, format_number
from tertium.core.runtime import track_progress
from tertium.meta.agreement import make_layout, select_judged_columns
from tertium.meta.agreement_results import (
    MetricEstimates,
    TaskResult,
    dim_cells,
    nan_p_values,
    rank_column,
)
from tertium.meta.aligned_scores import AlignedScores
from tertium.meta.metric_agreement import MetaEvaluation
from tertium.meta.permutation import (
    PermutationTest,
    average_tests,
    permute_accuracy,
    permute_soft_accuracy,
)
from tertium.meta.tasks import Task

WORKERS = 4  # tasks in parallel; each has its own random generator
SHORT_NAMES = {"spa": "SPA", "acc-eq*": "acc*"}  # of the statistics, in column headers
TESTS = {"spa": "perm-both", "acc-eq*": "pairs"}


@dataclass(frozen=True, kw_only=True)
class Protocol:
    """The rules of one year; `caveats` list what is assumed rather than published."""

    name: str
    title: str
    lps: tuple[str, ...]
    caveats: tuple[str, ...] = ()


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
    """The results of a protocol: estimates of each task and of their mean."""

    protocol: Protocol
    metrics: tuple[str, ...]
    tasks: tuple[TaskResult, ...]
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
        shared = {"weight": 1 / len(self.tasks)}
        return {
            "protocol": self.protocol.name,
            "missing": list(self.missing),
            "assumed": list(self.protocol.caveats),
            "samples": self.resamples,
            "seed": self.seed,
            "tasks": [
                {**record, "test": TESTS[record["statistic"]], **shared}
                for task in self.tasks
                for record in task.records()
            ],
            "average": [
                {
                    "metric": metric,
                    "value": float(self.average.values[n]),
                    "rank": self.average.ranks[n],
                    "p_better_than": self.average.p_better_than(n),
                }
                for n, metric in enumerate(self.metrics)
            ],
        }

    def table(self) -> Table:
        """Return metrics x (rank, average, `value (rank)` by task), best average first."""
        average = _rank_columns("average", self.average)[0]
        columns = [
            Column("metric", self.metrics.__getitem__),
            rank_column("rank", self.average.ranks),
            replace(average, text=None),
        ]
        for task in self.tasks:
            name = f"{task.task.label} {SHORT_NAMES[task.task.statistic]}"
            columns += _rank_columns(name, task)
        title, *counts = dim_cells("human scores", [t.agreement.judged_count for t in self.tasks])
        count = f"{len(self.tasks)} task{'s' * (len(self.tasks) != 1)}"
        return Table(
            columns,
            self.average.order,
            title=f"{self.protocol.title}: {count} of equal weight",
            notes=self._notes(),
            footer=[[title, Cell(""), Cell(""), *counts]],
        )

    def _notes(self) -> list[str]:
        ranks = "no significance tests: metrics are ranked by value"
        if self.resamples:
            ranks = (
                "metrics with the same rank do not differ significantly (SPA: perm-both, acc*: "
                f"random pairs; p <= {self.average.alpha:.3g} one-sided, {self.resamples} "
                f"resamples, seed {self.seed})"
            )
        notes = [
            ranks,
            "SPA: soft pairwise accuracy of systems; acc*: acc_eq with tie calibration, by item",
        ]
        incomplete = [
            f"{task.task.label} {task.most_excluded:,}"
            for task in self.tasks
            if task.most_excluded and task.task.statistic == "acc-eq*"
        ]
        if incomplete:
            notes.append(f"pairs without a metric's score (at most): {', '.join(incomplete)}")
        if self.missing:
            notes.append(f"the shared task also had {', '.join(self.missing)}")
        return [*notes, *self.average.ceiling_notes(), *self.protocol.caveats]


def _rank_columns(name: str, own: MetricEstimates) -> list[Column]:
    """Return columns of the estimates of metrics: values, and ranks for files."""
    values, ranks = own.values.tolist(), own.ranks

    def text(metric: int, decimals: int) -> str:
        value, rank = format_number(values[metric], decimals), ranks[metric]
        return value if rank is None else f"{value} ({rank})"

    def mark(metric: int) -> Emphasis:
        return "best" if ranks[metric] == 1 else ""

    return [
        Column(name, values.__getitem__, 3, text=text, mark=mark, adjustable=True),
        Column(f"{name} rank", ranks.__getitem__, 0, show=False),
    ]


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
    tasks = [  # in the order of the shared task's table
        Task(sets=(name,), statistic=statistic, test="none", resamples=0, alpha=alpha)
        for name in sorted(evaluation.sets)
        for statistic in SHORT_NAMES
    ]

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
    tests = [test for _, test in results if test is not None]
    weight = 1.0 / len(results)
    values: FloatArray = np.sum([weight * result.values for result, _ in results], axis=0)
    average = average_tests(tests, [weight] * len(tests)) if tests else None
    alpha = math.nextafter(alpha, 1)  # mt-metrics-eval counts an equal p-value as significant
    return ProtocolResults(
        protocol=protocol,
        metrics=evaluation.metrics,
        tasks=tuple(
            replace(result, p_values=_p_values(result.values, test), alpha=alpha)
            for result, test in results
        ),
        average=MetricEstimates(
            metrics=evaluation.metrics,
            values=values,
            p_values=_p_values(values, average),
            replicates=np.zeros((0, len(values))),
            alpha=alpha,
        ),
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


def _p_values(values: FloatArray, test: PermutationTest | None) -> FloatArray:
    """Return the p-values of a test; NaN without a test, and for metrics without a value."""
    p = nan_p_values(len(values)) if test is None else test.p_values
    p[np.isnan(values)] = p[:, np.isnan(values)] = np.nan
    return p
