"""Results of meta-evaluation tasks: values of metrics with intervals, p-values and ranks."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from tertium.core.arrays import BoolArray, FloatArray
from tertium.core.charts import DotChart
from tertium.core.notes import resampling_warnings
from tertium.core.resampling import percentile_interval
from tertium.core.result import (
    Cell,
    Column,
    Emphasis,
    Result,
    Section,
    Table,
    bound_columns,
    count_column,
    format_number,
)
from tertium.data.ratings import HUMAN_ROW_PREFIX
from tertium.meta.agreement import Agreement
from tertium.meta.aligned_scores import NO_SYSTEM_SCORE
from tertium.meta.significance import bootstrap_p_values
from tertium.meta.tasks import Task

BEST, NOT_WORSE = "** ", "* "
MAX_CHART_SLICES = 60


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

    `p_values` [i, j] is small if metric i is significantly better than j. `replicates` (resamples,
    metrics) are the bootstrap values.
    """

    metrics: tuple[str, ...]
    values: FloatArray
    p_values: FloatArray
    replicates: FloatArray = field(repr=False)
    confidence_level: float = 0.95
    alpha: float = 0.05

    @cached_property
    def _bounds(self) -> tuple[FloatArray, FloatArray]:
        return percentile_interval(self.replicates, self.confidence_level)

    @property
    def low(self) -> FloatArray:
        """The lower bounds of the bootstrap intervals, (metrics,); NaN without resamples."""
        return self._bounds[0]

    @property
    def high(self) -> FloatArray:
        """The upper bounds, (metrics,)."""
        return self._bounds[1]

    @cached_property
    def ranks(self) -> tuple[int | None, ...]:
        """Ranks from 1; metrics that do not differ significantly share a rank."""
        return tuple(assign_ranks(self.values, self.p_values, self.alpha))

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

    @property
    def order(self) -> list[int]:
        """The indices of the metrics from the highest value down, NaN last."""
        return [int(n) for n in np.argsort(-self.values, kind="stable")]

    @property
    def by_metric(self) -> list[Estimate]:
        """The estimates of each metric, in the order of `metrics`."""
        not_worse = self.not_worse
        return [
            Estimate(
                metric=metric,
                value=float(self.values[n]),
                interval=[float(self.low[n]), float(self.high[n])],
                rank=self.ranks[n],
                best=n == self.best,
                not_significantly_worse=bool(not_worse[n]) if self.is_tested else None,
            )
            for n, metric in enumerate(self.metrics)
        ]

    def ceiling_notes(self) -> list[str]:
        """Return each metric's value as a share of the best human row, if there is one."""
        values = {self.metrics[n]: float(self.values[n]) for n in self.order}
        defined = {metric: value for metric, value in values.items() if value == value}
        humans = [metric for metric in defined if metric.startswith(HUMAN_ROW_PREFIX)]
        ceiling = max((defined.pop(metric) for metric in humans), default=0.0)
        if ceiling <= 0:
            return []
        shares = [f"{metric} {100 * value / ceiling:.0f} %" for metric, value in defined.items()]
        return ["share of the human ceiling: " + ", ".join(shares)]


@dataclass(frozen=True, kw_only=True)
class Estimate:
    """The estimates of one metric, in the layout of JSON."""

    metric: str
    value: float
    interval: list[float]
    rank: int | None
    best: bool
    not_significantly_worse: bool | None


def value_columns(name: str, place: int, *, intervals: bool) -> list[Column]:
    """Return columns of the estimate at a place of each row: its value, and bounds for files."""

    def text(row: Sequence[Any], decimals: int) -> str:
        own: Estimate = row[place]
        value = format_number(own.value, decimals)
        if np.isnan(own.value):
            return value
        if intervals:
            low, high = (f"{bound:z.{decimals}f}" for bound in own.interval)
            value += f" [{low}, {high}]"
        return (BEST if own.best else NOT_WORSE if own.not_significantly_worse else "") + value

    def mark(row: Sequence[Any]) -> Emphasis:
        return "best" if row[place].best else ""

    column = Column(name, lambda row: row[place].value, 3, text=text, mark=mark, adjustable=True)
    bounds = bound_columns(name, lambda row: row[place].interval) if intervals else []
    return [column, *bounds]


