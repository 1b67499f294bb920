"""Vectors on disk, shared by systems, metrics, runs and processes; never needed, never in the way.

An SQLite database in WAL mode. `entries` maps the key of a text under a fingerprint (weights, layer
or pooling, precision, length) to a row of `vectors`; rows are only ever appended, which is what a
disk likes, and carry a checksum (`database`). A store that is locked, corrupt, foreign or full is
left alone: one warning, and the run goes on without it. Writing happens in a thread of its own, one
chunk behind; a process killed at any moment loses that chunk and nothing else.

When the store outgrows its size, what was used longest ago goes first; what was used since this
process started stays, so that a run larger than the store fills it once instead of churning. A file
that is larger than its size (by a larger limit, or many processes at once) shrinks as it is used.
"""

from __future__ import annotations

import logging
import os
import sqlite3
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing, suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from tertium.cache.cached_files import VECTORS, cache_folder, database_files
from tertium.cache.database import (
    CacheEntry,
    KeyHasher,
    batched,
    connect,
    decode_entry,
    encode_entry,
    file_bytes,
    free_pages,
    is_other_application,
    used_bytes,
)
from tertium.errors import DataError, UsageError
from tertium.execution import current_runtime

logger = logging.getLogger(__name__)

LAYOUT = "1"  # of the file; another layout is another file
FILE = VECTORS.place.format(LAYOUT)
DEFAULT_SIZE = 4 << 30
KEPT_AFTER_EVICTION = 0.8  # less than all, so that not every chunk that follows evicts again
READ_AT_ONCE = 500  # keys in one query
WRITTEN_AT_ONCE = 256
FREED_AT_ONCE = 2048  # pages that are given back to the disk; few, so that nobody waits long
STALE = 3600.0  # seconds; to note a use that another of the last hour follows is a needless write
WRITER_TIMEOUT = 10.0  # seconds; it writes on a thread of its own, which nobody waits for
# What a damaged file makes sqlite3 raise: its own errors, and Python's for texts and types that
# cannot be.
DATABASE_ERRORS = (sqlite3.Error, OSError, ValueError, TypeError, OverflowError, MemoryError)
MOVE_AWAY = "move it away yourself, or name another folder in TERTIUM_CACHE"
EXPECTED_SIZE = "expected bytes, or a number with K, M, G or T"
UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}


@dataclass(frozen=True, kw_only=True)
class StoreInfo:
    """What a store holds: its file, bytes on disk and allowed, and texts under each fingerprint."""

    path: Path
    bytes: int
    limit: int
    texts: Mapping[str, int]


