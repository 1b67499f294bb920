"""The SQLite files of the cache, and one text's vectors as a row that knows whether it is whole.

    header (version, dtype, flags, rows, columns, bytes of pieces, digest)  pieces  vectors  crc32

Vectors are stored in as few bytes as hold them exactly: those computed in bf16 or fp16 take two a
number, others four, so that a cached score equals a computed one to the last bit. The digest is of
what the row is for (fingerprint and text), the checksum of everything before it.
"""

from __future__ import annotations

import contextlib
import hashlib
import logging
import os
import sqlite3
import struct
import time
import zlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TypeVar

import numpy as np

from tertium.arrays import Float32Array
from tertium.cache.cached_files import database_files

T = TypeVar("T")

APPLICATION = 0x74726D31  # "trm1", by which SQLite's header tells our files from others
MAGIC = b"SQLite format 3\0"
PAGE = 16384  # a row is some ten thousand bytes of vectors: small pages would chain
LOCK_TIMEOUT = 5.0  # seconds that a process waits for another one's lock

SCHEMA = (
    "CREATE TABLE IF NOT EXISTS spaces (space INTEGER PRIMARY KEY, fingerprint TEXT NOT NULL)",
    "CREATE TABLE IF NOT EXISTS entries (key INTEGER PRIMARY KEY, space INTEGER NOT NULL, "
    "vector INTEGER NOT NULL, size INTEGER NOT NULL, used REAL NOT NULL)",
    "CREATE INDEX IF NOT EXISTS entries_by_use ON entries (used, vector)",
    "CREATE TABLE IF NOT EXISTS vectors (vector INTEGER PRIMARY KEY, data BLOB NOT NULL)",
)
HEADER = struct.Struct("<BBBxiii24s")
VERSION = 1
FP32, BF16, FP16 = 0, 1, 2
WIDTHS = {FP32: 4, BF16: 2, FP16: 2}
TRUNCATED = 1
SENTENCE = 2
ALIGNMENT = 8
KEYS = 500  # in one query

logger = logging.getLogger(__name__)


def connect(path: Path, *, timeout: float = LOCK_TIMEOUT) -> sqlite3.Connection:
    """A connection to the store at a path, made where there is none.

    Raises `sqlite3.Error` or `OSError` where the file is locked, damaged or not the store's.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    database = sqlite3.connect(path, timeout=timeout, isolation_level=None, check_same_thread=False)
    try:
        if _pragma(database, "application_id") != APPLICATION:
            _make(database, timeout)
        database.execute("PRAGMA synchronous = NORMAL")
    except BaseException:
        database.close()
        raise
    return database


def used_bytes(database: sqlite3.Connection) -> int:
    """The bytes in use; pages that were freed count for nothing, since they are used again."""
    pages = _pragma(database, "page_count") - _pragma(database, "freelist_count")
    return pages * _pragma(database, "page_size")


def free_pages(database: sqlite3.Connection, pages: int) -> None:
    """Return so many pages that hold nothing to the disk.

    The statement yields a row without columns for each page; `execute` stops after the first.
    """
    database.executescript(f"PRAGMA incremental_vacuum({pages})")


def file_bytes(path: Path) -> int:
    """The bytes of all the store's files on disk."""
    return sum(file.stat().st_size for file in database_files(path) if file.exists())


def is_other_application(path: Path) -> bool:
    """Whether the file is a sound database that another program made."""
    with path.open("rb") as stream:
        header = stream.read(100)
    owner = int.from_bytes(header[68:72], "big")
    return header.startswith(MAGIC) and owner != APPLICATION


def batched(items: Iterable[T], size: int) -> Iterator[list[T]]:
    """Items in lists of at most so many: a query has room for so many keys."""
    rest = iter(items)
    while some := list(islice(rest, size)):
        yield some


class ByteStore:
    """Bytes by text, in one table of a file: a convenience, without which work is done again.

    Where the file cannot be opened, read or written, nothing is found and nothing fails. Of more
    than `most` rows the oldest go first.
    """

    def __init__(self, path: Path, table: str, most: int) -> None:
        self.path, self._table, self._most = path, table, most
        self._connection: sqlite3.Connection | None = None
        self._process = 0

    def get(self, texts: Iterable[str]) -> dict[str, bytes]:
        """What is kept of these texts."""
        keys = {_text_key(text): text for text in texts}
        found: dict[str, bytes] = {}
        with self._forgiving():
            database = self._open()
            for batch in batched(keys, KEYS):
                marks = ",".join("?" * len(batch))
                query = f"SELECT key, value FROM {self._table} WHERE key IN ({marks})"
                found |= {keys[key]: value for key, value in database.execute(query, batch)}
        return found

    def put(self, rows: Mapping[str, bytes]) -> None:
        """Keep the bytes of these texts."""
        keyed = [(_text_key(text), value) for text, value in rows.items()]
        with self._forgiving(), self._open() as database:
            database.executemany(f"INSERT OR REPLACE INTO {self._table} VALUES (?, ?)", keyed)
            newest = f"(SELECT max(rowid) FROM {self._table})"
            database.execute(f"DELETE FROM {self._table} WHERE rowid <= {newest} - ?", [self._most])

    @contextlib.contextmanager
    def _forgiving(self) -> Iterator[None]:
        """What goes wrong with the file inside the block is logged and forgotten."""
        try:
            yield
        except (sqlite3.Error, OSError) as error:
            logger.info("%s is not used (%s)", self.path, error)

    def _open(self) -> sqlite3.Connection:
        """The connection of this process; a forked one does not inherit its parent's."""
        if self._connection is None or self._process != os.getpid():
            self._connection, self._process = self._connect(), os.getpid()
        return self._connection

    def _connect(self) -> sqlite3.Connection:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        database = sqlite3.connect(self.path, timeout=LOCK_TIMEOUT, check_same_thread=False)
        database.execute("PRAGMA journal_mode=WAL")
        database.execute("PRAGMA synchronous=OFF")
        columns = "(key BLOB PRIMARY KEY, value BLOB)"
        database.execute(f"CREATE TABLE IF NOT EXISTS {self._table} {columns}")
        return database


