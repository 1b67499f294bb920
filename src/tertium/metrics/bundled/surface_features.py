"""Surface features of a pair: case, spacing, numbers, pronouns, negation, word order, length.

An uncased encoder cannot see these. They let a network on contextual vectors distinguish a changed
number or a lost capital letter from a paraphrase.
"""

from __future__ import annotations

import math
import re
import string
from bisect import bisect_left, insort
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from tertium.core.arrays import FloatArray

ARRAY_THRESHOLD = 1 << 16  # word pairs above which arrays are faster than dictionaries

FEATURE_NAMES = (
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


_CAPITALS = string.ascii_uppercase.encode()
_LETTERS = string.ascii_letters.encode()
NUMBER, PUNCTUATION, CONTENT, MALE, FEMALE, NEGATION = (1 << n for n in range(6))


class TextCounts(NamedTuple):
    """Counts of one text, computed once for all its pairs."""

    text: str
    words: tuple[str, ...]  # lowercased tokens
    bigrams: Counter[tuple[str, str]]
    kinds: tuple[Counter[Any], ...]  # what recall and precision compare, in the order of the names
    gender: int  # more male than female words
    negations: int
    capitals: float
    spaces: float
    non_ascii: float


def surface_features(hypotheses: Sequence[str], references: Sequence[str]) -> FloatArray:
    """Return the surface features of each pair of texts, (n, len(FEATURE_NAMES)).

    >>> row = surface_features(["he paid 30 euros"], ["she paid 20 euros"])[0]
    >>> dict(zip(FEATURE_NAMES, row.tolist()))["number recall"]
    0.0
    """
    rows = [
        _compare(analyze_text(hypothesis), analyze_text(reference))
        for hypothesis, reference in zip(hypotheses, references, strict=True)
    ]
    return np.array(rows, dtype=np.float64).reshape(len(rows), len(FEATURE_NAMES))


@lru_cache(maxsize=256)  # 20 KB each; pairs of one reference are adjacent
def analyze_text(text: str) -> TextCounts:
    """Count words, n-grams and word classes of a text."""
    tokens = _TOKEN.findall(text)
    words = tuple([token.lower() for token in tokens])
    classes = [_word_classes(word) for word in words]
    capitals, non_ascii = _letter_shares(text)

    def words_of(word_class: int) -> list[str]:
        return [word for word, own in zip(words, classes, strict=True) if own & word_class]

    bigrams = Counter(pairwise(words))
    kinds = (
        Counter(words),
        Counter(tokens),
        bigrams,
        Counter(zip(words, words[1:], words[2:], strict=False)),
        Counter(words_of(NUMBER)),
        Counter([token for token in tokens[1:] if token[0].isupper()]),  # names
        Counter(words_of(PUNCTUATION)),
        Counter(words_of(CONTENT)),
    )
    return TextCounts(
        text=text,
        words=words,
        bigrams=bigrams,
        kinds=kinds,
        gender=len(words_of(MALE)) - len(words_of(FEMALE)),
        negations=len(words_of(NEGATION)),
        capitals=capitals,
        spaces=text.count(" ") / max(len(text), 1),
        non_ascii=non_ascii,
    )


@lru_cache(maxsize=1 << 14)
def _word_classes(word: str) -> int:
    """Return the bit mask of the classes of a lowercased word."""
    is_word = word[0].isalnum()
    return (
        NUMBER * (word[0].isdigit() or word in _NUMBER_WORDS)
        + PUNCTUATION * (not is_word)
        + CONTENT * (is_word and word not in _COMMON)
        + MALE * (word in _MALE)
        + FEMALE * (word in _FEMALE)
        + NEGATION * (word in _NEGATIONS or word.endswith(("n't", "n’t")))
    )


def _letter_shares(text: str) -> tuple[float, float]:
    """Return the fractions of letters that are capitals, and that are outside ASCII."""
    if text.isascii():  # a faster path with the same result
        plain = text.encode()
        letters = len(plain) - len(plain.translate(None, _LETTERS))
        capitals = len(plain) - len(plain.translate(None, _CAPITALS))
        return capitals / max(letters, 1), 0.0
    alphabetic = [c for c in text if c.isalpha()]
    count = max(len(alphabetic), 1)
    capitals = sum([c.isupper() for c in alphabetic])
    return capitals / count, sum([c > "\x7f" for c in alphabetic]) / count


def _compare(h: TextCounts, r: TextCounts) -> list[float]:
    overlaps, shares = list[int](), list[float]()  # shares: recall and precision of each kind
    for left, right in zip(h.kinds, r.kinds, strict=True):
        common = sum([min(left[key], right[key]) for key in left.keys() & right.keys()])
        overlaps.append(common)
        shares += [_ratio(common, right.total()), _ratio(common, left.total())]
    return [
        *shares[:4],
        _ratio(overlaps[1], overlaps[0]),  # cased words among words
        h.capitals - r.capitals,
        *shares[4:8],
        longest_run(h.words, r.words) / max(len(r.words), 1),
        order_agreement(h.words, r.words),
        _log_ratio(len(h.words), len(r.words)),
        _log_ratio(len(h.text), len(r.text)),
        20 * (h.spaces - r.spaces),
        *shares[8:12],
        float(h.gender != r.gender),
        float((h.negations > 0) != (r.negations > 0)) + 0.5 * float(h.negations != r.negations),
        _repetition(h) - _repetition(r),
        *shares[12:],
        h.non_ascii - r.non_ascii,
        float(not h.words),
        float(h.text == r.text),
        math.log1p(len(r.words)) / 4,
    ]


def longest_run(left: Sequence[str], right: Sequence[str]) -> int:
    """Return the length of the longest sequence of words that both texts share.

    >>> longest_run("a b c d".split(), "x b c y".split())
    2
    """
    if len(left) * len(right) > ARRAY_THRESHOLD:
        return _longest_run_with_arrays(left, right)
    best, previous = 0, dict[int, int]()
    places: dict[str, list[int]] = {}
    for n, word in enumerate(right):
        places.setdefault(word, []).append(n)
    for word in left:
        previous = {n: previous.get(n - 1, 0) + 1 for n in places.get(word, ())}
        for run in previous.values():
            if run > best:
                best = run
    return best


def _longest_run_with_arrays(left: Sequence[str], right: Sequence[str]) -> int:
    """Compute `longest_run` with arrays: repeated words make the dictionaries quadratic."""
    codes = {word: n for n, word in enumerate(dict.fromkeys(right))}
    target = np.array([codes[word] for word in right])
    best, runs = 0, np.zeros(len(right) + 1, dtype=np.int64)
    for word in left:
        runs[1:] = (runs[:-1] + 1) * (target == codes.get(word, -1))
        best = max(best, int(runs.max()))
    return best


def order_agreement(left: Sequence[str], right: Sequence[str]) -> float:
    """Return the fraction of pairs of words, unique in both texts, that are in the same order.

    The result is 1 if there is no such pair.

    >>> order_agreement("a b c".split(), "c b a".split())
    0.0
    """
    position = {word: n for n, word in enumerate(right)}
    repeated = {w for w, n in Counter(left).items() if n > 1}
    repeated |= {w for w, n in Counter(right).items() if n > 1}
    earlier: list[int] = []  # sorted positions in the right text of the words visited so far
    ordered = 0
    for word in left:
        if word in position and word not in repeated:
            ordered += bisect_left(earlier, position[word])
            insort(earlier, position[word])
    return ordered / (len(earlier) * (len(earlier) - 1) / 2) if len(earlier) > 1 else 1.0


def _ratio(part: float, total: float) -> float:
    return part / total if total else 1.0


def _log_ratio(a: int, b: int) -> float:
    return math.log((a + 1) / (b + 1))


def _repetition(s: TextCounts) -> float:
    total = s.bigrams.total()
    adjacent = sum([a == b for a, b in pairwise(s.words)])
    return (1 - len(s.bigrams) / total if total else 0.0) + 0.5 * adjacent
