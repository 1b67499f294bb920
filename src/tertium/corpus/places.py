"""Where a corpus lies: files of this machine, or behind any address that pyarrow reads.

An address (`s3://bucket/folder`) is a text like any path. What is written here is whole or not at
all (`tertium.atomic`); behind an address it may be a torso after a fault, so that the ledger's
word, written last, is what says that a part is done.
"""

from __future__ import annotations

import fnmatch
import glob
import gzip
import io
import os
import re
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import IO, Any

from tertium.atomic import REMAINS, replace_content
from tertium.errors import DataError, UsageError

KINDS = {  # suffix: how it is read
    ".parquet": "parquet",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".json": "jsonl",
    ".tsv": "tsv",
    ".csv": "csv",
}
PACKED = (".gz", ".zst")
_WILD = re.compile(r"[*?\[]")


@dataclass(frozen=True, order=True)
class SourceFile:
    """A file of the corpus, and what tells whether it is still the same."""

    path: str
    name: str  # of its shards: the path below the folder or glob that was given, without suffixes
    size: int
    modified: int  # nanoseconds

    @property
    def kind(self) -> str:
        return kind_of(self.path)

    @property
    def is_packed(self) -> bool:
        return plain_path(self.path).endswith(PACKED)


def is_remote(path: str) -> bool:
    return "://" in path


def plain_path(path: str) -> str:
    """A path without the options that an address may end in."""
    return path.partition("?")[0] if is_remote(path) else path


def kind_of(path: str) -> str:
    """How a file is read, by its suffix; empty where no reader is known."""
    file = PurePosixPath(plain_path(path))
    return KINDS.get(file.with_suffix("").suffix if file.suffix in PACKED else file.suffix, "")


def join(folder: str, name: str) -> str:
    base, mark, options = folder.partition("?") if is_remote(folder) else (folder, "", "")
    return f"{base.rstrip('/')}/{name}{mark}{options}"


def find_files(inputs: Iterable[str]) -> list[SourceFile]:
    """The files of folders, globs and names, in their order, each of them once."""
    found: dict[str, SourceFile] = {}
    for given in inputs:
        several = _matches(given)
        if not several:
            raise DataError(
                f"{given}: nothing to read; expected Parquet, JSONL, TSV or CSV files "
                "(.gz and .zst too), a folder or a glob of such"
            )
        for file in several:
            found.setdefault(_full_path(file.path), file)
    return _name_apart(list(found.values()))


def check_unchanged(file: SourceFile) -> None:
    """Refuse a file that is no longer as it was when it was found: rows may be lost or halved."""
    size, modified = _state(file.path)
    if (size, modified) != (file.size, file.modified):
        raise DataError(
            f"{file.path} changed while it was read (from {file.size:,} bytes to {size:,}): begin "
            "again in another folder when it is whole"
        )


def _state(path: str) -> tuple[int, int]:
    """The bytes of a file and when it was written, in nanoseconds; no bytes where it is gone."""
    if is_remote(path):
        system, inner = _file_system(path)
        info = system.get_file_info(inner)
        return info.size or 0, info.mtime_ns or 0
    try:
        status = Path(path).stat()
    except OSError:
        return 0, 0
    return status.st_size, status.st_mtime_ns


def _full_path(path: str) -> str:
    return path if is_remote(path) else os.path.abspath(path)  # noqa: PTH100 (links stay)


def _name_apart(files: list[SourceFile]) -> list[SourceFile]:
    """The same files, those of one name numbered: a shard belongs to one file alone."""
    taken: set[str] = set()
    apart = []
    for file in files:
        name, number = file.name, 2
        while name in taken:
            name, number = f"{file.name}-{number}", number + 1
        taken.add(name)
        apart.append(replace(file, name=name))
    return apart


def _matches(given: str) -> list[SourceFile]:
    if is_remote(given):
        return sorted(_remote_matches(given))
    path = Path(given)
    if path.is_file():
        if not kind_of(given):
            raise UsageError(f"{given}: no corpus is read from this; expected {', '.join(KINDS)}")
        return [_local_file(path, path.name)]
    if path.is_dir():
        top, files = path, _below(path)
    else:
        top = _folder_of_glob(given)
        found = glob.glob(given, recursive=True)  # noqa: PTH207 (takes absolute ones, too)
        files = [file for name in sorted(found) for file in (Path(name), *_below(Path(name)))]
    places = [(file, file.relative_to(top)) for file in files if file.is_file()]
    return [
        _local_file(file, place.as_posix())
        for file, place in places
        if kind_of(file.name) and _is_shown(place)
    ]


def would_find(given: str, folder: str, suffix: str) -> bool:
    """Whether files with this suffix in a folder, which is not there yet, would be read, too."""
    if is_remote(given) or is_remote(folder):
        return _would_find_behind(plain_path(given).rstrip("/"), plain_path(folder), suffix)
    path = Path(given)
    top, place = (
        Path(os.path.realpath(name))
        for name in (path if path.is_dir() else _folder_of_glob(given), folder)
    )
    if not place.is_relative_to(top) or not _is_shown(place.relative_to(top)):
        return False
    if path.is_dir():
        return True
    if "**" in given:
        return fnmatch.fnmatchcase(f"x{suffix}", path.name)
    pattern = str(top / path.relative_to(_folder_of_glob(given)))
    return any(home.match(pattern) for home in (place, *place.parents))


def _folder_of_glob(given: str) -> Path:
    """The folder in front of the first wildcard."""
    return Path(_WILD.split(given)[0] + "x").parent


def _below(path: Path) -> list[Path]:
    """All that lies in a folder; a glob may match such, as shards of other programs are."""
    return sorted(path.rglob("*")) if path.is_dir() else []


