"""Tables in every format, with hostile text escaped."""

from __future__ import annotations

import re
from collections.abc import Sequence
from operator import itemgetter

import pytest
from papers.number_cells import number_cell

from tertium.core.errors import UsageError
from tertium.core.result import Cell, Column, Table
from tertium.data.testset import TestSet
from tertium.evaluation.scoring import score
from tertium.output.html import render_table as render_html_table
from tertium.output.text import render_table

TABLE = Table.from_cells(
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


def test_text_shows_markup_as_it_is() -> None:
    text = render_table(TABLE, "text")
    assert "[bold]x[/bold]" in text
    assert "0.33" in text
    assert "a note_" in text
    assert "\x1b" not in text


def test_control_characters_are_replaced_on_a_terminal() -> None:
    escape = "\x1b]0;title\x07\x1b[31m\x9b1m\r"
    rows = [["x" + escape, "1"]]
    table = Table.from_cells(["a" + escape, "b"], rows, title=escape, notes=[escape])
    for color in (False, True):
        text = render_table(table, "text", color=color)
        assert text.count("␛]0;title␇␛[31m\ufffd1m␍") == 4
        assert not re.search("[\x00-\x09\x0b-\x1a\x1c-\x1f\x7f-\x9f]", text)
        assert set(re.findall("\x1b.*?m", text)) <= {"\x1b[1m", "\x1b[2m", "\x1b[0m", "\x1b[1;2m"}


def test_color_is_optional() -> None:
    assert "\x1b[1m" in render_table(TABLE, "text", color=True)


def test_markdown_escapes_and_marks_the_best() -> None:
    text = render_table(TABLE, "md")
    assert r"| a\_b\|c\* | **0.33** |" in text
    assert "| --- | ---: |" in text


def test_latex_escapes_and_marks_the_best() -> None:
    text = render_table(TABLE, "latex")
    assert r"a\_b\textbar{}c* & \textbf{0.33} \\" in text
    assert r"BLEU $\uparrow$" in text
    rules = [line for line in text.splitlines() if line.endswith("rule")]
    assert rules == [r"\toprule", r"\midrule", r"\bottomrule"]


def test_tsv_keeps_the_full_number() -> None:
    assert render_table(TABLE, "tsv").splitlines()[1] == f"a_b|c*\t{1 / 3}"
    assert render_table(Table.from_cells(["a"], [[Cell("x\ty", "x\ty")]]), "tsv") == "a\nx y\n"


def test_a_footer_is_below_the_rows() -> None:
    counts = [[Cell("judged"), Cell("1,200", 1200)]]
    table = Table.from_cells(["metric", "r"], [["a", number_cell(0.5, 2)]], footer=counts)
    for style in ("text", "md", "latex"):
        lines = render_table(table, style).splitlines()  # type: ignore[arg-type]
        matching_lines = [line for line in lines if "judged" in line or "0.5" in line]
        assert len(matching_lines) == 2
        assert "judged" in matching_lines[1], style
        assert "1,200" in matching_lines[1]
    assert "judged" not in render_table(table, "tsv"), "a row of data is a metric"
    assert render_table(table, "latex").count(r"\midrule") == 2
    html = render_html_table(table, sortable=True)
    assert re.search("<tbody>.*0.50.*</tbody><tfoot>.*judged.*1,200.*</tfoot></table>", html)


def test_a_missing_number_is_a_dash() -> None:
    assert number_cell(float("nan"), 3).text == "–"


def test_narrow_terminals_fold_names() -> None:
    wide = Table.from_cells(["system", "score"], [["a-very-long-system-name" * 3, "1.0"]])
    assert max(map(len, render_table(wide, "text", width=40).splitlines())) <= 40


def test_unknown_formats_are_rejected() -> None:
    with pytest.raises(UsageError, match="unknown table format"):
        render_table(TABLE, "html")  # type: ignore[arg-type]


def test_a_narrow_terminal_shows_every_name_and_number() -> None:
    header = ["system", *(f"metric{n} ↑" for n in range(6))]
    rows = [[f"system {n}", *(f"{n}{m}.25 (μ = 1.00 ± 2.00)" for m in range(6))] for n in range(3)]
    title = "a title that is far longer than " + "the table " * 8
    table = Table.from_cells(header, rows, title=title)
    for width in (40, 60, 80):
        text = render_table(table, "text", width=width)
        assert table.title.strip() in text
        assert all(cell in text for row in rows for cell in row)
        assert all(name in text for name in header)
        assert max(map(len, text.splitlines()[1:])) <= width


def test_column_groups_are_not_split() -> None:
    row = ["a system", "12.34", "0.0010 *+", "1", "56.78", "0.0020 *-", "2"]
    table = _grouped_table(["system", "A", "p", "rank", "B", "p", "rank"], row, " AAABBB")
    lines = render_table(table, "text", width=38).splitlines()
    assert [line.split() for line in lines if "." in line] == [
        "a system 12.34 0.0010 *+ 1".split(),
        "a system 56.78 0.0020 *- 2".split(),
    ]


def test_texts_are_wrapped_and_numbers_are_not() -> None:
    row = ["name", "many words that may stand below each other", "1234567.25"]
    text = render_table(
        Table.from_cells(["a", "b", "c"], [row], text_columns=(0, 1)), "text", width=40
    )
    assert "1234567.25" in text
    assert max(map(len, text.splitlines())) <= 40
    assert " ".join(text.split()).count("stand") == 1


def test_files_have_columns_that_are_not_printed() -> None:
    columns = [Column("n\t1", "n"), Column("low\t", "low", 0, show=False), Column("m")]
    table = Table(columns, [{"n": "a", "low": 1.5, "m": "x"}, {"n": "b", "low": None, "m": "y"}])
    assert render_table(table, "tsv") == "n 1\tlow \tm\na\t1.5\tx\nb\t\ty\n"
    assert "1.5" not in render_table(table)


def test_latex_escapes_line_breaks_and_special_characters() -> None:
    notes = ["three\n\\input{x}"]
    table = Table.from_cells(["a<b>c"], [["μ = 1\n2"]], title="one\ntwo", notes=notes)
    lines = render_table(table, "latex").splitlines()
    assert r"\caption{one two}" in lines
    assert r"\label{tab:one-two}" in lines
    assert r"a\textless{}b\textgreater{}c \\" in lines
    assert r"$\mu$ = 1 2 \\" in lines
    assert lines[-1] == r"% three \input{x}"


def test_tsv_makes_repeated_column_names_unique() -> None:
    header = ["system", "A", "p", "rank", "B", "p", "rank"]
    table = _grouped_table(header, "sabcdef", " AAABBB")
    header = render_table(table, "tsv").splitlines()[0].split("\t")
    assert header == ["system", "A", "A p", "A rank", "B", "B p", "B rank"]


def test_leading_columns_are_not_part_of_a_group() -> None:
    header = ["kind", "pairs", "A", "ties", "B", "ties"]
    table = _grouped_table(header, "kpatbu", "  AABB")
    assert render_table(table, "tsv").splitlines()[0] == "kind\tpairs\tA\tA ties\tB\tB ties"
    heads = [line.split() for line in render_table(table, width=26).splitlines() if "kind" in line]
    assert heads == [["kind", "pairs", "A", "ties"], ["kind", "B", "ties"]]


def test_latex_tables_use_booktabs_and_are_complete() -> None:
    table = Table.from_cells(
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
    untitled = render_table(Table.from_cells(["a"], [["b"]]), "latex")
    assert r"\caption{Results}" in untitled
    assert r"\label{tab:results}" in untitled


def test_table_values_are_full_values_for_spreadsheets() -> None:
    rows = [["a", Cell("0.33", 1 / 3)], ["b", number_cell(0.5, 1)]]
    footer = [[Cell("all"), Cell("2")]]
    values = Table.from_cells(["system", "r"], rows, footer=footer).values()
    assert values == {"system": ["a", "b"], "r": [1 / 3, 0.5]}


def test_segment_tables_can_include_the_texts() -> None:
    testset = TestSet(
        systems={"x": ("one", "two")},
        sources=("eins", "zwei"),
        references=(("1", "uno"), ("2",)),
    )
    table = score(testset, "chrf").segment_table(include_texts=True)
    expected = ["system", "segment", "source", "translation", "reference", "reference 2", "chrF ↑"]
    assert list(table.header) == expected
    assert [[*row.values()][:6] for row in table.records()] == [
        ["x", 1, "eins", "one", "1", "uno"],
        ["x", 2, "zwei", "two", "2", ""],
    ]
    is_text = [column.is_text for column in table.visible]
    assert is_text == [True, False, True, True, True, True, False]
    plain = score(TestSet(systems={"x": ("a",)}, references=(("b",),)), "chrf").segment_table()
    assert list(plain.header) == ["system", "segment", "chrF ↑"]
