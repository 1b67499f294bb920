"""Read a multilingual-e5 packed at four bits: header, pieces, normalisation and tensors.

The file is one little-endian run: a header of sizes, the pieces of a unigram tokenizer with their
scores, a map of code points that normalises a text before it is cut, then a directory of tensors.
A length in the file is never trusted: whatever does not fit into the file or contradicts the
header is refused before anything is allocated for it.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tertium.errors import ModelError

MAGIC = b"E5S1"
VERSION = 1
BLOCK = 32  # weights that share one scale
BLOCK_TYPE = np.dtype([("scale", "<f2"), ("nibbles", "u1", BLOCK // 2)])
PLAIN, PACKED = 0, 1
LAST_CODE_POINT = 0x10FFFF


@dataclass(frozen=True)
class Sizes:
    """What the header says of the network."""

    epsilon: float
    hidden: int
    layers: int
    heads: int
    feed_forward: int
    vocabulary: int
    positions: int
    token_types: int


@dataclass(frozen=True)
class PackedModel:
    """A file that was read: `pieces` and `scores` in order of id, tensors decoded when asked for.

    `specials` are the ids of `bos`, `eos`, `pad` and `unk`; `normal_form` maps a code point to the
    text that stands for it.
    """

    sizes: Sizes
    pieces: tuple[str, ...]
    scores: NDArray[np.float32]
    specials: Mapping[str, int]
    normal_form: Mapping[str, str]
    _tensors: Mapping[str, tuple[int, NDArray[Any]]] = field(repr=False)

    def names(self) -> tuple[str, ...]:
        """The names of the tensors, in order of the file."""
        return tuple(self._tensors)

    def tensor(self, name: str, *shape: int) -> NDArray[np.float32]:
        """A tensor in single precision; its number of values must be what the shape says."""
        if name not in self._tensors:
            raise ModelError(f"the packed model has no tensor {name}")
        count, stored = self._tensors[name]
        if count != int(np.prod(shape)):
            raise ModelError(f"tensor {name} has {count} values, its shape {shape} needs others")
        values = stored if stored.dtype == np.dtype("<f4") else unpack_blocks(stored)
        return values.astype(np.float32, copy=True).reshape(shape)


def unpack_blocks(blocks: NDArray[Any]) -> NDArray[np.float32]:
    """The values of four-bit blocks: low nibbles are the first half of a block, then the high.

    >>> block = np.zeros(1, BLOCK_TYPE)
    >>> block["scale"], block["nibbles"] = 0.5, 0x9A
    >>> unpack_blocks(block)[[0, 15, 16, 31]].tolist()
    [1.0, 1.0, 0.5, 0.5]
    """
    nibbles = blocks["nibbles"]
    values = np.concatenate([nibbles & 15, nibbles >> 4], axis=1).astype(np.float32) - 8
    return (values * blocks["scale"].astype(np.float32)[:, None]).reshape(-1)


def read_packed(path: Path) -> PackedModel:
    """Read a packed model; ModelError says what is wrong with one that cannot be right."""
    data = np.memmap(path, np.uint8, "r") if path.stat().st_size else np.zeros(0, np.uint8)
    cursor = _Cursor(data, path.name)
    if cursor.take(len(MAGIC)).tobytes() != MAGIC:
        raise ModelError(f"{path.name} is not a packed model: it does not begin with {MAGIC!r}")
    sizes = _read_sizes(cursor)
    pieces, scores, specials = _read_pieces(cursor, sizes)
    normal_form = _read_normal_form(cursor)
    return PackedModel(sizes, pieces, scores, specials, normal_form, _read_directory(cursor))


class _Cursor:
    """A place in the bytes of a file that never goes past their end."""

    def __init__(self, data: NDArray[np.uint8], name: str) -> None:
        self._data, self._name, self._place = data, name, 0

    def take(self, count: int) -> NDArray[np.uint8]:
        taken = self.window(self._place, count)
        self._place += count
        return taken

    def window(self, begin: int, count: int) -> NDArray[np.uint8]:
        if count < 0 or begin < 0 or begin + count > len(self._data):
            raise ModelError(
                f"{self._name} is cut or damaged: {count} bytes at {begin} of {len(self._data)}"
            )
        return self._data[begin : begin + count]

    def values(self, layout: str) -> tuple[Any, ...]:
        return struct.unpack(layout, self.take(struct.calcsize(layout)).tobytes())

    def array(self, dtype: str, count: int) -> NDArray[Any]:
        return self.take(count * np.dtype(dtype).itemsize).view(dtype)

    def refuse(self, what: str) -> ModelError:
        return ModelError(f"{self._name} is damaged: {what}")


def _read_sizes(cursor: _Cursor) -> Sizes:
    version, *counts = cursor.values("<I7i")
    epsilon, block = cursor.values("<fI")
    if version != VERSION:
        raise cursor.refuse(f"its layout has version {version}, {VERSION} is known")
    if block != BLOCK or min(counts) < 1 or not 0 < epsilon < 1:
        raise cursor.refuse(f"its header says sizes {counts}, epsilon {epsilon}, blocks of {block}")
    if counts[0] % counts[2]:
        raise cursor.refuse(f"{counts[0]} dimensions do not divide among {counts[2]} heads")
    return Sizes(epsilon, *counts)


def _read_pieces(
    cursor: _Cursor, sizes: Sizes
) -> tuple[tuple[str, ...], NDArray[np.float32], Mapping[str, int]]:
    count, *ids = cursor.values("<5i")
    if not 0 < count <= sizes.vocabulary or not all(0 <= i < count for i in ids):
        raise cursor.refuse(f"{count} pieces with special ids {ids} of {sizes.vocabulary} rows")
    (length,) = cursor.values("<Q")
    offsets = cursor.array("<u4", count + 1).astype(np.int64)
    scores = cursor.array("<f4", count).copy()
    blob = cursor.take(length).tobytes()
    if offsets[0] or offsets[-1] != length or np.any(np.diff(offsets) < 0):
        raise cursor.refuse("the places of its pieces are out of order")
    if not np.all(np.isfinite(scores)):
        raise cursor.refuse("a piece has a score that is no number")
    try:
        pieces = tuple(blob[a:b].decode() for a, b in pairwise(offsets.tolist()))
    except UnicodeDecodeError:
        raise cursor.refuse("a piece is not UTF-8") from None
    return pieces, scores, dict(zip(("bos", "eos", "pad", "unk"), ids, strict=True))


def _read_normal_form(cursor: _Cursor) -> dict[str, str]:
    entries, length = cursor.values("<iI")
    inner = _Cursor(cursor.take(length), "its map of code points")
    forms: dict[str, str] = {}
    for _ in range(max(0, entries)):
        point, count = inner.values("<IB")
        points = inner.array("<u4", count)
        if max(point, *points, 0) > LAST_CODE_POINT:
            raise cursor.refuse("its map of code points names one that does not exist")
        forms[chr(point)] = "".join(map(chr, points))
    return forms


def _read_directory(cursor: _Cursor) -> dict[str, tuple[int, NDArray[Any]]]:
    tensors: dict[str, tuple[int, NDArray[Any]]] = {}
    (entries,) = cursor.values("<i")
    for _ in range(max(0, entries)):
        (length,) = cursor.values("<H")
        name = cursor.take(length).tobytes().decode("ascii", "replace")
        if not name.isprintable():
            raise cursor.refuse("a tensor has a name that is not text")
        kind, count, offset, size = cursor.values("<BIQQ")
        stored = {PLAIN: np.dtype("<f4"), PACKED: BLOCK_TYPE}.get(kind)
        if stored is None:
            raise cursor.refuse(f"tensor {name} has the unknown type {kind}")
        values = count // BLOCK if kind == PACKED else count
        if size != values * stored.itemsize or (kind == PACKED and count % BLOCK):
            raise cursor.refuse(f"tensor {name} says {count} values in {size} bytes")
        tensors[name] = count, cursor.window(offset, size).view(stored)
    return tensors
