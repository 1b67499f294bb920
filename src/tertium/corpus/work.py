"""What a worker does with a part, whoever started it: read, score, keep, write, note it done."""

from __future__ import annotations

import ctypes
import json
import sys
from collections.abc import Callable, Sequence
from contextlib import ExitStack, nullcontext
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from tertium.corpus.blocks import BadRow
from tertium.corpus.keeping import parse_keep
from tertium.corpus.ledger import BAD, RunLedger
from tertium.corpus.places import check_unchanged, join, size_of, write_content
from tertium.corpus.reading import BLOCK, NETWORK_BLOCK, CorpusPart, Reading, read_blocks, schema_of
from tertium.corpus.scoring import score_segments, take_segments
from tertium.corpus.tally import Tally, name_reason
from tertium.corpus.writing import extend_schema, writer_of
from tertium.data.records import WARNINGS
from tertium.errors import DataError, ModelError, TertiumError, UnknownNameError
from tertium.metrics.base.loading import load_metric
from tertium.metrics.base.metric import Metric
from tertium.runtime import Advance, Runtime, choose_device, listening, runtime
from tertium.segment import Segment

MMAP_THRESHOLD, ARENA_MAX = -3, -8  # of mallopt, as malloc.h has them
LARGE = 4 << 20  # bytes; smaller ones are made too often to ask the system for each


@dataclass(frozen=True)
class CorpusJob:
    """All that a worker needs to know of a run; small, and travels to other machines."""

    output: str
    metrics: tuple[str, ...]
    learned: tuple[tuple[str, ...], ...]  # the models behind each, as the one who began found them
    example: Segment
    shards: str
    runtime: Runtime
    keep: str = ""
    fields: tuple[str, ...] | None = None
    schema: bytes | None = None  # of JSONL that becomes columns
    longest: int = 100_000
    strict: bool = False


@dataclass(frozen=True)
class Outcome:
    """What came of a part: what was counted, or what was wrong."""

    part: str
    tally: Tally | None
    error: str = ""


class PartWorker:
    """Metrics loaded once, and the way of a part from file to shard."""

    def __init__(self, job: CorpusJob) -> None:
        self.job = job
        self.keep = parse_keep(job.keep) if job.keep else None
        if any(job.learned):
            keep_heap_small()
        with runtime(**asdict(job.runtime)):
            self.metrics: list[Metric] = [load_metric(spec) for spec in job.metrics]
            for metric, learned in zip(self.metrics, job.learned, strict=True):
                if metric.learned != learned:
                    raise ModelError(
                        f"{metric.spec}: a worker has other weights ({', '.join(metric.learned)}) "
                        f"than the run began with ({', '.join(learned)}); install the same"
                    )

    def attempt(self, part: CorpusPart, advance: Advance) -> Outcome:
        """Do a part; what a user can mend comes back as a text, which every engine can carry."""
        try:
            with runtime(**asdict(self.job.runtime)), listening(_silence):
                return Outcome(part.name, self.do(part, advance))
        except TertiumError as error:
            return Outcome(part.name, None, str(error))

    def do(self, part: CorpusPart, advance: Advance) -> Tally:
        """Write the shard of a part, what was put aside beside it, and note that it is done."""
        job, tally = self.job, Tally()
        schema = self._schema(part)
        writer_type = writer_of(job.shards)
        shard = join(job.output, part.name + writer_type.suffix)
        with ExitStack() as stack:
            aside = _Aside(part, join(job.output, f"{BAD}/{part.name}.jsonl"), stack, job.strict)
            stream = stack.enter_context(write_content(shard))
            writer = stack.enter_context(writer_type(stream, schema))
            has_network = any(job.learned)
            for reading in read_blocks(part, job.fields, _input_schema(job), block_size(job)):
                self._score_block(reading, writer.write, aside, tally)
                if has_network:
                    give_back_memory()
                advance(len(reading.block) + len(reading.bad))
            check_unchanged(part.file)
        RunLedger(job.output).finish(part.name, tally, size_of(shard))
        return tally

    def _score_block(
        self, reading: Reading, write: Callable[[Any], None], aside: _Aside, tally: Tally
    ) -> None:
        job, held = self.job, len(reading.block) + len(reading.bad)
        mask, segments, bad = take_segments(reading, self.metrics, job.example, job.longest)
        block = reading.block.select(mask)
        if broken := writer_of(job.shards).find_unwritable(block):
            numbers = np.asarray(reading.numbers)[mask]
            bad += [BadRow(int(numbers[place]), reason) for place, reason in broken.items()]
            good = np.array([place not in broken for place in range(len(block))], dtype=bool)
            block = block.select(good)
            segments = [segment for segment, is_good in zip(segments, good, strict=True) if is_good]
        aside.put(sorted(bad, key=lambda row: row.row), tally)
        scored = score_segments(self.metrics, segments)
        tally.add(scored, self.metrics)
        block = block.extend(scored.columns())
        if self.keep is not None and len(block):
            block = block.select(np.asarray(self.keep.mask(self._columns(block)), dtype=bool))
        write(block)
        tally.rows += held
        tally.kept += len(block)

    def _columns(self, block: Any) -> Callable[[str], Any]:
        return lambda name: block.column(resolve_column(name, self.job.metrics))

    def _schema(self, part: CorpusPart) -> Any:
        import pyarrow as pa

        schema = schema_of(part.file, self.job.fields, _input_schema(self.job))
        if schema is None:
            return None
        more: dict[str, Any] = {}
        for spec in self.job.metrics:
            more |= {spec: pa.float64(), spec + WARNINGS: pa.string()}
        extended = extend_schema(schema, more)
        if self.keep is not None:
            check_columns(self.keep.names, extended.names, self.job.metrics, part.file.path)
        return extended


