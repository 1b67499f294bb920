"""Component scores of BLEU, NIST and TER as features (Padó et al. 2009, section 4.3).

BLEUR, NISTR and TERR regress on them. Each quantity is given in linear and in log space. Texts
are tokenized with mteval-v13a and lowercased. NIST weights a matched n-gram by its information,
log2(count(w1 ... wn-1) / count(w1 ... wn)), over the references of a test set, so the score of a
segment depends on the other segments. Here the counts come from the training references
(`NgramInformation`) plus the reference at hand, so it does not.

Define feature extractors: callables from segments to a table of named columns.

A feature extractor compares a hypothesis with one reference. Metrics split segments with several
references (`split_references`) and reduce over the references afterwards.
"""

from __future__ import annotations

import hashlib
import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import astuple, dataclass, field, replace
from functools import cache, cached_property, lru_cache
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from tertium.core.arrays import FloatArray, IntArray
from tertium.core.errors import UsageError
from tertium.core.segment import Segment
from tertium.metrics.base.word_tokenizers import NIST_BETA
from tertium.text.ter_edits import Costs, count_edits_for_costs

Ngram = tuple[str, ...]

ORDER = 3  # longer n-grams are too rare to store
Part = Literal["bleu", "nist", "ter"]
Words = tuple[str, ...]

MAX_NIST_ORDER = 10
SMALL = 0.01  # added before taking logarithms

# Uniform costs and nine others; nearly free insertions tolerate varied wording.
COSTS: tuple[Costs, ...] = (
    Costs(),
    Costs(insertion=0.05),
    Costs(insertion=0.25),
    Costs(insertion=0.5),
    Costs(deletion=0.25),
    Costs(deletion=0.5),
    Costs(substitution=0.5),
    Costs(shift=0.25),
    Costs(insertion=0.05, shift=0.25),
    Costs(insertion=0.25, substitution=0.75, shift=0.5),
)


@dataclass(frozen=True, eq=False)
class NgramInformation:
    """N-gram counts: sorted hashes `keys` (n,), `counts` (n,), and the `total` number of words.

    >>> counts = NgramInformation.from_texts([["the", "cat"], ["the", "dog"], ["the", "cat"]], 2)
    >>> counts.count(("the",)), counts.count(("the", "cat")), counts.count(("a",))
    (3, 2, 0)
    """

    keys: NDArray[np.uint64]
    counts: NDArray[np.uint32]
    total: int

    @classmethod
    def from_texts(cls, texts: Iterable[Sequence[str]], min_count: int = 3) -> NgramInformation:
        """Count the n-grams that occur at least `min_count` times in tokenized texts."""
        counter: Counter[Ngram] = Counter()
        for words in texts:
            for n in range(1, ORDER + 1):
                counter.update(ngrams(words, n))
        total = sum(count for ngram, count in counter.items() if len(ngram) == 1)
        frequent = {hash_ngram(g): count for g, count in counter.items() if count >= min_count}
        keys = np.array(sorted(frequent), dtype=np.uint64)
        counts = np.array([frequent[int(key)] for key in keys], dtype=np.uint32)
        return cls(keys, counts, total)

    @classmethod
    @cache
    def empty(cls) -> NgramInformation:
        """Return counts of no texts: every word carries the same information."""
        return cls(np.zeros(0, dtype=np.uint64), np.zeros(0, dtype=np.uint32), 0)

    def count(self, ngram: Ngram) -> int:
        """Return the count of an n-gram; 0 for rare n-grams and for orders above `ORDER`."""
        if len(ngram) > ORDER or not self._table:
            return 0
        return self._table.get(hash_ngram(ngram), 0)

    @cached_property
    def _table(self) -> dict[int, int]:
        return dict(zip(self.keys.tolist(), self.counts.tolist(), strict=True))

    def information(self, ngram: Ngram, reference: Counter[Ngram], length: int) -> float:
        """Return the information of an n-gram's last word, including the reference's own counts."""
        count = self.count(ngram) + reference[ngram]
        prefix = ngram[:-1]
        history = self.count(prefix) + reference[prefix] if prefix else self.total + length
        return math.log2(max(history, count, 1) / max(count, 1))


