"""Read and write tables: TSV, CSV, Parquet and Excel workbooks (`.xlsx`).

Readers yield rows as records, each with its location. Ragged rows and wrong delimiters are errors
that name the line. A table to write is a mapping from column names to columns of plain values:
text, numbers, `None` or NaN for a missing value.
"""

from __future__ import annotations

import csv
import io
import logging
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from tertium.core.atomic import PathLike, open_atomic
from tertium.core.errors import DataError, UsageError
from tertium.core.extras import explain_missing
from tertium.core.result import format_name, is_missing, make_frame
from tertium.data.records import LocatedRecords
from tertium.data.text_files import (
    check_record,
    display_name,
    read_text,
    warn_about_carriage_returns,
)
from tertium.text.printable import FORBIDDEN_IN_XML, replace_control_characters

if TYPE_CHECKING:
    from openpyxl.cell import WriteOnlyCell
    from openpyxl.cell.rich_text import CellRichText
    from openpyxl.styles import Font
    from openpyxl.worksheet._write_only import WriteOnlyWorksheet

Columns = Mapping[str, Sequence[Any]]

BYTE_ORDER_MARK = "\ufeff"
MAX_EXCEL_ROWS = 1_048_576  # with the header
MAX_EXCEL_CELL_LENGTH = 32_767  # characters
COLUMN_WIDTH = 60  # at most, in characters of the default font
MARK_COLOR = "C00000"
PANDAS_INDEX = "__index_level_"  # prefix of the column in which pandas saves the row index

logger = logging.getLogger(__name__)
csv.field_size_limit(1 << 24)


class HighlightedText(str):
    """Text with a marked part, `text[start:end]`, which a workbook shows in red."""

    __slots__ = ("end", "start")
    start: int
    end: int

    def __new__(cls, text: str, start: int, end: int) -> Self:
        marked = super().__new__(cls, text)
        marked.start = start
        marked.end = end
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
        width = 4 + max(len(str(value)) for value in (name, *values))  # with the filter button
        sheet.column_dimensions[get_column_letter(place)].width = min(width, COLUMN_WIDTH)
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


def read_table(
    path: PathLike,
    fields: Sequence[str] | None = None,
    *,
    delimiter: str | None = None,
) -> Iterator[tuple[str, dict[str, str]]]:
    """Read the rows of a TSV or CSV file as dictionaries, each with its location.

    The first row is the header unless `fields` names the columns. The delimiter follows the suffix:
    comma for `.csv`, otherwise tab. CSV fields may be quoted. TSV fields are literal; a warning
    reports those that look quoted, because the quotes would be scored as text. If the last column
    name starts with `#` and a row lacks that column, the name is a comment."""
    if delimiter is None:
        delimiter = "," if ".csv" in Path(path).suffixes else "\t"
    return parse_table(read_text(path), display_name(path), fields, delimiter)


def parse_table(
    text: str,
    name: str,
    fields: Sequence[str] | None,
    delimiter: str,
) -> Iterator[tuple[str, dict[str, str]]]:
    rows = parse_rows(text, delimiter, name)
    quoted = 0
    header = list(fields) if fields is not None else next(rows, (0, None))[1]
    if header is None:
        raise DataError(f"{name} is empty; expected a header and rows")
    header = [column.strip() for column in header]
    check_delimiter(header, delimiter, name)
    check_unique_columns(header, name)
    for line, row in rows:
        if not row:
            continue
        where = f"{name}, line {line}"
        if line == 1:
            reject_header_row(row, header, name)
        has_comment = header[-1].startswith("#") and len(row) == len(header) - 1
        if len(row) != len(header) and not has_comment:
            raise DataError(
                f"{where}: {len(row)} fields, but the header has {len(header)} "
                f"({', '.join(header)})"
            )
        quoted += sum(map(is_csv_quoted, row)) if delimiter == "\t" else 0
        yield where, dict(zip(header, row, strict=not has_comment))
    warn_about_csv_quotes(name, quoted)
    if delimiter == "\t":
        warn_about_carriage_returns(name, text.count("\r") - text.count("\r\n"))


def parse_rows(text: str, delimiter: str, name: str) -> Iterator[tuple[int, list[str]]]:
    """Split a table into rows with `csv_rows`, each with the number of its last line."""
    lines = io.StringIO(text, newline="\n")
    if delimiter == "\t":
        yield from enumerate(csv_rows(lines, delimiter), start=1)
        return
    reader = csv_rows(lines, delimiter)
    last_line = 0
    try:
        for row in reader:
            last_line = reader.line_num
            yield last_line, row
    except csv.Error as error:
        problem = describe_csv_error(error, last_line + 1, reader.line_num)
        raise DataError(f"{name}, {problem}") from None


def csv_rows(lines: Iterable[str], delimiter: str) -> Any:
    """Return an iterator of rows: literal fields for tabs, strict quoting for other delimiters.

    Strict quoting rejects an unclosed quote, which would swallow all later rows, and text after a
    closing quote. An empty line is an empty row.
    """
    if delimiter == "\t":
        texts = (line.removesuffix("\n").removesuffix("\r") for line in lines)
        return (text.split(delimiter) if text else [] for text in texts)
    return csv.reader(lines, delimiter=delimiter, strict=True)


