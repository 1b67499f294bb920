"""Score a corpus of any size, on this machine or on a Ray cluster."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, ClassVar

from tertium.core.arrays import is_integer_at_least
from tertium.core.errors import (
    DataError,
    UsageError,
    short_repr,
)
from tertium.core.options import Compute, Option, Specs
from tertium.core.registry import METRICS
from tertium.core.result import field_values, is_frame
from tertium.core.runtime import MEGABYTE, current_runtime, progress_task, runtime
from tertium.core.segment import Segment
from tertium.corpus.corpus_paths import find_files, open_path
from tertium.corpus.engines import AT_LEAST_ONE, WorkerPool
from tertium.corpus.readers import (
    CorpusPart,
    find_example,
    plan_parts,
    sample_rows,
)
from tertium.corpus.summary import BAD, CorpusSummary, RunState, Tally
from tertium.corpus.worker import CorpusJob, PartWorker, parse_condition
from tertium.evaluation.metric_choice import MetricOptions, load_metrics_for
from tertium.evaluation.rows import Row, score_rows
from tertium.files.text_inputs import LanguageOptions
from tertium.metrics.base.capabilities import ReadsEmbeddings, can_mark_errors, min_coverage
from tertium.metrics.base.judge_run import (
    BudgetError,
    JudgeConnection,
    current_run,
    has_enough_answers,
)
from tertium.metrics.base.loading import load_metrics
from tertium.metrics.base.metric import Metric
from tertium.metrics.base.scorer import format_signature
from tertium.models.trained_model import TrainedModel
from tertium.version import __version__

PART_ROWS = 100_000
VECTOR_CACHE_BYTES = 32 * MEGABYTE


@dataclass(frozen=True, kw_only=True)
class RowOptions:
    """How rows are read.

    Attributes
    ----------
    fields
        Names of all columns of a TSV or CSV file without a header.
    strict
        Stop at the first invalid row.
    max_length
        Characters of a text; a row with a longer one is invalid.
    """

    group: ClassVar[str] = "Input"
    fields: Annotated[str | None, Option(metavar="A,B,...")] = None
    strict: bool = False
    max_length: int = 100_000


def score_corpus(
    inputs: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
    metrics: str | Metric | Sequence[str | Metric],
    output: str | os.PathLike[str],
    *,
    rows: RowOptions | None = None,
    keep: str | Sequence[str] = (),
    resume: bool = False,
    spans: bool = False,
    part_rows: int = PART_ROWS,
    workers: int | WorkerPool | None = None,
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
    rows
        How rows are read: the columns of a TSV or CSV without a header, the longest text, and
        whether a bad row is an error.
    keep
        Write only rows whose scores meet this condition, such as "chrf >= 50", or all of several.
        A row without a score does not meet it.
    resume
        Continue an earlier call; finished parts are not scored again.
    spans
        Also write the errors that metrics mark, as JSON in a column `METRIC.spans`.
    part_rows
        Rows per shard.
    workers
        Number of processes, or a `WorkerPool` of actors on a Ray cluster.
    """
    start_time = time.perf_counter()
    pool = workers if isinstance(workers, WorkerPool) else WorkerPool(workers=workers)
    rows = rows or RowOptions()
    fields = tuple(rows.fields.split(",")) if rows.fields else ()
    keep = [keep] if isinstance(keep, str) else keep
    for name, value in (("max_length", rows.max_length), ("part_rows", part_rows)):
        if not is_integer_at_least(value, 1):
            raise UsageError(f"{name}={short_repr(value)}: {AT_LEAST_ONE}")
    paths = _list_paths(inputs)
    folder = open_path(os.fspath(output))
    files = find_files(paths, folder)
    if fields and not any(file.kind in ("tsv", "csv") for file in files):
        raise UsageError("--fields is only for .tsv or .csv files without a header: remove it")
    loaded = load_metrics(metrics)
    _check_metrics(loaded, spans=spans)
    specs = [metric.spec for metric in loaded]
    conditions = [parse_condition(text, specs) for text in keep]
    state = RunState(folder)
    state.check_free(resume=resume)
    with progress_task("inspecting the corpus"):
        columns, segments = sample_rows(files, fields, rows.max_length)
        references = [text for segment in segments for text in segment.references[:1]]
        loaded = load_metrics_for(references, metrics)
        settings = current_runtime()
        if len(loaded) == 1:  # most texts occur once, and one metric encodes them once
            memory = min(settings.memory, VECTOR_CACHE_BYTES)
            settings = replace(settings, memory=memory)
        example = find_example(segments, loaded)
        try_metrics(loaded, example, spans=spans)
        job = CorpusJob(
            output=folder,
            metrics={metric.spec: tuple(metric.model_ids) for metric in loaded},
            example=example,
            runtime=settings,
            judge=current_run().server,
            keep=tuple(conditions),
            fields=fields,
            columns=columns,
            longest=rows.max_length,
            strict=rows.strict,
            spans=spans,
        )
        parts = plan_parts(files, part_rows)
    manifest = _describe(job, loaded, parts, part_rows)
    with state.lock():
        state.begin(manifest)
        done = state.find_done()
        if rows.strict and any(tally.bad for tally in done.values()):
            raise DataError(
                f"{folder / BAD}: the earlier run rejected rows, which --strict does not "
                "allow: fix them and use another folder, or remove --strict"
            )
        pending = [part for part in parts if part.name not in done]
        tallies = {**done, **dict(_score_parts(pool, PartWorker(job), pending))}
        total = Tally()
        for part in parts:
            total.add(tallies[part.name])
        _withhold_means(loaded, total)
        summary = CorpusSummary(
            **vars(total),
            scored=total.rows - sum(tally.rows for tally in done.values()),
            seconds=time.perf_counter() - start_time,
            parts=len(parts),
            engine=pool.engine,
            workers=pool.size,
            output=str(folder),
        )
        state.summarize(summary.records())
    return summary


