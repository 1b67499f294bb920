"""Run forward passes in parallel, each on one thread."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import torch

from tertium.core.runtime import current_runtime

T = TypeVar("T")
R = TypeVar("R")


def map_on_threads(function: Callable[[T], R], jobs: Sequence[T]) -> Iterator[R]:
    """Yield the results of jobs in order; each job runs on one thread, several in parallel.

    Passes in parallel are faster than threads within each operation. The number of torch threads
    of the caller, and of threads it starts later, stays as it is.
    """
    threads = torch.get_num_threads()
    workers = max(1, min(current_runtime().threads or threads, len(jobs)))
    if workers == threads == 1:
        yield from map(function, jobs)
        return
    ready = threading.Barrier(workers + 1)

    def start_worker() -> None:
        torch.get_num_threads()  # initializes this thread, which would undo the next line later
        torch.set_num_threads(1)  # also the default of threads that start later, until reset
        ready.wait()

    with ThreadPoolExecutor(workers, initializer=start_worker) as pool:
        results = pool.map(function, jobs)
        if jobs:
            ready.wait()
            torch.set_num_threads(threads)
        yield from results
