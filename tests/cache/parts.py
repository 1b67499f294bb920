"""Parts of a store that follow from their texts, for tests and for the processes they start.

Apart from the tests, so that a process that writes a store need not load what runs tests.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from tertium.cache.database import CacheEntry
from tertium.cache.vector_store import VectorStore

__all__ = ["Path", "Store", "part_of", "right_or_absent", "same", "texts_of"]


def part_of(text: str, dim: int = 32) -> CacheEntry:
    """Vectors that follow from the text, so that a wrong one would be noticed anywhere."""
    words = tuple(text.split())
    rng = np.random.default_rng(int.from_bytes(text.encode()[:16]))
    return CacheEntry(rng.normal(size=(len(words), dim)).astype(np.float32), words, False)


def texts_of(count: int, start: int = 0) -> list[str]:
    return [f"{i} text with some words in it" for i in range(start, start + count)]


def same(one: CacheEntry, other: CacheEntry) -> bool:
    return (
        np.array_equal(one.matrix, other.matrix)
        and one.matrix.shape == other.matrix.shape
        and one.tokens == other.tokens
        and one.truncated == other.truncated
    )


def right_or_absent(found: dict[str, CacheEntry]) -> bool:
    return all(same(part, part_of(text)) for text, part in found.items())
