"""Results of meta-evaluation tasks: values of metrics with intervals, p-values and ranks."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from tertium.core.arrays import BoolArray, FloatArray
from tertium.core.charts import DotChart
from tertium.core.resampling import can_enumerate, percentile_interval
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
from tertium.meta.aligned_scores import NO_SYSTEM_SCORE, AlignedScores
from tertium.meta.replicates import bootstrap_p_values
from tertium.meta.tasks import Task

BEST = "** "
NOT_WORSE = "* "
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
            rank = rank + 1
            current = []
        current.append(metric)
        ranks[metric] = rank
    return ranks


class Estimate(NamedTuple):
    """The estimates of a metric, in the layout of JSON; the last is None without tests."""

    metric: str
    value: float
    interval: tuple[float, float]
    rank: int | None
    best: bool
    not_significantly_worse: bool | None


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
    def bounds(self) -> FloatArray:
        """The bounds of the bootstrap intervals, (metrics, 2); NaN without resamples."""
        return np.stack(percentile_interval(self.replicates, self.confidence_level), axis=1)

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
        marks = ~np.isnan(self.values) & self.is_tested
        if self.best is not None:
            marks &= ~(self.p_values[self.best] < self.alpha)
            marks[self.best] = True
        return marks

    @property
    def order(self) -> list[int]:
        """The indices of the metrics from the highest value down, NaN last."""
        return [int(n) for n in np.argsort(-self.values, kind="stable")]

    @cached_property
    def estimates(self) -> list[Estimate]:
        """The estimates of each metric."""
        return [
            Estimate(
                metric=metric,
                value=float(self.values[n]),
                interval=self.bounds[n].tolist(),
                rank=self.ranks[n],
                best=n == self.best,
                not_significantly_worse=bool(self.not_worse[n]) if self.is_tested else None,
            )
            for n, metric in enumerate(self.metrics)
        ]

    def p_better_than(self, metric: int) -> dict[str, float]:
        """Return the p-values of a metric against each other one."""
        return dict(zip(self.metrics, self.p_values[metric].tolist(), strict=True))

    def ceiling_notes(self) -> list[str]:
        """Return each metric's value as a share of the best human row, if there is one."""
        ceiling = 0.0
        shares = []
        for n in self.order:
            metric = self.metrics[n]
            value = float(self.values[n])
            if metric.startswith(HUMAN_ROW_PREFIX):
                ceiling = max(ceiling, value)  # NaN is not larger
            elif value == value:
                shares.append((metric, value))
        if ceiling <= 0:
            return []
        texts = [f"{metric} {100 * value / ceiling:.0f} %" for metric, value in shares]
        return ["share of the human ceiling: " + ", ".join(texts)]


def value_columns(name: str, estimates: Sequence[Estimate], *, intervals: bool) -> list[Column]:
    """Return columns of estimates, whose numbers are the rows: values, and bounds for files."""

    def text(row: int, decimals: int) -> str:
        own = estimates[row]
        rounded = format_number(own.value, decimals)
        if np.isnan(own.value):
            return rounded
        if intervals:
            low, high = own.interval
            rounded += f" [{low:z.{decimals}f}, {high:z.{decimals}f}]"
        if own.best:
            return BEST + rounded
        return NOT_WORSE + rounded if own.not_significantly_worse else rounded

    def value(row: int) -> float:
        return estimates[row].value

    def mark(row: int) -> Emphasis:
        return "best" if estimates[row].best else ""

    columns = [Column(name, value, 3, text=text, mark=mark, adjustable=True)]
    if intervals:
        columns += bound_columns(name, lambda row: estimates[row].interval)
    return columns


def rank_column(name: str, ranks: Sequence[float | None], decimals: int = 0) -> Column:
    """Return a column of the ranks of metrics; a missing rank is NaN."""
    return Column(name, lambda metric: np.nan if ranks[metric] is None else ranks[metric], decimals)


