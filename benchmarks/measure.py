"""How long and how much: seconds, and the peak of resident memory, of one call."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, TypeVar

T = TypeVar("T")


@dataclass(frozen=True)
class Measured(Generic[T]):
    """What a call returned, how long it took, and how much resident memory it added at its peak."""

    value: T
    seconds: float
    megabytes: float


def measure(call: Callable[[], T]) -> Measured[T]:
    """Run a call, watching time and memory."""
    start_memory = peak = resident()
    done = threading.Event()

    def watch() -> None:
        nonlocal peak
        while not done.wait(0.02):
            peak = max(peak, resident())

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    start = time.perf_counter()
    try:
        value = call()
    finally:
        seconds = time.perf_counter() - start
        done.set()
        watcher.join()
    return Measured(value, seconds, (max(peak, resident()) - start_memory) / 1e6)


def resident() -> int:
    """The resident memory of this process in bytes (Linux; 0 elsewhere)."""
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
    except OSError:
        return 0
    return pages * os.sysconf("SC_PAGE_SIZE")
