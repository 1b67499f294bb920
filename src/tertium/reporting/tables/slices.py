"""Slices as tables: what `--by` prints, and what a page shows of it."""

from __future__ import annotations

from tertium.evaluation.comparison import FEW, Comparison
from tertium.evaluation.slices import Slices
from tertium.meta.results import Results, TaskResult
from tertium.reporting.tables.agreements import agreement_title, coarse_notes, figure_cell
from tertium.reporting.tables.evaluations import column_name, how_tested, is_best, marked_p
from tertium.reporting.tables.table import Cell, Table, number, too_few_draws


def slice_table(slices: Slices, decimals: int | None = None) -> Table:
    """Slices and systems x metrics, with adjusted p-values where slices were compared."""
    first = next(iter(slices.parts.values()))
    compared = bool(slices.adjusted)
    header = [slices.by, "system", "segments"]
    for metric in first.metrics:
        header += [column_name(first, metric), *(["p"] if compared else [])]
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
        left=frozenset({0, 1}),
        together=1 + compared,
    )


def _row(
    slices: Slices, place: int, name: str, system: int, decimals: int | None
) -> list[Cell | str]:
    part = slices.parts[name]
    size = len(part.testset)
    row: list[Cell | str] = [name, part.systems[system], Cell(str(size), size)]
    for metric in part.metrics:
        every = part.of_metric(metric)
        own = every[system]
        places = own.decimals if decimals is None else decimals
        row.append(number(own.system, places, "best" if is_best(own, every) else ""))
        if isinstance(part, Comparison):
            better = part.difference(metric, part.systems[system]) > 0
            p = float(slices.adjusted[metric][place, system])
            row.append(marked_p(p, better, part.alpha) if system else Cell("", ""))
    return row


def _notes(slices: Slices) -> list[str]:
    part = next(iter(slices.parts.values()))
    if not isinstance(part, Comparison):
        return []
    tests = len(slices.parts) * (len(part.systems) - 1)
    notes = [
        f"p: against {part.baseline}, {how_tested(part)}, seed {part.seed}, adjusted by Holm's "
        f"method over the {tests} tests of a metric; * marks p < {part.alpha:g} (+ better, - worse)"
    ]
    notes += too_few_draws(tests, part.resamples, part.alpha)
    few = [name for name, own in slices.parts.items() if len(own.testset) < FEW]
    if few:
        shown = ", ".join(few[:5]) + (f" and {len(few) - 5} more" if few[5:] else "")
        notes.append(f"warning: fewer than {FEW} segments: {shown}")
    return notes


def agreement_slice_tables(
    results: Results, by: str, decimals: int = 3, *, intervals: bool = False
) -> list[Table]:
    """A table for each statistic: slices x metrics."""
    tables = []
    for part in results.by_statistic().values():
        title = agreement_title(part.tasks[0].task)
        rows = [_agreement_row(task, decimals, intervals) for task in part.tasks]
        header = [by, "judged", *results.metrics]
        notes = _agreement_notes(part)
        tables.append(Table(header, rows, title=f"{title}, by {by}", notes=notes))
    return tables


def _agreement_row(task: TaskResult, decimals: int, intervals: bool) -> list[Cell | str]:
    judged = task.agreement.judged
    cells = [
        figure_cell(task, n, decimals, metric if intervals else "")
        for n, metric in enumerate(task.metrics)
    ]
    return [task.task.label, Cell(f"{judged:,}", judged, "dim"), *cells]


def _agreement_notes(results: Results) -> list[str]:
    first, metrics = results.tasks[0].task, len(results.metrics)
    if not first.samples or first.test == "none" or metrics < 2:
        return ["** best"]
    tests = len(results.tasks) * metrics * (metrics - 1) // 2
    said = [
        f"** best, * not significantly worse ({first.test}, p < {first.alpha:g} one-sided, "
        f"{first.samples} samples, seed {results.seed}; p adjusted by Holm's method over {tests} "
        "tests: all pairs of metrics in all slices)"
    ]
    return said + coarse_notes(results, tests)
