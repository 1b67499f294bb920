"""Tables and markup in every format, with hostile text escaped and long names shortened."""

from __future__ import annotations

import re
from collections.abc import Sequence
from operator import itemgetter
from xml.etree import ElementTree

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from papers.number_cells import cell_table, number_cell
from rich.cells import cell_len

from tertium.core.errors import UsageError
from tertium.core.result import Cell, Column, Table
from tertium.output.charts.draw import shorten_names
from tertium.output.html import render_table as render_html_table
from tertium.output.markup_builder import Markup, element, escape, join
from tertium.output.text import render_table

TABLE = cell_table(
    ["system", "BLEU ↑"],
    [["a_b|c*", number_cell(1 / 3, 2, "best")], ["[bold]x[/bold]", number_cell(float("nan"), 2)]],
    title="50 % & more",
    notes=["a note_"],
)


def _grouped_table(header: Sequence[str], row: Sequence[str], groups: str) -> Table:
    columns = [
        Column(name, itemgetter(n), 0 if n else None, group=group)
        for n, (name, group) in enumerate(zip(header, groups, strict=True))
    ]
    return Table(columns, [tuple(row)])


def test_text_shows_markup_as_it_is():
    text = render_table(TABLE, "text")
    assert "[bold]x[/bold]" in text
    assert "0.33" in text
    assert "a note_" in text
    assert "\x1b" not in text
    assert "\x1b[1m" in render_table(TABLE, "text", color=True)
    with pytest.raises(UsageError, match="unknown table format"):
        render_table(TABLE, "html")


def test_control_characters_are_replaced_on_a_terminal():
    escape = "\x1b]0;title\x07\x1b[31m\x9b1m\r"
    rows = [["x" + escape, "1"]]
    table = cell_table(["a" + escape, "b"], rows, title=escape, notes=[escape])
    for color in (False, True):
        text = render_table(table, "text", color=color)
        assert text.count("␛]0;title␇␛[31m\ufffd1m␍") == 4
        assert not re.search("[\x00-\x09\x0b-\x1a\x1c-\x1f\x7f-\x9f]", text)
        assert set(re.findall("\x1b.*?m", text)) <= {"\x1b[1m", "\x1b[2m", "\x1b[0m", "\x1b[1;2m"}


def test_markdown_and_tsv():
    text = render_table(TABLE, "md")
    assert r"| a\_b\|c\* | **0.33** |" in text
    assert "| --- | ---: |" in text
    assert render_table(TABLE, "tsv").splitlines()[1] == f"a_b|c*\t{1 / 3}"
    assert render_table(cell_table(["a"], [[Cell("x\ty", "x\ty")]]), "tsv") == "a\nx y\n"


def test_a_footer_is_below_the_rows():
    counts = [[Cell("judged"), Cell("1,200", 1200)]]
    table = cell_table(["metric", "r"], [["a", number_cell(0.5, 2)]], footer=counts)
    for style in ("text", "md", "latex"):
        lines = render_table(table, style).splitlines()
        matching_lines = [line for line in lines if "judged" in line or "0.5" in line]
        assert len(matching_lines) == 2
        assert "judged" in matching_lines[1], style
        assert "1,200" in matching_lines[1]
    assert "judged" not in render_table(table, "tsv"), "a row of data is a metric"
    assert render_table(table, "latex").count(r"\midrule") == 2
    html = render_html_table(table, sortable=True)
    assert re.search("<tbody>.*0.50.*</tbody><tfoot>.*judged.*1,200.*</tfoot></table>", html)


def test_a_narrow_terminal_shows_every_name_and_number():
    header = ["system", *(f"metric{n} ↑" for n in range(6))]
    rows = [[f"system {n}", *(f"{n}{m}.25 (μ = 1.00 ± 2.00)" for m in range(6))] for n in range(3)]
    title = "a title that is far longer than " + "the table " * 8
    table = cell_table(header, rows, title=title)
    for width in (40, 60, 80):
        text = render_table(table, "text", width=width)
        assert table.title.strip() in text
        assert all(cell in text for row in rows for cell in row)
        assert all(name in text for name in header)
        assert max(map(len, text.splitlines()[1:])) <= width
    wide = cell_table(["system", "score"], [["a-very-long-system-name" * 3, "1.0"]])
    assert max(map(len, render_table(wide, "text", width=40).splitlines())) <= 40


def test_columns_are_wrapped_without_splitting_groups():
    row = ["a system", "12.34", "0.0010 *+", "1", "56.78", "0.0020 *-", "2"]
    table = _grouped_table(["system", "A", "p", "rank", "B", "p", "rank"], row, " AAABBB")
    lines = render_table(table, "text", width=38).splitlines()
    assert [line.split() for line in lines if "." in line] == [
        "a system 12.34 0.0010 *+ 1".split(),
        "a system 56.78 0.0020 *- 2".split(),
    ]
    row = ["name", "many words that may stand below each other", "1234567.25"]
    text = render_table(cell_table(["a", "b", "c"], [row], text_columns=(0, 1)), "text", width=40)
    assert "1234567.25" in text
    assert max(map(len, text.splitlines())) <= 40
    assert " ".join(text.split()).count("stand") == 1


