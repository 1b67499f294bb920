"""Score a corpus of any size: the public function behind `tertium corpus`."""

from __future__ import annotations

import os
import time
from collections import deque
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Any, Literal

from tertium.arrays import is_whole
from tertium.corpus.blocks import infer_schema, refuse_column
from tertium.corpus.engines import AT_LEAST_ONE, Team
from tertium.corpus.keeping import parse_keep
from tertium.corpus.ledger import BAD, RunLedger
from tertium.corpus.places import SourceFile, find_files, is_remote, would_find
from tertium.corpus.reading import CorpusPart, plan_parts, sample_records, schema_of
from tertium.corpus.scoring import (
    check_languages,
    check_metrics,
    find_example,
    score_segments,
)
from tertium.corpus.tally import MetricTally, Tally
from tertium.corpus.work import CorpusJob, check_columns
from tertium.corpus.writing import ShardFormat, ShardWriter, writer_of
from tertium.data.records import WARNINGS
from tertium.errors import DataError, TertiumError, UsageError, one_line
from tertium.frames import is_frame
from tertium.metrics.base.loading import load_metrics
from tertium.metrics.base.metric import Metric
from tertium.runtime import MEGABYTE, Runtime, current_runtime, runtime, task
from tertium.segment import Segment
from tertium.version import __version__

Engine = Literal["local", "ray"]
PART_ROWS = 100_000
LONGEST = 100_000
HELD_VECTORS = 32 * MEGABYTE  # for a metric that asks of a text twice


