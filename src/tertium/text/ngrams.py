"""The n-grams of many texts at once, as numbers: found by sorting arrays, not by hashing tuples.

In an index (`NgramIndex`) an n-gram is known by the number of its first n-1 words and its last
word, so that order n is numbered from order n-1 in one sort, and its number leads back to its
beginning. Where only what two texts share is counted (`count_shared`), of many pairs and all orders
at once, a position becomes one number of 64 bits: its pair, the next symbols, its side. Sorted,
equal n-grams of a pair stand side by side for every order, since those of order n begin alike.
Nothing is hashed, so nothing collides; a pair with more distinct symbols than the bits hold is left
out.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tertium.arrays import BoolArray, IntArray

ABSENT = -1


@dataclass(frozen=True, eq=False)
class Located:
    """Where the n-grams of an index stand in some texts.

    `numbers[n-1][p]` is the n-gram that begins at word p of all texts laid end to end, `ABSENT`
    where it would cross the end of its text or is not in the index; `owner[p]` is the text.
    """

    numbers: tuple[IntArray, ...]  # orders x (words,)
    owner: IntArray  # (words,)


@dataclass(frozen=True, eq=False)
class NgramIndex:
    """A number for each n-gram of some texts, up to an order.

    `keys[n-1]` is sorted; the n-gram number i has the key `parent * len(words) + word`, of the
    number of its first n-1 words and of its last word.

    >>> index = NgramIndex.of([["a", "b", "a"], ["a", "b"]], order=2)
    >>> index.locate([["b", "a", "b", "c"]]).numbers
    (array([ 1,  0,  1, -1]), array([ 1,  0, -1, -1]))
    """

    words: dict[str, int]
    keys: tuple[IntArray, ...]

    @classmethod
    def of(cls, texts: Sequence[Sequence[str]], order: int) -> NgramIndex:
        """The index of all n-grams of the texts for n = 1 ... order."""
        words: dict[str, int] = {}
        for text in texts:
            for word in text:
                words.setdefault(word, len(words))
        codes, owner = _lay_out(texts, words)
        keys = [np.arange(len(words), dtype=np.int64)]
        numbers = codes
        for n in range(2, order + 1):
            candidates = _extend(numbers, codes, owner, n, len(words))
            keys.append(np.unique(candidates[candidates != ABSENT]))
            numbers = _look_up(keys[-1], candidates)
        return cls(words, tuple(keys))

    def locate(self, texts: Sequence[Sequence[str]]) -> Located:
        """Where the n-grams of the index stand in these texts."""
        codes, owner = _lay_out(texts, self.words)
        numbers = [codes]
        for n, keys in enumerate(self.keys[1:], start=2):
            candidates = _extend(numbers[-1], codes, owner, n, len(self.words))
            numbers.append(_look_up(keys, candidates))
        return Located(tuple(numbers), owner)

    def counts(self, located: Located) -> tuple[IntArray, ...]:
        """How often each n-gram of the index occurs in located texts, for each order."""
        return tuple(
            np.bincount(numbers[numbers != ABSENT], minlength=len(keys)).astype(np.int64)
            for numbers, keys in zip(located.numbers, self.keys, strict=True)
        )

    def parents(self, n: int) -> IntArray:
        """The number of the first n-1 words of each n-gram of an order of 2 or more."""
        return self.keys[n - 1] // len(self.words) if self.words else self.keys[n - 1]


def clipped_matches(
    numbers: IntArray, group: IntArray, others: IntArray, text: IntArray, groups: IntArray
) -> BoolArray:
    """Which n-grams are matched, each no more often than the text that has it most often.

    `numbers` and `group` are the n-grams of hypotheses and the segment of each, (words,); `others`
    and `text` those of references and the reference of each; `groups` gives the segment of each
    reference, (references,). Of several occurrences the first are matched.

    >>> hypothesis, reference = np.array([7, 7, 7, 8]), np.array([7, 7, 9, 7])
    >>> zeros, two = np.zeros(4, int), np.array([0, 0, 0, 1])  # the second reference has one 7
    >>> clipped_matches(hypothesis, zeros, reference, two, groups=np.array([0, 0]))
    array([ True,  True, False, False])
    """
    size = max(numbers.max(initial=0), others.max(initial=0)) + 1
    present = others != ABSENT
    owned, most = np.unique(text[present] * size + others[present], return_counts=True)
    ceiling_keys = groups[owned // size] * size + owned % size if len(owned) else owned
    order = np.lexsort((most, ceiling_keys))
    ceiling_keys, most = ceiling_keys[order], most[order]
    keys = np.where(numbers == ABSENT, ABSENT, group * size + numbers)
    # Equal keys ascend in `most`, so that the last of them is the highest.
    last = np.searchsorted(ceiling_keys, keys, side="right") - 1
    found = (last >= 0) & (numbers != ABSENT)
    found[found] = ceiling_keys[last[found]] == keys[found]
    matched = np.zeros(len(keys), dtype=np.bool_)
    matched[found] = _rank(keys[found]) < most[last[found]]
    return matched


def _rank(keys: IntArray) -> IntArray:
    """How many equal keys stand before each."""
    order = np.argsort(keys, kind="stable")
    ordered = keys[order]
    starts = np.searchsorted(ordered, ordered, side="left")
    ranks = np.empty(len(keys), dtype=np.int64)
    ranks[order] = np.arange(len(keys)) - starts
    return ranks


def _lay_out(texts: Sequence[Sequence[str]], words: dict[str, int]) -> tuple[IntArray, IntArray]:
    codes = [words.get(word, ABSENT) for text in texts for word in text]
    lengths = np.array([len(text) for text in texts], dtype=np.int64)
    return np.array(codes, dtype=np.int64), np.repeat(np.arange(len(texts)), lengths)


def _extend(numbers: IntArray, codes: IntArray, owner: IntArray, n: int, size: int) -> IntArray:
    """The keys of n-grams from the numbers of those one shorter; `ABSENT` where there is none."""
    keys = np.full(len(numbers), ABSENT, dtype=np.int64)
    begin, end = slice(0, max(len(numbers) - n + 1, 0)), slice(n - 1, None)
    whole = (owner[begin] == owner[end]) & (numbers[begin] != ABSENT) & (codes[end] != ABSENT)
    keys[begin] = np.where(whole, numbers[begin] * size + codes[end], ABSENT)
    return keys


def _look_up(keys: IntArray, candidates: IntArray) -> IntArray:
    """The place of each candidate among sorted keys, or `ABSENT`."""
    if not len(keys):
        return np.full(len(candidates), ABSENT, dtype=np.int64)
    places = np.minimum(np.searchsorted(keys, candidates), len(keys) - 1)
    return np.where(keys[places] == candidates, places, ABSENT)


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
    changes = np.full(len(keys) + 1, np.iinfo(np.uint64).max)  # what differs between neighbours
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
