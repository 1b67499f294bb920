"""A table is data first; text, Markdown, LaTeX, TSV and HTML are ways to print it.

Cells keep the full number beside the rounded text: a table rounds, TSV and JSON do not.
"""

from __future__ import annotations

import io
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from tertium.errors import UsageError
from tertium.reporting.markup import Markup, element, join, scrollable, set_apart

Format = Literal["text", "md", "latex", "tsv"]
Mark = Literal["", "best", "good", "bad", "dim"]
CHANCE_DECIMALS = 4  # of chances to win, unless told otherwise
NARROWEST = 16  # what a column of texts keeps when a terminal is narrow


@dataclass(frozen=True)
class Cell:
    """What a table shows in one place.

    `text` is for people, `value` for machines (TSV); `mark` says how it stands out: "best" is bold,
    "good" green, "bad" red, "dim" grey. `more` holds what TSV writes in columns of their own.
    """

    text: str
    value: float | int | str | None = None
    mark: Mark = ""
    more: Mapping[str, float | int | str] = field(default_factory=dict)


@dataclass(frozen=True)
class Table:
    """A title, named columns, rows of cells, and notes below.

    The first column holds names and is aligned left, the others right unless `left` says otherwise.
    Rows of the `footer`, such as counts, stay below the others however those are sorted. Behind
    the first, or so many as `lead` says, so many columns as `together` says stay side by side in a
    narrow terminal.
    """

    header: Sequence[str]
    rows: Sequence[Sequence[Cell | str]]
    title: str = ""
    notes: Sequence[str] = ()
    left: frozenset[int] = field(default_factory=lambda: frozenset({0}))
    footer: Sequence[Sequence[Cell | str]] = ()
    together: int = 1
    lead: int = 1


def number(value: float, decimals: int, mark: Mark = "") -> Cell:
    """A cell that shows a rounded number and keeps the full one; what rounds to zero has no sign.

    >>> number(2 / 3, 2)
    Cell(text='0.67', value=0.6666666666666666, mark='', more={})
    >>> number(-0.001, 2).text, number(-3, 0).text
    ('0.00', '-3')
    """
    return Cell("–" if value != value else f"{value:z.{decimals}f}", value, mark)


def too_few_draws(tests: int, draws: int, alpha: float) -> list[str]:
    """A warning where resampling is too coarse for any of so many tests to be significant.

    >>> too_few_draws(24, 1000, 0.05), too_few_draws(60, 1000, 0.05)
    ([], ['warning: 60 tests of 1000 draws: no p can fall below 0.05; take 1200 or more'])
    >>> too_few_draws(1, 9, 0.05)
    ['warning: 9 draws: no p can fall below 0.05; take 20 or more']
    """
    if tests / (draws + 1) < alpha:
        return []
    needed = int(tests / alpha)
    said = f"{tests} tests of {draws} draws" if tests > 1 else f"{draws} draws"
    return [f"warning: {said}: no p can fall below {alpha:g}; take {needed} or more"]


def counted_lines(counts: Mapping[str, Mapping[str, int]]) -> list[str]:
    """One line for each kind of warning, with its count for each system.

    >>> counted_lines({"empty hypothesis": {"a": 2, "b": 1}})
    ['warning: empty hypothesis: a 2, b 1']
    """
    return [
        f"warning: {kind}: " + ", ".join(f"{system} {n}" for system, n in by_system.items())
        for kind, by_system in counts.items()
    ]


def render(
    table: Table, style: Format = "text", *, width: int | None = None, color: bool = False
) -> str:
    """The table as text that ends in a newline."""
    if style == "text":
        return _render_text(table, width, color)
    plain = {"md": _render_markdown, "latex": _render_latex, "tsv": _render_tsv}
    if style not in plain:
        raise UsageError(f"unknown table format {style!r}: text, md, latex or tsv")
    return plain[style](table)


