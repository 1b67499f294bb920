"""A multilingual-e5 packed at four bits, read and written as the folder every encoder is read from.

The packed file is one little-endian run: a header of sizes, the pieces of a unigram tokenizer with
their scores, a map of code points that normalises a text before it is cut, then a directory of
tensors. A length in the file is never trusted: whatever does not fit into the file or contradicts
the header is refused before anything is allocated for it.

The folder is what `transformers` would save: weights in safetensors under BERT's names, its
config, and the tokenizer that the file describes. The bytes of the weights depend on the file
alone, not on a version of any library, so that their hash can stand in a card.

Texts are normalised by a table that SentencePiece reads, as `tokenizers` does (`Precompiled`).
The table is a double-array trie over the bytes of the keys, whose leaves say where in a run of
zero-ended texts the replacement begins. A unit of the array has 32 bits: the byte that leads to it
(bits 0-7), whether a key ends there (bit 8), and by what its place is combined to give its
children's (bits 10-30). A child of byte c lies at `base ^ c`, a leaf at `base`; no two nodes share
a base, so a byte alone tells whether a child is one's own.
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

from tertium.atomic import replace_content, write_text
from tertium.encoders.use.sentencepiece import SPACE
from tertium.errors import ModelError

MAGIC = b"E5S1"
VERSION = 1
BLOCK = 32  # weights that share one scale
BLOCK_TYPE = np.dtype([("scale", "<f2"), ("nibbles", "u1", BLOCK // 2)])
PLAIN, PACKED = 0, 1
LAST_CODE_POINT = 0x10FFFF
MASK = "<mask>"
HAS_LEAF = 1 << 8
LEAF = 1 << 31
OFFSET_SHIFT = 10
LARGEST_OFFSET = 1 << 21
LAYER_PARTS = {
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
    text that stands for it; `tensors` are as stored, in the order of the file.
    """

    sizes: Sizes
    pieces: tuple[str, ...]
    scores: NDArray[np.float32]
    specials: Mapping[str, int]
    normal_form: Mapping[str, str]
    tensors: Mapping[str, tuple[int, NDArray[Any]]] = field(repr=False)

    def tensor(self, name: str, *shape: int) -> NDArray[np.float32]:
        """A tensor in single precision; its number of values must be what the shape says."""
        if name not in self.tensors:
            raise ModelError(f"the packed model has no tensor {name}")
        count, stored = self.tensors[name]
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


def unpack_model(packed: Path, folder: Path, prefix: str = "") -> None:
    """Write the weights, the config and the tokenizer of a packed model into a folder.

    `prefix` is what every text begins with for this model.
    """
    model = read_packed(packed)
    with replace_content(folder / "model.safetensors", make_folder=True) as stream:
        _write_weights(stream, model)
    write_text(folder / "tokenizer.json", _tokenizer(model).to_str())
    for name, values in _settings(model, prefix).items():
        write_text(folder / name, json.dumps(values, indent=2) + "\n", make_folder=True)


def _write_weights(stream: IO[bytes], model: PackedModel) -> None:
    """The safetensors format: the length of a header, the header, then the values in its order."""
    shapes = dict(_shapes(model))
    header: dict[str, Any] = {"__metadata__": {"format": "pt"}}
    end = 0
    for (name, _), shape in shapes.items():
        begin, end = end, end + 4 * prod(shape)
        header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [begin, end]}
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)  # values begin at a multiple of their size, for mapping
    stream.write(struct.pack("<Q", len(text)) + text)
    for (_, packed_name), shape in shapes.items():
        stream.write(model.tensor(packed_name, *shape).tobytes())


def _shapes(model: PackedModel) -> Iterator[tuple[tuple[str, str], tuple[int, ...]]]:
    """Each tensor of a BERT: its name for transformers, its name in the file, and its shape."""
    sizes = model.sizes
    d, wide = sizes.hidden, sizes.feed_forward
    yield ("embeddings.word_embeddings.weight", "emb.word"), (sizes.vocabulary, d)
    yield ("embeddings.position_embeddings.weight", "emb.pos"), (sizes.positions, d)
    yield ("embeddings.token_type_embeddings.weight", "emb.type"), (sizes.token_types, d)
    yield ("embeddings.LayerNorm.weight", "emb.ln.w"), (d,)
    yield ("embeddings.LayerNorm.bias", "emb.ln.b"), (d,)
    shapes = {"fi": (wide, d), "fo": (d, wide), "aln": (d,), "oln": (d,)}
    for layer in range(sizes.layers):
        for part, name in LAYER_PARTS.items():
            shape = shapes.get(part, (d, d))
            home = f"encoder.layer.{layer}.{name}"
            yield (f"{home}.weight", f"l{layer}.{part}.w"), shape
            yield (f"{home}.bias", f"l{layer}.{part}.b"), shape[:1]


