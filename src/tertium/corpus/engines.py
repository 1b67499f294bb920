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
import socket
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass, replace
from multiprocessing import connection
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from tertium.arrays import is_integer_at_least
from tertium.corpus.readers import CorpusPart
from tertium.corpus.storage import CONNECT_SECONDS
from tertium.corpus.worker import CorpusJob, Outcome, start_worker
from tertium.errors import TertiumError, UnknownNameError, UsageError, short_repr
from tertium.execution import Advance, runtime, usable_cores
from tertium.extras import require_modules

ENGINES = ("local", "ray")
AT_LEAST_ONE = "expected a whole number of at least 1"
POLL_SECONDS = 0.2  # interval of progress updates
STOP_SECONDS = 1.0  # for a worker to remove its partial files

_log = logging.getLogger(__name__)


@dataclass(kw_only=True)
class WorkerPool:
    """The workers of an engine: their number and the CPUs and GPUs of each."""

    engine: str = "local"
    workers: int | None = None
    address: str | None = None
    cpus: float = 1
    gpus: float = 0
    size: int = 0  # number of workers started; set by `run`

    def __post_init__(self) -> None:
        if self.engine not in ENGINES:
            raise UnknownNameError("engine", self.engine, ENGINES)
        if self.workers is not None and not is_integer_at_least(self.workers, 1):
            raise UsageError(f"workers={short_repr(self.workers)}: {AT_LEAST_ONE}")
        for name, share in (("cpus", self.cpus), ("gpus", self.gpus)):
            if not isinstance(share, int | float):
                raise UsageError(f"{name}={short_repr(share)}: expected a number")
        if not (self.cpus >= 0 and self.gpus >= 0 and self.cpus + self.gpus > 0):
            shares = f"cpus={self.cpus:g}, gpus={self.gpus:g}"
            raise UsageError(f"{shares}: a worker needs CPUs or GPUs; give a positive number")
        if self.engine != "ray" and (self.address or self.gpus or self.cpus != 1):
            raise UsageError(
                "--address, --worker-cpus and --worker-gpus need a Ray cluster: add --engine ray"
            )
        require_modules("pyarrow", purpose="a corpus")
        if self.engine == "ray":
            require_modules("ray", purpose="the engine ray")

    def run(
        self, job: CorpusJob, parts: Sequence[CorpusPart], advance: Advance
    ) -> Iterator[Outcome]:
        """Score all parts; yield outcomes in order of completion."""
        if not parts:
            return
        if self.engine == "local":
            self.size = min(self.workers or choose_workers(job), len(parts))
            yield from run_local(job, parts, self.size, advance)
            return
        with cluster(self.address):
            self.size = min(self.count_actors(), len(parts))
            yield from run_ray(share_requests(job, self.size, ledger=""), parts, self, advance)

    def count_actors(self) -> int:
        """Return the requested number of actors, else the number that fits on the cluster."""
        slots = count_actor_slots(self.cpus, self.gpus)
        shortage = f"no node of the cluster has {self.cpus:g} CPUs and {self.gpus:g} GPUs"
        if not slots and self.workers is None:
            raise UsageError(f"{shortage} for a worker")
        if not slots:  # an autoscaling cluster may add such a node
            _log.warning("%s for a worker: waiting until such a node joins", shortage)
        return self.workers or slots


