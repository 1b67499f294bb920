"""Tables as HTML, for pages and notebooks."""

from __future__ import annotations

from collections.abc import Sequence

from tertium.core.result import Cell, Column, Table
from tertium.output.markup import Markup, element, isolate_names, join, scrollable


def render_table(table: Table, *, sortable: bool = False, style: str = "") -> Markup:
    """Return a table for a page or a notebook; the first column is the row header.

    A sortable table has a button in each header. `script/tables.js` sorts its rows by the full
    values and leaves the footer in place.
    """
    visible = table.visible
    rows = table.cells()
    head = [_header_cell(column, sortable) for column in visible]
    grid = element(
        "table",
        element("caption", table.title) if table.title else "",
        element("thead", element("tr", *head)),
        element("tbody", *(_row(row, visible) for row in rows)),
        element("tfoot", *(_row(row, visible) for row in table.footer)) if table.footer else "",
        class_=f"{'sortable ' if sortable else ''}{style}".strip() or None,
    )
    names = []
    for row in rows:
        for cell, column in zip(row, visible, strict=True):
            if column.is_text:
                names += [name for name in (cell.text, cell.value) if isinstance(name, str)]
    cautions, notes = (
        [element("p", *isolate_names(text, names), class_="note") for text in texts]
        for texts in (table.cautions, table.notes)
    )
    return join([*cautions, scrollable(grid, table.title or "table"), *notes])


def _header_cell(column: Column, sortable: bool) -> Markup:
    sorts = sortable and bool(column.name)
    return element(
        "th",
        sort_button(column.name) if sorts else element("bdi", column.name),
        scope="col",
        class_=None if column.is_text else "number",
        aria_sort="none" if sorts else None,
    )


def sort_button(name: str) -> Markup:
    """Return the content of a header cell of a sortable table."""
    return element("button", element("bdi", name), type="button")


def _row(cells: Sequence[Cell], columns: Sequence[Column]) -> Markup:
    parts = []
    for n, (cell, column) in enumerate(zip(cells, columns, strict=True)):
        style = f"{'' if column.is_text else 'number'} {cell.emphasis}".strip()
        is_number = isinstance(cell.value, int | float)
        parts.append(
            element(
                "td" if n else "th",
                element("bdi", cell.text) if column.is_text else cell.text,
                _bar(cell.bar),
                scope=None if n else "row",
                class_=style or None,
                data_value=repr(cell.value) if is_number else None,
            )
        )
    return element("tr", *parts)


def _bar(length: float | None) -> str:
    """Return a bar to the right of the middle, or to the left if its length is negative."""
    if length is None:
        return ""
    style = "bar gain" if length >= 0 else "bar cost"
    return element("span", class_=style, style=f"--v:{abs(length):.3f}")
