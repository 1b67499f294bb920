"""Read the first sheet of an Excel workbook as records: the first row has the column names."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tertium.atomic import PathLike
from tertium.data.delimited_tables import check_unique_columns
from tertium.data.text_files import check_record
from tertium.errors import DataError
from tertium.extras import explain_missing
from tertium.frames import format_name

XLSX = ".xlsx"


def read_workbook(path: PathLike) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the rows with their locations; cells are texts, empty ones too, as in a CSV file."""
    with explain_missing("an Excel workbook"):
        import openpyxl
    try:
        workbook = openpyxl.load_workbook(path, read_only=True, data_only=True)
    except FileNotFoundError:
        raise DataError(f"{path}: no such file") from None
    except Exception as error:  # openpyxl, zipfile, zlib and XML parsers have no common base
        raise DataError(f"{path}: not an Excel workbook ({error})") from None
    try:
        rows = _read_rows(workbook, path)
        header = [_to_text(value) for value in next(rows, ())]
        while header and not header[-1]:
            header.pop()
        if not header or not all(header):
            raise DataError(f"{path}: the first row has to name every column, such as source, mt")
        check_unique_columns(header, path)
        for number, row in enumerate(rows, start=2):
            cells = [_to_text(value) for value in row[: len(header)]]
            if any(cells):
                where = f"{path}, row {number}"
                cells += [""] * (len(header) - len(cells))
                record = dict(zip(header, cells, strict=True))
                check_record(record, where)
                yield where, record
    finally:
        workbook.close()


def _read_rows(workbook: Any, path: PathLike) -> Iterator[tuple[Any, ...]]:
    try:
        yield from workbook.worksheets[0].iter_rows(values_only=True)
    except Exception as error:
        raise DataError(f"{path}: damaged Excel workbook ({error})") from None


def _to_text(value: Any) -> str:
    if value is None:
        return ""
    return format_name(value) if isinstance(value, int | float) else str(value)
