"""Results as text for a terminal of any width, as Markdown and as LaTeX."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

from tertium.core.atomic import PathLike, write_text
from tertium.core.errors import UnknownNameError
from tertium.core.result import Cell, Emphasis, Result, Section, Table
from tertium.text.printable import cell_width, replace_control_characters, wrap_line

STYLES = {"best": "1", "good": "32", "bad": "31", "dim": "2"}  # SGR codes of a terminal
MIN_TEXT_WIDTH = 16  # characters of a text column in a narrow terminal
RULE = "\N{BOX DRAWINGS LIGHT HORIZONTAL}"


def render_result(result: Result) -> str:
    """Return the contents of a result as text."""
    return render_text_contents(result.contents()).strip("\n")


def render_text_contents(
    contents: Sequence[Any], *, width: int | None = None, color: bool = False
) -> str:
    """Return texts, lists and tables, also of sections; marked lines and charts are left out."""
    text = ""
    for part in contents:
        if text and (isinstance(part, Section) or (isinstance(part, Table) and part.title)):
            text += "\n"
        if isinstance(part, Section):
            title = [part.title] if part.title else []
            text += render_text_contents([*title, *part.contents], width=width, color=color)
        elif isinstance(part, Table):
            text += render_text_table(part, width=width, color=color)
        elif isinstance(part, str):
            text += replace_control_characters(part) + "\n"
        elif isinstance(part, list):
            text += "".join(f"  - {replace_control_characters(item)}\n" for item in part)
    return text


def render_text_table(table: Table, *, width: int | None = None, color: bool = False) -> str:
    """Return a table as text that ends in a newline; None is an unlimited width."""
    table = table.shortened()
    header = [Cell(replace_control_characters(name), emphasis="best") for name in table.header]
    rows = []
    for row in (*table.cells(), *table.footer):
        rows.append([replace(cell, text=replace_control_characters(cell.text)) for cell in row])
    text_columns = {n for n, column in enumerate(table.visible) if column.is_text}
    lines = []
    if table.title:
        lines.append(_style(replace_control_characters(table.title), "best", color))
    lines += map(replace_control_characters, table.headlines)
    for widths in _split_columns(table, [header, *rows], text_columns, width):
        rule = RULE * (_line_width(widths.values()) - 2)
        lines.append("")
        lines += _grid_lines(header, text_columns, widths, color, align_bottom=True)
        lines.append(f" {rule}")
        for row in rows:
            lines += _grid_lines(row, text_columns, widths, color)
        lines.append("")
    for note in table.notes:
        lines.append(_style(replace_control_characters(note), "dim", color))
    stripped = [line.rstrip() for line in "\n".join(lines).split("\n")]
    return "\n".join(stripped) + "\n"


def _style(text: str, emphasis: Emphasis, color: bool) -> str:
    if not (color and emphasis and text):
        return text
    return f"\x1b[{STYLES[emphasis]}m{text}\x1b[0m"


def _grid_lines(
    row: Sequence[Cell],
    text_columns: Collection[int],
    widths: Mapping[int, int],
    color: bool,
    *,
    align_bottom: bool = False,
) -> list[str]:
    """Return the lines of a row: texts are aligned left and wrapped, numbers aligned right."""
    columns = []
    for n, width in widths.items():
        pieces: list[str] = []
        for line in row[n].text.split("\n"):
            pieces += wrap_line(line, width)
        columns.append(pieces)
    height = max(map(len, columns), default=0)
    grid = []
    for number in range(height):
        texts = []
        for (n, width), pieces in zip(widths.items(), columns, strict=True):
            place = number
            if align_bottom:
                place -= height - len(pieces)
            text = pieces[place].rstrip() if 0 <= place < len(pieces) else ""
            padding = " " * (width - cell_width(text))
            styled = _style(text, row[n].emphasis, color)
            texts.append(styled + padding if n in text_columns else padding + styled)
        line = "   ".join(texts)
        grid.append(f" {line}")
    return grid


def _split_columns(
    table: Table, rows: Sequence[Sequence[Cell]], text_columns: Collection[int], width: int | None
) -> list[dict[int, int]]:
    """Return the columns of each block with their widths; blocks are printed below each other.

    Numbers keep their width and text is wrapped. Groups of columns that still do not fit go to
    another block, which repeats the first column. A single group may be wider than `width`.
    """
    natural = {}
    minimum = {}
    for n in range(len(table.visible)):
        widest = max(_text_width(row[n].text) for row in rows)
        natural[n] = widest
        minimum[n] = min(widest, MIN_TEXT_WIDTH) if n in text_columns else widest
    if width is None:
        return [natural]
    blocks: list[list[int]] = [[]]
    for group in _column_groups(table):
        line = [minimum[n] for n in (*blocks[-1], *group)]
        if len(blocks[-1]) > 1 and _line_width(line) > width:
            blocks.append([0])
        blocks[-1].extend(group)
    fitted = []
    for block in blocks:
        widths = {n: natural[n] for n in block}
        fitted.append(_fit_widths(widths, minimum, width))
    return fitted


def _text_width(text: str) -> int:
    """Return the width of the widest line of a text."""
    return max(map(cell_width, text.split("\n")))


def _column_groups(table: Table) -> list[list[int]]:
    """Return the places of the columns that stay together."""
    groups: list[list[int]] = []
    last = None
    for n, column in enumerate(table.visible):
        if column.group and column.group == last:
            groups[-1].append(n)
        else:
            groups.append([n])
        last = column.group
    return groups


def _fit_widths(widths: dict[int, int], minimum: Mapping[int, int], width: int) -> dict[int, int]:
    """Shrink the widest columns until the line fits or all are at their minimum."""
    fitted = dict(widths)
    while _line_width(fitted.values()) > width:
        shrinkable = [n for n in fitted if fitted[n] > minimum[n]]
        if not shrinkable:
            break
        fitted[max(shrinkable, key=fitted.__getitem__)] -= 1
    return fitted


def _line_width(widths: Collection[int]) -> int:
    return sum(widths) + 3 * len(widths) - 1


def write_markdown(result: Result, path: PathLike) -> None:
    """Write the tables of a result."""
    write_text(path, "\n".join(map(render_markdown, result.tables())))


def render_markdown(table: Table) -> str:
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


def write_latex(result: Result, path: PathLike) -> None:
    """Write the tables of a result."""
    write_text(path, "\n".join(map(render_latex, result.tables())))


def render_latex(table: Table) -> str:
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


def render_tsv(table: Table) -> str:
    """Return the full values of a table, also of columns that are only in files."""
    from tertium.data.tables import tsv_lines

    lines = "".join(tsv_lines(table.values(), missing="nan"))
    return replace_control_characters(lines, keep="\n\t")


TableFormat = Literal["text", "md", "latex", "tsv"]
RENDERERS: Mapping[str, Callable[[Table], str]] = {
    "md": render_markdown,
    "latex": render_latex,
    "tsv": render_tsv,
}


def render_contents(
    contents: Sequence[Any],
    style: TableFormat = "text",
    *,
    width: int | None = None,
    color: bool = False,
) -> str:
    """Return the contents of results in a format; other formats than text have tables only."""
    if style == "text":
        return render_text_contents(contents, width=width, color=color)
    if style not in RENDERERS:
        raise UnknownNameError("table format", style, ["text", *RENDERERS])
    tables: list[str] = []
    for part in contents:
        if isinstance(part, Table):
            tables.append(RENDERERS[style](part))
        elif isinstance(part, Section):
            tables.append(render_contents(part.contents, style))
    return ("\n" if style == "md" else "").join(filter(None, tables))


def render_table(table: Table, style: TableFormat = "text", **layout: Any) -> str:
    """Return a table in a format; it ends in a newline."""
    return render_contents([table], style, **layout)
