"""A folder, or a tar file that stands for one: unpacked to a temporary folder, safely.

Only plain files inside the folder are written. A member that would land outside is refused; links
and devices are passed over with a warning.
"""

from __future__ import annotations

import logging
import lzma
import shutil
import tarfile
import tempfile
import zlib
from pathlib import Path, PurePosixPath

from tertium.atomic import PathLike, replace_content
from tertium.errors import DataError

logger = logging.getLogger(__name__)

TAR_ENDINGS = (".tar", ".tar.gz", ".tgz", ".tar.xz", ".txz", ".tar.bz2")
# No published task comes near: a damaged or hostile archive must not fill the disk.
MOST_BYTES = 4 << 30
MOST_FILES = 100_000


class Folder:
    """A folder to read from; one unpacked from a tar file goes when this object does.

    `path` is the folder, or the single one inside the tar file; `top` is what encloses it all.
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
            raise DataError(f"{self.origin}: expected a folder or a file {', '.join(TAR_ENDINGS)}")


def is_tar(path: PathLike) -> bool:
    """Whether a name looks like a tar file.

    >>> is_tar("wmt17-metrics-task.tar.xz"), is_tar("da/wmt17")
    (True, False)
    """
    return Path(path).name.endswith(TAR_ENDINGS)


def bare_name(path: PathLike) -> str:
    """The name without a tar ending.

    >>> bare_name("data/wmt17-metrics-task.tar.xz")
    'wmt17-metrics-task'
    """
    name = Path(path).name
    ending = next((e for e in sorted(TAR_ENDINGS, key=len, reverse=True) if name.endswith(e)), "")
    return name.removesuffix(ending)


def unpack(archive: Path, target: Path) -> Path:
    """Unpack a tar file; the folder, or the single one inside it that holds everything."""
    try:
        with tarfile.open(archive) as tar:
            _extract(tar, archive, target)
    except (tarfile.TarError, lzma.LZMAError, zlib.error, EOFError, OSError) as error:
        reason = str(error).partition("\n")[0].rstrip(":")  # tarfile lists all it has tried
        raise DataError(f"{archive}: cannot be unpacked ({reason})") from None
    entries = list(target.iterdir())
    return entries[0] if len(entries) == 1 and entries[0].is_dir() else target


def _extract(tar: tarfile.TarFile, archive: Path, target: Path) -> None:
    written = 0
    for number, member in enumerate(tar):
        if number == MOST_FILES:
            raise DataError(f"{archive}: more than {MOST_FILES:,} files; is it damaged?")
        name = PurePosixPath(member.name)
        if name.is_absolute() or ".." in name.parts or "\\" in member.name:
            raise DataError(f"{archive}: refusing member {member.name!r}, it leaves the folder")
        if not member.isfile():
            if not member.isdir():
                logger.warning(
                    "%s: %s is neither file nor folder; passed over", archive, member.name
                )
            continue
        written += member.size
        if written > MOST_BYTES:
            raise DataError(f"{archive}: more than {MOST_BYTES >> 30} GiB unpacked; is it damaged?")
        file = target.joinpath(*name.parts)
        content = tar.extractfile(member)
        assert content is not None
        with content, replace_content(file, make_folder=True, durable=False) as copy:
            shutil.copyfileobj(content, copy)
