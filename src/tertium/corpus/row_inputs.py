"""The texts of rows: segments that metrics can score, and why other rows are bad."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

from tertium.corpus.corpus_paths import SourceFile
from tertium.corpus.readers import (
    THIS_ROW,
    Batch,
    CorpusPart,
    json_rows,
    read_batches,
    row_error_text,
)
from tertium.corpus.row_tables import Kinds, infer_columns, is_text_name
from tertium.data.records import (
    HYPOTHESIS_NAMES,
    REFERENCE_NAMES,
    SOURCE_NAMES,
    lowercase_known_columns,
    segment_from_record,
)
from tertium.data.tables import is_csv_quoted, warn_about_csv_quotes
from tertium.errors import DataError, MissingInputError, TertiumError, UnsupportedLanguageError
from tertium.metrics.base.metric import Metric
from tertium.segment import Segment, checked_segment

SIDES = (HYPOTHESIS_NAMES, SOURCE_NAMES, REFERENCE_NAMES)
SAMPLED_FILES, SAMPLED_ROWS = 16, 1000


def select_files(files: Sequence[SourceFile]) -> Sequence[SourceFile]:
    """Return some files, evenly spread; the choice does not depend on how files are split."""
    return files[:: -(-len(files) // SAMPLED_FILES)]


def sample_columns(files: Sequence[SourceFile]) -> Mapping[str, Kinds]:
    """Return the columns of the first rows of JSONL files."""
    return infer_columns(row for file in files for row in _first_objects(file))


def _first_objects(file: SourceFile) -> Iterator[Mapping[str, Any]]:
    rows = json_rows(CorpusPart(file)) if file.kind == "jsonl" else ()
    for index, (number, row) in enumerate(itertools.islice(rows, SAMPLED_ROWS)):
        if not isinstance(row, str):
            yield row
        elif index == 0 and "jq -c" in row:  # a JSON list
            raise DataError(f"{file}, row {number}: {row}")


def sample_segments(
    files: Sequence[SourceFile], fields: Sequence[str], columns: Mapping[str, Kinds], longest: int
) -> list[Segment]:
    """Return the first rows of files that can be read; raise an error if there are none."""
    segments: list[Segment] = []
    reason = "there are no rows"
    for file in files:
        batch = next(read_batches(CorpusPart(file), fields, columns, SAMPLED_ROWS))
        if file.kind == "tsv":
            cells = itertools.chain(*batch.table.to_pydict().values())
            warn_about_csv_quotes(str(file), sum(map(is_csv_quoted, cells)))
        segments += filter(None, read_segments(batch, longest))
        if batch.bad:
            number = min(batch.bad)
            reason = f"row {number}: {batch.bad[number]}"
    if not segments:
        raise DataError(f"{files[0]}: none of the first rows can be scored; {reason}")
    return segments


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


def read_segments(batch: Batch, longest: int) -> list[Segment | None]:
    """Return the segment of each row; None for a bad row, whose reason is added to the batch."""
    import pyarrow as pa

    table = batch.table
    names = sorted((name for name in table.column_names if is_text_name(name)), key=_side_number)
    if not any(name.lower() in HYPOTHESIS_NAMES for name in names):
        names = table.column_names  # which are part of the reason
    try:
        columns, is_utf8 = [table[name].to_pylist() for name in names], True
    except UnicodeDecodeError:
        columns, is_utf8 = [_decode_leniently(table[name]) for name in names], False
    has_one_text_per_side = (
        is_utf8
        and [_side_number(name) for name in names] in ([0, 2], [0, 1, 2])
        and all(table[n].type == pa.string() and not table[n].null_count for n in names)
    )
    segments: list[Segment | None] = []
    for number, values in zip(batch.numbers, zip(*columns, strict=True), strict=True):
        try:
            if has_one_text_per_side and not values[-1].startswith('["'):
                source = values[1] if len(values) == len(SIDES) else None
                segment = checked_segment(values[0], source, values[-1:])
            else:
                record = lowercase_known_columns(dict(zip(names, values, strict=True)))
                segment = segment_from_record(record, THIS_ROW, is_checked=is_utf8)
            texts = (segment.hypothesis, segment.source or "", *segment.references)
            length = max(map(len, texts))
            if length > longest:
                raise DataError(f"too long ({length:,} characters, at most {longest:,})")
            segments.append(segment)
        except TertiumError as error:
            segments.append(None)
            batch.bad[number] = row_error_text(error)
    return segments


def _side_number(name: str) -> int:
    """Return the position of a column's side in `SIDES`; numbered references come last."""
    lowered = name.lower()
    return next((n for n, side in enumerate(SIDES) if lowered in side), len(SIDES))


def _decode_leniently(column: Any) -> list[Any]:
    """Return column values; bytes that are not UTF-8 become surrogates, which no text may have."""
    import pyarrow as pa

    if column.type not in (pa.string(), pa.large_string()):
        values: list[Any] = column.to_pylist()
        return values
    raw = column.cast(pa.large_binary()).to_pylist()
    return [None if value is None else value.decode("utf-8", "surrogateescape") for value in raw]


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
    batch: Batch, segments: list[Segment | None], metrics: Sequence[Metric], example: Segment
) -> None:
    """Replace segments that lack an input, which metrics require or the example has, by None."""
    usable = [segment for segment in segments if segment is not None]
    if not missing_input(metrics, [example, *usable]):
        return
    for index, segment in enumerate(segments):
        reason = missing_input(metrics, [example, segment]) if segment else ""
        if reason:
            segments[index] = None
            reason = reason.replace("segment 2", THIS_ROW)
            batch.bad[batch.numbers[index]] = f"missing field: {reason}"
