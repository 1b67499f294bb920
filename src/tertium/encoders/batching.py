"""Group texts into batches by length, split those that are too large, and run them in parallel."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

import numpy as np

from tertium.core.arrays import IntArray
from tertium.core.runtime import current_runtime

T = TypeVar("T")
R = TypeVar("R")
Batch = TypeVar("Batch", bound=Any)


def plan_batches(
    lengths: Sequence[int] | IntArray, *, budget: int, overhead: int, limit: int | None = None
) -> list[IntArray]:
    """Partition items into batches of similar length, longest first.

    `budget` limits the padded tokens of a batch (a longer item gets its own batch), `limit` the
    number of items. `overhead` is the cost of starting a batch, in tokens: a shorter item joins the
    current batch if its padding costs less than a new batch. With overhead 0, all items of a batch
    have the same length.

    >>> [batch.tolist() for batch in plan_batches([3, 9, 3, 8], budget=18, overhead=4)]
    [[1, 3], [0, 2]]
    >>> [batch.tolist() for batch in plan_batches([3, 9, 3, 8], budget=18, overhead=0)]
    [[1], [3], [0, 2]]
    """
    sizes = np.asarray(lengths, dtype=np.int64)
    order = np.argsort(-sizes, kind="stable")
    runs = np.split(order, np.flatnonzero(np.diff(sizes[order])) + 1) if len(order) else []
    batches: list[list[int]] = []
    current: list[int] = []
    longest = 0
    for run in runs:  # items of one length
        length = int(sizes[run[0]])
        start = 0
        if current:
            free = _max_items(longest, budget, limit) - len(current)
            joining = min(free, len(run))
            if joining > 0 and joining * (longest - length) <= overhead:
                current += run[:joining].tolist()
                start = joining
        for item in run[start:].tolist():
            full = len(current) >= _max_items(length, budget, limit)
            if not current or longest != length or full:
                current = []
                longest = length
                batches.append(current)
            current.append(item)
    return [np.array(batch, dtype=np.int64) for batch in batches]


def _max_items(length: int, budget: int, limit: int | None) -> int:
    count = max(1, budget // max(1, length))
    return count if limit is None else min(count, limit)


def split_by_size(items: Iterable[T], sizes: Iterable[int], max_size: int) -> list[list[T]]:
    """Split items, in order, into lists of at most `max_size` in total, or of a single item.

    >>> split_by_size("abcd", [2, 2, 3, 9], max_size=4)
    [['a', 'b'], ['c'], ['d']]
    """
    parts: list[list[T]] = []
    total = max_size
    for item, size in zip(items, sizes, strict=True):
        if total + size > max_size or not parts:
            parts.append([])
            total = 0
        parts[-1].append(item)
        total += size
    return parts


def run_or_split(function: Callable[[Batch], R], batch: Batch) -> list[R]:
    """Run a function on a batch, or on its halves if the device runs out of memory."""
    try:
        return [function(batch)]
    except RuntimeError as error:
        if type(error).__name__ != "OutOfMemoryError" or len(batch) == 1:
            raise
    half = len(batch) // 2
    return run_or_split(function, batch[:half]) + run_or_split(function, batch[half:])


def map_on_threads(function: Callable[[T], R], jobs: Sequence[T]) -> Iterator[R]:
    """Yield the results of jobs in order; each job runs on one thread, several in parallel.

    Passes in parallel are faster than threads within each operation. The number of torch threads
    of the caller, and of threads it starts later, stays as it is.
    """
    import torch

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
