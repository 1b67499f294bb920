"""Split corpus files into parts, and read a part in batches: tables, segments and bad rows.

A part is the unit of work that is done exactly once: some row groups of a Parquet file, or some
lines of a text file. The split depends only on the file content and the number of rows, so every
run splits a file in the same way. CSV may have line breaks in quotes and is not split.

Tables have one type per column, and become shards in Parquet. The types of JSONL columns are those
of the first rows. A column holds texts, lists of texts, numbers or booleans, and null.
Columns of objects or of mixed types hold JSON text. References may be texts or lists of texts.
"""

from __future__ import annotations

import codecs
import csv
import itertools
import json
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from typing import IO, Any

from tertium.core.errors import (
    DataError,
    MissingInputError,
    TertiumError,
    UnsupportedLanguageError,
    UsageError,
    short_repr,
)
from tertium.core.segment import Segment, checked_segment
from tertium.corpus.corpus_paths import LOCALIZATION, SourceFile
from tertium.data import tables, text_files
from tertium.data.record_files import parse_json_object
from tertium.data.records import (
    HYPOTHESIS_NAMES,
    REFERENCE_NAMES,
    SOURCE_NAMES,
    TEXT_NAMES,
    is_numbered_reference,
    lowercase_known_columns,
    segment_from_record,
)
from tertium.files.catalogs import read_units
from tertium.files.projects import has_translation, is_wanted
from tertium.files.units import Unit
from tertium.metrics.base.metric import Metric

BATCH_ROWS = 4096  # large enough to share work on repeated texts, small enough for any memory
MAX_PARTS_COMPRESSED = 16  # each part of a compressed file decompresses everything before it
DELIMITERS = {"tsv": "\t", "csv": ","}
UNIT_COLUMNS = ("id", "src", "mt", "doc", "state", "note")  # of localization files
SIDES = (HYPOTHESIS_NAMES, SOURCE_NAMES, REFERENCE_NAMES)
SAMPLED_FILES = 16
SAMPLED_ROWS = 1000
MAX_REASON_CHARS = 400
THIS_ROW = "this row"  # stands for the location in messages of the shared readers
_PLACE = re.compile(
    rf"^({THIS_ROW}|the (hypothesis|source|references) of a segment)(: reference \d+)?: "
)

Row = tuple[int, dict[str, Any] | str]  # its number and its values, or why it is a bad row


@dataclass(frozen=True)
class CorpusPart:
    """Some rows of one file: a range of lines, or a range of Parquet row groups."""

    file: SourceFile
    name: str = ""
    rows: int | None = None  # None if unknown
    first: int = 1  # number of its first row or line in the file
    offset: int = 0  # byte offset of that line in the decompressed file
    groups: Sequence[int] | None = None  # of Parquet; by default all


@dataclass(frozen=True)
class Batch:
    """Rows as a pyarrow table, their numbers in the file, and why other rows are bad."""

    table: Any
    numbers: Sequence[int]
    bad: dict[int, str]


def plan_parts(files: Iterable[SourceFile], rows: int) -> list[CorpusPart]:
    """Split all files into parts of about `rows` rows, each with a name of its own."""
    parts: dict[str, CorpusPart] = {}
    for file in files:
        split = _parquet_parts(file, rows) if file.kind == "parquet" else _text_parts(file, rows)
        for attempt in itertools.count(1):
            stem = file.name if attempt == 1 else f"{file.name}-{attempt}"
            names = [stem] if len(split) == 1 else [f"{stem}-{n:05d}" for n in range(len(split))]
            if parts.keys().isdisjoint(names):
                break
        for name, part in zip(names, split, strict=True):
            parts[name] = replace(part, name=name)
    return [*parts.values()]


