"""The cache on disk: a store of bytes by kind and text, and the kinds of cached files.

A `Store` is a table in an SQLite file, shared by runs and processes. The file is in WAL mode. Rows
are only appended, since vectors have about ten thousand bytes. A file that is locked, damaged, full
or of another program is not used: there is one message, and the run continues without it.

Above the size limit, the least recently used rows are deleted. Rows used since this process started
are kept, so that a run larger than the store fills it once instead of replacing its own rows.

Each kind of cached file is declared once, with its location and naming scheme. One command can
therefore list, limit and clear all of them. Files of no declared kind are left alone.

Arrays built from a resource (a dictionary, a paraphrase table) are stored as one npz file. Its name
contains a fingerprint of the source files, so changed sources lead to a new file. Rows computed
from texts (`cached_rows`) are stored by name, which must include everything that determines the
numbers. File hashes are cached by path, size and modification time. An unwritable folder costs time
but raises no error; damaged files are rebuilt. Nothing is pickled.
"""

from __future__ import annotations

import hashlib
import logging
import os
import shutil
import sqlite3
import sys
import threading
import time
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import islice
from pathlib import Path
from typing import IO, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from tertium.core.atomic import PARTIAL_PATTERN, open_atomic
from tertium.core.errors import DataError, UsageError, WriteError
from tertium.core.runtime import current_runtime

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
        self.path = path
        self.limit = limit
        self._log_level = log_level
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


Arrays = Mapping[str, NDArray[np.generic]]
Rows = NDArray[np.float32]
Key = tuple[str, ...]
Compute = Callable[[Sequence[int]], NDArray[np.floating]]

MAX_ROWS_BYTES = 4 << 30
MAX_HASHES_BYTES = 16 << 20
LAYOUT = "1"  # of the stores of rows and hashes; another layout uses another file
SMALL_FILE_BYTES = 1 << 20  # smaller files are hashed again rather than looked up


def cache_folder() -> Path:
    """Return `TERTIUM_CACHE`, else `tertium` in the user's cache folder; it may not exist."""
    return _user_folder(".cache/tertium", "cache", TERTIUM_CACHE="", XDG_CACHE_HOME="tertium")


def models_folder() -> Path:
    """Return `TERTIUM_MODELS`, else `tertium/models` in the user data folder; it may not exist."""
    return _user_folder(
        ".local/share/tertium/models",
        "data/models",
        TERTIUM_MODELS="",
        XDG_DATA_HOME="tertium/models",
    )


def hub_folder() -> Path:
    """Return the download cache of the Hugging Face libraries."""
    return _user_folder(
        ".cache/huggingface/hub",
        HF_HUB_CACHE="",
        HUGGINGFACE_HUB_CACHE="",
        HF_HOME="hub",
        XDG_CACHE_HOME="huggingface/hub",
    )


def _user_folder(unix: str, windows: str = "", **variables: str) -> Path:
    """Return a folder below the first variable that is set, else below the home folder."""
    for variable, folder in variables.items():
        if value := os.environ.get(variable):
            return _expand_home(value, variable) / folder
    if windows and sys.platform == "win32" and (local := os.environ.get("LOCALAPPDATA")):
        return Path(local) / "tertium" / windows
    return _expand_home("~", "HOME") / unix


def _expand_home(text: str, variable: str) -> Path:
    try:
        return Path(text).expanduser()
    except RuntimeError:
        raise UsageError(
            f"{variable}={text}: the home folder of this user is unknown; give an absolute path"
        ) from None


@dataclass(frozen=True)
class CacheKind:
    """A kind of cached file: `{}` in `place` stands for a name that matches the glob `names`."""

    name: str
    description: str
    place: str
    names: str = "[0-9]*"

    def path(self, name: str) -> Path:
        """Return the path of the file or folder with this name."""
        return cache_folder() / self.place.format(name)


HEX = "[0-9a-f]"
VECTORS = CacheKind("vectors", "vectors of texts", "embeddings-{}.sqlite")
ANALYSES = CacheKind("analyses", "parses", "analyses-{}.sqlite", "[0-9]*-*")
ANSWERS = CacheKind("answers", "answers of LLM judges", "answers-{}.sqlite")
ROWS = CacheKind("rows", "features", "rows-{}.sqlite")
INDEXES = CacheKind("indexes", "indexes of dictionaries", "indexes/{}.npz", f"*-{16 * HEX}")
WORD_VECTORS = CacheKind(
    "word-vectors", "indexes of word vectors", "word-vectors/{}", f"{32 * HEX}.*"
)
HASHES = CacheKind("hashes", "hashes of weights", "hashes-{}.sqlite")
TRAINED = CacheKind("trained", "models of published tables", "reproduce/{}", 16 * HEX)
LEFTOVERS = CacheKind(
    "remains", "temporary files of killed processes", "{}", f"**/{PARTIAL_PATTERN}"
)
CACHE_KINDS = {
    kind.name: kind
    for kind in (
        VECTORS,
        ANALYSES,
        ANSWERS,
        ROWS,
        INDEXES,
        WORD_VECTORS,
        HASHES,
        TRAINED,
        LEFTOVERS,
    )
}


