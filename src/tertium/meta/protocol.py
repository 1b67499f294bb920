"""The protocols of WMT's metrics tasks: which figures are taken, weighed and tested, in one table.

Two tasks for each language pair, soft pairwise accuracy of systems and acc_eq* of segments; the
weighted mean ranks the metrics, and metrics that cannot be told apart share a rank. The definition
of every step is linked in docs/meta-evaluation.md.
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

from tertium.arrays import FloatArray, generator
from tertium.errors import UnknownNameError, UsageError
from tertium.meta.agreement import judged_columns, lay_out
from tertium.meta.contests import Contest, accuracy_contest, average_contest, soft_accuracy_contest
from tertium.meta.evaluation import MetaEvaluation
from tertium.meta.judged import JudgedSet
from tertium.meta.results import Figures, TaskResult, figures_of
from tertium.meta.tasks import Task
from tertium.runtime import track

WORKERS = 4  # tasks at a time; each draws from a generator of its own


@dataclass(frozen=True, kw_only=True)
class Protocol:
    """A year's rules: statistics for each language pair, and the pairs that the task was held on.

    `caveats` say what of it is assumed rather than published.
    """

    name: str
    title: str
    lps: tuple[str, ...]
    statistics: tuple[str, ...] = ("spa", "acc-eq*")
    caveats: tuple[str, ...] = ()

    def tasks(self, sets: Sequence[str], **choices: Any) -> list[Task]:
        """The tasks on some judged sets, in the order of the task's table."""
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
    """A protocol carried out: figures of each task, and of their weighted mean."""

    protocol: Protocol
    metrics: tuple[str, ...]
    tasks: tuple[TaskResult, ...]
    weights: tuple[float, ...]
    average: Figures
    samples: int
    seed: int

    @property
    def missing(self) -> tuple[str, ...]:
        """The language pairs of the shared task that are not among the sets."""
        here = {task.task.label for task in self.tasks}
        return tuple(lp for lp in self.protocol.lps if lp not in here)

    def records(self) -> dict[str, Any]:
        """Everything as plain values, for JSON."""
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
            "samples": self.samples,
            "seed": self.seed,
            "tasks": tasks,
            "average": average,
        }


def follow_protocol(
    sets: Sequence[JudgedSet],
    name: str = "wmt24",
    *,
    samples: int = 1000,
    alpha: float = 0.05,
    seed: int = 12345,
) -> ProtocolResults:
    """Rank metrics on judged sets as a shared task did.

    `samples` are draws of every test, 0 for none: then ranks are places by value.
    """
    if name not in PROTOCOLS:
        raise UnknownNameError("protocol", name, PROTOCOLS)
    protocol = PROTOCOLS[name]
    unscored = next((s.name for s in sets if np.isnan(s.human).all()), None)
    if unscored is not None:
        raise UsageError(f"{unscored}: {protocol.title} asks for human scores of segments")
    evaluation = MetaEvaluation(sets, seed=seed)
    tasks = protocol.tasks([*evaluation.sets], samples=0, alpha=alpha)

    def run(task: Task) -> tuple[TaskResult, Contest | None]:
        result = evaluation.run_task(task)
        judged = evaluation.sets[task.sets[0]]
        return result, _contest(result, judged, samples, seed) if samples else None

    with ThreadPoolExecutor(min(WORKERS, os.cpu_count() or 1)) as pool:
        done = [future.result() for future in track([pool.submit(run, t) for t in tasks], "tasks")]
    return _sum_up(protocol, evaluation.metrics, done, samples=samples, alpha=alpha, seed=seed)


def _sum_up(
    protocol: Protocol,
    metrics: tuple[str, ...],
    done: Sequence[tuple[TaskResult, Contest | None]],
    *,
    samples: int,
    alpha: float,
    seed: int,
) -> ProtocolResults:
    """Ranks of each task and of the weighted mean."""
    weights = tuple(1.0 / len(done) for _ in done)
    contests = [contest for _, contest in done if contest is not None]
    values: FloatArray = np.sum(
        [w * result.values for w, (result, _) in zip(weights, done, strict=True)], axis=0
    )
    together = average_contest(contests, weights) if contests else None
    return ProtocolResults(
        protocol=protocol,
        metrics=metrics,
        tasks=tuple(
            replace(result, **vars(_rank(metrics, result.values, contest, alpha)))
            for result, contest in done
        ),
        weights=weights,
        average=_rank(metrics, values, together, alpha),
        samples=samples,
        seed=seed,
    )


def _contest(result: TaskResult, judged: JudgedSet, samples: int, seed: int) -> Contest:
    rng = generator(seed, zlib.crc32(result.task.name.encode()), 1)
    human, scores = judged_columns(judged.name, judged.human, judged.scores)
    if result.task.statistic == "spa":
        return soft_accuracy_contest(human, scores, samples=samples, rng=rng)
    epsilon = np.nan_to_num(np.asarray(result.agreement.epsilon))
    return accuracy_contest(lay_out(human, scores, "item"), epsilon, samples=samples, rng=rng)


def _rank(
    metrics: tuple[str, ...], values: FloatArray, contest: Contest | None, alpha: float
) -> Figures:
    p = np.full((len(values), len(values)), np.nan) if contest is None else contest.p_values
    p[np.isnan(values)] = p[:, np.isnan(values)] = np.nan
    # mt-metrics-eval counts a p-value that equals the level as significant
    return figures_of(
        metrics, values, np.zeros((0, len(values))), p, 0.95, math.nextafter(alpha, 1)
    )