def _parquet_parts(file: SourceFile, rows: int) -> list[CorpusPart]:
    with _open_parquet(file) as reader:
        sizes = [reader.metadata.row_group(n).num_rows for n in range(reader.num_row_groups)]
    starts = [0, *itertools.accumulate(sizes)]
    parts = []
    for _, group in itertools.groupby(range(len(sizes)), lambda n: starts[n] // rows):
        groups = [*group]
        first = starts[groups[0]]
        end = starts[groups[-1] + 1]
        parts.append(CorpusPart(file, rows=end - first, first=first + 1, groups=groups))
    return parts or [CorpusPart(file, rows=0)]


def _text_parts(file: SourceFile, rows: int) -> list[CorpusPart]:
    if not file.location.is_local or file.kind == LOCALIZATION:
        return [CorpusPart(file)]  # counting lines would download everything twice
    parts: list[CorpusPart] = []
    lines = offset = 0
    is_line_start = True
    with file.open_content() as stream:
        while piece := stream.readline(text_files.MAX_LINE_BYTES):
            if is_line_start:
                if lines % rows == 0:
                    parts.append(CorpusPart(file, first=lines + 1, offset=offset))
                lines += 1
            is_line_start = piece.endswith(b"\n")
            offset += len(piece)
    most = MAX_PARTS_COMPRESSED if file.is_compressed else 1 if file.kind == "csv" else len(parts)
    parts = parts[:: -(-len(parts) // most)] if parts else [CorpusPart(file)]
    ends = [*(part.first for part in parts[1:]), lines + 1]
    return [replace(part, rows=end - part.first) for part, end in zip(parts, ends, strict=True)]


def read_batches(
    part: CorpusPart, fields: Sequence[str], columns: Columns, size: int = BATCH_ROWS
) -> Iterator[Batch]:
    """Read a part in batches of at most `size` rows; a part without rows is one empty batch.

    `fields` are the columns of a TSV or CSV without a header, `columns` those of JSONL: a row that
    does not fit them is a bad row.
    """
    if part.file.kind == "parquet":
        yield from _parquet_batches(part, size)
        return
    if part.file.kind == "jsonl":
        rows = json_rows(part)
    elif part.file.kind == LOCALIZATION:
        rows = _unit_rows(part)
        columns = dict.fromkeys(UNIT_COLUMNS, TEXT)
    else:
        header = _read_header(part.file, fields)
        rows = _table_rows(part, header, fields)
        columns = dict.fromkeys(header, TEXT)
    is_first = True
    while (batch := list(itertools.islice(rows, size))) or is_first:
        yield _make_batch(batch, columns)
        is_first = False


def _make_batch(rows: Sequence[Row], columns: Columns) -> Batch:
    bad: dict[int, str] = {}
    fitting: dict[int, dict[str, Any]] = {}
    for number, row in rows:
        if isinstance(row, str):
            bad[number] = row
        elif reason := find_misfit(row, columns):
            bad[number] = reason
        else:
            fitting[number] = row
    return Batch(make_table(columns, fitting.values()), [*fitting], bad)


@contextmanager
def _open_parquet(file: SourceFile) -> Iterator[Any]:
    import pyarrow as pa
    from pyarrow.parquet import ParquetFile

    try:
        with ParquetFile(file.open_raw(), pre_buffer=False) as reader:
            tables.check_unique_columns(reader.schema_arrow.names, str(file))
            yield reader
    except (pa.ArrowException, OSError) as error:
        reason = str(error).splitlines()[0]
        raise DataError(f"{file}: not a Parquet file, or damaged ({reason})") from None


def _parquet_batches(part: CorpusPart, size: int) -> Iterator[Batch]:
    import pyarrow as pa

    start = part.first
    with _open_parquet(part.file) as reader:
        schema = reader.schema_arrow.remove_metadata()
        for batch in reader.iter_batches(size, row_groups=part.groups):
            table = pa.Table.from_batches([batch]).replace_schema_metadata(None)
            table.validate(full=True)  # texts are UTF-8
            yield Batch(table, range(start, start + len(table)), {})
            start += len(table)
    if start == part.first:
        yield Batch(schema.empty_table(), [], {})


def _lines(part: CorpusPart) -> Iterator[tuple[int, bytes]]:
    """Yield the lines of a part with their numbers; a line that is too long is cut."""
    limit = text_files.MAX_LINE_BYTES + 1
    with part.file.open_content(part.offset) as stream:
        for number in itertools.islice(itertools.count(part.first), part.rows):
            line = rest = stream.readline(limit)
            while len(rest) == limit and not rest.endswith(b"\n"):
                rest = stream.readline(limit)
            if not line:
                return
            if number == 1:
                if line.startswith(tuple(mark for mark, _ in text_files.BYTE_ORDER_MARKS)):
                    text_files.decode(line, str(part.file))  # an error that names the encoding
                line = line.removeprefix(codecs.BOM_UTF8)
            yield number, line


def json_rows(part: CorpusPart) -> Iterator[Row]:
    """Yield the objects of a JSONL file."""

    def parse(line: bytes) -> dict[str, Any]:
        text = line.decode("utf-8", "surrogateescape").rstrip("\r\n")
        _check_text(text, len(line))
        return parse_json_object(text, THIS_ROW)

    return _parse_rows(((number, line) for number, line in _lines(part) if line.strip()), parse)


def _table_rows(part: CorpusPart, header: Sequence[str], fields: Sequence[str]) -> Iterator[Row]:
    """Yield the rows of a TSV or CSV file."""

    def parse(row: list[str] | str) -> dict[str, Any]:
        if isinstance(row, str):
            raise DataError(row)
        if len(row) != len(header):
            raise DataError(f"wrong number of fields ({len(row)} for {len(header)} columns)")
        text = "\t".join(row)
        _check_text(text, len(text))
        return dict(zip(header, row, strict=True))

    rows = _cells(part)
    if not fields and part.first == 1:
        next(rows)
    return _parse_rows(rows, parse)


def _unit_rows(part: CorpusPart) -> Iterator[Row]:
    """Yield the units of a localization file; one without a translation is a bad row."""

    def parse(unit: Unit) -> dict[str, Any]:
        if not has_translation(unit):
            raise DataError(f"no translation ({unit.name})")
        source = str(unit.source or "")
        target = str(unit.target or "")
        values = unit.name, source, target, unit.document, unit.state, " / ".join(unit.notes)
        return dict(zip(UNIT_COLUMNS, values, strict=True))

    if not part.file.location.is_local:
        raise UsageError(f"{part.file}: localization files have to be local: download it first")
    units = filter(is_wanted, read_units(part.file.location.path))
    return _parse_rows(enumerate(units, 1), parse)


def _parse_rows(
    rows: Iterable[tuple[int, Any]], parse: Callable[[Any], dict[str, Any]]
) -> Iterator[Row]:
    """Yield the values of rows, or why a row is bad."""
    for number, row in rows:
        try:
            yield number, parse(row)
        except DataError as error:
            yield number, row_error_text(error)


def _check_text(text: str, size: int) -> None:
    if size > text_files.MAX_LINE_BYTES:
        raise DataError(f"too long (more than {text_files.MAX_LINE_BYTES >> 20} MB)")
    text_files.check_text(text, THIS_ROW)


def _read_header(file: SourceFile, fields: Sequence[str]) -> list[str]:
    first = next(_cells(CorpusPart(file)), (0, "the file is empty"))[1]
    header = fields or first
    if isinstance(header, str):
        raise DataError(f"{file}: no header ({header})")
    header = [name.strip() for name in header]
    if fields and isinstance(first, list):
        tables.reject_header_row(first, header, str(file))
    tables.check_delimiter(header, DELIMITERS[file.kind], str(file))
    tables.check_unique_columns(header, str(file))
    return header


def _cells(part: CorpusPart) -> Iterator[tuple[int, list[str] | str]]:
    """Yield the rows of a table with the numbers of their last lines, or a reason as a string."""
    number = 0

    def texts() -> Iterator[str]:
        nonlocal number
        for number, line in _lines(part):  # noqa: B007 (rows below are numbered by it)
            yield line.decode("utf-8", "surrogateescape")

    reader = tables.csv_rows(texts(), DELIMITERS[part.file.kind])
    while True:
        first_line = number + 1
        try:
            row = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            row = f"not a row ({tables.describe_csv_error(error, first_line, number)})"
        if row:
            yield number, row


def row_error_text(error: TertiumError) -> str:
    """Return the message of an error without its location; the middle of a long one is cut."""
    reason = _PLACE.sub("", str(error))
    if len(reason) <= MAX_REASON_CHARS:
        return reason
    return f"{reason[: MAX_REASON_CHARS - 40]} ... {reason[-35:]}"


def sample_rows(
    files: Sequence[SourceFile], fields: Sequence[str], longest: int
) -> tuple[Columns, list[Segment]]:
    """Return the columns of JSONL files, and the first rows of files as segments.

    Some files are read, evenly spread; the choice does not depend on how files are split. It is an
    error if no row can be read.
    """
    sampled = files[:: -(-len(files) // SAMPLED_FILES)]
    columns = infer_columns(row for file in sampled for row in _first_objects(file))
    segments: list[Segment] = []
    reason = "there are no rows"
    for file in sampled:
        batch = next(read_batches(CorpusPart(file), fields, columns, SAMPLED_ROWS))
        if file.kind == "tsv":
            cells = itertools.chain(*batch.table.to_pydict().values())
            tables.warn_about_csv_quotes(str(file), sum(map(tables.is_csv_quoted, cells)))
        segments += read_segments(batch, longest).values()
        if batch.bad:
            number = min(batch.bad)
            reason = f"row {number}: {batch.bad[number]}"
    if not segments:
        raise DataError(f"{files[0]}: none of the first rows can be scored; {reason}")
    return columns, segments


def _first_objects(file: SourceFile) -> Iterator[Mapping[str, Any]]:
    rows = json_rows(CorpusPart(file)) if file.kind == "jsonl" else ()
    for index, (number, row) in enumerate(itertools.islice(rows, SAMPLED_ROWS)):
        if not isinstance(row, str):
            yield row
        elif index == 0 and "jq -c" in row:  # a JSON list
            raise DataError(f"{file}, row {number}: {row}")


def find_example(segments: Sequence[Segment], metrics: Sequence[Metric]) -> Segment:
    """Return the first segment that metrics can score; refuse unsupported languages."""
    for example in segments:
        reason = missing_input(metrics, [example])
        if not reason:
            break
    else:
        reason = reason.replace("segment 1", THIS_ROW)
        raise MissingInputError(f"none of the first rows can be scored: {reason}")
    usable = [other for other in segments if not missing_input(metrics, [example, other])]
    for metric in metrics:
        metric.check(usable)
    return example


def read_segments(batch: Batch, longest: int) -> dict[int, Segment]:
    """Return the segments of rows by their numbers; add the reasons of other rows to the batch."""
    table = batch.table
    names = sorted(filter(is_text_name, table.column_names), key=_side_number)
    if not any(name.lower() in HYPOTHESIS_NAMES for name in names):
        names = table.column_names  # which are part of the reason
    columns = [table[name].to_pylist() for name in names]
    sides = [_side_number(name) for name in names]
    has_one_text_per_side = sides in ([0, 2], [0, 1, 2]) and all(
        {*map(type, column)} == {str} for column in columns
    )
    segments: dict[int, Segment] = {}
    for number, values in zip(batch.numbers, zip(*columns, strict=True), strict=True):
        try:
            if has_one_text_per_side and not values[-1].startswith('["'):
                source = values[1] if len(values) == len(SIDES) else None
                segment = checked_segment(values[0], source, values[-1:])
            else:
                record = lowercase_known_columns(dict(zip(names, values, strict=True)))
                segment = segment_from_record(record, THIS_ROW, is_checked=True)
            texts = (segment.hypothesis, segment.source or "", *segment.references)
            length = max(map(len, texts))
            if length > longest:
                raise DataError(f"too long ({length:,} characters, at most {longest:,})")
            segments[number] = segment
        except TertiumError as error:
            batch.bad[number] = row_error_text(error)
    return segments


def _side_number(name: str) -> int:
    """Return the position of a column's side in `SIDES`; numbered references come last."""
    lowered = name.lower()
    return next((n for n, side in enumerate(SIDES) if lowered in side), len(SIDES))


def missing_input(metrics: Sequence[Metric], segments: Sequence[Segment]) -> str:
    """Return which input that metrics require is missing, or an empty string."""
    for metric in metrics:
        try:
            with suppress(UnsupportedLanguageError):  # checked on the first rows; later a warning
                metric.check(segments)
        except MissingInputError as error:
            return str(error)
    return ""


def reject_incomplete(
    segments: dict[int, Segment], bad: dict[int, str], metrics: Sequence[Metric], example: Segment
) -> None:
    """Remove segments that lack an input, which metrics require or the example has."""
    if missing_input(metrics, [example, *segments.values()]):
        for number, segment in [*segments.items()]:
            if reason := missing_input(metrics, [example, segment]):
                del segments[number]
                bad[number] = f"missing field: {reason.replace('segment 2', THIS_ROW)}"


ROW_GROUP_ROWS = 65_536

Columns = Mapping[str, str]  # the kind of value of each column, besides null
TEXT = "text"
TEXTS = "list of texts"
NUMBER = "number"
JSON = "any value"
KINDS = {str: TEXT, list: TEXTS, bool: "boolean", int: "integer", float: NUMBER}
REFERENCES = "text or list of texts"
ACCEPTED = {NUMBER: ("integer", NUMBER), REFERENCES: (TEXT, TEXTS)}  # others accept themselves
ARROW_TYPES = {"integer": "int64", NUMBER: "double", "boolean": "bool"}


def is_text_name(name: str) -> bool:
    """Return whether a column holds translations, sources or references (case-insensitive)."""
    lowered = name.lower()
    return lowered in TEXT_NAMES or is_numbered_reference(lowered)


def infer_columns(rows: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    """Return the kind of value of each column, from the first rows."""
    columns: dict[str, set[str]] = {}
    for row in rows:
        for name, value in row.items():
            kinds = columns.setdefault(name, set())
            if value is not None:
                kinds.add(_kind_of(value))
    return {name: _choose_kind(name, kinds) for name, kinds in columns.items()}


def _kind_of(value: Any) -> str:
    """Return the kind of a JSON value that is not null."""
    kind = KINDS.get(type(value), JSON)
    is_large = kind == "integer" and abs(value) >> 63
    is_mixed = kind == TEXTS and not all(isinstance(item, str) for item in value)
    return JSON if is_large or is_mixed else kind


def _choose_kind(name: str, kinds: set[str]) -> str:
    if is_text_name(name):  # other values belong to bad rows
        is_single = name.lower() in (*HYPOTHESIS_NAMES, *SOURCE_NAMES)
        return REFERENCES if TEXTS in kinds and not is_single else TEXT
    if kinds == {"integer", NUMBER}:
        return NUMBER
    return JSON if len(kinds) > 1 else next(iter(kinds), TEXT)


def make_table(columns: Columns, rows: Collection[Mapping[str, Any]]) -> Any:
    """Make a table of rows; a value that is missing is null."""
    import pyarrow as pa

    arrays = []
    for name, kind in columns.items():
        values = [row.get(name) for row in rows]
        if kind == JSON:
            values = [v if v is None else json.dumps(v, ensure_ascii=False) for v in values]
        elif kind == REFERENCES:
            values = [[value] if isinstance(value, str) else value for value in values]
        arrow_type = pa.type_for_alias(ARROW_TYPES.get(kind, "string"))
        if kind in (TEXTS, REFERENCES):
            arrow_type = pa.list_(arrow_type)
        arrays.append(pa.array(values, arrow_type))
    return pa.table(arrays, [*columns])


def find_misfit(row: Mapping[str, Any], columns: Columns) -> str:
    """Return why a row does not fit the columns, or an empty string."""
    for name, value in row.items():
        kind = columns.get(name)
        if kind is None:
            return f"key {name!r} is not in the first rows"
        if value is None or kind == JSON or _kind_of(value) in ACCEPTED.get(kind, (kind,)):
            continue
        expected = f"expected {kind}, got {short_repr(value)}"
        if is_text_name(name):
            return expected
        return f"another type than in the first rows (column {name!r}: {expected})"
    return ""


def write_parquet(stream: IO[bytes], tables: Iterator[Any]) -> None:
    """Write tables with the same columns; there is at least one."""
    import pyarrow as pa
    from pyarrow.parquet import ParquetWriter

    group = [next(tables)]
    with ParquetWriter(stream, group[0].schema, compression="zstd") as writer:
        for table in tables:
            if sum(map(len, group)) >= ROW_GROUP_ROWS:
                writer.write_table(pa.concat_tables(group), row_group_size=ROW_GROUP_ROWS)
                group = []
            group.append(table)
        writer.write_table(pa.concat_tables(group), row_group_size=ROW_GROUP_ROWS)
