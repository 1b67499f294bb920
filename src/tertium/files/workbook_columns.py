"""Add columns to the first sheet of an Excel workbook; all other parts of it stay the same.

Cells are inserted into the XML of the sheet at known positions. Other members of the archive are
copied.
"""

from __future__ import annotations

import io
import math
import re
import zipfile
import zlib
from collections.abc import Mapping, Sequence

from tertium.core.atomic import open_atomic
from tertium.core.errors import DataError
from tertium.data.tables import MAX_EXCEL_CELL_LENGTH
from tertium.files.annotations import FileEdits, escape_xml
from tertium.files.xml_elements import XmlFile

OWN_PREFIX = "tertium: "  # of the names of columns
_DIMENSION = re.compile(rb'(<(?:\w+:)?dimension\s+ref="[A-Z]+\d+)(?::[A-Z]+(\d+))?"')
Values = Mapping[str, str | float]


def add_columns(path: str, output: str, rows: Mapping[int, Values]) -> None:
    """Write a copy of a workbook with more columns; `rows` has values by row number and column.

    They replace the columns of an earlier run.
    """
    from openpyxl.reader.excel import ExcelReader

    try:
        reader = ExcelReader(path, read_only=True)
        reader.read()
        sheets = [part for _, part in reader.parser.find_sheets() if "worksheet" in part.Type]
        titles = next(reader.wb.worksheets[0].iter_rows(max_row=1, values_only=True))
        with (
            reader.archive as archive,
            open_atomic(output) as stream,
            zipfile.ZipFile(stream, "w") as copy,
        ):
            for member in archive.infolist():
                data = archive.read(member)
                if member.filename == sheets[0].target:
                    data = _edit_sheet(data, path, titles, rows)
                copy.writestr(member, data)
    except (zipfile.BadZipFile, zlib.error, EOFError) as error:
        raise DataError(f"{path}: damaged Excel workbook ({error})") from None


def _edit_sheet(
    data: bytes, path: str, titles: Sequence[object], rows: Mapping[int, Values]
) -> bytes:
    """Return the XML of a sheet with our columns after all others."""
    from openpyxl.utils import column_index_from_string, get_column_letter

    ours = {
        get_column_letter(number)
        for number, title in enumerate(titles, start=1)
        if str(title).startswith(OWN_PREFIX)
    }
    file = XmlFile(path, ("row",), data)
    edits = FileEdits(data, "utf-8")
    elements = [*file.units()]
    last = 0
    for row in elements:
        for cell in row.elements("c"):
            column = cell.get("r").rstrip("0123456789")
            if not (column and row.get("r").isdecimal() and file.encoding == "utf-8"):
                raise DataError(
                    f"{path}: row {row.get('r')} or its cells have no names, or are not UTF-8: "
                    "save the workbook again with Excel"
                )
            if column in ours:
                edits.replace(cell.start, cell.end)
            else:
                last = max(last, column_index_from_string(column))
    names = dict.fromkeys(name for values in rows.values() for name in values)
    letters = {name: get_column_letter(last + n) for n, name in enumerate(names, start=1)}
    title_row = {name: OWN_PREFIX + name for name in names}
    for row in elements:
        number = int(row.get("r"))
        values = title_row if number == 1 else rows.get(number, {})
        prefix = row.name.removesuffix("row")
        cells = [
            _format_cell(prefix, f"{letters[name]}{number}", value)
            for name, value in values.items()
        ]
        edits.replace(row.inner_end, row.inner_end, "".join(cells))
    edited = io.BytesIO()
    edits.write(edited)
    end = letters[[*names][-1]].encode()
    return _DIMENSION.sub(rb"\1:" + end + rb'\2"', edited.getvalue(), count=1)


def _format_cell(prefix: str, place: str, value: str | float) -> str:
    """Return a cell; nothing for an empty text or a missing score."""
    if isinstance(value, float):
        content = f'<{prefix}c r="{place}"><{prefix}v>{value!r}</{prefix}v></{prefix}c>'
        return "" if math.isnan(value) else content
    text = escape_xml(value[:MAX_EXCEL_CELL_LENGTH])
    content = f'<{prefix}is><{prefix}t xml:space="preserve">{text}</{prefix}t></{prefix}is>'
    return f'<{prefix}c r="{place}" t="inlineStr">{content}</{prefix}c>' if value else ""
