"""SQLite files of the cache, and the binary format of one cache entry.

    header (version, dtype, flags, rows, columns, bytes of tokens, digest)  tokens  vectors  crc32

Vectors are stored in the smallest type that holds them exactly: two bytes per number if computed
in bf16 or fp16, else four. Cached scores therefore equal computed ones bit by bit. The digest
identifies fingerprint and text; the checksum covers everything before it.
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

APPLICATION_ID = 0x74726D31  # "trm1": identifies our files in the SQLite header
SQLITE_MAGIC = b"SQLite format 3\0"
PAGE_BYTES = 16384  # an entry has about ten thousand bytes: small pages would be chained
LOCK_TIMEOUT = 5.0  # seconds to wait for the lock of another process
QUERY_KEYS = 500  # keys per query

SCHEMA = (
    "CREATE TABLE IF NOT EXISTS spaces (space INTEGER PRIMARY KEY, fingerprint TEXT NOT NULL)",
    "CREATE TABLE IF NOT EXISTS entries (key INTEGER PRIMARY KEY, space INTEGER NOT NULL, "
    "vector INTEGER NOT NULL, size INTEGER NOT NULL, used REAL NOT NULL)",
    "CREATE INDEX IF NOT EXISTS entries_by_use ON entries (used, vector)",
    "CREATE TABLE IF NOT EXISTS vectors (vector INTEGER PRIMARY KEY, data BLOB NOT NULL)",
)
HEADER = struct.Struct("<BBBxiii24s")
FORMAT_VERSION = 1
FP32, BF16, FP16 = 0, 1, 2
BYTES_PER_NUMBER = {FP32: 4, BF16: 2, FP16: 2}
TRUNCATED_FLAG = 1
SENTENCE_FLAG = 2
ALIGNMENT = 8

logger = logging.getLogger(__name__)


def connect(path: Path, *, timeout: float = LOCK_TIMEOUT) -> sqlite3.Connection:
    """Connect to the vector store at a path; raises `sqlite3.Error` or `OSError`."""
    path.parent.mkdir(parents=True, exist_ok=True)
    database = sqlite3.connect(path, timeout=timeout, isolation_level=None, check_same_thread=False)
    try:
        if _pragma(database, "application_id") != APPLICATION_ID:
            _create_tables(database, timeout)
        database.execute("PRAGMA synchronous = NORMAL")
    except BaseException:
        database.close()
        raise
    return database


def used_bytes(database: sqlite3.Connection) -> int:
    """Return the bytes in use, without free pages."""
    pages = _pragma(database, "page_count") - _pragma(database, "freelist_count")
    return pages * _pragma(database, "page_size")


def free_pages(database: sqlite3.Connection, pages: int) -> None:
    """Return up to `pages` free pages to the file system; the statement yields a row per page."""
    database.executescript(f"PRAGMA incremental_vacuum({pages})")


def file_bytes(path: Path) -> int:
    """Return the size of a database on disk, including its companion files."""
    return sum(file.stat().st_size for file in database_files(path) if file.exists())


def is_other_application(path: Path) -> bool:
    """Tell whether a file is an SQLite database of another program."""
    with path.open("rb") as stream:
        header = stream.read(100)
    application_id = int.from_bytes(header[68:72], "big")
    return header.startswith(SQLITE_MAGIC) and application_id != APPLICATION_ID


def batched(items: Iterable[T], size: int) -> Iterator[list[T]]:
    """Split items into lists of at most `size`."""
    iterator = iter(items)
    while batch := list(islice(iterator, size)):
        yield batch


class ByteStore:
    """A table of bytes by text in an SQLite file of at most `max_rows` rows; the oldest go first.

    If the file cannot be opened, read or written, lookups find nothing and no error is raised.
    """

    def __init__(self, path: Path, table: str, max_rows: int) -> None:
        self.path, self._table, self._max_rows = path, table, max_rows
        self._connection: sqlite3.Connection | None = None
        self._process = 0

    def get(self, texts: Iterable[str]) -> dict[str, bytes]:
        """Look up the values of texts."""
        keys = {_text_key(text): text for text in texts}
        values: dict[str, bytes] = {}
        with self._log_errors():
            database = self._open()
            for batch in batched(keys, QUERY_KEYS):
                marks = ",".join("?" * len(batch))
                query = f"SELECT key, value FROM {self._table} WHERE key IN ({marks})"
                values |= {keys[key]: value for key, value in database.execute(query, batch)}
        return values

    def put(self, rows: Mapping[str, bytes]) -> bool:
        """Store the values of texts; return whether they were written."""
        keyed = [(_text_key(text), value) for text, value in rows.items()]
        with self._log_errors(), self._open() as database:
            database.executemany(f"INSERT OR REPLACE INTO {self._table} VALUES (?, ?)", keyed)
            newest = f"(SELECT max(rowid) FROM {self._table})"
            database.execute(
                f"DELETE FROM {self._table} WHERE rowid <= {newest} - ?", [self._max_rows]
            )
            return True
        return False

    @contextlib.contextmanager
    def _log_errors(self) -> Iterator[None]:
        try:
            yield
        except (sqlite3.Error, OSError) as error:
            logger.info("%s is not used (%s)", self.path, error)

    def _open(self) -> sqlite3.Connection:
        """Return the connection of this process; a forked process opens its own."""
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


def _create_tables(database: sqlite3.Connection, timeout: float) -> None:
    """Create the tables in an empty file; another process may do the same at this moment."""
    if database.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
        if _pragma(database, "application_id") == APPLICATION_ID:  # just created by another process
            return
        raise sqlite3.DatabaseError("the file was made by another program")
    deadline = time.monotonic() + timeout
    database.execute(f"PRAGMA page_size = {PAGE_BYTES}")
    database.execute("PRAGMA auto_vacuum = INCREMENTAL")
    while True:
        try:
            database.execute("PRAGMA journal_mode = WAL")
            break
        except sqlite3.OperationalError:  # this statement does not wait for locks
            if time.monotonic() > deadline:
                raise
            time.sleep(0.02)
    database.execute("BEGIN IMMEDIATE")
    for statement in SCHEMA:
        database.execute(statement)
    database.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    database.execute("COMMIT")


def _pragma(database: sqlite3.Connection, name: str) -> int:
    return int(database.execute(f"PRAGMA {name}").fetchone()[0])


@dataclass(frozen=True, slots=True, eq=False)
class CacheEntry:
    """Token vectors (tokens, dim) of a text with its tokens, or its sentence vector (dim,)."""

    matrix: Float32Array
    tokens: tuple[str, ...]
    truncated: bool

    @property
    def nbytes(self) -> int:
        return self.matrix.nbytes + 64 * len(self.tokens) + 256


class KeyHasher:
    """Hashes texts under one fingerprint to a 64-bit key and the remaining bytes of the digest."""

    def __init__(self, fingerprint: str) -> None:
        self._prefix = hashlib.sha256(fingerprint.encode() + b"\0")

    def __call__(self, text: str) -> tuple[int, bytes]:
        hasher = self._prefix.copy()
        hasher.update(text.encode("utf-8", "surrogatepass"))
        digest = hasher.digest()
        return int.from_bytes(digest[:8], "little", signed=True), digest[8:]


def encode_entry(entry: CacheEntry, digest: bytes) -> bytes | None:
    """Encode an entry as bytes; return None if a token contains the separator.

    >>> entry = CacheEntry(np.ones((1, 2), dtype=np.float32), ("cat",), False)
    >>> decode_entry(encode_entry(entry, bytes(24)), bytes(24)).tokens
    ('cat',)
    """
    tokens = "\0".join(entry.tokens).encode("utf-8", "surrogatepass")
    if entry.tokens and tokens.count(b"\0") != len(entry.tokens) - 1:
        return None
    kind, vectors = _to_smallest_type(np.ascontiguousarray(entry.matrix))
    rows, columns = entry.matrix.shape if entry.matrix.ndim == 2 else (1, len(entry.matrix))
    flags = TRUNCATED_FLAG * entry.truncated + SENTENCE_FLAG * (entry.matrix.ndim == 1)
    header = HEADER.pack(FORMAT_VERSION, kind, flags, rows, columns, len(tokens), digest)
    padding = bytes(-(len(header) + len(tokens)) % ALIGNMENT)
    body = b"".join((header, tokens, padding, vectors.tobytes()))
    return body + zlib.crc32(body).to_bytes(4, "little")


def decode_entry(data: bytes, digest: bytes) -> CacheEntry | None:
    """Decode an entry; return None if the data is damaged or has another digest.

    >>> decode_entry(b"damaged", bytes(24)) is None
    True
    """
    view = memoryview(data)
    if len(data) < HEADER.size + 4 or zlib.crc32(view[:-4]) != int.from_bytes(data[-4:], "little"):
        return None
    version, kind, flags, rows, columns, length, owner = HEADER.unpack_from(data)
    start = HEADER.size + length + -(HEADER.size + length) % ALIGNMENT
    size = rows * columns * BYTES_PER_NUMBER.get(kind, 0)
    if version != FORMAT_VERSION or owner != digest or start + size + 4 != len(data):
        return None
    tokens = bytes(view[HEADER.size : HEADER.size + length]).decode("utf-8", "surrogatepass")
    matrix = _to_float32(view[start : start + size], kind).reshape(rows, columns)
    is_sentence = bool(flags & SENTENCE_FLAG)
    return CacheEntry(
        matrix[0] if is_sentence else matrix,
        tuple(tokens.split("\0")) if length or (rows and not is_sentence) else (),
        bool(flags & TRUNCATED_FLAG),
    )


def _to_smallest_type(matrix: Float32Array) -> tuple[int, np.ndarray]:
    """Convert to the smallest type that holds every number exactly."""
    bits = matrix.view(np.uint32)
    if not (bits.flat[:8] & 0xFFFF).any() and not (bits & 0xFFFF).any():
        return BF16, (bits >> 16).astype(np.uint16)
    with np.errstate(over="ignore"):
        if (matrix.flat[:8] == matrix.flat[:8].astype(np.float16)).all():
            half = matrix.astype(np.float16)
            if (half == matrix).all():
                return FP16, half
    return FP32, matrix


def _to_float32(stored: memoryview, kind: int) -> Float32Array:
    if kind == BF16:
        bits = np.frombuffer(stored, dtype="<u2").astype(np.uint32) << 16
        return bits.view(np.float32)
    if kind == FP16:
        return np.frombuffer(stored, dtype="<f2").astype(np.float32)
    return np.frombuffer(stored, dtype="<f4")
