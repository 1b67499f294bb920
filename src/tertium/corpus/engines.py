"""Distribute parts to workers: local processes, or actors on a Ray cluster.

A worker reads a part, scores it and writes its shard; only part names and counts are sent between
processes. If a worker dies, its part is redone completely (`run_state`), so engines need no
knowledge of the output files.
"""

from __future__ import annotations

import logging
import multiprocessing
import os
import pickle
import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tertium.core.arrays import is_integer_at_least
from tertium.core.errors import TertiumError, UsageError, short_repr
from tertium.core.extras import require_modules
from tertium.core.runtime import Advance, usable_cores
from tertium.corpus.readers import CorpusPart
from tertium.corpus.worker import CorpusJob, Outcome, PartWorker
from tertium.metrics.base.judge_run import current_run, share_budget

AT_LEAST_ONE = "expected a whole number of at least 1"

_log = logging.getLogger(__name__)


@dataclass(kw_only=True)
class WorkerPool:
    """Local processes, or Ray actors of one CPU at an address: their number, and GPUs of each."""

    engine: str = "local"
    workers: int | None = None
    address: str | None = None
    gpus: float = 0
    size: int = 0  # number of workers started; set by `run`

    def __post_init__(self) -> None:
        if self.workers is not None and not is_integer_at_least(self.workers, 1):
            raise UsageError(f"workers={short_repr(self.workers)}: {AT_LEAST_ONE}")
        if self.engine != "ray" and (self.address or self.gpus):
            raise UsageError(
                "--worker-gpus (address=, gpus=) needs Ray: add --ray HOST:PORT, auto or local"
            )
        require_modules("pyarrow", purpose="a corpus")
        if self.engine == "ray":
            require_modules("ray", purpose="the engine ray")

    def run(
        self, worker: PartWorker, parts: Sequence[CorpusPart], advance: Advance
    ) -> Iterator[Outcome]:
        """Score all parts; yield outcomes in order of completion."""
        if self.engine == "ray" and parts:
            with cluster(self.address):
                self.size = min(self.count_actors(), len(parts))
                yield from run_ray(worker.job, parts, self, advance)
            return
        is_neural = any(worker.job.metrics.values()) and "torch" in sys.modules
        self.size = min(self.workers or (1 if is_neural else usable_cores()), len(parts))
        if self.size > 1:
            yield from run_processes(worker.job, parts, self.size, advance)
        else:
            for part in parts:
                yield worker.attempt(part, advance)

    def count_actors(self) -> int:
        """Return the requested number of actors, else the number that fits on the cluster."""
        import ray

        slots = 0
        for node in ray.nodes():
            if node["Alive"]:
                count = node["Resources"].get("CPU", 0)
                if self.gpus:
                    count = min(count, node["Resources"].get("GPU", 0) / self.gpus)
                slots += int(count)
        if not slots:
            shortage = f"no node of the cluster has a CPU and {self.gpus:g} GPUs for a worker"
            if self.workers is None:
                raise UsageError(shortage)
            # an autoscaling cluster may add such a node
            _log.warning("%s: waiting until such a node joins", shortage)
        return self.workers or slots


