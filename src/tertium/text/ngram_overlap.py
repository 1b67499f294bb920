"""Counts of n-grams that two texts share, for many pairs and all orders at once.

Each position becomes one 64-bit key: its pair, the next symbols, its side. After sorting, equal
n-grams of a pair are adjacent for every order, since n-grams of order n share a prefix. Nothing is
hashed, so there are no collisions; pairs with too many distinct symbols for the bits are skipped.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from tertium.core.arrays import IntArray

ABSENT = -1  # instead of counts, for skipped pairs
CHUNK_SYMBOLS = 1 << 15  # per sort, so that the keys stay in the processor cache
KEY_BITS = 64
SYMBOL_BITS = 32  # of the given symbols
FIRST_CODE = 2  # of a symbol in a key; lower codes mark the end of a text
Keys = NDArray[np.uint64]


def count_shared(symbols: IntArray, lengths: IntArray, order: int) -> IntArray:
    """Count the n-grams that each pair of texts shares, with minimum counts, (pairs, order).

    `symbols` are integers from 0, of all texts concatenated; `lengths` are the text lengths: left
    and right text of the first pair, of the second, and so on. A row of `ABSENT` means that a pair
    has too many distinct symbols.

    >>> symbols = np.array([0, 1, 0, 1, 0, 1, 2, 0])  # abab and abca
    >>> count_shared(symbols, np.array([4, 4]), order=3)
    array([[3, 1, 0]])
    """
    shared = np.zeros((len(lengths) // 2, order), dtype=np.int64)
    ends = np.cumsum(lengths)
    for first, last in _chunks(ends[1::2]) if order else ():
        begin = ends[2 * first - 1] if first else 0
        part = slice(begin, ends[2 * last - 1])
        sizes = lengths[2 * first : 2 * last]
        shared[first:last] = _count_chunk(symbols[part].astype(np.int64), sizes, order)
    return shared


def _chunks(ends: IntArray) -> Iterator[tuple[int, int]]:
    """Yield ranges of pairs with at most `CHUNK_SYMBOLS` symbols, or a single pair."""
    first = 0
    while first < len(ends):
        passed = ends[first - 1] if first else 0
        last = max(first + 1, int(np.searchsorted(ends, passed + CHUNK_SYMBOLS, side="right")))
        yield first, last
        first = last


def _count_chunk(symbols: IntArray, lengths: IntArray, order: int) -> IntArray:
    pairs = len(lengths) // 2
    symbol_bits = (KEY_BITS - 1 - (pairs - 1).bit_length()) // order
    max_code = (1 << symbol_bits) - 1
    codes, highest = _renumber(symbols)
    if highest <= max_code:
        return _count_runs(codes, lengths, order, highest.bit_length())
    pair_lengths = lengths[0::2] + lengths[1::2]
    codes, tops = _renumber_pairs(symbols, pair_lengths)
    fits = tops <= max_code
    shared = np.full((pairs, order), ABSENT, dtype=np.int64)
    if not fits.any():
        return shared
    bits = int(tops[fits].max(initial=1)).bit_length()
    chosen = codes[np.repeat(fits, pair_lengths)]
    shared[fits] = _count_runs(chosen, lengths[np.repeat(fits, 2)], order, bits)
    return shared


def _renumber(symbols: IntArray) -> tuple[Keys, int]:
    """Number symbols from `FIRST_CODE` without gaps; return the codes and the highest code."""
    is_used = np.zeros(int(symbols.max(initial=0)) + 1, dtype=np.bool_)
    is_used[symbols] = True
    alphabet = np.flatnonzero(is_used)
    numbers = np.empty(len(is_used), dtype=np.uint64)
    numbers[alphabet] = np.arange(FIRST_CODE, FIRST_CODE + len(alphabet))
    return numbers[symbols], FIRST_CODE - 1 + len(alphabet)


def _renumber_pairs(symbols: IntArray, lengths: IntArray) -> tuple[Keys, IntArray]:
    """Number symbols from `FIRST_CODE` within each pair; also return the highest code of each."""
    owner = np.repeat(np.arange(len(lengths)), lengths)
    keys = owner << SYMBOL_BITS | symbols
    order = np.argsort(keys)
    new = np.diff(keys[order], prepend=-1) != 0
    variety = np.bincount(owner[order], new, len(lengths)).astype(np.int64)
    codes = np.empty(len(symbols), dtype=np.uint64)
    before = np.repeat(np.cumsum(variety) - variety, lengths)
    codes[order] = np.cumsum(new) - before + (FIRST_CODE - 1)
    return codes, variety + (FIRST_CODE - 1)


def _count_runs(codes: Keys, lengths: IntArray, order: int, bits: int) -> IntArray:
    """Count shared n-grams by runs of equal keys; a symbol has `bits` bits."""
    shared = np.zeros((len(lengths) // 2, order), dtype=np.int64)
    keys = _make_keys(codes, lengths, order, bits)
    keys.sort()
    ends = np.cumsum(lengths)[1::2]
    begins = np.concatenate([[0], ends[:-1]])
    filled = np.flatnonzero(begins < ends)  # pairs with symbols
    edges = np.arange(len(keys) + 1)  # of runs; initially each position is a run
    changes = np.full(len(keys) + 1, np.iinfo(np.uint64).max)  # bits that differ between neighbors
    np.bitwise_xor(keys[1:], keys[:-1], out=changes[1:-1])
    lefts = np.zeros(len(keys) + 1, dtype=np.int64)
    np.cumsum((keys & np.uint64(1)).astype(np.int64), out=lefts[1:])
    for n in range(order, 0, -1):
        # indices, since irregular boolean masks are slow
        run_starts = np.flatnonzero(changes >= np.uint64(1 << bits * (order - n) + 1))
        edges, changes, lefts = edges[run_starts], changes[run_starts], lefts[run_starts]
        left = np.diff(lefts)
        both = np.minimum(left, np.diff(edges) - left)
        starts = np.searchsorted(edges, begins[filled])
        shared[filled, n - 1] = np.add.reduceat(both, starts)
    return shared


def _make_keys(codes: Keys, lengths: IntArray, order: int, bits: int) -> Keys:
    """Compute the key of each position: its pair, the next symbols, and 1 for the left text.

    After the end of a text come codes that no symbol has, 0 for left and 1 for right texts, so that
    incomplete n-grams are never shared.
    """
    grams = codes << np.uint64(bits * (order - 1))
    for n in range(1, min(order, len(codes))):
        grams[:-n] |= codes[n:] << np.uint64(bits * (order - 1 - n))
    ends = np.cumsum(lengths)
    right = np.arange(len(lengths), dtype=np.uint64) & np.uint64(1)
    for left in range(1, order):
        long = lengths >= left
        filler = sum(1 << bits * n for n in range(order - left))
        beyond = np.uint64((1 << bits * (order - left)) - 1)
        places = ends[long] - left
        grams[places] = grams[places] & ~beyond | right[long] * np.uint64(filler)
    pair = np.arange(len(lengths), dtype=np.uint64) >> np.uint64(1)
    owner = pair << np.uint64(bits * order + 1) | right ^ np.uint64(1)
    keys: Keys = np.repeat(owner, lengths) | grams << np.uint64(1)
    return keys
