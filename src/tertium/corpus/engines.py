"""How parts are dealt to workers: processes of this machine, or actors of a Ray cluster.

A part's texts are read and its shard is written where it is scored: only the name of a part and
what was counted travel. Whoever dies, a part is done again or not at all (`ledger`), so that
engines need know nothing of what was written.
"""

from __future__ import annotations

import logging
import multiprocessing
import os
import pickle
import signal
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

from tertium.arrays import is_whole
from tertium.corpus.reading import CorpusPart
from tertium.corpus.work import CorpusJob, Outcome, start_worker
from tertium.errors import TertiumError, UnknownNameError, UsageError, one_line
from tertium.extras import require
from tertium.runtime import Advance, cores, runtime

ENGINES = ("local", "ray")
AT_LEAST_ONE = "expected a whole number of at least 1"
POLL = 0.2  # seconds between looks at how far processes are

_log = logging.getLogger(__name__)


@dataclass(kw_only=True)
class Team:
    """Who does the parts: so many workers of an engine, each with CPUs and parts of GPUs."""

    engine: str = "local"
    workers: int | None = None
    address: str | None = None
    cpus: float = 1
    gpus: float = 0
    size: int = 0  # how many there were, once parts have been dealt

    def __post_init__(self) -> None:
        if self.engine not in ENGINES:
            raise UnknownNameError("engine", self.engine, ENGINES)
        if self.workers is not None and not is_whole(self.workers, 1):
            raise UsageError(f"workers={one_line(self.workers)}: {AT_LEAST_ONE}")
        for name, share in (("cpus", self.cpus), ("gpus", self.gpus)):
            if not isinstance(share, int | float):
                raise UsageError(f"{name}={one_line(share)}: expected a number")
        if not (self.cpus >= 0 and self.gpus >= 0 and self.cpus + self.gpus > 0):
            given = f"cpus={self.cpus:g}, gpus={self.gpus:g}"
            raise UsageError(f"{given}: a worker needs some of one of them")
        if self.engine != "ray" and (self.address or self.gpus or self.cpus != 1):
            raise UsageError("an address, CPUs and GPUs of workers are Ray's: add --engine ray")
        require("pyarrow", purpose="a corpus")
        if self.engine == "ray":
            require("ray", purpose="the engine ray")

    def deal(
        self, job: CorpusJob, parts: Sequence[CorpusPart], advance: Advance
    ) -> Iterator[Outcome]:
        """Do all parts; outcomes as they come."""
        if not parts:
            return
        if self.engine == "local":
            self.size = min(self.workers or choose_workers(job), len(parts))
            yield from run_local(job, parts, self.size, advance)
            return
        with cluster(self.address):
            self.size = min(self.count_actors(), len(parts))
            yield from run_ray(job, parts, self, advance)

    def count_actors(self) -> int:
        """How many actors there are to be: as many as asked for, else as there is room for."""
        room = count_room(self.cpus, self.gpus)
        lacking = f"no node of the cluster has {self.cpus:g} CPUs and {self.gpus:g} GPUs"
        if not room and self.workers is None:
            raise UsageError(f"{lacking} for a worker")
        if not room:  # a cluster may grow on demand
            _log.warning("%s for a worker: none is at work until one comes that has", lacking)
        return self.workers or room