def _settings(model: PackedModel, prefix: str) -> dict[str, Any]:
    """What transformers and sentence-transformers read, by the names of the files."""
    steps = ("Transformer", ""), ("Pooling", "1_Pooling"), ("Normalize", "2_Normalize")
    names = _special_names(model)
    return {
        "config.json": _config(model),
        "tokenizer_config.json": {
            "tokenizer_class": "PreTrainedTokenizerFast",
            "model_max_length": model.sizes.positions,
            **names,
        },
        "special_tokens_map.json": names,
        "modules.json": [
            {"idx": i, "name": str(i), "path": path, "type": f"sentence_transformers.models.{kind}"}
            for i, (kind, path) in enumerate(steps)
        ],
        "1_Pooling/config.json": {
            "word_embedding_dimension": model.sizes.hidden,
            "pooling_mode_mean_tokens": True,
        },
        "sentence_bert_config.json": {
            "max_seq_length": model.sizes.positions,
            "do_lower_case": False,
        },
        "config_sentence_transformers.json": {
            "prompts": {"all": prefix},
            "default_prompt_name": "all",
        },
    }


def _config(model: PackedModel) -> dict[str, Any]:
    sizes = model.sizes
    return {
        "architectures": ["BertModel"],
        "model_type": "bert",
        "attention_probs_dropout_prob": 0.1,
        "hidden_dropout_prob": 0.1,
        "hidden_act": "gelu",
        "hidden_size": sizes.hidden,
        "initializer_range": 0.02,
        "intermediate_size": sizes.feed_forward,
        "layer_norm_eps": float(f"{sizes.epsilon:.6g}"),
        "max_position_embeddings": sizes.positions,
        "num_attention_heads": sizes.heads,
        "num_hidden_layers": sizes.layers,
        "pad_token_id": model.specials["pad"],
        "position_embedding_type": "absolute",
        "type_vocab_size": sizes.token_types,
        "vocab_size": sizes.vocabulary,
        "transformers_version": "5.0.0",  # the names of the settings are those of its time
        "dtype": "float32",
    }


def _special_names(model: PackedModel) -> dict[str, str]:
    names = {f"{role}_token": model.pieces[number] for role, number in model.specials.items()}
    names |= {"cls_token": names["bos_token"], "sep_token": names["eos_token"]}
    return names | ({"mask_token": MASK} if MASK in model.pieces else {})


def _tokenizer(model: PackedModel) -> Any:
    """XLM-R's way from text to pieces: normalise, cut at blanks, mark beginnings, best pieces."""
    from tokenizers import AddedToken, Regex, Tokenizer, models, normalizers, pre_tokenizers
    from tokenizers.processors import TemplateProcessing

    scored = list(zip(model.pieces, map(float, model.scores), strict=True))
    tokenizer = Tokenizer(models.Unigram(scored, model.specials["unk"], False))
    table = compile_replacements(model.normal_form)
    tokenizer.normalizer = normalizers.Sequence(
        [
            normalizers.NFC(),  # the map knows single code points only
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
    names = _special_names(model)
    tokenizer.add_special_tokens(
        [AddedToken(name, special=True, normalized=False) for name in dict.fromkeys(names.values())]
    )
    first, last = names["bos_token"], names["eos_token"]
    tokenizer.post_processor = TemplateProcessing(
        single=f"{first} $A {last}",
        pair=f"{first} $A {last} {last} $B {last}",
        special_tokens=[(first, model.specials["bos"]), (last, model.specials["eos"])],
    )
    return tokenizer


def compile_replacements(replacements: Mapping[str, str]) -> bytes:
    """The compiled table of replacements; keys are non-empty and hold no zero character."""
    texts, places = bytearray(), dict[str, int]()
    for text in sorted(set(replacements.values())):
        places[text] = len(texts)
        texts += text.encode() + b"\0"
    root: dict[int, Any] = {}
    for key, text in sorted(replacements.items()):
        node = root
        for byte in key.encode():
            node = node.setdefault(byte, {})
        node[0] = places[text]
    trie = _lay_out(root)
    return struct.pack(f"<I{len(trie)}I", 4 * len(trie), *trie) + bytes(texts)


def _lay_out(root: Mapping[int, Any]) -> list[int]:
    """The units of a trie: each node's children at the first free base that has room for them."""
    units: dict[int, int] = {0: 0}
    bases: set[int] = set()
    waiting: list[tuple[int, Mapping[int, Any]]] = [(0, root)]
    start = 1
    while waiting:
        place, node = waiting.pop()
        base = start
        while base in bases or any(base ^ byte in units for byte in node):
            base += 1
        if place ^ base >= LARGEST_OFFSET:
            raise ValueError("too many replacements for one table")
        bases.add(base)
        units[place] |= (place ^ base) << OFFSET_SHIFT | (HAS_LEAF if 0 in node else 0)
        for byte, child in node.items():
            units[base ^ byte] = byte if byte else child | LEAF
            if byte:
                waiting.append((base ^ byte, child))
        while start in units or start in bases:
            start += 1
    return [units.get(place, 0) for place in range(-(-(max(units) + 1) // 256) * 256)]
