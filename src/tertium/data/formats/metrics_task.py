"""Read WMT metrics tasks (texts, human and metric scores) and WMT relative rankings.

    DA-seglevel.csv          LP DATA SYSTEM SID HUMAN, separated by blanks; SID counts from 1
    DA-syslevel.csv          LP HUMAN SYSTEM
    sources/ (or source/)    newstest2017-csen-src.cs
    references/              newstest2017-csen-ref.en
    system-outputs/          [newstest2017/]cs-en/newstest2017.online-A.0.cs-en
    system-outputs-*.tar.xz  more outputs, packed

The folder itself may be a tar file.

In a ranking file, a judge ranks up to five systems per row, which gives ten pairs. Columns:
`srclang, trglang, srcIndex, documentId, segmentId, judgeId`, then for each system `system1Number,
system1Id, system1rank`, ... Later years omit some columns, have two systems per row, or add a
`rankingID`. Rank 1 is best, equal ranks are ties, and -1 is a system that was not ranked.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import combinations
from pathlib import Path

import numpy as np

from tertium.arrays import FloatArray
from tertium.atomic import PathLike
from tertium.data import rankings
from tertium.data.delimited_tables import read_table
from tertium.data.judgments import DUPLICATE, NO_SCORE, JudgmentCollector, JudgmentSet
from tertium.data.records import ANNOTATOR_NAMES, get_text, lowercase_columns, read_score
from tertium.data.segment_lookup import build_segment_lookup
from tertium.data.tar_archive import UnpackedFolder, is_tar, strip_tar_suffix
from tertium.data.testset import TestSet
from tertium.data.text_files import read_lines
from tertium.errors import DataError, UnknownNameError
from tertium.scores import ScoreMatrix
from tertium.text.language_codes import CODE_ALIASES

SEGMENT_FILE, SYSTEM_FILE = "DA-seglevel.csv", "DA-syslevel.csv"


@dataclass(frozen=True, kw_only=True)
class SystemScores:
    """Human scores of systems, higher is better.

    >>> SystemScores(name="demo", scores={"A": 1.0, "B": 0.5}).of(["B", "A", "C"])
    array([0.5, 1. , nan])
    """

    name: str
    scores: Mapping[str, float]
    lp: str = ""
    excluded_counts: Mapping[str, int] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.scores)

    def of(self, systems: Sequence[str]) -> FloatArray:
        """Return the scores of the given systems, (systems,); NaN if missing."""
        return np.array([self.scores.get(system, math.nan) for system in systems])


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

    def system_scores(self, lp: str) -> SystemScores:
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
        return SystemScores(
            name=self.name, lp=lp, scores=scores, excluded_counts=dict(excluded_counts)
        )

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


NOT_RANKED = "rank missing"

LANGUAGES = {  # English names and three-letter codes, including those that only WMT uses
    **{code: language for code, language in CODE_ALIASES.items() if len(code) == 3},
    "basque": "eu", "bulgarian": "bg", "chinese": "zh", "czech": "cs", "dutch": "nl",
    "english": "en", "esn": "es", "finnish": "fi", "french": "fr", "german": "de",
    "haitian creole": "ht", "hat": "ht", "hindi": "hi", "hungarian": "hu", "italian": "it",
    "japanese": "ja", "latvian": "lv", "polish": "pl", "portuguese": "pt", "ptb": "pt",
    "romanian": "ro", "russian": "ru", "spanish": "es", "turkish": "tr", "urdu": "ur",
}  # fmt: skip

MAX_RANK_DIGITS = 9
_RANK = re.compile(r"system(\d+)rank")


def read_rankings(
    path: PathLike, texts: Mapping[str, Mapping[str, rankings.ItemTexts] | TestSet] | None = None
) -> dict[str, rankings.RankingSet]:
    """Read a ranking CSV file into a set for each language pair.

    `texts` contains the texts of language pairs: a test set, or texts by segment number. Without
    texts, a set is sufficient for system scores and annotator agreement. Test set and language pair
    are removed from system names (`newstest2016.uedin.4321.cs-en`).
    """
    comparisons_by_lp: dict[str, list[rankings.PairwiseJudgment]] = {}
    excluded_counts: dict[str, Counter[str]] = {}
    for where, row in read_table(path, delimiter=","):
        record = lowercase_columns(row)
        lp = "-".join(_language_code(record, key, where) for key in ("srclang", "trglang"))
        ranked, missing = _read_ranks(record, where)
        comparisons_by_lp.setdefault(lp, []).extend(_pairs(record, ranked, where))
        excluded_counts.setdefault(lp, Counter())[NOT_RANKED] += missing
    name = Path(path).name.split(".csv")[0]
    sets = {}
    for lp, comparisons in comparisons_by_lp.items():
        items = (texts or {}).get(lp)
        if isinstance(items, TestSet):
            items = rankings.texts_by_item(items, comparisons)
        sets[lp] = rankings.build_ranking_set(
            comparisons, items, name=name, lp=lp, excluded_counts=+excluded_counts[lp]
        )
    return sets


def _read_ranks(record: Mapping[str, str], where: str) -> tuple[list[tuple[str, int]], int]:
    """Return (system, rank) for each ranked system of a row, and the number of unranked systems."""
    ranked, missing = [], 0
    for key in record:
        match = _RANK.fullmatch(key)
        if match is None:
            continue
        system, rank = record.get(f"system{match[1]}id", "").strip(), record[key].strip()
        if not system or rank in ("", "-1"):
            missing += 1
        elif not rank.isdecimal() or len(rank) > MAX_RANK_DIGITS:
            raise DataError(f"{where}: rank {rank[:20]!r} of {system!r} is not a whole number")
        else:
            ranked.append((strip_system_name(system), int(rank)))
    if not ranked and not missing:
        raise DataError(f"{where}: no column system1Id with system1rank; found {', '.join(record)}")
    return ranked, missing


def _pairs(
    record: Mapping[str, str], ranked: list[tuple[str, int]], where: str
) -> Iterator[rankings.PairwiseJudgment]:
    item = get_text(record, ("srcindex", "segmentid"))
    if not item:
        raise DataError(f"{where}: expected the segment number in srcIndex or segmentId")
    judge = get_text(record, ANNOTATOR_NAMES)
    for (left, a), (right, b) in combinations(ranked, 2):
        yield rankings.PairwiseJudgment(item, left, right, 0.5 if a == b else float(a < b), judge)


def strip_system_name(name: str) -> str:
    """Remove the test set before a system name and the language pair after it.

    >>> strip_system_name("newstest2016.uedin-nmt.4321.cs-en"), strip_system_name("cu-bojar")
    ('uedin-nmt.4321', 'cu-bojar')
    """
    return re.sub(r"^[\w-]*test[\w-]*\.|\.[a-z]{2,3}-[a-z]{2,3}(\.txt)?$", "", name)


def _language_code(record: Mapping[str, str], key: str, where: str) -> str:
    language = record.get(key, "").strip().lower()
    if not language:
        raise DataError(f"{where}: no {key}; is this a WMT ranking file?")
    return LANGUAGES.get(language, language)
