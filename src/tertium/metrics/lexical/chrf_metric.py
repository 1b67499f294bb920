"""chrF and chrF++: F-score of character and word n-grams (Popović 2015, 2017).

Characters, words and the best reference are defined as in sacrebleu. Statistics of many segments
are counted together with sorted arrays (`text.shared_ngrams`). sacrebleu counts single short pairs,
and pairs with too many distinct characters for arrays.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import chain
from typing import Annotated, Any, ClassVar

import numpy as np

from tertium.core.arrays import FloatArray, IntArray
from tertium.core.errors import UsageError
from tertium.core.fields import Range, normalize_number
from tertium.core.runtime import progress_task
from tertium.core.scores import Reduce
from tertium.core.segment import Segment
from tertium.metrics.base.metric import Metric
from tertium.metrics.lexical.sacrebleu_adapter import (
    MAX_NGRAM_ORDER,
    number_words,
    sacrebleu_signature,
)
from tertium.text.ngram_overlap import NOT_COUNTED, count_shared

EPSILON = 1e-16  # sacrebleu's value for orders longer than a text
BLOCK_CHARACTERS = 1 << 20  # bounds the memory
SHORT_CHARACTERS = 200  # of all texts, up to which sacrebleu is faster than arrays


@dataclass(frozen=True, kw_only=True)
class CHRF(Metric):
    """F-score of character n-grams, 0 to 100.

        chrF = (1 + b^2) P R / (b^2 P + R)

    P and R are precision and recall, averaged over n-gram orders. With several references, the best
    one counts. Statistics and scores are identical to sacrebleu's, to the last bit. chrF needs no
    tokenizer, so it suits every language, and it rewards a correct stem with a wrong ending.

    Settings:

    - `char_order`, `word_order`: longest character and word n-grams. `word_order=2` is chrF++, also
      available as `chrf++`.
    - `beta`: weight b of recall against precision.
    - `lowercase`: ignore case. `whitespace`: count blanks as characters.
    - `eps_smoothing`: smooth each order, as in NLTK and Moses.

    >>> CHRF().sentence_score("the cat sat on the mat", ["the cat sat on a mat"])
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

    char_order: Annotated[int, Range(0, MAX_NGRAM_ORDER)] = 6
    word_order: Annotated[int, Range(0, MAX_NGRAM_ORDER)] = 0
    beta: Annotated[int | float, Range(0, 1000)] = 2
    lowercase: bool = False
    whitespace: bool = False
    eps_smoothing: bool = False

    def __post_init__(self) -> None:
        if not self.char_order + self.word_order:
            raise UsageError(
                f"char_order={self.char_order} and word_order={self.word_order}: at least one of "
                "them must be positive"
            )

    @property
    def label(self) -> str:
        return self.title + {0: "", 1: "+", 2: "++"}.get(self.word_order, f"+{self.word_order}")

    def sacrebleu_metric(self) -> Any:
        """Return the sacrebleu metric with these settings."""
        return _load_sacrebleu_chrf(**vars(self))

    def statistics(self, segments: Sequence[Segment]) -> FloatArray:
        return count_ngrams(self.sacrebleu_metric(), segments, self.reduce, self.title)

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
        # 1e-300 avoids division by zero; positive counts are at least 1
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
        denominator = factor * mean_precision + mean_recall
        score = score / np.where(denominator > 0, denominator, 1.0)
        return np.where(mean_precision + mean_recall > 0, 100 * score, 0.0)

    def _epsilon_smoothed(
        self, precision: FloatArray, recall: FloatArray, factor: float
    ) -> FloatArray:
        denominator = factor * precision + recall
        scores = (1 + factor) * precision * recall / np.where(denominator > 0, denominator, 1.0)
        summed = _running_sum(np.where(denominator > 0, scores, EPSILON))
        return 100 * summed / (self.char_order + self.word_order)

    def signature_fields(self, segments: Sequence[Segment]) -> Mapping[str, str]:
        other = {} if self.beta == 2 else {"beta": str(normalize_number(self.beta, int | float))}
        return {**sacrebleu_signature(self.sacrebleu_metric()), **other}


