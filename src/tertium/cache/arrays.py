"""Arrays that are costly to make are made once and kept in the user's cache folder.

A resource (a dictionary, a paraphrase table) is read into named numpy arrays; they are written as
one npz whose name carries the fingerprint of the files they came from, so a changed source makes a
new index. A folder that cannot be written to costs time, never an error; a damaged index is made
anew. Nothing is pickled.
"""

from __future__ import annotations

import hashlib
import logging
import zipfile
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from tertium.atomic import replace_content
from tertium.cache.kinds import INDEXES
from tertium.errors import WriteError

Arrays = Mapping[str, NDArray[np.generic]]

_log = logging.getLogger(__name__)


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
    try:
        with replace_content(path, make_folder=True, durable=False) as stream:
            np.savez(stream, **arrays)  # type: ignore[arg-type]
    except WriteError as error:
        _log.info("%s is not kept: %s", path.name, error)