def test_full_values_are_for_files_and_spreadsheets():
    columns = [Column("n\t1", "n"), Column("low\t", "low", 0, show=False), Column("m")]
    table = Table(columns, [{"n": "a", "low": 1.5, "m": "x"}, {"n": "b", "low": None, "m": "y"}])
    assert render_table(table, "tsv") == "n 1\tlow \tm\na\t1.5\tx\nb\t\ty\n"
    assert "1.5" not in render_table(table)
    rows = [["a", Cell("0.33", 1 / 3)], ["b", number_cell(0.5, 1)]]
    footer = [[Cell("all"), Cell("2")]]
    values = cell_table(["system", "r"], rows, footer=footer).values()
    assert values == {"system": ["a", "b"], "r": [1 / 3, 0.5]}


def test_latex_escapes_line_breaks_and_special_characters():
    notes = ["three\n\\input{x}"]
    rows = [["μ = 1\n2"], ["a_b|c*"]]
    table = cell_table(["a<b>c"], rows, title="one\ntwo", notes=notes)
    lines = render_table(table, "latex").splitlines()
    assert r"\caption{one two}" in lines
    assert r"\label{tab:one-two}" in lines
    assert r"a\textless{}b\textgreater{}c \\" in lines
    assert r"$\mu$ = 1 2 \\" in lines
    assert r"a\_b\textbar{}c* \\" in lines
    assert lines[-1] == r"% three \input{x}"
    assert r"BLEU $\uparrow$" in render_table(TABLE, "latex")


def test_groups_of_columns_in_files():
    header = ["system", "A", "p", "rank", "B", "p", "rank"]
    table = _grouped_table(header, "sabcdef", " AAABBB")
    header = render_table(table, "tsv").splitlines()[0].split("\t")
    assert header == ["system", "A", "A p", "A rank", "B", "B p", "B rank"]
    header = ["kind", "pairs", "A", "ties", "B", "ties"]
    table = _grouped_table(header, "kpatbu", "  AABB")
    assert render_table(table, "tsv").splitlines()[0] == "kind\tpairs\tA\tA ties\tB\tB ties"
    heads = [line.split() for line in render_table(table, width=26).splitlines() if "kind" in line]
    assert heads == [["kind", "pairs", "A", "ties"], ["kind", "B", "ties"]]


def test_latex_tables_use_booktabs_and_are_complete():
    table = cell_table(
        ["metric", "de_en %"],
        [["a&b", Cell("** 0.912", 0.912, "best")], ["c#", Cell("* 0.9", 0.9)], ["d", "≤ 0.1"]],
        title="Pearson r, 50 % & more",
        footer=[[Cell("human scores"), Cell("1,200")]],
        notes=["** best"],
    )
    assert (
        render_table(table, "latex")
        == r"""% needs \usepackage{booktabs}
\begin{table}
\centering
\caption{Pearson r, 50 \% \& more}
\label{tab:pearson-r-50-more}
\begin{tabular}{lr}
\toprule
metric & de\_en \% \\
\midrule
a\&b & \textbf{0.912} \\
c\# & 0.9$^{*}$ \\
d & $\leq$ 0.1 \\
\midrule
human scores & 1,200 \\
\bottomrule
\end{tabular}
\end{table}
% ** best
"""
    )
    untitled = render_table(cell_table(["a"], [["b"]]), "latex")
    assert r"\caption{Results}" in untitled
    assert r"\label{tab:results}" in untitled


@given(st.text(max_size=30), st.integers(8, 20))
def test_any_name_fits(name, max_length):
    (actual,) = shorten_names([name], max_length)
    assert cell_len(actual) <= max_length
    assert actual == name or "…" in actual


HOSTILE = ["<script>alert(1)</script>", '"><img src=x onerror=alert(1)>', "</td></table>", "a & b"]


@pytest.mark.parametrize("text", HOSTILE)
def test_text_is_escaped_everywhere(text):
    actual = element("p", text, join([text]), title=text, data_value=text)
    inside = actual.removeprefix("<p").removesuffix("</p>")
    assert "<" not in inside
    assert inside.count('"') == 4  # the quotes around two attributes and no others


def test_markup_and_attributes():
    assert element("p", element("b", "x"), Markup("<i>y</i>")) == "<p><b>x</b><i>y</i></p>"
    assert element("td", hidden=True, title=None, inert=False, colspan=2) == (
        '<td hidden colspan="2"></td>'
    )


@given(st.text())
def test_an_escaped_text_opens_no_element_and_can_be_written(text):
    actual = escape(text)
    assert not set(actual) & set("<>\"'")
    actual.encode("utf-8")


@given(st.text())
@example("\ufffe\uffff\x00")
def test_an_element_is_well_formed_xml(text):
    ElementTree.fromstring(element("text", text, data_name=text))  # SVG files are XML


def test_a_table_has_a_caption_headers_and_full_values():
    table = cell_table(
        ["system", "BLEU"],
        [["a<b", Cell("1.23", 1.234567, "best")]],
        title="scores",
        notes=["x & y"],
    )
    actual = render_html_table(table, sortable=True)
    assert "<caption>scores</caption>" in actual
    assert '<th scope="row"><bdi>a&lt;b</bdi></th>' in actual
    assert '<td class="number best" data-value="1.234567">1.23</td>' in actual
    assert actual.count('aria-sort="none"') == 2
    assert "x &amp; y" in actual
