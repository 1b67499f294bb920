"""Batches of corpus rows: a pyarrow table, or JSON records when JSONL is written as JSONL.

Parquet, TSV and CSV rows are moved as columns. JSONL that is written as JSONL keeps each object
unchanged, with any keys and value types. JSONL that is written in another format gets its columns
from the first rows; a row that does not fit these columns is a bad row.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tertium.arrays import BoolArray
from tertium.data.records import (
    HYPOTHESIS_NAMES,
    REFERENCE_NAMES,
    SOURCE_NAMES,
    TEXT_NAMES,
    is_json_list,
    is_numbered_reference,
)
from tertium.errors import DataError, UsageError, short_repr
from tertium.segment import Segment

SIDES = (HYPOTHESIS_NAMES, SOURCE_NAMES, REFERENCE_NAMES)
# Number of columns per side (hypothesis, source, reference) that the fast path accepts.
SIMPLE_LAYOUTS = ([1, 0, 1], [1, 1, 1])

MAX_REASON_CHARS = 400
SINGLE_TEXT_NAMES = frozenset({*SOURCE_NAMES, *HYPOTHESIS_NAMES})
# Kinds of JSON values.
NULL, TEXT, TEXTS = "", "text", "list of texts"
KINDS = {
    type(None): NULL,
    str: TEXT,
    bool: "boolean",
    int: "integer",
    float: "number",
    list: "list",
    dict: "object",
}
WIDER_KINDS = (("integer", "number"), (TEXTS, "list"))


@dataclass(frozen=True)
class BadRow:
    """A row that cannot be scored: its 1-based number in the file and the reason."""

    row: int
    reason: str


@dataclass(frozen=True)
class TableBatch:
    """Rows stored as a pyarrow table."""

    table: Any

    def __len__(self) -> int:
        return int(self.table.num_rows)

    def texts(self) -> list[dict[str, Any]]:
        """Return one record per row with at least its text columns."""
        names = [name for name in self.table.column_names if is_text_name(name)]
        if not any(name.lower() in HYPOTHESIS_NAMES for name in names):
            # The column names appear in the reason for rejecting the row.
            return [dict.fromkeys(self.table.column_names)] * len(self)
        columns = [plain_texts(self.table[name]) for name in names]
        return [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]

    def plain_segments(self, longest: int) -> list[Segment] | None:
        """Build the segments of all rows column by column; None if a row needs the slow path."""
        names = [name for name in self.table.column_names if is_text_name(name)]
        sides = [[n for n in names if n.lower() in side] for side in SIDES]
        if (
            sum(map(len, sides)) != len(names)
            or [len(side) for side in sides] not in SIMPLE_LAYOUTS
        ):
            return None  # numbered references, or two names for the same field
        columns = [self.table[name] for side in sides for name in side]
        if not all(is_plain(column, longest) for column in columns):
            return None
        try:
            texts = [column.to_pylist() for column in columns]
            if any(map(is_json_list, texts[-1])):
                return None
            if len(texts) == 2:
                return [Segment(mt, None, (ref,)) for mt, ref in zip(*texts, strict=True)]
            return [Segment(mt, src, (ref,)) for mt, src, ref in zip(*texts, strict=True)]
        except (UnicodeDecodeError, DataError):
            return None

    def select(self, mask: BoolArray) -> TableBatch:
        import pyarrow as pa

        return self if mask.all() else TableBatch(self.table.filter(pa.array(mask)))

    def extend(self, columns: Mapping[str, Any]) -> TableBatch:
        """Return the same rows with additional columns (pyarrow arrays)."""
        table = self.table
        for name, values in columns.items():
            table = table.append_column(name, values)
        return TableBatch(table)

    def records(self) -> list[dict[str, Any]]:
        records: list[dict[str, Any]] = self.table.to_pylist()
        return records


@dataclass(frozen=True)
class RecordBatch:
    """Rows stored as JSON objects."""

    rows: Sequence[Mapping[str, Any]]

    def __len__(self) -> int:
        return len(self.rows)

    def texts(self) -> Sequence[Mapping[str, Any]]:
        return self.rows

    def plain_segments(self, longest: int) -> list[Segment] | None:
        return None

    def select(self, mask: BoolArray) -> RecordBatch:
        return RecordBatch([self.rows[n] for n in np.flatnonzero(mask).tolist()])

    def extend(self, columns: Mapping[str, Any]) -> RecordBatch:
        duplicate = next((name for row in self.rows for name in columns if name in row), None)
        if duplicate is not None:
            raise duplicate_column_error(duplicate)
        lists = [values.to_pylist() for values in columns.values()]
        added = (dict(zip(columns, row, strict=True)) for row in zip(*lists, strict=True))
        return RecordBatch([{**row, **new} for row, new in zip(self.rows, added, strict=True)])

    def records(self) -> Sequence[Mapping[str, Any]]:
        return self.rows


RowBatch = TableBatch | RecordBatch


def duplicate_column_error(name: str) -> UsageError:
    return UsageError(
        f"the input already has a column {name!r}, which the scores would use: rename or drop it"
    )


def is_text_name(name: str) -> bool:
    """Return whether a column holds translations, sources or references (case-insensitive)."""
    lowered = name.lower()
    return lowered in TEXT_NAMES or is_numbered_reference(lowered)


def is_plain(column: Any, longest: int) -> bool:
    """Return whether a column has only texts, none missing and none too long."""
    import pyarrow as pa
    import pyarrow.compute as pc

    kinds = (pa.string(), pa.large_string())
    if column.type not in kinds or column.null_count:
        return False
    return (pc.max(pc.binary_length(column)).as_py() or 0) <= longest  # bytes >= characters


def plain_texts(column: Any) -> list[Any]:
    """Return column values as Python objects; invalid UTF-8 becomes surrogate escapes."""
    import pyarrow as pa

    try:
        values: list[Any] = column.to_pylist()
    except UnicodeDecodeError:
        raw = column.cast(pa.large_binary()).to_pylist()
        values = [None if v is None else v.decode("utf-8", "surrogateescape") for v in raw]
    return values


def infer_columns(rows: Iterable[tuple[str, Mapping[str, Any]]]) -> dict[str, str]:
    """Return the kind of each column of JSONL from its first rows, which come with their places.

    A column has one kind or null; numbers may be whole, and references lists. Rows whose texts are
    not texts are bad rows, which decide nothing.
    """
    columns: dict[str, str] = {}
    for place, row in rows:
        for name, value in row.items():
            column = columns.setdefault(name, TEXT if is_text_name(name) else NULL)
            kind = json_kind(value)
            if is_wider(name, column, kind):
                columns[name] = kind
            elif not is_text_name(name) and not fits(name, kind, column):
                raise DataError(f"{place}: {describe_misfit(name, value, column)}")
    return {name: kind or TEXT for name, kind in columns.items()}


def json_kind(value: Any) -> str:
    """Return the kind of a JSON value, which decides the type of its column."""
    if isinstance(value, list) and all(isinstance(item, str) for item in value):
        return TEXTS
    if isinstance(value, int) and abs(value) >> 63:
        return "integer of more than 64 bits"
    return KINDS.get(type(value), type(value).__name__)


def is_wider(name: str, narrow: str, wide: str) -> bool:
    """Return whether a column of one kind becomes one of a wider kind, which holds both."""
    if is_text_name(name):
        return (narrow, wide) == (TEXT, TEXTS) and name.lower() not in SINGLE_TEXT_NAMES
    return narrow == NULL or (narrow, wide) in WIDER_KINDS


def fits(name: str, kind: str, column: str) -> bool:
    """Return whether values of a kind can be stored in a column of a kind."""
    return kind in (NULL, column) or is_wider(name, kind, column)


def describe_misfit(name: str, value: Any, column: str) -> str:
    if is_text_name(name):
        return shorten(f"expected {column}, got {value!r}")
    return (
        f"another type than in the first rows (column {name!r}: expected {column}, got "
        f"{short_repr(value)}); use one type or null, or --shards jsonl to keep any type"
    )


def columns_schema(columns: Mapping[str, str]) -> Any:
    """Return the pyarrow schema of columns; objects and lists of numbers become JSON text."""
    import pyarrow as pa

    types = {
        "boolean": pa.bool_(),
        "integer": pa.int64(),
        "number": pa.float64(),
        TEXTS: pa.list_(pa.string()),
    }
    return pa.schema([(name, types.get(kind, pa.string())) for name, kind in columns.items()])


def rows_to_table(
    rows: Iterable[tuple[int, Mapping[str, Any]]], columns: Mapping[str, str]
) -> tuple[Any, list[BadRow]]:
    """Convert rows to a table; return it with the rows whose keys or values do not fit."""
    import pyarrow as pa

    fitting, bad = [], []
    for number, row in rows:
        if reason := find_misfit(row, columns):
            bad.append(BadRow(number, reason))
        else:
            fitting.append({name: convert(value, columns[name]) for name, value in row.items()})
    return pa.Table.from_pylist(fitting, schema=columns_schema(columns)), bad


def find_misfit(row: Mapping[str, Any], columns: Mapping[str, str]) -> str:
    """Return why a row does not fit the columns, or an empty string."""
    for name, value in row.items():
        if name not in columns:
            return f"key {name!r} is not in the first rows; use --shards jsonl to keep it"
        if not fits(name, json_kind(value), columns[name]):
            return describe_misfit(name, value, columns[name])
    return ""


def convert(value: Any, column: str) -> Any:
    """Convert a value to the type of its column."""
    if value is None or column in (TEXT, "boolean", "integer"):
        return value
    if column == "number":
        return float(value)
    if column == TEXTS:
        return [value] if isinstance(value, str) else value
    return json.dumps(value, ensure_ascii=False)


def shorten(reason: str) -> str:
    """Cut the middle out of a long reason."""
    if len(reason) <= MAX_REASON_CHARS:
        return reason
    return f"{reason[: MAX_REASON_CHARS - 40]} ... {reason[-35:]}"
