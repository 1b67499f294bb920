"""Files of a corpus and folders of shards: local paths, or any URL that pyarrow supports.

A URL (`s3://bucket/folder`) is used like a path. Local files are written atomically
(`tertium.core.atomic`). A remote file may be incomplete after a crash, so a part only counts as
done once `run_state` has recorded it.
"""

from __future__ import annotations

import fnmatch
import glob
import io
import os
import posixpath
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, Any

from tertium.core.atomic import PARTIAL_PATTERN, open_atomic
from tertium.core.errors import DataError, UsageError
from tertium.core.store import hash_file
from tertium.files.catalogs import PO_SUFFIXES, XLIFF_SUFFIXES

LOCALIZATION = "localization"  # format of files with units, which are read as a whole part
FORMATS = {
    ".parquet": "parquet",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".json": "jsonl",
    ".tsv": "tsv",
    ".csv": "csv",
    **dict.fromkeys(sorted(XLIFF_SUFFIXES | PO_SUFFIXES | {".tmx"}), LOCALIZATION),
}
BUFFER_BYTES = 1 << 20
_DATA_FILE = re.compile(rf"(.+?)({'|'.join(map(re.escape, FORMATS))})(\.gz|\.zst)?")
_WILDCARD = re.compile(r"[*?\[]")


@dataclass(frozen=True)
class CorpusPath:
    """A path in a file system of pyarrow; `scheme` is the start of its URL, if it has one."""

    system: Any
    path: str
    scheme: str = ""

    def __str__(self) -> str:
        return self.scheme + self.path

    def __truediv__(self, name: str) -> CorpusPath:
        return replace(self, path=posixpath.join(self.path, name))

    @property
    def is_local(self) -> bool:
        return bool(self.system.type_name == "local")

    @property
    def full_path(self) -> str:
        """The absolute path of a local file; symbolic links stay."""
        return os.path.abspath(self.path) if self.is_local else self.path  # noqa: PTH100

    @property
    def state(self) -> Any:
        """Type, size and modification time."""
        return self.system.get_file_info(self.path)

    def list_below(self) -> list[Any]:
        """Return the state of all files and folders below a folder, which may not exist."""
        from pyarrow.fs import FileSelector

        selector = FileSelector(self.path, recursive=True, allow_not_found=True)
        return sorted(self.system.get_file_info(selector), key=lambda state: state.path)

    def list_names(self) -> list[str]:
        """Return the paths of complete files below a folder."""
        return [
            posixpath.relpath(state.path, self.path)
            for state in self.list_below()
            if state.is_file and not fnmatch.fnmatch(state.base_name, PARTIAL_PATTERN)
        ]

    def fingerprint(self) -> str:
        """Return size and checksum of a file; size and time of a remote one, to read it once."""
        state = self.state
        version = hash_file(Path(self.path)) if self.is_local else state.mtime
        return f"{state.size:,} bytes, {version}"

    def read(self) -> bytes:
        """Return the content of a small file."""
        with self.system.open_input_file(self.path) as stream:
            return bytes(stream.read())

    @contextmanager
    def write(self) -> Iterator[IO[bytes]]:
        """Open a stream that becomes the file if the block succeeds; creates missing folders."""
        if self.is_local:
            with open_atomic(self.path, make_folder=True) as stream:
                yield stream
            return
        self.system.create_dir(posixpath.dirname(self.path), recursive=True)
        with self.system.open_output_stream(self.path) as stream:
            yield stream


