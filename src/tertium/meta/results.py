"""Results of meta-evaluation tasks: values of metrics with intervals, p-values and ranks."""

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


def percentile_interval(
    replicates: FloatArray, confidence_level: float = 0.95
) -> tuple[FloatArray, FloatArray]:
    """Return percentile bounds of bootstrap values (resamples, metrics), ignoring NaN.

    >>> bounds = percentile_interval(np.arange(101.0)[:, None], 0.9)
    >>> [bound.round(2).tolist() for bound in bounds]
    [[5.0], [95.0]]
    """
    if not 0.0 < confidence_level < 1.0:
        raise UsageError(f"confidence_level must be between 0 and 1, got {confidence_level}")
    bounds = np.full((2, replicates.shape[1]), np.nan)
    tail = (1.0 - confidence_level) / 2
    for metric, values in enumerate(replicates.T):
        defined = values[~np.isnan(values)]
        if len(defined):
            bounds[:, metric] = np.quantile(defined, [tail, 1.0 - tail])
    return bounds[0], bounds[1]


def bootstrap_p_values(replicates: FloatArray) -> FloatArray:
    """Return the share of resamples (plus one) in which metric i is not better than j."""
    count = replicates.shape[1]
    result = np.ones((count, count))
    for i in range(count):
        for j in range(count):
            difference = replicates[:, i] - replicates[:, j]
            defined = ~np.isnan(difference)
            if i != j:
                # equal metrics on different scales differ by rounding
                known_count, losses = int(defined.sum()), int((difference[defined] <= 1e-12).sum())
                result[i, j] = (1 + losses) / (1 + known_count) if known_count else np.nan
    return result


def assign_ranks(values: FloatArray, p_values: FloatArray, alpha: float = 0.05) -> list[int | None]:
    """Assign ranks from 1; metrics that do not differ significantly share a rank (mt-metrics-eval).

    From the best metric down, a new rank begins with the first metric that some metric of the
    current rank beats significantly. A metric without a value gets no rank. If nothing was tested,
    metrics are ranked by value, and equal values share a rank.

    >>> p_values = np.array([[1, 1, 1], [0.01, 1, 0.3], [0.02, 1, 1]])
    >>> assign_ranks(np.array([0.5, 0.9, 0.8]), p_values)
    [2, 1, 1]
    """
    if np.isnan(p_values).all():
        defined = values[~np.isnan(values)]
        return [int((defined > v).sum()) + 1 if v == v else None for v in values]
    order = [int(m) for m in np.argsort(-values, kind="stable") if not np.isnan(values[m])]
    ranks: list[int | None] = [None] * len(values)
    current: list[int] = []
    rank = 1
    for metric in order:
        if any(p_values[member, metric] < alpha for member in current):
            rank, current = rank + 1, []
        current.append(metric)
        ranks[metric] = rank
    return ranks


@dataclass(frozen=True, kw_only=True, eq=False)
class MetricEstimates:
    """Values of a statistic for each metric, with confidence intervals, p-values and ranks.

    `low` and `high` are the bounds of the bootstrap interval. `p_values` [i, j] is small if metric
    i is significantly better than j. Both are NaN without resamples. `ranks` start at 1; metrics
    that do not differ significantly share a rank. `replicates` (resamples, metrics) are the
    bootstrap values.
    """

    metrics: tuple[str, ...]
    values: FloatArray
    low: FloatArray
    high: FloatArray
    p_values: FloatArray
    ranks: tuple[int | None, ...]
    replicates: FloatArray = field(repr=False)
    alpha: float = 0.05

    @property
    def best(self) -> int | None:
        """The index of the metric with the highest value; None if no metric has one."""
        return None if np.isnan(self.values).all() else int(np.nanargmax(self.values))

    @property
    def is_tested(self) -> bool:
        """Whether any two metrics were tested against each other."""
        return not np.isnan(self.p_values).all()

    @property
    def not_worse(self) -> BoolArray:
        """Mask of the metrics that the best one does not beat significantly, itself included."""
        if self.best is None:
            return np.zeros(len(self.values), dtype=bool)
        worse = np.isnan(self.values) | (self.p_values[self.best] < self.alpha)
        marks: BoolArray = ~worse & self.is_tested
        marks[self.best] = True
        return marks


