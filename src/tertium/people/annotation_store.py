"""The event log of a campaign: every action of raters and managers, in one SQLite file.

Events are only added. An event is on disk (WAL, synchronous=FULL) before `append` returns. Its id
is made by the page that sends it, so that sending it twice stores it once. The order of events is
that of arrival: clocks play no part. `state` computes everything else from the events.
"""

from __future__ import annotations

import json
import os
import sqlite3
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tertium.core.atomic import create_private_file
from tertium.core.errors import DataError, WriteError

APPLICATION_ID = 0x74726D41  # "trmA"
SCHEMA_VERSION = 1
SCHEMA = (
    "CREATE TABLE about (name TEXT PRIMARY KEY, value TEXT NOT NULL)",
    "CREATE TABLE links (hash TEXT PRIMARY KEY, person TEXT NOT NULL, is_current INTEGER NOT NULL)",
    "CREATE TABLE events (number INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT UNIQUE NOT NULL, "
    "person TEXT NOT NULL, received REAL NOT NULL, body TEXT NOT NULL)",
)
MANAGER = ""  # as a person; raters have names
DISK_ERRORS = frozenset({sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_READONLY})


@dataclass(frozen=True, slots=True)
class Event:
    """One action. `body` is what the page sent; `received` is set by the store."""

    id: str
    person: str
    body: dict[str, Any]
    received: float = 0.0


class EventStore:
    """The events of one campaign.

    `on_stored` is called with each new event in the order of the log, first for those on disk.
    """

    def __init__(
        self, path: Path, campaign_id: str, on_stored: Callable[[Event], None] = lambda _: None
    ) -> None:
        self.path = Path(os.path.realpath(path))
        self._on_stored = on_stored
        self._lock = threading.Lock()
        _check_names(self.path)
        create_private_file(self.path)  # SQLite gives its other files the same mode
        with _explain(path):
            # `with self._database` is a transaction, which ends with a commit or a rollback.
            self._database = sqlite3.connect(
                self.path, check_same_thread=False, isolation_level="IMMEDIATE"
            )
            _prepare(self._database, path, campaign_id)
        for event in self.events():
            on_stored(event)

    def close(self) -> None:
        """Close the file."""
        self._database.close()

    def append(self, events: Sequence[Event]) -> list[str]:
        """Store events that are not stored yet; return ids that another event has already."""
        stored: list[Event] = []
        refused: list[str] = []
        with self._lock:
            with _explain(self.path), self._database:
                for event in events:
                    self._insert(event, stored, refused)
            for event in stored:
                self._on_stored(event)
        return refused

    def events(self) -> Iterator[Event]:
        """Yield all events in the order of the log."""
        query = "SELECT id, person, body, received FROM events ORDER BY number"
        for name, person, body, received in self._database.execute(query):
            yield Event(name, person, json.loads(body), received)

    def links(self) -> dict[str, str]:
        """Return the person of each hashed token."""
        return dict(self._database.execute("SELECT hash, person FROM links WHERE is_current"))

    def replace_links(self, hashes: Iterable[tuple[str, str]]) -> None:
        """Store hashed tokens with their persons; older tokens of these persons end."""
        pairs = list(hashes)
        with self._lock, _explain(self.path), self._database:
            self._database.executemany(
                "UPDATE links SET is_current = 0 WHERE person = ?", [(p,) for _, p in pairs]
            )
            self._database.executemany("INSERT INTO links VALUES (?, ?, 1)", pairs)

    def _insert(self, event: Event, stored: list[Event], refused: list[str]) -> None:
        body = json.dumps(event.body, ensure_ascii=True, separators=(",", ":"))
        query = "SELECT person, body FROM events WHERE id = ?"
        row = self._database.execute(query, (event.id,)).fetchone()
        if row is None:
            received = time.time()
            self._database.execute(
                "INSERT INTO events (id, person, received, body) VALUES (?, ?, ?, ?)",
                (event.id, event.person, received, body),
            )
            stored.append(replace(event, received=received))
        elif row != (event.person, body):
            refused.append(event.id)


def _check_names(path: Path) -> None:
    """Raise an error if a file has hard links: SQLite keeps new events next to each name."""
    count = path.stat().st_nlink if path.is_file() else 1
    if count > 1:
        raise DataError(
            f"{path} has {count} names (hard links), and answers stored under one may be missing "
            "under another: delete the other names, or copy the file and delete this one"
        )


def _prepare(database: sqlite3.Connection, path: Path, campaign_id: str) -> None:
    """Create the tables of a new file, or check that the file belongs to the campaign."""
    database.execute("PRAGMA journal_mode = WAL")
    database.execute("PRAGMA synchronous = FULL")
    with database:
        database.execute("BEGIN IMMEDIATE")
        if not database.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
            for statement in SCHEMA:
                database.execute(statement)
            database.execute("INSERT INTO about VALUES ('campaign', ?)", (campaign_id,))
            database.execute(f"PRAGMA application_id = {APPLICATION_ID}")
            database.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
    if database.execute("PRAGMA application_id").fetchone()[0] != APPLICATION_ID:
        raise DataError(
            f"{path} is a database of another program: give another file with --answers"
        )
    version = database.execute("PRAGMA user_version").fetchone()[0]
    if version != SCHEMA_VERSION:
        raise DataError(
            f"{path} is a database of version {version}; this tertium reads version "
            f"{SCHEMA_VERSION}: update tertium"
        )
    [stored] = database.execute("SELECT value FROM about WHERE name = 'campaign'").fetchone()
    if stored != campaign_id:
        raise DataError(
            f"{path} holds the answers of another campaign (id {stored}, not {campaign_id}): give "
            "another file with --answers, or the campaign it was made for"
        )


@contextmanager
def _explain(path: Path) -> Iterator[None]:
    """Turn errors of SQLite into `WriteError` (disk) or `DataError` (content)."""
    try:
        yield
    except sqlite3.Error as error:
        code = getattr(error, "sqlite_errorcode", 0) & 0xFF
        if code == sqlite3.SQLITE_FULL:
            raise WriteError(f"{path}: the disk is full; free some space") from None
        if code in DISK_ERRORS:
            raise WriteError(f"{path}: cannot be written ({error})") from None
        raise DataError(f"{path}: not a usable database ({error})") from None
