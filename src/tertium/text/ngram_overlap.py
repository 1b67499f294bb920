"""Counts of n-grams that two texts share, for many pairs and all orders at once.

Each position becomes one 64-bit key: its pair, the next symbols, its side. After sorting, equal
n-grams of a pair are adjacent for every order, since n-grams of order n share a prefix. Nothing is
hashed, so there are no collisions; pairs with too many distinct symbols for the bits are skipped.

`NgramIndex` numbers the n-grams of many texts by sorting arrays. An n-gram is identified by the
number of its first n-1 words and its last word. Order n is thus numbered from order n-1 in one
sort, and a number leads back to its prefix.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tertium.core.arrays import BoolArray, IntArray

NOT_COUNTED = -1  # instead of counts, for skipped pairs
CHUNK_SYMBOLS = 1 << 15  # per sort, so that the keys stay in the processor cache
KEY_BITS = 64
SYMBOL_BITS = 32  # of the given symbols
FIRST_CODE = 2  # of a symbol in a key; lower codes mark the end of a text
Keys = NDArray[np.uint64]


def count_shared(symbols: IntArray, lengths: IntArray, order: int) -> IntArray:
    """Count the n-grams that each pair of texts shares, with minimum counts, (pairs, order).

    `symbols` are integers from 0, of all texts concatenated; `lengths` are the text lengths: left
    and right text of the first pair, of the second, and so on. A row of `NOT_COUNTED` means that a
    pair has too many distinct symbols.

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
    shared = np.full((pairs, order), NOT_COUNTED, dtype=np.int64)
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
        edges = edges[run_starts]
        changes = changes[run_starts]
        lefts = lefts[run_starts]
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


NOT_INDEXED = -1


@dataclass(frozen=True, eq=False)
class NgramPositions:
    """The positions of indexed n-grams in some texts.

    `numbers[n-1][p]` is the n-gram that begins at word p of the concatenated texts, `NOT_INDEXED`
    if it would cross the end of its text or is not in the index. `owner[p]` is the index of the
    text.
    """

    numbers: tuple[IntArray, ...]  # orders x (words,)
    owner: IntArray  # (words,)


@dataclass(frozen=True, eq=False)
class NgramIndex:
    """Numbers for all n-grams of some texts, up to an order.

    `keys[n-1]` is sorted. The n-gram with number i has the key `parent * len(words) + word`: the
    number of its first n-1 words, and its last word.

    >>> index = NgramIndex.of([["a", "b", "a"], ["a", "b"]], order=2)
    >>> index.locate([["b", "a", "b", "c"]]).numbers
    (array([ 1,  0,  1, -1]), array([ 1,  0, -1, -1]))
    """

    words: dict[str, int]
    keys: tuple[IntArray, ...]

    @classmethod
    def of(cls, texts: Sequence[Sequence[str]], order: int) -> NgramIndex:
        """Index all n-grams of the texts for n = 1 ... order."""
        words: dict[str, int] = {}
        for text in texts:
            for word in text:
                words.setdefault(word, len(words))
        codes, owner = _concatenate(texts, words)
        keys = [np.arange(len(words), dtype=np.int64)]
        numbers = codes
        for n in range(2, order + 1):
            candidates = _extend(numbers, codes, owner, n, len(words))
            keys.append(np.unique(candidates[candidates != NOT_INDEXED]))
            numbers = _look_up(keys[-1], candidates)
        return cls(words, tuple(keys))

    def locate(self, texts: Sequence[Sequence[str]]) -> NgramPositions:
        """Find the n-grams of the index in texts."""
        codes, owner = _concatenate(texts, self.words)
        numbers = [codes]
        for n, keys in enumerate(self.keys[1:], start=2):
            candidates = _extend(numbers[-1], codes, owner, n, len(self.words))
            numbers.append(_look_up(keys, candidates))
        return NgramPositions(tuple(numbers), owner)

    def counts(self, positions: NgramPositions) -> tuple[IntArray, ...]:
        """Count the occurrences of each n-gram of the index, for each order."""
        return tuple(
            np.bincount(numbers[numbers != NOT_INDEXED], minlength=len(keys)).astype(np.int64)
            for numbers, keys in zip(positions.numbers, self.keys, strict=True)
        )

    def parents(self, n: int) -> IntArray:
        """Return the number of the first n-1 words of each n-gram, for n of 2 or more."""
        return self.keys[n - 1] // len(self.words) if self.words else self.keys[n - 1]