@contextmanager
def shared_requests(job: CorpusJob, workers: int, host: str) -> Iterator[CorpusJob]:
    """Divide the concurrent requests of a judge among workers, and lend them its budget."""
    concurrency = max(1, job.judge.concurrency // workers)
    job = replace(job, judge=replace(job.judge, concurrency=concurrency))
    if job.judge.price is None:
        yield job
    else:
        with share_budget(current_run().budget, host) as address:
            yield replace(job, budget=address)


def run_processes(
    job: CorpusJob, parts: Sequence[CorpusPart], workers: int, advance: Advance
) -> Iterator[Outcome]:
    """Score parts in several processes; yield outcomes as they complete."""
    threads = job.runtime.threads or max(1, usable_cores() // workers)
    job = replace(job, runtime=replace(job.runtime, threads=threads))
    spawn = multiprocessing.get_context("spawn")  # a fork would inherit locks of other threads
    earlier = {*multiprocessing.active_children()}
    with (
        shared_requests(job, workers, "127.0.0.1") as shared,
        ProcessPoolExecutor(
            workers, mp_context=spawn, initializer=_start, initargs=(shared,)
        ) as pool,
    ):
        try:
            for future in as_completed([pool.submit(_attempt, part) for part in parts]):
                outcome = future.result()
                advance(outcome.tally.rows if outcome.tally else 0)
                yield outcome
        except BrokenProcessPool:
            raise TertiumError(
                "a worker was killed (perhaps out of memory) or could not start (a script needs "
                '`if __name__ == "__main__":`); finished parts are saved: continue with --resume, '
                "perhaps with fewer --workers"
            ) from None
        except BaseException:  # also Ctrl-C, in the middle of a batch
            for process in {*multiprocessing.active_children()} - earlier:
                process.terminate()
            raise


_worker: PartWorker  # of a worker process


def _start(job: CorpusJob) -> None:
    """Initialize a worker process, which ignores Ctrl-C and exits with its parent."""
    global _worker
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_exit_with_parent, daemon=True).start()
    _worker = PartWorker(job)


def _exit_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _attempt(part: CorpusPart) -> Outcome:
    return _worker.attempt_remotely(part)


class PartActor:
    """A Ray Data worker in the driver's working directory: loads metrics once, scores parts."""

    def __init__(self, job: CorpusJob, folder: str) -> None:
        if Path(folder).is_dir():
            os.chdir(folder)
        self.worker = PartWorker(job)

    def __call__(self, batch: dict[str, Any]) -> dict[str, list[bytes]]:
        parts = [pickle.loads(data) for data in batch["part"]]
        outcomes = [self.worker.attempt_remotely(part) for part in parts]
        return {"outcome": [pickle.dumps(outcome) for outcome in outcomes]}


def run_ray(
    job: CorpusJob, parts: Sequence[CorpusPart], pool: WorkerPool, advance: Advance
) -> Iterator[Outcome]:
    """Score parts in Ray actors, which Ray schedules, restarts and retries."""
    import ray
    from ray.data import ActorPoolStrategy, DataContext

    DataContext.get_current().enable_progress_bars = False
    logging.getLogger("ray.data").setLevel(logging.ERROR)
    rows = [{"part": pickle.dumps(part)} for part in parts]
    dataset = ray.data.from_items(rows, override_num_blocks=len(rows))
    with shared_requests(job, pool.size, ray.util.get_node_ip_address()) as shared:
        outcomes = dataset.map_batches(
            PartActor,
            fn_constructor_args=(shared, str(Path.cwd())),
            batch_size=1,
            # Parts take long: with a queue per actor, one could wait while another actor is idle.
            compute=ActorPoolStrategy(size=pool.size, max_tasks_in_flight_per_actor=1),
            num_cpus=1,
            num_gpus=pool.gpus or None,
        )
        for row in outcomes.iter_rows():
            outcome: Outcome = pickle.loads(row["outcome"])
            advance(outcome.tally.rows if outcome.tally else 0)
            yield outcome


@contextmanager
def cluster(address: str | None) -> Iterator[None]:
    """Connect to the running cluster, to the one at `address`, or start a local one."""
    import ray

    if ray.is_initialized():
        yield
        return
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # no telemetry
    try:
        ray.init(address=address, log_to_driver=False, logging_level=logging.ERROR)
    except Exception as error:  # of many types; Ray reports a missing token only in its own log
        raise TertiumError(
            f"no Ray cluster at {address or 'this machine'}: {str(error).splitlines()[0]} "
            "(if it requires a token: set RAY_AUTH_MODE=token)"
        ) from error
    try:
        yield
    finally:
        ray.shutdown()
