"""The work on one part: read, score, filter, write its shard, and record that it is done.

Scores do not depend on other rows, so every score is identical to that of `tertium score`.
"""

from __future__ import annotations

import json
import math
import operator
import re
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from tertium.core.arrays import BoolArray, FloatArray
from tertium.core.errors import (
    DataError,
    ModelError,
    TertiumError,
    UsageError,
    short_repr,
)
from tertium.core.runtime import Advance, Runtime, resolve_device, runtime
from tertium.core.segment import Segment
from tertium.core.spans import Span
from tertium.corpus.corpus_paths import CorpusPath
from tertium.corpus.readers import (
    BATCH_ROWS,
    Batch,
    Columns,
    CorpusPart,
    read_batches,
    read_segments,
    reject_incomplete,
    write_parquet,
)
from tertium.corpus.summary import BAD, SHARD_SUFFIX, MetricTally, RunState, Tally, reason_kind
from tertium.data.records import SPANS_SUFFIX, WARNINGS_SUFFIX
from tertium.evaluation.rows import Row, RowScores, score_rows
from tertium.metrics.base.capabilities import can_mark_errors
from tertium.metrics.base.judge_run import (
    BudgetAddress,
    BudgetError,
    JudgeConnection,
    RemoteBudget,
    Usage,
    judge_server,
)
from tertium.metrics.base.loading import load_metric
from tertium.metrics.base.metric import Metric

NEURAL_BATCH_ROWS = 512  # neural metrics hold the token states of a whole batch in memory
WARNING_SEPARATOR = "; "
COMPARISONS = {">=": operator.ge, "<=": operator.le, ">": operator.gt, "<": operator.lt}
_CONDITION = re.compile(r"\s*(.+?)\s*([<>](?!=)|[<>]=)\s*(.+?)\s*")


@dataclass(frozen=True)
class ScoreCondition:
    """A bound for the scores of one metric; `metric` is its position in the run."""

    text: str
    metric: int
    comparison: str
    bound: float

    def mask(self, scores: FloatArray) -> BoolArray:
        """Return which scores meet the condition; a missing one (NaN) does not."""
        mask: BoolArray = COMPARISONS[self.comparison](scores, self.bound)
        return mask


def parse_condition(text: str, specs: Sequence[str]) -> ScoreCondition:
    """Parse a condition on one of the metrics, in any spelling of its spec.

    >>> parse_condition("chrf++ >= 40", ["bleu", "chrf:word_order=2"])
    ScoreCondition(text='chrf++ >= 40', metric=1, comparison='>=', bound=40.0)
    """
    match = _CONDITION.fullmatch(text)
    spec, comparison, number = match.groups() if match else ("", "", "")
    with suppress(TertiumError, OSError):
        spec = spec if spec in specs else load_metric(spec).spec
    bound = math.nan
    with suppress(ValueError):
        bound = float(number)
    if spec not in specs or not math.isfinite(bound):
        listed = ", ".join(specs)
        raise UsageError(
            f"--keep {short_repr(text, 80)}: expected METRIC >= X (or >, <=, <) with a number X "
            f"and a metric of this run ({listed}); repeat --keep if several have to hold; "
            "for other filters query the output with pyarrow or duckdb"
        )
    return ScoreCondition(text, specs.index(spec), comparison, bound)


@dataclass(frozen=True, kw_only=True)
class CorpusJob:
    """The settings that a worker needs; small, and sent to other machines.

    `metrics` has the models of each metric by its spec, as loaded by the parent process. `example`
    is a row that every metric can score: other rows need the same inputs. `columns` are those of
    JSONL files. `judge` is the server of LLM judges, and `budget` the address of the shared budget.
    """

    output: CorpusPath
    metrics: Mapping[str, tuple[str, ...]]
    example: Segment
    runtime: Runtime
    judge: JudgeConnection
    budget: BudgetAddress | None = None
    keep: tuple[ScoreCondition, ...] = ()
    fields: tuple[str, ...] = ()
    columns: Columns = field(default_factory=dict)
    longest: int = 100_000
    strict: bool = False
    spans: bool = False

    @property
    def batch_rows(self) -> int:
        """Rows per batch: fewer for neural metrics on a CPU, to limit memory."""
        if not any(self.metrics.values()):
            return BATCH_ROWS
        is_on_cpu = "torch" not in sys.modules or resolve_device(self.runtime.device) == "cpu"
        return NEURAL_BATCH_ROWS if is_on_cpu else BATCH_ROWS


@dataclass(frozen=True)
class Outcome:
    """The result of a part: its counts, or an error.

    `usage` are the requests of judges in another process; those of this process are counted as
    they are sent.
    """

    part: str
    tally: Tally | None = None
    error: TertiumError | None = None
    usage: Usage | None = None


