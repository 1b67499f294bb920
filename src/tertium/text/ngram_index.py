"""An index that numbers the n-grams of many texts by sorting arrays.

An n-gram is identified by the number of its first n-1 words and its last word. Order n is thus
numbered from order n-1 in one sort, and a number leads back to its prefix. `ngram_overlap` counts
n-grams that two texts share without an index.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tertium.core.arrays import BoolArray, IntArray

ABSENT = -1


@dataclass(frozen=True, eq=False)
class NgramPositions:
    """The positions of indexed n-grams in some texts.

    `numbers[n-1][p]` is the n-gram that begins at word p of the concatenated texts, `ABSENT` if it
    would cross the end of its text or is not in the index. `owner[p]` is the index of the text.
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
            keys.append(np.unique(candidates[candidates != ABSENT]))
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
            np.bincount(numbers[numbers != ABSENT], minlength=len(keys)).astype(np.int64)
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
    is_present = reference_numbers != ABSENT
    by_text, counts = np.unique(
        text[is_present] * size + reference_numbers[is_present], return_counts=True
    )
    limit_keys = groups[by_text // size] * size + by_text % size if len(by_text) else by_text
    order = np.lexsort((counts, limit_keys))
    limit_keys, counts = limit_keys[order], counts[order]
    keys = np.where(numbers == ABSENT, ABSENT, group * size + numbers)
    # Equal keys are sorted by count, so the last of them has the highest count.
    last = np.searchsorted(limit_keys, keys, side="right") - 1
    in_reference = (last >= 0) & (numbers != ABSENT)
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
    codes = [ids.get(word, ABSENT) for text in texts for word in text]
    lengths = np.array([len(text) for text in texts], dtype=np.int64)
    return np.array(codes, dtype=np.int64), np.repeat(np.arange(len(texts)), lengths)


def _extend(numbers: IntArray, codes: IntArray, owner: IntArray, n: int, size: int) -> IntArray:
    """Compute the keys of n-grams from the numbers of their prefixes, or `ABSENT`."""
    keys = np.full(len(numbers), ABSENT, dtype=np.int64)
    begin, end = slice(0, max(len(numbers) - n + 1, 0)), slice(n - 1, None)
    is_complete = (numbers[begin] != ABSENT) & (codes[end] != ABSENT)
    is_complete &= owner[begin] == owner[end]
    keys[begin] = np.where(is_complete, numbers[begin] * size + codes[end], ABSENT)
    return keys


def _look_up(keys: IntArray, candidates: IntArray) -> IntArray:
    """Return the index of each candidate in sorted keys, or `ABSENT`."""
    if not len(keys):
        return np.full(len(candidates), ABSENT, dtype=np.int64)
    indices = np.minimum(np.searchsorted(keys, candidates), len(keys) - 1)
    return np.where(keys[indices] == candidates, indices, ABSENT)