@dataclass(frozen=True)
class CorpusSummary:
    """What came of a corpus: rows by their fate, scores of each metric, and how fast it went.

    `rows` were read, `kept` written, `bad` put aside by reason; `seconds` and `scored` are of this
    run, which may have gone on where another ended.
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

    @property
    def rows_per_second(self) -> float:
        return self.scored / self.seconds if self.seconds else 0.0

    def record(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {
            "rows": self.rows,
            "kept": self.kept,
            "bad": dict(self.bad),
            "metrics": {
                spec: {
                    "mean": tally.mean,
                    "deciles": tally.deciles(),
                    "lowest": tally.low if tally.count else None,
                    "highest": tally.high if tally.count else None,
                    "scored": tally.count,
                    "warnings": dict(sorted(tally.warnings.items())),
                    "signature": tally.signature_text(),
                }
                for spec, tally in self.metrics.items()
            },
            "parts": self.parts,
            "engine": self.engine,
            "workers": self.workers,
            "rows_this_run": self.scored,
            "seconds": self.seconds,
            "rows_per_second": self.rows_per_second,
            "version": __version__,
        }


def score_corpus(
    inputs: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
    metrics: str | Metric | Sequence[str | Metric],
    output: str | os.PathLike[str],
    *,
    engine: Engine = "local",
    keep: str = "",
    resume: bool = False,
    strict: bool = False,
    fields: Sequence[str] | None = None,
    shards: ShardFormat = "parquet",
    longest: int = LONGEST,
    part_rows: int = PART_ROWS,
    workers: int | None = None,
    address: str | None = None,
    cpus: float = 1,
    gpus: float = 0,
) -> CorpusSummary:
    """Score every row of some files, write them with their scores, and say what came of it.

    `inputs` are files, folders or globs of Parquet, JSONL, TSV and CSV, also packed (.gz, .zst) and
    behind addresses that pyarrow reads; `output` is a folder. Rows are written in their order with
    a column for each metric and one for its warnings, as `shards` says, a shard for each file or
    `part_rows` of it. `keep` says which (`keeping`). With `resume`, what an earlier call finished
    is left as it is, unless its shard is gone or cut. Rows that cannot be scored are put aside with
    the reason, or with `strict` the first is an error. `workers` are processes, or with the engine
    "ray" actors, each with so many `cpus` and `gpus` (parts of one, too), of the cluster at
    `address`.
    """
    begun = time.perf_counter()
    team = Team(engine=engine, workers=workers, address=address, cpus=cpus, gpus=gpus)
    _check_choices(keep, fields, longest=longest, part_rows=part_rows)
    paths, folder = _list_paths(inputs), _check_path(output)
    files = find_files(paths)
    _check_apart(folder, files, paths, writer_of(shards).suffix)
    if fields and not any(file.kind in ("tsv", "csv") for file in files):
        raise UsageError("--fields goes with .tsv or .csv files without a header: leave it out")
    loaded = load_metrics(metrics)
    check_metrics(loaded)
    ledger = RunLedger(folder)
    ledger.check_free(resume=resume)
    with task("looking at the corpus"):
        parts = plan_parts(files, part_rows)
        job = _make_job(loaded, folder, parts, keep, fields, shards, longest, strict)
    manifest = _describe(job, loaded, files, part_rows)
    with ledger.lock():
        ledger.begin(manifest)
        done = _find_done(ledger, writer_of(shards).suffix, strict=strict)
        left = [part for part in parts if part.name not in done]
        whole = _merge(parts, done, ledger, _count(team, job, left))
        summary = CorpusSummary(
            rows=whole.rows,
            kept=whole.kept,
            bad=dict(whole.bad),
            metrics=whole.metrics,
            scored=whole.rows - sum(done.values()),
            seconds=time.perf_counter() - begun,
            parts=len(parts),
            engine=team.engine,
            workers=team.size,
        )
        ledger.summarize(summary.record())
    return summary


def _check_choices(keep: str, fields: Sequence[str] | None, **counts: int) -> None:
    """Refuse choices of a wrong kind, such as a caller in Python may give."""
    for name, value in counts.items():
        if not is_whole(value, 1):
            raise UsageError(f"{name}={one_line(value)}: {AT_LEAST_ONE}")
    if not isinstance(keep, str):
        raise UsageError(f"keep={one_line(keep)}: expected a text such as 'chrf >= 50'")
    if isinstance(fields, str):
        raise UsageError(f"fields={one_line(fields)}: expected a list of names")


def _list_paths(inputs: str | os.PathLike[str] | Iterable[str | os.PathLike[str]]) -> list[str]:
    """One path or many, as a list; what is no path is refused."""
    if is_frame(inputs) or not isinstance(inputs, str | os.PathLike | Iterable):
        raise UsageError(
            f"a corpus is read from files, folders or globs, not from {one_line(inputs)}: "
            "metric.predict scores a frame"
        )
    given = [inputs] if isinstance(inputs, str | os.PathLike) else list(inputs)
    if not given:
        raise DataError("no files given to score")
    return [_check_path(path) for path in given]


def _check_path(given: str | os.PathLike[str]) -> str:
    if not isinstance(given, str | os.PathLike):
        raise UsageError(f"expected a path, a text or a Path, not {one_line(given)}")
    return os.fspath(given)


def _find_done(ledger: RunLedger, suffix: str, *, strict: bool) -> dict[str, int]:
    """The parts that are done, with their rows.

    To go on strictly with parts of which rows were put aside before is refused.
    """
    done: dict[str, int] = {}
    for name, tally in ledger.find_done(suffix):
        if strict and tally.bad:
            raise DataError(
                f"{ledger.folder}/{BAD}/{name}.jsonl: rows were put aside before, and --strict "
                "takes none: mend them and begin in another folder, or leave out --strict"
            )
        done[name] = tally.rows
    return done


def _count(team: Team, job: CorpusJob, parts: Sequence[CorpusPart]) -> Iterator[tuple[str, Tally]]:
    """Do parts, and what was counted in each, as they come; the first error ends it."""
    rows = [part.rows for part in parts]
    known = None if None in rows else sum(count or 0 for count in rows)
    with task("rows", total=known) as advance:
        for outcome in team.deal(job, parts, advance):
            if outcome.tally is None:
                raise TertiumError(outcome.error)
            yield outcome.part, outcome.tally


def _merge(
    parts: Sequence[CorpusPart],
    done: Container[str],
    ledger: RunLedger,
    counted: Iterable[tuple[str, Tally]],
) -> Tally:
    """What was counted in all parts, added in their order, whatever the one in which they came.

    A tally holds a histogram for each metric, and there may be a hundred thousand parts: none is
    held but those that came before their turn.
    """
    whole, early = Tally(), dict[str, Tally]()
    names = deque(part.name for part in parts)
    for arrived in chain([{}], ({name: tally} for name, tally in counted)):
        early |= arrived
        while names and (names[0] in done or names[0] in early):
            name = names.popleft()
            whole.merge(ledger.read_tally(name) if name in done else early.pop(name))
    return whole


def _check_apart(
    output: str, files: Sequence[SourceFile], inputs: Sequence[str], suffix: str
) -> None:
    """Refuse to write where the corpus is read: the next run would read its own shards."""
    if not is_remote(output) and Path(output).is_file():
        raise UsageError(f"{output} is a file, and shards are written into a folder: give another")
    place = os.path.realpath(output)
    for file in () if is_remote(output) else files:
        if not is_remote(file.path) and os.path.realpath(file.path).startswith(place + os.sep):
            raise UsageError(f"{output} holds {file.path}, which is read here: give another folder")
    if home := next((given for given in inputs if would_find(given, output, suffix)), None):
        raise UsageError(
            f"{output} lies in {home}, and --resume would read its shards with the corpus: give a "
            "folder elsewhere, or one whose name begins with _"
        )


def _make_job(
    metrics: Sequence[Metric],
    output: str,
    parts: Sequence[CorpusPart],
    keep: str,
    fields: Sequence[str] | None,
    shards: str,
    longest: int,
    strict: bool,
) -> CorpusJob:
    """Everything that workers need, tried on one row before any begins."""
    writer = writer_of(shards)
    fields = tuple(fields) if fields else None
    records = list(sample_records(parts, fields))
    where = parts[0].file.path
    example = find_example(records, metrics, longest, where)
    check_languages(records, metrics, example, longest)
    with runtime(cache=False):
        score_segments(metrics, [example])
    lines = any(part.file.kind == "jsonl" for part in parts)
    schema = None
    if lines and writer.has_columns:
        schema = infer_schema(records).serialize().to_pybytes()
    columns = schema_of(parts[0].file, fields)
    known = columns.names if columns else list(dict.fromkeys(key for r in records for key in r))
    _check_names(known, [metric.spec for metric in metrics], keep, writer, where)
    return CorpusJob(
        output=output,
        metrics=tuple(metric.spec for metric in metrics),
        learned=tuple(metric.learned for metric in metrics),
        example=example,
        shards=shards,
        runtime=_thrifty(current_runtime(), metrics, example),
        keep=keep,
        fields=fields,
        schema=schema,
        longest=longest,
        strict=strict,
    )


def _check_names(
    known: Sequence[str], specs: Sequence[str], keep: str, writer: type[ShardWriter], where: str
) -> None:
    """Refuse columns of rows that scores would replace, or that shards or `keep` cannot name."""
    more = [*specs, *(spec + WARNINGS for spec in specs)]
    if taken := [name for name in more if name in known]:
        raise refuse_column(taken[0])
    writer.check_header(known)
    if keep:
        check_columns(parse_keep(keep).names, [*known, *more], specs, where)


def _thrifty(settings: Runtime, metrics: Sequence[Metric], example: Segment) -> Runtime:
    """Settings that hold few vectors in memory: most texts come once, and one metric asks once."""
    if len(metrics) > 1:
        return settings
    held = HELD_VECTORS if len(metrics[0].asks([example])) > 1 else 0
    return replace(settings, memory=min(settings.memory, held))


def _describe(
    job: CorpusJob, metrics: Sequence[Metric], files: Sequence[SourceFile], part_rows: int
) -> dict[str, Any]:
    """What makes a run: whatever changes a shard."""
    return {
        "version": __version__,
        "metrics": {metric.spec: metric.signature([job.example]) for metric in metrics},
        "keep": job.keep,
        "fields": list(job.fields or ()),
        "shards": job.shards,
        "longest": job.longest,
        "part_rows": part_rows,
        "inputs": {f.path: [f.size, f.modified] for f in files},  # whether they are the same
        "shard names": {f.path: f.name for f in files},  # one may be found from elsewhere
    }