def try_metrics(metrics: Sequence[Metric], example: Segment, *, spans: bool) -> None:
    """Score one row, so that a metric that cannot run fails before the work."""
    for metric in metrics:  # test encoders themselves, but pay for answers of a judge only once
        reads_cache = not (
            isinstance(metric, ReadsEmbeddings) and metric.required_embeddings([example])
        )
        with runtime(cache=current_runtime().cache and reads_cache):
            score_rows([Row(segment=example)], [metric])
            if spans and can_mark_errors(metric):
                metric.mark_errors([example])


def _list_paths(inputs: Any) -> list[str]:
    """Return one path or several as texts."""
    is_list = isinstance(inputs, Iterable) and not isinstance(inputs, str | os.PathLike)
    paths = [*inputs] if is_list else [inputs]
    if is_frame(inputs) or not all(isinstance(path, str | os.PathLike) for path in paths):
        raise UsageError(
            f"expected files, folders or globs, got {short_repr(inputs)}: "
            "use metric.predict to score a frame"
        )
    if not paths:
        raise DataError("no input files given")
    return [os.fspath(path) for path in paths]


def _check_metrics(metrics: Sequence[Metric], *, spans: bool) -> None:
    """Refuse metrics that read the whole corpus, and metrics that workers cannot load."""
    for metric in metrics:
        if metric.name not in METRICS:
            raise UsageError(
                f"{metric.name} is not a registered metric, and workers load metrics by name: "
                "register it as a plugin (docs/extending.md), or call metric.score yourself"
            )
        if isinstance(metric, TrainedModel) and not metric.is_saved:
            raise UsageError(
                f"{metric.name} was trained in this process and not saved, and workers load "
                "metrics from files: call metric.save(FOLDER) and use what it returns"
            )
        if metric.reads_corpus:
            raise UsageError(
                f"{metric.spec} needs the whole corpus to score a row, which is not possible in a "
                "stream: read weights from a file (bertscore:idf=true,idf_texts=FILE), use another "
                "metric (bleu for nist, bertscore, sss), or use `tertium score` for one test set"
            )
    if spans and not any(map(can_mark_errors, metrics)):
        listed = ", ".join(metric.spec for metric in metrics)
        raise UsageError(f"--spans: {listed} cannot mark errors; add a metric that can: checks")


def _score_parts(
    pool: WorkerPool, worker: PartWorker, parts: Sequence[CorpusPart]
) -> Iterator[tuple[str, Tally]]:
    """Score parts; yield the counts of each as it completes; raise the first error.

    If the budget of a judge is reached, other parts are tried nevertheless: requests in progress
    are paid, and their answers must not be lost.
    """
    budget_error = None
    rows = [part.rows for part in parts]
    total = None if None in rows else sum(count or 0 for count in rows)
    with progress_task("rows", total=total) as advance:
        for outcome in pool.run(worker, parts, advance):
            if outcome.usage is not None:
                current_run().usage.add(outcome.usage)
            if outcome.tally is not None:
                yield outcome.part, outcome.tally
            elif isinstance(outcome.error, BudgetError):
                budget_error = outcome.error
            elif outcome.error is not None:
                raise outcome.error
    if budget_error is not None:
        raise budget_error


def _withhold_means(metrics: Sequence[Metric], total: Tally) -> None:
    """Remove the mean of each judge that has too few valid answers."""
    for metric in metrics:
        required = min_coverage(metric)
        tally = total.metrics[metric.spec]
        rows = tally.count + tally.missing
        if required is not None and not has_enough_answers(tally.count, rows, required):
            current_run().usage.too_few[metric.spec, required] = (tally.count, rows)
            tally.total = math.nan


