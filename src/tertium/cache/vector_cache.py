"""Vectors that a process used last, bounded in bytes, and behind them those of the store on disk.

Who needs vectors, or what a network said of a pair, asks here before computing it (`get_entries`), and
leaves here what was computed (`put_entries`). Very wide vectors stay in memory alone.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping, Sequence

from tertium.cache.database import CacheEntry
from tertium.cache.vector_store import open_vector_store
from tertium.execution import current_runtime

# All layers of a model side by side would push everything else out of the store.
MAX_STORED_WIDTH = 2048


class MemoryCache:
    """The parts used last, oldest dropped first."""

    def __init__(self) -> None:
        self._parts: OrderedDict[tuple[str, str], CacheEntry] = OrderedDict()
        self._bytes = 0

    def get(self, fingerprint: str, text: str) -> CacheEntry | None:
        part = self._parts.get((fingerprint, text))
        if part is not None:
            self._parts.move_to_end((fingerprint, text))
        return part

    def put(self, fingerprint: str, text: str, part: CacheEntry, limit: int) -> None:
        old = self._parts.pop((fingerprint, text), None)
        self._bytes += part.nbytes - (old.nbytes if old else 0)
        self._parts[fingerprint, text] = part
        while self._bytes > limit and self._parts:
            _, dropped = self._parts.popitem(last=False)
            self._bytes -= dropped.nbytes

    def clear(self) -> None:
        self._parts.clear()
        self._bytes = 0


# Sentence vectors are small; apart, they are not pushed out by token vectors.
_tokens, _sentences = MemoryCache(), MemoryCache()
SENTENCES_SHARE = 0.25  # of what token vectors may take, and beside them


def get_entries(fingerprint: str, texts: Sequence[str]) -> dict[str, CacheEntry]:
    """The parts that memory or disk hold for these texts."""
    if not fingerprint or not texts:
        return {}
    known = _find_held(fingerprint, texts)
    store = open_vector_store()
    missing = [text for text in dict.fromkeys(texts) if text not in known]
    if store is None or not missing:
        return known
    stored = store.read(fingerprint, missing)
    _keep(fingerprint, stored)
    return known | stored


def find_cached_texts(fingerprint: str, texts: Sequence[str]) -> set[str]:
    """Which of these texts `get_entries` would find, without reading their vectors from disk."""
    if not fingerprint:
        return set()
    held = set(_find_held(fingerprint, texts))
    store = open_vector_store()
    return held if store is None else held | store.has(fingerprint, texts)


def put_entries(fingerprint: str, parts: Mapping[str, CacheEntry]) -> None:
    """Keep freshly computed parts in memory and on disk."""
    if not fingerprint:
        return
    _keep(fingerprint, parts)
    store = open_vector_store()
    narrow = {text: p for text, p in parts.items() if p.matrix.shape[-1] <= MAX_STORED_WIDTH}
    if store is not None:
        store.write(fingerprint, narrow)


def clear_memory() -> None:
    """Drop what memory holds; the store on disk keeps its own."""
    _tokens.clear()
    _sentences.clear()


def _find_held(fingerprint: str, texts: Sequence[str]) -> dict[str, CacheEntry]:
    found = {t: _tokens.get(fingerprint, t) or _sentences.get(fingerprint, t) for t in texts}
    return {text: part for text, part in found.items() if part is not None}


def _keep(fingerprint: str, parts: Mapping[str, CacheEntry]) -> None:
    limit = current_runtime().memory
    for text, part in parts.items():
        if part.matrix.ndim == 2:
            _tokens.put(fingerprint, text, part, limit)
        else:
            _sentences.put(fingerprint, text, part, int(limit * SENTENCES_SHARE))