def dim_counts(counts: Sequence[int]) -> list[Cell]:
    """Return cells of the footer that count human scores."""
    return [Cell(f"{count:,}", count, "dim") for count in counts]


@dataclass(frozen=True, kw_only=True, eq=False)
class TaskResult(MetricEstimates):
    """The result of one task; `smallest_p_value` is the smallest that its test can give."""

    task: Task
    agreement: Agreement
    smallest_p_value: float = 0.0

    def records(self) -> list[dict[str, Any]]:
        """Return one dictionary for each metric."""
        counts = self.agreement
        return [
            {
                "metric": own.metric,
                "sets": list(self.task.sets),
                "statistic": self.task.statistic,
                "level": self.task.level,
                "grouping": self.task.grouping,
                **vars(own),
                "confidence": self.task.confidence_level,
                "judged": counts.judged_count,
                "used": int(counts.used[n]),
                "left_out": int(counts.excluded_counts[n]),
                "groups": counts.groups,
                "undefined_groups": int(counts.undefined[n]),
                "epsilon": None if counts.epsilon is None else float(counts.epsilon[n]),
                "test": self.task.test if self.is_tested else "none",
                "p_better_than": dict(zip(self.metrics, self.p_values[n].tolist(), strict=True)),
            }
            for n, own in enumerate(self.by_metric)
        ]

    def p_value_table(self) -> Table:
        """Return the p-values of all pairs of metrics: is the row better than the column?"""
        columns = [Column("", self.metrics.__getitem__), *map(self._p_value_column, self.order)]
        title = f"p-values ({self.task.test}), {self.task.label}: is the row better?"
        return Table(columns, self.order, title)

    def _p_value_column(self, other: int) -> Column:
        def p_value(metric: int) -> float | None:
            return None if metric == other else float(self.p_values[metric, other])

        def mark(metric: int) -> Emphasis:
            is_significant = metric != other and self.p_values[metric, other] < self.alpha
            return "best" if is_significant else ""

        return Column(self.metrics[other], p_value, 3, mark=mark)

    def undefined_note(self) -> str:
        """Return what is wrong if the statistic is undefined, or has too little data."""
        task, groups, undefined = self.task, self.agreement.groups, self.agreement.undefined
        if self.best is None:
            return f"undefined for all metrics and not ranked: needs {task.required_data}"
        if undefined.any():
            names = [self.metrics[n] for n in np.flatnonzero(undefined)]
            if groups > 1:
                counts = undefined[undefined > 0].tolist()
                names = [f"{name} {count}" for name, count in zip(names, counts, strict=True)]
            listing = ", ".join(names[:5]) + (", ..." if len(names) > 5 else "")
            if groups > 1:
                return f"undefined groups of {groups}: {listing}"
            return f"undefined for {listing}: needs two or more different scores"
        if self.agreement.judged_count == 2:
            return f"only two {task.level}s with human scores: agreement is either perfect or none"
        return ""


