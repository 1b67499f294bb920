"""The embedding store on disk, shared by systems, metrics, runs and processes.

It is an SQLite database in WAL mode. `entries` maps the key of a text under a fingerprint (weights,
layer or pooling, precision, length) to a row of `vectors`. Rows are only appended and have a
checksum (`database`). A store that is locked, damaged, full or of another program is not used:
there is one warning and the run continues without it. A background thread writes one chunk at a
time; a killed process loses at most that chunk.

Above the size limit, the least recently used entries are evicted. Entries used since this process
started are kept, so that a run larger than the store fills it once instead of replacing its own
entries. A file above its limit (after a lower limit, or with many processes) shrinks during use.
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
    QUERY_KEYS,
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

LAYOUT = "1"  # of the file; another layout uses another file
FILE = VECTORS.place.format(LAYOUT)
DEFAULT_SIZE = 4 << 30
SIZE_AFTER_EVICTION = 0.8  # of the limit, so that not every following chunk evicts again
WRITE_BATCH = 256  # entries per transaction
FREED_PAGES = 2048  # returned to the disk at a time; few, so that no process waits long
STALE_SECONDS = 3600.0  # a use is recorded only if the last recorded one is older
WRITER_TIMEOUT = 10.0  # seconds; the writer has its own thread, so nothing waits for it
# Errors that sqlite3 raises for a damaged file, including those for invalid texts and types.
DATABASE_ERRORS = (sqlite3.Error, OSError, ValueError, TypeError, OverflowError, MemoryError)
MOVE_AWAY = "move it away yourself, or set TERTIUM_CACHE to another folder"
EXPECTED_SIZE = "expected bytes, or a number with K, M, G or T"
UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}


@dataclass(frozen=True, kw_only=True)
class StoreInfo:
    """Contents of a store: file, bytes on disk, size limit, number of texts by fingerprint."""

    path: Path
    bytes: int
    limit: int
    texts: Mapping[str, int]


class VectorStore:
    """Cache entries in one SQLite file; reading and writing are safe in any state of the file."""

    def __init__(self, path: Path, limit: int) -> None:
        self.path, self.limit = path, limit
        self.is_usable = True
        self._started = time.time()
        self._lock = threading.Lock()
        self._reader: sqlite3.Connection | None = None
        self._writer: ThreadPoolExecutor | None = None
        self._pending: Future[None] | None = None
        self._is_full = self._has_warned_of_damage = False

    def read(self, fingerprint: str, texts: Sequence[str]) -> dict[str, CacheEntry]:
        """Look up the entries of texts."""
        entries: dict[str, CacheEntry] = {}
        damaged: list[int] = []
        stale: list[int] = []
        keys = dict(zip(texts, map(KeyHasher(fingerprint), texts), strict=True))
        try:
            for batch in batched(keys.items(), QUERY_KEYS) if self.is_usable else ():
                owners = {key: (text, digest) for text, (key, digest) in batch}
                for key, used, data in self._select(owners):
                    text, digest = owners[key]
                    entry = decode_entry(data, digest)
                    if entry is None:
                        damaged.append(key)
                        continue
                    entries[text] = entry
                    if used < self._started - STALE_SECONDS:
                        stale.append(key)
        except DATABASE_ERRORS as error:
            self._disable(error)
        self._follow_up(damaged, stale)
        return entries

    def contains(self, fingerprint: str, texts: Sequence[str]) -> set[str]:
        """Return the texts that have an entry."""
        hasher = KeyHasher(fingerprint)
        keys = {hasher(text)[0]: text for text in texts}
        present: set[str] = set()
        try:
            for batch in batched(keys, QUERY_KEYS) if self.is_usable else ():
                with self._lock:
                    reader = self._open_reader()
                    present |= {keys[k] for k in _keys_present(reader, batch)} if reader else set()
        except DATABASE_ERRORS as error:
            self._disable(error)
        return present

    def write(self, fingerprint: str, entries: Mapping[str, CacheEntry]) -> None:
        """Store entries in the background; waits for the previous chunk."""
        if entries and not self._is_full:
            self._submit(self._insert, fingerprint, dict(entries))

    def flush(self) -> None:
        """Wait until all entries are in the file."""
        if self._pending is not None:
            self._pending.result()

    def close(self) -> None:
        """Finish writing and close the file."""
        self.flush()
        if self._writer is not None:
            self._writer.shutdown()
            self._writer = None
        with self._lock:
            if self._reader is not None:
                self._reader.close()
                self._reader = None

    def info(self) -> StoreInfo:
        """Describe the contents; raise `DataError` if the file cannot be read."""
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
        size = file_bytes(self.path)
        return StoreInfo(path=self.path, bytes=size, limit=self.limit, texts=dict(rows))

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
        """Evict the least recently used entries until the limit is met; return the bytes freed."""
        self.close()
        before = file_bytes(self.path)
        if before <= self.limit:
            return 0
        try:
            with closing(connect(self.path)) as database:
                self._evict(database, int(self.limit * SIZE_AFTER_EVICTION))
                free_pages(database, database.execute("PRAGMA page_count").fetchone()[0])
                database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
                is_empty = database.execute("SELECT 1 FROM entries LIMIT 1").fetchone() is None
        except DATABASE_ERRORS as error:
            raise DataError(f"{self.path} cannot be read: {error}; {self._remedy()}") from None
        if is_empty:  # an empty database still has pages
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
        """Return the connection for reading, None if the file does not exist."""
        if self._reader is None and self.path.exists():
            self._reader = connect(self.path)
        return self._reader

    def _follow_up(self, damaged: Sequence[int], stale: Sequence[int]) -> None:
        """Delete damaged entries, so that they are stored again, and record the use of others."""
        if damaged and not self._has_warned_of_damage:
            self._has_warned_of_damage = True
            logger.warning(
                "%d damaged entries in the cache %s are computed again", len(damaged), self.path
            )
        if damaged:
            self._submit(self._delete, damaged)
        if stale:
            self._submit(self._record_use, stale)

    def _submit(self, job: Callable[..., None], *arguments: object) -> None:
        if not self.is_usable:
            return
        if self._writer is None:
            self._writer = ThreadPoolExecutor(1, thread_name_prefix="tertium-cache")
        self.flush()
        self._pending = self._writer.submit(self._run_job, job, *arguments)

    def _run_job(self, job: Callable[..., None], *arguments: object) -> None:
        try:
            with closing(connect(self.path, timeout=WRITER_TIMEOUT)) as database:
                job(database, *arguments)
        except DATABASE_ERRORS as error:
            self._disable(error)

    def _insert(
        self, database: sqlite3.Connection, fingerprint: str, entries: Mapping[str, CacheEntry]
    ) -> None:
        hasher, space = KeyHasher(fingerprint), KeyHasher("space")(fingerprint)[0]
        database.execute("INSERT OR IGNORE INTO spaces VALUES (?, ?)", (space, fingerprint))
        for batch in batched(entries.items(), WRITE_BATCH):
            keyed = ((hasher(text), entry) for text, entry in batch)
            encoded = ((key, encode_entry(entry, digest)) for (key, digest), entry in keyed)
            new_rows = {key: row for key, row in encoded if row is not None}
            if not self._make_space(database, sum(map(len, new_rows.values()))):
                return
            database.execute("BEGIN IMMEDIATE")
            for key in _keys_present(database, new_rows):
                del new_rows[key]
            _append(database, space, new_rows)
            database.execute("COMMIT")

    def _make_space(self, database: sqlite3.Connection, size: int) -> bool:
        """Evict entries until `size` bytes fit; return False if that is impossible."""
        if used_bytes(database) + size > self.limit:
            self._evict(database, int(self.limit * SIZE_AFTER_EVICTION) - size)
            if used_bytes(database) + size > self.limit:
                self._is_full = True
                logger.info("the cache %s is full: this run stores nothing more", self.path)
                return False
        if file_bytes(self.path) > self.limit:
            free_pages(database, FREED_PAGES)
        return True

    def _evict(self, database: sqlite3.Connection, target_bytes: int) -> None:
        """Delete the least recently used entries until at most `target_bytes` are in use."""
        while (excess := used_bytes(database) - target_bytes) > 0:
            evicted: list[int] = []
            oldest = database.execute(
                "SELECT key, size FROM entries WHERE used < ? ORDER BY used, vector LIMIT ?",
                (self._started, QUERY_KEYS),
            )
            for key, entry_size in oldest.fetchall():
                evicted.append(key)
                excess -= entry_size
                if excess <= 0:
                    break
            if not evicted:
                return
            self._delete(database, evicted)

    def _delete(self, database: sqlite3.Connection, keys: Sequence[int]) -> None:
        for batch in batched(keys, QUERY_KEYS):
            condition = f"WHERE key IN ({','.join(map(str, batch))})"
            database.execute("BEGIN IMMEDIATE")
            database.execute(
                f"DELETE FROM vectors WHERE vector IN (SELECT vector FROM entries {condition})"
            )
            database.execute(f"DELETE FROM entries {condition}")
            database.execute("COMMIT")

    def _record_use(self, database: sqlite3.Connection, keys: Sequence[int]) -> None:
        now = time.time()
        database.execute("BEGIN IMMEDIATE")
        database.executemany("UPDATE entries SET used = ? WHERE key = ?", [(now, k) for k in keys])
        database.execute("COMMIT")

    def _disable(self, error: Exception) -> None:
        if self.is_usable:
            self.is_usable = False
            logger.warning(
                "the cache %s is not used: %s; scores are the same without it (%s)",
                self.path,
                error,
                self._remedy(),
            )

    def _is_other_application(self) -> bool:
        return self.path.exists() and is_other_application(self.path)

    def _remedy(self) -> str:
        """Return advice for a file that cannot be used; `clear` keeps files of other programs."""
        with suppress(OSError):
            if self._is_other_application():
                return MOVE_AWAY
        if not os.access(self.path.parent, os.W_OK):
            return "its folder is not writable; set TERTIUM_CACHE to another folder"
        return "`tertium setup cache clear` starts a new one"


def _keys_present(database: sqlite3.Connection, keys: Iterable[int]) -> list[int]:
    listed = ",".join(map(str, keys))
    return [row[0] for row in database.execute(f"SELECT key FROM entries WHERE key IN ({listed})")]


def _append(database: sqlite3.Connection, space: int, rows: Mapping[int, bytes]) -> None:
    now = time.time()
    for key, row in rows.items():
        vector = database.execute("INSERT INTO vectors (data) VALUES (?)", (row,)).lastrowid
        database.execute(
            "INSERT OR REPLACE INTO entries VALUES (?, ?, ?, ?, ?)",
            (key, space, vector, len(row), now),
        )


def open_vector_store() -> VectorStore | None:
    """Return the store of this process, None if caching is disabled or the folder is read-only."""
    limit = store_size_limit()
    folder = cache_folder()
    if not current_runtime().cache or not limit or not _is_writable(folder):
        return None
    return _store_of_process(folder / FILE, limit, os.getpid())


@lru_cache(maxsize=4)
def _store_of_process(path: Path, limit: int, process: int) -> VectorStore:
    """Open one store per process: SQLite connections must not be used after a fork."""
    return VectorStore(path, limit)


def store_size_limit() -> int:
    """Return the maximum size in bytes: `TERTIUM_CACHE_SIZE`, such as 500M or 8G, else 4G."""
    text = os.environ.get("TERTIUM_CACHE_SIZE", "")
    if not text.strip():
        return DEFAULT_SIZE
    size = parse_size(text)
    if size is None:
        raise UsageError(
            f"TERTIUM_CACHE_SIZE={text} is not a size: {EXPECTED_SIZE}; 0 turns the cache off"
        )
    return size


def parse_size(text: str) -> int | None:
    """Parse a number of bytes; return None for invalid text.

    >>> parse_size("500M"), parse_size("1.5 kb"), parse_size("-3"), parse_size("much")
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
    existing = next(parent for parent in (folder, *folder.parents) if parent.exists())
    if existing.is_dir() and os.access(existing, os.W_OK):
        return True
    logger.info("no cache: %s is not writable", folder)
    return False
