"""sacrebleu's statistics of chrF for many segments at once.

What is a character or a word, and which reference is the best, is as sacrebleu has it. The n-grams
of all pairs are counted from sorted arrays (`text.shared`); a pair that these cannot hold, since it
has many hundreds of distinct characters, is left to sacrebleu.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from typing import Any

import numpy as np

from tertium.arrays import FloatArray, IntArray
from tertium.runtime import task
from tertium.segment import Segment
from tertium.text.ngrams import ABSENT
from tertium.text.shared import count_shared

BLOCK = 1 << 20  # characters at once, so that memory is bounded whatever the texts

Reduce = Callable[[FloatArray], FloatArray]


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
            counts = np.array([len(segment.references) for segment in block])
            tables.append(rows[_best_pairs(counts, reduce(rows))])
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
    chars, lengths = _lay_out_characters(texts, whitespace=sacre.whitespace)
    rows = _triples(lengths, count_shared(chars, lengths, sacre.char_order))
    if sacre.word_order:
        words, lengths = _lay_out_words(texts, sacre)
        more = _triples(lengths, count_shared(words, lengths, sacre.word_order))
        rows = np.concatenate([rows, more], axis=1)
    for pair in np.flatnonzero((rows == ABSENT).any(axis=1)).tolist():
        info = sacre._extract_reference_info([texts[2 * pair + 1]])
        rows[pair] = sacre._compute_segment_statistics(texts[2 * pair], info)
    return rows


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
