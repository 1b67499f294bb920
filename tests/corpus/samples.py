"""Small corpora for tests: the bundled example in every format, and generated rows."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from tertium.data.record_files import read_jsonl

EXAMPLES = Path(__file__).parents[2] / "examples"


def example_rows(count: int = 145) -> list[dict[str, Any]]:
    """Rows of the example with one reference; further rows have numbered texts."""
    rows = [record for _, record in read_jsonl(EXAMPLES / "examples.jsonl")]
    short = [
        {"id": n, "src": r["src"], "mt": r["mt"], "ref": r["ref"][0]} for n, r in enumerate(rows)
    ]
    again = -(-count // len(short))
    return [
        {**row, "id": n + turn * len(short), "mt": f"{row['mt']} {turn}" if turn else row["mt"]}
        for turn in range(again)
        for n, row in enumerate(short)
    ][:count]


def write_jsonl(path: Path, rows: Iterable[Mapping[str, Any]]) -> Path:
    text = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    return write_bytes(path, text.encode())


def write_tsv(path: Path, rows: Sequence[Mapping[str, Any]], mark: str = "\t") -> Path:
    lines = [mark.join(rows[0]), *(mark.join(str(v) for v in row.values()) for row in rows)]
    return write_bytes(path, "".join(line + "\n" for line in lines).encode())


def write_parquet(path: Path, rows: Sequence[Mapping[str, Any]], group: int = 20) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.Table.from_pylist(list(rows)), path, row_group_size=group)
    return path


def write_bytes(path: Path, data: bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.suffix == ".gz":
        data = gzip.compress(data)
    elif path.suffix == ".zst":
        data = pa.Codec("zstd").compress(data, asbytes=True)
    path.write_bytes(data)
    return path


def read_shards(folder: Path) -> list[dict[str, Any]]:
    """All rows of the Parquet shards of a folder, in name order."""
    shards = sorted(folder.rglob("*.parquet"))
    return [row for shard in shards for row in pq.read_table(shard).to_pylist()]


def shard_bytes(folder: Path) -> dict[str, bytes]:
    """The content of all output files of a run, without times and speeds."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    named = {path.relative_to(folder).as_posix(): path.read_bytes() for path in files}
    return {name: data for name, data in named.items() if name != "_summary.json"}
