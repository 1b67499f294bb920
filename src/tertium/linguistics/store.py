"""Analyses kept on disk, so that a text is parsed once in the life of a cache folder.

One SQLite file for each parser; a row is the hash of a text and its packed analysis. The store is a
convenience: where it cannot be opened, read or written, texts are parsed again and nothing fails.
"""

from __future__ import annotations

import contextlib
import hashlib
import logging
import os
import sqlite3
import zlib
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from tertium.cache.database import batches
from tertium.cache.kinds import ANALYSES
from tertium.errors import DataError
from tertium.linguistics.analysis import Analysis, pack, unpack

LAYOUT = 1  # raise it when analyses change without the parser changing
MOST_ROWS = 400_000  # about 300 MB; the oldest go first
_BATCH = 500  # keys in one query

_log = logging.getLogger(__name__)


class AnalysisStore:
    """The analyses of one parser, by text."""

    def __init__(self, parser: str, folder: Path | None = None) -> None:
        own = ANALYSES.path(f"{LAYOUT}-{parser}")
        self.path = folder / own.name if folder else own
        self._connection: sqlite3.Connection | None = None
        self._process = 0

    def get(self, texts: Sequence[str]) -> dict[str, Analysis]:
        """The analyses it holds of these texts."""
        keys = {_key(text): text for text in texts}
        found: dict[str, Analysis] = {}
        with self._forgiving():
            connection = self._open()
            for batch in batches(keys, _BATCH):
                marks = ",".join("?" * len(batch))
                query = f"SELECT key, value FROM analyses WHERE key IN ({marks})"
                for key, value in connection.execute(query, batch):
                    text = keys[key]
                    with contextlib.suppress(DataError, zlib.error, UnicodeDecodeError):
                        found[text] = unpack(text, zlib.decompress(value).decode())
        return found

    def put(self, analyses: Iterable[Analysis]) -> None:
        """Keep analyses, dropping the oldest above `MOST_ROWS`."""
        rows = [
            (_key(a.text), zlib.compress(pack(a).encode("utf-8", errors="replace"), 1))
            for a in analyses
        ]
        with self._forgiving():
            connection = self._open()
            with connection:
                connection.executemany("INSERT OR REPLACE INTO analyses VALUES (?, ?)", rows)
                connection.execute(
                    "DELETE FROM analyses WHERE rowid <= (SELECT max(rowid) FROM analyses) - ?",
                    (MOST_ROWS,),
                )

    @contextlib.contextmanager
    def _forgiving(self) -> Iterator[None]:
        """What goes wrong with the file inside the block is logged and forgotten."""
        try:
            yield
        except (sqlite3.Error, OSError) as error:
            _log.info("the store of analyses %s is not used (%s)", self.path, error)

    def _open(self) -> sqlite3.Connection:
        """The connection of this process; a forked one does not inherit its parent's."""
        if self._connection is None or self._process != os.getpid():
            self._connection = self._connect()
            self._process = os.getpid()
        return self._connection

    def _connect(self) -> sqlite3.Connection:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        connection = sqlite3.connect(self.path, timeout=5, check_same_thread=False)
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("PRAGMA synchronous=OFF")
        connection.execute("CREATE TABLE IF NOT EXISTS analyses (key BLOB PRIMARY KEY, value BLOB)")
        return connection


def _key(text: str) -> bytes:
    return hashlib.sha256(text.encode("utf-8", errors="surrogatepass")).digest()[:16]
