"""The SQLite file behind the cache: how it is opened, made, recognised and measured."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import TypeVar

T = TypeVar("T")

APPLICATION = 0x74726D31  # "trm1", by which SQLite's header tells our files from others
MAGIC = b"SQLite format 3\0"
PAGE = 16384
PATIENCE = 5.0

SCHEMA = (
    "CREATE TABLE IF NOT EXISTS spaces (space INTEGER PRIMARY KEY, fingerprint TEXT NOT NULL)",
    "CREATE TABLE IF NOT EXISTS entries (key INTEGER PRIMARY KEY, space INTEGER NOT NULL, "
    "vector INTEGER NOT NULL, size INTEGER NOT NULL, used REAL NOT NULL)",
    "CREATE INDEX IF NOT EXISTS entries_by_use ON entries (used, vector)",
    "CREATE TABLE IF NOT EXISTS vectors (vector INTEGER PRIMARY KEY, data BLOB NOT NULL)",
)


def connect(path: Path, *, patience: float = PATIENCE) -> sqlite3.Connection:
    """A connection to the store at a path, made where there is none.

    Raises `sqlite3.Error` or `OSError` where the file is locked, damaged or not the store's.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    database = sqlite3.connect(
        path, timeout=patience, isolation_level=None, check_same_thread=False
    )
    try:
        if _pragma(database, "application_id") != APPLICATION:
            _make(database, patience)
        database.execute("PRAGMA synchronous = NORMAL")
    except BaseException:
        database.close()
        raise
    return database


def live_bytes(database: sqlite3.Connection) -> int:
    """The bytes in use; pages that were freed count for nothing, since they are used again."""
    pages = _pragma(database, "page_count") - _pragma(database, "freelist_count")
    return pages * _pragma(database, "page_size")


def give_back(database: sqlite3.Connection, pages: int) -> None:
    """Return so many pages that hold nothing to the disk.

    The statement yields a row without columns for each page; `execute` stops after the first.
    """
    database.executescript(f"PRAGMA incremental_vacuum({pages})")


def files_of(path: Path) -> tuple[Path, ...]:
    """The database with its write-ahead log and the index of that."""
    return tuple(path.with_name(path.name + suffix) for suffix in ("", "-wal", "-shm"))


def file_bytes(path: Path) -> int:
    """The bytes of all the store's files on disk."""
    return sum(file.stat().st_size for file in files_of(path) if file.exists())


def is_foreign(path: Path) -> bool:
    """Whether the file is a sound database that another program made."""
    with path.open("rb") as stream:
        header = stream.read(100)
    owner = int.from_bytes(header[68:72], "big")
    return header.startswith(MAGIC) and owner != APPLICATION


def batches(items: Iterable[T], size: int) -> Iterator[list[T]]:
    """Items in lists of at most so many: a query has room for so many keys."""
    rest = iter(items)
    while some := list(islice(rest, size)):
        yield some


def _make(database: sqlite3.Connection, patience: float) -> None:
    """Lay out an empty file as a store; two processes may try at the same moment."""
    if database.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
        if _pragma(database, "application_id") == APPLICATION:  # another was faster, just now
            return
        raise sqlite3.DatabaseError("the file was made by another program")
    deadline = time.monotonic() + patience
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