# pictures of what a terminal would obey; a line may break
CONTROLS = {code: 0x2400 + code for code in range(32) if code != ord("\n")} | {127: 0x2421}
CONTROLS |= dict.fromkeys(range(0x80, 0xA0), 0xFFFD)
# what turns the direction of all that follows in the line, numbers among it
CONTROLS |= dict.fromkeys((*range(0x202A, 0x202F), *range(0x2066, 0x206A)), 0xFFFD)


def show_controls(text: str) -> str:
    """A text from anywhere as a terminal may print it.

    >>> show_controls("\\x1b[31mred"), show_controls("evil\\u202etxt.exe")
    ('␛[31mred', 'evil�txt.exe')
    """
    return text.translate(CONTROLS)


def _cells(row: Sequence[Cell | str]) -> list[Cell]:
    return [cell if isinstance(cell, Cell) else Cell(cell, cell) for cell in row]


def _render_text(table: Table, width: int | None, color: bool) -> str:
    from rich import box
    from rich.console import Console
    from rich.table import Table as RichTable
    from rich.text import Text

    styles = {"best": "bold", "good": "green", "bad": "red", "dim": "dim", "": ""}
    out = io.StringIO()
    console = Console(
        file=out,
        width=10_000,
        force_terminal=color,
        color_system="standard" if color else None,
        highlight=False,
    )
    if table.title:
        console.print(Text(show_controls(table.title), style="bold"), soft_wrap=True)
    table = replace(table, header=[show_controls(name) for name in table.header])
    rows = [
        [replace(cell, text=show_controls(cell.text)) for cell in _cells(row)]
        for row in (*table.rows, *table.footer)
    ]
    for widths in _layout(table, rows, width):
        grid = RichTable(box=box.SIMPLE_HEAD, pad_edge=False)
        for n, space in widths.items():
            grid.add_column(
                Text(table.header[n]),
                justify="left" if n in table.left else "right",
                width=space,
                overflow="fold",
            )
        for row in rows:
            grid.add_row(*(Text(row[n].text, style=styles[row[n].mark]) for n in widths))
        console.print(grid)
    for note in table.notes:
        console.print(Text(show_controls(note), style="dim"), soft_wrap=True)
    return "\n".join(line.rstrip() for line in out.getvalue().splitlines()) + "\n"


def _layout(
    table: Table, rows: Sequence[Sequence[Cell]], width: int | None
) -> list[dict[int, int]]:
    """The columns with their widths, in as many parts below each other as the width asks for.

    Numbers keep their width and texts are wrapped. What still does not fit goes to a part of its
    own, beside the first column again; what belongs together may be wider than was asked for.
    """
    from rich.cells import cell_len

    shown = [list(table.header), *([cell.text for cell in row] for row in rows)]
    natural = {
        n: max(cell_len(line) for texts in shown for line in (texts[n].splitlines() or [""]))
        for n in range(len(table.header))
    }
    if width is None:
        return [natural]
    least = {n: min(w, NARROWEST) if n in table.left else w for n, w in natural.items()}
    parts = [[*range(min(table.lead, len(natural)))]]
    for start in range(table.lead, len(natural), table.together):
        unit = range(start, min(start + table.together, len(natural)))
        if len(parts[-1]) > 1 and _total([least[m] for m in (*parts[-1], *unit)]) > width:
            parts.append([0])
        parts[-1].extend(unit)
    return [_fit_widths({n: natural[n] for n in part}, least, width) for part in parts]


def _fit_widths(widths: dict[int, int], least: Mapping[int, int], width: int) -> dict[int, int]:
    """The widths with the widest texts made narrower until the whole fits, or nothing can give."""
    fitted = dict(widths)
    while _total(fitted.values()) > width:
        giving = [n for n in fitted if fitted[n] > least[n]]
        if not giving:
            break
        fitted[max(giving, key=fitted.__getitem__)] -= 1
    return fitted


def _total(widths: Collection[int]) -> int:
    """How wide a line of columns is: two blanks and a rule between them, one at either end."""
    return sum(widths) + 3 * len(widths) - 1


