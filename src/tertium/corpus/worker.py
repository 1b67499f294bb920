"""The work on one part: read, score, filter, write its shard, and record that it is done."""

from __future__ import annotations

import ctypes
import json
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tertium.corpus.batches import BadRow
from tertium.corpus.readers import (
    BATCH_ROWS,
    NEURAL_BATCH_ROWS,
    CorpusPart,
    ReadBatch,
    read_batches,
    schema_of,
)
from tertium.corpus.run_state import BAD, RunState
from tertium.corpus.score_conditions import ScoreCondition
from tertium.corpus.scoring import score_segments, select_segments
from tertium.corpus.shards import extend_schema, shard_writer
from tertium.corpus.storage import HashingStream, check_unchanged, join, write_content
from tertium.corpus.tally import Tally, reason_kind
from tertium.data.records import SPANS_SUFFIX, WARNINGS_SUFFIX
from tertium.errors import BudgetError, DataError, ModelError, TertiumError
from tertium.execution import Advance, Runtime, resolve_device, runtime
from tertium.metrics.base.loading import load_metric
from tertium.metrics.base.metric import Metric
from tertium.metrics.judge.usage import Usage, track_usage
from tertium.segment import Segment


@dataclass(frozen=True)
class CorpusJob:
    """The settings that a worker needs; small, and sent to other machines."""

    output: str
    metrics: tuple[str, ...]
    model_ids: tuple[tuple[str, ...], ...]  # for each metric, as loaded by the parent process
    example: Segment
    shards: str
    runtime: Runtime
    keep: tuple[ScoreCondition, ...] = ()
    fields: tuple[str, ...] | None = None
    columns: Mapping[str, str] | None = None  # of JSONL that is written as Parquet
    longest: int = 100_000
    strict: bool = False
    spans: tuple[str, ...] = ()  # metrics whose error spans are written


@dataclass(frozen=True)
class Outcome:
    """The result of a part: its counts, or an error message.

    `usage` are the requests of judges in another process; those of this process are counted as
    they are sent.
    """

    part: str
    tally: Tally | None
    error: str = ""
    exceeds_budget: bool = False
    usage: Usage | None = None


