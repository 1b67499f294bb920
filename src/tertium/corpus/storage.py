"""Access to corpus files: local paths, or any URL that pyarrow supports.

A URL (`s3://bucket/folder`) is used like a path. Local files are written atomically
(`tertium.atomic`). A remote file may be incomplete after a crash, so a part only counts as done
once `run_state` has recorded it.
"""

from __future__ import annotations

import datetime
import fnmatch
import glob
import gzip
import hashlib
import io
import os
import re
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import IO, Any
from urllib.parse import urlsplit

from tertium.atomic import PARTIAL_PATTERN, open_atomic
from tertium.cache.cached_files import hash_file
from tertium.errors import DataError, UsageError
from tertium.localization.catalogs import PO_SUFFIXES, XLIFF_SUFFIXES

LOCALIZATION = "localization"  # format of files with units, which are read as a whole part
FORMAT_BY_SUFFIX = {
    ".parquet": "parquet",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".json": "jsonl",
    ".tsv": "tsv",
    ".csv": "csv",
    **dict.fromkeys(sorted(XLIFF_SUFFIXES | PO_SUFFIXES | {".tmx"}), LOCALIZATION),
}
COMPRESSED_SUFFIXES = (".gz", ".zst")
CONNECT_SECONDS = 5
UNREACHABLE = ("NETWORK_CONNECTION", "UNAVAILABLE", "DEADLINE_EXCEEDED", "curlCode", "CURL error")
_answering_servers: set[str] = set()  # buckets with the options of their URLs
_WILD = re.compile(r"[*?\[]")


@dataclass(frozen=True, order=True)
class SourceFile:
    """A file of the corpus, with its size and modification time to detect changes."""

    path: str
    name: str  # of its shards: the path below the given folder or glob, without suffixes
    size: int
    modified: int  # nanoseconds

    @property
    def kind(self) -> str:
        return file_format(self.path)

    @property
    def is_compressed(self) -> bool:
        return plain_path(self.path).endswith(COMPRESSED_SUFFIXES)


def is_remote(path: str) -> bool:
    return "://" in path


def plain_path(path: str) -> str:
    """Return a path without the query options of a URL."""
    return path.partition("?")[0] if is_remote(path) else path


def file_format(path: str) -> str:
    """Return the format of a file by its suffix; empty if it is not supported."""
    file = PurePosixPath(plain_path(path))
    return FORMAT_BY_SUFFIX.get(
        file.with_suffix("").suffix if file.suffix in COMPRESSED_SUFFIXES else file.suffix, ""
    )


def join(folder: str, name: str) -> str:
    base, mark, options = folder.partition("?") if is_remote(folder) else (folder, "", "")
    return f"{base.rstrip('/')}/{name}{mark}{options}"


def find_files(inputs: Iterable[str]) -> list[SourceFile]:
    """List the files of folders, globs and paths in order, each file once."""
    files: dict[str, SourceFile] = {}
    for pattern in inputs:
        matches = _matches(pattern)
        if not matches:
            raise DataError(
                f"{pattern}: no files found; expected Parquet, JSONL, TSV, CSV, XLIFF, TMX or PO "
                "files (also .gz; the first four also .zst), or a folder or glob of such files"
            )
        for file in matches:
            files.setdefault(_full_path(file.path), file)
    return _make_names_unique(list(files.values()))


def check_unchanged(file: SourceFile) -> None:
    """Refuse a file that changed since it was listed: rows could be lost or cut."""
    size, modified = _state(file.path)
    if (size, modified) != (file.size, file.modified):
        raise DataError(
            f"{file.path} changed while it was read (from {file.size:,} bytes to {size:,}): start "
            "again in another folder when the file is complete"
        )


def _state(path: str) -> tuple[int, int]:
    """Return size and modification time (ns) of a file; zeros if it does not exist."""
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


def _make_names_unique(files: list[SourceFile]) -> list[SourceFile]:
    """Number files of the same name, so that each shard belongs to one file."""
    used_names: set[str] = set()
    renamed = []
    for file in files:
        name, number = file.name, 2
        while name in used_names:
            name, number = f"{file.name}-{number}", number + 1
        used_names.add(name)
        renamed.append(replace(file, name=name))
    return renamed


