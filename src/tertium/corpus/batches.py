"""Batches of corpus rows: a pyarrow table, or JSON records when JSONL is written as JSONL.

Parquet, TSV and CSV rows are moved as columns. JSONL that is written as JSONL keeps each object
unchanged, with any keys and value types. JSONL that is written in another format gets its columns
from the first rows; a row that does not fit these columns is a bad row.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
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
from tertium.errors import DataError, UsageError
from tertium.segment import Segment

SIDES = (HYPOTHESIS_NAMES, SOURCE_NAMES, REFERENCE_NAMES)
# Number of columns per side (hypothesis, source, reference) that the fast path accepts.
SIMPLE_LAYOUTS = ([1, 0, 1], [1, 1, 1])

JSON_TEXT = {b"tertium": b"json"}  # schema metadata of a column that stores objects as JSON text
MAX_REASON_CHARS = 400
SINGLE_TEXT_NAMES = frozenset({*SOURCE_NAMES, *HYPOTHESIS_NAMES})
TEXT_TYPES = (str, type(None))
TEXT_LIST_TYPES = (*TEXT_TYPES, list)


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


def infer_schema(records: Sequence[Mapping[str, Any]]) -> Any:
    """Infer the columns of JSONL from its first rows.

    Objects and values of mixed types are stored as JSON text. Text columns stay text even if a bad
    row has another type. If some references are lists, all are.
    """
    import pyarrow as pa

    columns: dict[str, list[Any]] = {}
    for record in records:
        for key, value in record.items():
            columns.setdefault(key, []).append(value)
    return pa.schema([_infer_field(name, values) for name, values in columns.items()])


def _infer_field(name: str, values: list[Any]) -> Any:
    import pyarrow as pa

    if is_text_name(name):
        can_be_list = name.lower() not in SINGLE_TEXT_NAMES
        is_list = can_be_list and any(isinstance(value, list) for value in values)
        return pa.field(name, pa.list_(pa.string()) if is_list else pa.string())
    try:
        kind = pa.array(values).type
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        kind = pa.struct([])
    if pa.types.is_null(kind):
        kind = pa.string()
    elif pa.types.is_list(kind) and pa.types.is_null(kind.value_type):
        kind = pa.list_(pa.string())
    if pa.types.is_nested(kind) and not (
        pa.types.is_list(kind) and not pa.types.is_nested(kind.value_type)
    ):
        return pa.field(name, pa.string(), metadata=JSON_TEXT)
    return pa.field(name, kind)


def rows_to_table(rows: list[tuple[int, dict[str, Any]]], schema: Any) -> tuple[Any, list[BadRow]]:
    """Convert rows to a table; return it with the rows whose keys or values do not fit."""
    import pyarrow as pa

    conversion_errors = (pa.ArrowException, TypeError, ValueError, OverflowError)
    columns = _Columns.of(schema)
    fitting, bad = [], []
    for number, row in rows:
        if reason := columns.find_misfit(row):
            bad.append(BadRow(number, reason))
        else:
            fitting.append((number, columns.convert(row)))
    try:
        return pa.Table.from_pylist([row for _, row in fitting], schema=schema), bad
    except conversion_errors:
        good = []
        for number, row in fitting:  # one by one, to find the bad rows
            try:
                pa.Table.from_pylist([row], schema=schema)
                good.append(row)
            except conversion_errors as error:
                why = f"does not match the columns of the first rows ({str(error).splitlines()[0]})"
                bad.append(BadRow(number, f"{why}; use --shards jsonl to keep it"))
        return pa.Table.from_pylist(good, schema=schema), bad


@dataclass(frozen=True)
class _Columns:
    """What an inferred schema requires of a JSON row."""

    names: frozenset[str]
    texts: Mapping[str, tuple[type, ...]]  # text columns and the types each accepts
    lists: Sequence[str]  # text columns that store a list; a single text becomes a list of one
    json_columns: Sequence[str]  # stored as JSON text

    @classmethod
    def of(cls, schema: Any) -> _Columns:
        import pyarrow as pa

        texts = [name for name in schema.names if is_text_name(name)]
        return cls(
            names=frozenset(schema.names),
            texts={
                name: TEXT_TYPES if name.lower() in SINGLE_TEXT_NAMES else TEXT_LIST_TYPES
                for name in texts
            },
            lists=[name for name in texts if pa.types.is_list(schema.field(name).type)],
            json_columns=[field.name for field in schema if field.metadata == JSON_TEXT],
        )

    def find_misfit(self, row: Mapping[str, Any]) -> str:
        """Return why a row does not fit, or an empty string."""
        if new_key := next((key for key in row if key not in self.names), None):
            return f"key {new_key!r} is not in the first rows; use --shards jsonl to keep it"
        for name, kinds in self.texts.items():
            if not isinstance(row.get(name, ""), kinds):
                return shorten(f"expected text, got {row[name]!r}")
        return ""

    def convert(self, row: Mapping[str, Any]) -> dict[str, Any]:
        """Convert the values of a row to the types of the columns."""
        texts = {k: json.dumps(row[k], ensure_ascii=False) for k in self.json_columns if k in row}
        lists = {k: [row[k]] for k in self.lists if isinstance(row.get(k), str)}
        return {**row, **texts, **lists}


def shorten(reason: str) -> str:
    """Cut the middle out of a long reason."""
    if len(reason) <= MAX_REASON_CHARS:
        return reason
    return f"{reason[: MAX_REASON_CHARS - 40]} ... {reason[-35:]}"
