"""What is costly to make is made once and kept as a file of the user's cache folder.

A resource (a dictionary, a paraphrase table) is read into named numpy arrays; they are written as
one npz whose name carries the fingerprint of the files they came from, so a changed source makes a
new index. A folder that cannot be written to costs time, never an error; a damaged index is made
anew. Nothing is pickled. Rows about texts (`rows_by_key`) are one npz for each name, which must say
all that decides the numbers: hashes of the keys and their rows. Hashes of files are remembered by
path, size and time of change.
"""

from __future__ import annotations

import hashlib
import json
import logging
import zipfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import IO

import numpy as np
from numpy.typing import NDArray

from tertium.atomic import replace_content
from tertium.cache.kinds import HASHES, INDEXES, ROWS
from tertium.errors import WriteError
from tertium.runtime import current_runtime

Arrays = Mapping[str, NDArray[np.generic]]

_log = logging.getLogger(__name__)
Rows = NDArray[np.float32]
Key = tuple[str, ...]
Compute = Callable[[Sequence[int]], NDArray[np.floating]]

WORTHWHILE = 64  # fewer new rows are not written
MOST_BYTES = 1 << 30  # a file past this is not added to


def fingerprint(files: Iterable[Path], version: str) -> str:
    """A short name for the state of some files: names, sizes and times, not contents."""
    digest = hashlib.sha256(version.encode())
    for file in files:
        state = file.stat()
        digest.update(f"{file.resolve()}\0{state.st_size}\0{state.st_mtime_ns}\n".encode())
    return digest.hexdigest()[:16]


def cached_arrays(
    name: str, files: Iterable[Path], version: str, build: Callable[[], Arrays]
) -> Arrays:
    """The arrays `build` makes of `files`: from the cache when they are there, else made and kept.

    `version` names the layout of the arrays: raise it when `build` changes.
    """
    path = INDEXES.path(f"{name}-{fingerprint(files, version)}")
    kept = read_arrays(path)
    if kept is not None:
        return kept
    arrays = build()
    write_arrays(path, arrays)
    return arrays


def read_arrays(path: Path) -> Arrays | None:
    """The arrays of a file; None where there is none that can be read."""
    try:
        with np.load(path, allow_pickle=False) as stored:
            return {key: stored[key] for key in stored.files}
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile) as error:
        _log.warning("%s cannot be read (%s): it is made anew", path, error)
        return None


def write_arrays(path: Path, arrays: Arrays) -> None:
    """Keep arrays where that is possible."""
    keep_file(path, lambda stream: np.savez(stream, **arrays))  # type: ignore[arg-type]


def keep_file(path: Path, write: Callable[[IO[bytes]], object]) -> None:
    """Keep what `write` writes; a folder that cannot be written to costs time, never an error."""
    try:
        with replace_content(path, make_folder=True, durable=False) as stream:
            write(stream)
    except WriteError as error:
        _log.info("%s is not kept: %s", path.name, error)


def file_hash(file: Path) -> str:
    """The sha256 of a file, remembered until it changes."""
    status = file.stat()
    key = f"{file.resolve()}|{status.st_size}|{status.st_mtime_ns}"
    memo = HASHES.path("hashes")
    known = _read_memo(memo)
    if key not in known:
        known[key] = hash_of(file)
        keep_file(memo, lambda stream: stream.write(json.dumps(known).encode()))
    return known[key]


def hash_of(file: Path) -> str:
    """The sha256 of a file, read now."""
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _read_memo(memo: Path) -> dict[str, str]:
    try:
        known = json.loads(memo.read_text())
    except (OSError, ValueError, RecursionError):  # the last where it is nested deeply
        return {}
    if not isinstance(known, dict):
        return {}
    return {k: v for k, v in known.items() if isinstance(v, str) and len(v) == 64}


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
