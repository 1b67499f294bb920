"""chrF and chrF++: F-score of character (and word) n-grams (Popović 2015, 2017).

What is a character or a word, and which reference is the best, is as sacrebleu has it; the
statistics of many segments are counted at once from sorted arrays (`text.shared_ngrams`). A pair
that these cannot hold, since it has many hundreds of distinct characters, is left to sacrebleu, and
so is a short one that comes alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain
from typing import Annotated, Any, ClassVar

import numpy as np

from tertium.arrays import FloatArray, IntArray
from tertium.errors import UsageError
from tertium.metrics.base.metric import Metric
from tertium.metrics.lexical.sacre import LONGEST, sacre_signature
from tertium.runtime import task
from tertium.scores import Reduce
from tertium.segment import Segment
from tertium.specs import Range, plain
from tertium.text.shared_ngrams import ABSENT, count_shared

EPSILON = 1e-16  # sacrebleu's, for the n-grams that a text is too short to have
BLOCK = 1 << 20  # characters at once, so that memory is bounded whatever the texts
SHORT = 200  # characters of both texts, up to which sacrebleu is faster than arrays


@dataclass(frozen=True, kw_only=True)
class ChrF(Metric):
    """Mean over n-gram orders of precision P and recall R, combined, 0 to 100.

        chrF = (1 + b^2) P R / (b^2 P + R)

    Statistics and scores are sacrebleu's, bit for bit, counted for many segments at once; the best
    reference of a segment counts.
    `word_order=2` is chrF++ (also the name `chrf++`). Needs no tokenizer, so it suits every
    language and rewards a right stem with a wrong ending.

    >>> ChrF().sentence_score("the cat sat on the mat", ["the cat sat on a mat"])
    72.0848317308462
    """

    name: ClassVar[str] = "chrf"
    title: ClassVar[str] = "chrF"
    decimals: ClassVar[int] = 2
    citation: ClassVar[str] = """\