def _matches(pattern: str) -> list[SourceFile]:
    if is_remote(pattern):
        return sorted(_remote_matches(pattern))
    path = Path(pattern)
    if path.is_file():
        if not file_format(pattern):
            expected = ", ".join(FORMAT_BY_SUFFIX)
            raise UsageError(f"{pattern}: unsupported file format; expected {expected}")
        return [_local_file(path, path.name)]
    if path.is_dir():
        top, files = path, _files_below(path)
    else:
        top = _folder_of_glob(pattern)
        names = glob.glob(pattern, recursive=True)  # noqa: PTH207 (accepts absolute patterns)
        files = [file for name in sorted(names) for file in (Path(name), *_files_below(Path(name)))]
    located = [(file, file.relative_to(top)) for file in files if file.is_file()]
    return [
        _local_file(file, relative.as_posix())
        for file, relative in located
        if file_format(file.name) and _is_data_file(relative)
    ]


def would_match(pattern: str, folder: str, suffix: str) -> bool:
    """Return whether an input pattern would also match new files with this suffix in `folder`."""
    if is_remote(pattern) or is_remote(folder):
        return _would_match_remote(plain_path(pattern).rstrip("/"), plain_path(folder), suffix)
    path = Path(pattern)
    top, place = (
        Path(os.path.realpath(name))
        for name in (path if path.is_dir() else _folder_of_glob(pattern), folder)
    )
    if not place.is_relative_to(top) or not _is_data_file(place.relative_to(top)):
        return False
    if path.is_dir():
        return True
    if "**" in pattern:
        return fnmatch.fnmatchcase(f"x{suffix}", path.name)
    resolved = str(top / path.relative_to(_folder_of_glob(pattern)))
    return any(parent.match(resolved) for parent in (place, *place.parents))


def _folder_of_glob(pattern: str) -> Path:
    return Path(_WILD.split(pattern)[0] + "x").parent


def _files_below(path: Path) -> list[Path]:
    """List all files below a folder; a glob may match folders of shards."""

    def refuse(error: OSError) -> None:  # its files would be missing without notice
        raise DataError(f"{error.filename}: the folder cannot be read ({error.strerror})")

    walk = os.walk(path, onerror=refuse) if path.is_dir() else ()
    return sorted(Path(base, name) for base, _, names in walk for name in names)


def _would_match_remote(pattern: str, folder: str, suffix: str) -> bool:
    """Like `would_match` for URLs, where a star also matches folders."""
    file = join(folder, f"x{suffix}")
    wildcard = _WILD.search(pattern)
    top = pattern[: wildcard.start()].rpartition("/")[0] if wildcard else pattern
    if not file.startswith(f"{top}/") or not _is_data_file(Path(file.removeprefix(top).strip("/"))):
        return False
    return wildcard is None or fnmatch.fnmatchcase(file, pattern)


def _is_data_file(path: Path) -> bool:
    """Return whether a path below a folder is data: no part starts with `_` or `.`."""
    return not any(part.startswith(("_", ".")) for part in path.parts)


def _local_file(path: Path, relative: str) -> SourceFile:
    status = path.stat()
    return SourceFile(str(path), _stem(relative), status.st_size, status.st_mtime_ns)


def _stem(name: str) -> str:
    while PurePosixPath(name).suffix in (*COMPRESSED_SUFFIXES, *FORMAT_BY_SUFFIX):
        name = str(PurePosixPath(name).with_suffix(""))
    return name


def _remote_matches(pattern: str) -> Iterator[SourceFile]:
    from pyarrow.fs import FileSelector, FileType

    system, inner = _file_system(pattern)
    scheme, mark, options = pattern.partition("://")[0], *pattern.partition("?")[1:]
    top = _WILD.split(inner)[0].rpartition("/")[0] if _WILD.search(inner) else inner
    info = system.get_file_info(top)
    folder = FileSelector(top, recursive=True)
    entries = system.get_file_info(folder) if info.type == FileType.Directory else [info]
    for entry in entries:
        relative = entry.path.removeprefix(top).strip("/") or entry.base_name
        is_match = top == inner or fnmatch.fnmatchcase(entry.path, inner)
        if (
            entry.type == FileType.File
            and is_match
            and file_format(entry.path)
            and _is_data_file(Path(relative))
        ):
            path = f"{scheme}://{entry.path}{mark}{options}"
            yield SourceFile(path, _stem(relative), entry.size, entry.mtime_ns or 0)


