"""A table of bytes by kind and text in an SQLite file, shared by runs and processes.

The file is in WAL mode. Rows are only appended, since vectors have about ten thousand bytes. A file
that is locked, damaged, full or of another program is not used: there is one message, and the run
continues without it.

Above the size limit, the least recently used rows are deleted. Rows used since this process started
are kept, so that a run larger than the store fills it once instead of replacing its own rows.
"""

from __future__ import annotations

import hashlib
import logging
import os
import sqlite3
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing, suppress
from functools import lru_cache, partial
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar

from tertium.core.errors import DataError

T = TypeVar("T")

APPLICATION_ID = 0x74726D32  # "trm2": identifies our files in the SQLite header
SQLITE_MAGIC = b"SQLite format 3\0"
SQLITE_SUFFIXES = ("-wal", "-shm")  # companion files of an SQLite database
LOCK_TIMEOUT = 5.0  # seconds to wait for the lock of another process
BATCH = 500  # rows per query or transaction
SIZE_AFTER_EVICTION = 0.8  # of the limit, so that not every following write evicts again
STALE_SECONDS = 86_400  # a use is recorded only if the last recorded one is older
# Errors that sqlite3 raises for a damaged file, including those for invalid texts and types.
DATABASE_ERRORS = (sqlite3.Error, OSError, ValueError, TypeError, OverflowError, MemoryError)
MOVE_AWAY = "move it away yourself, or set TERTIUM_CACHE to another folder"
SCHEMA = (
    "CREATE TABLE IF NOT EXISTS entries "
    "(entry INTEGER PRIMARY KEY, kind TEXT, key BLOB, used REAL, value BLOB)",
    "CREATE UNIQUE INDEX IF NOT EXISTS entries_by_key ON entries (kind, key)",
    "CREATE INDEX IF NOT EXISTS entries_by_use ON entries (used)",
)

logger = logging.getLogger(__name__)


class Store:
    """Bytes by kind and text in a file of at most `limit` bytes; errors are logged, not raised."""

    def __init__(self, path: Path, limit: int, *, log_level: int = logging.WARNING) -> None:
        self.path, self.limit, self._log_level = path, limit, log_level
        self.is_usable = True
        self._started = time.time()
        self._connections = threading.local()
        self._is_full = False

    def read(self, kind: str, texts: Iterable[str]) -> dict[str, bytes]:
        """Return the values of the texts that have one."""
        return self._run(partial(self._select, kind, texts)) or {}

    def contains(self, kind: str, texts: Iterable[str]) -> set[str]:
        """Return the texts that have a value."""
        keys = {_hash_key(text): text for text in texts}
        rows = self._run(lambda database: list(_select_keys(database, "key", kind, keys)))
        return {keys[key] for (key,) in rows or ()}

    def write(self, kind: str, values: Mapping[str, bytes]) -> bool:
        """Store the values of texts; return whether they are in the file."""
        return not self._is_full and bool(self._run(partial(self._insert, kind, values)))

    def close(self) -> None:
        """Close the connection of this thread."""
        if hasattr(self._connections, "database"):
            self._connections.database.close()
            del self._connections.database

    def count(self) -> dict[str, int]:
        """Count the texts of each kind; raise `DataError` if the file cannot be read."""
        if not self.path.exists():
            return {}
        try:
            with closing(_connect(self.path)) as database:
                query = "SELECT kind, count(*) FROM entries GROUP BY kind ORDER BY kind"
                return dict(database.execute(query).fetchall())
        except DATABASE_ERRORS as error:
            raise DataError(f"{self.path} cannot be read: {error}; {self._remedy()}") from None

    def clear(self) -> int:
        """Delete the file, even if it is damaged; return the bytes freed."""
        self.close()
        freed = file_bytes(self.path)
        try:
            if self._is_other_application():
                raise DataError(f"{self.path} was made by another program: {MOVE_AWAY}")
            for file in database_files(self.path):
                file.unlink(missing_ok=True)
        except OSError as error:
            raise DataError(f"{self.path} cannot be removed ({error.strerror})") from None
        return freed

    def shrink(self) -> int:
        """Delete the least recently used rows until the limit is met; return the bytes freed."""
        self.close()
        before = file_bytes(self.path)
        if before <= self.limit:
            return 0
        try:
            with closing(_connect(self.path)) as database:
                self._evict(database, int(self.limit * SIZE_AFTER_EVICTION))
                database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
                is_empty = database.execute("SELECT 1 FROM entries LIMIT 1").fetchone() is None
        except DATABASE_ERRORS as error:
            raise DataError(f"{self.path} cannot be read: {error}; {self._remedy()}") from None
        if is_empty:  # an empty database still has pages
            self.clear()
        return before - file_bytes(self.path)

    def _run(self, job: Callable[[sqlite3.Connection], T]) -> T | None:
        """Run a job on the connection of this thread; None after an error."""
        if not self.is_usable:
            return None
        try:
            if not hasattr(self._connections, "database"):
                self._connections.database = _connect(self.path)
            with self._connections.database as database:
                return job(database)
        except DATABASE_ERRORS as error:
            self.is_usable = False
            logger.log(
                self._log_level,
                "the cache %s is not used: %s; scores are the same without it (%s)",
                *(self.path, error, self._remedy()),
            )
            return None

    def _select(
        self, kind: str, texts: Iterable[str], database: sqlite3.Connection
    ) -> dict[str, bytes]:
        keys = {_hash_key(text): text for text in texts}
        values: dict[str, bytes] = {}
        stale: list[tuple[float, int]] = []
        for key, value, entry, used in _select_keys(
            database, "key, value, entry, used", kind, keys
        ):
            values[keys[key]] = value
            if used < self._started - STALE_SECONDS:
                stale.append((self._started, entry))
        database.executemany("UPDATE entries SET used = ? WHERE entry = ?", stale)
        return values

    def _insert(self, kind: str, values: Mapping[str, bytes], database: sqlite3.Connection) -> bool:
        now = time.time()
        rows = ((kind, _hash_key(text), now, value) for text, value in values.items())
        while batch := list(islice(rows, BATCH)):
            size = sum(len(value) for *_, value in batch)
            if _used_bytes(database) + size > self.limit:
                self._evict(database, int(self.limit * SIZE_AFTER_EVICTION) - size)
            if _used_bytes(database) + size > self.limit:
                self._is_full = True
                logger.info("the cache %s is full: this run stores nothing more", self.path)
                return False
            query = "INSERT OR REPLACE INTO entries (kind, key, used, value) VALUES (?, ?, ?, ?)"
            with database:
                database.executemany(query, batch)
        return True

    def _evict(self, database: sqlite3.Connection, target_bytes: int) -> None:
        """Delete the least recently used rows until at most `target_bytes` are in use."""
        query = (
            "SELECT entry, length(value) FROM entries WHERE used < ? ORDER BY used, entry LIMIT ?"
        )
        while (excess := _used_bytes(database) - target_bytes) > 0:
            evicted: list[tuple[int]] = []
            for entry, size in database.execute(query, (self._started, BATCH)).fetchall():
                if excess > 0:
                    evicted.append((entry,))
                    excess -= size
            if not evicted:
                return
            with database:
                database.executemany("DELETE FROM entries WHERE entry = ?", evicted)

    def _is_other_application(self) -> bool:
        if not self.path.exists():
            return False
        with self.path.open("rb") as stream:
            header = stream.read(100)
        application_id = int.from_bytes(header[68:72], "big")
        return header.startswith(SQLITE_MAGIC) and application_id != APPLICATION_ID

    def _remedy(self) -> str:
        """Return advice for a file that cannot be used; `clear` keeps files of other programs."""
        with suppress(OSError):
            if self._is_other_application():
                return MOVE_AWAY
        if not os.access(self.path.parent, os.W_OK):
            return "its folder is not writable; set TERTIUM_CACHE to another folder"
        return "`tertium setup cache clear` starts a new one"