def _describe(
    job: CorpusJob, metrics: Sequence[Metric], parts: Sequence[CorpusPart], part_rows: int
) -> dict[str, Any]:
    """Return the manifest of a run: every setting that changes a shard."""
    inputs = {
        f"input {part.file}": f"{part.name}: {part.file.location.fingerprint()}"
        for part in parts
        if part.first == 1
    }
    return {
        "version": __version__,
        "metrics": list(job.metrics),
        "keep": [condition.text for condition in job.keep],
        "fields": list(job.fields),
        "longest": job.longest,
        "part_rows": part_rows,
        "spans": job.spans,
        **{f"metric {metric.spec}": format_signature(metric, [job.example]) for metric in metrics},
        **inputs,
    }


@dataclass(frozen=True, kw_only=True)
class CorpusMetrics(MetricOptions):
    """Which metrics score the rows.

    Attributes
    ----------
    metrics
        Metrics such as chrf or tertium-small; see `tertium list`.
    """

    metrics: Annotated[Specs, Option("-m", "--metrics", "--model")] = field()


@dataclass(frozen=True, kw_only=True)
class Shards:
    """Which files are written.

    Attributes
    ----------
    output
        Output folder.
    keep
        Write only rows with such scores, as in 'chrf >= 50'; several conditions must all be met
        (default: all rows).
    resume
        Continue the run in FOLDER, or start one.
    spans
        Also write the errors that metrics mark, as JSON in columns METRIC.spans.
    part_rows
        Rows per output file.
    """

    group: ClassVar[str] = "Output"
    output: Annotated[str, Option("-o", "--output", metavar="FOLDER")]
    keep: Annotated[tuple[str, ...], Option(metavar="CONDITION")] = ()
    resume: bool = False
    spans: bool = False
    part_rows: int = 100_000


@dataclass(frozen=True, kw_only=True)
class Workers:
    """Where rows are scored.

    Attributes
    ----------
    ray
        Run on Ray: HOST:PORT of a cluster, auto, or local (default: processes of this machine).
    workers
        Processes or Ray actors (default: automatic).
    worker_gpus
        GPUs per actor, such as 0.25.
    """

    group: ClassVar[str] = "Runtime"
    ray: Annotated[str | None, Option(metavar="HOST:PORT")] = None
    workers: int | None = None
    worker_gpus: float = 0

    def pool(self) -> WorkerPool:
        """Return the workers to start."""
        return WorkerPool(
            engine="ray" if self.ray else "local",
            workers=self.workers,
            address=None if self.ray == "local" else self.ray,
            gpus=self.worker_gpus,
        )


def score_corpus_files(
    inputs: Annotated[tuple[str, ...], Option(metavar="INPUT")] = (),
    /,
    *,
    rows: RowOptions,
    metrics: CorpusMetrics,
    languages: LanguageOptions,
    output: Shards,
    workers: Workers,
    compute: Compute,
    judge: JudgeConnection,
) -> CorpusSummary:
    """Score each row or string of large files, and write the rows with their scores.

    Parameters
    ----------
    inputs
        Files, folders or globs of Parquet, JSONL, TSV, CSV, XLIFF, TMX or PO.

    Examples
    --------
    tertium corpus pairs.jsonl.gz -m chrf -o scored
    tertium corpus 'data/*.parquet' -m chrf tertium-small -o scored --keep 'tertium-small >= 0.7'
    tertium corpus data -m chrf -o scored --resume
    tertium corpus data -m tertium-small -o scored --ray auto --workers 8

    Notes
    -----
    Rows keep their order and columns; each metric adds a column of scores and one of warnings.
    --keep compares scores with >=, >, <= or <; for other filters query the output with pyarrow or
    duckdb. Rows that cannot be scored go to OUTPUT/_bad with the reason. Use --resume to continue
    an interrupted run.
    """
    if not inputs:
        raise UsageError("no INPUT: give files before -m, which takes all following words")
    return score_corpus(
        inputs,
        _load_metrics(metrics, languages),
        rows=rows,
        workers=workers.pool(),
        **field_values(output),
    )


def _load_metrics(options: MetricOptions, languages: LanguageOptions) -> Sequence[str | Metric]:
    """Return the metrics, by their specs if their tokenizer depends on the language of the rows."""
    source = languages.source_language or ""
    target = languages.target_language or ""
    metrics = options.load_for(options.metrics, source, target)
    if target:
        return metrics
    pairs = zip(metrics, options.metrics, strict=True)
    return [spec if hasattr(metric, "tokenize") else metric for metric, spec in pairs]
