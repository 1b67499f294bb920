"""Tables of results by slice, as `--by` prints them."""

from __future__ import annotations

from tertium.evaluation.comparison import MIN_SEGMENTS, Comparison
from tertium.evaluation.slices import Slices
from tertium.meta.results import Results, TaskResult
from tertium.output.tables.evaluations import describe_test, is_best, metric_header, p_value_cell
from tertium.output.tables.meta_evaluation import (
    agreement_title,
    resolution_warnings,
    value_cell,
)
from tertium.output.tables.table import Cell, Table, number_cell, resampling_warnings


def slice_table(slices: Slices, decimals: int | None = None) -> Table:
    """Return slices and systems x metrics, with adjusted p-values for a comparison."""
    first = next(iter(slices.parts.values()))
    has_tests = bool(slices.adjusted)
    header = [slices.by, "system", "segments"]
    for metric in first.metrics:
        header += [metric_header(first, metric), *(["p"] if has_tests else [])]
    rows = [
        _row(slices, place, name, system, decimals)
        for place, name in enumerate(slices.parts)
        for system in range(len(first.systems))
    ]
    return Table(
        header,
        rows,
        title=f"by {slices.by}",
        notes=_notes(slices),
        text_columns=frozenset({0, 1}),
        columns_per_group=1 + has_tests,
    )


def _row(
    slices: Slices, place: int, name: str, system: int, decimals: int | None
) -> list[Cell | str]:
    part = slices.parts[name]
    size = len(part.testset)
    row: list[Cell | str] = [name, part.systems[system], Cell(str(size), size)]
    for metric in part.metrics:
        every = part.metric_scores(metric)
        own = every[system]
        places = own.decimals if decimals is None else decimals
        row.append(number_cell(own.system, places, "best" if is_best(own, every) else ""))
        if isinstance(part, Comparison):
            better = part.difference(metric, part.systems[system]) > 0
            p = float(slices.adjusted[metric][place, system])
            row.append(p_value_cell(p, better, part.alpha) if system else Cell("", ""))
    return row


def _notes(slices: Slices) -> list[str]:
    part = next(iter(slices.parts.values()))
    if not isinstance(part, Comparison):
        return []
    tests = len(slices.parts) * (len(part.systems) - 1)
    notes = [
        f"p: difference to {part.baseline}, {describe_test(part)}, seed {part.seed}, adjusted by "
        f"Holm's method over the {tests} tests of a metric; "
        f"* p < {part.alpha:g} (+ better, - worse)"
    ]
    notes += resampling_warnings(tests, part.resamples, part.alpha)
    small = [name for name, own in slices.parts.items() if len(own.testset) < MIN_SEGMENTS]
    if small:
        names = ", ".join(small[:5]) + (f" and {len(small) - 5} more" if small[5:] else "")
        notes.append(f"warning: fewer than {MIN_SEGMENTS} segments: {names}")
    return notes


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
        tables.append(Table(header, rows, title=f"{title}, by {by}", notes=notes))
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
