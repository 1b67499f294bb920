"""Atomic file writing: a file is replaced as a whole or not at all.

tertium writes files only through this module. A regular file is written next to its destination,
flushed to disk, and moved into place in one step with the mode and owner of the file it replaces. A
killed process or a full disk therefore leaves the old file intact. Symbolic links are followed.
Devices and pipes such as `/dev/stdout` are written directly. Failures raise one `WriteError` with
the file and the reason. `lock_file` marks a folder as in use by a process.
"""

from __future__ import annotations

import errno
import gzip
import os
import secrets
import sqlite3
import stat
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from pathlib import Path
from typing import IO

from tertium.core.errors import WriteError

PathLike = str | os.PathLike[str]

OUTPUT_DESCRIPTORS = (1, 2)  # stdout and stderr
OWNER_ONLY = 0o600  # mode of files that other users must not read
PARTIAL_PREFIX = ".tertium-"  # of temporary files; short, since names are limited to 255 bytes
PARTIAL_PATTERN = f"{PARTIAL_PREFIX}*.part"  # temporary files that killed processes left behind


def write_text(
    path: PathLike,
    text: str | Iterable[str],
    *,
    make_folder: bool = False,
    durable: bool = True,
    private: bool = False,
) -> None:
    """Write text as UTF-8, in one string or in pieces; `.gz` is compressed without a time stamp.

    See `open_atomic` for the options.
    """
    pieces = (text,) if isinstance(text, str) else text
    with open_atomic(path, make_folder=make_folder, durable=durable, private=private) as stream:
        if Path(path).suffix == ".gz":
            with gzip.GzipFile(filename="", mode="wb", fileobj=stream, mtime=0) as packed:
                _write_pieces(packed, pieces, path)
        else:
            _write_pieces(stream, pieces, path)


def _write_pieces(stream: IO[bytes] | gzip.GzipFile, pieces: Iterable[str], path: PathLike) -> None:
    try:
        for piece in pieces:
            stream.write(piece.encode("utf-8"))
    except UnicodeEncodeError as error:
        code = ord(error.object[error.start])
        raise WriteError(f"{path}: cannot be written (U+{code:04X} is not a character)") from None


@contextmanager
def open_atomic(
    path: PathLike, *, make_folder: bool = False, durable: bool = True, private: bool = False
) -> Iterator[IO[bytes]]:
    """Open a binary stream that replaces the file when the block ends without an exception.

    `durable=False` skips waiting for the disk, for files that may be lost in a power failure.
    A new `private` file can only be read by its owner; an existing file keeps its mode.
    """
    with _explain(path):
        if make_folder:
            Path(path).parent.mkdir(parents=True, exist_ok=True)
        status = check_writable(path)
        descriptor = _output_descriptor(status)
        if descriptor is not None:
            with os.fdopen(os.dup(descriptor), "wb") as stream:
                yield stream
        elif status is not None and not stat.S_ISREG(status.st_mode):
            with Path(path).open("wb") as stream:
                yield stream
        else:
            with _temporary_file(_destination(path), status, durable, private) as stream:
                yield stream


def create_private_file(path: PathLike) -> None:
    """Create an empty file that only its owner can read, unless the path exists."""
    with _explain(path), suppress(FileExistsError):
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, OWNER_ONLY))


def check_writable(path: PathLike) -> os.stat_result | None:
    """Raise `WriteError` if a path cannot be written; return its status, None if it is new."""
    with _explain(path):
        target = Path(path)
        destination = _destination(path)
        status: os.stat_result | None = None
        with suppress(FileNotFoundError):
            status = target.stat()
        if status is not None and stat.S_ISDIR(status.st_mode):
            raise WriteError(f"{target} is a directory; expected a file name")
        if status is None and not destination.parent.is_dir():
            raise WriteError(f"{target}: the folder {destination.parent} does not exist")
        if status is not None and not os.access(target, os.W_OK):
            raise WriteError(f"{target}: no permission to write to it")
        is_file = status is None or stat.S_ISREG(status.st_mode)
        is_redirected = _output_descriptor(status) is not None
        if is_file and not is_redirected and not os.access(destination.parent, os.W_OK):
            raise WriteError(f"{target}: no permission to write to the folder {destination.parent}")
        return status


@contextmanager
def lock_file(path: Path, *, timeout: float = 0) -> Iterator[bool]:
    """Lock a file during the block; yields whether this process got the lock.

    `timeout` is the number of seconds to wait for another process. Without a timeout the file is
    removed after the block; with one it stays, since others may be waiting for it. The lock ends
    with the process. On file systems without locks every process gets it.
    """
    with ExitStack() as stack:
        is_taken = False
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            # SQLite locks work on all operating systems.
            lock = sqlite3.connect(path, timeout=timeout, isolation_level=None)
            stack.enter_context(closing(lock))
            lock.execute("PRAGMA journal_mode = OFF")  # no second file
            lock.execute("BEGIN EXCLUSIVE")
            if not timeout:
                stack.callback(_remove, path)
        except (OSError, sqlite3.Error) as error:
            is_taken = getattr(error, "sqlite_errorcode", None) == sqlite3.SQLITE_BUSY
        yield not is_taken


def _remove(path: Path) -> None:
    with suppress(OSError):
        path.unlink(missing_ok=True)


def _destination(path: PathLike) -> Path:
    """Follow a symbolic link to the file it names, which may not exist yet."""
    return Path(os.path.realpath(path)) if Path(path).is_symlink() else Path(path)


def _output_descriptor(status: os.stat_result | None) -> int | None:
    """Return the descriptor if a file is this process's own stdout or stderr: do not reopen it."""
    for descriptor in OUTPUT_DESCRIPTORS:
        with suppress(OSError):  # a closed descriptor
            if status is not None and os.path.samestat(os.fstat(descriptor), status):
                return descriptor
    return None


@contextmanager
def _temporary_file(
    destination: Path, status: os.stat_result | None, durable: bool, private: bool
) -> Iterator[IO[bytes]]:
    """Open a new file in the same folder; move it to `destination` when the block succeeds."""
    partial = destination.with_name(f"{PARTIAL_PREFIX}{secrets.token_hex(8)}.part")
    try:
        if private:
            create_private_file(partial)
        with partial.open("wb" if private else "xb") as stream:
            if status is not None:
                _copy_owner_and_mode(partial, status)
            yield stream
            stream.flush()
            if durable:
                os.fsync(stream.fileno())
        partial.replace(destination)
    finally:
        _remove(partial)


def _copy_owner_and_mode(path: Path, status: os.stat_result) -> None:
    with suppress(OSError, AttributeError):  # only root changes owners; Windows has none
        os.chown(path, status.st_uid, status.st_gid)
    path.chmod(stat.S_IMODE(status.st_mode))


@contextmanager
def _explain(path: PathLike) -> Iterator[None]:
    """Turn an `OSError` of the operating system into a `WriteError`, except broken pipes."""
    try:
        yield
    except OSError as error:
        if error.errno is None or isinstance(error, BrokenPipeError):
            raise
        if error.errno == errno.ENAMETOOLONG:
            name = Path(path).name
            raise WriteError(
                f"{name[:40]}...: the file name is too long "
                f"({len(os.fsencode(name))} bytes; most file systems allow 255)"
            ) from None
        raise WriteError(f"{path}: cannot be written ({error.strerror})") from None
