"""Tables of agreement with people: metrics by statistic and judged set, with ranks and p-values.

Marked are metrics that the best is not clearly better than.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from tertium.arrays import FloatArray
from tertium.data.ratings import PEOPLE
from tertium.meta.results import Figures, Results, TaskResult
from tertium.meta.tasks import Task
from tertium.reporting.tables.table import Cell, Table, number, too_few_draws

BEST, NOT_WORSE = "** ", "* "
TESTS = {
    "perm-both": "both metrics are standardised and each point swaps them with probability 1/2; "
    "p is the share of swaps with at least the difference seen",
    "williams": "Williams' t for two correlations with the same human scores",
    "pairs": "each pair that one metric gets right and the other wrong is given to either by lot",
    "bootstrap": "p is the share of bootstrap samples in which the metric is not better",
}


def agreement_table(part: Results, decimals: int = 3, *, intervals: bool = False) -> Table:
    """One row for each metric, best average first; one column for each task of one statistic.

    With more than one task there are an average and an average rank; the footer counts what
    people judged and what a metric had no score for.
    """
    tasks = part.tasks
    columns: list[Figures] = [*tasks, *([part.average] if len(tasks) > 1 else [])]
    header = ["metric", *(t.task.label for t in tasks), *(["average"] if len(tasks) > 1 else [])]
    rows: list[list[Cell | str]] = []
    for metric in descending(part.average.values):
        row: list[Cell | str] = [part.metrics[metric]]
        row += [
            figure_cell(figures, metric, decimals, name if intervals else "")
            for figures, name in zip(columns, header[1:], strict=True)
        ]
        row.append(_rank(float(part.average_rank[metric]), len(tasks)))
        rows.append(row)
    return Table(
        [*header, "rank"],
        rows,
        footer=_counts(tasks, len(columns)),
        title=agreement_title(tasks[0].task),
        notes=[*_notes(part, intervals), *people_notes(part.metrics, part.average.values)],
    )


def people_notes(metrics: Sequence[str], values: FloatArray) -> list[str]:
    """Each metric's figure as a share of the best that people reached, where these are rows.

    >>> people_notes(("chrf", "people: held-out rater"), np.array([0.4, 0.8]))
    ['of what people reach: chrf 50 %']
    """
    order = [n for n in descending(values) if values[n] == values[n]]
    known = [(metrics[n], float(values[n])) for n in order]
    most = max((v for m, v in known if m.startswith(PEOPLE)), default=0.0)
    if most <= 0:
        return []
    shares = [f"{m} {100 * (v / most):.0f} %" for m, v in known if not m.startswith(PEOPLE)]
    return ["of what people reach: " + ", ".join(shares)]


def agreement_title(task: Task) -> str:
    """The statistic of a task, its level and how it is grouped."""
    where = "" if task.level == "system" or task.by == "none" else f", averaged by {task.by}"
    return f"{task.kind.title}, {task.level} level{where}"


def long_table(results: Results) -> Table:
    """A row for each metric, statistic and judged set: one table of several statistics."""
    rows: list[list[Cell | str]] = [
        [metric, task.task.statistic, task.task.label, *_numbers(task, n)]
        for task in results.tasks
        for n, metric in enumerate(results.metrics)
    ]
    header = ["metric", "statistic", "set", "value", "low", "high", "rank", "judged", "used"]
    return Table(header, rows, left=frozenset({0, 1, 2}))


def _numbers(task: TaskResult, metric: int) -> list[Cell | str]:
    figures = (task.values[metric], task.low[metric], task.high[metric])
    counts = (task.ranks[metric], task.agreement.judged, int(task.agreement.used[metric]))
    return [*(number(float(v), 3) for v in figures), *(Cell(str(c), c) for c in counts)]


def long_p_value_table(results: Results) -> Table:
    """A row for each statistic, judged set and ordered pair: is `metric` better than `other`?"""
    rows: list[list[Cell | str]] = [
        [metric, other, task.task.statistic, task.task.label, _p_cell(task, i, j)]
        for task in results.tasks
        for i, metric in enumerate(results.metrics)
        for j, other in enumerate(results.metrics)
        if i != j
    ]
    return Table(["metric", "other", "statistic", "set", "p"], rows, left=frozenset(range(4)))


def rank_table(results: Results) -> Table:
    """The average rank of each metric over all tasks, of whichever statistic."""
    order = np.argsort(results.average_rank, kind="stable")
    rows = [[results.metrics[m], number(float(results.average_rank[m]), 2)] for m in order]
    title = f"average rank over {len(results.tasks)} tasks"
    return Table(["metric", "rank"], rows, title=title)


def p_value_table(result: TaskResult) -> Table:
    """The p-values of all pairs of metrics: is that of the row better than that of the column?"""
    order = descending(result.values)
    names = [result.metrics[m] for m in order]
    rows: list[list[Cell | str]] = []
    for row, name in zip(order, names, strict=True):
        rows.append([name, *(_p_cell(result, row, column) for column in order)])
    title = f"p-values ({result.task.test}), {result.task.label}: is the row better?"
    return Table(["", *names], rows, title=title)


def _p_cell(result: TaskResult, row: int, column: int) -> Cell:
    if row == column:
        return Cell("", "")
    p = float(result.p_values[row, column])
    return number(p, 3, "best" if p < result.alpha else "")


def descending(values: FloatArray) -> list[int]:
    """Indices from the highest value down, undefined ones last."""
    return [int(n) for n in np.argsort(-np.nan_to_num(values, nan=-np.inf), kind="stable")]


def _rank(rank: float, tasks: int) -> Cell:
    if tasks > 1 or rank != rank:
        return number(rank, 2)
    return Cell(str(int(rank)), int(rank))


def figure_cell(figures: Figures, metric: int, decimals: int, bounded: str) -> Cell:
    """A figure; with its bounds where `bounded` names the column that they belong to."""
    value = float(figures.values[metric])
    if value != value:
        return number(value, decimals)
    text, more = f"{value:z.{decimals}f}", {}
    if bounded:
        low, high = float(figures.low[metric]), float(figures.high[metric])
        text += f" [{low:z.{decimals}f}, {high:z.{decimals}f}]"
        more = {f"{bounded} low": low, f"{bounded} high": high}
    best = metric == figures.best
    mark = BEST if best else NOT_WORSE if figures.not_worse[metric] else ""
    return Cell(mark + text, value, "best" if best else "", more)


def _counts(tasks: Sequence[TaskResult], columns: int) -> list[list[Cell | str]]:
    """Rows that say how much was judged, and the most that any metric left out."""

    def row(name: str, values: Sequence[int]) -> list[Cell | str]:
        cells = [Cell(f"{v:,}", v, "dim") for v in values]
        blank = [Cell("", "") for _ in range(columns - len(values) + 1)]
        return [Cell(name, name, "dim"), *cells, *blank]

    rows = [row("judged", [t.agreement.judged for t in tasks])]
    missing = [int(t.agreement.left_out.max(initial=0)) for t in tasks]
    if any(missing):
        rows.append(row("without score (at most)", missing))
    return rows


def _notes(results: Results, intervals: bool) -> list[str]:
    first = results.tasks[0].task
    notes = ["** best; no tests: ranks are places"]
    if first.samples and first.test != "none":
        notes = [f"** best, * not significantly worse ({_how_tested(results)})"]
        mean = "; the mean over columns" if len(results.tasks) > 1 else ""
        notes.append(f"rank: metrics of one rank cannot be told apart{mean}")
        notes += coarse_notes(results)
    if first.samples and intervals:
        notes.append(f"intervals: {first.confidence * 100:g} % bootstrap over {first.over}")
    for result in results.tasks:
        if result.best is None:
            label = result.task.label
            notes.append(
                f"{label}: undefined for all metrics, and not in the rank: it takes {_asks(first)}"
            )
        elif result.agreement.undefined.any():
            notes.append(_undefined_note(result))
        elif result.agreement.judged == 2:
            notes.append(
                f"{result.task.label}: two judged {first.level}s: on two, agreement is all or none"
            )
    return notes


def _how_tested(results: Results) -> str:
    """The test, its level and how much is drawn: nothing by Williams' t or of all swaps."""
    first = results.tasks[0].task
    level = f"{first.test}, p < {first.alpha:g} one-sided"
    drawn = f"{first.samples} samples"
    average = "; the average: bootstrap" if len(results.tasks) > 1 else ""
    if first.test == "bootstrap":
        return f"{level}, {drawn}, seed {results.seed}"
    # few points have few swaps, so that the smallest p is larger than that of so many draws
    all_swaps = all(task.least_p > 1 / (1 + first.samples) for task in results.tasks)
    if first.test == "williams" or (first.test == "perm-both" and all_swaps):
        level += ", all swaps" if first.test == "perm-both" else ""
        return level + (f"{average}, {drawn}, seed {results.seed}" if average else "")
    return f"{level}, {drawn}{average}, seed {results.seed}"


