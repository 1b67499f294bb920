"""Rows as tables with one type per column, and tables as shards in Parquet or JSONL.

The types of JSONL columns are those of the first rows.

A column holds texts, lists of texts, numbers or booleans, and null. Columns of objects or of mixed
types hold JSON text. References may be texts or lists of texts.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
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

Kinds = frozenset[str]  # the kinds of values in a column, besides null
TEXT: Kinds = frozenset({"text"})
LISTS: Kinds = frozenset({"list of texts"})
INTEGERS: Kinds = frozenset({"integer"})
NUMBERS: Kinds = frozenset({"integer", "number"})
TYPES = {INTEGERS: "int64", NUMBERS: "double", frozenset({"boolean"}): "bool"}
JSON = "any value"
JSON_METADATA = {b"tertium": b"json"}  # of columns with JSON text


def is_text_name(name: str) -> bool:
    """Return whether a column holds translations, sources or references (case-insensitive)."""
    lowered = name.lower()
    return lowered in TEXT_NAMES or is_numbered_reference(lowered)


def infer_columns(rows: Iterable[Mapping[str, Any]]) -> dict[str, Kinds]:
    """Return the kinds of values in each column from the first rows."""
    columns: dict[str, Kinds] = {}
    for row in rows:
        for name, value in row.items():
            kinds = columns.get(name, frozenset())
            columns[name] = kinds if value is None else kinds | {_kind_of(value)}
    return {name: _choose_kinds(name, kinds) for name, kinds in columns.items()}


def _kind_of(value: Any) -> str:
    """Return the kind of a JSON value that is not null."""
    match value:
        case str():
            return "text"
        case bool():
            return "boolean"
        case int() if not abs(value) >> 63:
            return "integer"
        case float():
            return "number"
        case list() if all(isinstance(item, str) for item in value):
            return "list of texts"
    return JSON


def _choose_kinds(name: str, kinds: Kinds) -> Kinds:
    if is_text_name(name):  # other values belong to bad rows
        is_single = name.lower() in (*HYPOTHESIS_NAMES, *SOURCE_NAMES)
        return TEXT | LISTS if kinds >= LISTS and not is_single else TEXT
    if kinds <= NUMBERS and "number" in kinds:
        return NUMBERS
    return frozenset({JSON}) if len(kinds) > 1 else kinds or TEXT


def make_table(columns: Mapping[str, Kinds], read: Callable[[str], list[Any]]) -> Any:
    """Make a table of columns, whose values `read` returns."""
    import pyarrow as pa

    fields, arrays = [], []
    for name, kinds in columns.items():
        values = read(name)
        if JSON in kinds:
            values = [v if v is None else json.dumps(v, ensure_ascii=False) for v in values]
        elif kinds == TEXT | LISTS:
            values = [[value] if isinstance(value, str) else value for value in values]
        kind = pa.type_for_alias(TYPES.get(kinds, "string"))
        kind = pa.list_(kind) if kinds >= LISTS else kind
        fields.append(pa.field(name, kind, metadata=JSON_METADATA if JSON in kinds else None))
        arrays.append(pa.array(values, kind))
    return pa.Table.from_arrays(arrays, schema=pa.schema(fields))


def find_misfit(row: Mapping[str, Any], columns: Mapping[str, Kinds]) -> str:
    """Return why a row does not fit the columns, or an empty string."""
    for name, value in row.items():
        kinds = columns.get(name)
        if kinds is None:
            return f"key {name!r} is not in the first rows"
        if value is None or JSON in kinds or _kind_of(value) in kinds:
            continue
        expected = f"expected {' or '.join(sorted(kinds))}, got {short_repr(value)}"
        if is_text_name(name):
            return expected
        return f"another type than in the first rows (column {name!r}: {expected})"
    return ""


def write_parquet(stream: IO[bytes], tables: Iterator[Any]) -> None:
    """Write tables with the same columns; there is at least one."""
    import pyarrow as pa
    from pyarrow.parquet import ParquetWriter

    first = next(tables)
    buffer: list[Any] = []
    with ParquetWriter(stream, first.schema, compression="zstd") as writer:

        def flush() -> None:
            writer.write_table(pa.concat_tables(buffer), row_group_size=ROW_GROUP_ROWS)
            buffer.clear()

        for table in itertools.chain([first], tables):
            buffer.append(table)
            if sum(map(len, buffer)) >= ROW_GROUP_ROWS:
                flush()
        if sum(map(len, buffer)):
            flush()


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
