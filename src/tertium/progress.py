"""Long work reports how far it is, to whoever listens; nobody listens by default.

Library code opens a `task` and advances it; it never prints. The command line installs a listener
that draws bars on stderr.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from typing import TypeVar

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
