"""What is kept in the cache folder: each kind is declared here once, made once, cleared by name.

A kind says what it is, where its files lie and how they are named, so that one command can show,
limit and clear all of them; a file that no kind knows is somebody else's, and is left alone.

A resource (a dictionary, a paraphrase table) is read into named numpy arrays; they are written as
one npz whose name carries the fingerprint of the files they came from, so a changed source makes a
new index. A folder that cannot be written to costs time, never an error; a damaged index is made
anew. Nothing is pickled. Rows about texts (`cached_rows`) are one npz for each name, which must say
all that decides the numbers: hashes of the keys and their rows. Hashes of files are remembered by
path, size and time of change.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import re
import shutil
import sys
import zipfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import numpy as np
from numpy.typing import NDArray

from tertium.atomic import PARTIAL_PREFIX, open_atomic
from tertium.errors import DataError, UsageError, WriteError
from tertium.execution import current_runtime

Arrays = Mapping[str, NDArray[np.generic]]
Rows = NDArray[np.float32]
Key = tuple[str, ...]
Compute = Callable[[Sequence[int]], NDArray[np.floating]]

COMPANIONS = ("-wal", "-shm")  # what SQLite keeps beside a database: its log and the index of that
MIN_NEW_ROWS = 64  # fewer new rows are not written
MAX_TABLE_BYTES = 1 << 30  # a file past this is not added to
SMALL = 1 << 20  # bytes of a file that is hashed faster than its hash is looked up

logger = logging.getLogger(__name__)


def cache_folder() -> Path:
    """`TERTIUM_CACHE`, else `tertium` in the user's cache folder; it need not exist."""
    return _folder("TERTIUM_CACHE", "XDG_CACHE_HOME", ".cache", "cache")


def models_folder() -> Path:
    """`TERTIUM_MODELS`, else `tertium/models` in the user's data folder; it need not exist."""
    if own := os.environ.get("TERTIUM_MODELS"):
        return _expand(own, "TERTIUM_MODELS")
    return _folder("", "XDG_DATA_HOME", ".local/share", "data") / "models"


def hub_folder() -> Path:
    """Where the Hugging Face libraries keep what they downloaded."""
    if cache := os.environ.get("HF_HUB_CACHE") or os.environ.get("HUGGINGFACE_HUB_CACHE"):
        return _expand(cache, "HF_HUB_CACHE")
    if home := os.environ.get("HF_HOME"):
        return _expand(home, "HF_HOME") / "hub"
    base = os.environ.get("XDG_CACHE_HOME")
    folder = _expand(base, "XDG_CACHE_HOME") if base else _expand("~", "HOME") / ".cache"
    return folder / "huggingface" / "hub"


def _folder(own: str, xdg: str, unix: str, windows: str) -> Path:
    if own and (value := os.environ.get(own)):
        return _expand(value, own)
    if value := os.environ.get(xdg):
        return _expand(value, xdg) / "tertium"
    if sys.platform == "win32" and (local := os.environ.get("LOCALAPPDATA")):
        return Path(local) / "tertium" / windows
    return _expand("~", "HOME") / unix / "tertium"


def _expand(text: str, variable: str) -> Path:
    """A path with `~` filled in; `variable` is where it came from."""
    try:
        return Path(text).expanduser()
    except RuntimeError:
        raise UsageError(
            f"{variable}={text}: the home folder of this user is not known; give a whole path"
        ) from None


@dataclass(frozen=True, kw_only=True)
class CacheKind:
    """Something that is kept: `{}` in `place` is the name of one, which `names` matches."""

    name: str
    what: str
    place: str
    names: str

    def path(self, name: str) -> Path:
        """Where the one of this name lies, or would lie."""
        return cache_folder() / self.place.format(name)

    def owner(self, file: str) -> str | None:
        """The one of this kind that a file below the cache folder belongs to, as its path.

        >>> VECTORS.owner("embeddings-1.sqlite-wal"), VECTORS.owner("mine.sqlite")
        ('embeddings-1.sqlite', None)
        """
        place = re.escape(self.place).replace(r"\{\}", f"(?:{self.names})")
        match = re.fullmatch(f"({place})(?:{'|'.join(COMPANIONS)}|/.*)?", file)
        return match[1] if match else None


