"""Cache what is computed from a checkpoint as long as the checkpoint lives."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

from tertium.models.checkpoint import Checkpoint

T = TypeVar("T")


def cache_by_checkpoint(function: Callable[..., T]) -> Callable[..., T]:
    """Cache the results of a function of a checkpoint, without keeping the checkpoint alive.

    The first argument of the function is the checkpoint; its results are dropped with it. Results
    and other arguments must not refer to the checkpoint.
    """
    results: WeakKeyDictionary[Checkpoint, dict[Any, T]] = WeakKeyDictionary()

    @wraps(function)
    def cached(checkpoint: Checkpoint, *arguments: Any) -> T:
        by_arguments = results.setdefault(checkpoint, {})
        if arguments not in by_arguments:
            by_arguments[arguments] = function(checkpoint, *arguments)
        return by_arguments[arguments]

    return cached
