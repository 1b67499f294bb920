"""Tables as data, rendered as text, Markdown, LaTeX, TSV or HTML.

A cell holds the full number and its rounded text. TSV writes the full number, the other formats
the rounded text.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from tertium.errors import UsageError
from tertium.output.markup import Markup, element, isolate_names, join, scrollable
from tertium.text.cell_width import cell_width, wrap_line

TableFormat = Literal["text", "md", "latex", "tsv"]
Emphasis = Literal["", "best", "good", "bad", "dim"]
Value = float | int | str
WIN_PROBABILITY_DECIMALS = 4
STYLES = {"best": "1", "good": "32", "bad": "31", "dim": "2"}  # SGR codes of a terminal
MIN_TEXT_WIDTH = 16  # characters of a text column in a narrow terminal


@dataclass(frozen=True)
class Cell:
    """One cell of a table.

    `text` is the rounded text to print and `value` the full value for TSV. `emphasis` sets the
    style: "best" is bold, "good" green, "bad" red, "dim" gray. TSV writes each entry of
    `extra_columns` as a column of its own.
    """

    text: str
    value: Value | None = None
    emphasis: Emphasis = ""
    extra_columns: Mapping[str, Value] = field(default_factory=dict)


@dataclass(frozen=True)
class Table:
    """A title, a header, rows of cells, cautions above and notes below.

    `text_columns` are aligned left, all others right. Rows of the `footer`, such as counts, stay
    below the others when a page sorts them. In a narrow terminal, columns after the first
    `leading_columns` are split into blocks of whole groups of `columns_per_group`.
    """

    header: Sequence[str]
    rows: Sequence[Sequence[Cell | str]]
    title: str = ""
    notes: Sequence[str] = ()
    text_columns: frozenset[int] = field(default_factory=lambda: frozenset({0}))
    footer: Sequence[Sequence[Cell | str]] = ()
    columns_per_group: int = 1
    leading_columns: int = 1
    cautions: Sequence[str] = ()


def number_cell(value: float, decimals: int, emphasis: Emphasis = "") -> Cell:
    """Return a cell with a rounded number; NaN is a dash, and a rounded zero has no sign.

    >>> number_cell(2 / 3, 2)
    Cell(text='0.67', value=0.6666666666666666, emphasis='', extra_columns={})
    >>> number_cell(-0.001, 2).text, number_cell(-3, 0).text
    ('0.00', '-3')
    """
    return Cell("–" if value != value else f"{value:z.{decimals}f}", value, emphasis)


def resampling_warnings(tests: int, resamples: int, alpha: float) -> list[str]:
    """Warn if there are too few resamples for any of `tests` tests to be significant.

    >>> resampling_warnings(24, 1000, 0.05), resampling_warnings(60, 1000, 0.05)
    ([], ['warning: 60 tests with 1000 resamples: p cannot fall below 0.05; use 1200 or more'])
    >>> resampling_warnings(1, 9, 0.05)
    ['warning: 9 resamples: p cannot fall below 0.05; use 20 or more']
    """
    if tests / (resamples + 1) < alpha:
        return []
    needed = int(tests / alpha)
    setup = f"{tests} tests with {resamples} resamples" if tests > 1 else f"{resamples} resamples"
    return [f"warning: {setup}: p cannot fall below {alpha:g}; use {needed} or more"]


def format_warning_counts(counts: Mapping[str, Mapping[str, int]]) -> list[str]:
    """Return one line per kind of warning with its count for each system.

    >>> format_warning_counts({"empty hypothesis": {"a": 2, "b": 1}})
    ['warning: empty hypothesis: a 2, b 1']
    """
    return [
        f"warning: {kind}: " + ", ".join(f"{system} {n}" for system, n in by_system.items())
        for kind, by_system in counts.items()
    ]


def render_table(
    table: Table, style: TableFormat = "text", *, width: int | None = None, color: bool = False
) -> str:
    """Return the table as text that ends in a newline."""
    if style == "text":
        return _render_text(table, width, color)
    renderers = {"md": _render_markdown, "latex": _render_latex, "tsv": _render_tsv}
    if style not in renderers:
        raise UsageError(f"unknown table format {style!r}: expected text, md, latex or tsv")
    return replace_control_characters(renderers[style](table), keep="\n\t")


# visible symbols for control characters
CONTROL_REPLACEMENTS = {code: 0x2400 + code for code in range(32)}
CONTROL_REPLACEMENTS |= {127: 0x2421} | dict.fromkeys(range(0x80, 0xA0), 0xFFFD)
# direction overrides would reorder the rest of the line, numbers included
CONTROL_REPLACEMENTS |= dict.fromkeys((*range(0x202A, 0x202F), *range(0x2066, 0x206A)), 0xFFFD)


def replace_control_characters(text: str, keep: str = "\n") -> str:
    """Make untrusted text safe to print on a terminal; characters in `keep` stay.

    >>> replace_control_characters("\\x1b[31mred"), replace_control_characters("evil\\u202etxt.exe")
    ('␛[31mred', 'evil�txt.exe')
    """
    return text.translate({k: v for k, v in CONTROL_REPLACEMENTS.items() if chr(k) not in keep})


def _cells(row: Sequence[Cell | str]) -> list[Cell]:
    return [cell if isinstance(cell, Cell) else Cell(cell, cell) for cell in row]


def _render_text(table: Table, width: int | None, color: bool) -> str:
    header = [Cell(replace_control_characters(name), emphasis="best") for name in table.header]
    rows = [
        [replace(cell, text=replace_control_characters(cell.text)) for cell in _cells(row)]
        for row in (*table.rows, *table.footer)
    ]
    title = [_style(replace_control_characters(table.title), "best", color)] if table.title else []
    lines = [*title, *map(replace_control_characters, table.cautions)]
    for widths in _split_columns(table, [header, *rows], width):
        lines.append("")
        lines += _grid_lines(header, table.text_columns, widths, color, align_bottom=True)
        lines.append(" " + "\N{BOX DRAWINGS LIGHT HORIZONTAL}" * (_line_width(widths.values()) - 2))
        for row in rows:
            lines += _grid_lines(row, table.text_columns, widths, color)
        lines.append("")
    lines += [_style(replace_control_characters(note), "dim", color) for note in table.notes]
    return "\n".join(line.rstrip() for text in lines for line in text.split("\n")) + "\n"


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
        lines = row[n].text.split("\n")
        columns.append([part for line in lines for part in wrap_line(line, width)])
    height = max(map(len, columns), default=0)
    grid = []
    for number in range(height):
        texts = []
        for (n, width), column in zip(widths.items(), columns, strict=True):
            place = number - (height - len(column) if align_bottom else 0)
            text = column[place].rstrip() if 0 <= place < len(column) else ""
            padding = " " * (width - cell_width(text))
            styled = _style(text, row[n].emphasis, color)
            texts.append(styled + padding if n in text_columns else padding + styled)
        grid.append(f" {'   '.join(texts)}")
    return grid


def _split_columns(
    table: Table, rows: Sequence[Sequence[Cell]], width: int | None
) -> list[dict[int, int]]:
    """Return the columns of each block with their widths; blocks are printed below each other.

    Numbers keep their width and text is wrapped. Columns that still do not fit go to another
    block, which repeats the first column. A single group may be wider than `width`.
    """
    natural = {
        n: max(cell_width(line) for row in rows for line in row[n].text.split("\n"))
        for n in range(len(table.header))
    }
    if width is None:
        return [natural]
    minimum = {
        n: min(w, MIN_TEXT_WIDTH) if n in table.text_columns else w for n, w in natural.items()
    }
    blocks = [[*range(min(table.leading_columns, len(natural)))]]
    for start in range(table.leading_columns, len(natural), table.columns_per_group):
        group = range(start, min(start + table.columns_per_group, len(natural)))
        if len(blocks[-1]) > 1 and _line_width([minimum[m] for m in (*blocks[-1], *group)]) > width:
            blocks.append([0])
        blocks[-1].extend(group)
    return [_fit_widths({n: natural[n] for n in block}, minimum, width) for block in blocks]


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


def _render_markdown(table: Table) -> str:
    def row(cells: Sequence[str]) -> str:
        return "| " + " | ".join(cells) + " |"

    lines = [f"**{escape_markdown(table.title)}**", ""] if table.title else []
    lines += [part for caution in table.cautions for part in (escape_markdown(caution), "")]
    lines.append(row([escape_markdown(name) for name in table.header]))
    alignments = ["---" if n in table.text_columns else "---:" for n in range(len(table.header))]
    lines.append(row(alignments))
    for cells in map(_cells, (*table.rows, *table.footer)):
        texts = [(escape_markdown(cell.text), cell.emphasis == "best") for cell in cells]
        lines.append(row([f"**{text}**" if is_best else text for text, is_best in texts]))
    notes = [f"{escape_markdown(note)}  " for note in table.notes]
    return "\n".join([*lines, *([""] if notes else []), *notes]) + "\n"


def _render_latex(table: Table) -> str:
    """Return a `table` environment for the booktabs package; notes are comments."""
    columns = "".join("l" if n in table.text_columns else "r" for n in range(len(table.header)))
    title = table.title or "Results"
    label = re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-") or "results"
    lines = [
        *(f"% {_one_line(caution)}" for caution in table.cautions),
        "% needs \\usepackage{booktabs}",
        r"\begin{table}",
        r"\centering",
        rf"\caption{{{escape_latex(title)}}}",
        rf"\label{{tab:{label}}}",
        rf"\begin{{tabular}}{{{columns}}}",
        r"\toprule",
        " & ".join(escape_latex(name) for name in table.header) + r" \\",
        r"\midrule",
        *map(_latex_row, table.rows),
        *([r"\midrule", *map(_latex_row, table.footer)] if table.footer else []),
        r"\bottomrule",
        r"\end{tabular}",
        r"\end{table}",
        *(f"% {_one_line(note)}" for note in table.notes),
    ]
    return "\n".join(lines) + "\n"


def _latex_row(row: Sequence[Cell | str]) -> str:
    return " & ".join(map(_latex_cell, _cells(row))) + r" \\"


def _latex_cell(cell: Cell) -> str:
    """Return a cell with significance stars as a superscript; bold replaces the stars."""
    stars, text = re.match(r"(\*{1,2} )?(.*)", cell.text, re.DOTALL).groups()  # type: ignore[union-attr]
    if cell.emphasis == "best":
        return rf"\textbf{{{escape_latex(text)}}}"
    return escape_latex(text) + (f"$^{{{stars.strip()}}}$" if stars else "")


def table_values(table: Table) -> tuple[list[str], list[list[Value]]]:
    """Return column names and rows of full values, with extra columns and without the footer."""
    rows = [_cells(row) for row in table.rows]
    columns: list[tuple[str, list[Value]]] = []
    for n, heading in enumerate(table.header):
        first = n - (n - table.leading_columns) % table.columns_per_group
        name = heading if table.header.count(heading) == 1 else f"{table.header[first]} {heading}"
        cells = [row[n] for row in rows]
        columns.append((name, [c.text if c.value is None else c.value for c in cells]))
        for key in dict.fromkeys(key for cell in cells for key in cell.extra_columns):
            columns.append((key, [cell.extra_columns.get(key, "") for cell in cells]))
    values = [[column[n] for _, column in columns] for n in range(len(rows))]
    return [name for name, _ in columns], values


def _render_tsv(table: Table) -> str:
    names, rows = table_values(table)
    lines: list[Sequence[Value]] = [names, *rows]
    return "".join("\t".join(_one_line(str(value)) for value in line) + "\n" for line in lines)


def _one_line(text: str) -> str:
    return re.sub(r"[\t\r\n]", " ", text)


def escape_markdown(text: str) -> str:
    r"""Escape special characters of Markdown; a line break becomes a space.

    >>> print(escape_markdown("a|b*c"))
    a\|b\*c
    """
    return "".join(f"\\{c}" if c in "\\|*_`<>[]" else c for c in text).replace("\n", " ")


def escape_latex(text: str) -> str:
    r"""Escape special characters of LaTeX and replace symbols that need math mode.

    >>> print(escape_latex("50 % of a_b"))
    50 \% of a\_b
    """
    special = {
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
    }
    return "".join(special.get(c, f"\\{c}" if c in "&%$#_{}" else c) for c in text)


def render_html_table(table: Table, *, sortable: bool = False, style: str = "") -> Markup:
    """Return a table for a page or a notebook; the first column is the row header.

    A sortable table has a button in each header. `script/tables.js` sorts its rows by the full
    values and leaves the footer in place.
    """
    head = [
        element(
            "th",
            sort_button(name) if sortable and name else element("bdi", name),
            scope="col",
            class_=None if n in table.text_columns else "number",
            aria_sort="none" if sortable and name else None,
        )
        for n, name in enumerate(table.header)
    ]
    body, foot = (
        [_html_row(row, table.text_columns) for row in rows] for rows in (table.rows, table.footer)
    )
    grid = element(
        "table",
        element("caption", table.title) if table.title else "",
        element("thead", element("tr", *head)),
        element("tbody", *body),
        element("tfoot", *foot) if foot else "",
        class_=" ".join(filter(None, ["sortable" if sortable else "", style])) or None,
    )
    cells = [c for row in table.rows for n, c in enumerate(_cells(row)) if n in table.text_columns]
    names = [name for cell in cells for name in (cell.text, cell.value) if isinstance(name, str)]
    notes = [element("p", *isolate_names(note, names), class_="note") for note in table.notes]
    cautions = [element("p", *isolate_names(text, names), class_="note") for text in table.cautions]
    return join([*cautions, scrollable(grid, table.title or "table"), *notes])


def sort_button(name: str) -> Markup:
    """Return the content of a header cell of a sortable table."""
    return element("button", element("bdi", name), type="button")


def _html_row(cells: Sequence[Cell | str], text_columns: frozenset[int]) -> Markup:
    parts = []
    for n, cell in enumerate(_cells(cells)):
        style = " ".join(filter(None, ["" if n in text_columns else "number", cell.emphasis]))
        value = cell.value if isinstance(cell.value, int | float) else None
        parts.append(
            element(
                "td" if n else "th",
                element("bdi", cell.text) if n in text_columns else cell.text,
                scope=None if n else "row",
                class_=style or None,
                data_value=None if value is None else repr(value),
            )
        )
    return element("tr", *parts)
