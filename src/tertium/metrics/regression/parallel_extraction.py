"""Run feature extractors over many segments: on all cores, with a cache of rows.

Extractors in pure Python run in forked processes, one chunk of segments at a time, so memory is
bounded by the chunks in flight. Short inputs and platforms without fork use this process. An
extractor that runs a neural network never forks: torch threads do not survive a fork, and the child
process would hang.
"""

from __future__ import annotations

import multiprocessing
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import lru_cache

import numpy as np

from tertium.core.arrays import FloatArray
from tertium.core.runtime import progress_task, usable_cores
from tertium.core.segment import Segment
from tertium.metrics.base.feature_extractor import FeatureExtractor

WORKER_CHUNK = 128  # segments per task of a worker process
MIN_PARALLEL_SEGMENTS = 4 * WORKER_CHUNK  # fewer do not justify starting processes
SERIAL_CHUNK = 8 * WORKER_CHUNK  # segments per call of an extractor that must not fork
MAX_CACHED_ROWS = 20_000  # per extractor


def extract_features(
    extractor: FeatureExtractor, segments: Sequence[Segment], label: str = ""
) -> FloatArray:
    """Compute the rows of all segments in order, each distinct segment once, (n, k).

    Rows are cached between calls, so that several metrics and training runs share them. Segments
    with the same reference stay together, so that one process parses it once.
    """
    rows = _row_cache(extractor)
    missing = sorted(set(segments) - rows.keys(), key=lambda s: (s.references, s.hypothesis))
    with progress_task(label or "features", total=len(missing)) as advance:
        for start, chunk in _compute_chunks(extractor, missing):
            rows.update(zip(missing[start : start + len(chunk)], chunk, strict=True))
            advance(len(chunk))
    values = np.array([rows[segment] for segment in segments], dtype=np.float64)
    if len(rows) > MAX_CACHED_ROWS:
        rows.clear()
    return values.reshape(len(segments), len(extractor.names))


@lru_cache(maxsize=16)
def _row_cache(extractor: FeatureExtractor) -> dict[Segment, FloatArray]:
    return {}


def _compute_chunks(
    extractor: FeatureExtractor, segments: Sequence[Segment]
) -> Iterator[tuple[int, FloatArray]]:
    size = WORKER_CHUNK if extractor.can_fork else SERIAL_CHUNK
    starts = range(0, len(segments), size)
    chunks = (segments[start : start + size] for start in starts)
    workers = min(usable_cores(), len(starts)) if extractor.can_fork else 1
    if len(segments) < MIN_PARALLEL_SEGMENTS or workers < 2 or not _can_fork():
        yield from zip(starts, map(extractor, chunks), strict=True)
        return
    extractor(segments[:1])  # loads parser, dictionary and vectors, which the processes inherit
    context = multiprocessing.get_context("fork")
    with ProcessPoolExecutor(workers, mp_context=context) as pool:
        yield from zip(starts, pool.map(extractor, chunks), strict=True)


def _can_fork() -> bool:
    """Check that this is the main thread of a main process: only there is forking safe."""
    return (
        "fork" in multiprocessing.get_all_start_methods()
        and threading.current_thread() is threading.main_thread()
        and multiprocessing.parent_process() is None
    )