def run_local(
    job: CorpusJob, parts: Sequence[CorpusPart], workers: int, advance: Advance
) -> Iterator[Outcome]:
    """Do parts in so many processes, or in this one; outcomes as they come."""
    if workers == 1 or len(parts) == 1:
        attempt = start_worker(job)
        for part in parts:
            yield attempt(part, advance)
        return
    fresh = multiprocessing.get_context("spawn")  # a fork would inherit locks of other threads
    # Rows done, and whether to stop. No lock: a worker killed with it would stop all others, and
    # what two of them write at once costs the bar a few rows.
    marks = fresh.Array("q", 2, lock=False)
    share = max(1, cores() // workers)
    job = replace(job, runtime=replace(job.runtime, threads=job.runtime.threads or share))
    with ProcessPoolExecutor(
        min(workers, len(parts)), mp_context=fresh, initializer=_begin, initargs=(job, marks)
    ) as pool:
        try:
            yield from _outcomes({pool.submit(_attempt, part) for part in parts}, marks, advance)
        except BrokenProcessPool:
            raise TertiumError(
                "a worker was killed (by the system, where memory ran out) or could not be started "
                '(a script needs `if __name__ == "__main__":`); what is done is kept: go on with '
                "--resume, perhaps with fewer --workers"
            ) from None
        finally:
            marks[1] = True
            pool.shutdown(wait=False, cancel_futures=True)


def _outcomes(left: set[Future[Outcome]], marks: Any, advance: Advance) -> Iterator[Outcome]:
    told = 0
    while left:
        done, left = wait(left, timeout=POLL, return_when=FIRST_COMPLETED)
        reached = marks[0]
        advance(reached - told)
        told = reached
        for future in done:
            yield future.result()


_worker: Callable[[CorpusPart, Advance], Outcome] | None = None
_count: Advance = lambda rows: None  # noqa: E731 (replaced in a worker)


class _Stopped(Exception):
    """The one who began the run has given up."""


def _begin(job: CorpusJob, marks: Any) -> None:
    """Prepare a process: load the metrics once, and end with the one who began."""
    global _worker, _count

    def count(rows: int) -> None:
        if marks[1]:
            raise _Stopped
        marks[0] += rows

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    _worker, _count = start_worker(job), count


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        connection.wait([parent.sentinel])
        os._exit(1)


def _attempt(part: CorpusPart) -> Outcome:
    assert _worker is not None
    return _worker(part, _count)


class PartActor:
    """A worker of Ray Data: loads metrics when it begins, then does one part a call.

    It works in the folder of who began, so that relative paths mean the same; a node begins where
    its `ray start` was typed.
    """

    def __init__(self, job: CorpusJob, folder: str) -> None:
        if Path(folder).is_dir():
            os.chdir(folder)
        self.attempt = start_worker(job)

    def __call__(self, batch: dict[str, Any]) -> dict[str, list[bytes]]:
        parts = [pickle.loads(packed) for packed in batch["part"]]
        outcomes = [self.attempt(part, lambda rows: None) for part in parts]
        return {"outcome": [pickle.dumps(outcome) for outcome in outcomes]}


def run_ray(
    job: CorpusJob, parts: Sequence[CorpusPart], team: Team, advance: Advance
) -> Iterator[Outcome]:
    """Do parts in actors of the cluster, which Ray schedules, restarts and tries again."""
    import ray
    from ray.data import ActorPoolStrategy, DataContext

    DataContext.get_current().enable_progress_bars = False
    logging.getLogger("ray.data").setLevel(logging.ERROR)
    rows = [{"part": pickle.dumps(part)} for part in parts]
    outcomes = ray.data.from_items(rows, override_num_blocks=len(rows)).map_batches(
        PartActor,
        fn_constructor_args=(job, str(Path.cwd())),
        batch_size=1,
        # A part is long: one that waits behind another's would keep an idle actor waiting.
        compute=ActorPoolStrategy(size=team.size, max_tasks_in_flight_per_actor=1),
        num_cpus=team.cpus,
        num_gpus=team.gpus or None,
    )
    for row in outcomes.iter_rows():
        outcome: Outcome = pickle.loads(row["outcome"])
        advance(outcome.tally.rows if outcome.tally else 0)
        yield outcome


@contextmanager
def cluster(address: str | None) -> Iterator[None]:
    """A connection to a cluster: the one there is, the one at an address, or one of our own."""
    import ray

    if ray.is_initialized():
        yield
        return
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # nothing is reported to anyone
    try:
        ray.init(address=address, log_to_driver=False, logging_level=logging.ERROR)
    except (ConnectionError, ValueError) as error:
        # That a token is missing stands in Ray's log alone.
        raise UsageError(
            f"no Ray cluster at {address}: {str(error).splitlines()[0]} "
            "(where it asks for a token: RAY_AUTH_MODE=token)"
        ) from None
    except Exception as error:  # what Ray raises where it cannot start is of no kind of its own
        raise TertiumError(f"Ray did not start: {str(error).splitlines()[0]}") from error
    try:
        yield
    finally:
        ray.shutdown()


def count_room(cpus: float, gpus: float) -> int:
    """How many actors the nodes of the cluster have room for, each on one of them."""
    import ray

    wanted = {kind: need for kind, need in (("CPU", cpus), ("GPU", gpus)) if need}
    nodes = [node["Resources"] for node in ray.nodes() if node["Alive"]]
    return sum(
        int(min(node.get(kind, 0) / need for kind, need in wanted.items())) for node in nodes
    )


def choose_workers(job: CorpusJob) -> int:
    """A process for each core where metrics count in Python; one where threads run a network."""
    with runtime(threads=job.runtime.threads):
        return 1 if any(job.learned) and "torch" in sys.modules else cores()
