"""Read TSV and CSV tables; ragged rows and wrong delimiters are errors that name the line."""

from __future__ import annotations

import csv
import io
import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from tertium.atomic import PathLike
from tertium.data.text_files import display_name, read_text, warn_about_carriage_returns
from tertium.errors import DataError, UsageError

logger = logging.getLogger(__name__)

csv.field_size_limit(1 << 24)

RowFallback = Callable[[list[str], DataError], dict[str, str] | None]


def read_table(
    path: PathLike,
    fields: Sequence[str] | None = None,
    *,
    delimiter: str | None = None,
    fallback: RowFallback | None = None,
) -> Iterator[tuple[str, dict[str, str]]]:
    """Read the rows of a TSV or CSV file as dictionaries, each with its location.

    The first row is the header unless `fields` names the columns. The delimiter follows the suffix:
    comma for `.csv`, otherwise tab. CSV fields may be quoted. TSV fields are literal; a warning
    reports those that look quoted, because the quotes would be scored as text. If the last column
    name starts with `#` and a row lacks that column, the name is a comment. `fallback` is called
    with a row that has another number of fields: it returns a record, or None to skip the row.
    """
    if delimiter is None:
        delimiter = "," if ".csv" in Path(path).suffixes else "\t"
    return parse_table(read_text(path), display_name(path), fields, delimiter, fallback)


def parse_table(
    text: str,
    name: str,
    fields: Sequence[str] | None,
    delimiter: str,
    fallback: RowFallback | None = None,
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
            error = DataError(
                f"{where}: {len(row)} fields, but the header has {len(header)} "
                f"({', '.join(header)})"
            )
            if fallback is None:
                raise error
            if (record := fallback(row, error)) is not None:
                yield where, record
            continue
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