def describe_csv_error(error: csv.Error, first: int, last: int) -> str:
    """Describe an error of `csv_rows` with its lines and how to fix it.

    >>> describe_csv_error(csv.Error("unexpected end of data"), 3, 9)
    'lines 3 to 9: a quote is not closed; double the quotes inside a quoted field'
    """
    where = f"line {last}" if first >= last else f"lines {first} to {last}"
    remedy = "; double the quotes inside a quoted field"
    if str(error) == "unexpected end of data":
        return f"{where}: a quote is not closed{remedy}"
    if str(error).startswith("new-line character"):
        return f"{where}: a carriage return outside quotes; end rows with \\n or \\r\\n"
    return f"{where}: {error}" + (remedy if "expected after" in str(error) else "")


def reject_header_row(row: Sequence[str], fields: Sequence[str], path: PathLike) -> None:
    """Raise an error if the first row repeats the column names given by `fields`."""
    if [cell.strip().lower() for cell in row] == [name.lower() for name in fields]:
        raise UsageError(
            f"{path}: the first line is a header ({', '.join(fields)}) and would be scored as a "
            "row: omit --fields"
        )


def check_unique_columns(names: Sequence[str], path: PathLike) -> None:
    """Raise an error if two columns have the same name."""
    if len(set(names)) < len(names):
        repeated = min(name for name in names if names.count(name) > 1)
        raise DataError(f"{path}: column {repeated!r} occurs more than once")


def check_delimiter(header: Sequence[str], delimiter: str, path: PathLike) -> None:
    """Raise an error if the only column name contains another common delimiter."""
    names = {",": "commas", ";": "semicolons", "\t": "tabs"}
    if len(header) != 1:
        return
    if other := next((mark for mark in "\t;," if mark in header[0]), ""):
        raise DataError(
            f"{path}: the columns are separated by {names[other]} ({header[0]}); expected "
            f"{names[delimiter]}: save the file with {names[delimiter]}, or rename it (.tsv for "
            "tabs, .csv for commas)"
        )


def warn_about_csv_quotes(path: PathLike, count: int) -> None:
    """Warn if fields of a TSV file are quoted as in CSV."""
    if count:
        logger.warning(
            "warning: %s: fields quoted as in CSV: %d; quotes are literal in TSV: write it without "
            "quoting, or as .csv",
            path,
            count,
        )


def is_csv_quoted(field: str) -> bool:
    """Return whether a field is in quotes and all quotes inside it are doubled.

    >>> is_csv_quoted('"She said ""no""."'), is_csv_quoted('"No."'), is_csv_quoted('""No""')
    (True, False, False)
    """
    inner = field[1:-1]
    is_enclosed = field[:1] == field[-1:] == '"'
    return is_enclosed and '""' in inner and '"' not in inner.replace('""', "")


def read_workbook(path: PathLike) -> LocatedRecords:
    """Yield the rows with their locations; cells are texts, empty ones too, as in a CSV file."""
    with explain_missing("an Excel workbook"):
        import openpyxl
    try:
        workbook = openpyxl.load_workbook(path, read_only=True, data_only=True)
        sheet = workbook.worksheets[0].iter_rows(values_only=True)
        header, *rows = [list(map(_cell_text, row)) for row in sheet] or [[]]
        workbook.close()
    except FileNotFoundError:
        raise DataError(f"{path}: no such file") from None
    except Exception as error:  # openpyxl, zipfile, zlib and XML parsers have no common base
        raise DataError(f"{path}: not an Excel workbook, or a damaged one ({error})") from None
    while header and not header[-1]:
        header.pop()
    if not header or not all(header):
        raise DataError(f"{path}: the first row has to name every column, such as source, mt")
    check_unique_columns(header, path)
    for number, row in enumerate(rows, start=2):
        if any(row):
            where = f"{path}, row {number}"
            record = dict(zip_longest(header, row[: len(header)], fillvalue=""))
            check_record(record, where)
            yield where, record


def _cell_text(value: Any) -> str:
    if value is None:
        return ""
    return format_name(value) if isinstance(value, int | float) else str(value)


def read_parquet(path: PathLike) -> LocatedRecords:
    if not Path(path).is_file():
        raise DataError(f"{path}: no such file")
    with explain_missing("a Parquet file"):
        from pyarrow import ArrowException, parquet
    try:
        schema = parquet.read_schema(path)
        check_unique_columns(schema.names, path)
        columns = [field.name for field in schema if _is_text_or_number(field.type)]
        rows = parquet.read_table(path, columns=columns).to_pylist()
    except (ArrowException, OSError, ValueError, OverflowError) as error:
        reason = " ".join(str(error).split())
        raise DataError(f"{path}: not a Parquet file ({reason})") from None
    for number, row in enumerate(rows, start=1):
        where = f"{path}, row {number}"
        record = {k: v for k, v in missing_to_null(row).items() if not k.startswith(PANDAS_INDEX)}
        check_record(record, where)
        yield where, record


def _is_text_or_number(kind: Any) -> bool:
    """Return whether an Arrow type holds texts, numbers, or lists or objects of these.

    Dates, times and binary values are never texts, scores or labels.
    """
    from pyarrow import types

    if types.is_dictionary(kind):
        return _is_text_or_number(kind.value_type)
    if types.is_nested(kind):
        return all(_is_text_or_number(kind.field(n).type) for n in range(kind.num_fields))
    return not (types.is_temporal(kind) or types.is_binary(kind) or types.is_large_binary(kind))


def missing_to_null(value: Any) -> Any:
    """Convert a value for JSON: NaN and infinity become None, tuples become lists.

    >>> missing_to_null({"dev": (float("nan"), 1.5)})
    {'dev': [None, 1.5]}
    """
    if isinstance(value, Mapping):
        return {key: missing_to_null(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [missing_to_null(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
