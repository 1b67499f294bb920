"""Compile a map of text replacements into the table that SentencePiece normalises text with.

The table is a double-array trie over the bytes of the keys, whose leaves say where in a run of
zero-ended texts the replacement begins. `tokenizers` reads the same table (`Precompiled`).

A unit of the array has 32 bits: the byte that leads to it (bits 0-7), whether a key ends there
(bit 8), and by what its place is combined to give its children's (bits 10-30). A child of byte c
lies at `base ^ c`, a leaf at `base`; no two nodes share a base, so a byte alone tells whether a
child is one's own.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import Any

HAS_LEAF = 1 << 8
LEAF = 1 << 31
OFFSET_SHIFT = 10
LARGEST_OFFSET = 1 << 21


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
