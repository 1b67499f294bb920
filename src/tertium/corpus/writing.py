"""Shards of scored rows: Parquet, JSONL or TSV, written as a stream and equal for equal rows."""

from __future__ import annotations

import datetime
import json
import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from contextlib import nullcontext, suppress
from typing import IO, Any, ClassVar, Literal, Self

from tertium.corpus.blocks import Block, TableBlock, refuse_column
from tertium.errors import DataError, UnknownNameError

ShardFormat = Literal["parquet", "jsonl", "tsv"]
GROUP = 65_536  # rows of a Parquet row group
BREAKS = "\t\n\r"  # what parts fields and rows of TSV


class ShardWriter(ABC):
    """Blocks to bytes; `close` writes what is left."""

    suffix: ClassVar[str]
    has_columns: ClassVar[bool] = True  # the same in every row, so that JSON must be fitted to them

    def __init__(self, stream: IO[bytes], schema: Any) -> None:
        self.stream, self.schema = stream, schema

    @classmethod  # noqa: B027 (most take any)
    def check_header(cls, names: Iterable[str]) -> None:
        """Refuse names of columns that the format cannot hold."""

    @classmethod
    def find_unwritable(cls, block: Block) -> dict[int, str]:
        """Which rows the format cannot hold, by their place, and why."""
        return {}

    @abstractmethod
    def write(self, block: Block) -> None: ...

    def close(self) -> None:  # noqa: B027 (most hold nothing back)
        """Write what was held back."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        """Close; where something went wrong, what is written is thrown away, and so is this."""
        with nullcontext() if error is None else suppress(Exception):
            self.close()


class ParquetShard(ShardWriter):
    suffix = ".parquet"

    def __init__(self, stream: IO[bytes], schema: Any) -> None:
        from pyarrow.parquet import ParquetWriter

        super().__init__(stream, schema)
        self.writer = ParquetWriter(stream, schema, compression="zstd")
        self.held: list[Any] = []

    def write(self, block: Block) -> None:
        assert isinstance(block, TableBlock)
        if len(block):
            self.held.append(block.table)
        if sum(table.num_rows for table in self.held) >= GROUP:
            self._flush()

    def _flush(self) -> None:
        import pyarrow as pa

        if self.held:
            self.writer.write_table(pa.concat_tables(self.held), row_group_size=GROUP)
        self.held = []

    def close(self) -> None:
        self._flush()
        self.writer.close()


class JsonlShard(ShardWriter):
    suffix = ".jsonl"
    has_columns = False

    def write(self, block: Block) -> None:
        for record in block.records():
            text = json.dumps(plain(record), ensure_ascii=False, allow_nan=False)
            self.stream.write(text.encode("utf-8") + b"\n")


class TsvShard(ShardWriter):
    suffix = ".tsv"

    def __init__(self, stream: IO[bytes], schema: Any) -> None:
        super().__init__(stream, schema)
        self.check_header(schema.names)
        self._write_cells(schema.names)

    @classmethod
    def check_header(cls, names: Iterable[str]) -> None:
        """Refuse names with tabs or line ends: rows would have other columns than they."""
        if broken := next((name for name in names if _is_broken(name)), None):
            raise DataError(
                f"the name {broken!r} of a column has a tab or line end, which TSV cannot hold: "
                "write Parquet or JSONL"
            )

    @classmethod
    def find_unwritable(cls, block: Block) -> dict[int, str]:
        """Rows with a tab or line end inside of a text."""
        found: dict[int, str] = {}
        for place, record in enumerate(block.records()):
            texts = ((name, value) for name, value in record.items() if isinstance(value, str))
            broken = next((name for name, text in texts if _is_broken(text)), None)
            if broken is not None:
                reason = f"a tab or line end in a field of TSV ({broken}); write Parquet or JSONL"
                found[place] = reason
        return found

    def write(self, block: Block) -> None:
        for record in block.records():
            self._write_cells([to_cell(record.get(name)) for name in self.schema.names])

    def _write_cells(self, cells: Sequence[str]) -> None:
        self.stream.write("\t".join(cells).encode("utf-8") + b"\n")


WRITERS: Mapping[str, type[ShardWriter]] = {
    "parquet": ParquetShard,
    "jsonl": JsonlShard,
    "tsv": TsvShard,
}


def writer_of(name: str) -> type[ShardWriter]:
    """The writer of a format."""
    if name not in WRITERS:
        raise UnknownNameError("format of shards", name, WRITERS)
    return WRITERS[name]


def to_cell(value: Any) -> str:
    """A value as TSV holds it: numbers in full, lists as JSON, nothing for what is missing."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ""
    if isinstance(value, str):
        return value
    return json.dumps(plain(value), ensure_ascii=False)


def _is_broken(text: str) -> bool:
    """Whether a cell of TSV would end inside of a text."""
    return any(mark in text for mark in BREAKS)


def plain(value: Any) -> Any:
    """A value as JSON holds it: times in ISO 8601, NaN as null; bytes are refused."""
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, datetime.date | datetime.time):
        return value.isoformat()
    if value is None or isinstance(value, str | int | float | bool):
        return value
    raise DataError(f"JSON and TSV hold no {type(value).__name__}: write Parquet")


def extend_schema(schema: Any, columns: Mapping[str, Any]) -> Any:
    """A schema with more columns of these types; one that is there already is refused."""
    import pyarrow as pa

    for name, kind in columns.items():
        if name in schema.names:
            raise refuse_column(name)
        schema = schema.append(pa.field(name, kind))
    return schema
