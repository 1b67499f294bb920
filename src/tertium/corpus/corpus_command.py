"""The command `corpus`: score files of any size, on this machine or on a Ray cluster."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Annotated, ClassVar, Literal

from tertium.core.errors import UsageError
from tertium.core.options import Compute, Option, Specs
from tertium.corpus.corpus_run import RowOptions, score_corpus
from tertium.corpus.engines import WorkerPool
from tertium.corpus.summary import CorpusSummary
from tertium.evaluation.metric_choice import MetricOptions
from tertium.files.text_inputs import LanguageOptions
from tertium.metrics.base.judge_run import JudgeConnection
from tertium.metrics.base.metric import Metric


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
    shards
        Format of the output files.
    part_rows
        Rows per output file.
    """

    group: ClassVar[str] = "Output"
    output: Annotated[str, Option("-o", "--output", metavar="FOLDER")]
    keep: Annotated[tuple[str, ...], Option(metavar="CONDITION")] = ()
    resume: bool = False
    spans: bool = False
    shards: Literal["parquet", "jsonl"] = "parquet"
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
        output.output,
        rows=rows,
        keep=output.keep,
        resume=output.resume,
        spans=output.spans,
        shards=output.shards,
        part_rows=output.part_rows,
        workers=workers.pool(),
    )


def _load_metrics(options: MetricOptions, languages: LanguageOptions) -> Sequence[str | Metric]:
    """Return the metrics, by their specs if their tokenizer depends on the language of the rows."""
    source, target = languages.source_language or "", languages.target_language or ""
    metrics = options.load_for(options.metrics, source, target)
    if target:
        return metrics
    pairs = zip(metrics, options.metrics, strict=True)
    return [spec if hasattr(metric, "tokenize") else metric for metric, spec in pairs]