@dataclass(frozen=True)
class PartWorker:
    """Turns parts into shards."""

    job: CorpusJob

    @cached_property
    def metrics(self) -> list[Metric]:
        """The metrics, loaded once."""
        metrics: list[Metric] = [load_metric(spec) for spec in self.job.metrics]
        for metric, expected in zip(metrics, self.job.metrics.values(), strict=True):
            if metric.model_ids != expected:
                raise ModelError(f"{metric.spec}: install the same weights on all machines")
        return metrics

    def attempt(self, part: CorpusPart, advance: Advance) -> Outcome:
        """Process a part; return user errors in a form that every engine can transport."""
        try:
            with runtime(**vars(self.job.runtime), progress=None):
                return Outcome(part.name, self.process(part, advance))
        except BudgetError as error:
            return Outcome(part.name, error=BudgetError(f"{error} (with --resume)"))
        except TertiumError as error:
            return Outcome(part.name, error=TertiumError(str(error)))

    def attempt_remotely(self, part: CorpusPart) -> Outcome:
        """Process a part in a process of its own, which reports the requests it sent."""
        with judge_server(self.job.judge, self.budget) as run:
            outcome = self.attempt(part, lambda rows: None)
        return replace(outcome, usage=run.usage)

    @cached_property
    def budget(self) -> RemoteBudget | None:
        """The budget of the run, if it has one."""
        return RemoteBudget(self.job.budget) if self.job.budget else None

    def process(self, part: CorpusPart, advance: Advance) -> Tally:
        """Write the shard of a part and its bad rows, and record that it is done."""
        job = self.job
        tally = Tally()
        shard = job.output / (part.name + SHARD_SUFFIX)
        with ExitStack() as stack:
            stream = stack.enter_context(shard.write())
            write_parquet(stream, self._score_part(part, tally, stack, advance))
            part.file.check_unchanged()
        RunState(job.output).finish(part.name, tally, shard)
        return tally

    def _score_part(
        self, part: CorpusPart, tally: Tally, stack: ExitStack, advance: Advance
    ) -> Iterator[Any]:
        """Yield the tables of a shard; write bad rows to a file of their own."""
        job = self.job
        bad_stream = None
        for batch in read_batches(part, job.fields, job.columns, job.batch_rows):
            rows_before = tally.rows
            yield self.score(batch, tally)
            for number, reason in sorted(batch.bad.items()):
                if job.strict:
                    raise DataError(f"{part.file}, row {number}: {reason}")
                if bad_stream is None:
                    bad_file = job.output / f"{BAD}/{part.name}.jsonl"
                    bad_stream = stack.enter_context(bad_file.write())
                record = {"file": str(part.file), "row": number, "reason": reason}
                bad_stream.write(json.dumps(record, ensure_ascii=False).encode("utf-8") + b"\n")
            advance(tally.rows - rows_before)

    def score(self, batch: Batch, tally: Tally) -> Any:
        """Return the table of a batch with scores; rows without a score become bad rows."""
        import pyarrow as pa

        job = self.job
        counts = Tally(rows=len(batch.numbers) + len(batch.bad))
        segments = read_segments(batch, job.longest)
        reject_incomplete(segments, batch.bad, self.metrics, job.example)
        table = batch.table
        if len(segments) < len(table):
            table = table.filter(pa.array([number in segments for number in batch.numbers]))
        usable = [*segments.values()]
        rows = [Row(segment=segment) for segment in usable]
        scored = score_rows(rows, self.metrics, is_batch=True)
        counts.bad = dict(Counter(map(reason_kind, batch.bad.values())))
        for scores in scored:
            metric_tally = MetricTally.from_scores(scores, usable)
            counts.metrics[scores.metric.spec] = metric_tally
            columns = score_columns(scores)
            if job.spans and can_mark_errors(scores.metric):
                spans = scores.metric.mark_errors(usable)
                metric_tally.count_errors(spans)
                columns[scores.metric.spec + SPANS_SUFFIX] = pa.array(
                    map(_to_json, spans), pa.string()
                )
            for name, column in columns.items():
                if name in table.column_names:
                    raise UsageError(
                        f"the input already has a column {name!r}, which the scores would use: "
                        "rename or drop it"
                    )
                table = table.append_column(name, column)
        is_kept = np.ones(len(table), dtype=bool)
        for condition in job.keep:
            is_kept &= condition.mask(scored[condition.metric].values)
        table = table if is_kept.all() else table.filter(pa.array(is_kept))
        counts.kept = len(table)
        tally.add(counts)
        return table


def score_columns(scores: RowScores) -> dict[str, Any]:
    """Return the scores and warnings of a metric as pyarrow arrays; NaN becomes null."""
    import pyarrow as pa

    spec = scores.metric.spec
    warnings = [*map(WARNING_SEPARATOR.join, scores.warnings)]
    return {
        spec: pa.array(scores.values, pa.float64(), from_pandas=True),
        spec + WARNINGS_SUFFIX: pa.array(warnings, pa.string()),
    }


def _to_json(spans: Sequence[Span]) -> str:
    """Return error spans as a JSON list, in the layout that readers of judgments accept."""
    return json.dumps([span.as_dict() for span in spans], ensure_ascii=False)