class PartWorker:
    """Loads the metrics once, then turns parts into shards."""

    def __init__(self, job: CorpusJob) -> None:
        self.job = job
        with runtime(**vars(job.runtime)):
            self.metrics: list[Metric] = [load_metric(spec) for spec in job.metrics]
            for metric, expected in zip(self.metrics, job.model_ids, strict=True):
                if metric.model_ids != expected:
                    raise ModelError(
                        f"{metric.spec}: a worker loaded {', '.join(metric.model_ids)}, the run "
                        f"started with {', '.join(expected)}: install the same weights everywhere"
                    )

    def attempt(self, part: CorpusPart, advance: Advance) -> Outcome:
        """Process a part; return user errors as text, which every engine can transport."""
        try:
            with runtime(**vars(self.job.runtime), progress=None):
                return Outcome(part.name, self.process(part, advance))
        except TertiumError as error:
            return Outcome(part.name, None, str(error), isinstance(error, BudgetError))

    def attempt_remotely(self, part: CorpusPart, advance: Advance) -> Outcome:
        """Process a part in a process of its own, which reports the requests it sent."""
        with track_usage() as usage:
            outcome = self.attempt(part, advance)
        if usage.ledger is not None:
            usage.ledger.close()
        return replace(outcome, usage=replace(usage, ledger=None))

    def process(self, part: CorpusPart, advance: Advance) -> Tally:
        """Write the shard of a part and its bad rows, and record that it is done."""
        job, tally = self.job, Tally()
        schema = self._schema(part)
        writer_type = shard_writer(job.shards)
        shard = join(job.output, part.name + writer_type.suffix)
        with ExitStack() as stack:
            bad_path = join(job.output, f"{BAD}/{part.name}.jsonl")
            bad_rows = _BadRowFile(part, bad_path, stack, job.strict)
            stream = HashingStream(stack.enter_context(write_content(shard)))
            writer = stack.enter_context(writer_type(stream, schema))
            is_neural = any(job.model_ids)
            for reading in read_batches(part, job.fields, job.columns, batch_rows(job)):
                self._score_batch(reading, writer.write, bad_rows, tally)
                if is_neural:
                    release_memory()
                advance(len(reading.batch) + len(reading.bad))
            check_unchanged(part.file)
        RunState(job.output).finish(part.name, tally, stream.size, stream.hexdigest())
        return tally

    def _score_batch(
        self, reading: ReadBatch, write: Callable[[Any], None], bad_rows: _BadRowFile, tally: Tally
    ) -> None:
        job, row_count = self.job, len(reading.batch) + len(reading.bad)
        mask, segments, bad = select_segments(reading, self.metrics, job.example, job.longest)
        batch = reading.batch.select(mask)
        bad_rows.write(bad, tally)
        scored = score_segments(self.metrics, segments, with_spans=bool(job.spans))
        tally.add(scored, self.metrics)
        kept = np.ones(len(batch), dtype=bool)
        for condition in job.keep:
            kept &= condition.mask(scored.scores[job.metrics[condition.metric]])
        batch = batch.extend(scored.columns()).select(kept)
        write(batch)
        tally.rows += row_count
        tally.kept += len(batch)

    def _schema(self, part: CorpusPart) -> Any:
        import pyarrow as pa

        schema = schema_of(part.file, self.job.fields, self.job.columns)
        if schema is None:
            return None
        score_columns: dict[str, Any] = {}
        for spec in self.job.metrics:
            score_columns |= {spec: pa.float64(), spec + WARNINGS_SUFFIX: pa.string()}
        score_columns |= {spec + SPANS_SUFFIX: pa.string() for spec in self.job.spans}
        return extend_schema(schema, score_columns)


def start_worker(
    job: CorpusJob, *, is_remote: bool = True
) -> Callable[[CorpusPart, Advance], Outcome]:
    """Return the function that processes a part, or that returns the error of the start."""
    try:
        worker = PartWorker(job)
        return worker.attempt_remotely if is_remote else worker.attempt
    except TertiumError as error:
        reason = str(error)
        return lambda part, advance: Outcome(part.name, None, reason)


class _BadRowFile:
    """The file of bad rows of a part, opened when the first bad row occurs."""

    def __init__(self, part: CorpusPart, path: str, stack: ExitStack, strict: bool) -> None:
        self.part, self.path, self.stack, self.strict = part, path, stack, strict
        self.stream: Any = None

    def write(self, rows: Sequence[BadRow], tally: Tally) -> None:
        file = self.part.file.path
        if rows and self.strict:
            raise DataError(f"{file}, row {rows[0].row}: {rows[0].reason}")
        if rows and self.stream is None:
            self.stream = self.stack.enter_context(write_content(self.path))
        for row in rows:
            record = {"file": file, "row": row.row, "reason": row.reason}
            self.stream.write(json.dumps(record, ensure_ascii=False).encode("utf-8") + b"\n")
            tally.bad[reason_kind(row.reason)] += 1


def batch_rows(job: CorpusJob) -> int:
    """Return the rows per batch: fewer for neural metrics on a CPU, to limit memory."""
    if not any(job.model_ids):
        return BATCH_ROWS
    if "torch" not in sys.modules:
        return NEURAL_BATCH_ROWS
    return NEURAL_BATCH_ROWS if resolve_device(job.runtime.device) == "cpu" else BATCH_ROWS


def release_memory() -> None:
    """Return freed heap pages to the operating system, with the C library of Linux."""
    if sys.platform == "linux" and (trim := getattr(ctypes.CDLL(None), "malloc_trim", None)):
        trim(0)
