"""BLEU: n-gram precision with a brevity penalty (Papineni et al. 2002).

Tokenization is sacrebleu's. Segments with a single reference are counted together with sorted
arrays (`text.shared_ngrams`), all others by sacrebleu, one by one.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal

import numpy as np

from tertium.core.arrays import FloatArray
from tertium.core.fields import Range
from tertium.core.runtime import progress_task
from tertium.core.segment import Segment
from tertium.metrics.base.metric import Metric
from tertium.metrics.base.text_warnings import Flags
from tertium.metrics.base.word_tokenizers import adjust_flags, bleu_brevity_penalty, exact_exp
from tertium.metrics.lexical.sacrebleu_adapter import (
    MAX_NGRAM_ORDER,
    check_tokenizer,
    load_sacrebleu_bleu,
    number_words,
    sacrebleu_signature,
    sacrebleu_statistics,
)
from tertium.text.ngram_overlap import NOT_COUNTED, count_shared

Smoothing = Literal["exp", "floor", "add-k", "none"]

# The log of the C library, as in sacrebleu; numpy's own differs in the last bit.
_exact_log = np.frompyfunc(math.log, 1, 1)
_LOG_OF_ZERO = -9999999999.0  # as in sacrebleu


@dataclass(frozen=True, kw_only=True)
class BLEU(Metric):
    """Geometric mean of n-gram precisions with a brevity penalty, 0 to 100.

        BLEU = BP exp(1/N sum_n log p_n),  BP = min(1, exp(1 - r/c))

    p_n is the clipped n-gram precision, c the hypothesis length, r the closest reference length.
    Statistics and scores are identical to sacrebleu's, to the last bit.

    Settings:

    - `tokenize`: any sacrebleu tokenizer. `lowercase`: ignore case.
    - `smooth_method`, `smooth_value`: smoothing of zero precisions.
    - `max_ngram_order`: the longest n-grams, N.
    - `effective_order`: use only orders that the hypothesis has. By default on for single segments
      and off for corpora, as in sacrebleu.

    See also: NIST weights n-grams by information; chrF counts characters and needs no tokenizer.

    >>> BLEU().sentence_score("the cat sat on the mat", ["the cat sat on a mat"])
    53.7284965911771
    """

    name: ClassVar[str] = "bleu"
    title: ClassVar[str] = "BLEU"
    decimals: ClassVar[int] = 2
    citation: ClassVar[str] = """\