class VectorStore:
    """The vectors in one file. Reading and writing are safe whatever state the file is in."""

    def __init__(self, path: Path, limit: int) -> None:
        self.path, self.limit = path, limit
        self.usable = True
        self._started = time.time()
        self._lock = threading.Lock()
        self._reader: sqlite3.Connection | None = None
        self._writer: ThreadPoolExecutor | None = None
        self._pending: Future[None] | None = None
        self._full = self._damaged = False

    def read(self, fingerprint: str, texts: Sequence[str]) -> dict[str, CacheEntry]:
        """The parts the store holds for these texts."""
        found: dict[str, CacheEntry] = {}
        damaged: list[int] = []
        stale: list[int] = []
        keys = dict(zip(texts, map(KeyHasher(fingerprint), texts), strict=True))
        try:
            for some in batched(keys.items(), READ_AT_ONCE) if self.usable else ():
                owners = {key: (text, digest) for text, (key, digest) in some}
                for key, used, row in self._select(owners):
                    text, digest = owners[key]
                    part = decode_entry(row, digest)
                    if part is None:
                        damaged.append(key)
                        continue
                    found[text] = part
                    if used < self._started - STALE:
                        stale.append(key)
        except DATABASE_ERRORS as error:
            self._give_up(error)
        self._follow_up(damaged, stale)
        return found

    def has(self, fingerprint: str, texts: Sequence[str]) -> set[str]:
        """Which of these texts the store has an entry for."""
        keys = {key(text)[0]: text for key in (KeyHasher(fingerprint),) for text in texts}
        found: set[str] = set()
        try:
            for some in batched(keys, READ_AT_ONCE) if self.usable else ():
                with self._lock:
                    reader = self._open_reader()
                    found |= {keys[k] for k in _keys_present(reader, some)} if reader else set()
        except DATABASE_ERRORS as error:
            self._give_up(error)
        return found

    def write(self, fingerprint: str, parts: Mapping[str, CacheEntry]) -> None:
        """Store parts in the background; waits for the chunk before this one."""
        if parts and not self._full:
            self._submit(self._insert, fingerprint, dict(parts))

    def flush(self) -> None:
        """Wait until everything written is in the file."""
        if self._pending is not None:
            self._pending.result()

    def close(self) -> None:
        """Finish writing and let go of the file."""
        self.flush()
        if self._writer is not None:
            self._writer.shutdown()
            self._writer = None
        with self._lock:
            if self._reader is not None:
                self._reader.close()
                self._reader = None

    def info(self) -> StoreInfo:
        """What the store holds; raises what is wrong with it, since a user asked."""
        self.flush()
        rows: list[tuple[str, int]] = []
        if self.path.exists():
            try:
                with closing(connect(self.path)) as database:
                    rows = database.execute(
                        "SELECT fingerprint, count(*) FROM entries JOIN spaces USING (space) "
                        "GROUP BY space ORDER BY fingerprint"
                    ).fetchall()
            except DATABASE_ERRORS as error:
                raise DataError(f"{self.path} cannot be read: {error}; {self._remedy()}") from None
        return StoreInfo(
            path=self.path, bytes=file_bytes(self.path), limit=self.limit, texts=dict(rows)
        )

    def clear(self) -> int:
        """Remove everything, a damaged file too; returns the bytes freed."""
        self.close()
        freed = file_bytes(self.path)
        try:
            if self._is_foreign():
                raise DataError(f"{self.path} was made by another program: {MOVE_AWAY}")
            for file in database_files(self.path):
                file.unlink(missing_ok=True)
        except OSError as error:
            raise DataError(f"{self.path} cannot be removed ({error.strerror})") from None
        return freed

    def shrink(self) -> int:
        """Evict what was used longest ago until the file is as small as allowed; bytes freed."""
        self.close()
        before = file_bytes(self.path)
        if before <= self.limit:
            return 0
        try:
            with closing(connect(self.path)) as database:
                self._evict(database, int(self.limit * KEPT_AFTER_EVICTION))
                free_pages(database, database.execute("PRAGMA page_count").fetchone()[0])
                database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
                rest = database.execute("SELECT 1 FROM entries LIMIT 1").fetchone()
        except DATABASE_ERRORS as error:
            raise DataError(f"{self.path} cannot be read: {error}; {self._remedy()}") from None
        if rest is None:  # an empty database still takes its pages
            self.clear()
        return before - file_bytes(self.path)

    def _select(self, keys: Iterable[int]) -> list[tuple[int, float, bytes]]:
        with self._lock:
            reader = self._open_reader()
            if reader is None:
                return []
            return reader.execute(
                "SELECT key, used, data FROM entries JOIN vectors USING (vector) "
                f"WHERE key IN ({','.join(map(str, keys))})"
            ).fetchall()

    def _open_reader(self) -> sqlite3.Connection | None:
        """The connection for reading; None while there is no file."""
        if self._reader is None and self.path.exists():
            self._reader = connect(self.path)
        return self._reader

    def _follow_up(self, damaged: Sequence[int], stale: Sequence[int]) -> None:
        """Drop damaged rows, so that they are stored anew, and note what is still in use."""
        if damaged and not self._damaged:
            self._damaged = True
            logger.warning(
                "%d damaged entries in the cache %s are computed again", len(damaged), self.path
            )
        if damaged:
            self._submit(self._delete, damaged)
        if stale:
            self._submit(self._touch, stale)

    def _submit(self, job: Callable[..., None], *arguments: object) -> None:
        if not self.usable:
            return
        if self._writer is None:
            self._writer = ThreadPoolExecutor(1, thread_name_prefix="tertium-cache")
        self.flush()
        self._pending = self._writer.submit(self._work, job, *arguments)

    def _work(self, job: Callable[..., None], *arguments: object) -> None:
        try:
            with closing(connect(self.path, timeout=WRITER_TIMEOUT)) as database:
                job(database, *arguments)
        except DATABASE_ERRORS as error:
            self._give_up(error)

    def _insert(
        self, database: sqlite3.Connection, fingerprint: str, parts: Mapping[str, CacheEntry]
    ) -> None:
        keys, space = KeyHasher(fingerprint), KeyHasher("space")(fingerprint)[0]
        database.execute("INSERT OR IGNORE INTO spaces VALUES (?, ?)", (space, fingerprint))
        for some in batched(parts.items(), WRITTEN_AT_ONCE):
            rows = {key: encode_entry(part, rest) for t, part in some for key, rest in (keys(t),)}
            fresh = {key: row for key, row in rows.items() if row is not None}
            if not self._make_room(database, sum(map(len, fresh.values()))):
                return
            database.execute("BEGIN IMMEDIATE")
            for key in _keys_present(database, fresh):
                del fresh[key]
            _append(database, space, fresh)
            database.execute("COMMIT")

    def _make_room(self, database: sqlite3.Connection, size: int) -> bool:
        """Evict what was used longest ago until there is room; False where that is impossible."""
        if used_bytes(database) + size > self.limit:
            self._evict(database, int(self.limit * KEPT_AFTER_EVICTION) - size)
            if used_bytes(database) + size > self.limit:
                self._full = True
                logger.info("the cache %s is full: this run stores nothing more", self.path)
                return False
        if file_bytes(self.path) > self.limit:
            free_pages(database, FREED_AT_ONCE)
        return True

    def _evict(self, database: sqlite3.Connection, goal: int) -> None:
        """Drop what was used longest ago until so many bytes are in use.

        What is in use is counted anew for each batch: where several processes evict at once, none
        drops what another has made room for already.
        """
        while (excess := used_bytes(database) - goal) > 0:
            doomed: list[int] = []
            oldest = database.execute(
                "SELECT key, size FROM entries WHERE used < ? ORDER BY used, vector LIMIT ?",
                (self._started, READ_AT_ONCE),
            )
            for key, entry_size in oldest.fetchall():
                doomed.append(key)
                excess -= entry_size
                if excess <= 0:
                    break
            if not doomed:
                return
            self._delete(database, doomed)

    def _delete(self, database: sqlite3.Connection, keys: Sequence[int]) -> None:
        for some in batched(keys, READ_AT_ONCE):
            chosen = f"WHERE key IN ({','.join(map(str, some))})"
            database.execute("BEGIN IMMEDIATE")
            database.execute(
                f"DELETE FROM vectors WHERE vector IN (SELECT vector FROM entries {chosen})"
            )
            database.execute(f"DELETE FROM entries {chosen}")
            database.execute("COMMIT")

    def _touch(self, database: sqlite3.Connection, keys: Sequence[int]) -> None:
        now = time.time()
        database.execute("BEGIN IMMEDIATE")
        database.executemany(
            "UPDATE entries SET used = ? WHERE key = ?", [(now, key) for key in keys]
        )
        database.execute("COMMIT")

    def _give_up(self, error: Exception) -> None:
        if self.usable:
            self.usable = False
            logger.warning(
                "the cache %s is not used: %s; scores are the same without it (%s)",
                self.path,
                error,
                self._remedy(),
            )

    def _is_foreign(self) -> bool:
        return self.path.exists() and is_other_application(self.path)

    def _remedy(self) -> str:
        """What helps against a file that cannot be used; `clear` leaves another program's alone."""
        with suppress(OSError):
            if self._is_foreign():
                return MOVE_AWAY
        if not os.access(self.path.parent, os.W_OK):
            return "its folder cannot be written, so name another one with TERTIUM_CACHE"
        return "`tertium cache clear` starts a new one"


