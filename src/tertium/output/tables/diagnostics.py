"""Tables of metric diagnostics, each with a small text chart and a one-sentence reading."""

from __future__ import annotations

from string import ascii_lowercase

import numpy as np

from tertium.arrays import FloatArray
from tertium.core.result import Table
from tertium.evaluation.diagnostics.diagnostic import Diagnostic
from tertium.evaluation.diagnostics.run import DiagnosticReport
from tertium.output.charts.axes import axis_limits
from tertium.output.tables.table import Cell, cell_table, number_cell

INTERVAL_NOTE = "; in brackets 95 % bootstrap intervals over items"
CHART_WIDTH = 31  # characters


def diagnostic_table(diagnostic: Diagnostic, decimals: int = 3, *, chart: bool = True) -> Table:
    """Return rows x series; `chart` adds a line with a letter at the value of each series."""
    letters = [ascii_lowercase[n % len(ascii_lowercase)] for n in range(len(diagnostic.series))]
    names = [f"{a} {s}" for a, s in zip(letters, diagnostic.series, strict=True)]
    rule = [] if diagnostic.reference_value is None else [diagnostic.reference_value]
    low, high = axis_limits(
        np.concatenate([diagnostic.values.ravel(), diagnostic.axis_range, rule]), margin=0.0
    )
    has_intervals = not bool(np.isnan(diagnostic.intervals).all())
    rows: list[list[Cell | str]] = []
    for row, values, between in zip(
        diagnostic.rows, diagnostic.values, diagnostic.intervals, strict=True
    ):
        cells: list[Cell | str] = [
            row,
            *(_cell(v, *own, decimals=decimals) for v, own in zip(values, between, strict=True)),
        ]
        rows.append(
            [*cells, Cell(_text_chart(values, letters, low, high, diagnostic.reference_value))]
            if chart
            else cells
        )
    scale = f"{low:.2g}".ljust(CHART_WIDTH - len(f"{high:.2g}")) + f"{high:.2g}"
    return cell_table(
        ["", *(names if chart else diagnostic.series), *([scale] if chart else [])],
        rows,
        title=f"{diagnostic.name}: {diagnostic.question}",
        notes=[
            diagnostic.summary,
            f"values: {diagnostic.label}{INTERVAL_NOTE * has_intervals}",
            *diagnostic.notes,
        ],
        text_columns=frozenset({0, len(diagnostic.series) + 1}),
    )


def _cell(value: float, low: float, high: float, *, decimals: int) -> Cell:
    """Return a value with its interval, which has one decimal less."""
    cell = number_cell(float(value), decimals)
    if low != low:
        return cell
    digits = max(decimals - 1, 0)
    return Cell(f"{cell.text} [{low:z.{digits}f}, {high:z.{digits}f}]", cell.value)


def _text_chart(
    values: FloatArray, letters: list[str], low: float, high: float, rule: float | None
) -> str:
    """Return dots with a letter at each value; `+` is an overlap, `|` the reference value."""
    line = ["·"] * CHART_WIDTH

    def position(value: float) -> int:
        share = (value - low) / (high - low) if high > low else 0.5
        return min(CHART_WIDTH - 1, max(0, round(share * (CHART_WIDTH - 1))))

    if rule is not None:
        line[position(rule)] = "|"
    used: set[int] = set()
    for letter, value in zip(letters, values.tolist(), strict=True):
        if value == value:
            n = position(value)
            line[n] = "+" if n in used else letter
            used.add(n)
    return "".join(line)


def diagnostics_list(report: DiagnosticReport) -> Table:
    """Return one row per value, for TSV."""
    rows: list[list[Cell | str]] = [
        [diagnostic.name, row, series, *(number_cell(float(v), 3) for v in (value, low, high))]
        for diagnostic in report.diagnostics
        for row, values, between in zip(
            diagnostic.rows, diagnostic.values, diagnostic.intervals, strict=True
        )
        for series, value, (low, high) in zip(diagnostic.series, values, between, strict=True)
    ]
    header = ["diagnostic", "row", "series", "value", "low", "high"]
    return cell_table(header, rows, text_columns=frozenset({0, 1, 2}))


def format_skipped_diagnostics(report: DiagnosticReport) -> list[str]:
    """Return one line per diagnostic that the data did not allow."""
    return [f"{name}: skipped: {reason}" for name, reason in report.skipped.items()]
