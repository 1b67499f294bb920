"""Convert the 4-bit checkpoint of multilingual-e5 into a model folder.

The little-endian file has a header of sizes, the tokens of a unigram tokenizer with their scores, a
character map for text normalization, and a directory of tensors. Lengths in the file are not
trusted: they are checked against the file and the header before memory is allocated.

The folder is what `transformers` would save: safetensors with BERT's names, config and tokenizer.
The bytes of the weights do not depend on library versions, so the model card can list their hash.

Normalization uses a table in the format of SentencePiece (`Precompiled` in `tokenizers`): a
double-array trie over the bytes of the keys, whose leaves point to zero-terminated replacements.
A unit of the array has 32 bits: the byte that leads to it (bits 0-7), whether a key ends there
(bit 8), and its position XOR the base of its children (bits 10-30). The child of byte c is at
`base ^ c`, a leaf at `base`. No two nodes share a base, so the byte identifies a child.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from math import prod
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from tertium.core.atomic import open_atomic, write_text
from tertium.core.errors import ModelError
from tertium.core.schema import read_json_object
from tertium.encoders.use.sentencepiece import SPACE

MAGIC = b"E5S1"
VERSION = 1
BLOCK = 32  # weights that share one scale
BLOCK_TYPE = np.dtype([("scale", "<f2"), ("nibbles", "u1", BLOCK // 2)])
FLOAT32, QUANTIZED = 0, 1  # types of a tensor
MAX_CODE_POINT = 0x10FFFF
HAS_LEAF = 1 << 8
LEAF = 1 << 31
OFFSET_SHIFT = 10
MAX_OFFSET = 1 << 21
LAYER_TENSORS = {
    "q": "attention.self.query",
    "k": "attention.self.key",
    "v": "attention.self.value",
    "ao": "attention.output.dense",
    "aln": "attention.output.LayerNorm",
    "fi": "intermediate.dense",
    "fo": "output.dense",
    "oln": "output.LayerNorm",
}


@dataclass(frozen=True)
class NetworkSizes:
    """The sizes of the network in the header, by their names in `config.json`."""

    layer_norm_eps: float
    hidden_size: int
    num_hidden_layers: int
    num_attention_heads: int
    intermediate_size: int
    vocab_size: int
    max_position_embeddings: int
    type_vocab_size: int


@dataclass(frozen=True)
class QuantizedModel:
    """The content of a checkpoint; tensors are decoded on access.

    `vocabulary` and `scores` are in order of token id; `special_ids` are by name (`bos`, ...).
    """

    sizes: NetworkSizes
    vocabulary: tuple[str, ...]
    scores: NDArray[np.float32]
    special_ids: Mapping[str, int]
    character_map: Mapping[str, str]
    tensors: Mapping[str, tuple[int, NDArray[Any]]] = field(repr=False)

    def tensor(self, name: str, *shape: int) -> NDArray[np.float32]:
        """Decode a tensor to fp32; its number of values must match the shape."""
        if name not in self.tensors:
            raise ModelError(f"the checkpoint has no tensor {name}")
        count, stored = self.tensors[name]
        if count != int(np.prod(shape)):
            raise ModelError(
                f"tensor {name} has {count} values, which do not fit the shape {shape}"
            )
        values = stored if stored.dtype == np.dtype("<f4") else unpack_blocks(stored)
        return values.astype(np.float32, copy=True).reshape(shape)


def unpack_blocks(blocks: NDArray[Any]) -> NDArray[np.float32]:
    """Decode 4-bit blocks: low nibbles are the first half of a block, high nibbles the second.

    >>> block = np.zeros(1, BLOCK_TYPE)
    >>> block["scale"], block["nibbles"] = 0.5, 0x9A
    >>> unpack_blocks(block)[[0, 15, 16, 31]].tolist()
    [1.0, 1.0, 0.5, 0.5]
    """
    nibbles = blocks["nibbles"]
    values = np.concatenate([nibbles & 15, nibbles >> 4], axis=1).astype(np.float32) - 8
    return (values * blocks["scale"].astype(np.float32)[:, None]).reshape(-1)


def read_quantized(path: Path) -> QuantizedModel:
    """Read a checkpoint; raise `ModelError` if it is damaged."""
    data = np.memmap(path, np.uint8, "r") if path.stat().st_size else np.zeros(0, np.uint8)
    cursor = _Cursor(data, path.name)
    if cursor.take(len(MAGIC)).tobytes() != MAGIC:
        raise ModelError(f"{path.name} is not a 4-bit checkpoint: it does not start with {MAGIC!r}")
    sizes = _read_sizes(cursor)
    vocabulary, scores, special_ids = _read_vocabulary(cursor, sizes)
    character_map = _read_character_map(cursor)
    tensors = _read_tensors(cursor)
    return QuantizedModel(sizes, vocabulary, scores, special_ids, character_map, tensors)


class _Cursor:
    """A read position in the bytes of a file, checked against their end."""

    def __init__(self, data: NDArray[np.uint8], name: str) -> None:
        self._data, self._name, self._position = data, name, 0

    def take(self, count: int) -> NDArray[np.uint8]:
        data = self.window(self._position, count)
        self._position += count
        return data

    def window(self, start: int, count: int) -> NDArray[np.uint8]:
        if count < 0 or start < 0 or start + count > len(self._data):
            raise ModelError(
                f"{self._name} is incomplete or damaged: {count} bytes at {start} "
                f"of {len(self._data)}"
            )
        return self._data[start : start + count]

    def values(self, layout: str) -> tuple[Any, ...]:
        return struct.unpack(layout, self.take(struct.calcsize(layout)).tobytes())

    def array(self, dtype: str, count: int) -> NDArray[Any]:
        return self.take(count * np.dtype(dtype).itemsize).view(dtype)

    def error(self, problem: str) -> ModelError:
        return ModelError(f"{self._name} is damaged: {problem}")


def _read_sizes(cursor: _Cursor) -> NetworkSizes:
    version, *counts = cursor.values("<I7i")
    epsilon, block = cursor.values("<fI")
    if version != VERSION:
        raise cursor.error(f"unsupported version {version}, expected {VERSION}")
    if block != BLOCK or min(counts) < 1 or not 0 < epsilon < 1:
        raise cursor.error(f"invalid header: sizes {counts}, epsilon {epsilon}, blocks of {block}")
    if counts[0] % counts[2]:
        raise cursor.error(f"{counts[0]} dimensions do not divide among {counts[2]} heads")
    return NetworkSizes(epsilon, *counts)


def _read_vocabulary(
    cursor: _Cursor, sizes: NetworkSizes
) -> tuple[tuple[str, ...], NDArray[np.float32], Mapping[str, int]]:
    count, *ids = cursor.values("<5i")
    if not 0 < count <= sizes.vocab_size or not all(0 <= i < count for i in ids):
        raise cursor.error(f"{count} tokens with special ids {ids} of {sizes.vocab_size} rows")
    (length,) = cursor.values("<Q")
    offsets = cursor.array("<u4", count + 1).astype(np.int64)
    scores = cursor.array("<f4", count).copy()
    blob = cursor.take(length).tobytes()
    if offsets[0] or offsets[-1] != length or np.any(np.diff(offsets) < 0):
        raise cursor.error("the offsets of its tokens are not in order")
    if not np.all(np.isfinite(scores)):
        raise cursor.error("the score of a token is not a number")
    try:
        vocabulary = tuple(blob[a:b].decode() for a, b in pairwise(offsets.tolist()))
    except UnicodeDecodeError:
        raise cursor.error("a token is not UTF-8") from None
    return vocabulary, scores, dict(zip(("bos", "eos", "pad", "unk"), ids, strict=True))


def _read_character_map(cursor: _Cursor) -> dict[str, str]:
    entries, length = cursor.values("<iI")
    inner = _Cursor(cursor.take(length), "its character map")
    character_map: dict[str, str] = {}
    for _ in range(max(0, entries)):
        point, count = inner.values("<IB")
        points = inner.array("<u4", count)
        if max(point, *points, 0) > MAX_CODE_POINT:
            raise cursor.error("its character map has an invalid code point")
        character_map[chr(point)] = "".join(map(chr, points))
    return character_map


def _read_tensors(cursor: _Cursor) -> dict[str, tuple[int, NDArray[Any]]]:
    tensors: dict[str, tuple[int, NDArray[Any]]] = {}
    (entries,) = cursor.values("<i")
    for _ in range(max(0, entries)):
        (length,) = cursor.values("<H")
        name = cursor.take(length).tobytes().decode("ascii", "replace")
        if not name.isprintable():
            raise cursor.error("the name of a tensor is not printable")
        kind, count, offset, size = cursor.values("<BIQQ")
        dtype = {FLOAT32: np.dtype("<f4"), QUANTIZED: BLOCK_TYPE}.get(kind)
        if dtype is None:
            raise cursor.error(f"tensor {name} has unknown type {kind}")
        values = count // BLOCK if kind == QUANTIZED else count
        if size != values * dtype.itemsize or (kind == QUANTIZED and count % BLOCK):
            raise cursor.error(f"tensor {name} has {count} values in {size} bytes")
        tensors[name] = count, cursor.window(offset, size).view(dtype)
    return tensors


def unpack_model(checkpoint: Path, folder: Path) -> None:
    """Write the weights, config and tokenizer of a checkpoint into a model folder.

    The settings are those of multilingual-e5-small, with the sizes in the checkpoint.
    """
    model = read_quantized(checkpoint)
    with open_atomic(folder / "model.safetensors", make_folder=True) as stream:
        _write_weights(stream, model)
    settings = read_json_object(Path(__file__).with_name("settings.json"))
    names = settings["special_tokens_map.json"]
    write_text(folder / "tokenizer.json", _build_tokenizer(model, names).to_str())
    epsilon = float(f"{model.sizes.layer_norm_eps:.6g}")  # as written in decimals, not in binary
    settings["config.json"] |= {**vars(model.sizes), "layer_norm_eps": epsilon}
    for name, values in settings.items():
        write_text(folder / name, json.dumps(values, indent=2) + "\n", make_folder=True)


def _write_weights(stream: IO[bytes], model: QuantizedModel) -> None:
    """Write safetensors: the length of the header, the header, then the values in its order."""
    shapes = dict(_iter_shapes(model))
    header: dict[str, Any] = {"__metadata__": {"format": "pt"}}
    end = 0
    for (name, _), shape in shapes.items():
        start, end = end, end + 4 * prod(shape)
        header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [start, end]}
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)  # align the values for memory mapping
    stream.write(struct.pack("<Q", len(text)) + text)
    for (_, stored_name), shape in shapes.items():
        stream.write(model.tensor(stored_name, *shape).tobytes())


def _iter_shapes(model: QuantizedModel) -> Iterator[tuple[tuple[str, str], tuple[int, ...]]]:
    """Yield ((name in transformers, name in the file), shape) of each tensor of a BERT."""
    sizes = model.sizes
    d, inner = sizes.hidden_size, sizes.intermediate_size
    yield ("embeddings.word_embeddings.weight", "emb.word"), (sizes.vocab_size, d)
    yield ("embeddings.position_embeddings.weight", "emb.pos"), (sizes.max_position_embeddings, d)
    yield ("embeddings.token_type_embeddings.weight", "emb.type"), (sizes.type_vocab_size, d)
    yield ("embeddings.LayerNorm.weight", "emb.ln.w"), (d,)
    yield ("embeddings.LayerNorm.bias", "emb.ln.b"), (d,)
    shapes = {"fi": (inner, d), "fo": (d, inner), "aln": (d,), "oln": (d,)}
    for layer in range(sizes.num_hidden_layers):
        for part, name in LAYER_TENSORS.items():
            shape = shapes.get(part, (d, d))
            full_name = f"encoder.layer.{layer}.{name}"
            yield (f"{full_name}.weight", f"l{layer}.{part}.w"), shape
            yield (f"{full_name}.bias", f"l{layer}.{part}.b"), shape[:1]


def _build_tokenizer(model: QuantizedModel, special_tokens: Mapping[str, str]) -> Any:
    """Build XLM-R's tokenizer: normalize, split at spaces, mark word starts, unigram search."""
    from tokenizers import AddedToken, Regex, Tokenizer, models, normalizers, pre_tokenizers
    from tokenizers.processors import TemplateProcessing

    scored = list(zip(model.vocabulary, map(float, model.scores), strict=True))
    tokenizer = Tokenizer(models.Unigram(scored, model.special_ids["unk"], False))
    table = compile_replacements(model.character_map)
    tokenizer.normalizer = normalizers.Sequence(
        [
            normalizers.NFC(),  # the character map has only single code points
            normalizers.Precompiled(table),
            normalizers.Replace(Regex(" {2,}"), " "),
        ]
    )
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.WhitespaceSplit(),
            pre_tokenizers.Metaspace(replacement=SPACE, prepend_scheme="always"),
        ]
    )
    for token in special_tokens.values():
        tokenizer.add_special_tokens([AddedToken(token, special=True, normalized=False)])
    first, last = special_tokens["bos_token"], special_tokens["eos_token"]
    tokenizer.post_processor = TemplateProcessing(
        single=f"{first} $A {last}",
        pair=f"{first} $A {last} {last} $B {last}",
        special_tokens=[(first, model.special_ids["bos"]), (last, model.special_ids["eos"])],
    )
    return tokenizer


