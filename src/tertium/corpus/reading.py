"""A corpus in parts: how files are cut, and how a part is read in blocks with bad rows aside.

A part is what one worker does at once and what is done exactly once: some row groups of a Parquet
file, or some lines of a text file. How a file is cut depends on its content and on the number of
rows alone, so that every run cuts it alike. CSV may have line ends in quotes and stays whole.
"""

from __future__ import annotations

import csv
import itertools
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import IO, Any

from tertium.corpus.blocks import BadRow, Block, RecordBlock, TableBlock, fit_rows, shorten
from tertium.corpus.places import SourceFile, is_remote, open_content, open_file
from tertium.data.formats import (
    BYTE_ORDER_MARKS,
    check_delimiter,
    check_names_differ,
    check_no_header,
    check_text,
    explain_rows,
    is_line_of_list,
    is_quoted,
    parse_object,
    split_rows,
    warn_of_quotes,
)
from tertium.errors import DataError, TertiumError, UsageError

BLOCK = 4096  # rows at once: enough to share work on repeated texts, little enough for any memory
NETWORK_BLOCK = 512  # under a network, which holds the states of all pieces of a block at once
LONGEST_LINE = 1 << 24  # bytes of a line that are read at once; a longer one is a bad row
MOST_CUTS = 16  # of a packed file, since each part unpacks all that is before it
SAMPLED_FILES, SAMPLED_ROWS = 16, 1000
HERE = "this row"  # what stands for the place in errors of the readers that all commands share
_PLACE = re.compile(
    rf"^({HERE}|the (hypothesis|source|references) of a segment)(: reference \d+)?: "
)


@dataclass(frozen=True)
class CorpusPart:
    """Some rows of one file: of a text from an offset and line on, of Parquet some row groups."""

    file: SourceFile
    name: str
    rows: int | None = None  # as far as they are known
    first: int = 1  # the number of its first row, or line, in the file
    offset: int = 0  # bytes before that line in a plain text
    groups: tuple[int, int] | None = None
    cut: bool = False  # whether it ends after `rows` lines


@dataclass(frozen=True)
class Reading:
    """A block, the number of each of its rows, and what was put aside on the way."""

    block: Block
    numbers: Sequence[int]
    bad: Sequence[BadRow]


def plan_parts(files: Iterable[SourceFile], rows: int) -> list[CorpusPart]:
    """All files cut into parts of about so many rows."""
    parts: list[CorpusPart] = []
    for file in files:
        cuts = _parquet_parts(file, rows) if file.kind == "parquet" else _text_parts(file, rows)
        several = len(cuts) > 1
        for number, part in enumerate(cuts):
            parts.append(replace(part, name=f"{file.name}-{number:05d}" if several else file.name))
    homes: dict[str, str] = {}
    for part in parts:
        other = homes.setdefault(part.name, part.file.path)
        if other != part.file.path:
            raise UsageError(
                f"{other} and {part.file.path} would both write {part.name}: rename one"
            )
    return parts


def _parquet_parts(file: SourceFile, rows: int) -> list[CorpusPart]:
    with _open_parquet(file) as reader:
        sizes = [reader.metadata.row_group(n).num_rows for n in range(reader.num_row_groups)]
    parts, start, first, held = [], 0, 1, 0
    for stop, size in enumerate(sizes, 1):
        held += size
        if stop == len(sizes) or held + sizes[stop] > rows:
            parts.append(CorpusPart(file, "", held, first, groups=(start, stop)))
            start, first, held = stop, first + held, 0
    return parts or [CorpusPart(file, "", 0, groups=(0, 0))]