def start_worker(job: CorpusJob) -> Callable[[CorpusPart, Advance], Outcome]:
    """How parts are done; where a worker cannot begin, the reason is what comes of each.

    An error while a process or an actor is made would tell the engine that it died.
    """
    try:
        return PartWorker(job).attempt
    except TertiumError as error:
        reason = str(error)
        return lambda part, advance: Outcome(part.name, None, reason)


class _Aside:
    """The side file of a part, opened when the first bad row comes."""

    def __init__(self, part: CorpusPart, path: str, stack: ExitStack, strict: bool) -> None:
        self.part, self.path, self.stack, self.strict = part, path, stack, strict
        self.stream: Any = None

    def put(self, rows: Sequence[BadRow], tally: Tally) -> None:
        file = self.part.file.path
        if rows and self.strict:
            raise DataError(f"{file}, row {rows[0].row}: {rows[0].reason}")
        if rows and self.stream is None:
            self.stream = self.stack.enter_context(write_content(self.path))
        for row in rows:
            record = {"file": file, "row": row.row, "reason": row.reason}
            self.stream.write(json.dumps(record, ensure_ascii=False).encode("utf-8") + b"\n")
            tally.bad[name_reason(row.reason)] += 1


def resolve_column(name: str, specs: Sequence[str]) -> str:
    """The column that a name stands for: its own, or that of a metric spelt another way."""
    stem, mark = (name.removesuffix(WARNINGS), WARNINGS) if name.endswith(WARNINGS) else (name, "")
    if stem in specs:
        return name
    try:
        spec = load_metric(stem).spec
    except (TertiumError, OSError):
        return name
    return spec + mark if spec in specs else name


def check_columns(
    names: Sequence[str], known: Sequence[str], specs: Sequence[str], where: str
) -> None:
    """Refuse an expression that names a column which is not there."""
    for name in names:
        if resolve_column(name, specs) not in known:
            raise UnknownNameError(f"column of {where} in --keep", name, known)


def block_size(job: CorpusJob) -> int:
    """How many rows are scored at once: on a CPU few under a network, on a GPU as many as ever."""
    if not any(job.learned):
        return BLOCK
    if "torch" not in sys.modules:
        return NETWORK_BLOCK
    return NETWORK_BLOCK if choose_device(job.runtime.device) == "cpu" else BLOCK


def keep_heap_small() -> None:
    """Let threads share one heap of the C library, and large arrays lie outside of it.

    Passes of a network make and drop arrays of a thousand sizes; what is free between them would
    grow with the number of threads.
    """
    if (tune := _c_function("mallopt")) is not None:
        tune(ARENA_MAX, 1)
        tune(MMAP_THRESHOLD, LARGE)


def give_back_memory() -> None:
    """Let the system have freed pages, which the C library keeps where others lie around them."""
    if (trim := _c_function("malloc_trim")) is not None:
        trim(0)


def _c_function(name: str) -> Any:
    """A function of Linux's usual C library; None where there is another."""
    return getattr(ctypes.CDLL(None), name, None) if sys.platform == "linux" else None


def _input_schema(job: CorpusJob) -> Any:
    import pyarrow as pa

    return None if job.schema is None else pa.ipc.read_schema(pa.py_buffer(job.schema))


def _silence(description: str, total: int | None) -> Any:
    """Hear nothing of the bars inside a block: the run has one of its own."""
    return nullcontext(lambda steps: None)
