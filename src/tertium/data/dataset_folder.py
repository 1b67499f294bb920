"""A folder of datasets with human judgments; each dataset is recognized by its layout.

<set>/<lp>[.<part>].jsonl[.gz]          scored translations (direct assessment, QE, MQM)
<set>/<part>.<lp>.jsonl[.gz]            the same
<set>/<lp>.texts.jsonl[.gz]             system outputs, with
<set>/<lp>.judgements.tsv[.gz]          human comparisons of them, and optionally
<set>/<lp>.systems.tsv[.gz]             human scores of the systems
<set> or <set>.tar.xz                   a published metrics task, or an mt-metrics-eval folder

The command `list data` describes the datasets.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from pathlib import Path
from typing import Annotated, Any, Literal

from tertium.core.atomic import PathLike
from tertium.core.errors import DataError, UnknownNameError, UsageError
from tertium.core.options import Option
from tertium.core.result import Column, Listing, Table, format_number
from tertium.core.runtime import track_progress
from tertium.data.formats.metrics_task import MetricsTask, is_metrics_task, is_tar, strip_tar_suffix
from tertium.data.formats.mt_metrics_eval import find_eval_sets
from tertium.data.formats.preferences import read_preferences
from tertium.data.human_data import HumanData, read_system_scores
from tertium.data.judgments import JudgmentSet, read_judgments
from tertium.data.rankings import RankingSet
from tertium.data.text_files import LANGUAGE_PAIR, read_lines
from tertium.text.language_codes import normalize_language_pair

DATA_VARIABLE = "TERTIUM_DATA"
MAX_DEPTH = 4  # of datasets below the folder: modern/dev/mqm/ted21

Kind = Literal["scores", "rankings", "metrics task", "mt-metrics-eval"]
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
        return tuple(sorted({lp for lp, _ in self.files}))

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
        return _open_task(self.find(name, "metrics task").path)


_open_task = cache(MetricsTask.open)


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
    files = {key: file for key, file in keys.items() if key[0]}  # others are metadata
    is_ranking = any(part == "judgements" for _, part in files)
    kind: Kind = "rankings" if is_ranking else "scores"
    return Dataset(name=name, kind=kind, path=path, files=files) if files else None


def _file_key(file: Path) -> FileKey:
    """Return language pair and part: `ro-en.dev.jsonl.gz` is (`ro-en`, `dev`)."""
    words = _SUFFIX.sub("", file.name).split(".")
    lp = next((word for word in words if LANGUAGE_PAIR.fullmatch(word)), "")
    return normalize_language_pair(lp), ".".join(word for word in words if word != lp)


Record = dict[str, Any]


def list_datasets(
    name: Annotated[str | None, Option(metavar="SET")] = None,
    /,
    *,
    data: Annotated[str | None, Option(metavar="DIR", group="Input")] = None,
) -> Listing:
    """List the sets of human judgments in a folder, or describe one of them.

    Parameters
    ----------
    name
        Set to describe (default: list all).
    data
        Folder of human judgments (default: $TERTIUM_DATA).

    Examples
    --------
    tertium list data --data judgments/
    tertium list data rankings/wmt12
    tertium list data da/wmt17 -f json
    """
    folder = DatasetFolder.open(data)
    if not folder.sets:
        raise DataError(
            f"{folder.root}: no sets of human judgments found; see "
            "docs/meta-evaluation/human-judgments.md for the expected files"
        )
    if name:
        entry = folder.find(name.rstrip("/"))
        records = describe_dataset(folder, entry)
        title = f"{entry.name} ({entry.kind})"
    else:
        sets = track_progress(folder.sets, "reading")
        records = [summarize_dataset(entry) for entry in sets]
        title = f"{len(records)} set{'s' * (len(records) != 1)} in {folder.root}"
    columns = [
        _number_column(name) if isinstance(value, int | float) else Column(name)
        for name, value in (records[0] if records else {}).items()
    ]
    if not name:
        columns[2] = Column("lps", lambda record: " ".join(record["lps"]))
    return Listing(table=Table(columns, records, title), json=records)


def summarize_dataset(entry: Dataset) -> Record:
    """Return the language pairs and the number of human judgments of a dataset; NaN if unknown."""
    files = [path for (_, part), path in entry.files.items() if part not in ("texts", "systems")]
    rows = sum(map(_count_rows, files)) or math.nan
    return {"name": entry.name, "kind": entry.kind, "lps": entry.lps, "rows": rows}


def _count_rows(path: Any) -> int:
    headers = 0 if ".jsonl" in path.suffixes else 1
    return sum(bool(line.strip()) for line in read_lines(path)) - headers


def describe_dataset(folder: DatasetFolder, entry: Dataset) -> list[Record]:
    """Return a record for each language pair (and part) of a dataset, which is read in full."""
    if entry.kind == "metrics task":
        return [{"lp": lp} for lp in folder.metrics_task(entry.name).lps]
    if entry.kind == "mt-metrics-eval":
        return [
            {"lp": part.lp, "human scores": ", ".join(part.human_scores)}
            for part in find_eval_sets(entry.path)
        ]
    if entry.kind == "rankings":
        return [describe_judgments(folder.rankings(entry.name, lp)) for lp in entry.lps]
    return [
        describe_judgments(folder.judgments(entry.name, lp, part), part)
        for lp, part in sorted(entry.files)
    ]


def describe_judgments(entry: JudgmentSet | RankingSet, part: str = "") -> Record:
    """Return the statistics of scores or comparisons."""
    systems = len(entry.systems) if any(entry.systems) else math.nan
    record: Record = {"lp": entry.lp, **({"part": part} if part else {}), "rows": len(entry)}
    record |= {"segments": len(entry.items), "systems": systems}
    if isinstance(entry, JudgmentSet):
        record["joint"] = sum("+" in judgment.system for judgment in entry.judgments)
        record["lowest"] = float(entry.scores.min())
        record["mean"] = float(entry.scores.mean())
        record["highest"] = float(entry.scores.max())
    else:
        record["ties"] = entry.ties
    return record | {"left out": sum(entry.excluded_counts.values())}


def _number_column(name: str) -> Column:
    def text(record: Record, _: int) -> str:
        value = record[name]
        return f"{value:,}" if isinstance(value, int) else format_number(value, 3)

    return Column(name, decimals=0, text=text)