@dataclass(frozen=True, kw_only=True)
class CacheItem:
    """A cached file with its companion files, or a cached folder."""

    kind: CacheKind
    path: Path
    bytes: int
    modified: float

    def remove(self) -> None:
        """Delete the item; it may already be gone."""
        try:
            if self.path.is_dir():
                shutil.rmtree(self.path)
            for file in database_files(self.path):
                file.unlink(missing_ok=True)
        except OSError as error:
            raise DataError(f"{self.path} cannot be removed: {error}") from None


def list_cache() -> tuple[list[CacheItem], list[Path]]:
    """List the items in the cache folder, and the files there that are not tertium's."""
    folder = cache_folder()
    if folder.exists() and not folder.is_dir():
        raise UsageError(f"{folder} is a file: set TERTIUM_CACHE to a folder")
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    items = []
    for kind in CACHE_KINDS.values():
        for path in folder.glob(kind.place.format(kind.names)):
            members = [f for f in files if f in database_files(path) or path in f.parents]
            statuses = []
            for file in members:
                files.remove(file)
                with suppress(OSError):  # removed by another process
                    statuses.append(file.stat())
            if statuses:
                item = CacheItem(
                    kind=kind,
                    path=path,
                    bytes=sum(status.st_size for status in statuses),
                    modified=max(status.st_mtime for status in statuses),
                )
                items.append(item)
    return items, files


def remove_oldest(items: Iterable[CacheItem], limit: int) -> int:
    """Remove the oldest items until the others take at most `limit` bytes; return bytes freed."""
    by_age = sorted(items, key=lambda item: item.modified)
    excess = sum(item.bytes for item in by_age) - limit
    freed = 0
    for item in by_age:
        if freed >= excess:
            break
        item.remove()
        freed += item.bytes
    return freed


def cached_arrays(
    name: str, files: Iterable[Path], version: str, build: Callable[[], Arrays]
) -> Arrays:
    """Return the arrays that `build` makes from `files`, cached until files or `version` change."""
    path = INDEXES.path(f"{name}-{_fingerprint_files(files, version)}")
    stored = read_arrays(path)
    if stored is not None:
        return stored
    arrays = build()
    write_arrays(path, arrays)
    return arrays


def _fingerprint_files(files: Iterable[Path], version: str) -> str:
    """Hash the names, sizes and modification times of files, not their contents."""
    digest = hashlib.sha256(version.encode())
    for file in files:
        status = file.stat()
        digest.update(f"{file.resolve()}\0{status.st_size}\0{status.st_mtime_ns}\n".encode())
    return digest.hexdigest()[:16]


def read_arrays(path: Path) -> Arrays | None:
    """Read an npz file; return None if it does not exist or is damaged."""
    try:
        with np.load(path, allow_pickle=False) as stored:
            return {key: stored[key] for key in stored.files}
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile) as error:
        logger.warning("%s cannot be read (%s): it is created again", path, error)
        return None


def write_arrays(path: Path, arrays: Arrays) -> None:
    """Write an npz file if possible."""
    write_cache_file(path, lambda stream: np.savez(stream, **arrays))  # type: ignore[arg-type]


def write_cache_file(path: Path, write: Callable[[IO[bytes]], object]) -> None:
    """Write a file of the cache; log an unwritable folder instead of raising an error."""
    try:
        with open_atomic(path, make_folder=True, durable=False) as stream:
            write(stream)
    except WriteError as error:
        logger.info("%s is not cached: %s", path.name, error)


def cached_file_hash(file: Path) -> str:
    """Return the sha256 of a file; hashes of large files are cached until the file changes."""
    status = file.stat()
    if status.st_size < SMALL_FILE_BYTES:
        return hash_file(file)
    key = f"{file.resolve()}|{status.st_size}|{status.st_mtime_ns}"
    store = open_store(HASHES.path(LAYOUT), MAX_HASHES_BYTES, log_level=logging.INFO)
    if stored := store.read("sha256", [key]):
        return stored[key].decode()
    digest = hash_file(file)
    store.write("sha256", {key: digest.encode()})
    return digest


def hash_file(file: Path) -> str:
    """Compute the sha256 of a file."""
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def cached_rows(name: str, keys: Sequence[Key], width: int, compute: Compute) -> Rows:
    """Return a row for each key, (n, width), from the cache; compute and add missing rows.

    `compute` receives the indices of keys to compute, each distinct key once.

    >>> from tertium.core.runtime import runtime
    >>> with runtime(cache=False):
    ...     cached_rows("lengths", [("ab",), ("c",), ("ab",)], 1, lambda p: np.ones((len(p), 1)))
    array([[1.],
           [1.],
           [1.]], dtype=float32)
    """
    store = open_store(ROWS.path(LAYOUT), MAX_ROWS_BYTES, log_level=logging.INFO)
    texts = ["\0".join(key) for key in keys]
    is_cached = current_runtime().cache
    rows = store.read(name, texts) if is_cached else {}
    rows = {text: row for text, row in rows.items() if len(row) == 4 * width}
    missing = {text: index for index, text in enumerate(texts) if text not in rows}
    if missing:
        computed = np.asarray(compute(list(missing.values())), dtype="<f4")
        values = computed.reshape(len(missing), width)
        new = {text: row.tobytes() for text, row in zip(missing, values, strict=True)}
        rows |= new
        if is_cached:
            store.write(name, new)
    joined = b"".join(rows[text] for text in texts)
    return np.frombuffer(joined, "<f4").reshape(len(texts), width).copy()
