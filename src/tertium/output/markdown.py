"""Tables as Markdown."""

from __future__ import annotations

from collections.abc import Iterable

from tertium.core.atomic import PathLike, write_text
from tertium.core.result import Result, Table
from tertium.text.printable import replace_control_characters


def write(result: Result, path: PathLike) -> None:
    """Write the tables of a result."""
    write_text(path, "\n".join(map(render_table, result.tables())))


def render_table(table: Table) -> str:
    """Return a table as Markdown that ends in a newline."""
    lines = [f"**{escape_markdown(table.title)}**", ""] if table.title else []
    for line in table.headlines:
        lines += [escape_markdown(line), ""]
    lines.append(_join_cells(map(escape_markdown, table.header)))
    lines.append(_join_cells("---" if column.is_text else "---:" for column in table.visible))
    for row in (*table.cells(), *table.footer):
        texts = []
        for cell in row:
            text = escape_markdown(cell.text)
            texts.append(f"**{text}**" if cell.emphasis == "best" else text)
        lines.append(_join_cells(texts))
    if table.notes:
        lines.append("")
    lines += [f"{escape_markdown(note)}  " for note in table.notes]
    return replace_control_characters("\n".join(lines) + "\n", keep="\n\t")


def _join_cells(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def escape_markdown(text: str) -> str:
    r"""Escape special characters of Markdown; a line break becomes a space.

    >>> print(escape_markdown("a|b*c"))
    a\|b\*c
    """
    return "".join(f"\\{c}" if c in "\\|*_`<>[]" else c for c in text).replace("\n", " ")
