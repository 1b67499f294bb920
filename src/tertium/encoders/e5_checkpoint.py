"""Convert the 4-bit checkpoint of multilingual-e5 into a model folder.

The checkpoint is read only if it has the hash on its card, so its content is not checked again. The
little-endian file has a header of sizes, the tokens of a unigram tokenizer with their scores, a
character map for text normalization, and a directory of tensors.

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
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tertium.core.atomic import open_atomic, write_text
from tertium.core.fields import read_json_object

HEADER = "<4sI7ifI"  # magic, version, sizes, epsilon of norms, weights that share one scale
# By their names in config.json.
SIZES = """
hidden_size num_hidden_layers num_attention_heads intermediate_size vocab_size
max_position_embeddings type_vocab_size
""".split()
BLOCK = 32  # weights that share one scale
BLOCK_TYPE = np.dtype([("scale", "<f2"), ("nibbles", "u1", BLOCK // 2)])
HAS_LEAF = 1 << 8
LEAF = 1 << 31
OFFSET_SHIFT = 10
WORD_START = "\u2581"  # in the vocabulary
# Names of tensors in the checkpoint and in the model folder: of embeddings, and of each layer.
EMBEDDING_NAMES = """\
emb.word embeddings.word_embeddings.weight
emb.pos  embeddings.position_embeddings.weight
emb.type embeddings.token_type_embeddings.weight
emb.ln.w embeddings.LayerNorm.weight
emb.ln.b embeddings.LayerNorm.bias
"""
LAYER_NAMES = """\
q   attention.self.query
k   attention.self.key
v   attention.self.value
ao  attention.output.dense
aln attention.output.LayerNorm
fi  intermediate.dense
fo  output.dense
oln output.LayerNorm
"""
EMBEDDING_TENSORS = dict(line.split() for line in EMBEDDING_NAMES.splitlines())
LAYER_TENSORS = dict(line.split() for line in LAYER_NAMES.splitlines())


class _Reader:
    """A read position in the bytes of a file."""

    def __init__(self, data: NDArray[np.uint8]) -> None:
        self.data = data
        self._position = 0

    def values(self, layout: str) -> tuple[Any, ...]:
        return struct.unpack(layout, self.array("u1", struct.calcsize(layout)).tobytes())

    def array(self, dtype: str, count: int) -> NDArray[Any]:
        start = self._position
        self._position += np.dtype(dtype).itemsize * count
        return self.data[start : self._position].view(dtype)


def unpack_model(checkpoint: Path, folder: Path) -> None:
    """Write the weights, config and tokenizer of a checkpoint into a model folder.

    The settings are those of multilingual-e5-small, with the sizes in the checkpoint.
    """
    reader = _Reader(np.memmap(checkpoint, np.uint8, "r"))
    _, _, *counts, epsilon, _ = reader.values(HEADER)
    sizes = dict(zip(SIZES, counts, strict=True))
    settings = read_json_object(Path(__file__).with_name("e5") / "settings.json")
    tokenizer = _read_tokenizer(reader, settings["special_tokens_map.json"])
    _write_weights(folder / "model.safetensors", _read_tensors(reader), sizes)
    write_text(folder / "tokenizer.json", tokenizer.to_str())
    epsilon = float(f"{epsilon:.6g}")  # as written in decimals, not in binary
    settings["config.json"] |= {**sizes, "layer_norm_eps": epsilon}
    for name, values in settings.items():
        write_text(folder / name, json.dumps(values, indent=2) + "\n", make_folder=True)


def _read_tensors(reader: _Reader) -> dict[str, NDArray[Any]]:
    """Return the tensors as they are stored, by name: flat, in fp32 or in blocks of 4 bits."""
    tensors = {}
    (entries,) = reader.values("<i")
    for _ in range(entries):
        (length,) = reader.values("<H")
        name = reader.array("u1", length).tobytes().decode()
        is_quantized, _, start, size = reader.values("<BIQQ")
        stored = reader.data[start : start + size]
        tensors[name] = stored.view(BLOCK_TYPE if is_quantized else "<f4")
    return tensors


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


def _write_weights(
    file: Path, tensors: Mapping[str, NDArray[Any]], sizes: Mapping[str, int]
) -> None:
    """Write safetensors: the length of the header, the header, then the values in its order."""
    names = dict(EMBEDDING_TENSORS)
    for layer in range(sizes["num_hidden_layers"]):
        for part, name in LAYER_TENSORS.items():
            full_name = f"encoder.layer.{layer}.{name}"
            names[f"l{layer}.{part}.w"] = f"{full_name}.weight"
            names[f"l{layer}.{part}.b"] = f"{full_name}.bias"
    header: dict[str, Any] = {"__metadata__": {"format": "pt"}}
    end = 0
    for stored_name, name in names.items():
        stored = tensors[stored_name]
        count = stored.size * (BLOCK if stored.dtype == BLOCK_TYPE else 1)
        is_vector = "LayerNorm" in name or name.endswith("bias")
        width = sizes["intermediate_size" if ".fo." in stored_name else "hidden_size"]
        shape = [count] if is_vector else [count // width, width]
        start = end
        end = end + 4 * count
        header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [start, end]}
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)  # align the values for memory mapping
    with open_atomic(file, make_folder=True) as stream:
        stream.write(struct.pack("<Q", len(text)) + text)
        for stored_name in names:
            stored = tensors[stored_name]
            values = unpack_blocks(stored) if stored.dtype == BLOCK_TYPE else stored
            stream.write(values.tobytes())


def _read_tokenizer(reader: _Reader, special_tokens: Mapping[str, str]) -> Any:
    """Build XLM-R's tokenizer: normalize, split at spaces, mark word starts, unigram search."""
    from tokenizers import AddedToken, Regex, Tokenizer, models, normalizers, pre_tokenizers
    from tokenizers.processors import TemplateProcessing

    count, first_id, last_id, _, unknown_id = reader.values("<5i")
    (length,) = reader.values("<Q")
    offsets = reader.array("<u4", count + 1)
    scores = reader.array("<f4", count)
    texts = reader.array("u1", length).tobytes()
    vocabulary = [texts[start:end].decode() for start, end in pairwise(offsets.tolist())]
    tokenizer = Tokenizer(
        models.Unigram(list(zip(vocabulary, scores.tolist(), strict=True)), unknown_id, False)
    )
    tokenizer.normalizer = normalizers.Sequence(
        [
            normalizers.NFC(),  # the character map has only single code points
            normalizers.Precompiled(compile_replacements(_read_character_map(reader))),
            normalizers.Replace(Regex(" {2,}"), " "),
        ]
    )
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.WhitespaceSplit(),
            pre_tokenizers.Metaspace(replacement=WORD_START, prepend_scheme="always"),
        ]
    )
    for token in special_tokens.values():
        tokenizer.add_special_tokens([AddedToken(token, special=True, normalized=False)])
    first = special_tokens["bos_token"]
    last = special_tokens["eos_token"]
    tokenizer.post_processor = TemplateProcessing(
        single=f"{first} $A {last}",
        pair=f"{first} $A {last} {last} $B {last}",
        special_tokens=[(first, first_id), (last, last_id)],
    )
    return tokenizer


def _read_character_map(reader: _Reader) -> dict[str, str]:
    entries, _ = reader.values("<iI")
    character_map = {}
    for _ in range(entries):
        code_point, count = reader.values("<IB")
        character_map[chr(code_point)] = "".join(map(chr, reader.array("<u4", count)))
    return character_map


def compile_replacements(replacements: Mapping[str, str]) -> bytes:
    """Compile a normalization table; keys must be non-empty, without zero characters."""
    texts = bytearray()
    positions = dict[str, int]()
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


def _build_double_array(root: Mapping[int, Any]) -> Sequence[int]:
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
        bases.add(base)
        units[position] |= (position ^ base) << OFFSET_SHIFT | (HAS_LEAF if 0 in node else 0)
        for byte, child in node.items():
            units[base ^ byte] = byte if byte else child | LEAF
            if byte:
                queue.append((base ^ byte, child))
        while start in units or start in bases:
            start += 1
    return [units.get(position, 0) for position in range(-(-(max(units) + 1) // 256) * 256)]
