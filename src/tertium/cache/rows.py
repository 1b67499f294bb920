"""Rows of numbers that are costly to make, made once and kept on disk by what they are about.

One npz file for each name (which must say all that decides the numbers): hashes of the keys and
their rows. A file that cannot be read or written costs time, never an error.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from tertium.cache.arrays import read_arrays, write_arrays
from tertium.cache.kinds import ROWS
from tertium.runtime import current_runtime

Rows = NDArray[np.float32]
Key = tuple[str, ...]
Compute = Callable[[Sequence[int]], NDArray[np.floating]]

WORTHWHILE = 64  # fewer new rows are not written
MOST_BYTES = 1 << 30  # a file past this is not added to


def rows_by_key(name: str, keys: Sequence[Key], width: int, compute: Compute) -> Rows:
    """The row of each key, (n, width): from the file of `name`, else computed and added to it.

    `compute` gets the places of the keys it is to make rows for, each distinct key once.

    >>> from tertium.runtime import runtime
    >>> with runtime(cache=False):
    ...     rows_by_key("lengths", [("ab",), ("c",), ("ab",)], 1, lambda p: np.ones((len(p), 1)))
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
            write_arrays(path, {"keys": np.frombuffer(b"".join(known), np.uint8), "rows": table})
    return table[np.array([known[digest] for digest in hashes], dtype=np.int64)]


def _path(name: str) -> Path:
    readable = "".join(c if c.isalnum() or c in "-." else "_" for c in name)[:60]
    digest = hashlib.sha256(name.encode()).hexdigest()[:12]
    return ROWS.path(f"{readable}-{digest}")


def _hash(key: Key) -> bytes:
    text = "\0".join(key).encode("utf-8", errors="surrogatepass")
    return hashlib.blake2b(text, digest_size=16).digest()


def _read(path: Path | None, width: int) -> tuple[dict[bytes, int], Rows]:
    nothing: tuple[dict[bytes, int], Rows] = ({}, np.zeros((0, width), dtype=np.float32))
    stored = read_arrays(path) if path is not None else None
    if stored is None or not {"keys", "rows"} <= set(stored):
        return nothing
    hashes, rows = stored["keys"].tobytes(), stored["rows"].astype(np.float32, copy=False)
    if rows.shape != (len(hashes) // 16, width):
        return nothing
    return {hashes[16 * n : 16 * n + 16]: n for n in range(len(rows))}, rows
