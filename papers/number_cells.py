"""Cells of tables with rounded numbers."""

from __future__ import annotations

from tertium.core.result import Cell, Emphasis, format_number


def number_cell(value: float, decimals: int, emphasis: Emphasis = "") -> Cell:
    """Return a cell with a rounded number."""
    return Cell(format_number(value, decimals), value, emphasis)