def _keys_present(database: sqlite3.Connection, keys: Iterable[int]) -> list[int]:
    marks = ",".join(map(str, keys))
    return [row[0] for row in database.execute(f"SELECT key FROM entries WHERE key IN ({marks})")]


def _append(database: sqlite3.Connection, space: int, rows: Mapping[int, bytes]) -> None:
    now = time.time()
    for key, row in rows.items():
        vector = database.execute("INSERT INTO vectors (data) VALUES (?)", (row,)).lastrowid
        database.execute(
            "INSERT OR REPLACE INTO entries VALUES (?, ?, ?, ?, ?)",
            (key, space, vector, len(row), now),
        )


def open_vector_store() -> VectorStore | None:
    """The store of this process; None where the run, the user or the disk wants none."""
    limit = store_size_limit()
    folder = cache_folder()
    if not current_runtime().cache or not limit or not _is_writable(folder):
        return None
    return _store(folder / FILE, limit, os.getpid())


@lru_cache(maxsize=4)
def _store(path: Path, limit: int, process: int) -> VectorStore:
    """One store a process: SQLite connections must not cross a fork."""
    return VectorStore(path, limit)


def store_size_limit() -> int:
    """The bytes the store may take: `TERTIUM_CACHE_SIZE` such as 500M or 8G, 4G by default."""
    text = os.environ.get("TERTIUM_CACHE_SIZE", "")
    if not text.strip():
        return DEFAULT_SIZE
    size = parse_size(text)
    if size is None:
        raise UsageError(
            f"TERTIUM_CACHE_SIZE={text} is no size: {EXPECTED_SIZE}; 0 turns the cache off"
        )
    return size


def parse_size(text: str) -> int | None:
    """A number of bytes; None where the text is none.

    >>> read_size("500M"), read_size("1.5 kb"), read_size("-3"), read_size("much")
    (524288000, 1536, None, None)
    """
    number = text.strip().upper().removesuffix("B")
    unit = number[-1:] if number[-1:] in UNITS else ""
    try:
        size = int(float(number.removesuffix(unit)) * UNITS[unit])
    except (ValueError, OverflowError):
        return None
    return size if size >= 0 else None


def _is_writable(folder: Path) -> bool:
    there = next(parent for parent in (folder, *folder.parents) if parent.exists())
    if there.is_dir() and os.access(there, os.W_OK):
        return True
    logger.info("no cache: %s cannot be written", folder)
    return False
