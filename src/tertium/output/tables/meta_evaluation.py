"""Tables of agreement between metrics and human scores, with ranks and p-values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from tertium.arrays import FloatArray
from tertium.core.notes import resampling_warnings
from tertium.core.result import Table
from tertium.data.ratings import HUMAN_ROW_PREFIX
from tertium.meta.aligned_scores import NO_SYSTEM_SCORE
from tertium.meta.results import MetricEstimates, Results, TaskResult
from tertium.meta.tasks import Task
from tertium.output.tables.table import Cell, cell_table, number_cell

BEST, NOT_WORSE = "** ", "* "
TESTS = {
    "perm-both": "both metrics are standardized; each point swaps their scores with probability "
    "1/2; p is the share of swaps with at least the observed difference",
    "williams": "Williams' t-test for two correlations with the same human scores",
    "pairs": "each pair that only one metric orders correctly is assigned to either at random",
    "bootstrap": "p is the share of bootstrap resamples in which the metric is not better",
}


def agreement_table(part: Results, decimals: int = 3, *, intervals: bool = False) -> Table:
    """Return one row per metric, best average first, and one column per task of a statistic."""
    tasks = part.tasks
    columns: list[MetricEstimates] = [*tasks, *([part.average] if len(tasks) > 1 else [])]
    header = ["metric", *(t.task.label for t in tasks), *(["average"] if len(tasks) > 1 else [])]
    rows: list[list[Cell | str]] = []
    for metric in order_descending(part.average.values):
        row: list[Cell | str] = [part.metrics[metric]]
        row += [
            value_cell(estimates, metric, decimals, name if intervals else "")
            for estimates, name in zip(columns, header[1:], strict=True)
        ]
        row.append(_rank(float(part.average_rank[metric]), len(tasks)))
        rows.append(row)
    return cell_table(
        [*header, "rank"],
        rows,
        footer=_counts(tasks, len(columns)),
        title=agreement_title(tasks[0].task),
        notes=[*_notes(part, intervals), *human_ceiling_notes(part.metrics, part.average.values)],
    )


def human_ceiling_notes(metrics: Sequence[str], values: FloatArray) -> list[str]:
    """Return each metric's value as a share of the best human row, if there is one.

    >>> human_ceiling_notes(("chrf", "human: held-out rater"), np.array([0.4, 0.8]))
    ['share of the human ceiling: chrf 50 %']
    """
    order = [n for n in order_descending(values) if values[n] == values[n]]
    defined = [(metrics[n], float(values[n])) for n in order]
    ceiling = max((v for m, v in defined if m.startswith(HUMAN_ROW_PREFIX)), default=0.0)
    if ceiling <= 0:
        return []
    shares = [
        f"{m} {100 * (v / ceiling):.0f} %" for m, v in defined if not m.startswith(HUMAN_ROW_PREFIX)
    ]
    return ["share of the human ceiling: " + ", ".join(shares)]


def agreement_title(task: Task) -> str:
    """Return the statistic of a task, its level and its grouping."""
    grouping = (
        ""
        if task.level == "system" or task.grouping == "none"
        else f", averaged by {task.grouping}"
    )
    return f"{task.kind.title}, {task.level} level{grouping}"


def agreement_list(results: Results) -> Table:
    """Return one row per metric, statistic and dataset, for TSV."""
    rows: list[list[Cell | str]] = [
        [metric, task.task.statistic, task.task.label, *_numbers(task, n)]
        for task in results.tasks
        for n, metric in enumerate(results.metrics)
    ]
    header = ["metric", "statistic", "set", "value", "low", "high", "rank", "judged", "used"]
    return cell_table(header, rows, text_columns=frozenset({0, 1, 2}))


def _numbers(task: TaskResult, metric: int) -> list[Cell | str]:
    figures = (task.values[metric], task.low[metric], task.high[metric])
    counts = (task.agreement.judged_count, int(task.agreement.used[metric]))
    rank = task.ranks[metric]
    return [
        *(number_cell(float(v), 3) for v in figures),
        _rank(np.nan if rank is None else rank, 1),
        *(Cell(str(c), c) for c in counts),
    ]


def p_value_list(results: Results) -> Table:
    """Return one row per statistic, dataset and ordered pair: is `metric` better than `other`?"""
    rows: list[list[Cell | str]] = [
        [metric, other, task.task.statistic, task.task.label, _p_cell(task, i, j)]
        for task in results.tasks
        for i, metric in enumerate(results.metrics)
        for j, other in enumerate(results.metrics)
        if i != j
    ]
    return cell_table(
        ["metric", "other", "statistic", "set", "p"], rows, text_columns=frozenset(range(4))
    )


def rank_table(results: Results) -> Table:
    """Return the average rank of each metric over all tasks of all statistics."""
    order = np.argsort(results.average_rank, kind="stable")
    rows = [[results.metrics[m], number_cell(float(results.average_rank[m]), 2)] for m in order]
    title = f"average rank over {len(results.tasks)} tasks"
    return cell_table(["metric", "rank"], rows, title=title)


def p_value_table(result: TaskResult) -> Table:
    """Return the p-values of all pairs of metrics: is the row better than the column?"""
    order = order_descending(result.values)
    names = [result.metrics[m] for m in order]
    rows: list[list[Cell | str]] = []
    for row, name in zip(order, names, strict=True):
        rows.append([name, *(_p_cell(result, row, column) for column in order)])
    title = f"p-values ({result.task.test}), {result.task.label}: is the row better?"
    return cell_table(["", *names], rows, title=title)


def _p_cell(result: TaskResult, row: int, column: int) -> Cell:
    if row == column:
        return Cell("", "")
    p = float(result.p_values[row, column])
    return number_cell(p, 3, "best" if p < result.alpha else "")


def order_descending(values: FloatArray) -> list[int]:
    """Return indices from the highest value down, NaN last."""
    return [int(n) for n in np.argsort(-np.nan_to_num(values, nan=-np.inf), kind="stable")]


def _rank(rank: float, tasks: int) -> Cell:
    if tasks > 1 or rank != rank:
        return number_cell(rank, 2)
    return Cell(str(int(rank)), int(rank))


def value_cell(estimates: MetricEstimates, metric: int, decimals: int, column: str) -> Cell:
    """Return a value; if `column` is given, with its confidence interval."""
    value = float(estimates.values[metric])
    if value != value:
        return number_cell(value, decimals)
    text, bound_columns = f"{value:z.{decimals}f}", {}
    if column:
        low, high = float(estimates.low[metric]), float(estimates.high[metric])
        text += f" [{low:z.{decimals}f}, {high:z.{decimals}f}]"
        bound_columns = {f"{column} low": low, f"{column} high": high}
    best = metric == estimates.best
    stars = BEST if best else NOT_WORSE if estimates.not_worse[metric] else ""
    return Cell(stars + text, value, "best" if best else "", bound_columns)


def _counts(tasks: Sequence[TaskResult], columns: int) -> list[list[Cell | str]]:
    """Return rows that count human scores and the most items that a metric has no score for."""

    def row(name: str, values: Sequence[int]) -> list[Cell | str]:
        cells = [Cell(f"{v:,}", v, "dim") for v in values]
        blank = [Cell("", "") for _ in range(columns - len(values) + 1)]
        return [Cell(name, name, "dim"), *cells, *blank]

    rows = [row("human scores", [t.agreement.judged_count for t in tasks])]
    missing = [int(t.agreement.excluded_counts.max(initial=0)) for t in tasks]
    if any(missing):
        rows.append(row("without metric score (at most)", missing))
    return rows


def _notes(results: Results, intervals: bool) -> list[str]:
    first = results.tasks[0].task
    notes = ["** best; no significance tests: metrics are ranked by value"]
    if first.resamples and first.test != "none":
        notes = [f"** best, * not significantly worse ({_describe_test(results)})"]
        average = "; averaged over columns" if len(results.tasks) > 1 else ""
        notes.append(f"rank: metrics with the same rank do not differ significantly{average}")
        notes += resolution_warnings(results)
    if first.resamples and intervals:
        notes.append(f"intervals: {first.confidence_level * 100:g} % bootstrap over {first.over}")
    for result in results.tasks:
        if result.best is None:
            label = result.task.label
            notes.append(
                f"{label}: undefined for all metrics and not ranked: needs {_required_data(first)}"
            )
        elif result.agreement.undefined.any():
            notes.append(_undefined_note(result))
        elif result.agreement.judged_count == 2:
            notes.append(
                f"{result.task.label}: only two {first.level}s with human scores: agreement is "
                "either perfect or none"
            )
    return notes


def _describe_test(results: Results) -> str:
    """Return the test, its level and the resamples; Williams' t and all swaps need none."""
    first = results.tasks[0].task
    level = f"{first.test}, p < {first.alpha:g} one-sided"
    resamples = f"{first.resamples} resamples"
    average = "; average: bootstrap" if len(results.tasks) > 1 else ""
    if first.test == "bootstrap":
        return f"{level}, {resamples}, seed {results.seed}"
    # with few points, all swaps are enumerated: the smallest p is larger than by resampling
    all_swaps = all(task.smallest_p_value > 1 / (1 + first.resamples) for task in results.tasks)
    if first.test == "williams" or (first.test == "perm-both" and all_swaps):
        level += ", all swaps" if first.test == "perm-both" else ""
        return level + (f"{average}, {resamples}, seed {results.seed}" if average else "")
    return f"{level}, {resamples}{average}, seed {results.seed}"