def ngrams(words: Sequence[str], n: int) -> list[Ngram]:
    """List the n-grams of a text in order.

    >>> ngrams(["a", "b", "c"], 2)
    [('a', 'b'), ('b', 'c')]
    """
    return [tuple(words[i : i + n]) for i in range(len(words) - n + 1)]


@lru_cache(maxsize=1 << 16)
def hash_ngram(ngram: Ngram) -> int:
    """Hash an n-gram to 64 bits, the same in every process."""
    text = " ".join(ngram).encode("utf-8", errors="surrogatepass")
    return int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), "little")


@dataclass(frozen=True)
class LexicalFeatures:
    """Feature columns of lexical metrics: 18 for bleu, 16 for nist, 50 for ter, each also as log.

    `information` weights n-grams for nist.

    >>> columns = LexicalFeatures(parts=("bleu",))
    >>> row = columns([Segment("the cat sat", references=("the cat sat",))])[0]
    >>> len(row), dict(zip(columns.names, row))["bleu.precision-2"]
    (36, np.float64(1.0))
    """

    parts: tuple[Part, ...] = ("bleu", "nist", "ter")
    information: NgramInformation = field(default_factory=NgramInformation.empty)

    @property
    def names(self) -> tuple[str, ...]:
        linear = [name for part in self.parts for name in NAMES[part]]
        return (*linear, *(f"log {name}" for name in linear))

    def __call__(self, segments: Sequence[Segment]) -> FloatArray:
        rows = [self._row(s.hypothesis, only_reference(s)) for s in segments]
        linear = np.array(rows, dtype=np.float64).reshape(len(rows), len(self.names) // 2)
        return np.hstack([linear, np.log(linear + SMALL)])

    def _row(self, hypothesis: str, reference: str) -> list[float]:
        h = tokenize_13a(hypothesis)
        r = tokenize_13a(reference)
        return [value for part in self.parts for value in _COMPONENTS[part](h, r, self.information)]


@lru_cache(maxsize=1 << 14)
def tokenize_13a(text: str) -> Words:
    """Tokenize a text with mteval-v13a and lowercase it.

    >>> tokenize_13a("It's 1,000 tanks, isn't it?")
    ("it's", '1,000', 'tanks', ',', "isn't", 'it', '?')
    """
    from sacrebleu.tokenizers.tokenizer_13a import Tokenizer13a

    tokenizer: Any = Tokenizer13a
    return tuple(tokenizer()(text).lower().split())


def bleu_components(h: Words, r: Words, information: NgramInformation) -> list[float]:
    """Compute BLEU-n and n-gram precisions (n = 1 to 4), plain and smoothed, BP, BLEU / BP: 18.

    Smoothing adds one to matches and totals for n > 1 (Lin and Och 2004), so orders longer than the
    text have precision 1. An empty text has 0 in all orders.
    """
    matched = [sum((Counter(ngrams(h, n)) & Counter(ngrams(r, n))).values()) for n in range(1, 5)]
    totals = [max(len(h) - n + 1, 0) for n in range(1, 5)]
    plain = [m / t if t else 0.0 for m, t in zip(matched, totals, strict=True)]
    higher_orders = [(m + 1) / (t + 1) for m, t in zip(matched[1:], totals[1:], strict=True)]
    smooth = [plain[0], *higher_orders] if h else [0.0] * 4
    penalty = min(1.0, math.exp(1 - len(r) / len(h))) if h else 0.0
    scores = _means(plain, penalty)
    smoothed = _means(smooth, penalty)
    return [*scores, *plain, *smoothed, *smooth, penalty, _means(plain, 1.0)[-1]]


def _means(precisions: Sequence[float], penalty: float) -> list[float]:
    orders = range(1, len(precisions) + 1)
    return [penalty * math.prod(precisions[:n]) ** (1 / n) for n in orders]


def nist_components(h: Words, r: Words, information: NgramInformation) -> list[float]:
    """Compute NIST-n (n = 1 to 10), information per n-gram (n = 1 to 4), BP, NIST / BP: 16."""
    reference = Counter(ngram for n in range(1, MAX_NIST_ORDER + 1) for ngram in ngrams(r, n))
    precisions = []
    for n in range(1, MAX_NIST_ORDER + 1):
        matched = sum(
            min(count, reference[ngram]) * information.information(ngram, reference, len(r))
            for ngram, count in Counter(ngrams(h, n)).items()
            if ngram in reference
        )
        precisions.append(matched / max(len(h) - n + 1, 1))
    ratio = min(1.0, len(h) / len(r)) if r else 1.0
    penalty = math.exp(NIST_BETA * math.log(ratio) ** 2) if ratio > 0 else 0.0
    sums = np.cumsum(precisions).tolist()
    return [*(penalty * s for s in sums), *precisions[:4], penalty, sums[4]]


def ter_components(h: Words, r: Words, information: NgramInformation) -> list[float]:
    """Compute TER and its four edit rates per reference word under ten cost settings: 50 values."""
    length = max(1, len(r))
    row: list[float] = []
    for costs, edits in zip(COSTS, count_edits_for_costs(COSTS, h, r), strict=True):
        row += [edits.cost(costs) / length, *(count / length for count in edits)]
    return row


_COMPONENTS: Mapping[str, Callable[[Words, Words, NgramInformation], list[float]]] = {
    "bleu": bleu_components,
    "nist": nist_components,
    "ter": ter_components,
}


def _cost_name(costs: Costs) -> str:
    return "/".join(f"{cost:g}" for cost in astuple(costs))


BLEU_KINDS = ("bleu", "precision", "smooth-bleu", "smooth-precision")
NAMES: Mapping[str, tuple[str, ...]] = {
    "bleu": (
        *(f"bleu.{kind}-{n}" for kind in BLEU_KINDS for n in range(1, 5)),
        "bleu.penalty",
        "bleu.unpenalised",
    ),
    "nist": (
        *(f"nist.nist-{n}" for n in range(1, MAX_NIST_ORDER + 1)),
        *(f"nist.information-{n}" for n in range(1, 5)),
        "nist.penalty",
        "nist.unpenalised",
    ),
    "ter": tuple(
        f"ter.{kind} {_cost_name(costs)}"
        for costs in COSTS
        for kind in ("ter", "insertions", "deletions", "substitutions", "shifts")
    ),
}


class FeatureExtractor(Protocol):
    """A callable from segments to rows of numbers; equal extractors give equal rows."""

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the columns."""

    def __call__(self, segments: Sequence[Segment]) -> FloatArray:
        """Compute one row per segment, (n, len(names))."""

    def __hash__(self) -> int: ...


def split_references(segments: Sequence[Segment]) -> tuple[list[Segment], IntArray]:
    """Split segments into one segment per reference; also return the index of the original segment.

    >>> parts, owner = split_references([Segment("h", references=("a", "b"))])
    >>> [p.references for p in parts], owner
    ([('a',), ('b',)], array([0, 0]))
    """
    parts = [replace(s, references=(r,)) for s in segments for r in s.references]
    counts = [len(s.references) for s in segments]
    return parts, np.repeat(np.arange(len(segments)), counts)


def only_reference(segment: Segment) -> str:
    """Return the reference of a segment that has exactly one; raise otherwise."""
    if len(segment.references) != 1:
        raise UsageError(
            f"expected a segment with one reference, got {len(segment.references)}: split it with "
            "tertium.metrics.base.lexical_features.split_references"
        )
    return segment.references[0]
