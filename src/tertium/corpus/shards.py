"""Writers of scored rows: Parquet or JSONL shards, streamed and deterministic."""

from __future__ import annotations

import datetime
import io
import json
import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from contextlib import nullcontext, suppress
from typing import Any, ClassVar, Literal, Self

from tertium.corpus.batches import RowBatch, TableBatch, duplicate_column_error
from tertium.errors import DataError, UnknownNameError

ShardFormat = Literal["parquet", "jsonl"]
ROW_GROUP_ROWS = 65_536


class ShardWriter(ABC):
    """Writes batches to a stream; `close` writes buffered rows."""

    suffix: ClassVar[str]
    has_columns: ClassVar[bool] = True  # every row has the same columns

    def __init__(self, stream: io.RawIOBase, schema: Any) -> None:
        self.stream = stream

    @abstractmethod
    def write(self, batch: RowBatch) -> None: ...

    def close(self) -> None:  # noqa: B027 (optional)
        """Write buffered rows."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        """Close the writer; after an error the file is discarded, so errors of `close` are too."""
        with nullcontext() if error is None else suppress(Exception):
            self.close()


class ParquetShard(ShardWriter):
    suffix = ".parquet"

    def __init__(self, stream: io.RawIOBase, schema: Any) -> None:
        from pyarrow.parquet import ParquetWriter

        self.writer = ParquetWriter(stream, schema, compression="zstd")
        self.buffer: list[Any] = []

    def write(self, batch: RowBatch) -> None:
        assert isinstance(batch, TableBatch)
        if len(batch):
            self.buffer.append(batch.table)
        if sum(table.num_rows for table in self.buffer) >= ROW_GROUP_ROWS:
            self._flush()

    def _flush(self) -> None:
        import pyarrow as pa

        if self.buffer:
            self.writer.write_table(pa.concat_tables(self.buffer), row_group_size=ROW_GROUP_ROWS)
        self.buffer = []

    def close(self) -> None:
        self._flush()
        self.writer.close()


class JsonlShard(ShardWriter):
    suffix = ".jsonl"
    has_columns = False

    def write(self, batch: RowBatch) -> None:
        for record in batch.records():
            text = json.dumps(plain(record), ensure_ascii=False, allow_nan=False)
            self.stream.write(text.encode("utf-8") + b"\n")


WRITERS: Mapping[str, type[ShardWriter]] = {
    "parquet": ParquetShard,
    "jsonl": JsonlShard,
}


def shard_writer(name: str) -> type[ShardWriter]:
    """Return the writer class of a format."""
    if name not in WRITERS:
        raise UnknownNameError("shard format", name, WRITERS)
    return WRITERS[name]


def plain(value: Any) -> Any:
    """Convert a value for JSON: times to ISO 8601, NaN to null; bytes are refused."""
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
    raise DataError(f"JSON cannot store {type(value).__name__} values: use --shards parquet")


def extend_schema(schema: Any, columns: Mapping[str, Any]) -> Any:
    """Add columns of the given types to a schema; refuse a name that exists already."""
    import pyarrow as pa

    for name, kind in columns.items():
        if name in schema.names:
            raise duplicate_column_error(name)
        schema = schema.append(pa.field(name, kind))
    return schema