@inproceedings{papineni-etal-2002-bleu,
    title = "{B}leu: a Method for Automatic Evaluation of Machine Translation",
    author = "Papineni, Kishore and Roukos, Salim and Ward, Todd and Zhu, Wei-Jing",
    booktitle = "Proceedings of ACL", year = "2002", pages = "311--318"
}
@inproceedings{post-2018-call,
    title = "A Call for Clarity in Reporting {BLEU} Scores",
    author = "Post, Matt", booktitle = "Proceedings of WMT", year = "2018", pages = "186--191"
}"""

    tokenize: str = "13a"
    lowercase: bool = False
    smooth_method: Smoothing = "exp"
    smooth_value: Annotated[float | None, Range(0, 1000)] = None
    max_ngram_order: Annotated[int, Range(1, MAX_NGRAM_ORDER)] = 4
    effective_order: bool | None = None

    def __post_init__(self) -> None:
        check_tokenizer(self.tokenize)

    def sacrebleu_metric(self) -> Any:
        """Return the sacrebleu metric with these settings."""
        return load_sacrebleu_bleu(**{**vars(self), "effective_order": bool(self.effective_order)})

    def statistics(self, segments: Sequence[Segment]) -> FloatArray:
        has_many_references = any(len(s.references) != 1 for s in segments)
        use_sacrebleu = len(segments) < MIN_ARRAY_SEGMENTS or has_many_references
        count = sacrebleu_statistics if use_sacrebleu else count_pairs
        return count(self.sacrebleu_metric(), segments, self.title)

    @property
    def columns(self) -> tuple[str, ...]:
        orders = range(1, self.max_ngram_order + 1)
        return (
            "hypothesis_length",
            "reference_length",
            *(f"matches_{n}" for n in orders),
            *(f"totals_{n}" for n in orders),
        )

    def reduce(self, totals: FloatArray) -> FloatArray:
        return self._score(totals, effective_order=bool(self.effective_order))

    def reduce_segments(self, statistics: FloatArray) -> FloatArray:
        return self._score(statistics, effective_order=self.effective_order is not False)

    def _score(self, totals: FloatArray, *, effective_order: bool) -> FloatArray:
        precisions = self.precisions(totals)  # (..., orders), in percent
        matches, counts = self._matches_and_counts(totals)
        reached = np.logical_and.accumulate(counts > 0, axis=-1).sum(axis=-1)
        depth = np.where(effective_order & (reached > 0), reached, self.max_ngram_order)
        is_positive = precisions > 0
        logs = np.asarray(_exact_log(np.where(is_positive, precisions, 1.0)), dtype=np.float64)
        logs = np.where(is_positive, logs, _LOG_OF_ZERO)
        # Added one by one, as in sacrebleu: the last bit depends on the order.
        mean = np.zeros(totals.shape[:-1])
        for n in range(self.max_ngram_order):
            mean = np.where(n < depth, mean + logs[..., n], mean)
        score = bleu_brevity_penalty(totals) * np.asarray(exact_exp(mean / depth), dtype=np.float64)
        return np.where(matches.any(axis=-1), score, 0.0)

    def precisions(self, totals: FloatArray) -> FloatArray:
        """Return smoothed n-gram precisions in percent, (..., k) -> (..., orders)."""
        matches, counts = self._matches_and_counts(totals)
        value = self._smooth_value()
        has_matches = matches.any(axis=-1, keepdims=True)
        if self.smooth_method == "add-k":
            matches = matches + np.where(np.arange(self.max_ngram_order) > 0, value, 0.0)
        reached = np.logical_and.accumulate(counts > 0, axis=-1)
        misses = (matches == 0) & reached
        safe = np.where(counts > 0, counts, 1.0)
        precisions = 100.0 * matches / safe
        if self.smooth_method == "exp":
            halvings = 2.0 ** np.cumsum(misses, axis=-1)
            precisions = np.where(misses, 100.0 / (halvings * safe), precisions)
        elif self.smooth_method == "floor":
            precisions = np.where(misses, 100.0 * value / safe, precisions)
        return np.where(reached & has_matches, precisions, 0.0)

    def _matches_and_counts(self, totals: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the matches and the smoothed counts of n-grams, (..., orders) each."""
        matches, counts = np.split(totals[..., 2:], 2, axis=-1)
        if self.smooth_method == "add-k":
            counts = counts + np.where(np.arange(self.max_ngram_order) > 0, self._smooth_value(), 0)
        return matches, counts

    def _smooth_value(self) -> float:
        from sacrebleu.metrics.bleu import BLEU as SacreBLEU

        default = SacreBLEU.SMOOTH_DEFAULTS[self.smooth_method]
        return float((default if self.smooth_value is None else self.smooth_value) or 0.0)

    def flags(self, segments: Sequence[Segment]) -> Flags:
        return adjust_flags(super().flags(segments), segments, self.tokenize)

    def signature_fields(self, segments: Sequence[Segment]) -> Mapping[str, str]:
        fields = dict(sacrebleu_signature(self.sacrebleu_metric()))
        if self.effective_order is None:
            fields["eff"] = "segment"
        if self.smooth_method in ("floor", "add-k"):  # sacrebleu prints only two decimals
            fields["smooth"] = f"{self.smooth_method}[{_format_value(self._smooth_value())}]"
        if self.max_ngram_order != 4:
            fields["order"] = str(self.max_ngram_order)
        return fields

    def verbose(self, totals: FloatArray) -> str:
        parts = "/".join(f"{p:.1f}" for p in self.precisions(totals))
        hypothesis = totals[0]
        reference = totals[1]
        ratio = hypothesis / reference if reference else 0.0
        return (
            f"{parts} (BP = {float(bleu_brevity_penalty(totals)):.3f} ratio = {ratio:.3f} "
            f"hyp_len = {hypothesis:.0f} ref_len = {reference:.0f})"
        )


MIN_ARRAY_SEGMENTS = 8  # below, sacrebleu is faster than arrays
BLOCK_SEGMENTS = 1 << 14  # bounds the memory


def count_pairs(scorer: Any, segments: Sequence[Segment], title: str) -> FloatArray:
    """Return sacrebleu's statistics of segments with one reference each, (n, k)."""
    blocks = []
    with progress_task(title, total=len(segments)) as advance:
        for start in range(0, len(segments), BLOCK_SEGMENTS):
            block = segments[start : start + BLOCK_SEGMENTS]
            blocks.append(_pair_rows(scorer, block, title))
            advance(len(block))
    return np.concatenate(blocks)


def _pair_rows(scorer: Any, segments: Sequence[Segment], title: str) -> FloatArray:
    texts = [text for s in segments for text in (s.hypothesis, *s.references)]
    words, lengths = number_words(scorer._preprocess_segment(text).split() for text in texts)
    matches = count_shared(words, lengths, scorer.max_ngram_order)
    totals = np.maximum(lengths[0::2, None] - np.arange(scorer.max_ngram_order), 0)
    rows = np.column_stack([lengths.reshape(-1, 2), matches, totals]).astype(np.float64)
    has_many_words = (matches == NOT_COUNTED).any(axis=1)  # too many for arrays
    for n in np.flatnonzero(has_many_words).tolist():
        rows[n] = sacrebleu_statistics(scorer, [segments[n]], title)
    return rows


def _format_value(value: float) -> str:
    """Format a number with two decimals, as sacrebleu does, or in full if it has more."""
    return f"{value:.2f}" if round(value, 2) == value else repr(value)
