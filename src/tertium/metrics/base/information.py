"""How much a word tells after the words before it, learned once from texts and kept as numbers.

NIST weighs a matched n-gram by log2(count(w1 ... wn-1) / count(w1 ... wn)) over the references of a
test set, so that a segment's score depends on its neighbours. Here the counts come from the texts
a metric was trained on, with each reference added while it is compared, so that it does not.
"""

from __future__ import annotations

import hashlib
import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache, cached_property, lru_cache

import numpy as np
from numpy.typing import NDArray

Ngram = tuple[str, ...]

ORDER = 3  # longer n-grams are too rare to have counts worth keeping


@dataclass(frozen=True, eq=False)
class Information:
    """Counts of n-grams: `keys` (n,) are sorted hashes, `counts` (n,) theirs, `total` all words.

    >>> learned = Information.of([["the", "cat"], ["the", "dog"], ["the", "cat"]], least=2)
    >>> learned.count(("the",)), learned.count(("the", "cat")), learned.count(("a",))
    (3, 2, 0)
    """

    keys: NDArray[np.uint64]
    counts: NDArray[np.uint32]
    total: int

    @classmethod
    def of(cls, texts: Iterable[Sequence[str]], least: int = 3) -> Information:
        """The n-grams that occur at least so often in tokenised texts."""
        found: Counter[Ngram] = Counter()
        total = 0
        for words in texts:
            total += len(words)
            for n in range(1, ORDER + 1):
                found.update(ngrams(words, n))
        kept = {hash_ngram(ngram): count for ngram, count in found.items() if count >= least}
        keys = np.array(sorted(kept), dtype=np.uint64)
        counts = np.array([kept[int(key)] for key in keys], dtype=np.uint32)
        return cls(keys, counts, total)

    @classmethod
    @cache
    def nothing(cls) -> Information:
        """Of no texts at all: every word is as telling as any other."""
        return cls(np.zeros(0, dtype=np.uint64), np.zeros(0, dtype=np.uint32), 0)

    def count(self, ngram: Ngram) -> int:
        """How often an n-gram was seen; 0 for rare ones and for those that are too long."""
        if len(ngram) > ORDER or not self._table:
            return 0
        return self._table.get(hash_ngram(ngram), 0)

    @cached_property
    def _table(self) -> dict[int, int]:
        return dict(zip(self.keys.tolist(), self.counts.tolist(), strict=True))

    def bits(self, ngram: Ngram, reference: Counter[Ngram], length: int) -> float:
        """What the last word of an n-gram tells, the reference's own n-grams counted in."""
        whole = self.count(ngram) + reference[ngram]
        before = ngram[:-1]
        history = self.count(before) + reference[before] if before else self.total + length
        return math.log2(max(history, whole, 1) / max(whole, 1))


def ngrams(words: Sequence[str], n: int) -> list[Ngram]:
    """The n-grams of a text in order.

    >>> ngrams(["a", "b", "c"], 2)
    [('a', 'b'), ('b', 'c')]
    """
    return [tuple(words[i : i + n]) for i in range(len(words) - n + 1)]


@lru_cache(maxsize=1 << 16)
def hash_ngram(ngram: Ngram) -> int:
    """64 bits that stand for an n-gram, the same in every process."""
    text = " ".join(ngram).encode("utf-8", errors="surrogatepass")
    return int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), "little")
