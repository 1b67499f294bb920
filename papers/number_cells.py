"""Cells of tables with rounded numbers, and tables of cells."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Any

from tertium.core.result import Cell, Column, Emphasis, Table, format_number


def number_cell(value: float, decimals: int, emphasis: Emphasis = "") -> Cell:
    """Return a cell with a rounded number."""
    return Cell(format_number(value, decimals), value, emphasis)


def cell_table(
    header: Sequence[str],
    rows: Iterable[Sequence[Cell | str]],
    *,
    text_columns: Collection[int] = (0,),
    **more: Any,
) -> Table:
    """Return a table of cells and texts; `text_columns` are aligned left."""

    def column(n: int) -> Column:
        return Column(
            header[n],
            lambda row: row[n].value,
            None if n in text_columns else 0,
            mark=lambda row: row[n].emphasis,
            text=lambda row, _: row[n].text,
        )

    cells = [[Cell(c, c) if isinstance(c, str) else c for c in row] for row in rows]
    return Table([column(n) for n in range(len(header))], cells, **more)
