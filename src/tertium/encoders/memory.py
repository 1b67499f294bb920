"""The vectors a process has seen last, bounded in bytes, in front of the store on disk."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping, Sequence

from tertium.encoders.cache import open_store
from tertium.encoders.record import Part
from tertium.encoders.runtime import current_runtime

# All layers of a model side by side would push everything else out of the store.
WIDEST_STORED = 2048


class Memory:
    """The parts used last, oldest dropped first."""

    def __init__(self) -> None:
        self._parts: OrderedDict[tuple[str, str], Part] = OrderedDict()
        self._bytes = 0

    def get(self, fingerprint: str, text: str) -> Part | None:
        part = self._parts.get((fingerprint, text))
        if part is not None:
            self._parts.move_to_end((fingerprint, text))
        return part

    def put(self, fingerprint: str, text: str, part: Part, limit: int) -> None:
        old = self._parts.pop((fingerprint, text), None)
        self._bytes += part.nbytes - (old.nbytes if old else 0)
        self._parts[fingerprint, text] = part
        while self._bytes > limit and self._parts:
            _, dropped = self._parts.popitem(last=False)
            self._bytes -= dropped.nbytes

    def clear(self) -> None:
        self._parts.clear()
        self._bytes = 0


_memory = Memory()


def recall(fingerprint: str, texts: Sequence[str]) -> dict[str, Part]:
    """The parts that memory or disk hold for these texts."""
    if not fingerprint or not texts:
        return {}
    found = {text: _memory.get(fingerprint, text) for text in texts}
    known = {text: part for text, part in found.items() if part is not None}
    store = open_store()
    if store is None or len(known) == len(found):
        return known
    stored = store.read(fingerprint, [text for text in found if text not in known])
    _keep(fingerprint, stored)
    return known | stored


def remember(fingerprint: str, parts: Mapping[str, Part]) -> None:
    """Keep freshly computed parts in memory and on disk."""
    if not fingerprint:
        return
    _keep(fingerprint, parts)
    store = open_store()
    narrow = {text: p for text, p in parts.items() if p.matrix.shape[-1] <= WIDEST_STORED}
    if store is not None:
        store.write(fingerprint, narrow)


def forget() -> None:
    """Drop what memory holds; the store on disk keeps its own."""
    _memory.clear()


def _keep(fingerprint: str, parts: Mapping[str, Part]) -> None:
    limit = current_runtime().memory
    for text, part in parts.items():
        _memory.put(fingerprint, text, part, limit)
