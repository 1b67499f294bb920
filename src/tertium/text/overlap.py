"""How much of its words a translation shares with a reference, and which words nobody knows."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection

_WORD = re.compile(r"\w+(?:['’-]\w+)*")


def words(text: str) -> list[str]:
    """Lower-cased words, punctuation left out.

    >>> words("It's over, he said.")
    ["it's", 'over', 'he', 'said']
    """
    return _WORD.findall(text.lower())


def overlap(left: str, right: str) -> float:
    """The F1 of shared words, each counted as often as both have it; 0 where either is empty.

    >>> round(overlap("the cat sat", "the cat sat down"), 3)
    0.857
    """
    a, b = Counter(words(left)), Counter(words(right))
    total = sum(a.values()) + sum(b.values())
    return 2 * sum((a & b).values()) / total if total else 0.0


def unknown_words(text: str, vocabulary: Collection[str]) -> list[str]:
    """The words of a text, numbers aside, that are not in a vocabulary.

    >>> unknown_words("the Katze sat 12 times", {"the", "sat", "times"})
    ['katze']
    """
    return [w for w in words(text) if w not in vocabulary and not w[0].isdigit()]
