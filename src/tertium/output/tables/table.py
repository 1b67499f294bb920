"""Tables of cells, for results that do not declare columns yet."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from tertium.core import result
from tertium.core.result import Column, Emphasis, format_number

Value = float | int | str
WIN_PROBABILITY_DECIMALS = 4


@dataclass(frozen=True)
class OldCell(result.Cell):
    """One cell; TSV writes each entry of `extra_columns` as a column of its own."""

    extra_columns: Mapping[str, Value] = field(default_factory=dict)


def cell_table(
    header: Sequence[str],
    rows: Sequence[Sequence[OldCell | str]],
    title: str = "",
    notes: Sequence[str] = (),
    text_columns: frozenset[int] = frozenset({0}),
    footer: Sequence[Sequence[OldCell | str]] = (),
    columns_per_group: int = 1,
    leading_columns: int = 1,
    cautions: Sequence[str] = (),
) -> result.Table:
    """Return a table of cells."""
    cells = [_cells(row) for row in rows]
    columns = []
    for n, name in enumerate(header):
        first = n - (n - leading_columns) % columns_per_group
        group = header[0] if n < leading_columns else header[first]
        columns.append(_column(name, n, n in text_columns, group if columns_per_group > 1 else ""))
        extra = dict.fromkeys(key for row in cells for key in row[n].extra_columns)
        columns += [_extra_column(key, n) for key in extra]
    return result.Table(columns, cells, title, notes, cautions, [_cells(row) for row in footer])


def _cells(row: Sequence[OldCell | str]) -> list[OldCell]:
    return [cell if isinstance(cell, OldCell) else OldCell(cell, cell) for cell in row]


def _column(name: str, n: int, is_text: bool, group: str) -> Column:
    return Column(
        name,
        lambda row: row[n].text if row[n].value is None else row[n].value,
        None if is_text else 0,
        mark=lambda row: row[n].emphasis,
        text=lambda row, _: row[n].text,
        group=group,
    )


def _extra_column(key: str, n: int) -> Column:
    return Column(key, lambda row: row[n].extra_columns.get(key, ""), 0, show=False)


def number_cell(value: float, decimals: int, emphasis: Emphasis = "") -> OldCell:
    """Return a cell with a rounded number."""
    return OldCell(format_number(value, decimals), value, emphasis)


Cell = OldCell
