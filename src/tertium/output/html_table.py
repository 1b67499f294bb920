"""Tables as HTML, for pages and notebooks."""

from __future__ import annotations

import re
from collections.abc import Sequence

from tertium.core.result import Cell, Column, Table
from tertium.output.error_span_markup import render_line
from tertium.output.markup_builder import Markup, element, escape, isolate_names, join, scrollable


def render_table(table: Table, *, sortable: bool = False, max_rows: int | None = None) -> Markup:
    """Return a table for a page or a notebook; the first column is the row header.

    A sortable table has a button in each header, and may have filters. `script/tables.js` sorts its
    rows by the full values, leaves the footer in place, and adds the fields of the filters.
    """
    visible = table.visible
    rows = Table(visible, table.rows[:max_rows]).cells()
    names = _names(rows, visible)
    cautions = []
    for line in table.headlines:
        cautions.append(element("p", *isolate_names(line, names), class_="caution"))
    notes = []
    for line in table.notes:
        notes.append(element("p", *isolate_names(line, names), class_="note"))
    if len(rows) < len(table.rows):
        cut = f"The first {len(rows):,} of {len(table.rows):,} rows; files have all."
        notes.append(element("p", cut, class_="note"))
    if not rows:
        nothing = element("p", f"No {table.title.lower() or 'rows'}.") if visible else ""
        return join([*cautions, nothing, *notes])
    head = [_header_cell(column, sortable) for column in visible]
    body = [_row(row, visible) for row in rows]
    foot = [_row(row, visible) for row in table.footer]
    filters = [str(n) for n, column in enumerate(visible) if column.name in table.filters]
    grid = element(
        "table",
        element("caption", table.title) if table.title else "",
        element("thead", element("tr", *head)),
        element("tbody", *body),
        element("tfoot", *foot) if foot else "",
        class_="sortable" if sortable else None,
        data_filters=" ".join(filters) if sortable and filters else None,
    )
    return join([*cautions, scrollable(grid, table.title or "table"), *notes])


def _names(rows: Sequence[Sequence[Cell]], columns: Sequence[Column]) -> set[str]:
    """Return the texts of cells, which may be names in the notes."""
    names = set()
    for row in rows:
        for cell, column in zip(row, columns, strict=True):
            if column.is_text:
                names |= {text for text in (cell.text, cell.value) if isinstance(text, str)}
    return names


def _header_cell(column: Column, sortable: bool) -> Markup:
    name = element("bdi", column.name)
    sorts = sortable and bool(column.name)
    return element(
        "th",
        element("button", name, type="button") if sorts else name,
        scope="col",
        class_=None if column.is_text else "number",
        aria_sort="none" if sorts else None,
    )


def _row(cells: Sequence[Cell], columns: Sequence[Column]) -> Markup:
    """Return a row, whose first cell is its header."""
    parts = []
    for n, (cell, column) in enumerate(zip(cells, columns, strict=True)):
        if isinstance(cell.value, list):
            contents = join(map(render_line, cell.value))
            style = "lines"
        else:
            contents = _text(cell, column)
            style = "" if column.is_text else "number"
        is_number = isinstance(cell.value, int | float)
        part = element(
            "td" if n else "th",
            contents,
            _bar(cell.bar),
            scope=None if n else "row",
            class_=f"{style} {cell.emphasis}".strip() or None,
            data_value=repr(cell.value) if is_number else None,
        )
        parts.append(part)
    return element("tr", *parts)


def _text(cell: Cell, column: Column) -> Markup:
    """Return the text of a cell; a narrow column has the range of a number below it."""
    if column.is_text:
        return element("bdi", cell.text)
    parts = re.split(r" (?=[(\[])", cell.text, maxsplit=1)
    if len(parts) == 1:
        return escape(cell.text)
    return join([element("span", part, class_="range") for part in parts], " ")


def _bar(length: float | None) -> str:
    """Return a bar to the right of the middle, or to the left if its length is negative."""
    if length is None:
        return ""
    style = "bar gain" if length >= 0 else "bar cost"
    return element("span", class_=style, style=f"--v:{abs(length):.3f}")