def _render_markdown(table: Table) -> str:
    def row(cells: Sequence[str]) -> str:
        return "| " + " | ".join(cells) + " |"

    lines = [f"**{escape_markdown(table.title)}**", ""] if table.title else []
    lines.append(row([escape_markdown(name) for name in table.header]))
    lines.append(row(["---" if n in table.left else "---:" for n in range(len(table.header))]))
    for cells in map(_cells, (*table.rows, *table.footer)):
        texts = [escape_markdown(cell.text) for cell in cells]
        lines.append(
            row([f"**{t}**" if c.mark == "best" else t for t, c in zip(texts, cells, strict=True)])
        )
    notes = [f"{escape_markdown(note)}  " for note in table.notes]
    return "\n".join([*lines, *([""] if notes else []), *notes]) + "\n"


def _render_latex(table: Table) -> str:
    columns = "".join("l" if n in table.left else "r" for n in range(len(table.header)))
    lines = [f"% {_one_line(table.title)}"] if table.title else []
    lines += [rf"\begin{{tabular}}{{{columns}}}", r"\hline"]
    lines.append(" & ".join(escape_latex(name) for name in table.header) + r" \\")
    lines.append(r"\hline")
    lines += map(_latex_row, table.rows)
    lines += [r"\hline", *map(_latex_row, table.footer)] if table.footer else []
    lines += [r"\hline", r"\end{tabular}", *(f"% {_one_line(note)}" for note in table.notes)]
    return "\n".join(lines) + "\n"


def _latex_row(row: Sequence[Cell | str]) -> str:
    shown = [(escape_latex(cell.text), cell.mark) for cell in _cells(row)]
    marked = [rf"\textbf{{{text}}}" if mark == "best" else text for text, mark in shown]
    return " & ".join(marked) + r" \\"


def _render_tsv(table: Table) -> str:
    rows = [_cells(row) for row in table.rows]  # a footer is not of their kind
    columns: list[list[str]] = []
    for n, shown in enumerate(table.header):
        first = n - (n - table.lead) % table.together  # of the columns that belong together
        name = shown if table.header.count(shown) == 1 else f"{table.header[first]} {shown}"
        cells = [row[n] for row in rows]
        columns.append([name, *(c.text if c.value is None else str(c.value) for c in cells)])
        for key in dict.fromkeys(key for cell in cells for key in cell.more):
            columns.append([key, *(str(cell.more.get(key, "")) for cell in cells)])
    lines = ["\t".join(map(_one_line, line)) for line in zip(*columns, strict=True)]
    return "\n".join(lines) + "\n"


def _one_line(text: str) -> str:
    return re.sub(r"[\t\r\n]", " ", text)


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
    special = {
        "\\": r"\textbackslash{}",
        "~": r"\textasciitilde{}",
        "^": r"\textasciicircum{}",
        "±": r"$\pm$",
        "↑": r"$\uparrow$",
        "↓": r"$\downarrow$",
        "–": "--",
        "μ": r"$\mu$",
        "<": r"\textless{}",
        ">": r"\textgreater{}",
        "|": r"\textbar{}",
        "\n": " ",
        "\r": " ",
    }
    return "".join(special.get(c, f"\\{c}" if c in "&%$#_{}" else c) for c in text)


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
    named = [cell for row in table.rows for n, cell in enumerate(_cells(row)) if n in table.left]
    names = [name for cell in named for name in (cell.text, cell.value) if isinstance(name, str)]
    said = [element("p", *set_apart(note, names), class_="note") for note in table.notes]
    return join([scrollable(grid, table.title or "table"), *said])


def _sorter(name: str) -> Markup:
    return element("button", element("bdi", name), type="button")


def _row(cells: Sequence[Cell | str], left: frozenset[int]) -> Markup:
    parts = []
    for n, cell in enumerate(_cells(cells)):
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
