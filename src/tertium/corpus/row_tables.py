"""Rows as tables with one type per column, and tables as shards in Parquet or JSONL.

The types of JSONL columns are those of the first rows.

A column holds texts, lists of texts, numbers or booleans, and null. Columns of objects or of mixed
types hold JSON text. References may be texts or lists of texts.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import IO, Any, Literal

from tertium.core.errors import DataError, short_repr
from tertium.data.records import (
    HYPOTHESIS_NAMES,
    SOURCE_NAMES,
    TEXT_NAMES,
    is_numbered_reference,
)
from tertium.data.tables import missing_to_null

ShardFormat = Literal["parquet", "jsonl"]
ROW_GROUP_ROWS = 65_536

Columns = Mapping[str, str]  # the kind of value of each column, besides null
TEXT, TEXTS, NUMBER, JSON = "text", "list of texts", "number", "any value"
KINDS = {str: TEXT, list: TEXTS, bool: "boolean", int: "integer", float: NUMBER}
REFERENCES = "text or list of texts"
ACCEPTED = {NUMBER: ("integer", NUMBER), REFERENCES: (TEXT, TEXTS)}  # others accept themselves
ARROW_TYPES = {"integer": "int64", NUMBER: "double", "boolean": "bool"}
JSON_METADATA = {b"tertium": b"json"}  # of columns with JSON text


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

    fields, arrays = [], []
    for name, kind in columns.items():
        values = [row.get(name) for row in rows]
        if kind == JSON:
            values = [v if v is None else json.dumps(v, ensure_ascii=False) for v in values]
        elif kind == REFERENCES:
            values = [[value] if isinstance(value, str) else value for value in values]
        arrow_type = pa.type_for_alias(ARROW_TYPES.get(kind, "string"))
        if kind in (TEXTS, REFERENCES):
            arrow_type = pa.list_(arrow_type)
        metadata = JSON_METADATA if kind == JSON else None
        fields.append(pa.field(name, arrow_type, metadata=metadata))
        arrays.append(pa.array(values, arrow_type))
    return pa.Table.from_arrays(arrays, schema=pa.schema(fields))


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

    first = next(tables)
    buffer, rows = [first], len(first)
    with ParquetWriter(stream, first.schema, compression="zstd") as writer:
        for table in tables:
            buffer.append(table)
            rows += len(table)
            if rows >= ROW_GROUP_ROWS:
                writer.write_table(pa.concat_tables(buffer), row_group_size=ROW_GROUP_ROWS)
                buffer, rows = [], 0
        if rows:
            writer.write_table(pa.concat_tables(buffer), row_group_size=ROW_GROUP_ROWS)


def write_jsonl(stream: IO[bytes], tables: Iterator[Any]) -> None:
    """Write tables as JSON lines; JSON text becomes objects again."""
    for table in tables:
        json_names = [field.name for field in table.schema if field.metadata == JSON_METADATA]
        for row in table.to_pylist():
            for name in json_names:
                row[name] = row[name] and json.loads(row[name])
            text = json.dumps(missing_to_null(row), ensure_ascii=False, default=_format_time)
            stream.write(text.encode("utf-8") + b"\n")


def _format_time(value: Any) -> str:
    """Return a time in ISO 8601; refuse other values that JSON cannot store."""
    if hasattr(value, "isoformat"):
        text: str = value.isoformat()
        return text
    raise DataError(f"JSON cannot store {type(value).__name__} values: use --shards parquet")


WRITERS: Mapping[str, Callable[[IO[bytes], Iterator[Any]], None]] = {
    "parquet": write_parquet,
    "jsonl": write_jsonl,
}
