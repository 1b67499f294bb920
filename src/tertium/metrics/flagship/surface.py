"""What an uncased encoder cannot see: case, spacing, numbers, pronouns, negation, order, length.

A small row of numbers for each hypothesis and reference, cheap enough to compute for every pair, so
that a network on contextual vectors can tell a changed number or a lost capital from a paraphrase.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Hashable, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple, TypeVar

import numpy as np

from tertium.arrays import FloatArray

Key = TypeVar("Key", bound=Hashable)
MANY = 1 << 16  # pairs of words from which on arrays are quicker than dictionaries

NAMES = (
    "word recall",
    "word precision",
    "cased recall",
    "cased precision",
    "case agreement",
    "capital share difference",
    "bigram recall",
    "bigram precision",
    "trigram recall",
    "trigram precision",
    "longest run",
    "order",
    "length log ratio",
    "character log ratio",
    "space share difference",
    "number recall",
    "number precision",
    "name recall",
    "name precision",
    "gender difference",
    "negation difference",
    "repetition",
    "punctuation recall",
    "punctuation precision",
    "content recall",
    "content precision",
    "letters outside ASCII",
    "empty",
    "identical",
    "reference length",
)

_TOKEN = re.compile(r"\d+(?:[.,]\d+)*|\w+(?:['’]\w+)?|[^\w\s]")
_MALE = frozenset("he him his himself man boy mr".split())
_FEMALE = frozenset("she her hers herself woman girl mrs ms".split())
_NEGATIONS = frozenset("not no never none nothing nobody neither nor without cannot".split())
_COMMON = frozenset(
    "the a an of to in and is that for on with as was by at be it this are from or have has had "
    "but not he she they we you i his her their its our which who will would been were all".split()
)
_NUMBER_WORDS = frozenset(
    "one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen "
    "twenty thirty forty fifty sixty seventy eighty ninety hundred thousand million billion".split()
)


class Surface(NamedTuple):
    """A text taken apart once, for all its comparisons."""

    text: str
    words: tuple[str, ...]  # tokens in small letters
    counts: Counter[str]
    cased: Counter[str]
    bigrams: Counter[tuple[str, ...]]
    trigrams: Counter[tuple[str, ...]]
    numbers: Counter[str]
    names: Counter[str]
    punctuation: Counter[str]
    content: Counter[str]
    gender: tuple[int, int]
    negations: int
    capitals: float
    spaces: float
    foreign: float


def surface_features(hypotheses: Sequence[str], references: Sequence[str]) -> FloatArray:
    """One row of `NAMES` for each pair of texts, (n, len(NAMES)).

    >>> row = surface_features(["he paid 30 euros"], ["she paid 20 euros"])[0]
    >>> dict(zip(NAMES, row.tolist()))["number recall"]
    0.0
    """
    rows = [
        _compare(analyse(hypothesis), analyse(reference))
        for hypothesis, reference in zip(hypotheses, references, strict=True)
    ]
    return np.array(rows, dtype=np.float64).reshape(len(rows), len(NAMES))


@lru_cache(maxsize=2_048)  # 20 KB each; the pairs of a reference come one after the other
def analyse(text: str) -> Surface:
    """Take a text apart."""
    tokens = _TOKEN.findall(text)
    words = tuple(token.lower() for token in tokens)
    letters = [c for c in text if c.isalpha()]
    return Surface(
        text=text,
        words=words,
        counts=Counter(words),
        cased=Counter(tokens),
        bigrams=Counter(pairwise(words)),
        trigrams=Counter(zip(words, words[1:], words[2:], strict=False)),
        numbers=Counter(w for w in words if w[0].isdigit() or w in _NUMBER_WORDS),
        names=Counter(t for n, t in enumerate(tokens) if n and t[0].isupper()),
        punctuation=Counter(w for w in words if not w[0].isalnum()),
        content=Counter(w for w in words if w[0].isalnum() and w not in _COMMON),
        gender=(sum(w in _MALE for w in words), sum(w in _FEMALE for w in words)),
        negations=sum(w in _NEGATIONS or w.endswith(("n't", "n’t")) for w in words),
        capitals=sum(c.isupper() for c in letters) / max(len(letters), 1),
        spaces=text.count(" ") / max(len(text), 1),
        foreign=sum(ord(c) > 127 for c in letters) / max(len(letters), 1),
    )


def _compare(h: Surface, r: Surface) -> list[float]:
    common = _overlap(h.counts, r.counts)
    return [
        _ratio(common, r.counts.total()),
        _ratio(common, h.counts.total()),
        *_both(h.cased, r.cased),
        _ratio(_overlap(h.cased, r.cased), common),
        h.capitals - r.capitals,
        *_both(h.bigrams, r.bigrams),
        *_both(h.trigrams, r.trigrams),
        longest_run(h.words, r.words) / max(len(r.words), 1),
        order_agreement(h.words, r.words),
        _log_ratio(len(h.words), len(r.words)),
        _log_ratio(len(h.text), len(r.text)),
        20 * (h.spaces - r.spaces),
        *_both(h.numbers, r.numbers),
        *_both(h.names, r.names),
        float(abs((h.gender[0] - h.gender[1]) - (r.gender[0] - r.gender[1])) > 0),
        float((h.negations > 0) != (r.negations > 0)) + 0.5 * float(h.negations != r.negations),
        _repetition(h) - _repetition(r),
        *_both(h.punctuation, r.punctuation),
        *_both(h.content, r.content),
        h.foreign - r.foreign,
        float(not h.words),
        float(h.text == r.text),
        math.log1p(len(r.words)) / 4,
    ]


def longest_run(left: Sequence[str], right: Sequence[str]) -> int:
    """The length of the longest run of words that both texts have.

    >>> longest_run("a b c d".split(), "x b c y".split())
    2
    """
    if len(left) * len(right) > MANY:
        return _longest_run_of_many(left, right)
    best, previous = 0, dict[int, int]()
    places: dict[str, list[int]] = {}
    for n, word in enumerate(right):
        places.setdefault(word, []).append(n)
    for word in left:
        current = {n: previous.get(n - 1, 0) + 1 for n in places.get(word, ())}
        best = max(best, max(current.values(), default=0))
        previous = current
    return best


def _longest_run_of_many(left: Sequence[str], right: Sequence[str]) -> int:
    """The same row by row: of one word that is repeated, every two places meet."""
    codes = {word: n for n, word in enumerate(dict.fromkeys(right))}
    target = np.array([codes[word] for word in right])
    best, runs = 0, np.zeros(len(right) + 1, dtype=np.int64)
    for word in left:
        runs[1:] = (runs[:-1] + 1) * (target == codes.get(word, -1))
        best = max(best, int(runs.max()))
    return best


def order_agreement(left: Sequence[str], right: Sequence[str]) -> float:
    """How many pairs of words that occur once in both texts stand in the same order; 1 if none do.

    >>> order_agreement("a b c".split(), "c b a".split())
    0.0
    """
    place = {word: n for n, word in enumerate(right)}
    twice = {w for w, n in Counter(left).items() if n > 1}
    twice |= {w for w, n in Counter(right).items() if n > 1}
    found = np.array([place[w] for w in left if w in place and w not in twice])
    if len(found) < 2:
        return 1.0
    ordered = np.triu(found[None, :] > found[:, None], k=1).sum()
    return float(ordered / (len(found) * (len(found) - 1) / 2))


def _overlap(a: Counter[Key], b: Counter[Key]) -> int:
    small, large = (a, b) if len(a) <= len(b) else (b, a)
    return sum(min(count, large[key]) for key, count in small.items() if key in large)


def _both(h: Counter[Key], r: Counter[Key]) -> tuple[float, float]:
    common = _overlap(h, r)
    return (_ratio(common, r.total()), _ratio(common, h.total()))


def _ratio(part: float, whole: float) -> float:
    return part / whole if whole else 1.0


def _log_ratio(a: int, b: int) -> float:
    return math.log((a + 1) / (b + 1))


def _repetition(s: Surface) -> float:
    total = s.bigrams.total()
    adjacent = sum(a == b for a, b in pairwise(s.words))
    return (1 - len(s.bigrams) / total if total else 0.0) + 0.5 * adjacent
