"""Counts of parts, which add up to those of the corpus, and the state of a run next to its shards.

`_manifest.json` describes the run: inputs, metrics with their signatures, and every setting that
changes a shard. `_done/PART.json` holds the counts of a part and is written after its shard. A part
without it is redone from the beginning, so each row is written exactly once even if workers are
killed. `_bad/PART.jsonl` holds rejected rows, `_lock` keeps other processes out. Names start with
an underscore so that readers of the folder skip them.
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from operator import itemgetter
from pathlib import Path
from typing import Any

import numpy as np

from tertium.core.atomic import PARTIAL_PATTERN, lock_file
from tertium.core.errors import ModelError, UsageError, short_repr
from tertium.core.fields import read_dataclass
from tertium.core.result import Column, Result, Table, field_values
from tertium.core.segment import Segment
from tertium.core.spans import Span
from tertium.corpus.corpus_paths import CorpusPath
from tertium.data.record_files import to_json
from tertium.evaluation.rows import RowScores
from tertium.metrics.base.loading import load_metric
from tertium.metrics.base.metric import NO_SCORE
from tertium.metrics.base.scorer import format_signature
from tertium.metrics.base.text_warnings import TRUNCATED_TEXT
from tertium.version import __version__

ALL_DONE = "all done before"  # in place of the speed
BAD = "_bad"  # the folder of bad rows
SHARD_SUFFIX = ".parquet"


@dataclass(kw_only=True)
class MetricTally:
    """Statistics of one metric: count, sum, range, warnings, errors and signature."""

    count: int = 0
    total: float = 0.0
    extremes: tuple[float, ...] = ()
    warnings: dict[str, int] = field(default_factory=dict)
    signature: str = ""
    usage: dict[str, float] = field(default_factory=dict)  # tokens and cost of a judge's answers
    errors: dict[str, int] = field(default_factory=dict)  # rows by kind of marked error

    @classmethod
    def from_scores(cls, scores: RowScores, segments: Sequence[Segment]) -> MetricTally:
        """Return the statistics of some rows."""
        valid = (scores.values[np.isfinite(scores.values)] + 0.0).tolist()  # no -0.0
        examples = {len(segment.references): segment for segment in segments}
        return cls(
            count=len(valid),
            total=math.fsum(valid),
            extremes=(min(valid), max(valid)) if valid else (),
            warnings={kind: int(mask.sum()) for kind, mask in scores.flags.items()},
            signature=format_signature(scores.metric, [*examples.values()]) if examples else "",
            usage=dict(scores.usage),
        )

    def count_errors(self, marked: Sequence[Sequence[Span]]) -> None:
        """Count the rows with each kind of marked error."""
        kinds = [{span.category or span.severity for span in spans} for spans in marked]
        self.errors = dict(Counter(kind for row in kinds for kind in row))

    @property
    def mean(self) -> float:
        return self.total / self.count if self.count else math.nan

    @property
    def low(self) -> float | None:
        return min(self.extremes, default=None)

    @property
    def high(self) -> float | None:
        return max(self.extremes, default=None)

    @property
    def missing(self) -> int:
        """Number of rows without a score."""
        return self.warnings.get(NO_SCORE, 0)

    def signature_text(self) -> str:
        """Return the signature of all scored rows."""
        truncated = self.warnings.get(TRUNCATED_TEXT, 0)
        return re.sub(r"\|trunc:\d+", f"|trunc:{truncated}", self.signature)

    def records(self) -> dict[str, Any]:
        """Return the values for readers, for JSON."""
        optional = {"usage": self.usage, "errors": dict(Counter(self.errors).most_common())}
        return {
            "mean": self.mean,
            "lowest": self.low,
            "highest": self.high,
            "scored": self.count,
            "warnings": dict(sorted(self.warnings.items())),
            "signature": self.signature_text(),
            **{name: counts for name, counts in optional.items() if counts},
        }


@dataclass(kw_only=True)
class Tally:
    """Counts of a part or a run: rows read, kept, and rejected by reason; statistics by metric."""

    rows: int = 0
    kept: int = 0
    bad: dict[str, int] = field(default_factory=dict)
    metrics: dict[str, MetricTally] = field(default_factory=dict)

    def add(self, other: Tally) -> None:
        """Add the counts of other rows."""
        vars(self).update(vars(merge(self, other)))


def merge(first: Any, second: Any) -> Any:
    """Merge values of two parts: counts and totals are added, extremes and signatures joined."""
    if isinstance(first, Tally | MetricTally):
        return type(first)(**merge(vars(first), vars(second)))
    if isinstance(first, dict):
        merged = {**first, **second}
        for name in first.keys() & second.keys():
            merged[name] = merge(first[name], second[name])
        return merged
    if isinstance(first, str):
        return merge_signatures(first, second)
    if isinstance(first, tuple):
        extremes = first + second
        return (min(extremes), max(extremes)) if extremes else ()
    return first + second


def reason_kind(reason: str) -> str:
    """Return the kind of a reason: the text before its details.

    >>> reason_kind("not UTF-8 (byte 0xff at position 3)")
    'not UTF-8'
    """
    return re.split(r"[(:,;]", reason)[0].strip()


def merge_signatures(first: str, second: str) -> str:
    """Merge signatures: a varying number of references becomes `var`, other values are joined.

    >>> merge_signatures("chrF|nrefs:1|lang:de", "chrF|nrefs:2|lang:de,fr")
    'chrF|nrefs:var|lang:de,fr'
    """
    if first == second or not second:
        return first
    values: dict[str, str] = {}
    for part in "|".join(filter(None, (first, second))).split("|"):
        name, _, value = part.partition(":")
        previous = values.setdefault(name, value)
        if value != previous:
            joined = ",".join(sorted({*previous.split(","), *value.split(",")}))
            values[name] = "var" if name == "nrefs" else joined
    return "|".join(f"{name}:{value}" if value else name for name, value in values.items())


@dataclass(frozen=True)
class CorpusSummary(Result):
    """Result of `score_corpus`: row counts, statistics of each metric, and speed.

    Attributes
    ----------
    rows, kept
        Number of rows read and written.
    bad
        Number of rejected rows by reason.
    metrics
        Count, mean, range, warnings, marked errors and signature by metric spec.
    scored, seconds
        Rows and time of this call; less than `rows` if it resumed an earlier run.
    output
        The folder of the shards.
    """

    rows: int
    kept: int
    bad: Mapping[str, int]
    metrics: Mapping[str, MetricTally]
    scored: int
    seconds: float
    parts: int
    engine: str
    workers: int
    output: str

    @property
    def rows_per_second(self) -> float:
        return self.scored / self.seconds if self.seconds else 0.0

    def tables(self) -> list[Table]:
        """Return one row per metric with mean and range; notes have the counts."""

        def decimals(row: tuple[str, MetricTally]) -> int:
            return load_metric(row[0]).decimals

        columns = [
            Column("metric", itemgetter(0)),
            Column("mean", lambda row: row[1].mean, decimals),
            Column("lowest", lambda row: row[1].low, decimals),
            Column("highest", lambda row: row[1].high, decimals),
        ]
        return [Table(columns, [*self.metrics.items()], notes=self._notes())]

    def _notes(self) -> list[str]:
        bad = sum(self.bad.values())
        speed = self.rows_per_second
        notes = [
            f"{self.rows:,} rows, {self.kept:,} kept, {bad:,} invalid; {self.parts:,} "
            f"part{'s' * (self.parts != 1)} in {self.output}; "
            + (f"{speed:,.{0 if speed >= 10 else 1}f} rows per second" if self.scored else ALL_DONE)
        ]
        notes += [f"invalid: {count:,} {reason}" for reason, count in sorted(self.bad.items())]
        if bad:
            notes.append(f"invalid rows with their reasons: {self.output}/{BAD}")
        for spec, tally in self.metrics.items():
            notes += [f"{spec}: {count:,} {kind}" for kind, count in sorted(tally.warnings.items())]
            if tally.errors:
                errors = Counter(tally.errors).most_common()
                kinds = ", ".join(f"{kind} {count:,}" for kind, count in errors)
                notes.append(f"{spec}: rows with errors: {kinds}")
            notes.append(tally.signature_text())
        return notes

    def records(self) -> dict[str, Any]:
        """Return the summary as JSON-compatible values."""
        return {
            **field_values(self, "scored", "seconds", "output"),
            "metrics": {spec: tally.records() for spec, tally in self.metrics.items()},
            "rows_this_run": self.scored,
            "seconds": self.seconds,
            "rows_per_second": self.rows_per_second,
            "version": __version__,
        }


MANIFEST = "_manifest.json"
DONE_FOLDER = "_done"
SUMMARY = "_summary.json"
LOCK = "_lock"
MAX_LISTED = 3  # differences listed in an error


@dataclass
class DonePart:
    """The record of a finished part: size and checksum of its shard, and its counts."""

    shard: str
    tally: Tally


@dataclass(frozen=True)
class RunState:
    """The state files of a run in its output folder."""

    folder: CorpusPath

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Lock the folder against other processes; a remote folder is not locked."""
        if not self.folder.is_local:
            yield
            return
        with lock_file(Path(self.folder.path, LOCK)) as is_ours:
            if not is_ours:
                raise UsageError(
                    f"another process is writing to {self.folder}: wait for it, "
                    "or give another folder"
                )
            yield

    def check_free(self, *, resume: bool) -> None:
        """Refuse a folder that holds other files, or a run that is not to be resumed."""
        if self.folder.state.is_file:
            raise UsageError(f"{self.folder} is a file; expected a folder for the shards")
        outputs = self._list_outputs()
        if outputs and not self._read(MANIFEST):
            raise UsageError(
                f"{self.folder} is not empty ({outputs[0]}) and holds no run of tertium: "
                "give another folder"
            )
        if outputs and not resume:
            raise UsageError(
                f"{self.folder} already holds a run: continue it with --resume, "
                "or give another folder"
            )

    def begin(self, manifest: Mapping[str, Any]) -> None:
        """Start a run, or resume the one in the folder.

        An existing run must have the same settings: otherwise nothing is changed and the error
        lists the differences. A run that has not written anything yet is replaced.
        """
        if not self._list_outputs():
            self._write(MANIFEST, manifest)
            return
        existing = self._read(MANIFEST)
        differences = [
            f"{key} was {short_repr(existing.get(key), 80)} and is now "
            f"{short_repr(manifest.get(key), 80)}"
            for key in {**existing, **manifest}
            if existing.get(key) != manifest.get(key)
        ]
        if differences:
            listed = "; ".join(differences[:MAX_LISTED])
            raise UsageError(
                f"{self.folder} holds a run with other settings: {listed}; "
                "use the same settings, or give another folder"
            )

    def find_done(self) -> dict[str, Tally]:
        """Return the counts of finished parts; one whose shard or record has changed is not."""
        names = set(self._list_outputs())
        finished = {}
        for name in sorted(names):
            part = name.removeprefix(f"{DONE_FOLDER}/").removesuffix(".json")
            if part == name or part + SHARD_SUFFIX not in names:
                continue
            try:
                record = read_dataclass(DonePart, self._read(name), name)
            except ModelError:
                continue
            if (self.folder / (part + SHARD_SUFFIX)).fingerprint() == record.shard:
                finished[part] = record.tally
        return finished

    def finish(self, part: str, tally: Tally, shard: CorpusPath) -> None:
        """Record that a part is done; its shard is complete."""
        self._write(f"{DONE_FOLDER}/{part}.json", asdict(DonePart(shard.fingerprint(), tally)))

    def summarize(self, summary: Mapping[str, Any]) -> None:
        """Write the summary of the run, and remove partial files of killed workers."""
        self._write(SUMMARY, summary)
        if self.folder.is_local:
            for file in Path(self.folder.path).rglob(PARTIAL_PATTERN):
                file.unlink(missing_ok=True)

    def _list_outputs(self) -> list[str]:
        return [name for name in self.folder.list_names() if name not in (MANIFEST, LOCK)]

    def _read(self, name: str) -> dict[str, Any]:
        """Return a JSON object; an empty one if the file is missing or damaged."""
        try:
            value = json.loads((self.folder / name).read())
        except (FileNotFoundError, ValueError, RecursionError):
            value = None
        return value if isinstance(value, dict) else {}

    def _write(self, name: str, value: Mapping[str, Any]) -> None:
        with (self.folder / name).write() as stream:
            stream.write(to_json(value).encode("utf-8"))
