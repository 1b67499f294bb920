"""WMT metrics tasks: texts, human scores and submitted scores of metrics.

    DA-seglevel.csv          LP DATA SYSTEM SID HUMAN, separated by blanks; SID counts from 1
    DA-syslevel.csv          LP HUMAN SYSTEM
    sources/ (or source/)    newstest2017-csen-src.cs
    references/              newstest2017-csen-ref.en
    system-outputs/          [newstest2017/]cs-en/newstest2017.online-A.0.cs-en
    system-outputs-*.tar.xz  more outputs, packed

The folder itself may be a tar file, which is unpacked to a temporary folder. Only regular files
inside the archive are written. A member that would be written outside the folder is an error. Links
and devices are skipped with a warning.
"""

from __future__ import annotations

import logging
import lzma
import shutil
import tarfile
import tempfile
import zlib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import islice
from pathlib import Path, PurePosixPath

from tertium.core.atomic import PathLike, open_atomic
from tertium.core.errors import DataError, UnknownNameError
from tertium.data.formats import Source
from tertium.data.human_data import NO_SEGMENT, UNKNOWN_SYSTEM, HumanData
from tertium.data.judgments import DUPLICATE, NO_SCORE, JudgmentSet, Row, build_judgment_set
from tertium.data.records import read_integer, read_score, record_from_segment
from tertium.data.testset import TestSet
from tertium.data.text_files import read_lines

logger = logging.getLogger(__name__)

SEGMENT_FILE = "DA-seglevel.csv"
SYSTEM_FILE = "DA-syslevel.csv"
Rows = dict[str, list[tuple[str, dict[str, str]]]]  # location and cells, by language pair


def is_task(source: Source) -> bool:
    return is_tar(source.path) or is_metrics_task(source.path)


def read_task(source: Source) -> Iterator[HumanData]:
    source.refuse_gold()
    task = MetricsTask.open(source.path)
    is_system_level = source.level == "system"
    for lp in sorted(task.system_rows if is_system_level else task.segment_rows):
        if source.lps and lp not in source.lps:
            continue
        has_outputs = task.outputs(lp)
        if is_system_level:
            testset = task.testset(lp) if has_outputs else None
            yield replace(task.system_scores(lp), testset=testset)
        elif has_outputs:
            yield task.judgments(lp)
        else:
            logger.warning("%s: %s has no system outputs; skipped", task.name, lp)