def resolution_warnings(results: Results, tests: int = 1) -> list[str]:
    """Warn if none of `tests` tests of metrics can be significant."""
    first = results.tasks[0].task
    coarse = [task for task in results.tasks if tests * task.smallest_p_value >= first.alpha]
    if len(results.metrics) < 2 or (tests > 1 and len(coarse) < len(results.tasks)):
        return []
    few = [t.task.label for t in coarse if t.smallest_p_value > 1 / (1 + first.resamples)]
    notes = (
        [] if len(few) == len(coarse) else resampling_warnings(tests, first.resamples, first.alpha)
    )
    if few:
        reason = f"too few {first.level}s with human scores for {first.test}"
        notes.append(f"warning: {', '.join(few)}: {reason}: p cannot fall below {first.alpha:g}")
    return notes


def describe_significance_test(task: Task) -> list[str]:
    """Return one line on how metrics were compared; empty without a test."""
    return [f"{task.test}: {TESTS[task.test]}"] if task.resamples and task.test in TESTS else []


def summarize_agreement(results: Results) -> list[tuple[str, str]]:
    """Return for each statistic the best metric and a sentence with its value."""
    findings = []
    for part in results.by_statistic().values():
        figures: MetricEstimates = part.average if len(part.tasks) > 1 else part.tasks[0]
        if figures.best is None or len(part.metrics) < 2:
            continue
        kind = part.tasks[0].task.kind.title
        unit = "datasets" if len({t.task.sets for t in part.tasks}) == len(part.tasks) else "tasks"
        scope = f" on average over {len(part.tasks)} {unit}" if len(part.tasks) > 1 else ""
        value = (
            f"{kind} {figures.values[figures.best]:z.3f}{scope}{_describe_significance(figures)}"
        )
        findings.append((part.metrics[figures.best], f"agrees best with human scores: {value}"))
    return findings