@dataclass(frozen=True, kw_only=True, eq=False)
class Results(Result):
    """The results of all tasks, and their averages.

    `excluded_counts` and `unscored_systems` are those of `AlignedScores`, by set. `negated` are the
    metrics where lower is better.
    """

    metrics: tuple[str, ...]
    tasks: tuple[TaskResult, ...]
    seed: int
    excluded_counts: Mapping[str, Mapping[str, Mapping[str, int]]] = field(default_factory=dict)
    unscored_systems: Mapping[str, Mapping[str, tuple[str, ...]]] = field(default_factory=dict)
    negated: Collection[str] = ()

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
        return MetricEstimates(
            metrics=self.metrics,
            values=values,
            p_values=bootstrap_p_values(drawn) if tested else nan_p_values(len(values)),
            replicates=drawn,
            confidence_level=first.confidence_level,
            alpha=first.alpha,
        )

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
        ranks = self.average_rank.tolist()
        return [
            {"metric": own.metric, "statistic": statistic, **vars(own), "average_rank": rank}
            for own, rank in zip(self.average.by_metric, ranks, strict=True)
        ]

    def tables(self, *, intervals: bool = False, p_values: bool = False) -> list[Table]:
        """Return a table for each statistic, with p-values of all pairs, and the average ranks."""
        parts = self.by_statistic().values()
        tables = []
        for part in parts:
            tables.append(part.agreement_table(intervals=intervals))
            tables += [task.p_value_table() for task in part.tasks] if p_values else []
        return tables + ([self.rank_table()] if len(parts) > 1 else [])

    def agreement_table(self, *, intervals: bool = False) -> Table:
        """Return metrics x tasks of one statistic with the average and rank, best first."""
        tasks, estimates = self.tasks, [task.by_metric for task in self.tasks]
        names = [task.task.label for task in tasks]
        ranks: Sequence[float | None] = tasks[0].ranks
        if len(tasks) > 1:
            names.append("average")
            estimates.append(self.average.by_metric)
            ranks = self.average_rank.tolist()
        columns = [Column("metric", lambda row: row[0].metric)]
        for place, name in enumerate(names):
            columns += value_columns(name, place, intervals=intervals)
        columns.append(
            Column(
                "rank",
                lambda row: np.nan if row[-1] is None else row[-1],
                2 if len(tasks) > 1 else 0,
            )
        )
        rows = [*zip(*estimates, ranks, strict=True)]
        footer = {"human scores": [task.agreement.judged_count for task in tasks]}
        missing = [int(task.agreement.excluded_counts.max(initial=0)) for task in tasks]
        if any(missing):
            footer["without metric score (at most)"] = missing
        blank = [Cell("")] * (len(names) + 1 - len(tasks))
        return Table(
            columns,
            [rows[metric] for metric in self.average.order],
            title=tasks[0].task.title,
            notes=[*self._notes(intervals), *self.average.ceiling_notes()],
            footer=[
                [Cell(name, name, "dim"), *dim_counts(counts), *blank]
                for name, counts in footer.items()
            ],
        )

    def rank_table(self) -> Table:
        """Return the average rank of each metric over all tasks of all statistics."""
        order = np.argsort(self.average_rank, kind="stable").tolist()
        columns = [
            Column("metric", self.metrics.__getitem__),
            Column("rank", lambda metric: float(self.average_rank[metric]), 2),
        ]
        return Table(columns, order, title=f"average rank over {len(self.tasks)} tasks")

    def slice_tables(self, by: str, *, intervals: bool = False) -> list[Table]:
        """Return slices x metrics for each statistic; each task is a slice."""
        tables = []
        for part in self.by_statistic().values():
            columns = [
                Column(by, lambda row: row[-1].task.label),
                count_column(
                    "human scores", lambda row: row[-1].agreement.judged_count, mark=lambda _: "dim"
                ),
            ]
            for place, metric in enumerate(part.metrics):
                columns += value_columns(metric, place, intervals=intervals)
            rows = [(*task.by_metric, task) for task in part.tasks]
            title = f"{part.tasks[0].task.title}, by {by}"
            tables.append(Table(columns, rows, title, part._slice_notes()))
        return tables

    def sections(self) -> list[Section]:
        """Return a table of each statistic, with intervals if there are any."""
        contents: list[Any] = []
        if self.negated:
            names = ", ".join(sorted(self.negated))
            contents.append(f"{names}: lower is better; agreement uses negated scores.")
        for part in self.by_statistic().values():
            contents.append(part.agreement_table(intervals=bool(part.tasks[0].task.resamples)))
        return [Section("Agreement with human scores", contents)]

    def slice_charts(self, by: str) -> list[DotChart]:
        """Return a chart of slices x metrics for each statistic."""
        return [part._slice_chart(by) for part in self.by_statistic().values()]

    def _slice_chart(self, by: str) -> DotChart:
        tasks = self.tasks[:MAX_CHART_SLICES]
        first = tasks[0].task
        bounds = [np.stack([task.low, task.high], axis=1) for task in tasks]
        return DotChart(
            title=f"Agreement by {by}",
            caption=f"{first.title}, by {by}",
            label=first.kind.title,
            rows=[task.task.label for task in tasks],
            series=self.metrics,
            values=np.array([task.values for task in tasks]),
            intervals=np.array(bounds),
        )

    def _notes(self, intervals: bool) -> list[str]:
        first = self.tasks[0].task
        notes = ["** best; no significance tests: metrics are ranked by value"]
        if first.resamples and first.test != "none":
            notes = [f"** best, * not significantly worse ({self._describe_test()})"]
            average = "; averaged over columns" if len(self.tasks) > 1 else ""
            notes.append(f"rank: metrics with the same rank do not differ significantly{average}")
            notes += self._resolution_warnings()
        if first.resamples and intervals:
            notes.append(
                f"intervals: {first.confidence_level * 100:g} % bootstrap over {first.units}"
            )
        undefined = {task.task.label: task.undefined_note() for task in self.tasks}
        return notes + [f"{label}: {note}" for label, note in undefined.items() if note]

    def _slice_notes(self) -> list[str]:
        first, metrics = self.tasks[0].task, len(self.metrics)
        if not first.resamples or first.test == "none" or metrics < 2:
            return ["** best"]
        tests = len(self.tasks) * metrics * (metrics - 1) // 2
        return [
            f"** best, * not significantly worse ({first.test}, p < {first.alpha:g} one-sided, "
            f"{first.resamples} resamples, seed {self.seed}; p adjusted by Holm's method over "
            f"{tests} tests: all pairs of metrics in all slices)",
            *self._resolution_warnings(tests),
        ]

    def _describe_test(self) -> str:
        """Return the test, its level and the resamples; Williams' t and all swaps need none."""
        first = self.tasks[0].task
        drawn = f"{first.resamples} resamples"
        description = f"{first.test}, p < {first.alpha:g} one-sided"
        # with few points, all swaps are enumerated: the smallest p is larger than by resampling
        least = 1 / (1 + first.resamples)
        if first.test == "perm-both" and all(t.smallest_p_value > least for t in self.tasks):
            description += ", all swaps"
        elif first.test != "williams":
            description += f", {drawn}"
            drawn = ""
        if len(self.tasks) > 1 and first.test != "bootstrap":
            description += "; average: bootstrap" + (f", {drawn}" if drawn else "")
            drawn = ""
        return description if drawn else f"{description}, seed {self.seed}"

    def _resolution_warnings(self, tests: int = 1) -> list[str]:
        """Warn if none of `tests` tests of metrics can be significant."""
        first = self.tasks[0].task
        coarse = [task for task in self.tasks if tests * task.smallest_p_value >= first.alpha]
        if len(self.metrics) < 2 or (tests > 1 and len(coarse) < len(self.tasks)):
            return []
        few = [t.task.label for t in coarse if t.smallest_p_value > 1 / (1 + first.resamples)]
        notes = []
        if len(few) < len(coarse):
            notes += resampling_warnings(tests, first.resamples, first.alpha)
        if few:
            reason = f"too few {first.level}s with human scores for {first.test}"
            notes.append(
                f"warning: {', '.join(few)}: {reason}: p cannot fall below {first.alpha:g}"
            )
        return notes

    def exclusion_lines(self) -> list[str]:
        """Return one line per reason why metric scores were not used."""
        lines = []
        for name, by_metric in self.excluded_counts.items():
            unscored = self.unscored_systems.get(name, {})
            reasons: dict[tuple[str, int, tuple[str, ...]], list[str]] = {}
            for metric, counts in by_metric.items():
                for reason, count in counts.items():
                    systems = unscored.get(metric, ()) if reason == NO_SYSTEM_SCORE else ()
                    reasons.setdefault((reason, count, systems), []).append(metric)
            lines += [
                f"{name}: {reason}: {count:,} ({', '.join(metrics)}){_exclude_hint(systems)}"
                for (reason, count, systems), metrics in reasons.items()
            ]
        return lines


def _exclude_hint(systems: Sequence[str]) -> str:
    """Name the first systems without scores, and the option that leaves them out.

    >>> _exclude_hint(("refA",))
    ': refA; to leave it out: --exclude refA'
    """
    if not systems:
        return ""
    if len(systems) > 5:
        return f": {', '.join(systems[:5])}, ..."
    pronoun = "it" if len(systems) == 1 else "them"
    return f": {', '.join(systems)}; to leave {pronoun} out: --exclude {' '.join(systems)}"


def nan_p_values(metrics: int) -> FloatArray:
    """Return p-values of metrics that were not tested, (metrics, metrics)."""
    return np.full((metrics, metrics), np.nan)
