"""Everything that is kept in the cache folder: each kind is declared here once, and nowhere else.

A kind says what it is, where its files lie and how they are named, so that one command can show,
limit and clear all of them; a file that no kind knows is somebody else's, and is left alone.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from tertium.errors import DataError, UsageError

# What a database keeps beside itself, and what lies inside a folder.
_COMPANIONS = r"(?:-wal|-shm|/.*)?"


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
class Kind:
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
        match = re.fullmatch(f"({place}){_COMPANIONS}", file)
        return match[1] if match else None


VECTORS = Kind(name="vectors", what="vectors of texts", place="embeddings-{}.sqlite", names=r"\d+")
ANALYSES = Kind(name="analyses", what="parses", place="analyses-{}.sqlite", names=r"\d+-.+")
ROWS = Kind(name="rows", what="features", place="rows/{}.npz", names=r"[^/]*-[0-9a-f]{12}")
INDEXES = Kind(
    name="indexes",
    what="indexes of dictionaries",
    place="indexes/{}.npz",
    names=r"[^/]*-[0-9a-f]{16}",
)
WORD_VECTORS = Kind(
    name="word-vectors",
    what="indexes of word vectors",
    place="word-vectors/{}",
    names=r"[0-9a-f]{32}\.(?:npy|txt)",
)
HASHES = Kind(name="hashes", what="hashes of weights", place="{}.json", names="hashes")
TRAINED = Kind(
    name="trained", what="models of published tables", place="reproduce/{}", names="[0-9a-f]{16}"
)
KINDS = {
    kind.name: kind for kind in (VECTORS, ANALYSES, ROWS, INDEXES, WORD_VECTORS, HASHES, TRAINED)
}


@dataclass(frozen=True, kw_only=True)
class Holding:
    """One thing that is kept: a file with its companions, or a folder."""

    kind: Kind
    path: Path
    bytes: int
    written: float

    def remove(self) -> None:
        """Take it off the disk; what another process took away before is no error."""
        try:
            if self.path.is_dir():
                shutil.rmtree(self.path)
            for suffix in ("", "-wal", "-shm"):
                self.path.with_name(self.path.name + suffix).unlink(missing_ok=True)
        except OSError as error:
            raise DataError(f"{self.path} cannot be removed: {error}") from None


def survey() -> tuple[list[Holding], list[Path]]:
    """What the cache folder holds, and the files in it that are not tertium's."""
    folder = cache_folder()
    owned: dict[tuple[str, str], list[os.stat_result]] = {}
    foreign: list[Path] = []
    for base, _, names in os.walk(folder):
        for name in sorted(names):
            file = Path(base, name)
            inside = file.relative_to(folder).as_posix()
            known = ((kind.name, kind.owner(inside)) for kind in KINDS.values())
            of_kind = next(((kind, owner) for kind, owner in known if owner), None)
            if of_kind is None:
                foreign.append(file)
            elif file.exists():
                owned.setdefault(of_kind, []).append(file.stat())
    items = [
        Holding(
            kind=KINDS[kind],
            path=folder / owner,
            bytes=sum(s.st_size for s in states),
            written=max(s.st_mtime for s in states),
        )
        for (kind, owner), states in owned.items()
    ]
    return items, foreign


def drop_oldest(items: Iterable[Holding], limit: int) -> int:
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
