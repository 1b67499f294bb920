"""Rows of numbers that are costly to make, made once and kept on disk by what they are about.

One npz file for each name (which must say all that decides the numbers): hashes of the keys and
their rows. A file that cannot be read or written costs time, never an error.
"""

from __future__ import annotations

import hashlib
import logging
import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from tertium.atomic import replace_content
from tertium.cache.folders import cache_folder
from tertium.errors import WriteError
from tertium.runtime import current_runtime

Rows = NDArray[np.float32]
Key = tuple[str, ...]
Compute = Callable[[Sequence[int]], NDArray[np.floating]]

WORTHWHILE = 64  # fewer new rows are not written
MOST_BYTES = 1 << 30  # a file past this is not added to

_log = logging.getLogger(__name__)


def kept_rows(name: str, keys: Sequence[Key], width: int, compute: Compute) -> Rows:
    """The row of each key, (n, width): from the file of `name`, else computed and added to it.

    `compute` gets the places of the keys it is to make rows for, each distinct key once.

    >>> from tertium.runtime import runtime
    >>> with runtime(cache=False):
    ...     kept_rows("lengths", [("ab",), ("c",), ("ab",)], 1, lambda p: np.ones((len(p), 1)))
    array([[1.],
           [1.],
           [1.]], dtype=float32)
    """
    path = _path(name) if current_runtime().cache else None
    known, table = _read(path, width)
    hashes = [_hash(key) for key in keys]
    missing: dict[bytes, int] = {}
    for place, digest in enumerate(hashes):
        if digest not in known:
            missing.setdefault(digest, place)
    if missing:
        fresh = np.asarray(compute(list(missing.values())), dtype=np.float32)
        table = np.vstack([table, fresh.reshape(len(missing), width)])
        known = {**known, **{h: len(known) + n for n, h in enumerate(missing)}}
        if path is not None and len(missing) >= WORTHWHILE and table.nbytes < MOST_BYTES:
            _write(path, list(known), table)
    return table[np.array([known[digest] for digest in hashes], dtype=np.int64)]


def _path(name: str) -> Path:
    readable = "".join(c if c.isalnum() or c in "-." else "_" for c in name)[:60]
    digest = hashlib.sha256(name.encode()).hexdigest()[:12]
    return cache_folder() / "rows" / f"{readable}-{digest}.npz"


def _hash(key: Key) -> bytes:
    text = "\0".join(key).encode("utf-8", errors="surrogatepass")
    return hashlib.blake2b(text, digest_size=16).digest()


def _read(path: Path | None, width: int) -> tuple[dict[bytes, int], Rows]:
    nothing: tuple[dict[bytes, int], Rows] = ({}, np.zeros((0, width), dtype=np.float32))
    if path is None:
        return nothing
    try:
        with np.load(path, allow_pickle=False) as stored:
            hashes, rows = stored["keys"].tobytes(), stored["rows"]
    except FileNotFoundError:
        return nothing
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile) as error:
        _log.warning("the rows in %s cannot be read (%s): they are made anew", path, error)
        return nothing
    if rows.shape != (len(hashes) // 16, width):
        return nothing
    return {hashes[16 * n : 16 * n + 16]: n for n in range(len(rows))}, rows


def _write(path: Path, hashes: Sequence[bytes], rows: Rows) -> None:
    keys = np.frombuffer(b"".join(hashes), dtype=np.uint8)
    try:
        with replace_content(path, make_folder=True, durable=False) as stream:
            np.savez(stream, keys=keys, rows=rows)
    except WriteError as error:
        _log.info("rows are not kept: %s", error)