def clipped_matches(
    numbers: IntArray,
    group: IntArray,
    reference_numbers: IntArray,
    text: IntArray,
    groups: IntArray,
) -> BoolArray:
    """Mark matched n-grams; counts are clipped to the maximum count in any one reference.

    `numbers` and `group` are the n-grams of hypotheses and the segment of each, (words,);
    `reference_numbers` and `text` are those of references and the reference of each; `groups` is
    the segment of each reference, (references,). The first occurrences are matched.

    >>> hypothesis, reference = np.array([7, 7, 7, 8]), np.array([7, 7, 9, 7])
    >>> zeros, two = np.zeros(4, int), np.array([0, 0, 0, 1])  # the second reference has one 7
    >>> clipped_matches(hypothesis, zeros, reference, two, groups=np.array([0, 0]))
    array([ True,  True, False, False])
    """
    size = max(numbers.max(initial=0), reference_numbers.max(initial=0)) + 1
    is_present = reference_numbers != NOT_INDEXED
    by_text, counts = np.unique(
        text[is_present] * size + reference_numbers[is_present], return_counts=True
    )
    limit_keys = groups[by_text // size] * size + by_text % size if len(by_text) else by_text
    order = np.lexsort((counts, limit_keys))
    limit_keys = limit_keys[order]
    counts = counts[order]
    keys = np.where(numbers == NOT_INDEXED, NOT_INDEXED, group * size + numbers)
    # Equal keys are sorted by count, so the last of them has the highest count.
    last = np.searchsorted(limit_keys, keys, side="right") - 1
    in_reference = (last >= 0) & (numbers != NOT_INDEXED)
    in_reference[in_reference] = limit_keys[last[in_reference]] == keys[in_reference]
    is_match = np.zeros(len(keys), dtype=np.bool_)
    is_match[in_reference] = _occurrence_index(keys[in_reference]) < counts[last[in_reference]]
    return is_match


def _occurrence_index(keys: IntArray) -> IntArray:
    order = np.argsort(keys, kind="stable")
    ordered = keys[order]
    starts = np.searchsorted(ordered, ordered, side="left")
    ranks = np.empty(len(keys), dtype=np.int64)
    ranks[order] = np.arange(len(keys)) - starts
    return ranks


def _concatenate(texts: Sequence[Sequence[str]], ids: dict[str, int]) -> tuple[IntArray, IntArray]:
    codes = [ids.get(word, NOT_INDEXED) for text in texts for word in text]
    lengths = np.array([len(text) for text in texts], dtype=np.int64)
    return np.array(codes, dtype=np.int64), np.repeat(np.arange(len(texts)), lengths)


def _extend(numbers: IntArray, codes: IntArray, owner: IntArray, n: int, size: int) -> IntArray:
    """Compute the keys of n-grams from the numbers of their prefixes, or `NOT_INDEXED`."""
    keys = np.full(len(numbers), NOT_INDEXED, dtype=np.int64)
    begin = slice(0, max(len(numbers) - n + 1, 0))
    end = slice(n - 1, None)
    is_complete = (numbers[begin] != NOT_INDEXED) & (codes[end] != NOT_INDEXED)
    is_complete &= owner[begin] == owner[end]
    keys[begin] = np.where(is_complete, numbers[begin] * size + codes[end], NOT_INDEXED)
    return keys


def _look_up(keys: IntArray, candidates: IntArray) -> IntArray:
    """Return the index of each candidate in sorted keys, or `NOT_INDEXED`."""
    if not len(keys):
        return np.full(len(candidates), NOT_INDEXED, dtype=np.int64)
    indices = np.minimum(np.searchsorted(keys, candidates), len(keys) - 1)
    return np.where(keys[indices] == candidates, indices, NOT_INDEXED)