def _describe_significance(figures: MetricEstimates) -> str:
    """Return whether the best metric is significantly better; empty without tests."""
    is_other = np.arange(len(figures.values)) != figures.best
    if figures.best is None or np.isnan(figures.p_values[figures.best][is_other]).all():
        return ""
    similar = [figures.metrics[n] for n in np.flatnonzero(figures.not_worse & is_other)]
    if not similar:
        return ", significantly better than all others"
    return f", not significantly better than {', '.join(similar)}"


def _required_data(task: Task) -> str:
    if task.statistic in ("darr", "darr17"):
        return (
            f"translations of one segment whose human scores differ by {task.threshold:g} or more"
        )
    return f"two or more {task.level}s with different human scores and different metric scores"


def _undefined_note(result: TaskResult) -> str:
    counts = result.agreement.undefined
    groups = result.agreement.groups
    listed = [
        metric if groups == 1 else f"{metric} {int(count)}"
        for metric, count in zip(result.metrics, counts, strict=True)
        if count
    ]
    listing = ", ".join(listed[:5]) + (", ..." if len(listed) > 5 else "")
    if groups == 1:
        return f"{result.task.label}: undefined for {listing}: needs two or more different scores"
    return f"{result.task.label}: undefined groups of {groups}: {listing}"


def format_exclusions(results: Results, judgments: Mapping[str, Mapping[str, int]]) -> list[str]:
    """Return one line per reason why judgments or metric scores were not used."""
    lines = [
        f"{name}: excluded: {reason}: {count:,}"
        for name, counts in judgments.items()
        for reason, count in counts.items()
    ]
    for name, by_metric in results.excluded_counts.items():
        unscored = results.unscored_systems.get(name, {})
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
    more = ", ..." if len(systems) > 5 else ""
    pronoun = "it" if len(systems) == 1 else "them"
    option = "" if more else f"; to leave {pronoun} out: --exclude {' '.join(systems)}"
    return f": {', '.join(systems[:5])}{more}{option}"