def dim_cells(name: str, counts: Sequence[int]) -> list[Cell]:
    """Return the first cells of a footer: its name, and counts of human scores."""
    return [Cell(name, name, "dim"), *(Cell(f"{count:,}", count, "dim") for count in counts)]


@dataclass(frozen=True, kw_only=True, eq=False)
class TaskResult(MetricEstimates):
    """The result of one task."""

    task: Task
    agreement: Agreement

    @property
    def smallest_p_value(self) -> float:
        """The smallest p-value that the test can give; all swaps of few points are enumerated."""
        test = self.task.test
        points = self.agreement.judged_count
        if test == "perm-both" and can_enumerate(points, self.task.resamples):
            return 2.0**-points
        if test in ("williams", "pairs"):
            return float(test == "williams" and points < 4)  # it needs four points
        return 1 / (1 + self.task.resamples)

    @property
    def most_excluded(self) -> int:
        """The largest number of human scores that a metric has no score for."""
        return int(self.agreement.excluded_counts.max(initial=0))

    def records(self) -> list[dict[str, Any]]:
        """Return one dictionary for each metric."""
        task = self.task
        counts = self.agreement
        return [
            {
                "metric": metric,
                "sets": list(task.sets),
                "statistic": task.statistic,
                "level": task.level,
                "grouping": task.grouping,
                **self.estimates[n]._asdict(),
                "confidence": task.confidence_level,
                "judged": counts.judged_count,
                "used": int(counts.used[n]),
                "left_out": int(counts.excluded_counts[n]),
                "groups": counts.groups,
                "undefined_groups": int(counts.undefined[n]),
                "epsilon": None if counts.epsilon is None else float(counts.epsilon[n]),
                "test": task.test if self.is_tested else "none",
                "p_better_than": self.p_better_than(n),
            }
            for n, metric in enumerate(self.metrics)
        ]

    def p_value_table(self) -> Table:
        """Return the p-values of all pairs of metrics: is the row better than the column?"""
        columns = [Column("", self.metrics.__getitem__)]
        for other in self.order:
            p_values: list[float | None] = self.p_values[:, other].tolist()
            p_values[other] = None
            marks: list[Emphasis] = []
            for p in p_values:
                marks.append("best" if p is not None and p < self.alpha else "")
            column = Column(self.metrics[other], p_values.__getitem__, 3, mark=marks.__getitem__)
            columns.append(column)
        title = f"p-values ({self.task.test}), {self.task.label}: is the row better?"
        return Table(columns, self.order, title)

    def undefined_note(self) -> str:
        """Return what is wrong if the statistic is undefined, or has too little data."""
        task = self.task
        groups = self.agreement.groups
        undefined = self.agreement.undefined
        if self.best is None:
            return f"undefined for all metrics and not ranked: needs {task.required_data}"
        names = []
        for n in np.flatnonzero(undefined):
            names.append(f"{self.metrics[n]} {undefined[n]}" if groups > 1 else self.metrics[n])
        listing = ", ".join(names[:5]) + (", ..." if names[5:] else "")
        if names and groups > 1:
            return f"undefined groups of {groups}: {listing}"
        if names:
            return f"undefined for {listing}: needs two or more different scores"
        if self.agreement.judged_count == 2:
            return f"only two {task.level}s with human scores: agreement is either perfect or none"
        return ""


