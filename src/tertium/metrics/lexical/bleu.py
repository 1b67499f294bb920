"""BLEU: how many n-grams of the hypothesis occur in the references (Papineni et al. 2002).

Tokens are sacrebleu's. The n-grams of many segments with one reference each are counted at once
from sorted arrays (`text.shared_ngrams`), others by sacrebleu, one by one.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Annotated, Any, ClassVar, Literal

import numpy as np

from tertium.arrays import FloatArray
from tertium.errors import UnknownNameError
from tertium.metrics.base.components import brevity_penalty, exact_exp
from tertium.metrics.base.metric import Metric
from tertium.metrics.lexical.sacre import (
    LONGEST,
    load_sacre_bleu,
    match_statistics,
    sacre_signature,
    warn_by_tokenizer,
)
from tertium.runtime import task
from tertium.segment import Segment
from tertium.specs import Range
from tertium.text.shared_ngrams import ABSENT, count_shared

Smoothing = Literal["exp", "floor", "add-k", "none"]

# The ufuncs of the C library that sacrebleu uses too; numpy's own differ in the last bit.
_log = np.frompyfunc(lambda x: math.log(x) if x > 0 else -9999999999.0, 1, 1)


@dataclass(frozen=True, kw_only=True)
class BLEU(Metric):
    """Brevity-penalised geometric mean of n-gram precisions, 0 to 100.

        BLEU = BP exp(1/N sum_n log p_n),  BP = min(1, exp(1 - r/c))

    Statistics and scores are sacrebleu's, bit for bit. `effective_order` unset means: on for single
    segments, off for corpora, as sacrebleu's own functions have it; set it to have one for both.
    `tokenize` names any of sacrebleu's tokenizers.

    Relatives: NIST weighs n-grams by information; chrF counts characters and needs no tokenizer.

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
    smooth_value: Annotated[float | None, Range(0)] = None
    max_ngram_order: Annotated[int, Range(1, LONGEST)] = 4
    effective_order: bool | None = None

    def __post_init__(self) -> None:
        from sacrebleu.metrics.bleu import BLEU as SacreBLEU

        if self.tokenize not in SacreBLEU.TOKENIZERS:
            raise UnknownNameError("tokenizer", self.tokenize, SacreBLEU.TOKENIZERS)
        if self.smooth_method not in SacreBLEU.SMOOTH_DEFAULTS:
            raise UnknownNameError("smoothing", self.smooth_method, SacreBLEU.SMOOTH_DEFAULTS)

    def sacre(self) -> Any:
        """The sacrebleu metric with these settings."""
        return load_sacre_bleu(**{**vars(self), "effective_order": bool(self.effective_order)})

    def statistics(self, segments: Sequence[Segment]) -> FloatArray:
        alone = len(segments) < MANY or any(len(s.references) != 1 for s in segments)
        count = match_statistics if alone else count_pairs
        return count(self.sacre(), segments, self.title)

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
        present = self._smoothed_totals(totals) > 0
        reached = np.logical_and.accumulate(present, axis=-1)
        depth = reached.sum(axis=-1) if effective_order else np.full(totals.shape[:-1], 0)
        depth = np.where(depth > 0, depth, self.max_ngram_order)
        logs = np.asarray(_log(precisions), dtype=np.float64)
        # Added one by one, as sacrebleu does, so that the last bit agrees too.
        mean = np.zeros(totals.shape[:-1])
        for n in range(self.max_ngram_order):
            mean = np.where(n < depth, mean + logs[..., n], mean)
        score = brevity_penalty(totals) * np.asarray(exact_exp(mean / depth), dtype=np.float64)
        matched = self._matches(totals).any(axis=-1)
        return np.where(matched, score, 0.0)

    def precisions(self, totals: FloatArray) -> FloatArray:
        """Smoothed n-gram precisions in percent, (..., k) -> (..., orders)."""
        matches, counts = self._matches(totals), self._smoothed_totals(totals)
        value = self._smooth_value()
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
        any_match = self._matches(totals).any(axis=-1, keepdims=True)
        return np.where(reached & any_match, precisions, 0.0)

    def _matches(self, totals: FloatArray) -> FloatArray:
        return totals[..., 2 : 2 + self.max_ngram_order]

    def _smoothed_totals(self, totals: FloatArray) -> FloatArray:
        counts = totals[..., 2 + self.max_ngram_order :]
        if self.smooth_method != "add-k":
            return counts
        added = np.where(np.arange(self.max_ngram_order) > 0, self._smooth_value(), 0.0)
        return counts + added

    def _smooth_value(self) -> float:
        from sacrebleu.metrics.bleu import BLEU as SacreBLEU

        default = SacreBLEU.SMOOTH_DEFAULTS[self.smooth_method]
        chosen = self.smooth_value if self.smooth_value is not None else default
        return float(chosen or 0.0)

    def warnings(self, segments: Sequence[Segment]) -> dict[str, int]:
        return warn_by_tokenizer(super().warnings(segments), segments, self.tokenize)

    def signature_fields(self, segments: Sequence[Segment]) -> Mapping[str, str]:
        fields = dict(sacre_signature(self.sacre()))
        if self.effective_order is None:
            fields["eff"] = "segment"
        if self.smooth_method in ("floor", "add-k"):  # sacrebleu rounds it to two decimals
            fields["smooth"] = f"{self.smooth_method}[{_digits(self._smooth_value())}]"
        if self.max_ngram_order != 4:
            fields["order"] = str(self.max_ngram_order)
        return fields

    def verbose(self, totals: FloatArray) -> str:
        parts = "/".join(f"{p:.1f}" for p in self.precisions(totals))
        hypothesis, reference = totals[0], totals[1]
        ratio = hypothesis / reference if reference else 0.0
        return (
            f"{parts} (BP = {float(brevity_penalty(totals)):.3f} ratio = {ratio:.3f} "
            f"hyp_len = {hypothesis:.0f} ref_len = {reference:.0f})"
        )


