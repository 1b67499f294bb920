"""Tables in the formats that commands print."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from tertium.core.errors import UsageError
from tertium.core.result import Section, Table
from tertium.output import text
from tertium.text.printable import replace_control_characters

TableFormat = Literal["text", "md", "latex", "tsv"]


def render_contents(
    contents: Sequence[Any],
    style: TableFormat = "text",
    *,
    width: int | None = None,
    color: bool = False,
) -> str:
    """Return the contents of results in a format; other formats than text have tables only."""
    if style == "text":
        return text.render_contents(contents, width=width, color=color)
    tables: list[str] = []
    for part in contents:
        if isinstance(part, Table):
            tables.append(render_table(part, style))
        elif isinstance(part, Section):
            tables.append(render_contents(part.contents, style))
    return ("\n" if style == "md" else "").join(filter(None, tables))


def render_table(
    table: Table, style: TableFormat = "text", *, width: int | None = None, color: bool = False
) -> str:
    """Return a table in a format; it ends in a newline."""
    if style == "text":
        return text.render_table(table, width=width, color=color)
    if style == "md":
        from tertium.output import markdown

        return markdown.render_table(table)
    if style == "latex":
        from tertium.output import latex

        return latex.render_table(table)
    if style == "tsv":
        from tertium.data.tables import tsv_lines

        lines = "".join(tsv_lines(table.values(), missing="nan"))
        return replace_control_characters(lines, keep="\n\t")
    raise UsageError(f"unknown table format {style!r}: expected text, md, latex or tsv")