@inproceedings{popovic-2015-chrf,
    title = "chr{F}: character n-gram {F}-score for automatic {MT} evaluation",
    author = "Popovi{\\'c}, Maja",
    booktitle = "Proceedings of WMT", year = "2015", pages = "392--395"
}
@inproceedings{popovic-2017-chrf,
    title = "chr{F}++: words helping character n-grams",
    author = "Popovi{\\'c}, Maja",
    booktitle = "Proceedings of WMT", year = "2017", pages = "612--618"
}"""

    char_order: Annotated[int, Range(0, LONGEST)] = 6
    word_order: Annotated[int, Range(0, LONGEST)] = 0
    beta: Annotated[int | float, Range(0)] = 2
    lowercase: bool = False
    whitespace: bool = False
    eps_smoothing: bool = False

    def __post_init__(self) -> None:
        if min(self.char_order, self.word_order) < 0 or self.char_order + self.word_order < 1:
            raise UsageError(
                f"chrF needs n-grams: char_order={self.char_order}, word_order={self.word_order}"
            )

    @property
    def label(self) -> str:
        return self.title + {0: "", 1: "+", 2: "++"}.get(self.word_order, f"+{self.word_order}")

    def sacre(self) -> Any:
        """The sacrebleu metric with these settings."""
        return _load_sacre_chrf(**vars(self))

    def statistics(self, segments: Sequence[Segment]) -> FloatArray:
        return count_ngrams(self.sacre(), segments, self.reduce, self.title)

    @property
    def columns(self) -> tuple[str, ...]:
        orders = [
            *(f"char_{n}" for n in range(1, self.char_order + 1)),
            *(f"word_{n}" for n in range(1, self.word_order + 1)),
        ]
        kinds = ("hypothesis", "reference", "matches")
        return tuple(f"{kind}_{order}" for order in orders for kind in kinds)

    def reduce(self, totals: FloatArray) -> FloatArray:
        hypothesis, reference, matches = (totals[..., part::3] for part in range(3))
        # 1e-300 only stands in for a zero below the bar: no count is changed by it
        precision = np.where(hypothesis > 0, matches / np.maximum(hypothesis, 1e-300), EPSILON)
        recall = np.where(reference > 0, matches / np.maximum(reference, 1e-300), EPSILON)
        factor = self.beta**2
        if self.eps_smoothing:
            return self._epsilon_smoothed(precision, recall, factor)
        present = (hypothesis > 0) & (reference > 0)
        count = present.sum(axis=-1)
        mean_precision = _running_sum(np.where(present, precision, 0.0)) / np.maximum(count, 1)
        mean_recall = _running_sum(np.where(present, recall, 0.0)) / np.maximum(count, 1)
        score = (1 + factor) * mean_precision * mean_recall
        below = factor * mean_precision + mean_recall
        score = score / np.where(below > 0, below, 1.0)
        return np.where(mean_precision + mean_recall > 0, 100 * score, 0.0)

    def _epsilon_smoothed(
        self, precision: FloatArray, recall: FloatArray, factor: float
    ) -> FloatArray:
        below = factor * precision + recall
        scores = (1 + factor) * precision * recall / np.where(below > 0, below, 1.0)
        summed = _running_sum(np.where(below > 0, scores, EPSILON))
        return 100 * summed / (self.char_order + self.word_order)

    def signature_fields(self, segments: Sequence[Segment]) -> Mapping[str, str]:
        other = {} if self.beta == 2 else {"beta": str(plain(self.beta, int | float))}
        return {**sacre_signature(self.sacre()), **other}


@lru_cache(maxsize=16, typed=True)
def _load_sacre_chrf(**settings: Any) -> Any:
    from sacrebleu.metrics.chrf import CHRF as SacreChrF

    return SacreChrF(**settings)


def _running_sum(values: FloatArray) -> FloatArray:
    """The sum over the last axis, added in order: bit for bit what a loop gives."""
    total = np.zeros(values.shape[:-1])
    for n in range(values.shape[-1]):
        total = total + values[..., n]
    return total


def count_ngrams(sacre: Any, segments: Sequence[Segment], reduce: Reduce, title: str) -> FloatArray:
    """The statistics of each segment against its best reference, (n, 3 orders)."""
    tables = [np.zeros((0, 3 * sacre.order))]
    with task(title, total=len(segments)) as advance:
        for block in _blocks(segments):
            texts = [
                sacre._preprocess_segment(text)
                for segment in block
                for reference in segment.references
                for text in (segment.hypothesis, reference)
            ]
            rows = _pair_rows(sacre, texts)
            if len(rows) > len(block):
                counts = np.array([len(segment.references) for segment in block])
                rows = rows[_best_pairs(counts, reduce(rows))]
            tables.append(rows)
            advance(len(block))
    return np.concatenate(tables)


def _blocks(segments: Sequence[Segment]) -> Iterator[list[Segment]]:
    block: list[Segment] = []
    size = 0
    for segment in segments:
        block.append(segment)
        size += sum(len(segment.hypothesis) + len(text) for text in segment.references)
        if size >= BLOCK:
            yield block
            block, size = [], 0
    if block:
        yield block


def _pair_rows(sacre: Any, texts: Sequence[str]) -> FloatArray:
    """The statistics of pairs, (pairs, 3 orders); `texts` are left and right of each in turn."""
    pairs = [*zip(texts[::2], texts[1::2], strict=True)]
    if sum(map(len, texts)) <= SHORT:
        return np.array([_sacre_row(sacre, *pair) for pair in pairs], dtype=float)
    chars, lengths = _lay_out_characters(texts, whitespace=sacre.whitespace)
    rows = _triples(lengths, count_shared(chars, lengths, sacre.char_order))
    if sacre.word_order:
        words, lengths = _lay_out_words(texts, sacre)
        more = _triples(lengths, count_shared(words, lengths, sacre.word_order))
        rows = np.concatenate([rows, more], axis=1)
    for number in np.flatnonzero((rows == ABSENT).any(axis=1)).tolist():
        rows[number] = _sacre_row(sacre, *pairs[number])
    return rows


def _sacre_row(sacre: Any, hypothesis: str, reference: str) -> list[int]:
    info = sacre._extract_reference_info([reference])
    row: list[int] = sacre._compute_segment_statistics(hypothesis, info)
    return row


def _lay_out_characters(texts: Sequence[str], *, whitespace: bool) -> tuple[IntArray, IntArray]:
    if not whitespace:
        texts = ["".join(text.split()) for text in texts]
    points = np.frombuffer("".join(texts).encode("utf-32-le"), dtype=np.uint32)
    return points.astype(np.int64), np.array([len(text) for text in texts], dtype=np.int64)


def _lay_out_words(texts: Sequence[str], sacre: Any) -> tuple[IntArray, IntArray]:
    numbers: dict[str, int] = {}
    pieces: dict[str, list[int]] = {}  # of a word, without its punctuation, and that

    def cut(word: str) -> list[int]:
        parts = sacre._remove_punctuation(word)
        return pieces.setdefault(word, [numbers.setdefault(p, len(numbers)) for p in parts])

    rows = [
        list(chain.from_iterable([pieces.get(word) or cut(word) for word in text.split()]))
        for text in texts
    ]
    lengths = np.array([len(row) for row in rows], dtype=np.int64)
    return np.fromiter(chain.from_iterable(rows), dtype=np.int64, count=lengths.sum()), lengths


def _triples(lengths: IntArray, shared: IntArray) -> FloatArray:
    """Columns for each order: n-grams of the hypothesis, of the reference, and of both."""
    orders = np.arange(shared.shape[1])
    hypothesis, reference = (np.maximum(lengths[side::2, None] - orders, 0) for side in (0, 1))
    hypothesis = np.where(reference > 0, hypothesis, 0)  # sacrebleu's: no hits to be had, no tries
    return np.stack([hypothesis, reference, shared], axis=2).reshape(len(shared), -1).astype(float)


def _best_pairs(counts: IntArray, scores: FloatArray) -> IntArray:
    """The pair of each segment with the highest score, of equal ones the first."""
    firsts = np.cumsum(counts) - counts
    best = firsts.copy()
    for number in range(1, counts.max(initial=1)):
        rows = np.flatnonzero(counts > number)
        others = firsts[rows] + number
        better = scores[others] > scores[best[rows]]
        best[rows[better]] = others[better]
    return best
