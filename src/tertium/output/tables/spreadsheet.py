"""Write rows as CSV or as an Excel workbook (`.xlsx`).

The functions take plain values: text, numbers, `None` or NaN for a missing value.
"""

from __future__ import annotations

import csv
import io
import logging
import math
import os
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Self, TextIO

from tertium.atomic import PathLike, open_atomic, write_text
from tertium.errors import DataError
from tertium.extras import explain_missing
from tertium.output.markup import FORBIDDEN
from tertium.output.tables.table import replace_control_characters

if TYPE_CHECKING:
    from openpyxl.cell import WriteOnlyCell
    from openpyxl.cell.rich_text import CellRichText
    from openpyxl.styles import Font
    from openpyxl.worksheet._write_only import WriteOnlyWorksheet

Value = str | int | float | None

BYTE_ORDER_MARK = "\ufeff"
MAX_EXCEL_ROWS = 1_048_576  # with the header
MAX_EXCEL_CELL_LENGTH = 32_767  # characters
NUMBER_COLUMN_WIDTH, TEXT_COLUMN_WIDTH = 14, 60  # in characters of the default font
MARK_COLOR = "C00000"
logger = logging.getLogger(__name__)


class HighlightedText(str):
    """Text with a marked part, `text[start:end]`, which a workbook shows in red."""

    __slots__ = ("end", "start")
    start: int
    end: int

    def __new__(cls, text: str, start: int, end: int) -> Self:
        marked = super().__new__(cls, text)
        marked.start, marked.end = start, end
        return marked


def write_csv(
    rows: Iterable[Sequence[Value]],
    columns: Sequence[str],
    path_or_stream: PathLike | TextIO,
    *,
    excel: bool = False,
) -> None:
    """Write a header and rows as CSV in UTF-8; a missing value is an empty field.

    With `excel`, the file opens correctly in Excel: it starts with a byte order mark, lines end in
    CRLF, and text that Excel would evaluate as a formula is prefixed with an apostrophe.
    """
    lines = _csv_lines(rows, columns, excel)
    if isinstance(path_or_stream, str | os.PathLike):
        write_text(path_or_stream, lines)
    else:
        path_or_stream.writelines(lines)


def _printable(value: Value) -> Value:
    return replace_control_characters(value, keep="\n\t\r") if isinstance(value, str) else value


def _csv_lines(
    rows: Iterable[Sequence[Value]], columns: Sequence[str], excel: bool
) -> Iterator[str]:
    buffer = io.StringIO(newline="")
    writer = csv.writer(buffer, lineterminator="\r\n" if excel else "\n")
    if excel:
        buffer.write(BYTE_ORDER_MARK)
    for number, row in enumerate((columns, *rows)):
        _check_row_length(row, columns, number)
        values = ["" if _is_missing(value) else _printable(value) for value in row]
        writer.writerow(map(_escape_formula, values) if excel else values)
        yield buffer.getvalue()
        buffer.seek(0)
        buffer.truncate()


def _escape_formula(value: Value) -> Value:
    """Prefix text that Excel reads as a formula.

    >>> _escape_formula("=1+1"), _escape_formula("a=1"), _escape_formula(-1.5)
    ("'=1+1", 'a=1', -1.5)
    """
    is_formula = isinstance(value, str) and value.startswith(("=", "+", "-", "@"))
    return f"'{value}" if is_formula else value