def compile_replacements(replacements: Mapping[str, str]) -> bytes:
    """Compile a normalization table; keys must be non-empty, without zero characters."""
    texts, positions = bytearray(), dict[str, int]()
    for text in sorted(set(replacements.values())):
        positions[text] = len(texts)
        texts += text.encode() + b"\0"
    root: dict[int, Any] = {}
    for key, text in sorted(replacements.items()):
        node = root
        for byte in key.encode():
            node = node.setdefault(byte, {})
        node[0] = positions[text]
    trie = _build_double_array(root)
    return struct.pack(f"<I{len(trie)}I", 4 * len(trie), *trie) + bytes(texts)


def _build_double_array(root: Mapping[int, Any]) -> list[int]:
    """Place each node's children at the first base where all their positions are free."""
    units: dict[int, int] = {0: 0}
    bases: set[int] = set()
    queue: list[tuple[int, Mapping[int, Any]]] = [(0, root)]
    start = 1
    while queue:
        position, node = queue.pop()
        base = start
        while base in bases or any(base ^ byte in units for byte in node):
            base += 1
        if position ^ base >= MAX_OFFSET:
            raise ValueError("too many replacements for one table")
        bases.add(base)
        units[position] |= (position ^ base) << OFFSET_SHIFT | (HAS_LEAF if 0 in node else 0)
        for byte, child in node.items():
            units[base ^ byte] = byte if byte else child | LEAF
            if byte:
                queue.append((base ^ byte, child))
        while start in units or start in bases:
            start += 1
    return [units.get(position, 0) for position in range(-(-(max(units) + 1) // 256) * 256)]
