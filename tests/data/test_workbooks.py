"""Excel workbooks as files of records."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest

from tertium.core.errors import DataError
from tertium.data.tables import read_workbook
from tertium.data.testset import TestSet

openpyxl = pytest.importorskip("openpyxl")


def save(path: Path, *rows: tuple[object, ...]) -> Path:
    workbook = openpyxl.Workbook()
    for row in rows:
        workbook.active.append(row)
    workbook.save(path)
    return path


def test_cells_are_texts_and_empty_rows_are_skipped(tmp_path):
    path = save(tmp_path / "a.xlsx", ("src", "mt", "max"), ("One", 1, 3.5), (), ("Two", None, 4))
    rows = [(where.rpartition(", ")[2], row) for where, row in read_workbook(path)]
    assert rows == [
        ("row 2", {"src": "One", "mt": "1", "max": "3.5"}),
        ("row 4", {"src": "Two", "mt": "", "max": "4"}),
    ]
    assert TestSet.from_records(path).columns == {"max": ("3.5", "4")}


def test_invalid_workbooks(tmp_path):
    with pytest.raises(DataError, match=r"a.xlsx: no such file"):
        next(read_workbook(tmp_path / "a.xlsx"))
    (tmp_path / "a.xlsx").write_text("src\tmt\n")
    with pytest.raises(DataError, match=r"a.xlsx: not an Excel workbook"):
        next(read_workbook(tmp_path / "a.xlsx"))
    with pytest.raises(DataError, match="the first row has to name every column"):
        next(read_workbook(save(tmp_path / "b.xlsx", ("src", None, "mt"))))
    with pytest.raises(DataError, match="mt"):
        next(read_workbook(save(tmp_path / "c.xlsx", ("mt", "mt"), ("a", "b"))))


def test_damaged_workbooks(tmp_path):
    path = save(tmp_path / "a.xlsx", ("src", "mt"), ("One", "Eins"))
    data = path.read_bytes()
    for member in ("xl/workbook.xml", "xl/worksheets/sheet1.xml"):
        with zipfile.ZipFile(path) as archive:
            info = archive.getinfo(member)
        start = info.header_offset + 30 + len(member)
        for place in (start, start + info.compress_size // 2):
            path.write_bytes(data[:place] + bytes([data[place] ^ 255]) + data[place + 1 :])
            with pytest.raises(DataError, match=r"a.xlsx: not an Excel workbook, or a damaged one"):
                [*read_workbook(path)]
        path.write_bytes(data)