def _file_system(path: str) -> tuple[Any, str]:
    import pyarrow as pa
    from pyarrow.fs import FileSystem

    try:
        system, inner = FileSystem.from_uri(path)
    except (pa.ArrowException, OSError, ValueError, ImportError) as error:
        raise UsageError(
            f"{path}: pyarrow cannot open this URL ({str(error).splitlines()[0]})"
        ) from None
    bucket = f"{urlsplit(path).scheme}://{inner.partition('/')[0]}"
    if bucket + urlsplit(path).query not in _answering_servers:
        _check_reachable(system, bucket)
        _answering_servers.add(bucket + urlsplit(path).query)
    return system, inner


def _check_reachable(system: Any, bucket: str) -> None:
    """Raise an error within seconds if a server does not answer; clients retry up to 15 minutes."""
    from pyarrow import fs

    rebuild, (settings, *_) = system.__reduce__()[:2]
    if system.type_name == "s3":
        limits = {"connect_timeout": CONNECT_SECONDS, "request_timeout": CONNECT_SECONDS}
        quick = {**limits, "retry_strategy": fs.AwsStandardS3RetryStrategy(max_attempts=1)}
    elif system.type_name == "gcs":
        quick = {"retry_time_limit": datetime.timedelta(seconds=CONNECT_SECONDS)}
    else:
        return
    try:
        rebuild({**settings, **quick}).get_file_info(bucket.partition("://")[2])
    except OSError as error:
        reason = str(error).splitlines()[0]
        if any(sign in reason for sign in UNREACHABLE):
            raise DataError(
                f"{bucket}: no answer from the server within {CONNECT_SECONDS} seconds; check the "
                f"address and the network ({reason[:150]})"
            ) from None


def open_file(path: str) -> IO[bytes]:
    """Open the raw bytes of a file as a seekable stream."""
    try:
        if not is_remote(path):
            return Path(path).open("rb")
        system, inner = _file_system(path)
        return io.BufferedReader(system.open_input_file(inner), 1 << 20)
    except OSError as error:
        raise DataError(f"{path}: cannot be read ({error.strerror or error})") from None


@contextmanager
def open_content(path: str, offset: int = 0) -> Iterator[IO[bytes]]:
    """Open the decompressed content of a file (uncompressed: from `offset`); raises `DataError`."""
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
            if getattr(error, "errno", None) is not None:  # an OS error, perhaps of a writer
                raise
            reason = str(error).splitlines()[0]
            raise DataError(f"{path}: cannot be read to the end ({reason})") from None


class HashingStream(io.RawIOBase):
    """A stream that writes to another one and hashes what it writes."""

    def __init__(self, stream: IO[bytes]) -> None:
        super().__init__()
        self._stream, self._digest, self.size = stream, hashlib.sha256(), 0

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        self._stream.write(data)
        self._digest.update(data)
        written = memoryview(data).nbytes
        self.size += written
        return written

    def tell(self) -> int:
        return self.size

    def hexdigest(self) -> str:
        return self._digest.hexdigest()


def hash_content(path: str) -> str:
    """Return the sha256 of a local file; empty for a remote one, whose store keeps checksums."""
    return "" if is_remote(path) else hash_file(Path(path))


@contextmanager
def write_content(path: str) -> Iterator[IO[bytes]]:
    """Open a stream that becomes the file if the block succeeds; creates missing folders."""
    if not is_remote(path):
        with open_atomic(path, make_folder=True) as stream:
            yield stream
        return
    system, inner = _file_system(path)
    system.create_dir(inner.rpartition("/")[0], recursive=True)
    with system.open_output_stream(inner) as stream:
        yield stream


def read_content(path: str) -> bytes | None:
    """Return the content of a small file, or None if it does not exist."""
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


def remove_partial_files(folder: str) -> None:
    """Remove partially written files of killed workers."""
    for part in () if is_remote(folder) else Path(folder).rglob(PARTIAL_PATTERN):
        part.unlink(missing_ok=True)


def list_sizes(folder: str) -> dict[str, int]:
    """Return sizes of complete files by path below a folder; empty if it does not exist."""
    if not is_remote(folder):
        top = Path(folder)
        paths = (p for p in top.rglob("*") if p.is_file() and not p.match(PARTIAL_PATTERN))
        return {p.relative_to(top).as_posix(): p.stat().st_size for p in sorted(paths)}
    from pyarrow.fs import FileSelector, FileType

    system, inner = _file_system(folder)
    entries = system.get_file_info(FileSelector(inner, recursive=True, allow_not_found=True))
    files = [entry for entry in entries if entry.type == FileType.File]
    return {file.path.removeprefix(inner).strip("/"): file.size for file in files}
