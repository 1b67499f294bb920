"""Score a corpus of any size: the public function behind `tertium corpus`."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from operator import itemgetter
from pathlib import Path
from typing import Any, Literal

from tertium.arrays import is_integer_at_least
from tertium.core.result import Column, Result, Table
from tertium.corpus import scoring
from tertium.corpus.batches import duplicate_column_error, infer_columns
from tertium.corpus.engines import AT_LEAST_ONE, WorkerPool
from tertium.corpus.readers import CorpusPart, plan_parts, sample_records, schema_of
from tertium.corpus.run_state import BAD, RunState
from tertium.corpus.score_conditions import ScoreCondition, parse_condition
from tertium.corpus.shards import ShardFormat, shard_writer
from tertium.corpus.storage import SourceFile, find_files, hash_content, is_remote, would_match
from tertium.corpus.tally import MetricTally, Tally
from tertium.corpus.worker import CorpusJob
from tertium.data.records import SPANS_SUFFIX, WARNINGS_SUFFIX
from tertium.errors import BudgetError, DataError, TertiumError, UsageError, short_repr
from tertium.evaluation.metric_choice import load_metrics_for
from tertium.execution import MEGABYTE, Runtime, current_runtime, progress_task, runtime
from tertium.frames import is_frame
from tertium.metrics.base.loading import load_metric, load_metrics
from tertium.metrics.base.metric import NO_SCORE, Metric
from tertium.metrics.judge.metric import Judge
from tertium.metrics.judge.usage import Usage, check_set, share_usage
from tertium.segment import Segment
from tertium.version import __version__

Engine = Literal["local", "ray"]
PART_ROWS = 100_000
LONGEST = 100_000
DONE = "all done before"  # in place of the speed
VECTOR_CACHE_BYTES = 32 * MEGABYTE  # for a metric that encodes a text twice


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
            Column("lowest", lambda row: row[1].low if row[1].count else math.nan, decimals),
            Column("highest", lambda row: row[1].high if row[1].count else math.nan, decimals),
        ]
        return [Table(columns, [*self.metrics.items()], notes=self._notes())]

    def _notes(self) -> list[str]:
        bad = sum(self.bad.values())
        speed = self.rows_per_second
        notes = [
            f"{self.rows:,} rows, {self.kept:,} kept, {bad:,} invalid; {self.parts:,} "
            f"part{'s' * (self.parts != 1)} in {self.output}; "
            + (f"{speed:,.{0 if speed >= 10 else 1}f} rows per second" if self.scored else DONE)
        ]
        notes += [f"invalid: {count:,} {reason}" for reason, count in sorted(self.bad.items())]
        if bad:
            notes.append(f"invalid rows with their reasons: {self.output}/{BAD}")
        for spec, tally in self.metrics.items():
            counts = [(NO_SCORE, tally.missing)] if tally.missing else []
            counts += sorted(tally.warnings.items())
            notes += [f"{spec}: {count:,} {kind}" for kind, count in counts]
            if tally.errors:
                kinds = ", ".join(f"{kind} {count:,}" for kind, count in tally.errors.most_common())
                notes.append(f"{spec}: rows with errors: {kinds}")
            notes.append(tally.signature_text())
        return notes

    def records(self) -> dict[str, Any]:
        """Return the summary as JSON-compatible values."""
        return {
            "rows": self.rows,
            "kept": self.kept,
            "bad": dict(self.bad),
            "metrics": {
                spec: {
                    "mean": tally.mean,
                    "lowest": tally.low if tally.count else None,
                    "highest": tally.high if tally.count else None,
                    "scored": tally.count,
                    "warnings": dict(sorted(tally.warnings.items())),
                    "signature": tally.signature_text(),
                    **({"usage": dict(tally.usage)} if tally.usage else {}),
                    **({"errors": dict(tally.errors.most_common())} if tally.errors else {}),
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
    keep: str | Sequence[str] = (),
    resume: bool = False,
    strict: bool = False,
    fields: Sequence[str] | None = None,
    shards: ShardFormat = "parquet",
    longest: int = LONGEST,
    part_rows: int = PART_ROWS,
    spans: bool = False,
    workers: int | None = None,
    address: str | None = None,
    cpus: float = 1,
    gpus: float = 0,
) -> CorpusSummary:
    """Score every row of files of any size and write the rows with their scores.

    Parameters
    ----------
    inputs
        Files, folders or globs of Parquet, JSONL, TSV or CSV, also compressed (.gz, .zst) and URLs
        that pyarrow supports.
    metrics
        Metric specs such as "chrf", or metrics.
    output
        Folder for the shards. Rows keep their order and columns; each metric adds a column for
        its score and one for its warnings.
    engine, workers, address, cpus, gpus
        "local" processes, or "ray" actors on the cluster at `address`, with CPUs and GPUs each.
    keep
        Write only rows whose scores meet this condition, such as "chrf >= 50", or all of several.
        A row without a score does not meet it.
    resume
        Continue an earlier call; finished parts are not scored again.
    strict
        Raise an error at the first bad row instead of writing it to `output/_bad`.
    fields
        Column names of a TSV or CSV without a header.
    shards, part_rows
        Output format, and rows per shard.
    longest
        Maximum number of characters of a text; a row with a longer one is bad.
    spans
        Also write the errors that metrics mark, as JSON in a column `METRIC.spans`.
    """
    start_time = time.perf_counter()
    pool = WorkerPool(engine=engine, workers=workers, address=address, cpus=cpus, gpus=gpus)
    _check_choices(fields, longest=longest, part_rows=part_rows)
    paths, folder = _list_paths(inputs), _check_path(output)
    files = find_files(paths)
    _check_output(folder, files, paths, shard_writer(shards).suffix)
    if fields and not any(file.kind in ("tsv", "csv") for file in files):
        raise UsageError("--fields is only for .tsv or .csv files without a header: remove it")
    loaded = load_metrics(metrics)
    scoring.check_metrics(loaded)
    specs = [metric.spec for metric in loaded]
    conditions = [parse_condition(text, specs) for text in _list_conditions(keep)]
    state = RunState(folder)
    state.check_free(resume=resume)
    if engine == "ray" and current_runtime().judge.budget is not None:
        raise UsageError(
            "--budget needs --engine local: machines of a cluster cannot share a budget; one "
            "machine can send just as many requests (--concurrency)"
        )
    with share_usage() as usage:
        with progress_task("inspecting the corpus"):
            parts = plan_parts(files, part_rows)
            sample = list(sample_records(parts, tuple(fields) if fields else None))
            records = [record for _, record in sample]
            loaded = load_metrics_for(scoring.reference_texts(records, longest), metrics)
            job = _make_job(
                loaded, folder, parts, sample, conditions, fields, shards, longest, strict, spans
            )
        manifest = _describe(job, loaded, files, part_rows)
        with state.lock():
            state.begin(manifest)
            done = _find_done(state, shard_writer(shards).suffix, strict=strict)
            pending = [part for part in parts if part.name not in done]
            tallies = {**done, **dict(_score_parts(pool, job, pending, usage))}
            total = Tally()
            for part in parts:
                total.merge(tallies[part.name])
            _withhold_means(loaded, total)
            summary = CorpusSummary(
                rows=total.rows,
                kept=total.kept,
                bad=dict(total.bad),
                metrics=total.metrics,
                scored=total.rows - sum(tally.rows for tally in done.values()),
                seconds=time.perf_counter() - start_time,
                parts=len(parts),
                engine=pool.engine,
                workers=pool.size,
                output=folder,
            )
            state.summarize(summary.records())
    return summary


def _check_choices(fields: Sequence[str] | None, **counts: int) -> None:
    for name, value in counts.items():
        if not is_integer_at_least(value, 1):
            raise UsageError(f"{name}={short_repr(value)}: {AT_LEAST_ONE}")
    if isinstance(fields, str):
        raise UsageError(f"fields={short_repr(fields)}: expected a list of names")


def _list_conditions(keep: str | Sequence[str]) -> list[str]:
    texts = [keep] if isinstance(keep, str) else keep
    if not isinstance(texts, Sequence) or not all(isinstance(text, str) for text in texts):
        raise UsageError(
            f"keep={short_repr(keep)}: expected a text such as 'chrf >= 50', or a list"
        )
    return [*texts]


def _list_paths(inputs: str | os.PathLike[str] | Iterable[str | os.PathLike[str]]) -> list[str]:
    if is_frame(inputs) or not isinstance(inputs, str | os.PathLike | Iterable):
        raise UsageError(
            f"expected files, folders or globs, got {short_repr(inputs)}: "
            "use metric.predict to score a frame"
        )
    paths = [inputs] if isinstance(inputs, str | os.PathLike) else list(inputs)
    if not paths:
        raise DataError("no input files given")
    return [_check_path(path) for path in paths]


def _check_path(path: str | os.PathLike[str]) -> str:
    if not isinstance(path, str | os.PathLike):
        raise UsageError(f"expected a path as str or Path, got {short_repr(path)}")
    return os.fspath(path)


def _find_done(state: RunState, suffix: str, *, strict: bool) -> dict[str, Tally]:
    """Return the counts of the finished parts; refuse bad rows with `strict`."""
    done = dict(state.find_done(suffix))
    for name, tally in done.items():
        if strict and tally.bad:
            raise DataError(
                f"{state.folder}/{BAD}/{name}.jsonl: the earlier run rejected rows, which --strict "
                "does not allow: fix them and use another folder, or remove --strict"
            )
    return done


def _score_parts(
    pool: WorkerPool, job: CorpusJob, parts: Sequence[CorpusPart], usage: Usage
) -> Iterator[tuple[str, Tally]]:
    """Score parts; yield the counts of each as it completes; raise the first error.

    If the budget of a judge is reached, other parts are tried nevertheless: requests in progress
    are paid, and their answers must not be lost.
    """
    budget_error = ""
    rows = [part.rows for part in parts]
    total = None if None in rows else sum(count or 0 for count in rows)
    with progress_task("rows", total=total) as advance:
        for outcome in pool.run(job, parts, advance):
            if outcome.usage is not None:
                usage.add(outcome.usage)
            if outcome.tally is not None:
                yield outcome.part, outcome.tally
            elif outcome.exceeds_budget:
                budget_error = budget_error or outcome.error
            else:
                raise TertiumError(outcome.error)
    if budget_error:
        raise BudgetError(f"{budget_error} (with --resume)")


def _withhold_means(metrics: Sequence[Metric], total: Tally) -> None:
    """Remove the mean of each judge that has too few valid answers."""
    for metric in metrics:
        tally = total.metrics.get(metric.spec)
        if tally is None or not isinstance(metric, Judge):
            continue
        rows = tally.count + tally.missing
        if not check_set(metric.spec, metric.min_coverage, tally.count, rows):
            tally.total = math.nan


def _check_output(
    output: str, files: Sequence[SourceFile], inputs: Sequence[str], suffix: str
) -> None:
    """Refuse an output folder among the inputs: the next run would read its own shards."""
    if not is_remote(output) and Path(output).is_file():
        raise UsageError(f"{output} is a file; expected a folder for the shards")
    folder = os.path.realpath(output)
    for file in () if is_remote(output) else files:
        if not is_remote(file.path) and os.path.realpath(file.path).startswith(folder + os.sep):
            raise UsageError(f"{output} contains the input {file.path}: give another folder")
    if match := next((path for path in inputs if would_match(path, output, suffix)), None):
        raise UsageError(
            f"{output} is inside {match}, so --resume would read its shards as input: use another "
            "folder, or a name that starts with _"
        )


def _make_job(
    metrics: Sequence[Metric],
    output: str,
    parts: Sequence[CorpusPart],
    sample: Sequence[tuple[str, Mapping[str, Any]]],
    keep: Sequence[ScoreCondition],
    fields: Sequence[str] | None,
    shards: str,
    longest: int,
    strict: bool,
    spans: bool,
) -> CorpusJob:
    """Collect the settings of the workers, and test them on one row."""
    marking = scoring.marking_metrics(metrics) if spans else []
    if spans and not marking:
        listed = ", ".join(metric.spec for metric in metrics)
        raise UsageError(f"--spans: {listed} cannot mark errors; add a metric that can: checks")
    fields = tuple(fields) if fields else None
    where = parts[0].file.path
    records = [record for _, record in sample]
    example = scoring.find_example(records, metrics, longest, where)
    scoring.check_languages(records, metrics, example, longest)
    for metric in metrics:  # test encoders themselves, but pay for answers of a judge only once
        with runtime(cache=current_runtime().cache and not metric.required_embeddings([example])):
            scoring.score_segments([metric], [example], with_spans=spans)
    jsonl_columns = None
    if shard_writer(shards).has_columns and any(part.file.kind == "jsonl" for part in parts):
        jsonl_columns = infer_columns(sample)
    schema = schema_of(parts[0].file, fields)
    names = schema.names if schema else list(dict.fromkeys(key for r in records for key in r))
    span_columns = [metric.spec + SPANS_SUFFIX for metric in marking]
    specs = [metric.spec for metric in metrics]
    _check_names(names, specs, span_columns)
    return CorpusJob(
        output=output,
        metrics=tuple(metric.spec for metric in metrics),
        model_ids=tuple(metric.model_ids for metric in metrics),
        example=example,
        shards=shards,
        runtime=_limit_vector_cache(current_runtime(), metrics, example),
        keep=tuple(keep),
        fields=fields,
        columns=jsonl_columns,
        longest=longest,
        strict=strict,
        spans=tuple(metric.spec for metric in marking),
    )


def _check_names(columns: Sequence[str], specs: Sequence[str], span_columns: Sequence[str]) -> None:
    """Refuse columns that scores would overwrite."""
    score_columns = [*specs, *(spec + WARNINGS_SUFFIX for spec in specs), *span_columns]
    if duplicates := [name for name in score_columns if name in columns]:
        raise duplicate_column_error(duplicates[0])


def _limit_vector_cache(settings: Runtime, metrics: Sequence[Metric], example: Segment) -> Runtime:
    """Cache few vectors in memory: most texts occur once, and one metric encodes them once."""
    if len(metrics) > 1:
        return settings
    limit = VECTOR_CACHE_BYTES if len(metrics[0].required_embeddings([example])) > 1 else 0
    return replace(settings, memory=min(settings.memory, limit))


def _describe(
    job: CorpusJob, metrics: Sequence[Metric], files: Sequence[SourceFile], part_rows: int
) -> dict[str, Any]:
    """Return the manifest of a run: every setting that changes a shard."""
    return {
        "version": __version__,
        "metrics": {metric.spec: metric.signature([job.example]) for metric in metrics},
        "keep": [condition.text for condition in job.keep],
        "fields": list(job.fields or ()),
        "shards": job.shards,
        "longest": job.longest,
        "part_rows": part_rows,
        "spans": list(job.spans),
        # to detect changes, also of the same size and time
        "inputs": {f.path: [f.size, f.modified, hash_content(f.path)] for f in files},
        "shard names": {f.path: f.name for f in files},  # the same path may get another name
    }
