"""NIST: n-gram matches weighted by their information (Doddington 2002), as in mteval-v13a."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np

from tertium.core.arrays import FloatArray, IntArray
from tertium.core.fields import Range
from tertium.core.segment import Segment
from tertium.metrics.base.metric import Metric
from tertium.metrics.base.text_warnings import Flags
from tertium.metrics.base.word_tokenizers import adjust_flags, nist_brevity_penalty
from tertium.metrics.lexical.sacrebleu_adapter import (
    check_tokenizer,
    load_sacrebleu_bleu,
    sacrebleu_signature,
)
from tertium.text.ngram_overlap import NgramIndex, NgramPositions, clipped_matches

MAX_ORDER = 10

Texts = Sequence[Sequence[str]]


@dataclass(frozen=True, kw_only=True)
class NIST(Metric):
    """Information-weighted n-gram precision, summed over orders, with a brevity penalty.

        info(w1 ... wn) = log2(count(w1 ... wn-1) / count(w1 ... wn))
        NIST = BP sum_n (sum of info over matched n-grams) / (number of n-grams in the hypothesis)
        BP = exp(beta log^2 min(1, hypothesis length / mean reference length))

    Counts are taken over all references of the call, so a segment's score depends on the references
    of the other segments. The count of the empty n-gram is the number of words. Matches are clipped
    by the reference with the most occurrences. beta makes BP = 1/2 at a length ratio of 2/3. The
    score has no upper bound; 5 to 10 is usual for a corpus.

    Settings:

    - `order`: the longest n-gram in the score, 1 to 10. The statistics hold all ten orders.
    - `tokenize`: any sacrebleu tokenizer. `lowercase`: ignore case.

    With the defaults, scores equal those of mteval-v13a, except that all letters are lowercased
    (not only A to Z), that references without words give 0 instead of an error, and that a first
    word "0" is not skipped. NLTK's `corpus_nist` agrees for single references; with several it
    takes the best one for each order instead of clipping.

    See also: BLEU takes the geometric mean and weights all n-grams equally.

    >>> round(NIST().sentence_score("the cat sat on the mat", ["the cat sat on a mat"]), 4)
    2.1541
    """

    name: ClassVar[str] = "nist"
    title: ClassVar[str] = "NIST"
    citation: ClassVar[str] = """\
@inproceedings{doddington-2002-automatic,
    title = "Automatic Evaluation of Machine Translation Quality Using N-gram Co-Occurrence
        Statistics",
    author = "Doddington, George", booktitle = "Proceedings of HLT", year = "2002",
    pages = "138--145"
}"""

    order: Annotated[int, Range(1, MAX_ORDER)] = 5
    tokenize: str = "13a"
    lowercase: bool = True

    def __post_init__(self) -> None:
        check_tokenizer(self.tokenize)

    @property
    def reads_corpus(self) -> bool:
        return True

    @property
    def columns(self) -> tuple[str, ...]:
        orders = range(1, MAX_ORDER + 1)
        return (
            "hypothesis_length",
            "reference_length",
            *(f"information_{n}" for n in orders),
            *(f"matches_{n}" for n in orders),
            *(f"totals_{n}" for n in orders),
        )

    def statistics(self, segments: Sequence[Segment]) -> FloatArray:
        preprocess = self._sacrebleu_metric()._preprocess_segment
        words: dict[str, list[str]] = {}

        def split(text: str) -> list[str]:
            if text not in words:
                words[text] = preprocess(text).split()
            return words[text]

        return nist_statistics(
            [split(s.hypothesis) for s in segments],
            [[split(reference) for reference in s.references] for s in segments],
        )

    def reduce(self, totals: FloatArray) -> FloatArray:
        precisions = information_precisions(totals)[..., : self.order]
        score: FloatArray = precisions.sum(axis=-1) * nist_brevity_penalty(totals)
        return score

    def flags(self, segments: Sequence[Segment]) -> Flags:
        return adjust_flags(super().flags(segments), segments, self.tokenize)

    def signature_fields(self, segments: Sequence[Segment]) -> Mapping[str, str]:
        fields = sacrebleu_signature(self._sacrebleu_metric())
        shared = {key: fields[key] for key in ("case", "tok", "sacrebleu")}
        return {"order": str(self.order), **shared}

    def verbose(self, totals: FloatArray) -> str:
        parts = "/".join(f"{p:.2f}" for p in information_precisions(totals)[: self.order])
        return (
            f"{parts} (BP = {float(nist_brevity_penalty(totals)):.3f} "
            f"hyp_len = {totals[0]:.0f} ref_len = {totals[1]:.1f})"
        )

    def _sacrebleu_metric(self) -> Any:
        return load_sacrebleu_bleu(tokenize=self.tokenize, lowercase=self.lowercase)


def nist_statistics(hypotheses: Texts, references: Sequence[Texts]) -> FloatArray:
    """Return the statistics of tokenized hypotheses and their references, (n, 32).

    Information is estimated from all references.

    >>> rows = nist_statistics([["a", "b"]], [[["a", "b", "c", "d"]]])
    >>> rows[0, :4]  # lengths; two words of log2(4/1) bits each, a bigram of 0 bits
    array([2., 4., 4., 0.])
    """
    texts = [text for group in references for text in group]
    index = NgramIndex.of(texts, MAX_ORDER)
    located = index.locate(texts)
    weights = _information(index, located)
    sizes = np.array([len(group) for group in references], dtype=np.int64)
    groups = np.repeat(np.arange(len(references)), sizes)  # (references,)
    lengths = np.array([len(words) for words in hypotheses], dtype=np.float64)
    reference_lengths = np.bincount(
        groups, weights=[len(text) for text in texts], minlength=len(references)
    )
    information, matches = _match(index.locate(hypotheses), located, groups, weights, len(lengths))
    totals = np.maximum(lengths[:, None] - np.arange(MAX_ORDER), 0.0)  # (n, orders)
    means = reference_lengths / np.maximum(sizes, 1)
    return np.column_stack([lengths, means, information, matches, totals])


def _information(index: NgramIndex, located: NgramPositions) -> list[FloatArray]:
    """Return the information, in bits, of the last word of each n-gram, by order."""
    counts = index.counts(located)
    before = np.full(len(counts[0]), max(len(located.owner), 1))
    weights = [np.log2(before / counts[0])]
    for n in range(2, MAX_ORDER + 1):
        weights.append(np.log2(counts[n - 2][index.parents(n)] / counts[n - 1]))
    return weights


def _match(
    hypotheses: NgramPositions,
    references: NgramPositions,
    groups: IntArray,
    weights: list[FloatArray],
    rows: int,
) -> tuple[FloatArray, FloatArray]:
    """Return the information and the count of matched n-grams, (n, orders) each."""
    information, matches = np.zeros((2, rows, MAX_ORDER))
    for n, (numbers, wanted) in enumerate(zip(hypotheses.numbers, references.numbers, strict=True)):
        matched = clipped_matches(numbers, hypotheses.owner, wanted, references.owner, groups)
        owner = hypotheses.owner[matched]
        bits = weights[n][numbers[matched]]
        information[:, n] = np.bincount(owner, weights=bits, minlength=rows)
        matches[:, n] = np.bincount(owner, minlength=rows)
    return information, matches


def information_precisions(totals: FloatArray) -> FloatArray:
    """Return the information per n-gram; NIST-n is the sum of the first n, times the penalty."""
    information = totals[..., 2 : 2 + MAX_ORDER]
    counts = totals[..., 2 + 2 * MAX_ORDER :]
    return np.divide(information, counts, out=np.zeros_like(information), where=counts > 0)
