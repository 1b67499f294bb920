"""Some thousand rows on their way through: a table of pyarrow, or records where JSON stays JSON.

Parquet, TSV and CSV have columns, and rows are moved as such. JSONL that is written as JSONL keeps
each object as it is: keys that others lack, and values of any kind under one key. Other JSONL has
the columns that its first rows make; a row that does not fit them is bad.
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
    is_listing,
    is_numbered_reference,
)
from tertium.errors import DataError, UsageError
from tertium.segment import Segment

SIDES = (HYPOTHESIS_NAMES, SOURCE_NAMES, REFERENCE_NAMES)
PLAIN = ([1, 0, 1], [1, 1, 1])  # how many columns each side has: a reference, and perhaps a source

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


@dataclass(frozen=True)
class TableBlock:
    """Rows of a table of pyarrow."""

    table: Any

    def __len__(self) -> int:
        return int(self.table.num_rows)

    def texts(self) -> list[dict[str, Any]]:
        """A record for each row that holds at least the texts that are compared."""
        names = [name for name in self.table.column_names if is_text_name(name)]
        if not any(name.lower() in HYPOTHESIS_NAMES for name in names):
            # what there is instead stands in the reason why a row is put aside
            return [dict.fromkeys(self.table.column_names)] * len(self)
        columns = [plain_texts(self.table[name]) for name in names]
        return [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]

    def plain_segments(self, longest: int) -> list[Segment] | None:
        """The segments of all rows where each is as plain as rows can be, made by columns."""
        names = [name for name in self.table.column_names if is_text_name(name)]
        sides = [[n for n in names if n.lower() in side] for side in SIDES]
        if sum(map(len, sides)) != len(names) or [len(side) for side in sides] not in PLAIN:
            return None  # numbered references, or two names for one thing
        columns = [self.table[name] for side in sides for name in side]
        if not all(is_plain(column, longest) for column in columns):
            return None
        try:
            texts = [column.to_pylist() for column in columns]
            if any(map(is_listing, texts[-1])):
                return None
            if len(texts) == 2:
                return [Segment(mt, None, (ref,)) for mt, ref in zip(*texts, strict=True)]
            return [Segment(mt, src, (ref,)) for mt, src, ref in zip(*texts, strict=True)]
        except (UnicodeDecodeError, DataError):
            return None

    def column(self, name: str) -> Any:
        return self.table[name]

    def select(self, mask: BoolArray) -> TableBlock:
        import pyarrow as pa

        return self if mask.all() else TableBlock(self.table.filter(pa.array(mask)))

    def extend(self, columns: Mapping[str, Any]) -> TableBlock:
        """The same rows with more columns, arrays of pyarrow."""
        table = self.table
        for name, values in columns.items():
            table = table.append_column(name, values)
        return TableBlock(table)

    def records(self) -> list[dict[str, Any]]:
        records: list[dict[str, Any]] = self.table.to_pylist()
        return records


@dataclass(frozen=True)
class RecordBlock:
    """Rows of JSON objects."""

    rows: Sequence[Mapping[str, Any]]

    def __len__(self) -> int:
        return len(self.rows)

    def texts(self) -> Sequence[Mapping[str, Any]]:
        return self.rows

    def plain_segments(self, longest: int) -> list[Segment] | None:
        return None

    def column(self, name: str) -> Any:
        import pyarrow as pa

        try:
            return pa.array([row.get(name) for row in self.rows])
        except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
            raise DataError(
                f"column {name!r} holds values of several kinds, which --keep cannot compare "
                f"({str(error).splitlines()[0]})"
            ) from None

    def select(self, mask: BoolArray) -> RecordBlock:
        return RecordBlock([self.rows[n] for n in np.flatnonzero(mask).tolist()])

    def extend(self, columns: Mapping[str, Any]) -> RecordBlock:
        taken = next((name for row in self.rows for name in columns if name in row), None)
        if taken is not None:
            raise refuse_column(taken)
        lists = [values.to_pylist() for values in columns.values()]
        added = (dict(zip(columns, row, strict=True)) for row in zip(*lists, strict=True))
        return RecordBlock([{**row, **new} for row, new in zip(self.rows, added, strict=True)])

    def records(self) -> Sequence[Mapping[str, Any]]:
        return self.rows


Block = TableBlock | RecordBlock


def refuse_column(name: str) -> UsageError:
    return UsageError(
        f"a column {name!r} is there already, and scores are to be written under this name: "
        "rename or drop it"
    )


def is_text_name(name: str) -> bool:
    """Whether a column may hold a translation, a source or a reference, also in capitals."""
    lowered = name.lower()
    return lowered in TEXT_NAMES or is_numbered_reference(lowered)


def is_plain(column: Any, longest: int) -> bool:
    """Whether a column is of texts, none missing and none too long."""
    import pyarrow as pa
    import pyarrow.compute as pc

    kinds = (pa.string(), pa.large_string())
    if column.type not in kinds or column.null_count:
        return False
    return (pc.max(pc.binary_length(column)).as_py() or 0) <= longest  # bytes are more than letters


def plain_texts(column: Any) -> list[Any]:
    """The values of a column as Python's own; bytes that are not UTF-8 stay to be found."""
    import pyarrow as pa

    try:
        values: list[Any] = column.to_pylist()
    except UnicodeDecodeError:
        raw = column.cast(pa.large_binary()).to_pylist()
        values = [None if v is None else v.decode("utf-8", "surrogateescape") for v in raw]
    return values


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
        several = name.lower() not in SINGLE and any(isinstance(value, list) for value in values)
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

    refused = (pa.ArrowException, TypeError, ValueError, OverflowError)
    columns = _Columns.of(schema)
    fitting, bad = [], []
    for number, row in rows:
        if reason := columns.find_misfit(row):
            bad.append(BadRow(number, reason))
        else:
            fitting.append((number, columns.convert(row)))
    try:
        return pa.Table.from_pylist([row for _, row in fitting], schema=schema), bad
    except refused:
        good = []
        for number, row in fitting:  # one by one, to find which
            try:
                pa.Table.from_pylist([row], schema=schema)
                good.append(row)
            except refused as error:
                why = f"does not fit the columns of the first rows ({str(error).splitlines()[0]})"
                bad.append(BadRow(number, f"{why}; write JSONL to keep it"))
        return pa.Table.from_pylist(good, schema=schema), bad


