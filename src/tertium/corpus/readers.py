"""Split corpus files into parts, and read a part in batches with its bad rows.

A part is the unit of work that is done exactly once: some row groups of a Parquet file, or some
lines of a text file. The split depends only on the file content and the number of rows, so every
run splits a file in the same way. CSV may have line breaks in quotes and is not split.
"""

from __future__ import annotations

import csv
import itertools
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import IO, Any

from tertium.corpus.batches import (
    TEXT,
    BadRow,
    RecordBatch,
    RowBatch,
    TableBatch,
    columns_schema,
    rows_to_table,
    shorten,
)
from tertium.corpus.storage import (
    LOCALIZATION,
    SourceFile,
    is_remote,
    open_content,
    open_file,
)
from tertium.data import record_files, tables, text_files
from tertium.errors import DataError, TertiumError, UsageError
from tertium.localization.catalogs import read_units
from tertium.localization.projects import has_translation, is_wanted

BATCH_ROWS = 4096  # large enough to share work on repeated texts, small enough for any memory
NEURAL_BATCH_ROWS = 512  # neural metrics hold the token states of a whole batch in memory
MAX_PARTS_COMPRESSED = 16  # each part of a compressed file decompresses everything before it
UNIT_COLUMNS = ("id", "src", "mt", "doc", "state", "note")  # of localization files
SAMPLED_FILES, SAMPLED_ROWS = 16, 1000
ROW_PLACEHOLDER = "this row"  # stands for the location in messages of the shared readers
_PLACE = re.compile(
    rf"^({ROW_PLACEHOLDER}|the (hypothesis|source|references) of a segment)(: reference \d+)?: "
)


@dataclass(frozen=True)
class CorpusPart:
    """Some rows of one file: a range of lines, or a range of Parquet row groups."""

    file: SourceFile
    name: str
    rows: int | None = None  # None if unknown
    first: int = 1  # number of its first row or line in the file
    offset: int = 0  # byte offset of that line in an uncompressed text file
    groups: tuple[int, int] | None = None
    is_bounded: bool = False  # whether it ends after `rows` lines


@dataclass(frozen=True)
class ReadBatch:
    """A batch, the number of each of its rows in the file, and the bad rows among them."""

    batch: RowBatch
    numbers: Sequence[int]
    bad: Sequence[BadRow]


def plan_parts(files: Iterable[SourceFile], rows: int) -> list[CorpusPart]:
    """Split all files into parts of about `rows` rows."""
    parts: list[CorpusPart] = []
    for file in files:
        split = _parquet_parts(file, rows) if file.kind == "parquet" else _text_parts(file, rows)
        for number, part in enumerate(split):
            name = f"{file.name}-{number:05d}" if len(split) > 1 else file.name
            parts.append(replace(part, name=name))
    path_by_name: dict[str, str] = {}
    for part in parts:
        path = path_by_name.setdefault(part.name, part.file.path)
        if path != part.file.path:
            raise UsageError(
                f"{path} and {part.file.path} would both write {part.name}: rename one of them"
            )
    return parts


def _parquet_parts(file: SourceFile, rows: int) -> list[CorpusPart]:
    with _open_parquet(file) as reader:
        sizes = [reader.metadata.row_group(n).num_rows for n in range(reader.num_row_groups)]
    parts, start, first, count = [], 0, 1, 0
    for stop, size in enumerate(sizes, 1):
        count += size
        if stop == len(sizes) or count + sizes[stop] > rows:
            parts.append(CorpusPart(file, "", count, first, groups=(start, stop)))
            start, first, count = stop, first + count, 0
    return parts or [CorpusPart(file, "", 0, groups=(0, 0))]


