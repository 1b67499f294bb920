"""A folder of datasets with human judgments; each dataset is recognized by its layout.

<set>/<lp>[.<part>].jsonl[.gz]          scored translations (direct assessment, QE, MQM)
<set>/<part>.<lp>.jsonl[.gz]            the same
<set>/<lp>.texts.jsonl[.gz]             system outputs, with
<set>/<lp>.judgements.tsv[.gz]          human comparisons of them, and optionally
<set>/<lp>.systems.tsv[.gz]             human scores of the systems
<set>/<part>.jsonl[.gz]                 sentence pairs
<set> or <set>.tar.xz                   a published metrics task, or an mt-metrics-eval folder
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Literal

from tertium.core.atomic import PathLike
from tertium.core.errors import DataError, UnknownNameError, UsageError
from tertium.data.formats.metrics_task import MetricsTask, is_metrics_task
from tertium.data.formats.mt_metrics_eval import find_eval_sets
from tertium.data.formats.preferences import read_preferences
from tertium.data.human_data import HumanData, read_system_scores
from tertium.data.judgments import JudgmentSet, read_judgments
from tertium.data.rankings import RankingSet
from tertium.data.tar_archive import is_tar, strip_tar_suffix
from tertium.data.text_files import LANGUAGE_PAIR
from tertium.text.language_codes import normalize_language_pair

DATA_VARIABLE = "TERTIUM_DATA"
MAX_DEPTH = 4  # of datasets below the folder: modern/dev/mqm/ted21

Kind = Literal["scores", "rankings", "sentence pairs", "metrics task", "mt-metrics-eval"]
FileKey = tuple[str, str]  # (language pair, part)

_SUFFIX = re.compile(r"\.(jsonl|tsv)(\.gz)?$")


@dataclass(frozen=True, kw_only=True)
class Dataset:
    """One dataset of a folder, with its files by language pair and part."""

    name: str
    kind: Kind
    path: Path
    files: Mapping[FileKey, Path] = field(default_factory=dict)

    @property
    def lps(self) -> tuple[str, ...]:
        """The language pairs in the file names."""
        return tuple(sorted({lp for lp, _ in self.files if lp}))

    def parts(self, lp: str) -> dict[str, Path]:
        """Return the files of a language pair by part, such as train, dev and test."""
        parts = {part: path for (pair, part), path in sorted(self.files.items()) if pair == lp}
        if not parts:
            raise UnknownNameError(f"language pair of {self.name}", lp, self.lps)
        return parts

    def file(self, lp: str, part: str = "") -> Path:
        """Return the file of a language pair and part; the only part may be omitted."""
        parts = self.parts(lp)
        if part not in parts and (part or len(parts) > 1):
            raise UnknownNameError(f"part of {self.name} {lp}", part, parts)
        return parts[part] if part in parts else next(iter(parts.values()))


@dataclass(frozen=True)
class DatasetFolder:
    """A folder of datasets with human judgments.

    `DatasetFolder.open()` opens the folder in the environment variable `TERTIUM_DATA`. Datasets are
    named by their path: `folder.judgments("da/wmt17", "cs-en")`, `folder.rankings("rankings/wmt12",
    "de-en")`.
    """

    root: Path

    @classmethod
    def open(cls, path: PathLike | None = None) -> DatasetFolder:
        """Open a folder, by default the one in `TERTIUM_DATA`."""
        folder = path or os.environ.get(DATA_VARIABLE)
        if not folder:
            raise UsageError(f"no data folder: give --data DIR or set {DATA_VARIABLE}")
        if not Path(folder).is_dir():
            raise DataError(f"{folder}: no such data folder (--data or {DATA_VARIABLE})")
        return cls(Path(folder))

    @cached_property
    def sets(self) -> tuple[Dataset, ...]:
        """All datasets by name; an unpacked folder has priority over its tar file."""
        entries = sorted(_find_sets(self.root, self.root, MAX_DEPTH), key=lambda e: e.path.is_dir())
        by_name = {entry.name: entry for entry in entries}
        return tuple(by_name[name] for name in sorted(by_name))

    def find(self, name: str, kind: Kind | None = None) -> Dataset:
        """Return the dataset with a name (and kind)."""
        by_name = {entry.name: entry for entry in self.sets if kind in (None, entry.kind)}
        if name not in by_name:
            raise UnknownNameError(f"set of {kind}" if kind else "set", name, by_name)
        return by_name[name]

    def judgments(
        self, name: str, lp: str, part: str = "", *, score: str | None = None
    ) -> JudgmentSet:
        """Read the scored translations of one language pair; `score` may name the score column."""
        file = self.find(name, "scores").file(lp, part)
        return read_judgments(file, name=name, lp=lp, score=score)

    def rankings(self, name: str, lp: str) -> RankingSet:
        """Read the comparisons of one language pair, with texts and scores of systems."""
        parts = self.find(name, "rankings").parts(lp)
        rankings = read_preferences(parts["judgements"], name=name, lp=lp)
        if "systems" not in parts:
            return rankings
        return replace(rankings, system_scores=self.system_scores(name, lp).system_scores)

    def system_scores(self, name: str, lp: str) -> HumanData:
        """Read the human scores of systems that were published with rankings or a metrics task."""
        entry = self.find(name)
        if entry.kind == "metrics task":
            return self.metrics_task(name).system_scores(lp)
        table, *_ = read_system_scores(entry.file(lp, "systems"))
        return replace(table, name=name, lp=lp)

    def metrics_task(self, name: str) -> MetricsTask:
        """Open a published metrics task, which is unpacked if necessary; tasks are cached."""
        if name not in self._tasks:
            self._tasks[name] = MetricsTask.open(self.find(name, "metrics task").path)
        return self._tasks[name]

    @cached_property
    def _tasks(self) -> dict[str, MetricsTask]:
        return {}


def _find_sets(root: Path, folder: Path, depth: int) -> Iterator[Dataset]:
    """Yield the datasets in a folder and its subfolders, but not inside published layouts."""
    for path in folder.iterdir():
        entry = _recognize(root, path)
        if entry is not None:
            yield entry
        is_published = entry is not None and not entry.files
        if depth > 1 and path.is_dir() and not is_published:
            yield from _find_sets(root, path, depth - 1)


def _recognize(root: Path, path: Path) -> Dataset | None:
    """Return the dataset at a path by its layout, or None."""
    name = path.relative_to(root).as_posix()
    if is_tar(path) and path.parent == root:  # only top-level tar files are tasks
        return Dataset(name=strip_tar_suffix(path), kind="metrics task", path=path)
    if not path.is_dir():
        return None
    if is_metrics_task(path):
        return Dataset(name=name, kind="metrics task", path=path)
    if find_eval_sets(path):
        return Dataset(name=name, kind="mt-metrics-eval", path=path)
    keys = {_file_key(f): f for f in sorted(path.iterdir()) if _SUFFIX.search(f.name)}
    # a table without a language pair is metadata
    files = {key: f for key, f in keys.items() if key[0] or ".tsv" not in f.suffixes}
    kind: Kind = "scores" if any(lp for lp, _ in files) else "sentence pairs"
    if any(part == "judgements" for _, part in files):
        kind = "rankings"
    return Dataset(name=name, kind=kind, path=path, files=files) if files else None


def _file_key(file: Path) -> FileKey:
    """Return language pair and part: `ro-en.dev.jsonl.gz` is (`ro-en`, `dev`)."""
    words = _SUFFIX.sub("", file.name).split(".")
    lp = next((word for word in words if LANGUAGE_PAIR.fullmatch(word)), "")
    return normalize_language_pair(lp), ".".join(word for word in words if word != lp)