def _text_key(text: str) -> bytes:
    return hashlib.sha256(text.encode("utf-8", errors="surrogatepass")).digest()[:16]


def _make(database: sqlite3.Connection, timeout: float) -> None:
    """Lay out an empty file as a store; two processes may try at the same moment."""
    if database.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
        if _pragma(database, "application_id") == APPLICATION:  # another was faster, just now
            return
        raise sqlite3.DatabaseError("the file was made by another program")
    deadline = time.monotonic() + timeout
    database.execute(f"PRAGMA page_size = {PAGE}")
    database.execute("PRAGMA auto_vacuum = INCREMENTAL")
    while True:
        try:
            database.execute("PRAGMA journal_mode = WAL")
            break
        except sqlite3.OperationalError:  # the switch does not wait for the other process by itself
            if time.monotonic() > deadline:
                raise
            time.sleep(0.02)
    database.execute("BEGIN IMMEDIATE")
    for statement in SCHEMA:
        database.execute(statement)
    database.execute(f"PRAGMA application_id = {APPLICATION}")
    database.execute("COMMIT")


def _pragma(database: sqlite3.Connection, name: str) -> int:
    return int(database.execute(f"PRAGMA {name}").fetchone()[0])


@dataclass(frozen=True, slots=True, eq=False)
class CacheEntry:
    """One text's token vectors (tokens, dim) with their pieces, or its sentence vector (dim,)."""

    matrix: Float32Array
    tokens: tuple[str, ...]
    truncated: bool

    @property
    def nbytes(self) -> int:
        return self.matrix.nbytes + 64 * len(self.tokens) + 256


class KeyHasher:
    """The keys of texts under one fingerprint: (a 64-bit number, the rest of the digest)."""

    def __init__(self, fingerprint: str) -> None:
        self._stem = hashlib.sha256(fingerprint.encode() + b"\0")

    def __call__(self, text: str) -> tuple[int, bytes]:
        hasher = self._stem.copy()
        hasher.update(text.encode("utf-8", "surrogatepass"))
        digest = hasher.digest()
        return int.from_bytes(digest[:8], "little", signed=True), digest[8:]


def encode_entry(part: CacheEntry, digest: bytes) -> bytes | None:
    """The row of a part; None where its pieces cannot be told apart again.

    >>> part = Part(np.ones((1, 2), dtype=np.float32), ("cat",), False)
    >>> unpack(pack(part, bytes(24)), bytes(24)).pieces
    ('cat',)
    """
    names = "\0".join(part.tokens).encode("utf-8", "surrogatepass")
    if part.tokens and names.count(b"\0") != len(part.tokens) - 1:
        return None
    kind, vectors = _shrink(np.ascontiguousarray(part.matrix))
    rows, columns = part.matrix.shape if part.matrix.ndim == 2 else (1, len(part.matrix))
    flags = TRUNCATED * part.truncated + SENTENCE * (part.matrix.ndim == 1)
    header = HEADER.encode_entry(VERSION, kind, flags, rows, columns, len(names), digest)
    padding = bytes(-(len(header) + len(names)) % ALIGNMENT)
    body = b"".join((header, names, padding, vectors.tobytes()))
    return body + zlib.crc32(body).to_bytes(4, "little")


def decode_entry(row: bytes, digest: bytes) -> CacheEntry | None:
    """The part of a row; None where the row is damaged or was made for something else.

    >>> unpack(b"damaged", bytes(24)) is None
    True
    """
    view = memoryview(row)
    if len(row) < HEADER.size + 4 or zlib.crc32(view[:-4]) != int.from_bytes(row[-4:], "little"):
        return None
    version, kind, flags, rows, columns, length, owner = HEADER.unpack_from(row)
    start = HEADER.size + length + -(HEADER.size + length) % ALIGNMENT
    size = rows * columns * WIDTHS.get(kind, 0)
    if version != VERSION or owner != digest or start + size + 4 != len(row):
        return None
    names = bytes(view[HEADER.size : HEADER.size + length]).decode("utf-8", "surrogatepass")
    matrix = _grow(view[start : start + size], kind).reshape(rows, columns)
    return CacheEntry(
        matrix[0] if flags & SENTENCE else matrix,
        tuple(names.split("\0")) if length or (rows and not flags & SENTENCE) else (),
        bool(flags & TRUNCATED),
    )


def _shrink(matrix: Float32Array) -> tuple[int, np.ndarray]:
    """The shortest type that holds every number exactly, and the numbers in it."""
    bits = matrix.view(np.uint32)
    if not (bits.flat[:8] & 0xFFFF).any() and not (bits & 0xFFFF).any():
        return BF16, (bits >> 16).astype(np.uint16)
    with np.errstate(over="ignore"):
        if (matrix.flat[:8] == matrix.flat[:8].astype(np.float16)).all():
            half = matrix.astype(np.float16)
            if (half == matrix).all():
                return FP16, half
    return FP32, matrix


def _grow(stored: memoryview, kind: int) -> Float32Array:
    if kind == BF16:
        wide = np.frombuffer(stored, dtype="<u2").astype(np.uint32) << 16
        return wide.view(np.float32)
    if kind == FP16:
        return np.frombuffer(stored, dtype="<f2").astype(np.float32)
    return np.frombuffer(stored, dtype="<f4")
