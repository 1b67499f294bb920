"""What came of tasks: a value for each metric, with its interval, p-values, rank and counts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from tertium.arrays import BoolArray, FloatArray
from tertium.errors import UsageError
from tertium.meta.agreement import Agreement
from tertium.meta.tasks import Task


def interval(replicates: FloatArray, confidence: float = 0.95) -> tuple[FloatArray, FloatArray]:
    """Percentile bounds of bootstrap values (samples, metrics), undefined samples left out.

    >>> [bound.round(2).tolist() for bound in interval(np.arange(101.0)[:, None], 0.9)]
    [[5.0], [95.0]]
    """
    if not 0.0 < confidence < 1.0:
        raise UsageError(f"a confidence level lies between 0 and 1, got {confidence}")
    bounds = np.full((2, replicates.shape[1]), np.nan)
    tail = (1.0 - confidence) / 2
    for metric, values in enumerate(replicates.T):
        defined = values[~np.isnan(values)]
        if len(defined):
            bounds[:, metric] = np.quantile(defined, [tail, 1.0 - tail])
    return bounds[0], bounds[1]


def bootstrap_p_values(replicates: FloatArray) -> FloatArray:
    """The share of samples (samples, metrics) in which metric i is not better than metric j.

    One more sample is counted on either side, so that no p-value is 0.
    """
    count = replicates.shape[1]
    result = np.ones((count, count))
    for i in range(count):
        for j in range(count):
            difference = replicates[:, i] - replicates[:, j]
            defined = ~np.isnan(difference)
            if i != j:
                # the values of equal metrics on different scales differ by rounding
                known, losses = int(defined.sum()), int((difference[defined] <= 1e-12).sum())
                result[i, j] = (1 + losses) / (1 + known) if known else np.nan
    return result


def clusters(values: FloatArray, p_values: FloatArray, alpha: float = 0.05) -> list[int]:
    """The rank of each metric, shared by metrics that cannot be told apart (as mt-metrics-eval).

    From the best metric down, a new rank begins with the first metric that some metric of the
    current rank beats significantly. A metric without a value gets the rank after the last. Where
    nothing was tested, ranks are places by value, which equal values share.

    >>> clusters(np.array([0.5, 0.9, 0.8]), np.array([[1, 1, 1], [0.01, 1, 0.3], [0.02, 1, 1]]))
    [2, 1, 1]
    """
    if np.isnan(p_values).all():
        known = values[~np.isnan(values)]
        return [int((known > v).sum()) + 1 if v == v else len(known) + 1 for v in values]
    order = [int(m) for m in np.argsort(-values, kind="stable") if not np.isnan(values[m])]
    ranks = [0] * len(values)
    current: list[int] = []
    rank = 1
    for metric in order:
        if any(p_values[member, metric] < alpha for member in current):
            rank, current = rank + 1, []
        current.append(metric)
        ranks[metric] = rank
    last = rank + 1 if order else 1
    return [r or last for r in ranks]


@dataclass(frozen=True, kw_only=True, eq=False)
class Figures:
    """One column of a table: a value for each metric, and how sure one can be of it.

    `low` and `high` bound the bootstrap interval; `p_values` [i, j] is small where metric i is
    significantly better than j; both NaN where they were not asked for. `ranks` are shared by
    metrics that cannot be told apart, 1 for the best. `replicates` (samples, metrics) are the
    bootstrap values, no rows where there are none.
    """

    metrics: tuple[str, ...]
    values: FloatArray
    low: FloatArray
    high: FloatArray
    p_values: FloatArray
    ranks: tuple[int, ...]
    replicates: FloatArray = field(repr=False)
    alpha: float = 0.05

    @property
    def best(self) -> int | None:
        """The metric with the highest value; None where no metric has one."""
        return None if np.isnan(self.values).all() else int(np.nanargmax(self.values))

    @property
    def is_tested(self) -> bool:
        """Whether any two metrics were tested against each other."""
        return not np.isnan(self.p_values).all()

    @property
    def not_worse(self) -> BoolArray:
        """Which metrics the best one does not beat significantly, itself among them, (metrics,).

        Where nothing was tested, the best alone; where a test had no p-value, it found nothing.
        """
        if self.best is None:
            return np.zeros(len(self.values), dtype=bool)
        worse = np.isnan(self.values) | (self.p_values[self.best] < self.alpha)
        marks: BoolArray = ~worse & self.is_tested
        marks[self.best] = True
        return marks


@dataclass(frozen=True, kw_only=True, eq=False)
class TaskResult(Figures):
    """What came of one task; `agreement` counts what was judged, used and left out.

    `least_p` is the smallest p-value that its test can give.
    """

    task: Task
    agreement: Agreement
    least_p: float = 0.0

    def records(self) -> list[dict[str, Any]]:
        """One plain dictionary for each metric."""
        counts, marks = self.agreement, self.not_worse
        return [
            {
                "metric": metric,
                "sets": list(self.task.sets),
                "statistic": self.task.statistic,
                "level": self.task.level,
                "grouping": self.task.by,
                "value": float(self.values[n]),
                "interval": [float(self.low[n]), float(self.high[n])],
                "confidence": self.task.confidence,
                "rank": self.ranks[n],
                "best": n == self.best,
                "not_significantly_worse": bool(marks[n]) if self.is_tested else None,
                "judged": counts.judged,
                "used": int(counts.used[n]),
                "left_out": int(counts.left_out[n]),
                "groups": counts.groups,
                "undefined_groups": int(counts.undefined[n]),
                "epsilon": None if counts.epsilon is None else float(counts.epsilon[n]),
                "test": self.task.test if self.is_tested else "none",
                "p_better_than": dict(zip(self.metrics, self.p_values[n].tolist(), strict=True)),
            }
            for n, metric in enumerate(self.metrics)
        ]


@dataclass(frozen=True, kw_only=True, eq=False)
class Results:
    """All tasks of an evaluation, with what sums them up.

    `left_out` counts by set and metric what did not match; see `JudgedSet`.
    """

    metrics: tuple[str, ...]
    tasks: tuple[TaskResult, ...]
    seed: int
    left_out: Mapping[str, Mapping[str, Mapping[str, int]]] = field(default_factory=dict)

    @cached_property
    def average(self) -> Figures:
        """The mean over tasks, NaN for a metric that lacks a value in any of them.

        Of several statistics it is a mean of unlike numbers; `by_statistic` takes them apart.

        The tasks' bootstrap samples are independent, so their mean is a sample of the average, by
        which it is tested whatever test the tasks took, unless they took none.
        """
        values = np.mean([task.values for task in self.tasks], axis=0)
        samples = min(len(task.replicates) for task in self.tasks)
        drawn = np.mean([task.replicates[:samples] for task in self.tasks], axis=0)
        first = self.tasks[0].task
        tested = samples > 0 and all(task.task.test != "none" for task in self.tasks)
        p = bootstrap_p_values(drawn) if tested else no_p_values(len(values))
        return figures_of(self.metrics, values, drawn, p, first.confidence, first.alpha)

    @cached_property
    def average_rank(self) -> FloatArray:
        """The mean over tasks of each metric's rank among those it can be told apart from.

        A task that is undefined for every metric ranks nothing and is left out.
        """
        ranks = [task.ranks for task in self.tasks if task.best is not None]
        if not ranks:
            return np.full(len(self.metrics), np.nan)
        mean: FloatArray = np.mean(ranks, axis=0)
        return mean

    def by_statistic(self) -> dict[str, Results]:
        """The results of each statistic, whose averages mix nothing."""
        kinds = dict.fromkeys(task.task.statistic for task in self.tasks)
        return {
            kind: replace(self, tasks=tuple(t for t in self.tasks if t.task.statistic == kind))
            for kind in kinds
        }

    def records(self) -> dict[str, Any]:
        """Everything as plain values, for JSON; averages are over the tasks of one statistic."""
        parts = self.by_statistic()
        return {
            "metrics": list(self.metrics),
            "seed": self.seed,
            "tasks": [record for task in self.tasks for record in task.records()],
            "average": [r for kind, part in parts.items() for r in part._average_records(kind)],
            "average_rank": dict(zip(self.metrics, self.average_rank.tolist(), strict=True)),
            "left_out": {name: dict(counts) for name, counts in self.left_out.items()},
        }

    def _average_records(self, statistic: str) -> list[dict[str, Any]]:
        average, marks = self.average, self.average.not_worse
        return [
            {
                "metric": metric,
                "statistic": statistic,
                "value": float(average.values[n]),
                "interval": [float(average.low[n]), float(average.high[n])],
                "rank": average.ranks[n],
                "best": n == average.best,
                "not_significantly_worse": bool(marks[n]) if average.is_tested else None,
                "average_rank": float(self.average_rank[n]),
            }
            for n, metric in enumerate(self.metrics)
        ]


def no_p_values(metrics: int) -> FloatArray:
    """Those of metrics that were not tested, (metrics, metrics)."""
    return np.full((metrics, metrics), np.nan)


def figures_of(
    metrics: tuple[str, ...],
    values: FloatArray,
    drawn: FloatArray,
    p_values: FloatArray,
    confidence: float,
    alpha: float,
) -> Figures:
    """Values with intervals from bootstrap samples `drawn`, and ranks by p-values."""
    low, high = interval(drawn, confidence)
    return Figures(
        metrics=metrics,
        values=values,
        low=low,
        high=high,
        p_values=p_values,
        ranks=tuple(clusters(values, p_values, alpha)),
        replicates=drawn,
        alpha=alpha,
    )
