"""Add columns to the first sheet of an Excel workbook; all other parts of it stay the same.

Cells are inserted into the XML of the sheet at known positions. Other members of the archive are
copied.
"""

from __future__ import annotations

import io
import re
import zipfile
import zlib
from collections.abc import Container, Sequence

from tertium.core.atomic import open_atomic
from tertium.core.errors import DataError
from tertium.files.annotations import FileEdits, escape_xml
from tertium.files.xml_elements import Element, XmlFile

OWN_PREFIX = "tertium: "  # of column names
MAX_CELL = 32_767  # characters that Excel reads in a cell
_DIMENSION = re.compile(rb'(<(?:\w+:)?dimension\s+ref=")([A-Z]+\d+)(?::([A-Z]+)(\d+))?"')

Value = str | float | None


def add_columns(
    path: str, output: str, names: Sequence[str], rows: dict[int, Sequence[Value]]
) -> None:
    """Write a copy of a workbook with more columns; `rows` has the values by row number."""
    with zipfile.ZipFile(path) as archive, open_atomic(output) as stream:
        sheet = _first_sheet(archive, path)
        with zipfile.ZipFile(stream, "w") as copy:
            for member in archive.infolist():
                data = _read_member(archive, member, path)
                if member.filename == sheet:
                    data = _edit_sheet(data, path, names, rows)
                copy.writestr(member, data)


def _first_sheet(archive: zipfile.ZipFile, path: str) -> str:
    """Return the member that contains the first sheet."""
    try:
        workbook, relations = (
            XmlFile(path, ("sheet", "Relationship"), _read_member(archive, name, path))
            for name in ("xl/workbook.xml", "xl/_rels/workbook.xml.rels")
        )
        sheet = next(e for e in workbook.units())
        targets = {e.get("Id"): e.get("Target") for e in relations.units()}
        target = targets[sheet.get_local("id")].removeprefix("/")
    except (KeyError, StopIteration):
        raise DataError(f"{path}: not an Excel workbook with a sheet") from None
    return target if target.startswith("xl/") else f"xl/{target}"


def _read_member(archive: zipfile.ZipFile, member: str | zipfile.ZipInfo, path: str) -> bytes:
    try:
        return archive.read(member)
    except (zipfile.BadZipFile, zlib.error, EOFError) as error:
        raise DataError(f"{path}: damaged Excel workbook ({error})") from None


def _edit_sheet(
    data: bytes, path: str, names: Sequence[str], rows: dict[int, Sequence[Value]]
) -> bytes:
    """Return the XML of a sheet with our columns after all others."""
    file = XmlFile(path, ("row",), data)
    elements = [*file.units()]
    if file.encoding != "utf-8" or not elements:
        raise DataError(f"{path}: the sheet is empty or not UTF-8: save it again with Excel")
    titles = elements[0].elements("c")
    own = {_column(cell) for cell in titles if cell.text().startswith(OWN_PREFIX)}
    used = {_column(cell) for row in elements for cell in row.elements("c")}
    first = max(used - own, default=0) + 1
    edits = FileEdits(data, file.encoding)
    for row in elements:
        if not row.get("r").isdecimal():
            raise DataError("the workbook has rows without numbers: save it again with Excel")
        values = names if row is elements[0] else rows.get(int(row.get("r")), ())
        _edit_row(row, values, own, first, edits)
    edited = io.BytesIO()
    edits.write(edited, "strict")
    last = first + len(names) - 1
    return _DIMENSION.sub(lambda match: _widen(match, last), edited.getvalue(), count=1)


def _edit_row(
    row: Element, values: Sequence[Value], own: Container[int], first: int, edits: FileEdits
) -> None:
    from openpyxl.utils import get_column_letter

    for cell in row.elements("c"):
        if _column(cell) in own:
            edits.replace(cell.start, cell.end)
    prefix, number = row.name.removesuffix(row.local), row.get("r")
    cells = ""
    for column, value in enumerate(values, start=first):
        if value not in (None, ""):
            cells += _format_cell(prefix, f"{get_column_letter(column)}{number}", value)
    if cells and row.inner_start == row.end:
        raise DataError(f"row {number} of the workbook is empty")
    edits.insert(row.inner_end, cells)


def _format_cell(prefix: str, place: str, value: Value) -> str:
    if isinstance(value, float):
        return f'<{prefix}c r="{place}"><{prefix}v>{value!r}</{prefix}v></{prefix}c>'
    text = escape_xml(str(value)[:MAX_CELL])
    return (
        f'<{prefix}c r="{place}" t="inlineStr"><{prefix}is><{prefix}t xml:space="preserve">{text}'
        f"</{prefix}t></{prefix}is></{prefix}c>"
    )


def _column(cell: Element) -> int:
    """Return the number of a column from 1."""
    from openpyxl.utils.cell import coordinate_to_tuple

    try:
        _, number = coordinate_to_tuple(cell.get("r"))
    except ValueError:
        raise DataError("the workbook has cells without names: save it again with Excel") from None
    return int(number)


def _widen(match: re.Match[bytes], last: int) -> bytes:
    """Return the used range of the sheet with a new last column."""
    from openpyxl.utils import get_column_letter

    column: str = get_column_letter(last)
    end = match[4] or re.sub(rb"\D", b"", match[2])
    return match[1] + match[2] + b":" + column.encode() + end + b'"'