@dataclass(frozen=True, kw_only=True, eq=False)
class MetricsTask:
    """The metrics task of one year; open its folder or tar file with `MetricsTask.open`.

    `segment_rows` and `system_rows` have the human scores by language pair.
    """

    name: str
    folder: UnpackedFolder
    _packed: list[UnpackedFolder] = field(default_factory=list, repr=False)

    @classmethod
    def open(cls, path: PathLike) -> MetricsTask:
        """Open a folder, or unpack a tar file to a temporary folder."""
        folder = UnpackedFolder(path)
        if not is_metrics_task(folder.path):
            raise DataError(f"{path}: expected {SYSTEM_FILE} or {SEGMENT_FILE} in this folder")
        return cls(name=strip_tar_suffix(path), folder=folder)

    @cached_property
    def system_rows(self) -> Rows:
        return _read_rows(self.folder.path / SYSTEM_FILE, ("lp", "human", "system"))

    @cached_property
    def segment_rows(self) -> Rows:
        return _read_rows(self.folder.path / SEGMENT_FILE, ("lp", "data", "system", "sid", "human"))

    @property
    def lps(self) -> tuple[str, ...]:
        """The language pairs with human scores."""
        return tuple(sorted({*self.system_rows, *self.segment_rows}))

    @property
    def with_outputs(self) -> tuple[str, ...]:
        """The language pairs with system outputs."""
        return tuple(lp for lp in self.lps if self.outputs(lp))

    def testset(self, lp: str) -> TestSet:
        """Read all system outputs with source and reference."""
        outputs = self.outputs(lp)
        if not outputs:
            raise DataError(f"{self.folder.origin}: no system outputs for {lp}")
        prefix = next(iter(outputs.values())).name.split(".")[0]
        references = self._text("reference*", f"{prefix}-{lp.replace('-', '')}-ref.*")
        sources = self._text("source*", f"{prefix}-{lp.replace('-', '')}-src.*")
        return TestSet.read(list(outputs.values()), [references], sources, names=list(outputs))

    def system_scores(self, lp: str) -> HumanData:
        """Read the human scores of systems; duplicate rows are excluded and counted."""
        scores: dict[str, float] = {}
        counts: Counter[str] = Counter()
        for where, row in _select(self.system_rows, lp):
            system = row["system"]
            score = read_score(row["human"], where)
            if score != score:
                counts[NO_SCORE] += 1
            elif system not in scores:
                scores[system] = score
            elif scores[system] == score:
                counts[DUPLICATE] += 1
            else:
                raise DataError(f"{where}: another score of system {system!r}")
        return HumanData(name=self.name, lp=lp, system_scores=scores, excluded_counts=counts)

    def judgments(self, lp: str) -> JudgmentSet:
        """Read the human scores of segments with their texts; unknown rows are excluded."""
        testset = self.testset(lp)
        segments = {system: testset.segments(system) for system in testset.systems}

        def add_texts(row: dict[str, str], where: str) -> Row:
            number = read_integer(row["sid"], "SID", where)
            for system in (row["system"], *row["system"].split("+")):  # joint systems agree
                if system in segments and not 1 <= number <= len(testset):
                    return NO_SEGMENT
                if system in segments:
                    return row | record_from_segment(segments[system][number - 1])
            return UNKNOWN_SYSTEM

        rows = ((where, add_texts(row, where)) for where, row in _select(self.segment_rows, lp))
        return build_judgment_set(rows, self.name, lp)

    def outputs(self, lp: str) -> dict[str, Path]:
        """Return the output file of each system; packed outputs are unpacked on first use."""
        files = _output_files(self.folder.path, lp)
        if not files and not self._packed:
            packed = sorted(p for p in self.folder.path.glob("system-outputs*") if is_tar(p))
            self._packed.extend(UnpackedFolder(path) for path in packed)
        return files or {k: v for f in self._packed for k, v in _output_files(f.top, lp).items()}

    def _text(self, folder: str, name: str) -> Path:
        files = sorted(self.folder.path.glob(f"{folder}/{name}"))
        if len(files) != 1:
            count = "no file" if not files else f"{len(files)} files"
            raise DataError(f"{self.folder.origin}: {count} {folder}/{name}; expected one")
        return files[0]


def is_metrics_task(folder: Path) -> bool:
    """Return whether a folder has the layout of a metrics task."""
    return (folder / SEGMENT_FILE).is_file() or (folder / SYSTEM_FILE).is_file()


def _output_files(root: Path, lp: str) -> dict[str, Path]:
    files: dict[str, Path] = {}
    for file in sorted(root.glob(f"**/{lp}/*.{lp}*")):
        _, _, full_name = file.name.partition(".")
        name = full_name.removesuffix(".gz").removesuffix(f".{lp}")
        if file.is_file() and name != full_name and "metric" not in file.parts[-3]:
            files[name] = file
    return files


def _read_rows(path: Path, columns: tuple[str, ...]) -> Rows:
    """Read the rows of a file by language pair; empty if it is absent."""
    header, *lines = read_lines(path) if path.is_file() else [" ".join(columns)]
    if header.lower().split() != [*columns]:
        expected = " ".join(columns).upper()
        raise DataError(f"{path}, line 1: expected the header {expected!r}, got {header!r}")
    groups: Rows = {}
    for number, line in enumerate(lines, start=2):
        cells = line.split()
        where = f"{path}, line {number}"
        if cells and len(cells) != len(columns):
            raise DataError(f"{where}: {len(cells)} fields, expected {header!r}")
        if cells:
            row = dict(zip(columns, cells, strict=True))
            groups.setdefault(row["lp"], []).append((where, row))
    return groups


def _select(rows: Rows, lp: str) -> list[tuple[str, dict[str, str]]]:
    if lp not in rows:
        raise UnknownNameError("language pair", lp, rows)
    return rows[lp]


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
