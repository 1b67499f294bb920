"""Some thousand rows on their way through: a table of pyarrow, or records where JSON stays JSON.

Parquet, TSV and CSV have columns, and rows are moved as such. JSONL that is written as JSONL keeps
each object as it is: keys that others lack, and values of any kind under one key.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from tertium.arrays import BoolArray
from tertium.data.formats import (
    HYPOTHESIS_NAMES,
    REFERENCE_NAMES,
    SOURCE_NAMES,
    TEXT_NAMES,
    is_numbered_reference,
)
from tertium.errors import DataError, UsageError
from tertium.segment import Segment

SIDES = (HYPOTHESIS_NAMES, SOURCE_NAMES, REFERENCE_NAMES)
PLAIN = ([1, 0, 1], [1, 1, 1])  # how many columns each side has: a reference, and perhaps a source


class Block(Protocol):
    """Rows with named values."""

    def __len__(self) -> int: ...

    def texts(self) -> Sequence[Mapping[str, Any]]:
        """A record for each row that holds at least the texts that are compared."""

    def plain_segments(self, longest: int) -> list[Segment] | None:
        """The segments of all rows where each is as plain as rows can be, made by columns."""

    def column(self, name: str) -> Any:
        """One column as an array of pyarrow."""

    def select(self, mask: BoolArray) -> Block:
        """The rows for which the mask is true."""

    def extend(self, columns: Mapping[str, Any]) -> Block:
        """The same rows with more columns, arrays of pyarrow."""

    def records(self) -> Sequence[Mapping[str, Any]]:
        """Every row as a record of plain values."""


@dataclass(frozen=True)
class TableBlock:
    """Rows of a table of pyarrow."""

    table: Any

    def __len__(self) -> int:
        return int(self.table.num_rows)

    def texts(self) -> list[dict[str, Any]]:
        names = [name for name in self.table.column_names if is_text_name(name)]
        columns = [plain_texts(self.table[name]) for name in names]
        if not columns:
            return [{}] * len(self)
        return [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]

    def plain_segments(self, longest: int) -> list[Segment] | None:
        names = [name for name in self.table.column_names if is_text_name(name)]
        sides = [[n for n in names if n in side] for side in SIDES]
        if sum(map(len, sides)) != len(names) or [len(side) for side in sides] not in PLAIN:
            return None  # numbered references, or two names for one thing
        columns = [self.table[name] for side in sides for name in side]
        if not all(is_plain(column, longest) for column in columns):
            return None
        try:
            texts = [column.to_pylist() for column in columns]
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


def refuse_column(name: str) -> UsageError:
    return UsageError(
        f"a column {name!r} is there already, and scores are to be written under this name: "
        "rename or drop it"
    )


def is_text_name(name: str) -> bool:
    """Whether a column may hold a translation, a source or a reference."""
    return name in TEXT_NAMES or is_numbered_reference(name)


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
