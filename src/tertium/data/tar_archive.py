"""Open a folder, or unpack a tar file safely to a temporary folder.

Only regular files inside the archive are written. A member that would be written outside the folder
is an error. Links and devices are skipped with a warning.
"""

from __future__ import annotations

import logging
import lzma
import shutil
import tarfile
import tempfile
import zlib
from itertools import islice
from pathlib import Path, PurePosixPath

from tertium.core.atomic import PathLike, open_atomic
from tertium.core.errors import DataError

logger = logging.getLogger(__name__)

TAR_SUFFIXES = (".tar", ".tar.gz", ".tgz", ".tar.xz", ".txz", ".tar.bz2")
# Far above any published task: a damaged or malicious archive must not fill the disk.
MAX_UNPACKED_BYTES = 4 << 30
MAX_FILES = 100_000


class UnpackedFolder:
    """A folder to read from; the copy of a tar file is deleted with this object.

    `path` is the folder, or the single top-level folder of the tar file. `top` is the folder of
    everything that was unpacked. `origin` is the path as given.
    """

    def __init__(self, path: PathLike) -> None:
        self.origin = Path(path)
        self._temporary: tempfile.TemporaryDirectory[str] | None = None
        if self.origin.is_dir():
            self.path = self.top = self.origin
        elif is_tar(self.origin) and self.origin.is_file():
            self._temporary = tempfile.TemporaryDirectory(prefix="tertium-")
            self.top = Path(self._temporary.name)
            self.path = unpack(self.origin, self.top)
        else:
            raise DataError(f"{self.origin}: expected a folder or a file {', '.join(TAR_SUFFIXES)}")


def is_tar(path: PathLike) -> bool:
    """Return whether a file name has a tar suffix.

    >>> is_tar("wmt17-metrics-task.tar.xz"), is_tar("da/wmt17")
    (True, False)
    """
    return Path(path).name.endswith(TAR_SUFFIXES)


def strip_tar_suffix(path: PathLike) -> str:
    """Return a file name without its tar suffix.

    >>> strip_tar_suffix("data/wmt17-metrics-task.tar.xz")
    'wmt17-metrics-task'
    """
    name = Path(path).name
    ending = next((e for e in sorted(TAR_SUFFIXES, key=len, reverse=True) if name.endswith(e)), "")
    return name.removesuffix(ending)


def unpack(archive: Path, target: Path) -> Path:
    """Unpack a tar file and return the folder, or its only top-level folder."""
    try:
        with tarfile.open(archive) as tar:
            _extract(tar, archive, target)
    except (tarfile.TarError, lzma.LZMAError, zlib.error, EOFError, OSError) as error:
        reason = str(error).partition("\n")[0].rstrip(":")  # tarfile lists all formats it tried
        raise DataError(f"{archive}: cannot be unpacked ({reason})") from None
    entries = list(target.iterdir())
    return entries[0] if len(entries) == 1 and entries[0].is_dir() else target


def _extract(tar: tarfile.TarFile, archive: Path, target: Path) -> None:
    members = list(islice(tar, MAX_FILES + 1))
    if len(members) > MAX_FILES or sum(member.size for member in members) > MAX_UNPACKED_BYTES:
        raise DataError(
            f"{archive}: more than {MAX_FILES:,} files or {MAX_UNPACKED_BYTES >> 30} GiB unpacked; "
            "is it damaged?"
        )
    for member in members:
        name = PurePosixPath(member.name)
        if name.is_absolute() or ".." in name.parts or "\\" in member.name:
            raise DataError(
                f"{archive}: member {member.name!r} would be written outside the folder"
            )
        content = tar.extractfile(member) if member.isfile() else None
        if content is not None:
            with content, open_atomic(target / name, make_folder=True, durable=False) as copy:
                shutil.copyfileobj(content, copy)
        elif member.isdir():
            (target / name).mkdir(parents=True, exist_ok=True)
        else:
            logger.warning("%s: skipped %s: neither a file nor a folder", archive, member.name)
