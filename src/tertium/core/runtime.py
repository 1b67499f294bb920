"""Execution settings: device, batch size, threads, memory, cache, and progress reporting.

On a CPU no setting changes a score by a single bit; a GPU stays within floating-point noise (1e-5
on unit vectors). Therefore settings are not fields of a metric and not part of its signature: they
are a context of the running code. The same holds for progress: library code opens a
`progress_task` and advances it, and never prints; the command line installs a listener that draws
progress bars.

>>> with runtime(device="cpu", cache=False):
...     current_runtime().cache
False
>>> current_runtime().cache
True
"""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from dataclasses import dataclass, replace
from numbers import Integral
from typing import Any, Literal, TypeVar

from tertium.core.errors import UsageError

T = TypeVar("T")
Precision = Literal["fp32", "bf16", "fp16", "int8"]
Advance = Callable[[int], None]
ProgressListener = Callable[[str, int | None], AbstractContextManager[Advance]]

DEVICES = ("auto", "cpu", "cuda", "mps")
MEGABYTE = 1 << 20


@dataclass(frozen=True, kw_only=True)
class Runtime:
    """Settings of a run that do not change its scores.

    `device`: cpu, cuda, cuda:N, mps, or auto (the first available of cuda, mps, cpu).
    `token_budget`: tokens per forward pass, padding included (None: chosen for the device).
    `batch_size`: maximum number of texts per forward pass (None: limited by `token_budget` only).
    `threads`: CPU threads, each with its own forward passes (None: the default of torch).
    `memory`: bytes of embeddings kept in memory between chunks and metrics.
    `cache`: whether to use the cache on disk.
    """

    device: str = "auto"
    token_budget: int | None = None
    batch_size: int | None = None
    threads: int | None = None
    memory: int = 384 * MEGABYTE
    cache: bool = True

    def __post_init__(self) -> None:
        family, colon, number = str(self.device).partition(":")
        is_known = isinstance(self.device, str) and family in DEVICES
        if not is_known or (colon and not number.isdecimal()):
            raise UsageError(
                f"unknown device {self.device!r}: expected auto, cpu, cuda, cuda:N or mps"
            )
        for name in ("token_budget", "batch_size", "threads"):
            value = getattr(self, name)
            if value is not None and not (isinstance(value, Integral) and int(value) >= 1):
                raise UsageError(f"{name}={value!r}: expected a whole number of at least 1")


_current: ContextVar[Runtime] = ContextVar("tertium_runtime", default=Runtime())  # noqa: B039
_listener: ContextVar[ProgressListener | None] = ContextVar("progress_listener", default=None)


def current_runtime() -> Runtime:
    """Return the settings that are in effect here."""
    return _current.get()


@contextmanager
def runtime(
    *, progress: ProgressListener | Literal["unchanged"] | None = "unchanged", **options: Any
) -> Iterator[Runtime]:
    """Set execution options for the calls inside a `with` block.

    Options that are not given keep their current value. See `Runtime` for `device`,
    `token_budget`, `batch_size`, `threads`, `memory` and `cache`. `progress` is a function of a
    description and a number of steps (or None); it returns a context manager that yields a function
    to call with the number of steps done. `progress=None` reports nothing.
    """
    listener = _listener.set(_listener.get() if progress == "unchanged" else progress)
    try:
        settings = _current.set(replace(_current.get(), **options))
        try:
            yield _current.get()
        finally:
            _current.reset(settings)
    finally:
        _listener.reset(listener)


def usable_cores() -> int:
    """Return the number of CPU cores this process may use, at most the runtime's `threads`."""
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return min(usable or 1, current_runtime().threads or usable or 1)


@contextmanager
def pause_garbage_collection() -> Iterator[None]:
    """Collect no cyclic garbage, which takes a tenth of the time of importing torch."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def resolve_device(device: str) -> str:
    """Turn a device setting into a torch device name; raise `UsageError` if it is unavailable."""
    with pause_garbage_collection():
        import torch

    if device == "auto":
        if torch.cuda.is_available():
            return "cuda"
        return "mps" if torch.backends.mps.is_available() else "cpu"
    family, _, number = device.partition(":")
    is_available = {
        "cuda": torch.cuda.is_available() and int(number or 0) < torch.cuda.device_count(),
        "mps": torch.backends.mps.is_available(),
        "cpu": True,
    }
    if not is_available[family]:
        raise UsageError(f"device {device} is not available here: choose cpu (gpus=0) or auto")
    return device


def active_gpu() -> str | None:
    """Return the GPU that networks of this process run on, if any; does not import torch."""
    if "torch" not in sys.modules:
        return None
    device = resolve_device(current_runtime().device)
    return None if device == "cpu" else device


def progress_task(description: str, total: int | None = None) -> AbstractContextManager[Advance]:
    """Report work of `total` steps; call the yielded function with the number of steps done.

    >>> with progress_task("counting", total=3) as advance:
    ...     for _ in range(3):
    ...         advance(1)
    """
    listener = _listener.get()
    return listener(description, total) if listener else nullcontext(lambda steps: None)


def track_progress(items: Sequence[T], description: str) -> Iterator[T]:
    """Iterate over a sequence and advance a progress task by one for each item."""
    with progress_task(description, total=len(items)) as advance:
        for item in items:
            yield item
            advance(1)
