"""Read multilingual-e5-small: a file of 4-bit blocks, pruned to a smaller vocabulary.

A block holds 32 weights: a half-precision scale and 32 nibbles (value + 8), low nibbles first.
Unused rows of the embedding table are dropped; the others keep the published bits.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from tokenizers import Tokenizer
from torch import Tensor

HEADER, SPECIAL = "<IiiiiiiifI", 4  # <s>, <pad>, </s>, <unk> lead the vocabulary
START, PAD, END, UNKNOWN = range(SPECIAL)
BLOCK, BLOCK_BYTES = 32, 18
MASK = "<mask>"


@dataclass(frozen=True)
class Published:
    """The published file: pieces with scores, the code-point map, and tensors as bytes."""

    pieces: list[str]
    scores: NDArray[np.float32]
    characters: dict[int, str]
    tensors: dict[str, NDArray[np.generic]]
    hidden: int


def read_published(path: Path) -> Published:
    """Read `e5-small-q4.bin`; 4-bit tensors stay (blocks, 18) bytes."""
    data, at = path.read_bytes(), 4
    hidden = struct.unpack_from(HEADER, data, at)[1]
    at += struct.calcsize(HEADER)
    count = struct.unpack_from("<5i", data, at)[0]
    (size,) = struct.unpack_from("<Q", data, at + 20)
    at += 28
    offsets = np.frombuffer(data, "<u4", count + 1, at)
    scores = np.frombuffer(data, "<f4", count, at + 4 * (count + 1))
    at += 4 * (2 * count + 1)
    blob, at = data[at : at + size], at + size
    pieces = [blob[a:b].decode() for a, b in pairwise(offsets)]
    characters, at = _read_map(data, at)
    return Published(pieces, scores, characters, _read_tensors(data, at), hidden)


def _read_map(data: bytes, at: int) -> tuple[dict[int, str], int]:
    count, _ = struct.unpack_from("<iI", data, at)
    at += 8
    tensors = {}
    for _ in range(count):
        code, length = struct.unpack_from("<IB", data, at)
        tensors[code] = "".join(map(chr, struct.unpack_from(f"<{length}I", data, at + 5)))
        at += 5 + 4 * length
    return tensors, at


def _read_tensors(data: bytes, at: int) -> dict[str, NDArray[np.generic]]:
    (count,) = struct.unpack_from("<i", data, at)
    at += 4
    tensors: dict[str, NDArray[np.generic]] = {}
    for _ in range(count):
        (length,) = struct.unpack_from("<H", data, at)
        name = data[at + 2 : at + 2 + length].decode()
        at += 2 + length
        kind = data[at]
        size, offset, stored = struct.unpack_from("<IQQ", data, at + 1)
        at += 21
        if kind:
            blocks = np.frombuffer(data, np.uint8, stored, offset)
            tensors[name] = blocks.reshape(-1, BLOCK_BYTES)
        else:
            tensors[name] = np.frombuffer(data, "<f4", size, offset)
    return tensors


def unpack_blocks(blocks: NDArray[np.uint8]) -> NDArray[np.float32]:
    """Unpack 4-bit blocks, (blocks, 18) bytes -> (blocks * 32,) floats."""
    scales = np.ascontiguousarray(blocks[:, :2]).view("<f2").astype(np.float32)  # (blocks, 1)
    nibbles = np.concatenate([blocks[:, 2:] & 15, blocks[:, 2:] >> 4], 1).astype(np.float32)
    return np.asarray(((nibbles - 8) * scales).reshape(-1), np.float32)


def prune(published: Published, tokenizer: Path, wanted: Iterable[str], folder: Path) -> None:
    """Write the encoder restricted to the wanted pieces and all single characters.

    Texts that need no removed piece keep their segmentation: the best path stays the best one.
    """
    names = set(wanted)
    keep = [
        n
        for n, piece in enumerate(published.pieces)
        if n < SPECIAL or (piece != MASK and (piece in names or len(piece.lstrip("▁")) <= 1))
    ]
    row = published.hidden // BLOCK
    words = published.tensors["emb.word"].reshape(-1, row, BLOCK_BYTES)[keep]
    tensors = {**published.tensors, "emb.word": words.reshape(-1, BLOCK_BYTES)}
    folder.mkdir(parents=True, exist_ok=True)
    np.savez(folder / "e5.npz", allow_pickle=False, **tensors)
    settings = json.loads(tokenizer.read_text(encoding="utf-8"))
    vocabulary = settings["model"]["vocab"]
    settings["model"]["vocab"] = [vocabulary[n] for n in keep]
    settings["added_tokens"] = [t for t in settings["added_tokens"] if t["content"] != MASK]
    text = json.dumps(settings, ensure_ascii=False, separators=(",", ":"))
    (folder / "tokenizer.json").write_text(text, encoding="utf-8")


def load_weights(folder: Path) -> dict[str, Tensor]:
    """Load all tensors in single precision; matrices stay flat."""
    with np.load(folder / "e5.npz") as stored:
        arrays = {name: stored[name] for name in stored.files}
    return {
        name: torch.from_numpy(
            unpack_blocks(array) if array.dtype == np.uint8 else array.astype(np.float32)
        )
        for name, array in arrays.items()
    }


class Pieces:
    """Tokenizer of the pruned vocabulary; removed pieces are split into smaller ones."""

    def __init__(self, path: Path) -> None:
        self._model = Tokenizer.from_file(str(path))
        vocabulary = self._model.get_vocab()
        self.names = sorted(vocabulary, key=vocabulary.__getitem__)

    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        """Return the piece ids of each text, without special tokens."""
        batch = self._model.encode_batch_fast(list(texts), add_special_tokens=False)
        return [encoding.ids for encoding in batch]

    def places(self, texts: Sequence[str]) -> list[list[tuple[int, int]]]:
        """Return the (start, end) offsets of each piece in code points."""
        batch = self._model.encode_batch(list(texts), add_special_tokens=False)
        return [encoding.offsets for encoding in batch]
