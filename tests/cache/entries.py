"""Cache entries computed from their texts, for tests and the processes that tests start.

This module imports no test library, so that a subprocess starts quickly.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

import numpy as np

from tertium.core.store import Store
from tertium.encoders.vector_cache import CacheEntry, decode_entry, encode_entry

__all__ = [
    "Path",
    "Store",
    "are_all_correct",
    "are_equal",
    "make_entry",
    "make_texts",
    "read_entries",
    "write_entries",
    "write_texts",
]


def write_entries(store: Store, kind: str, entries: Mapping[str, CacheEntry]) -> None:
    store.write(kind, {text: encode_entry(entry, text) for text, entry in entries.items()})


def write_texts(store: Store, texts: Iterable[str]) -> None:
    """Store the entries of texts as those of "model"."""
    write_entries(store, "model", {text: make_entry(text) for text in texts})


def read_entries(store: Store, kind: str, texts: Iterable[str]) -> dict[str, CacheEntry]:
    """Read entries; damaged ones are left out."""
    stored = store.read(kind, texts).items()
    decoded = {text: decode_entry(value, text) for text, value in stored}
    return {text: entry for text, entry in decoded.items() if entry is not None}


def make_entry(text: str, dim: int = 32) -> CacheEntry:
    """Make vectors that depend on the text, so that any mix-up is detected."""
    words = tuple(text.split())
    rng = np.random.default_rng(int.from_bytes(text.encode()[:16]))
    return CacheEntry(rng.normal(size=(len(words), dim)).astype(np.float32), words, False)


def make_texts(count: int, start: int = 0) -> list[str]:
    return [f"{i} text with some words in it" for i in range(start, start + count)]


def are_equal(left: CacheEntry, right: CacheEntry) -> bool:
    return (
        np.array_equal(left.matrix, right.matrix)
        and left.matrix.shape == right.matrix.shape
        and left.tokens == right.tokens
        and left.truncated == right.truncated
    )


def are_all_correct(entries: dict[str, CacheEntry]) -> bool:
    return all(are_equal(entry, make_entry(text)) for text, entry in entries.items())