def _would_find_behind(given: str, folder: str, suffix: str) -> bool:
    """The same of addresses, in whose globs a star stands for folders, too."""
    file = join(folder, f"x{suffix}")
    wild = _WILD.search(given)
    top = given[: wild.start()].rpartition("/")[0] if wild else given
    if not file.startswith(f"{top}/") or not _is_shown(Path(file.removeprefix(top).strip("/"))):
        return False
    return wild is None or fnmatch.fnmatchcase(file, given)


def _is_shown(path: Path) -> bool:
    """Whether a file below a folder is data: names with _ or . in front are for programs."""
    return not any(part.startswith(("_", ".")) for part in path.parts)


def _local_file(path: Path, place: str) -> SourceFile:
    status = path.stat()
    return SourceFile(str(path), _stem(place), status.st_size, status.st_mtime_ns)


def _stem(name: str) -> str:
    while PurePosixPath(name).suffix in (*PACKED, *KINDS):
        name = str(PurePosixPath(name).with_suffix(""))
    return name


def _remote_matches(given: str) -> Iterator[SourceFile]:
    from pyarrow.fs import FileSelector, FileType

    system, inner = _file_system(given)
    scheme, mark, options = given.partition("://")[0], *given.partition("?")[1:]
    top = _WILD.split(inner)[0].rpartition("/")[0] if _WILD.search(inner) else inner
    info = system.get_file_info(top)
    folder = FileSelector(top, recursive=True)
    several = system.get_file_info(folder) if info.type == FileType.Directory else [info]
    for entry in several:
        below = entry.path.removeprefix(top).strip("/") or entry.base_name
        wanted = top == inner or fnmatch.fnmatchcase(entry.path, inner)
        if (
            entry.type == FileType.File
            and wanted
            and kind_of(entry.path)
            and _is_shown(Path(below))
        ):
            path = f"{scheme}://{entry.path}{mark}{options}"
            yield SourceFile(path, _stem(below), entry.size, entry.mtime_ns or 0)


def _file_system(path: str) -> tuple[Any, str]:
    import pyarrow as pa
    from pyarrow.fs import FileSystem

    try:
        system, inner = FileSystem.from_uri(path)
    except (pa.ArrowException, OSError, ValueError, ImportError) as error:
        raise UsageError(
            f"{path}: pyarrow cannot reach it ({str(error).splitlines()[0]})"
        ) from None
    return system, inner


def open_file(path: str) -> IO[bytes]:
    """The bytes of a file as they lie there, from the beginning; it can be sought."""
    try:
        if not is_remote(path):
            return Path(path).open("rb")
        system, inner = _file_system(path)
        return io.BufferedReader(system.open_input_file(inner), 1 << 20)
    except OSError as error:
        raise DataError(f"{path}: cannot be read ({error.strerror or error})") from None


@contextmanager
def open_content(path: str, offset: int = 0) -> Iterator[IO[bytes]]:
    """The bytes that a file stands for, unpacked where it is packed, from an offset of a plain one.

    A file that cannot be unpacked or read to its end is one error that names it.
    """
    import pyarrow as pa

    with open_file(path) as raw:
        try:
            if plain_path(path).endswith(".gz"):
                yield io.BufferedReader(gzip.GzipFile(fileobj=raw), 1 << 20)
            elif plain_path(path).endswith(".zst"):
                yield io.BufferedReader(pa.CompressedInputStream(raw, "zstd"), 1 << 20)
            else:
                raw.seek(offset)
                yield raw
        except (EOFError, zlib.error, OSError) as error:
            if getattr(error, "errno", None) is not None:  # of the system, perhaps of a writer
                raise
            reason = str(error).splitlines()[0]
            raise DataError(f"{path}: cannot be read to its end ({reason})") from None


@contextmanager
def write_content(path: str) -> Iterator[IO[bytes]]:
    """A stream whose bytes are the file's content once the block ends well; makes folders."""
    if not is_remote(path):
        with replace_content(path, make_folder=True) as stream:
            yield stream
        return
    system, inner = _file_system(path)
    system.create_dir(inner.rpartition("/")[0], recursive=True)
    with system.open_output_stream(inner) as stream:
        yield stream


def read_content(path: str) -> bytes | None:
    """The content of a small file; None where there is none."""
    try:
        if not is_remote(path):
            return Path(path).read_bytes()
        system, inner = _file_system(path)
        with system.open_input_file(inner) as stream:
            content: bytes = stream.read()
            return content
    except FileNotFoundError:
        return None
    except OSError as error:
        raise DataError(f"{path}: cannot be read ({error.strerror or error})") from None


def remove_remains(folder: str) -> None:
    """Remove what killed workers left of files that they were writing."""
    for part in () if is_remote(folder) else Path(folder).rglob(REMAINS):
        part.unlink(missing_ok=True)


def list_sizes(folder: str) -> dict[str, int]:
    """The bytes of files below a folder, by paths from there; none where it does not exist.

    What a killed process left of a file that it was writing is no file.
    """
    if not is_remote(folder):
        top = Path(folder)
        there = (p for p in top.rglob("*") if p.is_file() and not p.match(REMAINS))
        return {p.relative_to(top).as_posix(): p.stat().st_size for p in sorted(there)}
    from pyarrow.fs import FileSelector, FileType

    system, inner = _file_system(folder)
    found = system.get_file_info(FileSelector(inner, recursive=True, allow_not_found=True))
    files = [entry for entry in found if entry.type == FileType.File]
    return {file.path.removeprefix(inner).strip("/"): file.size for file in files}


def size_of(path: str) -> int:
    """The bytes of a file that is there."""
    if not is_remote(path):
        return Path(path).stat().st_size
    system, inner = _file_system(path)
    return int(system.get_file_info(inner).size)
