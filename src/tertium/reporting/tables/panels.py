"""The panel of doubts as tables: each with a picture in letters and the sentence that reads it."""

from __future__ import annotations

from string import ascii_lowercase

import numpy as np

from tertium.arrays import FloatArray
from tertium.evaluation.panel.case import Doubt
from tertium.evaluation.panel.panel import DoubtPanel
from tertium.reporting.charts.axes import bounds
from tertium.reporting.tables.table import Cell, Table, number

BRACKETS = "; in brackets 95 % of bootstrap samples of items"
TRACK = 31  # letters of a line on which values are marked


def doubt_table(doubt: Doubt, decimals: int = 3, *, drawn: bool = True) -> Table:
    """Rows x series; drawn, with a line on which each series is marked by its letter."""
    letters = [ascii_lowercase[n % len(ascii_lowercase)] for n in range(len(doubt.series))]
    names = [f"{a} {s}" for a, s in zip(letters, doubt.series, strict=True)]
    rule = [] if doubt.rule is None else [doubt.rule]
    low, high = bounds(np.concatenate([doubt.values.ravel(), doubt.span, rule]), margin=0.0)
    known = not bool(np.isnan(doubt.intervals).all())
    rows: list[list[Cell | str]] = []
    for row, values, between in zip(doubt.rows, doubt.values, doubt.intervals, strict=True):
        cells: list[Cell | str] = [
            row,
            *(_cell(v, *own, decimals=decimals) for v, own in zip(values, between, strict=True)),
        ]
        rows.append(
            [*cells, Cell(_track(values, letters, low, high, doubt.rule))] if drawn else cells
        )
    scale = f"{low:.2g}".ljust(TRACK - len(f"{high:.2g}")) + f"{high:.2g}"
    return Table(
        ["", *(names if drawn else doubt.series), *([scale] if drawn else [])],
        rows,
        title=f"{doubt.name}: {doubt.question}",
        notes=[doubt.reading, f"values: {doubt.label}{BRACKETS * known}", *doubt.notes],
        left=frozenset({0, len(doubt.series) + 1}),
    )


def _cell(value: float, low: float, high: float, *, decimals: int) -> Cell:
    """A value with its interval, which takes one decimal less."""
    cell = number(float(value), decimals)
    if low != low:
        return cell
    fewer = max(decimals - 1, 0)
    return Cell(f"{cell.text} [{low:z.{fewer}f}, {high:z.{fewer}f}]", cell.value)


def _track(
    values: FloatArray, letters: list[str], low: float, high: float, rule: float | None
) -> str:
    """A line of dots with a letter at each value; `+` where two fall together, `|` at the rule."""
    line = ["·"] * TRACK

    def place(value: float) -> int:
        share = (value - low) / (high - low) if high > low else 0.5
        return min(TRACK - 1, max(0, round(share * (TRACK - 1))))

    if rule is not None:
        line[place(rule)] = "|"
    taken: set[int] = set()
    for letter, value in zip(letters, values.tolist(), strict=True):
        if value == value:
            at = place(value)
            line[at] = "+" if at in taken else letter
            taken.add(at)
    return "".join(line)


def long_panel_table(panel: DoubtPanel) -> Table:
    """A row for each number, for TSV."""
    rows: list[list[Cell | str]] = [
        [doubt.name, row, series, *(number(float(v), 3) for v in (value, low, high))]
        for doubt in panel.doubts
        for row, values, between in zip(doubt.rows, doubt.values, doubt.intervals, strict=True)
        for series, value, (low, high) in zip(doubt.series, values, between, strict=True)
    ]
    header = ["doubt", "row", "series", "value", "low", "high"]
    return Table(header, rows, left=frozenset({0, 1, 2}))


def not_asked_lines(panel: DoubtPanel) -> list[str]:
    """A line for each doubt that the evidence could not answer."""
    return [f"{name}: not asked: {reason}" for name, reason in panel.not_asked.items()]
