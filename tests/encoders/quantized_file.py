"""Write a tiny 4-bit checkpoint in the format that `e5.quantized_checkpoint` reads."""

from __future__ import annotations

import struct

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


def checkpoint_bytes() -> bytes:
    """Return the bytes of a checkpoint."""
    values = tensors()
    head = b"E5S1" + struct.pack(
        "<IiiiiiiifI", 1, HIDDEN, LAYERS, HEADS, INNER, ROWS, POSITIONS, TYPES, 1e-12, 32
    )
    vocabulary = (*SPECIAL_TOKENS, *WORDS)
    encoded = [token.encode() for token in vocabulary]
    ends = np.cumsum([0, *map(len, encoded)]).astype("<u4")
    scores = -np.arange(len(vocabulary), dtype="<f4") / 4
    head += struct.pack("<5i", len(vocabulary), 0, 2, 1, 3)
    head += struct.pack("<Q", int(ends[-1]))
    head += ends.tobytes() + scores.tobytes() + b"".join(encoded)
    mapping = b"".join(
        struct.pack(f"<IB{len(new)}I", ord(old), len(new), *map(ord, new))
        for old, new in CHARACTER_MAP.items()
    )
    head += struct.pack("<iI", len(CHARACTER_MAP), len(mapping))
    head += mapping + struct.pack("<i", len(values))
    data_start = len(head) + sum(2 + len(name) + 21 for name in values)
    body = b""
    for name, value in values.items():
        data = quantize(value) if is_quantized(name) else value.astype("<f4").tobytes()
        head += struct.pack("<H", len(name)) + name.encode()
        head += struct.pack(
            "<BIQQ",
            int(is_quantized(name)),
            value.size,
            data_start + len(body),
            len(data),
        )
        body += data
    return head + body
