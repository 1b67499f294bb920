"""Tables of results by slice, as `--by` prints them."""

from __future__ import annotations

from tertium.core.result import Table
from tertium.meta.results import Results, TaskResult
from tertium.output.tables.meta_evaluation import (
    agreement_title,
    resolution_warnings,
    value_cell,
)
from tertium.output.tables.table import Cell, cell_table


def agreement_slice_tables(
    results: Results, by: str, decimals: int = 3, *, intervals: bool = False
) -> list[Table]:
    """Return one table per statistic: slices x metrics."""
    tables = []
    for part in results.by_statistic().values():
        title = agreement_title(part.tasks[0].task)
        rows = [_agreement_row(task, decimals, intervals) for task in part.tasks]
        header = [by, "human scores", *results.metrics]
        notes = _agreement_notes(part)
        tables.append(cell_table(header, rows, title=f"{title}, by {by}", notes=notes))
    return tables


def _agreement_row(task: TaskResult, decimals: int, intervals: bool) -> list[Cell | str]:
    count = task.agreement.judged_count
    cells = [
        value_cell(task, n, decimals, metric if intervals else "")
        for n, metric in enumerate(task.metrics)
    ]
    return [task.task.label, Cell(f"{count:,}", count, "dim"), *cells]


def _agreement_notes(results: Results) -> list[str]:
    first, metrics = results.tasks[0].task, len(results.metrics)
    if not first.resamples or first.test == "none" or metrics < 2:
        return ["** best"]
    tests = len(results.tasks) * metrics * (metrics - 1) // 2
    notes = [
        f"** best, * not significantly worse ({first.test}, p < {first.alpha:g} one-sided, "
        f"{first.resamples} resamples, seed {results.seed}; p adjusted by Holm's method over "
        f"{tests} tests: all pairs of metrics in all slices)"
    ]
    return notes + resolution_warnings(results, tests)