@dataclass(frozen=True, kw_only=True, eq=False)
class Results(Result):
    """The results of all tasks, and their averages.

    `sets` are the judged sets by name. `negated` are the metrics where lower is better.
    """

    metrics: tuple[str, ...]
    tasks: tuple[TaskResult, ...]
    seed: int
    sets: Mapping[str, AlignedScores] = field(repr=False)
    negated: Collection[str] = ()

    @property
    def first(self) -> Task:
        """The first task; all have the same options of tests."""
        return self.tasks[0].task

    @property
    def is_tested(self) -> bool:
        """Whether the tasks test metrics."""
        return bool(self.first.resamples) and self.first.test != "none"

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
        return MetricEstimates(
            metrics=self.metrics,
            values=values,
            p_values=bootstrap_p_values(drawn) if self.is_tested else nan_p_values(len(values)),
            replicates=drawn,
            confidence_level=self.first.confidence_level,
            alpha=self.first.alpha,
        )

    @cached_property
    def average_rank(self) -> FloatArray:
        """The mean rank of each metric over the tasks that are defined for any.

        A metric that has no rank in one of them is NaN.
        """
        ranks = [task.ranks for task in self.tasks if task.best is not None]
        blank = [[None] * len(self.metrics)]
        mean: FloatArray = np.mean(np.array(ranks or blank, dtype=np.float64), axis=0)
        return mean  # None became NaN

    def by_statistic(self) -> dict[str, Results]:
        """Split the results by statistic, and by level if a statistic has several."""
        kinds = {(own.task.statistic, own.task.level) for own in self.tasks}
        groups: dict[str, list[TaskResult]] = {}
        for own in self.tasks:
            name = own.task.statistic
            if sum(statistic == name for statistic, _ in kinds) > 1:
                name += f" {own.task.level}"
            groups.setdefault(name, []).append(own)
        return {name: replace(self, tasks=tuple(tasks)) for name, tasks in groups.items()}

    def records(self) -> dict[str, Any]:
        """Return all results as plain values, for JSON; averages are per statistic."""
        return {
            "metrics": list(self.metrics),
            "seed": self.seed,
            "tasks": [record for task in self.tasks for record in task.records()],
            "average": [
                {
                    "metric": own.metric,
                    "statistic": name,
                    **own._asdict(),
                    "average_rank": float(part.average_rank[n]),
                }
                for name, part in self.by_statistic().items()
                for n, own in enumerate(part.average.estimates)
            ],
            "average_rank": dict(zip(self.metrics, self.average_rank.tolist(), strict=True)),
            "left_out": {name: aligned.excluded_counts for name, aligned in self.sets.items()},
        }

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
        columns = [Column("metric", self.metrics.__getitem__)]
        for task in self.tasks:
            columns += value_columns(task.task.label, task.estimates, intervals=intervals)
        rank = rank_column("rank", self.tasks[0].ranks)
        blank = [Cell("")]
        if len(self.tasks) > 1:
            columns += value_columns("average", self.average.estimates, intervals=intervals)
            rank = rank_column("rank", self.average_rank.tolist(), 2)
            blank = [Cell("")] * 2
        judged_counts = [task.agreement.judged_count for task in self.tasks]
        footer = [[*dim_cells("human scores", judged_counts), *blank]]
        missing = [task.most_excluded for task in self.tasks]
        if any(missing):
            footer.append([*dim_cells("without metric score (at most)", missing), *blank])
        return Table(
            [*columns, rank],
            self.average.order,
            title=self.first.title,
            notes=[*self._notes(intervals), *self.average.ceiling_notes()],
            footer=footer,
        )

    def rank_table(self) -> Table:
        """Return the average rank of each metric over all tasks of all statistics."""
        ranks = self.average_rank.tolist()
        columns = [Column("metric", self.metrics.__getitem__), rank_column("rank", ranks, 2)]
        order = np.argsort(ranks, kind="stable").tolist()
        return Table(columns, order, title=f"average rank over {len(self.tasks)} tasks")

    def slice_tables(self, by: str, *, intervals: bool = False) -> list[Table]:
        """Return slices x metrics for each statistic; each task is a slice."""
        tables = []
        for part in self.by_statistic().values():
            labels = [own.task.label for own in part.tasks]
            counts = [own.agreement.judged_count for own in part.tasks]
            columns = [
                Column(by, labels.__getitem__),
                count_column("human scores", counts.__getitem__, mark=lambda _: "dim"),
            ]
            for n, metric in enumerate(self.metrics):
                estimates = [own.estimates[n] for own in part.tasks]
                columns += value_columns(metric, estimates, intervals=intervals)
            title = f"{part.first.title}, by {by}"
            tables.append(Table(columns, range(len(labels)), title, part._slice_notes()))
        return tables

    def sections(self) -> list[Section]:
        """Return a table of each statistic, with intervals if there are any."""
        contents: list[Any] = []
        if self.negated:
            names = ", ".join(sorted(self.negated))
            contents.append(f"{names}: lower is better; agreement uses negated scores.")
        for part in self.by_statistic().values():
            contents.append(part.agreement_table(intervals=bool(part.first.resamples)))
        return [Section("Agreement with human scores", contents)]

    def slice_charts(self, by: str) -> list[DotChart]:
        """Return a chart of slices x metrics for each statistic."""
        charts = []
        for part in self.by_statistic().values():
            tasks = part.tasks[:MAX_CHART_SLICES]
            chart = DotChart(
                title=f"Agreement by {by}",
                caption=f"{part.first.title}, by {by}",
                label=part.first.kind.title,
                rows=[own.task.label for own in tasks],
                series=self.metrics,
                values=np.array([own.values for own in tasks]),
                intervals=np.array([own.bounds for own in tasks]),
            )
            charts.append(chart)
        return charts

    def _notes(self, intervals: bool) -> list[str]:
        notes = ["** best; no significance tests: metrics are ranked by value"]
        if self.is_tested:
            average = "; averaged over columns" if len(self.tasks) > 1 else ""
            notes = [
                f"** best, * not significantly worse ({self._describe_test()})",
                f"rank: metrics with the same rank do not differ significantly{average}",
                *self._resolution_warnings(),
            ]
        if self.first.resamples and intervals:
            level = self.first.confidence_level * 100
            notes.append(f"intervals: {level:g} % bootstrap over {self.first.units}")
        for task in self.tasks:
            if note := task.undefined_note():
                notes.append(f"{task.task.label}: {note}")
        return notes

    def _slice_notes(self) -> list[str]:
        first = self.first
        metrics = len(self.metrics)
        if not self.is_tested or metrics < 2:
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
        first = self.first
        resamples = f", {first.resamples} resamples"
        text = f"{first.test}, p < {first.alpha:g} one-sided"
        # with few points, all swaps are enumerated: the smallest p is larger than by resampling
        least = 1 / (1 + first.resamples)
        if first.test == "perm-both" and all(t.smallest_p_value > least for t in self.tasks):
            text += ", all swaps"
        elif first.test != "williams":
            text += resamples
        if len(self.tasks) > 1 and first.test != "bootstrap":
            text += "; average: bootstrap"
            text += "" if resamples in text else resamples
        return f"{text}, seed {self.seed}" if resamples in text else text

    def _resolution_warnings(self, tests: int = 1) -> list[str]:
        """Warn if none of `tests` tests of metrics can be significant."""
        first = self.first
        coarse = [t.task.label for t in self.tasks if tests * t.smallest_p_value >= first.alpha]
        if len(self.metrics) < 2 or not coarse or (tests > 1 and len(coarse) < len(self.tasks)):
            return []
        where = ", ".join(coarse) if tests == 1 else f"{tests} tests"
        return [
            f"warning: {where}: p cannot fall below {first.alpha:g} with {first.test} and "
            f"{first.resamples} resamples: use more resamples, or more {first.level}s with human "
            "scores"
        ]

    def exclusion_lines(self) -> list[str]:
        """Return one line per reason why metric scores were not used."""
        lines = []
        for name, aligned in self.sets.items():
            metrics: dict[tuple[str, str], list[str]] = {}  # by the two parts of a line
            for metric, counts in aligned.excluded_counts.items():
                for reason, count in counts.items():
                    unscored = aligned.unscored_systems[metric] if reason == NO_SYSTEM_SCORE else ()
                    key = f"{name}: {reason}: {count:,}", _exclude_hint(unscored)
                    metrics.setdefault(key, []).append(metric)
            for (line, hint), own in metrics.items():
                lines.append(f"{line} ({', '.join(own)}){hint}")
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