def run_local(
    job: CorpusJob, parts: Sequence[CorpusPart], workers: int, advance: Advance
) -> Iterator[Outcome]:
    """Score parts in `workers` processes, or in this one; yield outcomes as they complete."""
    if workers == 1 or len(parts) == 1:
        attempt = start_worker(job, is_remote=False)
        for part in parts:
            yield attempt(part, advance)
        return
    spawn = multiprocessing.get_context("spawn")  # a fork would inherit locks of other threads
    # [rows done, stop flag]. No lock: a worker killed while holding it would block all others, and
    # a lost update only costs the progress bar a few rows.
    shared = spawn.Array("q", 2, lock=False)
    threads = job.runtime.threads or max(1, usable_cores() // workers)
    job = share_requests(replace(job, runtime=replace(job.runtime, threads=threads)), workers)
    with ProcessPoolExecutor(
        min(workers, len(parts)), mp_context=spawn, initializer=_start, initargs=(job, shared)
    ) as pool:
        try:
            yield from _outcomes(_submit(pool, parts), shared, advance)
        except BrokenProcessPool:
            raise TertiumError(
                "a worker was killed (perhaps out of memory) or could not start (a script needs "
                '`if __name__ == "__main__":`); finished parts are saved: continue with --resume, '
                "perhaps with fewer --workers"
            ) from None
        finally:
            shared[1] = True
            pool.shutdown(wait=False, cancel_futures=True)


def share_requests(job: CorpusJob, workers: int, **options: Any) -> CorpusJob:
    """Divide the concurrent requests of a judge among workers, at least one for each."""
    judge = job.runtime.judge
    judge = replace(judge, concurrency=max(1, judge.concurrency // workers), **options)
    return replace(job, runtime=replace(job.runtime, judge=judge))


def _submit(pool: ProcessPoolExecutor, parts: Sequence[CorpusPart]) -> set[Future[Outcome]]:
    """Submit parts while Ctrl-C is blocked, which the started processes inherit."""
    mask = getattr(signal, "pthread_sigmask", None)  # not on Windows
    previous = mask(signal.SIG_BLOCK, [signal.SIGINT]) if mask else None
    try:
        return {pool.submit(_attempt, part) for part in parts}
    finally:
        if mask:
            mask(signal.SIG_SETMASK, previous)


def _outcomes(pending: set[Future[Outcome]], shared: Any, advance: Advance) -> Iterator[Outcome]:
    reported = 0
    while pending:
        done, pending = wait(pending, timeout=POLL_SECONDS, return_when=FIRST_COMPLETED)
        rows_done = shared[0]
        advance(rows_done - reported)
        reported = rows_done
        for future in done:
            yield future.result()


_worker: Callable[[CorpusPart, Advance], Outcome] | None = None
_count: Advance = lambda rows: None  # noqa: E731 (replaced in a worker)


class _Stopped(Exception):
    pass


def _start(job: CorpusJob, shared: Any) -> None:
    """Initialize a worker process: load the metrics once, and exit with the parent."""
    global _worker, _count

    def count(rows: int) -> None:
        if shared[1]:
            raise _Stopped
        shared[0] += rows

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_exit_with_parent, args=(shared,), daemon=True).start()
    _worker, _count = start_worker(job), count


def _exit_with_parent(shared: Any) -> None:
    """Exit soon after the parent has ended or set the stop flag, also in the middle of a batch."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        while not shared[1] and not connection.wait([parent.sentinel], POLL_SECONDS):
            pass
        if shared[1]:
            connection.wait([parent.sentinel], STOP_SECONDS)
        os._exit(1)


def _attempt(part: CorpusPart) -> Outcome:
    assert _worker is not None
    return _worker(part, _count)


class PartActor:
    """A Ray Data worker in the driver's working directory: loads metrics once, scores parts."""

    def __init__(self, job: CorpusJob, folder: str) -> None:
        if Path(folder).is_dir():
            os.chdir(folder)
        self.attempt = start_worker(job)

    def __call__(self, batch: dict[str, Any]) -> dict[str, list[bytes]]:
        parts = [pickle.loads(data) for data in batch["part"]]
        outcomes = [self.attempt(part, lambda rows: None) for part in parts]
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
    outcomes = ray.data.from_items(rows, override_num_blocks=len(rows)).map_batches(
        PartActor,
        fn_constructor_args=(job, str(Path.cwd())),
        batch_size=1,
        # Parts take long: with a queue per actor, a part could wait while another actor is idle.
        compute=ActorPoolStrategy(size=pool.size, max_tasks_in_flight_per_actor=1),
        num_cpus=pool.cpus,
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
    _check_reachable(address)
    try:
        ray.init(address=address, log_to_driver=False, logging_level=logging.ERROR)
    except (ConnectionError, ValueError) as error:
        # Ray reports a missing token only in its own log.
        raise UsageError(
            f"no Ray cluster at {address}: {str(error).splitlines()[0]} "
            "(if it requires a token: set RAY_AUTH_MODE=token)"
        ) from None
    except Exception as error:  # Ray raises many types when it cannot start
        raise TertiumError(f"Ray did not start: {str(error).splitlines()[0]}") from error
    try:
        yield
    finally:
        ray.shutdown()


def _check_reachable(address: str | None) -> None:
    """Raise an error within seconds if no server listens; Ray is silent for half a minute."""
    server = urlsplit(address if address and "://" in address else f"ray://{address or 'auto'}")
    try:
        if server.hostname and server.port:
            socket.create_connection((server.hostname, server.port), CONNECT_SECONDS).close()
    except (OSError, ValueError) as error:
        raise UsageError(
            f"no Ray cluster at {address}: {getattr(error, 'strerror', None) or error}; check the "
            "address and the network"
        ) from None


def count_actor_slots(cpus: float, gpus: float) -> int:
    """Count the actors that fit on the nodes of the cluster."""
    import ray

    demand = {key: need for key, need in (("CPU", cpus), ("GPU", gpus)) if need}
    nodes = [node["Resources"] for node in ray.nodes() if node["Alive"]]
    return sum(int(min(node.get(key, 0) / need for key, need in demand.items())) for node in nodes)


def choose_workers(job: CorpusJob) -> int:
    """Return one process per core for metrics in pure Python; one process for neural metrics."""
    with runtime(threads=job.runtime.threads):
        return 1 if any(job.model_ids) and "torch" in sys.modules else usable_cores()
