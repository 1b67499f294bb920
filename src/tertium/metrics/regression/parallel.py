"""Work that Python does pair by pair, on all cores: chunks of segments in forked processes.

Each process computes the rows of a chunk, so memory is bounded by the chunks in flight. Where a
process cannot be forked, or for few segments, the work is done here. A featurizer that runs a
network is never forked: the threads of torch do not survive it, and a child would wait for ever.
"""

from __future__ import annotations

import multiprocessing
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import lru_cache, partial

import numpy as np

from tertium.arrays import FloatArray
from tertium.metrics.base.featurizer import Featurizer
from tertium.progress import task
from tertium.runtime import cores
from tertium.segment import Segment

CHUNK = 128  # segments one process takes at a time
WORTHWHILE = 4 * CHUNK  # segments; fewer are not worth starting processes for
ALONE = 8 * CHUNK  # segments that a featurizer which must not fork takes at a time
REMEMBERED = 20_000  # rows of each featurizer that are kept between calls


def rows_of(featurizer: Featurizer, segments: Sequence[Segment], label: str = "") -> FloatArray:
    """The rows of all segments in their order, each distinct segment computed once, (n, k).

    Rows of earlier calls are remembered, so that several metrics and training runs share them.
    Segments with one reference stay together, so that it is analysed in one process.
    """
    known = _memory(featurizer)
    missing = sorted(set(segments) - known.keys(), key=lambda s: (s.references, s.hypothesis))
    if len(known) + len(missing) > REMEMBERED:
        fresh = {s: known[s] for s in set(segments) & known.keys()}
        known.clear()
    else:
        fresh = known
    with task(label or "features", total=len(missing)) as advance:
        for start, part in _compute(featurizer, missing):
            fresh.update(zip(missing[start : start + len(part)], part, strict=True))
            advance(len(part))
    rows = [fresh[segment] for segment in segments]
    return np.array(rows, dtype=np.float64).reshape(len(rows), len(featurizer.names))


@lru_cache(maxsize=16)
def _memory(featurizer: Featurizer) -> dict[Segment, FloatArray]:
    return {}


def _compute(
    featurizer: Featurizer, segments: Sequence[Segment]
) -> Iterator[tuple[int, FloatArray]]:
    size = CHUNK if featurizer.forks else ALONE
    starts = range(0, len(segments), size)
    chunks = (segments[start : start + size] for start in starts)
    workers = min(cores(), len(starts)) if featurizer.forks else 1
    if len(segments) < WORTHWHILE or workers < 2 or not _can_fork():
        yield from zip(starts, map(featurizer, chunks), strict=True)
        return
    # What a process inherits it need not load: a first row loads parser, dictionary and vectors.
    featurizer(segments[:1])
    context = multiprocessing.get_context("fork")
    with ProcessPoolExecutor(workers, mp_context=context) as pool:
        yield from zip(starts, pool.map(partial(_rows, featurizer), chunks), strict=True)


def _rows(featurizer: Featurizer, segments: Sequence[Segment]) -> FloatArray:
    return featurizer(segments)


def _can_fork() -> bool:
    """Forking is safe from the main thread of a main process only."""
    return (
        "fork" in multiprocessing.get_all_start_methods()
        and threading.current_thread() is threading.main_thread()
        and multiprocessing.parent_process() is None
    )