@lru_cache(maxsize=16, typed=True)
def _load_sacrebleu_chrf(**settings: Any) -> Any:
    from sacrebleu.metrics.chrf import CHRF as SacreChrF

    return SacreChrF(**settings)


def _running_sum(values: FloatArray) -> FloatArray:
    """Sum over the last axis in order, as a loop does: the last bit depends on the order."""
    total = np.zeros(values.shape[:-1])
    for n in range(values.shape[-1]):
        total = total + values[..., n]
    return total


def count_ngrams(scorer: Any, segments: Sequence[Segment], reduce: Reduce, name: str) -> FloatArray:
    """Return the statistics of each segment and its best reference, (n, 3 orders)."""
    tables = [np.zeros((0, 3 * scorer.order))]
    with progress_task(name, total=len(segments)) as advance:
        for block in _blocks(segments):
            texts: list[str] = []
            for segment in block:
                for reference in segment.references:
                    texts += (segment.hypothesis, reference)
            rows = _pair_rows(scorer, [*map(scorer._preprocess_segment, texts)])
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
        if size >= BLOCK_CHARACTERS:
            yield block
            block = []
            size = 0
    if block:
        yield block


def _pair_rows(scorer: Any, texts: Sequence[str]) -> FloatArray:
    """Return the statistics of pairs, (pairs, 3 orders); `texts` alternates left and right."""
    pairs = [*zip(texts[::2], texts[1::2], strict=True)]
    if sum(map(len, texts)) <= SHORT_CHARACTERS:
        return np.array([_sacrebleu_row(scorer, *pair) for pair in pairs], dtype=float)
    chars, lengths = _concatenate_characters(texts, whitespace=scorer.whitespace)
    rows = _count_columns(lengths, count_shared(chars, lengths, scorer.char_order))
    if scorer.word_order:
        words, lengths = _concatenate_words(texts, scorer)
        more = _count_columns(lengths, count_shared(words, lengths, scorer.word_order))
        rows = np.concatenate([rows, more], axis=1)
    for number in np.flatnonzero((rows == NOT_COUNTED).any(axis=1)).tolist():
        rows[number] = _sacrebleu_row(scorer, *pairs[number])
    return rows


def _sacrebleu_row(scorer: Any, hypothesis: str, reference: str) -> list[int]:
    info = scorer._extract_reference_info([reference])
    row: list[int] = scorer._compute_segment_statistics(hypothesis, info)
    return row


def _concatenate_characters(texts: Sequence[str], *, whitespace: bool) -> tuple[IntArray, IntArray]:
    if not whitespace:
        texts = ["".join(text.split()) for text in texts]
    points = np.frombuffer("".join(texts).encode("utf-32-le"), dtype=np.uint32)
    return points.astype(np.int64), np.array([len(text) for text in texts], dtype=np.int64)


def _concatenate_words(texts: Sequence[str], scorer: Any) -> tuple[IntArray, IntArray]:
    split = cache(scorer._remove_punctuation)
    return number_words([[*chain.from_iterable(map(split, text.split()))] for text in texts])


def _count_columns(lengths: IntArray, shared: IntArray) -> FloatArray:
    """Return for each order the n-gram counts of hypothesis, reference and both."""
    orders = np.arange(shared.shape[1])
    hypothesis, reference = (np.maximum(lengths[side::2, None] - orders, 0) for side in (0, 1))
    hypothesis = np.where(reference > 0, hypothesis, 0)  # as in sacrebleu
    return np.stack([hypothesis, reference, shared], axis=2).reshape(len(shared), -1).astype(float)


def _best_pairs(counts: IntArray, scores: FloatArray) -> IntArray:
    """Return the index of the best pair of each segment, the first of equal ones."""
    owners = np.repeat(np.arange(len(counts)), counts)
    highest = np.maximum.reduceat(scores, np.cumsum(counts) - counts)
    candidates = np.flatnonzero(scores == highest[owners])
    _, firsts = np.unique(owners[candidates], return_index=True)
    best: IntArray = candidates[firsts]
    return best