@dataclass(frozen=True, kw_only=True, eq=False)
class TaskResult(MetricEstimates):
    """The result of one task; `smallest_p_value` is the smallest that its test can give."""

    task: Task
    agreement: Agreement
    smallest_p_value: float = 0.0

    def records(self) -> list[dict[str, Any]]:
        """Return one dictionary for each metric."""
        counts, marks = self.agreement, self.not_worse
        return [
            {
                "metric": metric,
                "sets": list(self.task.sets),
                "statistic": self.task.statistic,
                "level": self.task.level,
                "grouping": self.task.grouping,
                "value": float(self.values[n]),
                "interval": [float(self.low[n]), float(self.high[n])],
                "confidence": self.task.confidence_level,
                "rank": self.ranks[n],
                "best": n == self.best,
                "not_significantly_worse": bool(marks[n]) if self.is_tested else None,
                "judged": counts.judged_count,
                "used": int(counts.used[n]),
                "left_out": int(counts.excluded_counts[n]),
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
    """The results of all tasks, and their averages.

    `excluded_counts` and `unscored_systems` are those of `AlignedScores`, by set.
    """

    metrics: tuple[str, ...]
    tasks: tuple[TaskResult, ...]
    seed: int
    excluded_counts: Mapping[str, Mapping[str, Mapping[str, int]]] = field(default_factory=dict)
    unscored_systems: Mapping[str, Mapping[str, tuple[str, ...]]] = field(default_factory=dict)

    @cached_property
    def average(self) -> MetricEstimates:
        """The mean over tasks; NaN for a metric that lacks a value in any of them.

        With several statistics it averages different scales; `by_statistic` separates them. The
        bootstrap samples of tasks are independent, so their mean is a sample of the average. It is
        tested by the bootstrap, unless the tasks have no test.
        """
        values = np.mean([task.values for task in self.tasks], axis=0)
        resamples = min(len(task.replicates) for task in self.tasks)
        drawn = np.mean([task.replicates[:resamples] for task in self.tasks], axis=0)
        first = self.tasks[0].task
        tested = resamples > 0 and all(task.task.test != "none" for task in self.tasks)
        p = bootstrap_p_values(drawn) if tested else nan_p_values(len(values))
        return make_estimates(self.metrics, values, drawn, p, first.confidence_level, first.alpha)

    @cached_property
    def average_rank(self) -> FloatArray:
        """The mean rank of each metric over the tasks that are defined for any.

        A metric that has no rank in one of them is NaN.
        """
        ranks = [task.ranks for task in self.tasks if task.best is not None]
        if not ranks:
            return np.full(len(self.metrics), np.nan)
        mean: FloatArray = np.mean(np.array(ranks, dtype=np.float64), axis=0)  # None becomes NaN
        return mean

    def by_statistic(self) -> dict[str, Results]:
        """Split the results by statistic, and by level if a statistic has several."""
        groups: dict[tuple[str, str], list[TaskResult]] = {}
        for result in self.tasks:
            groups.setdefault((result.task.statistic, result.task.level), []).append(result)
        statistics = [statistic for statistic, _ in groups]
        return {
            statistic if statistics.count(statistic) == 1 else f"{statistic} {level}": replace(
                self, tasks=tuple(tasks)
            )
            for (statistic, level), tasks in groups.items()
        }

    def records(self) -> dict[str, Any]:
        """Return all results as plain values, for JSON; averages are per statistic."""
        parts = self.by_statistic()
        return {
            "metrics": list(self.metrics),
            "seed": self.seed,
            "tasks": [record for task in self.tasks for record in task.records()],
            "average": [r for kind, part in parts.items() for r in part._average_records(kind)],
            "average_rank": dict(zip(self.metrics, self.average_rank.tolist(), strict=True)),
            "left_out": {name: dict(counts) for name, counts in self.excluded_counts.items()},
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


def nan_p_values(metrics: int) -> FloatArray:
    """Return p-values of metrics that were not tested, (metrics, metrics)."""
    return np.full((metrics, metrics), np.nan)


def make_estimates(
    metrics: tuple[str, ...],
    values: FloatArray,
    drawn: FloatArray,
    p_values: FloatArray,
    confidence_level: float,
    alpha: float,
) -> MetricEstimates:
    """Make estimates with intervals from bootstrap values `drawn` and ranks from p-values."""
    low, high = percentile_interval(drawn, confidence_level)
    return MetricEstimates(
        metrics=metrics,
        values=values,
        low=low,
        high=high,
        p_values=p_values,
        ranks=tuple(assign_ranks(values, p_values, alpha)),
        replicates=drawn,
        alpha=alpha,
    )
