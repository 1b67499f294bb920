"""CSV files and Excel workbooks keep text as text and numbers as numbers."""

from __future__ import annotations

import csv
import io
import sys
from pathlib import Path

import pytest

from tertium.core.errors import DataError, MissingResourceError
from tertium.data.tables import HighlightedText, csv_lines, write_xlsx

COLUMNS = ["system", "source", "chrF ↑"]
ROWS: list[list[str | float | int | None]] = [
    ["a", '=HYPERLINK("http://x")', 1 / 3],
    ["b", "line one\nline two, «quoted»", float("nan")],
    ["c", None, 7],
]


def by_column(
    rows: list[list[str | float | int | None]], columns: list[str] = COLUMNS
) -> dict[str, list[str | float | int | None]]:
    return {name: [row[n] for row in rows] for n, name in enumerate(columns)}


def write_csv(
    rows: list[list[str | float | int | None]], path: Path, *, excel: bool = False
) -> None:
    path.write_bytes("".join(csv_lines(by_column(rows), excel=excel)).encode("utf-8"))


def test_csv_can_be_read_back(tmp_path):
    path = tmp_path / "scores.csv"
    write_csv(ROWS, path)
    raw = path.read_bytes()
    assert not raw.startswith(b"\xef\xbb\xbf")
    assert b"\r" not in raw
    assert list(csv.reader(io.StringIO(raw.decode("utf-8"), newline=""))) == [
        COLUMNS,
        ["a", '=HYPERLINK("http://x")', str(1 / 3)],
        ["b", "line one\nline two, «quoted»", ""],
        ["c", "", "7"],
    ]


def test_csv_for_excel_has_a_byte_order_mark_and_no_formulas(tmp_path):
    path = tmp_path / "scores.csv"
    write_csv([*ROWS, ["d", "- He left.", -1.5]], path, excel=True)
    assert path.read_bytes().startswith(b"\xef\xbb\xbfsystem,source,")
    text = path.read_bytes().decode("utf-8-sig")
    rows = list(csv.reader(io.StringIO(text, newline="")))
    assert rows[1] == ["a", '\'=HYPERLINK("http://x")', str(1 / 3)]
    assert rows[-1] == ["d", "'- He left.", "-1.5"], "negative numbers stay numbers"
    assert text.count("\r\n") == len(rows)


def test_a_workbook_keeps_types_and_is_easy_to_read(tmp_path):
    openpyxl = pytest.importorskip("openpyxl")
    path = tmp_path / "scores.xlsx"
    write_xlsx(by_column([*ROWS, ["d", "#N/A", float("inf")]]), path)
    sheet = openpyxl.load_workbook(path).active
    assert [cell.value for cell in sheet[1]] == COLUMNS
    assert all(cell.font.bold for cell in sheet[1])
    assert not any(cell.font.bold for cell in sheet[2])
    assert sheet.freeze_panes == "A2"
    assert sheet.auto_filter.ref == "A1:C5"
    assert [cell.value for cell in sheet[2]] == ROWS[0]
    assert [cell.data_type for cell in sheet[2]] == ["s", "s", "n"]
    assert [cell.value for cell in sheet[3]] == ["b", "line one\nline two, «quoted»", None]
    assert [cell.value for cell in sheet[4]] == ["c", None, 7]
    assert [(cell.value, cell.data_type) for cell in sheet[5][1:]] == [("#N/A", "s"), ("inf", "s")]
    assert sheet["B2"].alignment.wrap_text
    assert sheet.column_dimensions["B"].width <= 60
    assert sheet.column_dimensions["A"].width < sheet.column_dimensions["B"].width


def test_a_workbook_replaces_characters_that_xml_forbids(tmp_path, caplog):
    openpyxl = pytest.importorskip("openpyxl")
    path = tmp_path / "scores.xlsx"
    marked = HighlightedText("x\uffffy", 1, 3)
    values = by_column(
        [["a\x00b\x1f", "\ufffe", "\ud800"], ["ok", marked, 1]], ["a", "b", "c\uffff"]
    )
    write_xlsx(values, path)
    rows = [*openpyxl.load_workbook(path).active.iter_rows(values_only=True)]
    assert rows[0] == ("a", "b", "c\ufffd")
    assert rows[1] == ("a\ufffdb\ufffd", "\ufffd", "\ufffd")
    assert rows[2] == ("ok", "x\ufffdy", 1)
    assert f"{path}: characters that a workbook cannot hold, written as U+FFFD: 6" in caplog.text


def test_a_workbook_that_cannot_be_written_is_explained(tmp_path, monkeypatch):
    pytest.importorskip("openpyxl")
    path = tmp_path / "scores.xlsx"
    with pytest.raises(DataError, match=r"row 2: text of 40,000 characters; .* write .csv"):
        write_xlsx({"text": ["x" * 40_000]}, path)
    monkeypatch.setitem(sys.modules, "openpyxl", None)
    with pytest.raises(MissingResourceError, match=r'pip install "tertium\[frames\]" \(or write'):
        write_xlsx(by_column(ROWS), tmp_path / "scores.xlsx")
