"""The component scores of BLEU, NIST and TER: what they are made of, as columns of features.

BLEUR, NISTR and TERR regress on them (Pado et al. 2009, section 4.3). Each quantity stands in
linear and in log space, since a regression that is linear in them cannot bend. Texts are tokenized
as mteval does (13a) and lower-cased. NIST weighs a matched n-gram by
log2(count(w1 ... wn-1) / count(w1 ... wn)) over the references of a test set, so that a segment's
score depends on its neighbors. Here the counts come from the texts a metric was trained on
(`Information`), with each reference added while it is compared, so that it does not.
"""

from __future__ import annotations

import hashlib
import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import astuple, dataclass, field
from functools import cache, cached_property, lru_cache
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from tertium.arrays import FloatArray
from tertium.metrics.base.featurizer import reference_of
from tertium.segment import Segment
from tertium.text.edits import Costs, count_edits_under

Ngram = tuple[str, ...]

ORDER = 3  # longer n-grams are too rare to have counts worth keeping
Part = Literal["bleu", "nist", "ter"]
Words = tuple[str, ...]

LONGEST = 10  # NIST-10
NIST_BETA = math.log(0.5) / math.log(1.5) ** 2  # half the score at two thirds of the length
SMALL = 0.01  # added before a logarithm

# The uniform cost and nine others; an insertion that is nearly free lets a surface vary.
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
# numpy's vectorised exp differs from the C library's in the last bit, and sacrebleu uses the latter
exact_exp = np.frompyfunc(math.exp, 1, 1)


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
        """The n-grams that occur at least so often in tokenized texts."""
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


