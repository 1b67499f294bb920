"""How to compute, apart from what: device, batches, threads, memory, the cache; who hears how far.

None of these but the device changes a score by a bit on a CPU (`apart`, `arrays`), nor beyond
floating-point noise (1e-5 on unit vectors) on a GPU, so they are no field of a metric and in no
signature: they are a context of the process. So is who listens to progress: library code opens a
`task` and advances it, and never prints; the command line installs a listener that draws bars.

>>> with runtime(device="cpu", cache=False):
...     current_runtime().cache
False
>>> current_runtime().cache
True
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from dataclasses import dataclass, replace
from numbers import Integral
from typing import Any, Literal, TypeVar

from tertium.errors import UsageError

Precision = Literal["fp32", "bf16", "fp16"]
Long = Literal["truncate", "window"]

DEVICES = ("auto", "cpu", "cuda", "mps")
MEGABYTE = 1 << 20


@dataclass(frozen=True, kw_only=True)
class Runtime:
    """The choices of a run that leave its scores alone.

    `device`: cpu, cuda, cuda:N, mps, or auto (cuda, mps, cpu: the first there is);
    `token_budget`: tokens in one forward pass, padding included (None: what suits the device);
    `batch_size`: texts in one forward pass at most (None: as many as the budget allows); `threads`:
    CPU threads, each with passes of its own (None: as torch says); `memory`: bytes of vectors kept
    between chunks and metrics;
    `cache`: use the store on disk.
    """

    device: str = "auto"
    token_budget: int | None = None
    batch_size: int | None = None
    threads: int | None = None
    memory: int = 384 * MEGABYTE
    cache: bool = True

    def __post_init__(self) -> None:
        family, colon, number = str(self.device).partition(":")
        named = isinstance(self.device, str) and family in DEVICES
        if not named or (colon and not number.isdecimal()):
            raise UsageError(
                f"unknown device {self.device!r}: expected auto, cpu, cuda, cuda:N or mps"
            )
        for name in ("token_budget", "batch_size", "threads"):
            value = getattr(self, name)
            if value is not None and not (isinstance(value, Integral) and int(value) >= 1):
                raise UsageError(f"{name}={value!r}: expected a whole number of at least 1")


_DEFAULT = Runtime()
_current: ContextVar[Runtime] = ContextVar("tertium_runtime", default=_DEFAULT)


def current_runtime() -> Runtime:
    """The runtime choices in force here."""
    return _current.get()


def cores() -> int:
    """The cores this process may use, no more than the runtime's threads."""
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return min(usable or 1, current_runtime().threads or usable or 1)


@contextmanager
def runtime(**changes: Any) -> Iterator[Runtime]:
    """Change some runtime choices for the calls inside the block."""
    token = _current.set(replace(_current.get(), **changes))
    try:
        yield _current.get()
    finally:
        _current.reset(token)


def choose_device(device: str) -> str:
    """The device a runtime's choice stands for; refuses one that is not there."""
    import torch

    if device == "auto":
        if torch.cuda.is_available():
            return "cuda"
        return "mps" if torch.backends.mps.is_available() else "cpu"
    family, _, number = device.partition(":")
    there = {
        "cuda": torch.cuda.is_available() and int(number or 0) < torch.cuda.device_count(),
        "mps": torch.backends.mps.is_available(),
        "cpu": True,
    }
    if not there[family]:
        raise UsageError(f"device {device} is not available here: choose cpu (gpus=0) or auto")
    return device


def accelerator() -> str | None:
    """The GPU that networks of this process run on; torch is not loaded to find out."""
    if "torch" not in sys.modules:
        return None
    device = choose_device(current_runtime().device)
    return None if device == "cpu" else device


T = TypeVar("T")

Advance = Callable[[int], None]
Listener = Callable[[str, int | None], AbstractContextManager[Advance]]

_listener: ContextVar[Listener | None] = ContextVar("progress_listener", default=None)


def task(description: str, total: int | None = None) -> AbstractContextManager[Advance]:
    """Announce work of `total` steps; call what it yields with the number of steps done.

    >>> with task("counting", total=3) as advance:
    ...     for _ in range(3):
    ...         advance(1)
    """
    listener = _listener.get()
    return listener(description, total) if listener else nullcontext(lambda steps: None)


def track(items: Sequence[T], description: str) -> Iterator[T]:
    """Iterate over a sequence, advancing a task by one for each item."""
    with task(description, total=len(items)) as advance:
        for item in items:
            yield item
            advance(1)


@contextmanager
def listening(listener: Listener) -> Iterator[None]:
    """Let a listener hear of all work done inside the `with` block."""
    token = _listener.set(listener)
    try:
        yield
    finally:
        _listener.reset(token)
