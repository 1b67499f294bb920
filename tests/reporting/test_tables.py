"""Tables in every format, with hostile text escaped."""

from __future__ import annotations

import re

import pytest

from tertium.errors import UsageError
from tertium.reporting.tables.table import Cell, Table, number_cell, render_html_table, render_table

TABLE = Table(
    ["system", "BLEU ↑"],
    [["a_b|c*", number_cell(1 / 3, 2, "best")], ["[bold]x[/bold]", number_cell(float("nan"), 2)]],
    title="50 % & more",
    notes=["a note_"],
)


def test_text_shows_markup_as_it_is() -> None:
    text = render_table(TABLE, "text")
    assert "[bold]x[/bold]" in text
    assert "0.33" in text
    assert "a note_" in text
    assert "\x1b" not in text


def test_a_terminal_obeys_no_text() -> None:
    escape = "\x1b]0;title\x07\x1b[31m\x9b1m\r"
    table = Table(["a" + escape, "b"], [["x" + escape, "1"]], title=escape, notes=[escape])
    for color in (False, True):
        text = render_table(table, "text", color=color)
        assert text.count("␛]0;title␇␛[31m\ufffd1m␍") == 4
        assert not re.search("[\x00-\x09\x0b-\x1a\x1c-\x1f\x7f-\x9f]", text)
        assert set(re.findall("\x1b.*?m", text)) <= {"\x1b[1m", "\x1b[2m", "\x1b[0m", "\x1b[1;2m"}


def test_colour_only_where_asked() -> None:
    assert "\x1b[1m" in render_table(TABLE, "text", color=True)


def test_markdown_escapes_and_marks_the_best() -> None:
    text = render_table(TABLE, "md")
    assert r"| a\_b\|c\* | **0.33** |" in text
    assert "| --- | ---: |" in text


def test_latex_escapes_and_marks_the_best() -> None:
    text = render_table(TABLE, "latex")
    assert r"a\_b\textbar{}c* & \textbf{0.33} \\" in text
    assert r"BLEU $\uparrow$" in text
    assert text.count(r"\hline") == 3


def test_tsv_keeps_the_full_number() -> None:
    assert render_table(TABLE, "tsv").splitlines()[1] == f"a_b|c*\t{1 / 3}"
    assert render_table(Table(["a"], [[Cell("x\ty", "x\ty")]]), "tsv") == "a\nx y\n"


def test_a_footer_stands_below_the_rows() -> None:
    counts = [["judged", Cell("1,200", 1200)]]
    table = Table(["metric", "r"], [["a", number_cell(0.5, 2)]], footer=counts)
    for style in ("text", "md", "latex"):
        lines = render_table(table, style).splitlines()  # type: ignore[arg-type]
        named = [line for line in lines if "judged" in line or "0.5" in line]
        assert len(named) == 2
        assert "judged" in named[1], style
        assert "1,200" in named[1]
    assert "judged" not in render_table(table, "tsv"), "a row of data is a metric"
    assert render_table(table, "latex").count(r"\hline") == 4
    html = render_html_table(table, sortable=True)
    assert re.search("<tbody>.*0.50.*</tbody><tfoot>.*judged.*1,200.*</tfoot></table>", html)


def test_a_missing_number_is_a_dash() -> None:
    assert number_cell(float("nan"), 3).text == "–"


def test_narrow_terminals_fold_names() -> None:
    wide = Table(["system", "score"], [["a-very-long-system-name" * 3, "1.0"]])
    assert max(map(len, render_table(wide, "text", width=40).splitlines())) <= 40


def test_unknown_formats_are_refused() -> None:
    with pytest.raises(UsageError, match="unknown table format"):
        render_table(TABLE, "html")  # type: ignore[arg-type]


def test_a_narrow_terminal_shows_every_name_and_number() -> None:
    header = ["system", *(f"metric{n} ↑" for n in range(6))]
    rows = [[f"system {n}", *(f"{n}{m}.25 (μ = 1.00 ± 2.00)" for m in range(6))] for n in range(3)]
    table = Table(header, rows, title="a title that is far longer than " + "the table " * 8)
    for width in (40, 60, 80):
        text = render_table(table, "text", width=width)
        assert table.title.strip() in text
        assert all(cell in text for row in rows for cell in row)
        assert all(name in text for name in header)
        assert max(map(len, text.splitlines()[1:])) <= width


def test_what_belongs_together_stays_side_by_side() -> None:
    row = ["a system", "12.34", "0.0010 *+", "1", "56.78", "0.0020 *-", "2"]
    table = Table(["system", "A", "p", "rank", "B", "p", "rank"], [row], columns_per_group=3)
    lines = render_table(table, "text", width=38).splitlines()
    assert [line.split() for line in lines if "." in line] == [
        "a system 12.34 0.0010 *+ 1".split(),
        "a system 56.78 0.0020 *- 2".split(),
    ]


def test_texts_are_wrapped_and_numbers_are_not() -> None:
    row = ["name", "many words that may stand below each other", "1234567.25"]
    text = render_table(
        Table(["a", "b", "c"], [row], text_columns=frozenset({0, 1})), "text", width=40
    )
    assert "1234567.25" in text
    assert max(map(len, text.splitlines())) <= 40
    assert " ".join(text.split()).count("stand") == 1


def test_tsv_has_columns_for_what_a_cell_holds_beside_its_value() -> None:
    rows = [[Cell("a", "a", extra_columns={"low\t": 1.5}), "x"], [Cell("b", "b"), "y"]]
    assert render_table(Table(["n\t1", "m"], rows), "tsv") == "n 1\tlow \tm\na\t1.5\tx\nb\t\ty\n"


def test_latex_has_no_line_or_sign_that_would_not_compile() -> None:
    table = Table(["a<b>c"], [["μ = 1\n2"]], title="one\ntwo", notes=["three\n\\input{x}"])
    lines = render_table(table, "latex").splitlines()
    assert lines[0] == "% one two"
    assert r"a\textless{}b\textgreater{}c \\" in lines
    assert r"$\mu$ = 1 2 \\" in lines
    assert lines[-1] == r"% three \input{x}"


def test_tsv_tells_repeated_columns_apart() -> None:
    table = Table(
        ["system", "A", "p", "rank", "B", "p", "rank"], [list("sabcdef")], columns_per_group=3
    )
    header = render_table(table, "tsv").splitlines()[0].split("\t")
    assert header == ["system", "A", "A p", "A rank", "B", "B p", "B rank"]


def test_columns_in_front_are_no_part_of_what_belongs_together() -> None:
    header = ["kind", "pairs", "A", "ties", "B", "ties"]
    table = Table(header, [list("kpatbu")], columns_per_group=2, leading_columns=2)
    assert render_table(table, "tsv").splitlines()[0] == "kind\tpairs\tA\tA ties\tB\tB ties"
    heads = [line.split() for line in render_table(table, width=26).splitlines() if "kind" in line]
    assert heads == [["kind", "pairs", "A", "ties"], ["kind", "B", "ties"]]