def coarse_notes(results: Results, tests: int = 1) -> list[str]:
    """Warnings where none of so many tests of metrics can be significant."""
    first = results.tasks[0].task
    coarse = [task for task in results.tasks if tests * task.least_p >= first.alpha]
    if len(results.metrics) < 2 or (tests > 1 and len(coarse) < len(results.tasks)):
        return []
    few = [t.task.label for t in coarse if t.least_p > 1 / (1 + first.samples)]
    notes = [] if len(few) == len(coarse) else too_few_draws(tests, first.samples, first.alpha)
    if few:
        what = f"too few judged {first.level}s for {first.test}"
        notes.append(f"warning: {', '.join(few)}: {what}: no p can fall below {first.alpha:g}")
    return notes


def words_of_test(task: Task) -> list[str]:
    """How metrics were compared, in a line; none where they were not."""
    return [f"{task.test}: {TESTS[task.test]}"] if task.samples and task.test in TESTS else []


def agreement_findings(results: Results) -> list[tuple[str, str]]:
    """For each statistic the metric that agrees best, and how sure that is."""
    said = []
    for part in results.by_statistic().values():
        figures: Figures = part.average if len(part.tasks) > 1 else part.tasks[0]
        if figures.best is None or len(part.metrics) < 2:
            continue
        kind = part.tasks[0].task.kind.title
        kinds = "sets" if len({t.task.sets for t in part.tasks}) == len(part.tasks) else "tasks"
        where = f" on average over {len(part.tasks)} {kinds}" if len(part.tasks) > 1 else ""
        value = f"{kind} {figures.values[figures.best]:z.3f}{where}{_sure(figures)}"
        said.append((part.metrics[figures.best], f"agrees best with people: {value}"))
    return said


