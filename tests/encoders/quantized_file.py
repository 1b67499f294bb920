"""Write a tiny 4-bit checkpoint in the format that `e5.quantized_checkpoint` reads."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence

import numpy as np

HIDDEN, LAYERS, HEADS, INNER, ROWS, POSITIONS, TYPES = 32, 2, 2, 64, 40, 24, 2
SPECIAL_TOKENS = ("<s>", "<pad>", "</s>", "<unk>")
WORDS = ("▁", "▁the", "▁cat", "▁sat", "▁que", "ry", ":", "c", "a", "t", "s", "é", "!", "<mask>")
CHARACTER_MAP = {"\t": " ", "\u2581": " ", "\u0007": "", "！": "!", "ﬆ": "st", "ⅳ": "iv"}


def shapes() -> dict[str, tuple[int, ...]]:
    """Return the shapes of the tensors in the order of the file."""
    result: dict[str, tuple[int, ...]] = {
        "emb.word": (ROWS, HIDDEN),
        "emb.pos": (POSITIONS, HIDDEN),
        "emb.type": (TYPES, HIDDEN),
        "emb.ln.w": (HIDDEN,),
        "emb.ln.b": (HIDDEN,),
    }
    for layer in range(LAYERS):
        for part in ("q", "k", "v", "ao", "fi", "fo"):
            shape = {"fi": (INNER, HIDDEN), "fo": (HIDDEN, INNER)}.get(part, (HIDDEN, HIDDEN))
            result |= {f"l{layer}.{part}.w": shape, f"l{layer}.{part}.b": shape[:1]}
        for part in ("aln", "oln"):
            result |= {f"l{layer}.{part}.w": (HIDDEN,), f"l{layer}.{part}.b": (HIDDEN,)}
    return result


def tensors(seed: int = 0) -> dict[str, np.ndarray]:
    """Return random values; those that are quantized fit exactly into 4 bits."""
    random = np.random.default_rng(seed)
    values = {}
    for name, shape in shapes().items():
        if is_quantized(name):
            values[name] = (random.integers(-8, 8, shape) * 0.125).astype(np.float32)
        else:
            values[name] = random.normal(size=shape).astype(np.float32)
    return values


def is_quantized(name: str) -> bool:
    return name == "emb.word" or (name[0] == "l" and name.endswith(".w") and "ln" not in name)


def quantize(values: np.ndarray) -> bytes:
    """Encode blocks of 32 values: an fp16 scale, then low nibbles before high ones."""
    blocks = np.round(values.reshape(-1, 32) / 0.125).astype(np.int64) + 8
    scale = np.full((len(blocks), 1), 0.125, "<f2").view(np.uint8)
    nibbles = (blocks[:, :16] | blocks[:, 16:] << 4).astype(np.uint8)
    return np.concatenate([scale, nibbles], axis=1).tobytes()


def checkpoint_bytes(
    values: Mapping[str, np.ndarray] | None = None,
    *,
    magic: bytes = b"E5S1",
    version: int = 1,
    heads: int = HEADS,
    vocabulary: Sequence[str] = (*SPECIAL_TOKENS, *WORDS),
    text_length: int | None = None,
    map_length: int | None = None,
    counts: Mapping[str, int] | None = None,
    kinds: Mapping[str, int] | None = None,
    offsets: Mapping[str, int] | None = None,
) -> bytes:
    """Return the bytes of a checkpoint; the keyword arguments make it inconsistent."""
    values = tensors() if values is None else values
    head = magic + struct.pack(
        "<IiiiiiiifI", version, HIDDEN, LAYERS, heads, INNER, ROWS, POSITIONS, TYPES, 1e-12, 32
    )
    encoded = [token.encode() for token in vocabulary]
    ends = np.cumsum([0, *map(len, encoded)]).astype("<u4")
    scores = -np.arange(len(vocabulary), dtype="<f4") / 4
    head += struct.pack("<5i", len(vocabulary), 0, 2, 1, 3)
    head += struct.pack("<Q", int(ends[-1]) if text_length is None else text_length)
    head += ends.tobytes() + scores.tobytes() + b"".join(encoded)
    mapping = b"".join(
        struct.pack(f"<IB{len(new)}I", ord(old), len(new), *map(ord, new))
        for old, new in CHARACTER_MAP.items()
    )
    head += struct.pack(
        "<iI", len(CHARACTER_MAP), len(mapping) if map_length is None else map_length
    )
    head += mapping + struct.pack("<i", len(values))
    data_start = len(head) + sum(2 + len(name) + 21 for name in values)
    body = b""
    for name, value in values.items():
        data = quantize(value) if is_quantized(name) else value.astype("<f4").tobytes()
        head += struct.pack("<H", len(name)) + name.encode()
        head += struct.pack(
            "<BIQQ",
            (kinds or {}).get(name, int(is_quantized(name))),
            (counts or {}).get(name, value.size),
            (offsets or {}).get(name, data_start + len(body)),
            len(data),
        )
        body += data
    return head + body
