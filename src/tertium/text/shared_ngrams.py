"""How many n-grams two texts share, of many pairs and all orders at once.

A position becomes one number of 64 bits: its pair, the next symbols, its side. Sorted, equal
n-grams of a pair stand side by side for every order, since those of order n begin alike. Nothing is
hashed, so nothing collides; a pair with more distinct symbols than the bits hold is left out.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from tertium.arrays import IntArray

ABSENT = -1  # in place of counts
CHUNK = 1 << 15  # symbols at once: their numbers stay in the processor's cache: fast sorts
KEY = 64  # bits
SYMBOL = 32  # bits of a symbol as it is given
FIRST = 2  # the lowest number of a symbol inside of a key: those below stand for the end of a text
Keys = NDArray[np.uint64]


def count_shared(symbols: IntArray, lengths: IntArray, order: int) -> IntArray:
    """How many n-grams each pair shares, each as often as both have it, (pairs, order).

    `symbols` are those of all texts laid end to end, numbers from 0; `lengths` are the lengths of
    the texts, left and right of the first pair, of the second, and so on. A row of `ABSENT`s says
    that a pair has too many distinct symbols to be counted in this way.

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
    """From which pair to which, so that a chunk has few symbols, or a single pair."""
    first = 0
    while first < len(ends):
        passed = ends[first - 1] if first else 0
        last = max(first + 1, int(np.searchsorted(ends, passed + CHUNK, side="right")))
        yield first, last
        first = last


def _count_chunk(symbols: IntArray, lengths: IntArray, order: int) -> IntArray:
    pairs = len(lengths) // 2
    room = (KEY - 1 - (pairs - 1).bit_length()) // order  # bits for a symbol
    most = (1 << room) - 1  # the highest number that they hold
    codes, highest = _renumber(symbols)
    if highest <= most:
        return _count_runs(codes, lengths, order, highest.bit_length())
    held = lengths[0::2] + lengths[1::2]
    codes, tops = _renumber_pairs(symbols, held)
    fits = tops <= most
    shared = np.full((pairs, order), ABSENT, dtype=np.int64)
    if not fits.any():  # no key holds a bit for each of so many symbols
        return shared
    bits = int(tops[fits].max(initial=1)).bit_length()
    chosen = codes[np.repeat(fits, held)]
    shared[fits] = _count_runs(chosen, lengths[np.repeat(fits, 2)], order, bits)
    return shared


def _renumber(symbols: IntArray) -> tuple[Keys, int]:
    """Symbols numbered from `FIRST` without gaps, and the highest number."""
    seen = np.zeros(int(symbols.max(initial=0)) + 1, dtype=np.bool_)
    seen[symbols] = True
    alphabet = np.flatnonzero(seen)
    numbers = np.empty(len(seen), dtype=np.uint64)
    numbers[alphabet] = np.arange(FIRST, FIRST + len(alphabet))
    return numbers[symbols], FIRST - 1 + len(alphabet)


def _renumber_pairs(symbols: IntArray, lengths: IntArray) -> tuple[Keys, IntArray]:
    """Symbols numbered from `FIRST` within each pair, and the highest number of each."""
    owner = np.repeat(np.arange(len(lengths)), lengths)
    keys = owner << SYMBOL | symbols
    order = np.argsort(keys)
    new = np.diff(keys[order], prepend=-1) != 0
    variety = np.bincount(owner[order], new, len(lengths)).astype(np.int64)
    codes = np.empty(len(symbols), dtype=np.uint64)
    before = np.repeat(np.cumsum(variety) - variety, lengths)
    codes[order] = np.cumsum(new) - before + (FIRST - 1)
    return codes, variety + (FIRST - 1)


def _count_runs(codes: Keys, lengths: IntArray, order: int, bits: int) -> IntArray:
    """Shared n-grams by runs of equal numbers, where a symbol has so many bits."""
    shared = np.zeros((len(lengths) // 2, order), dtype=np.int64)
    keys = _make_keys(codes, lengths, order, bits)
    keys.sort()
    ends = np.cumsum(lengths)[1::2]
    begins = np.concatenate([[0], ends[:-1]])
    filled = np.flatnonzero(begins < ends)  # pairs with anything in them
    edges = np.arange(len(keys) + 1)  # of runs; at first each position is one
    changes = np.full(len(keys) + 1, np.iinfo(np.uint64).max)  # what differs between neighbors
    np.bitwise_xor(keys[1:], keys[:-1], out=changes[1:-1])
    lefts = np.zeros(len(keys) + 1, dtype=np.int64)
    np.cumsum((keys & np.uint64(1)).astype(np.int64), out=lefts[1:])
    for n in range(order, 0, -1):
        # by their places, since masks are slow where they follow no pattern
        apart = np.flatnonzero(changes >= np.uint64(1 << bits * (order - n) + 1))
        edges, changes, lefts = edges[apart], changes[apart], lefts[apart]
        left = np.diff(lefts)
        both = np.minimum(left, np.diff(edges) - left)
        starts = np.searchsorted(edges, begins[filled])
        shared[filled, n - 1] = np.add.reduceat(both, starts)
    return shared


def _make_keys(codes: Keys, lengths: IntArray, order: int, bits: int) -> Keys:
    """The number of each position: its pair, its next symbols, 1 where it is of the left text.

    Past the end of a text stand symbols that no text has, 0 for left and 1 for right ones, so that
    what is no n-gram is never shared.
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
