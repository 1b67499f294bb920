"""A table is data first; text, Markdown, LaTeX and TSV are ways to print it.

Cells keep the full number beside the rounded text: a table rounds, TSV and JSON do not.
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from tertium.errors import UsageError

Format = Literal["text", "md", "latex", "tsv"]


@dataclass(frozen=True)
class Cell:
    """What a table shows in one place.

    `text` is for people, `value` for machines (TSV); `mark` says how it stands out: "best" is bold,
    "good" green, "bad" red, "dim" grey.
    """

    text: str
    value: float | int | str | None = None
    mark: Literal["", "best", "good", "bad", "dim"] = ""


@dataclass(frozen=True)
class Table:
    """A title, named columns, rows of cells, and notes below.

    The first column holds names and is aligned left, the others right unless `left` says otherwise.
    Rows of the `footer`, such as counts, stay below the others however those are sorted.
    """

    header: Sequence[str]
    rows: Sequence[Sequence[Cell | str]]
    title: str = ""
    notes: Sequence[str] = ()
    left: frozenset[int] = field(default_factory=lambda: frozenset({0}))
    footer: Sequence[Sequence[Cell | str]] = ()


def number(
    value: float,
    decimals: int,
    mark: Literal["", "best", "good", "bad", "dim"] = "",
) -> Cell:
    """A cell that shows a rounded number and keeps the full one.

    >>> number(2 / 3, 2)
    Cell(text='0.67', value=0.6666666666666666, mark='')
    """
    return Cell("–" if value != value else f"{value:.{decimals}f}", value, mark)


def render(
    table: Table, style: Format = "text", *, width: int | None = None, color: bool = False
) -> str:
    """The table as text that ends in a newline."""
    if style == "text":
        return _render_text(table, width, color)
    if style == "md":
        return _render_markdown(table)
    if style == "latex":
        return _render_latex(table)
    if style == "tsv":
        return _render_tsv(table)
    raise UsageError(f"unknown table format {style!r}: text, md, latex or tsv")


def _cells(row: Sequence[Cell | str]) -> list[Cell]:
    return [cell if isinstance(cell, Cell) else Cell(cell, cell) for cell in row]


def _render_text(table: Table, width: int | None, color: bool) -> str:
    from rich import box
    from rich.console import Console
    from rich.table import Table as RichTable
    from rich.text import Text

    styles = {"best": "bold", "good": "green", "bad": "red", "dim": "dim", "": ""}
    grid = RichTable(box=box.SIMPLE_HEAD, title=table.title or None, title_justify="left",
                     title_style="bold", pad_edge=False)  # fmt: skip
    for n, name in enumerate(table.header):
        grid.add_column(Text(name), justify="left" if n in table.left else "right", no_wrap=n > 0,
                        overflow="fold")  # fmt: skip
    for row in (*table.rows, *table.footer):
        grid.add_row(*(Text(cell.text, style=styles[cell.mark]) for cell in _cells(row)))
    out = io.StringIO()
    console = Console(file=out, width=width or 10_000, force_terminal=color,
                      color_system="standard" if color else None, highlight=False)  # fmt: skip
    console.print(grid)
    for note in table.notes:
        console.print(Text(note, style="dim"), soft_wrap=True)
    return "\n".join(line.rstrip() for line in out.getvalue().splitlines()) + "\n"


def _render_markdown(table: Table) -> str:
    def row(cells: Sequence[str]) -> str:
        return "| " + " | ".join(cells) + " |"

    lines = [f"**{escape_markdown(table.title)}**", ""] if table.title else []
    lines.append(row([escape_markdown(name) for name in table.header]))
    lines.append(row(["---" if n in table.left else "---:" for n in range(len(table.header))]))
    for cells in map(_cells, (*table.rows, *table.footer)):
        texts = [escape_markdown(cell.text) for cell in cells]
        lines.append(row([f"**{t}**" if c.mark == "best" else t
                          for t, c in zip(texts, cells, strict=True)]))  # fmt: skip
    notes = [f"{escape_markdown(note)}  " for note in table.notes]
    return "\n".join([*lines, *([""] if notes else []), *notes]) + "\n"


def _render_latex(table: Table) -> str:
    columns = "".join("l" if n in table.left else "r" for n in range(len(table.header)))
    lines = [f"% {line}" for line in ([table.title] if table.title else [])]
    lines += [rf"\begin{{tabular}}{{{columns}}}", r"\hline"]
    lines.append(" & ".join(escape_latex(name) for name in table.header) + r" \\")
    lines.append(r"\hline")
    lines += map(_latex_row, table.rows)
    lines += [r"\hline", *map(_latex_row, table.footer)] if table.footer else []
    lines += [r"\hline", r"\end{tabular}", *(f"% {note}" for note in table.notes)]
    return "\n".join(lines) + "\n"


def _latex_row(row: Sequence[Cell | str]) -> str:
    shown = [(escape_latex(cell.text), cell.mark) for cell in _cells(row)]
    marked = [rf"\textbf{{{text}}}" if mark == "best" else text for text, mark in shown]
    return " & ".join(marked) + r" \\"


def _render_tsv(table: Table) -> str:
    def text(cell: Cell) -> str:
        shown = cell.text if cell.value is None else str(cell.value)
        return shown.replace("\t", " ").replace("\n", " ")

    lines = ["\t".join(table.header)]
    rows = (*table.rows, *table.footer)
    lines += ["\t".join(text(cell) for cell in _cells(row)) for row in rows]
    return "\n".join(lines) + "\n"


def escape_markdown(text: str) -> str:
    r"""Text that Markdown shows as it is.

    >>> print(escape_markdown("a|b*c"))
    a\|b\*c
    """
    return "".join(f"\\{c}" if c in "\\|*_`<>[]" else c for c in text).replace("\n", " ")


def escape_latex(text: str) -> str:
    r"""Text that LaTeX prints as it is.

    >>> print(escape_latex("50 % of a_b"))
    50 \% of a\_b
    """
    special = {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}",
               "±": r"$\pm$", "↑": r"$\uparrow$", "↓": r"$\downarrow$", "–": "--"}  # fmt: skip
    return "".join(special.get(c, f"\\{c}" if c in "&%$#_{}" else c) for c in text)
