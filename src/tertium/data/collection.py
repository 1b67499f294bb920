"""What lies in a folder of human judgments: found by its layout, and read on request.

<set>/<lp>[.<part>].jsonl[.gz]          judged translations (direct assessment, QE, MQM)
<set>/<part>.<lp>.jsonl[.gz]            the same
<set>/<lp>.texts.jsonl[.gz]             system outputs, with ...
<set>/<lp>.judgements.tsv[.gz]          ... human comparisons of them, and maybe ...
<set>/<lp>.systems.tsv[.gz]             ... human scores of the systems
<set>/<part>.jsonl[.gz]                 sentence pairs
<set> or <set>.tar.xz                   a metrics task as published, or mt-metrics-eval's layout
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Literal

from tertium.data.archive import bare_name, is_tar
from tertium.data.formats import LANGUAGE_PAIR, PathLike, pair_in, read_jsonl, read_records
from tertium.data.judgments import JudgmentSet, read_judgments
from tertium.data.mtme import eval_sets
from tertium.data.preferences import read_preferences
from tertium.data.rankings import ItemTexts, RankingSet
from tertium.data.records import (
    ITEM_NAMES,
    fold_names,
    lower_names,
    read_score,
    references_from,
    source_from,
    text_of,
)
from tertium.data.wmt import MetricsTask, SystemScores, is_metrics_task
from tertium.errors import DataError, UnknownNameError, UsageError
from tertium.frames import printed
from tertium.segment import check_texts

VARIABLE = "TERTIUM_DATA"
DEPTH = 4  # of sets below the collection: modern/dev/mqm/ted21

Kind = Literal["scores", "rankings", "sentence pairs", "metrics task", "mt-metrics-eval"]
FileKey = tuple[str, str]  # (language pair, part)

_ENDING = re.compile(r"\.(jsonl|tsv)(\.gz)?$")

PURPOSES: Mapping[str, str] = {
    "da/wmt15": "choosing (Mathur 2019), training (Shimanaka 2018, Pado 2009)",
    "da/wmt16": "training (Mathur 2019), testing (Shimanaka 2018, Pado 2009)",
    "da/wmt17": "testing at segment level (Mathur 2019, Song 2021)",
    "da/multi30k": "testing (Song 2021)",
    "qe/wmt20": "testing without reference (Song 2021)",
    "rankings/wmt08": "testing preferences (Pado 2009)",
    "rankings/wmt11": "training (Guzman 2015)",
    "rankings/wmt12": "testing (Guzman 2015)",
    "rankings/wmt13": "choosing (Guzman 2015), training on preferences",
    "rankings/wmt15": "training on preferences; shares segments with da/wmt15",
    "rankings/wmt16": "training on preferences; shares segments with da/wmt16",
    "rankings/wmt16it": "testing at system level (Mathur 2019)",
    "modern/dev/da/wmt22": "choosing: direct assessment, with documents",
    "modern/dev/da/wmt22liv": "choosing: direct assessment of Livonian",
    "modern/dev/esa/wmt24": "choosing: error span annotation, with spans",
    "modern/dev/mqm/qe22dev": "choosing: expert scores without reference, with spans",
    "modern/dev/mqm/ted21": "choosing: expert scores of talks, with spans",
    "mqm": "training and analysis: modern systems, expert scores",
    "sts": "similarity and entailment of sentences",
    "wmt17-metrics-task": "testing at system level (Mathur 2019)",
    "wmt18-metrics-task": "system level, and unlabeled text",
}


@dataclass(frozen=True, kw_only=True)
class DataSet:
    """One set of a collection: where its files are, by language pair and part."""

    name: str
    kind: Kind
    path: Path
    files: Mapping[FileKey, Path] = field(default_factory=dict)

    @property
    def lps(self) -> tuple[str, ...]:
        """The language pairs, where file names tell."""
        return tuple(sorted({lp for lp, _ in self.files if lp}))

    @property
    def parts(self) -> tuple[str, ...]:
        """Train, dev, test and the like; empty where the set has none."""
        return tuple(sorted({part for _, part in self.files if part}))

    @property
    def purpose(self) -> str:
        """What experiments use it for."""
        parts = {"modern/train/": "training", "modern/dev/": "choosing"}
        by_place = next((what for at, what in parts.items() if self.name.startswith(at)), "")
        return PURPOSES.get(self.name, by_place)

    def file(self, lp: str, part: str = "") -> Path:
        """The file of one language pair and part; with one part only it need not be named."""
        if (lp, part) in self.files:
            return self.files[lp, part]
        matching = {p: path for (pair, p), path in self.files.items() if pair == lp}
        if not matching:
            raise UnknownNameError(f"language pair of {self.name}", lp, self.lps)
        if part or len(matching) > 1:
            raise UnknownNameError(f"part of {self.name} {lp}", part, matching)
        return next(iter(matching.values()))


@dataclass(frozen=True)
class Collection:
    """A folder of human judgments.

    `Collection.at()` is the one `TERTIUM_DATA` names. Sets are named by their path in it:
    `collection.judgments("da/wmt17", "cs-en")`, `collection.rankings("rankings/wmt12", "de-en")`.
    """

    root: Path

    @classmethod
    def at(cls, path: PathLike | None = None) -> Collection:
        """The collection in a folder, by default in the one `TERTIUM_DATA` names."""
        where = path or os.environ.get(VARIABLE)
        if not where:
            raise UsageError(f"no data: say where with --data DIR or set {VARIABLE}")
        if not Path(where).is_dir():
            named = "" if path else f", which {VARIABLE} names"
            raise DataError(f"{where}{named}: no such folder of data")
        return cls(Path(where))

    @cached_property
    def sets(self) -> tuple[DataSet, ...]:
        """Every set, by name; an unpacked folder goes before its tar file."""
        found = sorted(_find_sets(self.root, self.root, DEPTH), key=lambda e: e.path.is_dir())
        named = {entry.name: entry for entry in found}
        return tuple(named[name] for name in sorted(named))

    def find(self, name: str, kind: Kind | None = None) -> DataSet:
        """The set of a name (and kind)."""
        named = {entry.name: entry for entry in self.sets if kind in (None, entry.kind)}
        if name not in named:
            raise UnknownNameError(f"set of {kind}" if kind else "set", name, named)
        return named[name]

    def judgments(
        self, name: str, lp: str, part: str = "", *, score: str | None = None
    ) -> JudgmentSet:
        """Scored translations of one language pair; `score` may name the column of scores."""
        file = self.find(name, "scores").file(lp, part)
        return read_judgments(file, name=name, lp=lp, score=score)

    def rankings(self, name: str, lp: str) -> RankingSet:
        """Comparisons of one language pair, with texts."""
        entry = self.find(name, "rankings")
        texts = read_texts(entry.file(lp, "texts"))
        return read_preferences(entry.file(lp, "judgements"), texts=texts, name=name, lp=lp)

    def system_scores(self, name: str, lp: str) -> SystemScores:
        """Human scores of the systems that a ranking set or a metrics task came with."""
        entry = self.find(name)
        if entry.kind == "metrics task":
            return self.metrics_task(name).system_scores(lp)
        found = read_system_scores(entry.file(lp, "systems"))
        return SystemScores(name=name, lp=lp, scores=next(iter(found.values()), {}))

    def pairs(self, name: str, part: str) -> list[SentencePair]:
        """Sentence pairs with their similarity."""
        return read_pairs(self.find(name, "sentence pairs").file("", part))

    def metrics_task(self, name: str) -> MetricsTask:
        """A metrics task as published, unpacked if need be; each is opened once."""
        if name not in self._tasks:
            self._tasks[name] = MetricsTask.open(self.find(name, "metrics task").path)
        return self._tasks[name]

    @cached_property
    def _tasks(self) -> dict[str, MetricsTask]:
        return {}


def read_texts(path: PathLike) -> dict[str, ItemTexts]:
    """System outputs by item: a JSONL file of `segment, source, reference, outputs`.

    Segment, source and reference go by all the names that they have in other files.
    """
    texts: dict[str, ItemTexts] = {}
    for where, given in read_jsonl(path):
        record = fold_names(given)
        outputs, item = record.get("outputs"), text_of(record, ITEM_NAMES)
        if not isinstance(outputs, dict) or not outputs or not item:
            raise DataError(f"{where}: segment and outputs (system -> text) are needed")
        if item in texts:
            raise DataError(f"{where}: segment {item!r} occurs a second time")
        check_texts([*outputs.values()], where, "text")
        named = {printed(system): text for system, text in outputs.items()}
        texts[item] = ItemTexts(named, source_from(record, where), references_from(record, where))
    return texts


def read_system_scores(path: PathLike) -> dict[str, dict[str, float]]:
    """Human scores of systems by language pair: a table of `system, score`, and maybe `lp`.

    A score may be missing or marked so, as in other files, and is NaN then.
    """
    pairs: dict[str, dict[str, float]] = {}
    rows = [(where, lower_names(record)) for where, record in read_records(path)]
    scored = any("score" in row for _, row in rows)
    for where, row in rows:
        scores = pairs.setdefault(text_of(row, ("lp",)) or pair_in(path), {})
        system, score = text_of(row, ("system",)), read_score(row.get("score"), where)
        if not system or not scored:
            raise DataError(f"{where}: expected a system and its score, got {row}")
        if system in scores:
            raise DataError(f"{where}: a second score of system {system!r}")
        scores[system] = score
    return pairs


def _find_sets(root: Path, folder: Path, depth: int) -> Iterator[DataSet]:
    """The sets in a folder and the folders below; a metrics task holds no other set."""
    for path in folder.iterdir():
        entry = _data_set(root, path)
        if entry is not None:
            yield entry
        published = entry is not None and entry.kind in ("metrics task", "mt-metrics-eval")
        if depth > 1 and path.is_dir() and not published:
            yield from _find_sets(root, path, depth - 1)


def _data_set(root: Path, path: Path) -> DataSet | None:
    """What a path is, by its layout; None where it is no set."""
    relative = path.relative_to(root)
    if is_tar(path):  # a packed task lies at the top; below it other things are packed
        if path.parent != root:
            return None
        return DataSet(name=bare_name(path), kind="metrics task", path=path)
    if not path.is_dir():
        return None
    name = relative.as_posix()
    if is_metrics_task(path):
        return DataSet(name=name, kind="metrics task", path=path)
    if eval_sets(path):
        return DataSet(name=name, kind="mt-metrics-eval", path=path)
    named = {_file_key(f): f for f in sorted(path.iterdir()) if _ENDING.search(f.name)}
    # a table without language pair is a list about the data
    files = {key: f for key, f in named.items() if key[0] or ".tsv" not in f.suffixes}
    if not files:
        return None
    return DataSet(name=name, kind=_kind(files), path=path, files=files)


def _kind(files: Mapping[FileKey, Path]) -> Kind:
    if any(part == "judgements" for _, part in files):
        return "rankings"
    return "scores" if any(lp for lp, _ in files) else "sentence pairs"


def _file_key(file: Path) -> FileKey:
    """Language pair and part of a file name: `ro-en.dev.jsonl.gz` is (`ro-en`, `dev`)."""
    words = _ENDING.sub("", file.name).split(".")
    lp = next((word for word in words if LANGUAGE_PAIR.fullmatch(word)), "")
    return lp, ".".join(word for word in words if word != lp)


@dataclass(frozen=True, slots=True)
class SentencePair:
    """Two sentences, how alike people find them, and what follows from what where they said.

    `label` is ENTAILMENT, NEUTRAL or CONTRADICTION, empty where nobody was asked.
    """

    left: str
    right: str
    score: float
    label: str = ""


def read_pairs(path: PathLike) -> list[SentencePair]:
    """Read a JSONL, TSV or CSV file of `a, b, score` and optionally `label`."""
    pairs = []
    for where, record in read_records(path):
        left, right = record.get("a"), record.get("b")
        score = read_score(record.get("score"), where)
        if not isinstance(left, str) or not isinstance(right, str) or math.isnan(score):
            raise DataError(f"{where}: a, b and score are needed; found {', '.join(record)}")
        pairs.append(SentencePair(left, right, score, str(record.get("label") or "")))
    return pairs
