"""Cache what is computed from a checkpoint as long as the checkpoint lives."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from functools import wraps
from threading import RLock
from typing import Any, TypeVar

from tertium.models.checkpoint import Checkpoint

T = TypeVar("T")


def cache_by_checkpoint(maxsize: int) -> Callable[[Callable[..., T]], Callable[..., T]]:
    """Cache the results for recent checkpoints, like `lru_cache`, without keeping these alive.

    The first argument of the function is the checkpoint; its result is dropped with it. Results and
    other arguments must not refer to the checkpoint.
    """

    def decorate(function: Callable[..., T]) -> Callable[..., T]:
        results: dict[Any, T] = {}
        finalizers: dict[Any, weakref.finalize[Any, Any]] = {}
        lock = RLock()  # garbage collection may call `drop` at any time

        def drop(key: Any) -> None:
            with lock:
                results.pop(key, None)
                finalizers.pop(key).detach()

        @wraps(function)
        def cached(checkpoint: Checkpoint, *arguments: Any) -> T:
            key = (id(checkpoint), *arguments)
            with lock:
                if key in results:
                    results[key] = results.pop(key)  # the most recent one is last
                    return results[key]
            result = function(checkpoint, *arguments)
            with lock:
                results[key] = result
                if key not in finalizers:
                    finalizers[key] = weakref.finalize(checkpoint, drop, key)
                while len(results) > maxsize:
                    drop(next(iter(results)))
            return result

        return cached

    return decorate
