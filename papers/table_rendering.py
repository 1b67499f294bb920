"""Turn a measured table into a printable table."""

from __future__ import annotations

import math
from collections import Counter

from papers.number_cells import cell_table, number_cell
from papers.provenance import code_version
from papers.table import RowResult, TableResult
from tertium.core.result import Cell, Table, format_number

RECOMPUTED = "†"  # marks a published average that the paper does not print


def make_table(result: TableResult) -> Table:
    """Return one line per row, with cells "measured / published" if the paper prints figures.

    A table with averages has a last column with the difference of the averages.
    """
    table = result.table
    is_compared = any(row.row.published or not math.isnan(row.row.average) for row in result.rows)
    has_average = table.has_average and len(table.experiment.columns) > 1
    header = ["measured / published" if is_compared else "", *table.experiment.columns]
    header += ["average"] * has_average
    header += ["difference"] * (has_average and is_compared)
    rows: list[list[Cell | str]] = []
    for row in result.rows:
        if is_compared:
            rows.append([row.label, *_compared_cells(row, result, has_average)])
        elif row.figures:
            rows.append([row.label, *_measured_cells(row, result, has_average)])
    title = f"{table.paper}, table {table.number}: {table.title}"
    departures = [f"departure from the paper: {d.title}: {d.description}" for d in table.departures]
    return cell_table(header, rows, title=title, notes=[*table_notes(result), *departures])


def table_notes(result: TableResult) -> list[str]:
    """Return data, statistic, counts, remarks on rows and code version of a table."""
    table = result.table
    data = f"data: {table.experiment.data}{_describe_counts(result)}"
    codes = dict.fromkeys(f.code for row in result.rows for f in row.figures if f.code)
    code = f"code: {'; '.join(codes) or code_version()}"
    lines = [f"{data}; statistic: {table.experiment.statistic}; {code}"]
    lines += _significance_note(result)
    if (
        table.has_average
        and len(table.experiment.columns) > 1
        and any(map(_is_recomputed, result.rows))
    ):
        lines.append(f"{RECOMPUTED}: our mean of the published figures; the paper prints none")
    labels: dict[str, list[str]] = {}
    for row in result.rows:
        for note in _row_notes(row, result):
            labels.setdefault(note, []).append(row.label)
    lines += [f"{'; '.join(names)}: {note}" for note, names in labels.items()]
    lines += _seed_notes(result)
    return [*lines, table.note] if table.note else lines


def _describe_counts(result: TableResult) -> str:
    """Return the number of judgments of each column, in parentheses."""
    row = next((row for row in result.rows if row.figures), None)
    if row is None:
        return ""
    counts = [figure.count for figure in row.figures]
    if len(set(counts)) == 1:
        return f" ({counts[0]:,} judgments each)"
    pairs = zip(result.table.experiment.columns, counts, strict=True)
    return f" (judgments: {', '.join(f'{column} {count:,}' for column, count in pairs)})"


def _row_notes(row: RowResult, result: TableResult) -> list[str]:
    # Signatures of metrics are in the stored figures; others are remarks, such as p-values.
    remarks = [signature for signature in row.signatures if "|" not in signature]
    lines = ["; ".join(remarks)] if remarks else []
    excluded = sum((Counter(figure.excluded_counts) for figure in row.figures), Counter[str]())
    lines += [f"excluded: {reason}: {count}" for reason, count in excluded.items()]
    statistic = result.table.experiment_of(row.row).statistic
    if row.figures and statistic != result.table.experiment.statistic:
        lines.append(f"statistic: {statistic}")
    lines += [row.row.note] if row.row.note else []
    lines += [f"not available: {row.unavailable}"] if row.unavailable else []
    return lines


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


def _seed_notes(result: TableResult) -> list[str]:
    """Return one line per number of seeds: the standard deviations of each row."""
    columns, decimals = result.table.experiment.columns, result.table.decimals
    rows: dict[int, list[str]] = {}
    for row in result.rows:
        seeded = [(c, f) for c, f in zip(columns, row.figures, strict=False) if f.seeds > 1]
        if not seeded:
            continue
        seeds = max(figure.seeds for _, figure in seeded)
        deviations = [f"{column} {figure.deviation:.{decimals}f}" for column, figure in seeded]
        fewer = [f"{column}: {figure.seeds}" for column, figure in seeded if figure.seeds < seeds]
        exceptions = f" (seeds of {', '.join(fewer)})" if fewer else ""
        rows.setdefault(seeds, []).append(f"{row.label}{exceptions}: {', '.join(deviations)}")
    return [
        f"means of {seeds} seeds, with standard deviations: {'; '.join(texts)}"
        for seeds, texts in rows.items()
    ]


def _compared_cells(row: RowResult, result: TableResult, has_average: bool) -> list[Cell]:
    """Return the measured and the published figure of each column, and of the average."""
    decimals, width = result.table.decimals, len(result.table.experiment.columns)
    published = [*(row.row.published or (math.nan,) * width)]
    if has_average:
        published.append(row.published_average)
    measured = _measured_cells(row, result, has_average) if row.figures else []
    measured = measured or [number_cell(math.nan, decimals)] * len(published)
    cells: list[Cell] = []
    for cell, value in zip(measured, published, strict=True):
        text = cell.text if math.isnan(value) else f"{cell.text} / {format_number(value, decimals)}"
        if len(cells) == width and _is_recomputed(row):
            text += f" {RECOMPUTED}"
        cells.append(Cell(text, text, cell.emphasis))
    if has_average:
        difference = row.average - row.published_average
        text = "–" if math.isnan(difference) else f"{difference:+.{decimals}f}"
        cells.append(Cell(text, difference))
    return cells


def _measured_cells(row: RowResult, result: TableResult, has_average: bool) -> list[Cell]:
    decimals = result.table.decimals
    cells = [
        number_cell(figure.value, decimals, "best" if figure.best else "") for figure in row.figures
    ]
    return [*cells, number_cell(row.average, decimals)] if has_average else cells


def _is_recomputed(row: RowResult) -> bool:
    """Return whether the published average exists but is not printed in the paper."""
    return not math.isnan(row.published_average) and not row.is_average_printed
