"""The n-grams of many texts as numbers, found by sorting arrays, not by hashing tuples.

An n-gram is known by the number of its first n-1 words and its last word, so that order n is
numbered from order n-1 in one sort, and its number leads back to its beginning. What two texts
share is counted without numbers that last, in `shared_ngrams`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tertium.arrays import BoolArray, IntArray

ABSENT = -1


@dataclass(frozen=True, eq=False)
class NgramPositions:
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

    def locate(self, texts: Sequence[Sequence[str]]) -> NgramPositions:
        """Where the n-grams of the index stand in these texts."""
        codes, owner = _lay_out(texts, self.words)
        numbers = [codes]
        for n, keys in enumerate(self.keys[1:], start=2):
            candidates = _extend(numbers[-1], codes, owner, n, len(self.words))
            numbers.append(_look_up(keys, candidates))
        return NgramPositions(tuple(numbers), owner)

    def counts(self, located: NgramPositions) -> tuple[IntArray, ...]:
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