def open_store(path: Path, limit: int, *, log_level: int = logging.WARNING) -> Store:
    """Return the store of this process: a connection must not be used after a fork."""
    return _store_of_process(path, limit, log_level, os.getpid())


@lru_cache(maxsize=16)
def _store_of_process(path: Path, limit: int, log_level: int, process: int) -> Store:
    return Store(path, limit, log_level=log_level)


def database_files(path: Path) -> tuple[Path, ...]:
    """Return a file and the companion files that it has if it is an SQLite database."""
    return tuple(path.with_name(path.name + suffix) for suffix in ("", *SQLITE_SUFFIXES))


def file_bytes(path: Path) -> int:
    """Return the size of a database on disk, including its companion files."""
    return sum(file.stat().st_size for file in database_files(path) if file.exists())


def _connect(path: Path) -> sqlite3.Connection:
    """Connect to the file at a path; create it and its table if necessary."""
    path.parent.mkdir(parents=True, exist_ok=True)
    database = sqlite3.connect(path, timeout=LOCK_TIMEOUT)
    try:
        if _pragma(database, "application_id") != APPLICATION_ID:
            _prepare_file(database)
        for statement in SCHEMA:
            database.execute(statement)
        database.execute("PRAGMA synchronous = NORMAL")
    except BaseException:
        database.close()
        raise
    return database


def _prepare_file(database: sqlite3.Connection) -> None:
    """Set up an empty file; another process may do the same at this moment."""
    is_empty = database.execute("SELECT count(*) FROM sqlite_master").fetchone()[0] == 0
    if not is_empty and _pragma(database, "application_id") != APPLICATION_ID:
        raise sqlite3.DatabaseError("the file was made by another program")
    database.execute("PRAGMA auto_vacuum = FULL")  # the file shrinks when rows are deleted
    database.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    deadline = time.monotonic() + LOCK_TIMEOUT
    while True:
        try:
            database.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError:  # this statement does not wait for locks
            if time.monotonic() > deadline:
                raise
            time.sleep(0.02)


def _select_keys(
    database: sqlite3.Connection, columns: str, kind: str, keys: Iterable[bytes]
) -> Iterator[tuple[Any, ...]]:
    remaining = iter(keys)
    while batch := list(islice(remaining, BATCH)):
        marks = ",".join("?" * len(batch))
        query = f"SELECT {columns} FROM entries WHERE kind = ? AND key IN ({marks})"
        yield from database.execute(query, (kind, *batch)).fetchall()


def _used_bytes(database: sqlite3.Connection) -> int:
    """Return the bytes in use, without free pages."""
    pages = _pragma(database, "page_count") - _pragma(database, "freelist_count")
    return pages * _pragma(database, "page_size")


def _pragma(database: sqlite3.Connection, name: str) -> int:
    return int(database.execute(f"PRAGMA {name}").fetchone()[0])


def _hash_key(text: str) -> bytes:
    return hashlib.sha256(text.encode("utf-8", errors="surrogatepass")).digest()[:16]
