"""Tables as HTML: captions, row and column headers, and buttons that sort."""

from __future__ import annotations

from collections.abc import Sequence

from tertium.reporting.markup import Markup, element, join
from tertium.reporting.tables.table import Cell, Table


def html_table(table: Table, *, sortable: bool = False, style: str = "") -> Markup:
    """A table for a page or a notebook; its first column names the rows.

    A sortable one has a button in each header; `script/tables.js` sorts the rows by their cells'
    full values and leaves the footer where it is.
    """
    head = [
        element(
            "th",
            _sorter(name) if sortable and name else element("bdi", name),
            scope="col",
            class_=None if n in table.left else "number",
            aria_sort="none" if sortable and name else None,
        )
        for n, name in enumerate(table.header)
    ]
    body, foot = ([_row(row, table.left) for row in rows] for rows in (table.rows, table.footer))
    grid = element(
        "table",
        element("caption", table.title) if table.title else "",
        element("thead", element("tr", *head)),
        element("tbody", *body),
        element("tfoot", *foot) if foot else "",
        class_=" ".join(filter(None, ["sortable" if sortable else "", style])) or None,
    )
    said = [element("p", note, class_="note") for note in table.notes]
    label = table.title or "table"
    # Wide tables scroll inside their frame, which the keyboard must be able to reach.
    frame = element("div", grid, class_="scroll", tabindex=0, role="region", aria_label=label)
    return join([frame, *said])


def _sorter(name: str) -> Markup:
    return element("button", element("bdi", name), type="button")


def _row(cells: Sequence[Cell | str], left: frozenset[int]) -> Markup:
    parts = []
    for n, given in enumerate(cells):
        cell = given if isinstance(given, Cell) else Cell(given, given)
        style = " ".join(filter(None, ["" if n in left else "number", cell.mark]))
        value = cell.value if isinstance(cell.value, int | float) else None
        parts.append(
            element(
                "td" if n else "th",
                element("bdi", cell.text) if n in left else cell.text,
                scope=None if n else "row",
                class_=style or None,
                data_value=None if value is None else repr(value),
            )
        )
    return element("tr", *parts)