@dataclass(frozen=True)
class LexicalFeatures:
    """Columns of one or several lexical metrics: 18 for bleu, 16 for nist, 50 for ter, doubled.

    `information` weighs n-grams for nist.

    >>> columns = LexicalFeatures(parts=("bleu",))
    >>> row = columns([Segment("the cat sat", references=("the cat sat",))])[0]
    >>> len(row), dict(zip(columns.names, row))["bleu.precision-2"]
    (36, np.float64(1.0))
    """

    forks: ClassVar[bool] = True

    parts: tuple[Part, ...] = ("bleu", "nist", "ter")
    information: Information = field(default_factory=Information.nothing)

    @property
    def names(self) -> tuple[str, ...]:
        plain = [name for part in self.parts for name in NAMES[part]]
        return (*plain, *(f"log {name}" for name in plain))

    def __call__(self, segments: Sequence[Segment]) -> FloatArray:
        rows = [self._row(s.hypothesis, reference_of(s)) for s in segments]
        plain = np.array(rows, dtype=np.float64).reshape(len(rows), len(self.names) // 2)
        return np.hstack([plain, np.log(plain + SMALL)])

    def _row(self, hypothesis: str, reference: str) -> list[float]:
        h, r = tokens(hypothesis), tokens(reference)
        return [value for part in self.parts for value in _COMPONENTS[part](h, r, self.information)]


@lru_cache(maxsize=1 << 14)
def tokens(text: str) -> Words:
    """The words of a text, as mteval-v13a splits them, in lower case.

    >>> tokens("It's 1,000 tanks, isn't it?")
    ("it's", '1,000', 'tanks', ',', "isn't", 'it', '?')
    """
    from sacrebleu.tokenizers.tokenizer_13a import Tokenizer13a

    split: Any = Tokenizer13a
    return tuple(split()(text).lower().split())


def bleu_components(h: Words, r: Words, information: Information) -> list[float]:
    """BLEU-n and n-gram precision (n = 1 to 4), plain and smoothed, BP, BLEU / BP: 18 numbers.

    Smoothing adds one to matches and totals of n > 1 (Lin and Och 2004), so that an order for which
    a text is too short has 1. A text without any word has 0 in all orders: nothing is precise.
    """
    matched = [sum((Counter(ngrams(h, n)) & Counter(ngrams(r, n))).values()) for n in range(1, 5)]
    totals = [max(len(h) - n + 1, 0) for n in range(1, 5)]
    plain = [m / t if t else 0.0 for m, t in zip(matched, totals, strict=True)]
    raised = [(m + 1) / (t + 1) for m, t in zip(matched[1:], totals[1:], strict=True)]
    smooth = [plain[0], *raised] if h else [0.0] * 4
    penalty = min(1.0, math.exp(1 - len(r) / len(h))) if h else 0.0
    scores, smoothed = _means(plain, penalty), _means(smooth, penalty)
    return [*scores, *plain, *smoothed, *smooth, penalty, _means(plain, 1.0)[-1]]


def _means(precisions: Sequence[float], penalty: float) -> list[float]:
    """The geometric means of the first 1, 2, 3 ... precisions, times the penalty."""
    result = []
    for n in range(1, len(precisions) + 1):
        product = math.prod(precisions[:n])
        result.append(penalty * product ** (1 / n))
    return result


def nist_components(h: Words, r: Words, information: Information) -> list[float]:
    """NIST-n (n = 1 to 10), information per n-gram (n = 1 to 4), BP, NIST / BP: 16 numbers."""
    own: Counter[Ngram] = Counter()
    for n in range(1, LONGEST + 1):
        own.update(ngrams(r, n))
    precisions = []
    for n in range(1, LONGEST + 1):
        found = Counter(ngrams(h, n)) if n <= len(h) else Counter()
        told = sum(
            min(count, own[ngram]) * information.bits(ngram, own, len(r))
            for ngram, count in found.items()
            if ngram in own
        )
        precisions.append(told / max(len(h) - n + 1, 1))
    ratio = min(1.0, len(h) / len(r)) if r else 1.0
    penalty = math.exp(NIST_BETA * math.log(ratio) ** 2) if ratio > 0 else 0.0
    sums = np.cumsum(precisions).tolist()
    return [*(penalty * s for s in sums), *precisions[:4], penalty, sums[4]]


def ter_components(h: Words, r: Words, information: Information) -> list[float]:
    """TER and its four kinds of edits, each per word of the reference, under ten costs: 50."""
    length = max(1, len(r))
    row: list[float] = []
    for costs, edits in zip(COSTS, count_edits_under(COSTS, h, r), strict=True):
        row += [edits.cost(costs) / length, *(count / length for count in edits)]
    return row


_COMPONENTS: Mapping[str, Callable[[Words, Words, Information], list[float]]] = {
    "bleu": bleu_components,
    "nist": nist_components,
    "ter": ter_components,
}


def _cost_name(costs: Costs) -> str:
    return "/".join(f"{cost:g}" for cost in astuple(costs))


NAMES: Mapping[str, tuple[str, ...]] = {
    "bleu": (
        *(f"bleu.bleu-{n}" for n in range(1, 5)),
        *(f"bleu.precision-{n}" for n in range(1, 5)),
        *(f"bleu.smooth-bleu-{n}" for n in range(1, 5)),
        *(f"bleu.smooth-precision-{n}" for n in range(1, 5)),
        "bleu.penalty",
        "bleu.unpenalised",
    ),
    "nist": (
        *(f"nist.nist-{n}" for n in range(1, LONGEST + 1)),
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


def brevity_penalty(totals: FloatArray) -> FloatArray:
    """exp(1 - r/c) where the hypothesis is the shorter one, else 1; 0 where it is empty."""
    hypothesis, reference = totals[..., 0], totals[..., 1]
    safe = np.where(hypothesis > 0, hypothesis, 1.0)
    penalty = np.asarray(exact_exp(np.minimum(1.0 - reference / safe, 0.0)), dtype=np.float64)
    penalty = np.where(hypothesis < reference, penalty, 1.0)
    return np.where((hypothesis == 0) & (hypothesis < reference), 0.0, penalty)
