"""WMT metrics tasks: texts, human scores and submitted scores of metrics.

    DA-seglevel.csv          LP DATA SYSTEM SID HUMAN, separated by blanks; SID counts from 1
    DA-syslevel.csv          LP HUMAN SYSTEM
    sources/ (or source/)    newstest2017-csen-src.cs
    references/              newstest2017-csen-ref.en
    system-outputs/          [newstest2017/]cs-en/newstest2017.online-A.0.cs-en
    system-outputs-*.tar.xz  more outputs, packed

The folder itself may be a tar file.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

from tertium.core.atomic import PathLike
from tertium.core.errors import DataError, UnknownNameError
from tertium.core.scores import ScoreMatrix
from tertium.data.formats import Source
from tertium.data.human_data import HumanData
from tertium.data.human_score_tables import HumanScoreTable
from tertium.data.judgments import DUPLICATE, NO_SCORE, JudgmentCollector, JudgmentSet
from tertium.data.records import read_score
from tertium.data.segment_lookup import build_segment_lookup
from tertium.data.tar_archive import UnpackedFolder, is_tar, strip_tar_suffix
from tertium.data.testset import TestSet
from tertium.data.text_files import read_lines

logger = logging.getLogger(__name__)

SEGMENT_FILE, SYSTEM_FILE = "DA-seglevel.csv", "DA-syslevel.csv"


def matches(source: Source) -> bool:
    return is_tar(source.path) or is_metrics_task(source.path)


def read(source: Source) -> Iterator[HumanData]:
    source.refuse_gold()
    task = MetricsTask.open(source.path)
    is_system_level = source.level == "system"
    for lp in task.system_level if is_system_level else task.segment_level:
        if source.lps and lp not in source.lps:
            continue
        testset = task.testset(lp) if lp in task.with_outputs else None
        if is_system_level:
            yield replace(task.system_scores(lp), testset=testset)
        elif testset is not None:
            yield task.judgments(lp, testset)
        else:
            logger.warning("%s: %s has no system outputs; skipped", task.name, lp)


@dataclass(frozen=True, kw_only=True, eq=False)
class MetricsTask:
    """The metrics task of one year; open its folder or tar file with `MetricsTask.open`."""

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
    def lps(self) -> tuple[str, ...]:
        """The language pairs with human scores."""
        return tuple(sorted({*self._system_rows, *self._segment_rows}))

    @cached_property
    def with_outputs(self) -> tuple[str, ...]:
        """The language pairs with system outputs."""
        return tuple(sorted(lp for lp in self.lps if self._outputs(lp)))

    @property
    def system_level(self) -> tuple[str, ...]:
        """The language pairs with human scores of systems."""
        return tuple(sorted(self._system_rows))

    @property
    def segment_level(self) -> tuple[str, ...]:
        """The language pairs with human scores of segments."""
        return tuple(sorted(self._segment_rows))

    def testset(self, lp: str) -> TestSet:
        """Read all system outputs with source and reference."""
        outputs = self._outputs(lp)
        if not outputs:
            raise DataError(f"{self.folder.origin}: no system outputs for {lp}")
        prefix = next(iter(outputs.values())).name.split(".")[0]
        references = [self._text(("references",), f"{prefix}-{lp.replace('-', '')}-ref.*")]
        sources = self._text(("sources", "source"), f"{prefix}-{lp.replace('-', '')}-src.*")
        return TestSet.read(list(outputs.values()), references, sources, names=list(outputs))

    def system_scores(self, lp: str) -> HumanScoreTable:
        """Read the human scores of systems; duplicate rows are excluded and counted."""
        scores: dict[str, float] = {}
        excluded_counts: Counter[str] = Counter()
        for where, (_, human, system) in _rows(self._system_rows, lp):
            score = read_score(human, where)
            if score != score:
                excluded_counts[NO_SCORE] += 1
            elif scores.get(system, score) != score:
                raise DataError(f"{where}: another score of system {system!r}")
            elif system in scores:
                excluded_counts[DUPLICATE] += 1
            else:
                scores[system] = score
        return HumanScoreTable.of_systems(scores, self.name, lp, excluded_counts)

    def judgments(self, lp: str, testset: TestSet | None = None) -> JudgmentSet:
        """Read the human scores of segments with their texts; unknown rows are excluded."""
        collector = JudgmentCollector(
            find_segment=build_segment_lookup(testset or self.testset(lp))
        )
        for where, cells in _rows(self._segment_rows, lp):
            _, _, system, item, score = cells
            record = {"score": score, "item": item, "system": system, "lp": lp}
            collector.add(record, where)
        return collector.build(self.name, lp)

    def count_segments(self, lp: str) -> int:
        """Return the number of human scores of segments."""
        return len(self._segment_rows.get(lp, ()))

    @cached_property
    def _system_rows(self) -> dict[str, list[tuple[str, list[str]]]]:
        return _read_rows(self.folder.path / SYSTEM_FILE, ("LP", "HUMAN", "SYSTEM"))

    @cached_property
    def _segment_rows(self) -> dict[str, list[tuple[str, list[str]]]]:
        return _read_rows(self.folder.path / SEGMENT_FILE, ("LP", "DATA", "SYSTEM", "SID", "HUMAN"))

    def _outputs(self, lp: str) -> dict[str, Path]:
        """Return the output file of each system; packed outputs are unpacked on first use."""
        files = _output_files(self.folder.path, lp)
        if not files and not self._packed:
            packed = sorted(p for p in self.folder.path.glob("system-outputs*") if is_tar(p))
            self._packed.extend(UnpackedFolder(path) for path in packed)
        return files or {k: v for f in self._packed for k, v in _output_files(f.top, lp).items()}

    def _text(self, folders: tuple[str, ...], pattern: str) -> Path:
        files = sorted(f for name in folders for f in (self.folder.path / name).glob(pattern))
        if len(files) != 1:
            count = "no file" if not files else f"{len(files)} files"
            raise DataError(f"{self.folder.origin}: {count} {folders[0]}/{pattern}; expected one")
        return files[0]


def is_metrics_task(folder: Path) -> bool:
    """Return whether a folder has the layout of a metrics task."""
    return (folder / SEGMENT_FILE).is_file() or (folder / SYSTEM_FILE).is_file()


def read_metric_submission(path: PathLike) -> dict[tuple[str, str], ScoreMatrix]:
    """Read the scores that a metric submitted to the task, by (metric, language pair).

    The file has tab-separated `METRIC LP TESTSET SYSTEM [SEGMENT] SCORE`; later columns are
    ignored. The file name contains the level, `seg` or `sys`. System scores are a matrix with one
    column.
    """
    parts = Path(path).name.split(".")
    level = next((part for part in parts if part in ("seg", "sys")), "")
    if not level:
        raise DataError(
            f"{path}: the file name must contain the level, seg or sys: rename it to "
            "METRIC.seg.score or METRIC.sys.score"
        )
    width = 6 if level == "seg" else 5
    scores: dict[tuple[str, str], dict[tuple[str, str], float]] = {}
    for number, line in enumerate(read_lines(path), start=1):
        row = line.split("\t")
        where = f"{path}, line {number}"
        if len(row) < width:
            raise DataError(f"{where}: {len(row)} fields, expected at least {width}")
        metric, lp, _, system, *cells = row
        key = (system, cells[0] if level == "seg" else "all")
        group = scores.setdefault((metric, lp), {})
        if key in group:
            raise DataError(f"{where}: a second score of {' '.join(key)} by {metric}")
        group[key] = read_score(cells[width - 5], where)
    return {key: ScoreMatrix.from_cells(key[0], group) for key, group in scores.items()}


def _output_files(root: Path, lp: str) -> dict[str, Path]:
    files: dict[str, Path] = {}
    for file in sorted(root.glob(f"**/{lp}/*.{lp}*")):
        _, _, full_name = file.name.partition(".")
        name = full_name.removesuffix(".gz").removesuffix(f".{lp}")
        if file.is_file() and name != full_name and "metric" not in file.parts[-3]:
            files[name] = file
    return files


def _read_rows(path: Path, header: tuple[str, ...]) -> dict[str, list[tuple[str, list[str]]]]:
    """Read the rows (location, cells) of a file by language pair; empty if it is absent."""
    groups: dict[str, list[tuple[str, list[str]]]] = {}
    for number, line in enumerate(read_lines(path) if path.is_file() else (), start=1):
        cells, where = line.split(), f"{path}, line {number}"
        if number == 1 and tuple(cells) != header:
            raise DataError(f"{where}: expected the header {' '.join(header)!r}, got {line!r}")
        if cells and len(cells) != len(header):
            raise DataError(f"{where}: {len(cells)} fields, expected {' '.join(header)!r}")
        if cells and number > 1:
            groups.setdefault(cells[0], []).append((where, cells))
    return groups


def _rows(groups: dict[str, list[tuple[str, list[str]]]], lp: str) -> list[tuple[str, list[str]]]:
    if lp not in groups:
        raise UnknownNameError("language pair", lp, groups)
    return groups[lp]