@dataclass(frozen=True, kw_only=True)
class SourceFile:
    """An input file, with its size and modification time (ns) to detect changes.

    `name` is the name of its shards: the path below the input folder or glob, without suffixes.
    """

    location: CorpusPath
    name: str
    kind: str
    is_compressed: bool
    size: int
    modified: int

    def __str__(self) -> str:
        return str(self.location)

    def check_unchanged(self) -> None:
        """Refuse a file that changed since it was listed: rows could be lost or cut."""
        state = self.location.state
        if (state.size, state.mtime_ns) != (self.size, self.modified):
            raise DataError(
                f"{self} changed while it was read (from {self.size:,} bytes to "
                f"{state.size or 0:,}): start again in another folder when the file is complete"
            )

    def open_raw(self) -> Any:
        """Open the bytes of the file for random access."""
        return self.location.system.open_input_file(self.location.path)

    @contextmanager
    def open_content(self, offset: int = 0) -> Iterator[io.BufferedReader]:
        """Open the decompressed content at an offset; raises `DataError`."""
        try:
            if self.is_compressed:
                raw = self.location.system.open_input_stream(self.location.path)
            else:
                raw = self.open_raw()
                raw.seek(offset)
                offset = 0
            with io.BufferedReader(raw, BUFFER_BYTES) as stream:
                while offset:
                    offset -= len(stream.read(min(offset, BUFFER_BYTES)))
                yield stream
        except OSError as error:
            raise cannot_read(self.location, error) from None


def cannot_read(location: CorpusPath, error: OSError) -> DataError:
    """Return an error of one line for a file that cannot be read."""
    reason = os.strerror(error.errno) if error.errno else str(error).splitlines()[0]
    return DataError(f"{location}: cannot be read ({reason})")


def find_files(inputs: Iterable[str], output: CorpusPath) -> list[SourceFile]:
    """List the files of folders, globs and paths in order, each once, except those in `output`."""
    files: dict[str, SourceFile] = {}
    for text in inputs:
        matches = list(_find_data_files(open_path(text), output))
        if not matches:
            raise DataError(
                f"{text}: no files found with a supported suffix ({', '.join(FORMATS)}, and these "
                "with .gz or .zst); expected such a file, or a folder or glob of such files"
            )
        for file in matches:
            files.setdefault(file.location.full_path, file)
    return list(files.values())


def _find_data_files(top: CorpusPath, output: CorpusPath) -> Iterator[SourceFile]:
    """Yield the files of the corpus that a path, folder or glob names.

    Files in folders belong to it if their suffix is supported and no part of their path starts with
    `_` or `.`.
    """
    base, states = _list_matches(top)
    for state in states:
        location = replace(top, path=state.path)
        relative = posixpath.relpath(state.path, base)
        match = _DATA_FILE.fullmatch(relative)
        is_output = location.full_path.startswith(f"{output.full_path}/")
        is_hidden = re.search(r"(^|/)[_.]", relative) and state.path != top.path
        if match and not is_output and not is_hidden:
            yield SourceFile(
                location=location,
                name=match[1],
                kind=FORMATS[match[2]],
                is_compressed=bool(match[3]),
                size=state.size,
                modified=state.mtime_ns,
            )


def _list_matches(top: CorpusPath) -> tuple[str, Sequence[Any]]:
    """Return the folder to which names are relative, and the state of all files that match."""
    from pyarrow.fs import FileType

    try:
        matches = [top.state]
        base = posixpath.dirname(top.path) if top.state.is_file else top.path
        if _WILDCARD.search(top.path) and top.state.type == FileType.NotFound:
            base = posixpath.dirname(_WILDCARD.split(top.path)[0])
            if top.is_local:
                paths = sorted(glob.glob(top.path, recursive=True))  # noqa: PTH207 (absolute, too)
                matches = top.system.get_file_info(paths)
            else:  # a star also matches folders
                below = replace(top, path=base).list_below()
                matches = [state for state in below if fnmatch.fnmatchcase(state.path, top.path)]
        for state in [*matches]:
            if state.type == FileType.Directory:
                matches += replace(top, path=state.path).list_below()
        return base, [state for state in matches if state.is_file]
    except OSError as error:
        raise cannot_read(top, error) from None


def open_path(path: str) -> CorpusPath:
    """Return the file system of a path or URL, and the path in it."""
    import pyarrow as pa
    from pyarrow.fs import FileSystem, LocalFileSystem

    scheme, separator, _ = path.partition("://")
    if not separator:
        return CorpusPath(LocalFileSystem(), path)
    try:
        system, inner = FileSystem.from_uri(path)
    except (pa.ArrowException, OSError, ValueError, ImportError) as error:
        raise UsageError(
            f"{path}: pyarrow cannot open this URL ({str(error).splitlines()[0]})"
        ) from None
    return CorpusPath(system, inner.rstrip("/"), scheme + separator)
