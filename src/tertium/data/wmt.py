"""WMT as it is published: the metrics task's texts, human and metric scores; relative rankings.

    DA-seglevel.csv          LP DATA SYSTEM SID HUMAN, blank-separated; SID counts from 1
    DA-syslevel.csv          LP HUMAN SYSTEM
    sources/ (or source/)    newstest2017-csen-src.cs
    references/              newstest2017-csen-ref.en
    system-outputs/          [newstest2017/]cs-en/newstest2017.online-A.0.cs-en
    system-outputs-*.tar.xz  more of them, packed

The folder may itself still be packed.

In a file of rankings a judge ranks up to five systems, which makes ten pairs. Columns: `srclang,
trglang, srcIndex, documentId, segmentId, judgeId`, then for each system `system1Number, system1Id,
system1rank`, ... Later years leave some out, have two systems a row, or add a `rankingID`. Rank 1
is best, equal ranks are ties, -1 is a system that was not ranked.
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
from tertium.data.archive import Folder, bare_name, is_tar
from tertium.data.formats import PathLike, read_lines, read_table
from tertium.data.judgments import DUPLICATE, NO_SCORE, Collector, JudgmentSet
from tertium.data.rankings import ItemTexts, PairJudgment, RankingSet, gather, texts_of
from tertium.data.records import ANNOTATOR_NAMES, lower_names, read_score, text_of
from tertium.data.testset import TestSet, find_in
from tertium.errors import DataError, UnknownNameError
from tertium.scores import ScoreMatrix
from tertium.text.language_codes import OTHER_CODES

SEGMENT_FILE, SYSTEM_FILE = "DA-seglevel.csv", "DA-syslevel.csv"


@dataclass(frozen=True, kw_only=True)
class SystemScores:
    """What people make of whole systems: a score for each, higher is better.

    >>> SystemScores(name="demo", scores={"A": 1.0, "B": 0.5}).of(["B", "A", "C"])
    array([0.5, 1. , nan])
    """

    name: str
    scores: Mapping[str, float]
    lp: str = ""
    left_out: Mapping[str, int] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.scores)

    def of(self, systems: Sequence[str]) -> FloatArray:
        """The scores of some systems, (systems,); NaN where people gave none."""
        return np.array([self.scores.get(system, math.nan) for system in systems])


@dataclass(frozen=True, kw_only=True, eq=False)
class MetricsTask:
    """One year's metrics task; open a folder or its tar file with `MetricsTask.open`."""

    name: str
    folder: Folder
    _packed: list[Folder] = field(default_factory=list, repr=False)

    @classmethod
    def open(cls, path: PathLike) -> MetricsTask:
        """Open an unpacked folder, or unpack a tar file to a temporary one."""
        folder = Folder(path)
        if not is_metrics_task(folder.path):
            raise DataError(f"{path}: neither {SYSTEM_FILE} nor {SEGMENT_FILE} is in it")
        return cls(name=bare_name(path), folder=folder)

    @cached_property
    def lps(self) -> tuple[str, ...]:
        """The language pairs that people judged."""
        return tuple(sorted({*self._system_rows, *self._segment_rows}))

    @cached_property
    def with_outputs(self) -> tuple[str, ...]:
        """The language pairs whose system outputs are there."""
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
        """Every system's output with source and reference."""
        outputs = self._outputs(lp)
        if not outputs:
            raise DataError(f"{self.folder.origin}: no system outputs for {lp}")
        prefix = next(iter(outputs.values())).name.split(".")[0]
        references = [self._text(("references",), f"{prefix}-{lp.replace('-', '')}-ref.*")]
        sources = self._text(("sources", "source"), f"{prefix}-{lp.replace('-', '')}-src.*")
        return TestSet.read(list(outputs.values()), references, sources, names=list(outputs))

    def system_scores(self, lp: str) -> SystemScores:
        """The human scores of systems; one row each, duplicates left out and counted."""
        scores: dict[str, float] = {}
        left_out: Counter[str] = Counter()
        for where, (_, human, system) in _rows(self._system_rows, lp):
            score = read_score(human, where)
            if score != score:
                left_out[NO_SCORE] += 1
            elif scores.get(system, score) != score:
                raise DataError(f"{where}: another score of system {system!r}")
            elif system in scores:
                left_out[DUPLICATE] += 1
            else:
                scores[system] = score
        return SystemScores(name=self.name, lp=lp, scores=scores, left_out=dict(left_out))

    def judgments(self, lp: str, testset: TestSet | None = None) -> JudgmentSet:
        """The human scores of segments, with their texts.

        Rows without text (unknown system, segment out of range) are left out and counted.
        """
        collector = Collector(find=find_in(testset or self.testset(lp)))
        for where, cells in _rows(self._segment_rows, lp):
            _, _, system, item, score = cells
            record = {"score": score, "item": item, "system": system, "lp": lp}
            collector.add(record, where)
        return collector.finish(self.name, lp)

    def count_segments(self, lp: str) -> int:
        """How many human scores of segments there are."""
        return len(self._segment_rows.get(lp, ()))

    @cached_property
    def _system_rows(self) -> dict[str, list[tuple[str, list[str]]]]:
        return _read_rows(self.folder.path / SYSTEM_FILE, ("LP", "HUMAN", "SYSTEM"))

    @cached_property
    def _segment_rows(self) -> dict[str, list[tuple[str, list[str]]]]:
        return _read_rows(self.folder.path / SEGMENT_FILE, ("LP", "DATA", "SYSTEM", "SID", "HUMAN"))

    def _outputs(self, lp: str) -> dict[str, Path]:
        """System name to file; packed outputs are unpacked when they are first needed."""
        found = _output_files(self.folder.path, lp)
        if not found and not self._packed:
            packed = sorted(p for p in self.folder.path.glob("system-outputs*") if is_tar(p))
            self._packed.extend(Folder(path) for path in packed)
        return found or {k: v for f in self._packed for k, v in _output_files(f.top, lp).items()}

    def _text(self, folders: tuple[str, ...], pattern: str) -> Path:
        files = sorted(f for name in folders for f in (self.folder.path / name).glob(pattern))
        if len(files) != 1:
            what = "no file" if not files else f"{len(files)} files"
            raise DataError(f"{self.folder.origin}: {what} {folders[0]}/{pattern}; expected one")
        return files[0]