def _sure(figures: Figures) -> str:
    """Whether the best metric is significantly better than the others; nothing where untested."""
    others = np.arange(len(figures.values)) != figures.best
    if figures.best is None or np.isnan(figures.p_values[figures.best][others]).all():
        return ""
    beside = [figures.metrics[n] for n in np.flatnonzero(figures.not_worse & others)]
    if not beside:
        return ", significantly better than all others"
    return f", not significantly better than {', '.join(beside)}"


def _asks(task: Task) -> str:
    """What people must have judged for a statistic to have a value."""
    if task.statistic in ("darr", "darr17"):
        return f"translations of a segment that people put {task.threshold:g} or more apart"
    return f"two or more judged {task.level}s to which people, and a metric, gave different scores"


def _undefined_note(result: TaskResult) -> str:
    counts = result.agreement.undefined
    groups = result.agreement.groups
    listed = [
        metric if groups == 1 else f"{metric} {int(count)}"
        for metric, count in zip(result.metrics, counts, strict=True)
        if count
    ]
    shown = ", ".join(listed[:5]) + (", ..." if len(listed) > 5 else "")
    if groups == 1:
        return f"{result.task.label}: undefined for {shown}: it takes two or more different scores"
    return f"{result.task.label}: of {groups} groups undefined: {shown}"


def left_out_lines(results: Results, judgments: Mapping[str, Mapping[str, int]]) -> list[str]:
    """One line for each thing that was read and not used: judgments, then scores of metrics."""
    lines = [
        f"{name}: left out: {reason}: {count:,}"
        for name, counts in judgments.items()
        for reason, count in counts.items()
    ]
    for name, by_metric in results.left_out.items():
        reasons: dict[tuple[str, int], list[str]] = {}
        for metric, counts in by_metric.items():
            for reason, count in counts.items():
                reasons.setdefault((reason, count), []).append(metric)
        lines += [
            f"{name}: {reason}: {count:,} ({', '.join(metrics)})"
            for (reason, count), metrics in reasons.items()
        ]
    return lines
