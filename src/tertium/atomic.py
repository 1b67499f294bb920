"""The only way tertium writes a file: whole or not at all, and into what the name stands for.

A regular file is written beside its place, brought to the disk, and moved there in one step with
the mode and owner of the file it replaces: a killed process or a full disk leaves the old one. A
symbolic link is followed. What is no regular file (a device, a pipe, `/dev/stdout`) is written to
as it is. What goes wrong is one `WriteError` that names the file and the reason. A file that is
locked says that a process is at work where it lies.
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

from tertium.errors import WriteError

PathLike = str | os.PathLike[str]

STANDARD = (1, 2)  # the descriptors behind /dev/stdout and /dev/stderr
PART = ".tertium-"  # how the names of files under way begin; short, since names end at 255 bytes
REMAINS = f"{PART}*.part"  # what is left of them where a process was killed


def write_text(
    path: PathLike, text: str | Iterable[str], *, make_folder: bool = False, durable: bool = True
) -> None:
    """Write a text, given whole or in pieces, as UTF-8.

    A name ending in `.gz` is compressed, without a time stamp: equal content gives equal files.
    """
    pieces = (text,) if isinstance(text, str) else text
    with replace_content(path, make_folder=make_folder, durable=durable) as stream:
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
def replace_content(
    path: PathLike, *, make_folder: bool = False, durable: bool = True
) -> Iterator[IO[bytes]]:
    """A stream whose bytes are the file's content once the block ends well, and else nothing.

    `make_folder` makes the folders that are missing. What may be lost with the power, such as a
    cache, need not be `durable`: it is as whole, but not waited for.
    """
    with _explain(path):
        if make_folder:
            Path(path).parent.mkdir(parents=True, exist_ok=True)
        status = check_writable(path)
        descriptor = _standard(status)
        if descriptor is not None:
            with os.fdopen(os.dup(descriptor), "wb") as stream:
                yield stream
        elif status is not None and not stat.S_ISREG(status.st_mode):
            with Path(path).open("wb") as stream:
                yield stream
        else:
            with _beside(_place(path), status, durable) as stream:
                yield stream


def check_writable(path: PathLike) -> os.stat_result | None:
    """Refuse a name that could not be written to; else what is there now, None for nothing.

    A command calls it before the work, so that an hour is not spent on what cannot be kept.
    """
    with _explain(path):
        target, place = Path(path), _place(path)
        status: os.stat_result | None = None
        with suppress(FileNotFoundError):
            status = target.stat()
        if status is not None and stat.S_ISDIR(status.st_mode):
            raise WriteError(f"{target} is a directory; a file name was expected")
        if status is None and not place.parent.is_dir():
            raise WriteError(f"{target}: the folder {place.parent} does not exist")
        if status is not None and not os.access(target, os.W_OK):
            raise WriteError(f"{target}: no permission to write to it")
        is_file = status is None or stat.S_ISREG(status.st_mode)
        if is_file and _standard(status) is None and not os.access(place.parent, os.W_OK):
            raise WriteError(f"{target}: no permission to write to the folder {place.parent}")
        return status


@contextmanager
def lock_file(path: Path, *, patience: float = 0) -> Iterator[bool]:
    """Whether this process alone holds a file while the block runs.

    `patience`: how many seconds to wait for another process that holds it; without, the file is
    gone behind the block (at one that stays others may wait). However a process ends, its lock ends
    with it. Where files cannot be locked, everyone holds it.
    """
    with ExitStack() as held:
        is_taken = False
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            # SQLite locks on every system
            lock = sqlite3.connect(path, timeout=patience, isolation_level=None)
            held.enter_context(closing(lock))
            lock.execute("PRAGMA journal_mode = OFF")  # which would lie beside it
            lock.execute("BEGIN EXCLUSIVE")
            if not patience:
                held.callback(_remove, path)
        except (OSError, sqlite3.Error) as error:
            is_taken = getattr(error, "sqlite_errorcode", None) == sqlite3.SQLITE_BUSY
        yield not is_taken


def _remove(path: Path) -> None:
    with suppress(OSError):
        path.unlink(missing_ok=True)


def _place(path: PathLike) -> Path:
    """Where the file lies that a name leads to: a link's goal, which need not be there yet."""
    return Path(os.path.realpath(path)) if Path(path).is_symlink() else Path(path)


def _standard(status: os.stat_result | None) -> int | None:
    """The descriptor of this process's own output that a file is, however it was redirected.

    Opened a second time, a redirected file would be written from its beginning, over what the
    process printed; replaced, what it prints later would go to a file without a name.
    """
    for descriptor in STANDARD:
        with suppress(OSError):  # one that was closed
            if status is not None and os.path.samestat(os.fstat(descriptor), status):
                return descriptor
    return None


@contextmanager
def _beside(place: Path, status: os.stat_result | None, durable: bool) -> Iterator[IO[bytes]]:
    """A new file in the folder of `place` that takes its place when the block ends well."""
    part = place.with_name(f"{PART}{secrets.token_hex(8)}.part")
    try:
        with part.open("xb") as stream:
            if status is not None:
                _inherit(part, status)
            yield stream
            stream.flush()
            if durable:
                os.fsync(stream.fileno())
        part.replace(place)
    finally:
        _remove(part)


def _inherit(part: Path, status: os.stat_result) -> None:
    """Give a new file the owner, as far as one may, and the mode of the old one."""
    with suppress(OSError, AttributeError):  # only root gives files away; Windows has no owners
        os.chown(part, status.st_uid, status.st_gid)
    part.chmod(stat.S_IMODE(status.st_mode))


@contextmanager
def _explain(path: PathLike) -> Iterator[None]:
    """Say in one line why a file cannot be written.

    A reader that went away is no fault of the file, and an error without a number comes from what
    is read inside the block (gzip has such), not from the system.
    """
    try:
        yield
    except OSError as error:
        if error.errno is None or isinstance(error, BrokenPipeError):
            raise
        if error.errno == errno.ENAMETOOLONG:
            name = Path(path).name
            raise WriteError(
                f"{name[:40]}...: the name is too long to be written "
                f"({len(os.fsencode(name))} bytes; most disks take 255)"
            ) from None
        raise WriteError(f"{path}: cannot be written ({error.strerror})") from None