def is_metrics_task(folder: Path) -> bool:
    """Whether a folder is laid out as a metrics task."""
    return (folder / SEGMENT_FILE).is_file() or (folder / SYSTEM_FILE).is_file()


def read_submission(path: PathLike) -> dict[tuple[str, str], ScoreMatrix]:
    """Scores a metric submitted to the task, by (metric, language pair).

    Tab-separated `METRIC LP TESTSET SYSTEM [SEGMENT] SCORE`, anything after it ignored; whether
    there is a segment says the file's name, `seg` or `sys`. A score of a system is a matrix with
    one column.
    """
    parts = Path(path).name.split(".")
    level = next((part for part in parts if part in ("seg", "sys")), "")
    if not level:
        raise DataError(
            f"{path}: its name says neither seg nor sys, the level of its scores: call it "
            "METRIC.seg.score or METRIC.sys.score"
        )
    width = 6 if level == "seg" else 5
    cells: dict[tuple[str, str], dict[tuple[str, str], float]] = {}
    for number, line in enumerate(read_lines(path), start=1):
        row = line.split("\t")
        where = f"{path}, line {number}"
        if len(row) < width:
            raise DataError(f"{where}: {len(row)} fields, expected at least {width}")
        metric, lp, _, system, *rest = row
        key = (system, rest[0] if level == "seg" else "all")
        group = cells.setdefault((metric, lp), {})
        if key in group:
            raise DataError(f"{where}: a second score of {' '.join(key)} by {metric}")
        group[key] = read_score(rest[width - 5], where)
    return {key: ScoreMatrix.of_cells(key[0], group) for key, group in cells.items()}


def _output_files(root: Path, lp: str) -> dict[str, Path]:
    found: dict[str, Path] = {}
    for file in sorted(root.glob(f"**/{lp}/*.{lp}*")):
        _, _, rest = file.name.partition(".")
        name = rest.removesuffix(".gz").removesuffix(f".{lp}")
        if file.is_file() and name != rest and "metric" not in file.parts[-3]:
            found[name] = file
    return found