def write_xlsx(rows: Iterable[Sequence[Value]], columns: Sequence[str], path: PathLike) -> None:
    """Write a header and rows as an Excel workbook with one sheet.

    The header is bold, frozen and has filters. Text is wrapped and never evaluated as a formula;
    numbers stay numbers in full precision. Characters that XML cannot hold, such as U+FFFE, are
    written as U+FFFD with a warning. Needs openpyxl, of the extra `frames`.
    """
    with explain_missing("an Excel workbook", hint="or write .csv"):
        from openpyxl import Workbook
        from openpyxl.styles import Font
        from openpyxl.utils import get_column_letter

    table: list[list[Value]] = [list(columns), *(list(row) for row in rows)]
    _check_excel_limits(table, path)
    workbook = Workbook(write_only=True)
    sheet = workbook.create_sheet("tertium")
    sheet.freeze_panes = "A2"
    for place in range(len(columns)):
        width = _column_width([row[place] for row in table])
        sheet.column_dimensions[get_column_letter(place + 1)].width = width
    sheet.append([_make_cell(sheet, value, Font(bold=True)) for value in columns])
    for row in table[1:]:
        sheet.append([_make_cell(sheet, value) for value in row])
    if columns:
        sheet.auto_filter.ref = f"A1:{get_column_letter(len(columns))}{len(table)}"
    with open_atomic(path) as stream:
        workbook.save(stream)
    texts = [value for row in table for value in row if isinstance(value, str)]
    replaced = sum(len(FORBIDDEN.findall(text)) for text in texts)
    if replaced:
        logger.warning(
            "%s: characters that a workbook cannot hold, written as U+FFFD: %d", path, replaced
        )


def _check_excel_limits(table: Sequence[Sequence[Value]], path: PathLike) -> None:
    """Reject what Excel would cut off without a warning."""
    if len(table) > MAX_EXCEL_ROWS:
        raise DataError(
            f"{path}: {len(table):,} rows; an Excel sheet holds {MAX_EXCEL_ROWS:,}: write .csv"
        )
    for number, row in enumerate(table):
        _check_row_length(row, table[0], number)
        longest = max((len(value) for value in row if isinstance(value, str)), default=0)
        if longest > MAX_EXCEL_CELL_LENGTH:
            raise DataError(
                f"{path}, row {number + 1}: text of {longest:,} characters; an Excel cell holds "
                f"{MAX_EXCEL_CELL_LENGTH:,}: write .csv"
            )


def _column_width(values: Sequence[Value]) -> int:
    has_text = any(isinstance(value, str) for value in values[1:])
    limit = TEXT_COLUMN_WIDTH if has_text else NUMBER_COLUMN_WIDTH
    header_width = len(str(values[0])) + 4  # with the filter button
    return min(limit, max(header_width, *(len(str(value)) + 2 for value in values)))


def _make_cell(sheet: WriteOnlyWorksheet, value: Value, font: Font | None = None) -> WriteOnlyCell:
    from openpyxl.cell import WriteOnlyCell
    from openpyxl.styles import Alignment

    if _is_missing(value):
        return WriteOnlyCell(sheet, None)
    if isinstance(value, int | float) and math.isfinite(value):
        return WriteOnlyCell(sheet, value)
    text = _mark_text(value) if isinstance(value, HighlightedText) else _clean(value)
    cell = WriteOnlyCell(sheet, text)
    cell.data_type = "s"  # openpyxl takes "=..." for a formula and "#N/A" for an error
    cell.alignment = Alignment(wrap_text=True, vertical="top")
    if font:
        cell.font = font
    return cell


def _clean(value: Value) -> str:
    # not Excel's `_xFFFE_`: openpyxl and most other readers do not decode it
    return FORBIDDEN.sub("\ufffd", str(value))


def _mark_text(value: HighlightedText) -> CellRichText:
    from openpyxl.cell.rich_text import CellRichText, TextBlock
    from openpyxl.cell.text import InlineFont

    text, (start, end) = _clean(value), (value.start, value.end)
    marked = TextBlock(InlineFont(b=True, u="single", color=MARK_COLOR), text[start:end])
    return CellRichText(*filter(None, (text[:start], marked, text[end:])))


def _check_row_length(row: Sequence[Value], columns: Sequence[Value], number: int) -> None:
    if len(row) != len(columns):
        raise DataError(f"row {number}: {len(row)} values; expected {len(columns)}, one per column")


def _is_missing(value: Any) -> bool:
    return value is None or (isinstance(value, float) and math.isnan(value))
