"""Turn a measured table into a printable table and into a JSON record."""

from __future__ import annotations

import math
from collections import Counter
from typing import Any

from papers.number_cells import number_cell
from papers.provenance import code_version
from papers.table import RowResult, TableResult
from tertium.core.result import Cell, Table

RECOMPUTED = "†"  # marks a published average that the paper does not print


def make_table(result: TableResult) -> Table:
    """Return three lines per measured row (published, measured, difference), one per quoted row.

    A table without any published figure has one line per measured row.
    """
    table = result.table
    has_average = table.has_average and len(table.experiment.columns) > 1
    columns = [*table.experiment.columns, *(["average"] if has_average else [])]
    title = f"{table.paper}, table {table.number}: {table.title}"
    departures = [f"departure from the paper: {d.title}: {d.description}" for d in table.departures]
    notes = [*table_notes(result), *departures]
    if not any(row.row.published or not math.isnan(row.row.average) for row in result.rows):
        rows: list[list[Cell | str]] = [
            [row.label, *_measured_cells(row, result, has_average)]
            for row in result.rows
            if row.figures
        ]
        return Table.from_cells(["", *columns], rows, title=title, notes=notes)
    rows = [line for row in result.rows for line in _lines(row, result, has_average)]
    return Table.from_cells(["", "", *columns], rows, title=title, notes=notes, text_columns=(0, 1))


def table_notes(result: TableResult) -> list[str]:
    """Return data, statistic, counts, signatures and code version of a table."""
    table = result.table
    lines = [f"data: {table.experiment.data}", f"statistic: {table.experiment.statistic}"]
    measured_row = next((row for row in result.rows if row.figures), None)
    if measured_row is not None:
        pairs = zip(table.experiment.columns, measured_row.figures, strict=True)
        lines.append("judgments: " + ", ".join(f"{c} {figure.count:,}" for c, figure in pairs))
        if table.has_average:
            lines.append("average: mean of the columns")
    lines += _significance_note(result)
    if (
        table.has_average
        and len(table.experiment.columns) > 1
        and any(map(_is_recomputed, result.rows))
    ):
        lines.append(f"{RECOMPUTED}: our mean of the published figures; the paper prints none")
    for row in result.rows:
        lines += _row_notes(row, result)
    lines += [table.note] if table.note else []
    codes = dict.fromkeys(f.code for row in result.rows for f in row.figures if f.code)
    return [*lines, f"code: {'; '.join(codes) or code_version()}"]


def _row_notes(row: RowResult, result: TableResult) -> list[str]:
    lines = [*row.signatures, *_seed_note(row, result)]
    excluded = sum((Counter(figure.excluded_counts) for figure in row.figures), Counter[str]())
    lines += [f"excluded: {reason}: {count}" for reason, count in excluded.items()]
    statistic = result.table.experiment_of(row.row).statistic
    if row.figures and statistic != result.table.experiment.statistic:
        lines.append(f"statistic: {statistic}")
    lines += [row.row.note] if row.row.note else []
    lines += [f"not available: {row.unavailable}"] if row.unavailable else []
    return [f"{row.label}: {line}" for line in lines]


def _significance_note(result: TableResult) -> list[str]:
    """Explain bold figures: which rows were compared and, if not in all, in which columns."""
    rows = [r for r in result.rows if any(f.best is not None for f in r.figures)]
    if not rows:
        return []
    columns = result.table.experiment.columns
    tested = [
        column
        for n, column in enumerate(columns)
        if any(row.figures[n].best is not None for row in rows)
    ]
    where = "" if len(tested) == len(columns) else f" in {', '.join(tested)}"
    has_seeds = any(f.seeds > 1 for r in rows for f in r.figures)
    seeds = "; with several seeds, the first was tested" if has_seeds else ""
    test = "not significantly outperformed (Williams' test, one-sided, p < .05) by any of"
    return [f"bold{where}: {test}: {'; '.join(row.label for row in rows)}{seeds}"]


def _seed_note(row: RowResult, result: TableResult) -> list[str]:
    columns, decimals = result.table.experiment.columns, result.table.decimals
    seeded = [(c, f) for c, f in zip(columns, row.figures, strict=False) if f.seeds > 1]
    if not seeded:
        return []
    seeds = max(figure.seeds for _, figure in seeded)
    deviations = ", ".join(f"{column} {figure.deviation:.{decimals}f}" for column, figure in seeded)
    fewer = [f"{column}: {figure.seeds}" for column, figure in seeded if figure.seeds < seeds]
    exceptions = f" ({', '.join(fewer)})" if fewer else ""
    return [f"mean of {seeds} seeds{exceptions}, standard deviation {deviations}"]


def make_record(result: TableResult) -> dict[str, Any]:
    """Return everything with unrounded numbers, ready for JSON."""
    table = result.table
    columns = table.experiment.columns
    return {
        "paper": table.paper,
        "table": table.number,
        "title": table.title,
        "data": table.experiment.data,
        "statistic": table.experiment.statistic,
        "note": table.note,
        "departures": {departure.title: departure.description for departure in table.departures},
        "code": code_version(),
        "rows": [
            {
                "label": row.label,
                "statistic": table.experiment_of(row.row).statistic,
                "published": dict(zip(columns, row.row.published, strict=False)),
                "published_average": row.published_average,
                "published_average_is_printed": row.is_average_printed,
                "measured": dict(zip(columns, row.measured_values, strict=False)),
                "measured_average": row.average,
                "judged": dict(zip(columns, (f.count for f in row.figures), strict=False)),
                "seeds": [figure.seeds for figure in row.figures],
                "deviation": [figure.deviation for figure in row.figures],
                "left_out": [dict(figure.excluded_counts) for figure in row.figures],
                "signatures": list(row.signatures),
                "unavailable": row.unavailable,
                "note": row.row.note,
            }
            for row in result.rows
        ],
    }


def _lines(row: RowResult, result: TableResult, has_average: bool) -> list[list[Cell | str]]:
    decimals, width = result.table.decimals, len(result.table.experiment.columns)
    published: list[Cell | str] = [
        number_cell(value, decimals, "dim") for value in row.row.published or (math.nan,) * width
    ]
    if has_average:
        average = number_cell(row.published_average, decimals, "dim")
        if _is_recomputed(row):
            average = Cell(f"{average.text} {RECOMPUTED}", average.value, "dim")
        published.append(average)
    lines: list[list[Cell | str]] = [[row.label, "published", *published]]
    if row.unavailable:
        return [*lines, ["", "not available", *[Cell("–")] * (width + has_average)]]
    if not row.figures:
        return lines
    differences = (*row.differences, row.average - row.published_average)[: width + has_average]
    signed = [Cell("–" if math.isnan(v) else f"{v:+.{decimals}f}", v) for v in differences]
    measured = _measured_cells(row, result, has_average)
    return [*lines, ["", "measured", *measured], ["", "difference", *signed]]


def _measured_cells(row: RowResult, result: TableResult, has_average: bool) -> list[Cell]:
    decimals = result.table.decimals
    cells = [
        number_cell(figure.value, decimals, "best" if figure.best else "") for figure in row.figures
    ]
    return [*cells, number_cell(row.average, decimals)] if has_average else cells


def _is_recomputed(row: RowResult) -> bool:
    """Return whether the published average exists but is not printed in the paper."""
    return not math.isnan(row.published_average) and not row.is_average_printed