def _text_parts(file: SourceFile, rows: int) -> list[CorpusPart]:
    if file.kind == LOCALIZATION:
        if is_remote(file.path):
            raise UsageError(f"{file.path}: localization files have to be local: download it first")
        return [CorpusPart(file, "")]
    if is_remote(file.path):  # counting lines would download everything twice
        return [CorpusPart(file, "")]
    starts, total = _find_part_starts(file, rows)
    if file.kind == "csv" or len(starts) < 2:
        return [CorpusPart(file, "", total)]
    step = -(-len(starts) // MAX_PARTS_COMPRESSED) if file.is_compressed else 1
    bounds = [*starts[::step], (total, 0)]
    return [
        CorpusPart(
            file, "", end - line, line + 1, 0 if file.is_compressed else offset, is_bounded=True
        )
        for (line, offset), (end, _) in itertools.pairwise(bounds)
        if end > line
    ]


def _find_part_starts(file: SourceFile, rows: int) -> tuple[list[tuple[int, int]], int]:
    """Return (lines, bytes) before each possible part start, every `rows` lines, and all lines."""
    starts, lines, offset, last_byte = [(0, 0)], 0, 0, b"\n"
    with open_content(file.path) as stream:
        while chunk := stream.read(1 << 20):
            count = chunk.count(b"\n")
            position = -1
            while lines + count >= starts[-1][0] + rows:
                for _ in range(starts[-1][0] + rows - lines):
                    position = chunk.index(b"\n", position + 1)
                    lines, count = lines + 1, count - 1
                starts.append((lines, offset + position + 1))
            lines, offset, last_byte = lines + count, offset + len(chunk), chunk[-1:]
    return starts, lines + (last_byte != b"\n")


def schema_of(
    file: SourceFile, fields: Sequence[str] | None, columns: Mapping[str, str] | None = None
) -> Any:
    """Return the columns of a file as a pyarrow schema; for JSONL of the given columns, or None."""
    if file.kind == "parquet":
        with _open_parquet(file) as reader:
            return reader.schema_arrow.remove_metadata()
    if file.kind == "jsonl":
        return columns_schema(columns) if columns else None
    return columns_schema(text_columns(file, fields))


def text_columns(file: SourceFile, fields: Sequence[str] | None) -> dict[str, str]:
    """Return the columns of a table or localization file."""
    names = UNIT_COLUMNS if file.kind == LOCALIZATION else _header(file, fields)
    return dict.fromkeys(names, TEXT)


def read_batches(
    part: CorpusPart,
    fields: Sequence[str] | None = None,
    columns: Mapping[str, str] | None = None,
    size: int = BATCH_ROWS,
) -> Iterator[ReadBatch]:
    """Read a part in batches of at most `size` rows.

    `fields` are the columns of a TSV or CSV without a header. With `columns`, JSONL is converted
    to a table and a row that does not fit is bad; without them, rows stay records.
    """
    if part.file.kind == "parquet":
        yield from _parquet_batches(part, size)
        return
    rows: Iterator[tuple[int, dict[str, Any] | str]]
    if part.file.kind == "jsonl":
        rows = _json_rows(part)
    elif part.file.kind == LOCALIZATION:
        rows = _unit_rows(part)
    else:
        rows = _table_rows(part, fields)
    if part.file.kind != "jsonl":
        columns = text_columns(part.file, fields)
    while batch := list(itertools.islice(rows, size)):
        bad = [BadRow(number, row) for number, row in batch if isinstance(row, str)]
        good = [(number, row) for number, row in batch if not isinstance(row, str)]
        yield _make_batch(good, bad, columns)


def _make_batch(
    good: list[tuple[int, dict[str, Any]]],
    bad: list[BadRow],
    columns: Mapping[str, str] | None,
) -> ReadBatch:
    if columns is None:
        return ReadBatch(RecordBatch([row for _, row in good]), [number for number, _ in good], bad)
    table, unfit = rows_to_table(good, columns)
    unfit_numbers = {row.row for row in unfit}
    numbers = [number for number, _ in good if number not in unfit_numbers]
    return ReadBatch(TableBatch(table), numbers, sorted([*bad, *unfit], key=lambda row: row.row))


def sample_records(
    parts: Sequence[CorpusPart], fields: Sequence[str] | None
) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield the readable first rows of some files with their places; of tables the text columns.

    The sample does not depend on how files are split. If no row is readable, the error gives the
    reason of the first one. A JSON list in place of JSON lines is an error.
    """
    count, bad = 0, ""
    full_files = [CorpusPart(file, "") for file in dict.fromkeys(part.file for part in parts)]
    step = -(-len(full_files) // SAMPLED_FILES)
    for part in full_files[::step]:
        if part.file.kind == "jsonl":
            _check_not_a_list(part)
        for reading in itertools.islice(read_batches(part, fields, size=SAMPLED_ROWS), 1):
            records = reading.batch.texts()
            for number, record in zip(reading.numbers, records, strict=True):
                yield f"{part.file.path}, row {number}", record
            count += len(records)
            if part.file.kind == "tsv":
                cells = (cell for record in records for cell in record.values())
                tables.warn_about_csv_quotes(
                    part.file.path,
                    sum(tables.is_csv_quoted(cell or "") for cell in cells),
                )
            bad = bad or "".join(f"row {row.row}: {row.reason}" for row in reading.bad[:1])
    if bad and not count:
        raise DataError(f"{full_files[0].file.path}: none of the first rows can be read; {bad}")


def _check_not_a_list(part: CorpusPart) -> None:
    number, line = next(((n, line) for n, line in _lines(part) if line.strip()), (0, b""))
    text = line.decode("utf-8", "replace").strip()
    if record_files.is_json_list_line(text):
        record_files.parse_json_object(text, f"{part.file.path}, row {number}")


def _open_parquet(file: SourceFile) -> Any:
    import pyarrow as pa
    from pyarrow.parquet import ParquetFile

    try:
        reader = ParquetFile(open_file(file.path), pre_buffer=False)
    except (pa.ArrowException, OSError) as error:
        raise DataError(f"{file.path}: not a Parquet file ({str(error).splitlines()[0]})") from None
    tables.check_unique_columns(reader.schema_arrow.names, file.path)
    return reader


def _parquet_batches(part: CorpusPart, size: int) -> Iterator[ReadBatch]:
    import pyarrow as pa

    number = part.first
    with _open_parquet(part.file) as reader:
        groups = range(*part.groups) if part.groups else range(reader.num_row_groups)
        try:
            for batch in reader.iter_batches(size, row_groups=list(groups)):
                table = pa.Table.from_batches([batch]).replace_schema_metadata(None)
                yield ReadBatch(TableBatch(table), range(number, number + len(batch)), [])
                number += len(batch)
        except (pa.ArrowException, OSError) as error:
            if isinstance(error, OSError) and error.errno is not None:
                raise
            reason = str(error).splitlines()[0]
            raise DataError(f"{part.file.path}: damaged Parquet file ({reason})") from None


def _lines(part: CorpusPart) -> Iterator[tuple[int, bytes]]:
    """Yield the lines of a part with their numbers; a line that is too long is cut."""
    with open_content(part.file.path, part.offset) as stream:
        if not part.offset:
            for _ in range(part.first - 1):
                _skip_line(stream)
        if part.first == 1:
            _skip_byte_order_mark(stream, part.file.path)
        numbers = itertools.count(part.first)
        for number in itertools.islice(numbers, part.rows if part.is_bounded else None):
            line = stream.readline(text_files.MAX_LINE_BYTES + 1)
            if not line:
                return
            if len(line) > text_files.MAX_LINE_BYTES and not line.endswith(b"\n"):
                _skip_line(stream)
            yield number, line


def _skip_line(stream: IO[bytes]) -> None:
    while (line := stream.readline(text_files.MAX_LINE_BYTES)) and not line.endswith(b"\n"):
        pass


def _skip_byte_order_mark(stream: Any, path: str) -> None:
    """Skip a UTF-8 byte order mark; refuse UTF-16 and UTF-32."""
    start = stream.peek(4)[:4]
    encoding = next(
        (name for mark, name in text_files.BYTE_ORDER_MARKS if start.startswith(mark)), ""
    )
    if encoding:
        remedy = f"iconv -f {encoding} -t UTF-8 FILE > NEW"
        raise DataError(f"{path}: {encoding}, not UTF-8; convert it first: {remedy}")
    if start.startswith(b"\xef\xbb\xbf"):
        stream.read(3)


def _json_rows(part: CorpusPart) -> Iterator[tuple[int, dict[str, Any] | str]]:
    for number, line in _lines(part):
        if line.strip():
            yield number, _reason_or(lambda: _parse_line(line))  # noqa: B023 (at once)


def _unit_rows(part: CorpusPart) -> Iterator[tuple[int, dict[str, Any] | str]]:
    """Yield the units of a localization file; one without a translation is a bad row."""
    for number, unit in enumerate(filter(is_wanted, read_units(part.file.path)), 1):
        source, target = (side.text if side else "" for side in (unit.source, unit.target))
        values = unit.name, source, target, unit.document, unit.state, " / ".join(unit.notes)
        row = dict(zip(UNIT_COLUMNS, values, strict=True))
        yield number, row if has_translation(unit) else f"no translation ({shorten(unit.name)})"


def _parse_line(line: bytes) -> dict[str, Any]:
    if len(line) > text_files.MAX_LINE_BYTES:
        limit = text_files.MAX_LINE_BYTES >> 20
        raise DataError(f"{ROW_PLACEHOLDER}: too long (a line of more than {limit} MB)")
    try:
        text = line.decode("utf-8").rstrip("\r\n")
        return record_files.parse_json_object(text, ROW_PLACEHOLDER)
    except UnicodeDecodeError as error:
        where = f"byte 0x{line[error.start]:02x} at position {error.start}"
        raise DataError(f"{ROW_PLACEHOLDER}: not UTF-8 ({where})") from None


def _reason_or(read: Callable[[], dict[str, Any]]) -> dict[str, Any] | str:
    try:
        return read()
    except TertiumError as error:
        return row_error_text(error)


def row_error_text(error: TertiumError) -> str:
    """Return the message of an error without its location, shortened."""
    return shorten(_PLACE.sub("", str(error)))


def _header(file: SourceFile, fields: Sequence[str] | None) -> list[str]:
    first = next(_cells(CorpusPart(file, "")), (0, None))[1]
    header = list(fields) if fields else first
    if not isinstance(header, list):
        raise DataError(f"{file.path}: no header ({header or 'the file is empty'})")
    header = [name.strip() for name in header]
    if fields and isinstance(first, list):
        tables.reject_header_row(first, header, file.path)
    tables.check_delimiter(header, "," if file.kind == "csv" else "\t", file.path)
    tables.check_unique_columns(header, file.path)
    return header


def _cells(part: CorpusPart) -> Iterator[tuple[int, list[str] | str]]:
    """Yield the rows of a table with the numbers of their last lines, or a reason as a string."""
    number = 0

    def texts() -> Iterator[str]:
        nonlocal number
        for number, line in _lines(part):  # noqa: B007 (rows below are numbered by it)
            yield line.decode("utf-8", "surrogateescape")

    reader = tables.csv_rows(texts(), "," if part.file.kind == "csv" else "\t")
    while True:
        first_line = number + 1
        try:
            row = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            yield (
                number,
                f"not a row ({tables.describe_csv_error(error, first_line, number)})",
            )
            continue
        if row:
            yield number, row


def _table_rows(
    part: CorpusPart, fields: Sequence[str] | None
) -> Iterator[tuple[int, dict[str, Any] | str]]:
    header = _header(part.file, fields)
    rows = _cells(part)
    if not fields and part.first == 1:
        next(rows)
    for number, row in rows:
        if isinstance(row, str):
            yield number, row
        else:
            yield number, _reason_or(lambda: _name_cells(header, row))  # noqa: B023 (at once)


def _name_cells(header: Sequence[str], row: Sequence[str]) -> dict[str, Any]:
    if sum(map(len, row)) > text_files.MAX_LINE_BYTES:
        raise DataError(
            f"{ROW_PLACEHOLDER}: too long (more than {text_files.MAX_LINE_BYTES >> 20} MB)"
        )
    if len(row) != len(header):
        raise DataError(
            f"{ROW_PLACEHOLDER}: wrong number of fields ({len(row)} for {len(header)} columns)"
        )
    for cell in row:
        text_files.check_text(cell, ROW_PLACEHOLDER)
    return dict(zip(header, row, strict=True))