def _text_parts(file: SourceFile, rows: int) -> list[CorpusPart]:
    if is_remote(file.path):  # to count lines would be to fetch everything twice
        return [CorpusPart(file, "")]
    marks, total = _find_marks(file, rows)
    if file.kind == "csv" or len(marks) < 2:
        return [CorpusPart(file, "", total)]
    step = -(-len(marks) // MOST_CUTS) if file.is_packed else 1
    chosen = [*marks[::step], (total, 0)]
    return [
        CorpusPart(file, "", after - line, line + 1, 0 if file.is_packed else offset, cut=True)
        for (line, offset), (after, _) in itertools.pairwise(chosen)
        if after > line
    ]


def _find_marks(file: SourceFile, rows: int) -> tuple[list[tuple[int, int]], int]:
    """After how many lines and bytes a part may begin, every so many rows; and all lines."""
    marks, lines, passed, last = [(0, 0)], 0, 0, b"\n"
    with open_content(file.path) as stream:
        while piece := stream.read(1 << 20):
            count = piece.count(b"\n")
            place = -1
            while lines + count >= marks[-1][0] + rows:
                for _ in range(marks[-1][0] + rows - lines):
                    place = piece.index(b"\n", place + 1)
                    lines, count = lines + 1, count - 1
                marks.append((lines, passed + place + 1))
            lines, passed, last = lines + count, passed + len(piece), piece[-1:]
    return marks, lines + (last != b"\n")


def schema_of(file: SourceFile, fields: Sequence[str] | None, jsonl: Any = None) -> Any:
    """The columns of a file as a schema of pyarrow; those of JSONL are given, or None."""
    import pyarrow as pa

    if file.kind == "parquet":
        with _open_parquet(file) as reader:
            return reader.schema_arrow.remove_metadata()
    if file.kind == "jsonl":
        return jsonl
    return pa.schema([(name, pa.string()) for name in _header(file, fields)])


def read_blocks(
    part: CorpusPart, fields: Sequence[str] | None = None, schema: Any = None, size: int = BLOCK
) -> Iterator[Reading]:
    """A part in blocks of at most so many rows.

    `fields` are the columns of a TSV or CSV without a header. With a `schema`, JSONL becomes
    tables of its columns, and a row that does not fit is bad; without one, it stays records.
    """
    if part.file.kind == "parquet":
        yield from _parquet_blocks(part, size)
        return
    rows = _json_rows(part) if part.file.kind == "jsonl" else _table_rows(part, fields)
    if part.file.kind != "jsonl":
        schema = schema_of(part.file, fields)
    while batch := list(itertools.islice(rows, size)):
        bad = [BadRow(number, row) for number, row in batch if isinstance(row, str)]
        good = [(number, row) for number, row in batch if not isinstance(row, str)]
        yield _as_reading(good, bad, schema)


def _as_reading(good: list[tuple[int, dict[str, Any]]], bad: list[BadRow], schema: Any) -> Reading:
    if schema is None:
        return Reading(RecordBlock([row for _, row in good]), [number for number, _ in good], bad)
    table, unfit = fit_rows(good, schema)
    left_out = {row.row for row in unfit}
    numbers = [number for number, _ in good if number not in left_out]
    return Reading(TableBlock(table), numbers, sorted([*bad, *unfit], key=lambda row: row.row))


def sample_records(
    parts: Sequence[CorpusPart], fields: Sequence[str] | None
) -> Iterator[Mapping[str, Any]]:
    """The first rows of some files, as far as they can be read; of tables, their texts.

    However files are cut, they are the same. Where none can be, the first that could not says why.
    A list of JSON in place of lines is refused: its last row could be read, and no other.
    """
    read, bad = 0, ""
    whole = [CorpusPart(file, "") for file in dict.fromkeys(part.file for part in parts)]
    step = -(-len(whole) // SAMPLED_FILES)
    for part in whole[::step]:
        if part.file.kind == "jsonl":
            _check_no_list(part)
        for reading in itertools.islice(read_blocks(part, fields, size=SAMPLED_ROWS), 1):
            yield from (records := reading.block.texts())
            read += len(records)
            if part.file.kind == "tsv":
                cells = (cell for record in records for cell in record.values())
                warn_of_quotes(part.file.path, sum(is_quoted(cell or "") for cell in cells))
            bad = bad or "".join(f"row {row.row}: {row.reason}" for row in reading.bad[:1])
    if bad and not read:
        raise DataError(f"{whole[0].file.path}: none of the first rows can be read; {bad}")


def _check_no_list(part: CorpusPart) -> None:
    number, line = next(((n, line) for n, line in _lines(part) if line.strip()), (0, b""))
    text = line.decode("utf-8", "replace").strip()
    if is_line_of_list(text):
        parse_object(text, f"{part.file.path}, row {number}")


def _open_parquet(file: SourceFile) -> Any:
    import pyarrow as pa
    from pyarrow.parquet import ParquetFile

    try:
        reader = ParquetFile(open_file(file.path), pre_buffer=False)
    except (pa.ArrowException, OSError) as error:
        raise DataError(f"{file.path}: not a Parquet file ({str(error).splitlines()[0]})") from None
    check_names_differ(reader.schema_arrow.names, file.path)
    return reader


def _parquet_blocks(part: CorpusPart, size: int) -> Iterator[Reading]:
    import pyarrow as pa

    number = part.first
    with _open_parquet(part.file) as reader:
        groups = range(*part.groups) if part.groups else range(reader.num_row_groups)
        try:
            for batch in reader.iter_batches(size, row_groups=list(groups)):
                table = pa.Table.from_batches([batch]).replace_schema_metadata(None)
                yield Reading(TableBlock(table), range(number, number + len(batch)), [])
                number += len(batch)
        except (pa.ArrowException, OSError) as error:
            if isinstance(error, OSError) and error.errno is not None:
                raise
            reason = str(error).splitlines()[0]
            raise DataError(f"{part.file.path}: damaged Parquet file ({reason})") from None


def _lines(part: CorpusPart) -> Iterator[tuple[int, bytes]]:
    """The lines of a part with their numbers; of one that is too long, what was read first."""
    with open_content(part.file.path, part.offset) as stream:
        if not part.offset:
            for _ in range(part.first - 1):
                _skip_line(stream)
        if part.first == 1:
            _skip_mark(stream, part.file.path)
        numbers = itertools.count(part.first)
        for number in itertools.islice(numbers, part.rows if part.cut else None):
            line = stream.readline(LONGEST_LINE + 1)
            if not line:
                return
            if len(line) > LONGEST_LINE and not line.endswith(b"\n"):
                _skip_line(stream)
            yield number, line


def _skip_line(stream: IO[bytes]) -> None:
    while (line := stream.readline(LONGEST_LINE)) and not line.endswith(b"\n"):
        pass


def _skip_mark(stream: Any, path: str) -> None:
    """Read past the mark of UTF-8; a text in UTF-16 or UTF-32 has no row that could be read."""
    start = stream.peek(4)[:4]
    marked = next((name for mark, name in BYTE_ORDER_MARKS if start.startswith(mark)), "")
    if marked:
        remedy = f"iconv -f {marked} -t UTF-8 FILE > NEW"
        raise DataError(f"{path}: {marked}, not UTF-8; convert it first: {remedy}")
    if start.startswith(b"\xef\xbb\xbf"):
        stream.read(3)


def _json_rows(part: CorpusPart) -> Iterator[tuple[int, dict[str, Any] | str]]:
    for number, line in _lines(part):
        if line.strip():
            yield number, _reason_or(lambda: parse_object(_decode(line), HERE))  # noqa: B023


def _decode(line: bytes) -> str:
    if len(line) > LONGEST_LINE:
        raise DataError(f"{HERE}: too long (a line of more than {LONGEST_LINE >> 20} MB)")
    try:
        return line.decode("utf-8").rstrip("\r\n")
    except UnicodeDecodeError as error:
        where = f"byte 0x{line[error.start]:02x} at position {error.start}"
        raise DataError(f"{HERE}: not UTF-8 ({where})") from None


def _reason_or(read: Callable[[], dict[str, Any]]) -> dict[str, Any] | str:
    """A row, or why it is none."""
    try:
        return read()
    except TertiumError as error:
        return explain_row(error)


def explain_row(error: TertiumError) -> str:
    """What an error says of a row, without the words that stand for its place, and in short."""
    return shorten(_PLACE.sub("", str(error)))


def _header(file: SourceFile, fields: Sequence[str] | None) -> list[str]:
    """The names of the columns of a TSV or CSV file."""
    first = next(_cells(CorpusPart(file, "")), (0, None))[1]
    header = list(fields) if fields else first
    if not isinstance(header, list):
        raise DataError(f"{file.path}: no header ({header or 'the file is empty'})")
    header = [name.strip() for name in header]
    if fields and isinstance(first, list):
        check_no_header(first, header, file.path)
    check_delimiter(header, "," if file.kind == "csv" else "\t", file.path)
    check_names_differ(header, file.path)
    return header


def _cells(part: CorpusPart) -> Iterator[tuple[int, list[str] | str]]:
    """The rows of a table with the numbers of their last lines, or why one cannot be read."""
    number = 0

    def texts() -> Iterator[str]:
        nonlocal number
        for number, line in _lines(part):  # noqa: B007 (what the rows below are numbered by)
            yield line.decode("utf-8", "surrogateescape")

    reader = split_rows(texts(), "," if part.file.kind == "csv" else "\t")
    while True:
        begun = number + 1
        try:
            row = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            yield number, f"not a row ({explain_rows(error, begun, number)})"
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
    if sum(map(len, row)) > LONGEST_LINE:
        raise DataError(f"{HERE}: too long (more than {LONGEST_LINE >> 20} MB)")
    if len(row) != len(header):
        raise DataError(f"{HERE}: wrong number of fields ({len(row)} for {len(header)} columns)")
    for cell in row:
        check_text(cell, HERE)
    return dict(zip(header, row, strict=True))
