"""Write a tiny model in the layout of `tertium.encoders.e5.quantized_checkpoint`, for tests that read it."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence

import numpy as np

HIDDEN, LAYERS, HEADS, WIDE, ROWS, POSITIONS, TYPES = 32, 2, 2, 64, 40, 24, 2
SPECIALS = ("<s>", "<pad>", "</s>", "<unk>")
WORDS = ("▁", "▁the", "▁cat", "▁sat", "▁que", "ry", ":", "c", "a", "t", "s", "é", "!", "<mask>")
NORMAL_FORM = {"\t": " ", "\u2581": " ", "\u0007": "", "！": "!", "ﬆ": "st", "ⅳ": "iv"}


def shapes() -> dict[str, tuple[int, ...]]:
    """The tensors of the tiny network in order of the file."""
    found: dict[str, tuple[int, ...]] = {
        "emb.word": (ROWS, HIDDEN),
        "emb.pos": (POSITIONS, HIDDEN),
        "emb.type": (TYPES, HIDDEN),
        "emb.ln.w": (HIDDEN,),
        "emb.ln.b": (HIDDEN,),
    }
    for layer in range(LAYERS):
        for part in ("q", "k", "v", "ao", "fi", "fo"):
            shape = {"fi": (WIDE, HIDDEN), "fo": (HIDDEN, WIDE)}.get(part, (HIDDEN, HIDDEN))
            found |= {f"l{layer}.{part}.w": shape, f"l{layer}.{part}.b": shape[:1]}
        for part in ("aln", "oln"):
            found |= {f"l{layer}.{part}.w": (HIDDEN,), f"l{layer}.{part}.b": (HIDDEN,)}
    return found


def tensors(seed: int = 0) -> dict[str, np.ndarray]:
    """Values that four bits hold exactly where they are packed: halves from -4 to 3.5."""
    random = np.random.default_rng(seed)
    values = {}
    for name, shape in shapes().items():
        if is_packed(name):
            values[name] = (random.integers(-8, 8, shape) * 0.125).astype(np.float32)
        else:
            values[name] = random.normal(size=shape).astype(np.float32)
    return values


def is_packed(name: str) -> bool:
    return name == "emb.word" or (name[0] == "l" and name.endswith(".w") and "ln" not in name)


def pack(values: np.ndarray) -> bytes:
    """Four-bit blocks of 32 values: a half-precision scale, then low nibbles before high ones."""
    blocks = np.round(values.reshape(-1, 32) / 0.125).astype(np.int64) + 8
    scale = np.full((len(blocks), 1), 0.125, "<f2").view(np.uint8)
    nibbles = (blocks[:, :16] | blocks[:, 16:] << 4).astype(np.uint8)
    return np.concatenate([scale, nibbles], axis=1).tobytes()


def packed_bytes(
    values: Mapping[str, np.ndarray] | None = None,
    *,
    magic: bytes = b"E5S1",
    version: int = 1,
    heads: int = HEADS,
    pieces: Sequence[str] = (*SPECIALS, *WORDS),
    text_length: int | None = None,
    map_length: int | None = None,
    counts: Mapping[str, int] | None = None,
    kinds: Mapping[str, int] | None = None,
    offsets: Mapping[str, int] | None = None,
) -> bytes:
    """A file; the keywords make it lie about itself."""
    values = tensors() if values is None else values
    head = magic + struct.pack(
        "<IiiiiiiifI", version, HIDDEN, LAYERS, heads, WIDE, ROWS, POSITIONS, TYPES, 1e-12, 32
    )
    encoded = [piece.encode() for piece in pieces]
    ends = np.cumsum([0, *map(len, encoded)]).astype("<u4")
    scores = -np.arange(len(pieces), dtype="<f4") / 4
    head += struct.pack("<5i", len(pieces), 0, 2, 1, 3)
    head += struct.pack("<Q", int(ends[-1]) if text_length is None else text_length)
    head += ends.tobytes() + scores.tobytes() + b"".join(encoded)
    forms = b"".join(
        struct.pack(f"<IB{len(new)}I", ord(old), len(new), *map(ord, new))
        for old, new in NORMAL_FORM.items()
    )
    head += struct.pack("<iI", len(NORMAL_FORM), len(forms) if map_length is None else map_length)
    head += forms + struct.pack("<i", len(values))
    place = len(head) + sum(2 + len(name) + 21 for name in values)
    backbone = b""
    for name, value in values.items():
        data = pack(value) if is_packed(name) else value.astype("<f4").tobytes()
        head += struct.pack("<H", len(name)) + name.encode()
        head += struct.pack(
            "<BIQQ",
            (kinds or {}).get(name, int(is_packed(name))),
            (counts or {}).get(name, value.size),
            (offsets or {}).get(name, place + len(backbone)),
            len(data),
        )
        backbone += data
    return head + backbone
