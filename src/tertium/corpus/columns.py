"""The columns that rows of JSON make, and the rows that do not fit them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tertium.corpus.blocks import is_text_name
from tertium.data.formats import HYPOTHESIS_NAMES, SOURCE_NAMES

JSON_TEXT = {b"tertium": b"json"}  # how a schema marks a column of objects, kept as JSON text
REASON = 400  # characters of what is said of a bad row
SINGLE = frozenset({*SOURCE_NAMES, *HYPOTHESIS_NAMES})  # of which a row has one
TEXT = (str, type(None))  # what a text may be in JSON
TEXTS = (*TEXT, list)  # and what several may be


@dataclass(frozen=True)
class BadRow:
    """A row that cannot be scored: its number in the file, from 1, and why."""

    row: int
    reason: str


def infer_schema(records: Sequence[Mapping[str, Any]]) -> Any:
    """Columns for JSONL by some of its rows; objects and values of several kinds are JSON texts.

    Texts that are compared stay texts, whatever a bad row says; where some references are lists,
    all are.
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
        several = name not in SINGLE and any(isinstance(value, list) for value in values)
        return pa.field(name, pa.list_(pa.string()) if several else pa.string())
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


def fit_rows(rows: list[tuple[int, dict[str, Any]]], schema: Any) -> tuple[Any, list[BadRow]]:
    """Rows as a table of these columns, and those that have other keys or values than these."""
    import pyarrow as pa

    names = frozenset(schema.names)
    packed = [field.name for field in schema if field.metadata == JSON_TEXT]
    texts = [name for name in schema.names if is_text_name(name)]
    lists = [name for name in texts if pa.types.is_list(schema.field(name).type)]
    kinds = {name: TEXT if name in SINGLE else TEXTS for name in texts}
    fitting, bad = [], []
    for number, row in rows:
        if other := next((key for key in row if key not in names), None):
            why = f"the key {other!r} is not among those of the first rows; write JSONL to keep it"
            bad.append(BadRow(number, why))
            continue
        if wrong := next((k for k in texts if not isinstance(row.get(k, ""), kinds[k])), None):
            bad.append(BadRow(number, shorten(f"expected text, got {row[wrong]!r}")))
            continue
        changed = {k: json.dumps(row[k], ensure_ascii=False) for k in packed if k in row}
        changed |= {k: [row[k]] for k in lists if isinstance(row.get(k), str)}
        fitting.append((number, {**row, **changed}))
    try:
        return pa.Table.from_pylist([row for _, row in fitting], schema=schema), bad
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        good = []
        for number, row in fitting:  # one by one, to find which
            try:
                pa.Table.from_pylist([row], schema=schema)
                good.append(row)
            except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
                why = f"does not fit the columns of the first rows ({str(error).splitlines()[0]})"
                bad.append(BadRow(number, f"{why}; write JSONL to keep it"))
        return pa.Table.from_pylist(good, schema=schema), bad


def shorten(reason: str) -> str:
    """A reason without the middle of a long value that it quotes."""
    return reason if len(reason) <= REASON else f"{reason[: REASON - 40]} ... {reason[-35:]}"
