"""The vectors a process has seen last, bounded in bytes, in front of the store on disk."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tertium.encoders.embeddings import Float32Array
from tertium.encoders.runtime import current_runtime


@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """One text's token vectors (tokens, dim) with their pieces, or its sentence vector (dim,)."""

    matrix: Float32Array
    pieces: tuple[str, ...]
    truncated: bool

    @property
    def nbytes(self) -> int:
        return self.matrix.nbytes + 64 * len(self.pieces) + 256


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
        while self._bytes > limit:
            _, dropped = self._parts.popitem(last=False)
            self._bytes -= dropped.nbytes

    def clear(self) -> None:
        self._parts.clear()
        self._bytes = 0


_memory = Memory()


def recall(fingerprint: str, texts: Sequence[str]) -> dict[str, Part]:
    """The parts that memory or disk hold for these texts."""
    if not fingerprint:
        return {}
    found = {text: _memory.get(fingerprint, text) for text in texts}
    return {text: part for text, part in found.items() if part is not None}


def remember(fingerprint: str, parts: Mapping[str, Part]) -> None:
    """Keep freshly computed parts."""
    if not fingerprint:
        return
    limit = current_runtime().memory
    for text, part in parts.items():
        _memory.put(fingerprint, text, part, limit)


def forget() -> None:
    """Drop what memory holds; the store on disk keeps its own."""
    _memory.clear()