@dataclass(frozen=True)
class _Columns:
    """What a schema that was inferred asks of a row of JSON."""

    names: frozenset[str]
    texts: Mapping[str, tuple[type, ...]]  # that are compared, with the kinds that each may be of
    lists: Sequence[str]  # of these, where a text stands for a list of one
    packed: Sequence[str]  # kept as JSON text

    @classmethod
    def of(cls, schema: Any) -> _Columns:
        import pyarrow as pa

        texts = [name for name in schema.names if is_text_name(name)]
        return cls(
            names=frozenset(schema.names),
            texts={name: TEXT if name.lower() in SINGLE else TEXTS for name in texts},
            lists=[name for name in texts if pa.types.is_list(schema.field(name).type)],
            packed=[field.name for field in schema if field.metadata == JSON_TEXT],
        )

    def find_misfit(self, row: Mapping[str, Any]) -> str:
        """Why a row does not fit, empty where it may."""
        if other := next((key for key in row if key not in self.names), None):
            return f"the key {other!r} is not among those of the first rows; write JSONL to keep it"
        for name, kinds in self.texts.items():
            if not isinstance(row.get(name, ""), kinds):
                return shorten(f"expected text, got {row[name]!r}")
        return ""

    def convert(self, row: Mapping[str, Any]) -> dict[str, Any]:
        """A row with values as the columns hold them."""
        texts = {k: json.dumps(row[k], ensure_ascii=False) for k in self.packed if k in row}
        lists = {k: [row[k]] for k in self.lists if isinstance(row.get(k), str)}
        return {**row, **texts, **lists}


def shorten(reason: str) -> str:
    """A reason without the middle of a long value that it quotes."""
    return reason if len(reason) <= REASON else f"{reason[: REASON - 40]} ... {reason[-35:]}"
