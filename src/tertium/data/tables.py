"""Write tables: TSV, CSV, Parquet and Excel workbooks (`.xlsx`).

A table is a mapping from column names to columns of plain values: text, numbers, `None` or NaN for
a missing value.
"""

from __future__ import annotations

import csv
import io
import logging
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self

from tertium.atomic import PathLike, open_atomic
from tertium.errors import DataError
from tertium.extras import explain_missing
from tertium.frames import is_missing, make_frame
from tertium.text.control_characters import FORBIDDEN_IN_XML, replace_control_characters

if TYPE_CHECKING:
    from openpyxl.cell import WriteOnlyCell
    from openpyxl.cell.rich_text import CellRichText
    from openpyxl.styles import Font
    from openpyxl.worksheet._write_only import WriteOnlyWorksheet

Columns = Mapping[str, Sequence[Any]]

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


def _rows(columns: Columns) -> Iterator[tuple[Any, ...]]:
    return zip(*columns.values(), strict=True)


def tsv_lines(columns: Columns, *, missing: str = "") -> Iterator[str]:
    """Yield the lines of a TSV file; tabs and line breaks in texts become spaces.

    None is an empty field; NaN is written as `missing`.
    """
    for row in (tuple(columns), *_rows(columns)):
        fields = ["" if v is None else missing if is_missing(v) else str(v) for v in row]
        yield "\t".join(re.sub(r"[\t\r\n]", " ", field) for field in fields) + "\n"


def csv_lines(columns: Columns, *, excel: bool = False) -> Iterator[str]:
    """Yield the lines of a CSV file in UTF-8.

    With `excel`, the file opens correctly in Excel: it starts with a byte order mark, lines end in
    CRLF, and text that Excel would evaluate as a formula is prefixed with an apostrophe.
    """
    buffer = io.StringIO(newline="")
    writer = csv.writer(buffer, lineterminator="\r\n" if excel else "\n")
    if excel:
        buffer.write(BYTE_ORDER_MARK)
    for row in (tuple(columns), *_rows(columns)):
        values = ["" if is_missing(value) else _printable(value) for value in row]
        writer.writerow(map(_escape_formula, values) if excel else values)
        yield buffer.getvalue()
        buffer.seek(0)
        buffer.truncate()


def _printable(value: Any) -> Any:
    return replace_control_characters(value, keep="\n\t\r") if isinstance(value, str) else value


def _escape_formula(value: Any) -> Any:
    """Prefix text that Excel reads as a formula.

    >>> _escape_formula("=1+1"), _escape_formula("a=1"), _escape_formula(-1.5)
    ("'=1+1", 'a=1', -1.5)
    """
    is_formula = isinstance(value, str) and value.startswith(("=", "+", "-", "@"))
    return f"'{value}" if is_formula else value


def write_parquet(columns: Columns, path: PathLike) -> None:
    """Write a Parquet file; needs pandas."""
    with open_atomic(path) as stream:
        make_frame(columns).to_parquet(stream, index=False)


def write_xlsx(columns: Columns, path: PathLike) -> None:
    """Write an Excel workbook with one sheet.

    The header is bold, frozen and has filters. Text is wrapped and never evaluated as a formula;
    numbers stay numbers in full precision. Characters that XML cannot hold, such as U+FFFE, are
    written as U+FFFD with a warning. Needs openpyxl, of the extra `frames`.
    """
    with explain_missing("an Excel workbook", hint="or write .csv"):
        from openpyxl import Workbook
        from openpyxl.styles import Font
        from openpyxl.utils import get_column_letter

    _check_excel_limits(columns, path)
    workbook = Workbook(write_only=True)
    sheet = workbook.create_sheet("tertium")
    sheet.freeze_panes = "A2"
    for place, (name, values) in enumerate(columns.items(), start=1):
        sheet.column_dimensions[get_column_letter(place)].width = _column_width(name, values)
    sheet.append([_make_cell(sheet, name, Font(bold=True)) for name in columns])
    count = 1
    for row in _rows(columns):
        sheet.append([_make_cell(sheet, value) for value in row])
        count += 1
    if columns:
        sheet.auto_filter.ref = f"A1:{get_column_letter(len(columns))}{count}"
    with open_atomic(path) as stream:
        workbook.save(stream)
    texts = [text for values in (columns, *columns.values()) for text in values]
    replaced = sum(len(FORBIDDEN_IN_XML.findall(text)) for text in texts if isinstance(text, str))
    if replaced:
        logger.warning(
            "%s: characters that a workbook cannot hold, written as U+FFFD: %d", path, replaced
        )


def _check_excel_limits(columns: Columns, path: PathLike) -> None:
    """Reject what Excel would cut off without a warning."""
    count = 1 + max(map(len, columns.values()), default=0)
    if count > MAX_EXCEL_ROWS:
        raise DataError(
            f"{path}: {count:,} rows; an Excel sheet holds {MAX_EXCEL_ROWS:,}: write .csv"
        )
    for name, values in columns.items():
        for number, value in enumerate((name, *values), start=1):
            if isinstance(value, str) and len(value) > MAX_EXCEL_CELL_LENGTH:
                raise DataError(
                    f"{path}, row {number}: text of {len(value):,} characters; an Excel cell holds "
                    f"{MAX_EXCEL_CELL_LENGTH:,}: write .csv"
                )


def _column_width(name: str, values: Sequence[Any]) -> int:
    has_text = any(isinstance(value, str) for value in values)
    limit = TEXT_COLUMN_WIDTH if has_text else NUMBER_COLUMN_WIDTH
    header_width = len(name) + 4  # with the filter button
    return min(limit, max(header_width, len(name) + 2, *(len(str(v)) + 2 for v in values)))


def _make_cell(sheet: WriteOnlyWorksheet, value: Any, font: Font | None = None) -> WriteOnlyCell:
    from openpyxl.cell import WriteOnlyCell
    from openpyxl.styles import Alignment

    if is_missing(value):
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


def _clean(value: Any) -> str:
    # not Excel's `_xFFFE_`: openpyxl and most other readers do not decode it
    return FORBIDDEN_IN_XML.sub("\ufffd", str(value))


def _mark_text(value: HighlightedText) -> CellRichText:
    from openpyxl.cell.rich_text import CellRichText, TextBlock
    from openpyxl.cell.text import InlineFont

    text, (start, end) = _clean(value), (value.start, value.end)
    marked = TextBlock(InlineFont(b=True, u="single", color=MARK_COLOR), text[start:end])
    return CellRichText(*filter(None, (text[:start], marked, text[end:])))
