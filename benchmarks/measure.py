"""Measure elapsed time, CPU time and peak resident memory of a call.

CPU seconds count all threads of this process. On a busy machine they show what a call costs, while
elapsed seconds show how long it took.
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
    """Result, elapsed seconds, added memory and CPU seconds of a call."""

    value: T
    seconds: float
    megabytes: float
    cpu_seconds: float


def measure(call: Callable[[], T]) -> Measurement[T]:
    """Run a call and measure time and memory."""
    initial_memory = peak = resident_memory()
    done = threading.Event()

    def watch() -> None:
        nonlocal peak
        while not done.wait(0.02):
            peak = max(peak, resident_memory())

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    start, cpu_start = time.perf_counter(), time.process_time()
    try:
        value = call()
    finally:
        seconds, cpu_seconds = time.perf_counter() - start, time.process_time() - cpu_start
        done.set()
        watcher.join()
    return Measurement(
        value, seconds, (max(peak, resident_memory()) - initial_memory) / 1e6, cpu_seconds
    )


def best_of(call: Callable[[], T], times: int = 3) -> Measurement[T]:
    """Return the run with the lowest CPU time."""
    return min(
        (measure(call) for _ in range(times)), key=lambda measurement_: measurement_.cpu_seconds
    )


def sum_measurements(measurements: Sequence[Measurement[Any]]) -> Measurement[None]:
    """Combine consecutive calls into one measurement."""
    return Measurement(
        None,
        sum(measurement.seconds for measurement in measurements),
        max(measurement.megabytes for measurement in measurements),
        sum(measurement.cpu_seconds for measurement in measurements),
    )


def resident_memory() -> int:
    """Return the resident memory of this process in bytes (Linux; 0 elsewhere)."""
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
    except OSError:
        return 0
    return pages * os.sysconf("SC_PAGE_SIZE")