MANY = 8  # segments, from which on arrays are faster than sacrebleu
BLOCK = 1 << 14  # segments at once, so that memory is bounded


def count_pairs(sacre: Any, segments: Sequence[Segment], title: str) -> FloatArray:
    """sacrebleu's statistics of segments that have one reference each, (n, k)."""
    places: dict[tuple[str, ...], list[int]] = {}
    for n, segment in enumerate(segments):
        places.setdefault(segment.references, []).append(n)
    order = list(chain.from_iterable(places.values()))  # what is tokenized once stands together
    table = np.empty((len(segments), 2 + 2 * sacre.max_ngram_order))
    with task(title, total=len(segments)) as advance:
        for start in range(0, len(segments), BLOCK):
            chosen = order[start : start + BLOCK]
            table[chosen] = _pair_rows(sacre, [segments[n] for n in chosen], title)
            advance(len(chosen))
    return table


def _pair_rows(sacre: Any, segments: Sequence[Segment], title: str) -> FloatArray:
    numbers: dict[str, int] = {}
    texts = [
        [numbers.setdefault(word, len(numbers)) for word in sacre._preprocess_segment(text).split()]
        for segment in segments
        for text in (segment.hypothesis, *segment.references)
    ]
    lengths = np.array([len(text) for text in texts], dtype=np.int64)
    words = np.fromiter(chain.from_iterable(texts), dtype=np.int64, count=lengths.sum())
    matches = count_shared(words, lengths, sacre.max_ngram_order)
    totals = np.maximum(lengths[0::2, None] - np.arange(sacre.max_ngram_order), 0)
    rows = np.column_stack([lengths.reshape(-1, 2), matches, totals]).astype(np.float64)
    for n in np.flatnonzero((matches == ABSENT).any(axis=1)).tolist():  # of very many words
        rows[n] = match_statistics(sacre, [segments[n]], title)
    return rows


def _digits(value: float) -> str:
    """A number as sacrebleu prints it where two decimals hold it, else in full."""
    return f"{value:.2f}" if round(value, 2) == value else repr(value)