VECTORS = CacheKind(
    name="vectors", what="vectors of texts", place="embeddings-{}.sqlite", names=r"\d+"
)
ANALYSES = CacheKind(name="analyses", what="parses", place="analyses-{}.sqlite", names=r"\d+-.+")
ROWS = CacheKind(name="rows", what="features", place="rows/{}.npz", names=r"[^/]*-[0-9a-f]{12}")
INDEXES = CacheKind(
    name="indexes",
    what="indexes of dictionaries",
    place="indexes/{}.npz",
    names=r"[^/]*-[0-9a-f]{16}",
)
WORD_VECTORS = CacheKind(
    name="word-vectors",
    what="indexes of word vectors",
    place="word-vectors/{}",
    names=r"[0-9a-f]{32}\.(?:npy|txt)",
)
HASHES = CacheKind(name="hashes", what="hashes of weights", place="{}.json", names="hashes")
TRAINED = CacheKind(
    name="trained", what="models of published tables", place="reproduce/{}", names="[0-9a-f]{16}"
)
LEFTOVERS = CacheKind(
    name="remains",
    what="what killed processes left",
    place="{}.part",
    names=rf"(?:.*/)?{re.escape(PARTIAL_PREFIX)}[0-9a-f]+",
)
CACHE_KINDS = {
    kind.name: kind
    for kind in (VECTORS, ANALYSES, ROWS, INDEXES, WORD_VECTORS, HASHES, TRAINED, LEFTOVERS)
}


def database_files(path: Path) -> tuple[Path, ...]:
    """A file, and those that SQLite keeps beside it where it is a database."""
    return tuple(path.with_name(path.name + suffix) for suffix in ("", *COMPANIONS))


@dataclass(frozen=True, kw_only=True)
class CacheItem:
    """One thing that is kept: a file with its companions, or a folder."""

    kind: CacheKind
    path: Path
    bytes: int
    written: float

    def remove(self) -> None:
        """Take it off the disk; what another process took away before is no error."""
        try:
            if self.path.is_dir():
                shutil.rmtree(self.path)
            for file in database_files(self.path):
                file.unlink(missing_ok=True)
        except OSError as error:
            raise DataError(f"{self.path} cannot be removed: {error}") from None


def list_cache() -> tuple[list[CacheItem], list[Path]]:
    """What the cache folder holds, and the files in it that are not tertium's."""
    folder = cache_folder()
    if folder.exists() and not folder.is_dir():
        raise UsageError(f"{folder} is a file, and a cache is a folder: name one in TERTIUM_CACHE")
    owned: dict[tuple[str, str], list[os.stat_result]] = {}
    foreign: list[Path] = []
    for base, _, names in os.walk(folder):
        for name in sorted(names):
            file = Path(base, name)
            inside = file.relative_to(folder).as_posix()
            known = ((kind.name, kind.owner(inside)) for kind in CACHE_KINDS.values())
            of_kind = next(((kind, owner) for kind, owner in known if owner), None)
            if of_kind is None:
                foreign.append(file)
            else:
                with suppress(OSError):  # another process took it away
                    owned.setdefault(of_kind, []).append(file.stat())
    items = [
        CacheItem(
            kind=CACHE_KINDS[kind],
            path=folder / owner,
            bytes=sum(s.st_size for s in states),
            written=max(s.st_mtime for s in states),
        )
        for (kind, owner), states in owned.items()
        if states
    ]
    return items, foreign


def remove_oldest(items: Iterable[CacheItem], limit: int) -> int:
    """Remove what was written longest ago until the rest takes at most so many bytes.

    Returns the bytes freed.
    """
    by_age = sorted(items, key=lambda item: item.written)
    excess = sum(item.bytes for item in by_age) - limit
    freed = 0
    for item in by_age:
        if freed >= excess:
            break
        item.remove()
        freed += item.bytes
    return freed


def fingerprint_files(files: Iterable[Path], version: str) -> str:
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
    path = INDEXES.path(f"{name}-{fingerprint_files(files, version)}")
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
        logger.warning("%s cannot be read (%s): it is made anew", path, error)
        return None


def write_arrays(path: Path, arrays: Arrays) -> None:
    """Keep arrays where that is possible."""
    write_cache_file(path, lambda stream: np.savez(stream, **arrays))  # type: ignore[arg-type]


def write_cache_file(path: Path, write: Callable[[IO[bytes]], object]) -> None:
    """Keep what `write` writes; a folder that cannot be written to costs time, never an error."""
    try:
        with open_atomic(path, make_folder=True, durable=False) as stream:
            write(stream)
    except WriteError as error:
        logger.info("%s is not kept: %s", path.name, error)


def cached_file_hash(file: Path) -> str:
    """The sha256 of a file, remembered until it changes unless it is small."""
    status = file.stat()
    if status.st_size < SMALL:
        return hash_file(file)
    key = f"{file.resolve()}|{status.st_size}|{status.st_mtime_ns}"
    memo = HASHES.path("hashes")
    known = _read_memo(memo)
    if key not in known:
        known[key] = hash_file(file)
        write_cache_file(memo, lambda stream: stream.write(json.dumps(known).encode()))
    return known[key]


def hash_file(file: Path) -> str:
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


def cached_rows(name: str, keys: Sequence[Key], width: int, compute: Compute) -> Rows:
    """The row of each key, (n, width): from the file of `name`, else computed and added to it.

    `compute` gets the places of the keys it is to make rows for, each distinct key once.

    >>> from tertium.execution import runtime
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
        if path is not None and len(missing) >= MIN_NEW_ROWS and table.nbytes < MAX_TABLE_BYTES:
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
