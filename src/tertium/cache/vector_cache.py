"""The embedding cache: an in-memory LRU cache in front of the store on disk.

Encoders and joint networks look up texts with `get_entries` before computing anything, and add new
results with `put_entries`. Very wide vectors stay in memory only.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping, Sequence

from tertium.cache.database import CacheEntry
from tertium.cache.vector_store import open_vector_store
from tertium.execution import current_runtime

MAX_STORED_WIDTH = 2048  # all layers of a model together would displace everything else on disk
SENTENCE_MEMORY_SHARE = 0.25  # memory for sentence vectors, relative to that for token vectors


class MemoryCache:
    """An LRU cache limited by bytes."""

    def __init__(self) -> None:
        self._entries: OrderedDict[tuple[str, str], CacheEntry] = OrderedDict()
        self._bytes = 0

    def get(self, fingerprint: str, text: str) -> CacheEntry | None:
        entry = self._entries.get((fingerprint, text))
        if entry is not None:
            self._entries.move_to_end((fingerprint, text))
        return entry

    def put(self, fingerprint: str, text: str, entry: CacheEntry, limit: int) -> None:
        old = self._entries.pop((fingerprint, text), None)
        self._bytes += entry.nbytes - (old.nbytes if old else 0)
        self._entries[fingerprint, text] = entry
        while self._bytes > limit and self._entries:
            _, evicted = self._entries.popitem(last=False)
            self._bytes -= evicted.nbytes

    def clear(self) -> None:
        self._entries.clear()
        self._bytes = 0


# Separate caches, so that large token vectors do not evict small sentence vectors.
_token_cache, _sentence_cache = MemoryCache(), MemoryCache()


def get_entries(fingerprint: str, texts: Sequence[str]) -> dict[str, CacheEntry]:
    """Look up the entries of texts in memory and on disk."""
    if not fingerprint or not texts:
        return {}
    entries = _get_from_memory(fingerprint, texts)
    store = open_vector_store()
    missing = [text for text in dict.fromkeys(texts) if text not in entries]
    if store is None or not missing:
        return entries
    stored = store.read(fingerprint, missing)
    _put_in_memory(fingerprint, stored)
    return entries | stored


def find_cached_texts(fingerprint: str, texts: Sequence[str]) -> set[str]:
    """Return the texts that have an entry, without reading vectors from disk."""
    if not fingerprint:
        return set()
    in_memory = set(_get_from_memory(fingerprint, texts))
    store = open_vector_store()
    return in_memory if store is None else in_memory | store.contains(fingerprint, texts)


def put_entries(fingerprint: str, entries: Mapping[str, CacheEntry]) -> None:
    """Add entries to memory and, unless too wide, to the store on disk."""
    if not fingerprint:
        return
    _put_in_memory(fingerprint, entries)
    store = open_vector_store()
    if store is not None:
        narrow = {t: e for t, e in entries.items() if e.matrix.shape[-1] <= MAX_STORED_WIDTH}
        store.write(fingerprint, narrow)


def clear_memory() -> None:
    """Empty the caches in memory; the store on disk is unchanged."""
    _token_cache.clear()
    _sentence_cache.clear()


def _get_from_memory(fingerprint: str, texts: Sequence[str]) -> dict[str, CacheEntry]:
    caches = (_token_cache, _sentence_cache)
    hits = ((text, cache.get(fingerprint, text)) for text in texts for cache in caches)
    return {text: entry for text, entry in hits if entry is not None}


def _put_in_memory(fingerprint: str, entries: Mapping[str, CacheEntry]) -> None:
    limit = current_runtime().memory
    for text, entry in entries.items():
        if entry.matrix.ndim == 2:
            _token_cache.put(fingerprint, text, entry, limit)
        else:
            _sentence_cache.put(fingerprint, text, entry, int(limit * SENTENCE_MEMORY_SHARE))
