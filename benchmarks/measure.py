"""How long and how much: seconds, processor seconds, and the peak of resident memory, of a call.

Processor seconds count the work of all threads of this process: on a busy machine they say what a
call costs, where seconds say how long one waited.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

T = TypeVar("T")


@dataclass(frozen=True)
class Measurement(Generic[T]):
    """What a call returned, how long it took, what processors did, and the memory it added."""

    value: T
    seconds: float
    megabytes: float
    processor: float


def measure(call: Callable[[], T]) -> Measurement[T]:
    """Run a call, watching time and memory."""
    start_memory = peak = resident()
    done = threading.Event()

    def watch() -> None:
        nonlocal peak
        while not done.wait(0.02):
            peak = max(peak, resident())

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    start, work = time.perf_counter(), time.process_time()
    try:
        value = call()
    finally:
        seconds, processor = time.perf_counter() - start, time.process_time() - work
        done.set()
        watcher.join()
    return Measurement(value, seconds, (max(peak, resident()) - start_memory) / 1e6, processor)


def best_of(call: Callable[[], T], times: int = 3) -> Measurement[T]:
    """The run of several that cost the processors least."""
    return min((measure(call) for _ in range(times)), key=lambda found: found.processor)


def together(turns: Sequence[Measurement[Any]]) -> Measurement[None]:
    """Several calls, one behind the other, as one."""
    return Measurement(
        None,
        sum(turn.seconds for turn in turns),
        max(turn.megabytes for turn in turns),
        sum(turn.processor for turn in turns),
    )


def resident() -> int:
    """The resident memory of this process in bytes (Linux; 0 elsewhere)."""
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
    except OSError:
        return 0
    return pages * os.sysconf("SC_PAGE_SIZE")
