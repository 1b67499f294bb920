"""Tables as LaTeX, for the booktabs package."""

from __future__ import annotations

import re
from collections.abc import Sequence

from tertium.core.atomic import PathLike, write_text
from tertium.core.result import Cell, Result, Table
from tertium.text.printable import replace_control_characters

SPECIAL = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "±": r"$\pm$",
    "↑": r"$\uparrow$",
    "↓": r"$\downarrow$",
    "≤": r"$\leq$",
    "–": "--",
    "−": "$-$",
    "μ": r"$\mu$",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    "\n": " ",
    "\r": " ",
} | {character: f"\\{character}" for character in "&%$#_{}"}
STARS = re.compile(r"(\*{1,2} )?(.*)", re.DOTALL)  # of significance, before a value


def write(result: Result, path: PathLike) -> None:
    """Write the tables of a result."""
    write_text(path, "\n".join(map(render_table, result.tables())))


def render_table(table: Table) -> str:
    """Return a `table` environment; notes are comments."""
    alignment = "".join("l" if column.is_text else "r" for column in table.visible)
    title = table.title or "Results"
    label = re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-") or "results"
    lines = [
        *map(_comment, table.headlines),
        "% needs \\usepackage{booktabs}",
        r"\begin{table}",
        r"\centering",
        rf"\caption{{{escape_latex(title)}}}",
        rf"\label{{tab:{label}}}",
        rf"\begin{{tabular}}{{{alignment}}}",
        r"\toprule",
        " & ".join(map(escape_latex, table.header)) + r" \\",
        r"\midrule",
        *map(_row, table.cells()),
    ]
    if table.footer:
        lines += [r"\midrule", *map(_row, table.footer)]
    lines += [r"\bottomrule", r"\end{tabular}", r"\end{table}", *map(_comment, table.notes)]
    return replace_control_characters("\n".join(lines) + "\n", keep="\n\t")


def _comment(text: str) -> str:
    return "% " + re.sub(r"[\t\r\n]", " ", text)


def _row(row: Sequence[Cell]) -> str:
    return " & ".join(map(_cell, row)) + r" \\"


def _cell(cell: Cell) -> str:
    """Return a cell with significance stars as a superscript; bold replaces the stars."""
    stars, text = STARS.fullmatch(cell.text).groups()  # type: ignore[union-attr]
    if cell.emphasis == "best":
        return rf"\textbf{{{escape_latex(text)}}}"
    return escape_latex(text) + (f"$^{{{stars.strip()}}}$" if stars else "")


def escape_latex(text: str) -> str:
    r"""Escape special characters of LaTeX and replace symbols that need math mode.

    >>> print(escape_latex("50 % of a_b"))
    50 \% of a\_b
    """
    return "".join(SPECIAL.get(character, character) for character in text)