def _read_rows(path: Path, header: tuple[str, ...]) -> dict[str, list[tuple[str, list[str]]]]:
    """Rows (where, cells) of a blank-separated file by language pair; none where it is absent."""
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

LANGUAGES = {  # by their English names and three letters, of which WMT has some of its own
    **{code: language for code, language in OTHER_CODES.items() if len(code) == 3},
    "basque": "eu", "bulgarian": "bg", "chinese": "zh", "czech": "cs", "dutch": "nl",
    "english": "en", "esn": "es", "finnish": "fi", "french": "fr", "german": "de",
    "haitian creole": "ht", "hat": "ht", "hindi": "hi", "hungarian": "hu", "italian": "it",
    "japanese": "ja", "latvian": "lv", "polish": "pl", "portuguese": "pt", "ptb": "pt",
    "romanian": "ro", "russian": "ru", "spanish": "es", "turkish": "tr", "urdu": "ur",
}  # fmt: skip

_RANK = re.compile(r"system(\d+)rank")


def read_rankings(
    path: PathLike, texts: Mapping[str, Mapping[str, ItemTexts] | TestSet] | None = None
) -> dict[str, RankingSet]:
    """Read a ranking CSV to one set for each language pair.

    `texts` gives the texts of a language pair, a test set or items by segment number; pairs without
    get sets without texts, which serve for scores of systems and agreement of judges. System names
    lose the test set and language pair around them (`newstest2016.uedin.4321.cs-en`).
    """
    found: dict[str, list[PairJudgment]] = {}
    left_out: dict[str, Counter[str]] = {}
    for where, row in read_table(path, delimiter=","):
        record = lower_names(row)
        lp = "-".join(_language_code(record, key, where) for key in ("srclang", "trglang"))
        ranked, missing = _read_ranks(record, where)
        found.setdefault(lp, []).extend(_pairs(record, ranked, where))
        left_out.setdefault(lp, Counter())[NOT_RANKED] += missing
    name = Path(path).name.split(".csv")[0]
    sets = {}
    for lp, comparisons in found.items():
        given = (texts or {}).get(lp)
        items = texts_of(given, comparisons) if isinstance(given, TestSet) else given
        sets[lp] = gather(comparisons, items, name=name, lp=lp, left_out=+left_out[lp])
    return sets


def _read_ranks(record: Mapping[str, str], where: str) -> tuple[list[tuple[str, int]], int]:
    """(system, rank) for every system of a row, and how many had no rank."""
    ranked, missing = [], 0
    for key in record:
        match = _RANK.fullmatch(key)
        if match is None:
            continue
        system, rank = record.get(f"system{match[1]}id", "").strip(), record[key].strip()
        if not system or rank in ("", "-1"):
            missing += 1
        elif not rank.isdecimal():
            raise DataError(f"{where}: rank {rank!r} of {system!r} is not a whole number")
        else:
            ranked.append((plain_system(system), int(rank)))
    if not ranked and not missing:
        raise DataError(f"{where}: no column system1Id with system1rank; found {', '.join(record)}")
    return ranked, missing


def _pairs(
    record: Mapping[str, str], ranked: list[tuple[str, int]], where: str
) -> Iterator[PairJudgment]:
    item = text_of(record, ("srcindex", "segmentid"))
    if not item:
        raise DataError(f"{where}: neither srcIndex nor segmentId says which segment it is")
    judge = text_of(record, ANNOTATOR_NAMES)
    for (left, a), (right, b) in combinations(ranked, 2):
        yield PairJudgment(item, left, right, 0.5 if a == b else float(a < b), judge)


def plain_system(name: str) -> str:
    """A system's name without the test set before and the language pair behind it.

    >>> plain_system("newstest2016.uedin-nmt.4321.cs-en"), plain_system("cu-bojar")
    ('uedin-nmt.4321', 'cu-bojar')
    """
    return re.sub(r"^[\w-]*test[\w-]*\.|\.[a-z]{2,3}-[a-z]{2,3}(\.txt)?$", "", name)


def _language_code(record: Mapping[str, str], key: str, where: str) -> str:
    language = record.get(key, "").strip().lower()
    if not language:
        raise DataError(f"{where}: no {key}; is this a WMT ranking file?")
    return LANGUAGES.get(language, language)
