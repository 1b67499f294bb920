"""sacrebleu's metric classes, as in `sacrebleu.metrics`, over the counts of tertium's metrics.

Each class is the one of its name there: settings, formulas, scores, intervals and what they print
are inherited. Texts are checked and counted here, and the signature names tertium as well.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

import numpy as np
from sacrebleu.metrics.base import Metric as SacreMetric
from sacrebleu.metrics.base import Score, Signature
from sacrebleu.metrics.bleu import BLEU as SacreBLEU
from sacrebleu.metrics.bleu import BLEUScore
from sacrebleu.metrics.chrf import CHRF as SacreCHRF
from sacrebleu.metrics.chrf import CHRFScore
from sacrebleu.metrics.ter import TER as SacreTER
from sacrebleu.metrics.ter import TERScore

from tertium.errors import UsageError
from tertium.frames import is_missing
from tertium.metrics.base.loading import load_metric
from tertium.metrics.base.metric import Metric
from tertium.metrics.base.peers import arrange, listed, make_segment
from tertium.metrics.lexical.sacre import explain_tokenizer
from tertium.segment import check_texts
from tertium.version import __version__

__all__ = ["BLEU", "CHRF", "METRICS", "TER", "BLEUScore", "CHRFScore", "Score", "TERScore"]

Streams = Sequence[Sequence[Any]]  # texts; None where a segment has fewer references
MANY_TOKENIZED = 100  # hypotheses, from which on sacrebleu warns

logger = logging.getLogger(__name__)


class _Counted(SacreMetric):
    """What is not sacrebleu's own: how texts are checked and counted, and who is said to."""

    metric: Metric

    def get_signature(self) -> Signature:
        """sacrebleu's signature, with tertium's version and the settings that it leaves out."""
        if not hasattr(self, "num_refs"):
            raise UsageError("score something first: the signature counts the references")
        signature: Signature = super().get_signature()
        fields = self.metric.signature_fields(())
        unsaid = {key: fields[key] for key in ("order", "beta") if key in fields}
        signature.info |= {**unsaid, "tertium": __version__}
        signature._abbr |= {key: key for key in (*unsaid, "tertium")}
        return signature

    def sentence_score(self, hypothesis: str, references: Sequence[str | None]) -> Any:
        """The score of one sentence; references that are None do not count."""
        segment = make_segment(hypothesis, references)
        if not segment.references:
            raise UsageError("no references: give a list of texts, such as [reference]")
        self.num_refs = len(segment.references)
        (counts,) = self.metric.statistics([segment]).tolist()
        return self._aggregate_and_compute([self._row(counts)])

    def _check_corpus_score_args(self, hyps: Sequence[str], refs: Streams | None) -> None:
        check_texts(hyps, "hypotheses", "hypothesis")

    def _cache_references(self, references: Streams) -> list[Any]:
        streams = listed(references, "references")
        if any(isinstance(stream, str) for stream in streams):
            raise UsageError(
                "references are streams, one list for each set of references, not texts: "
                "give [references]"
            )
        rows = zip(*streams, strict=False)  # which are checked with the hypotheses
        numbers = {sum(not is_missing(text) for text in row) for row in rows}
        self.num_refs = numbers.pop() if len(numbers) == 1 else -1  # printed as `var`
        return streams

    def _extract_corpus_statistics(
        self, hypotheses: Sequence[str], references: Streams | None
    ) -> list[list[Any]]:
        streams = self._ref_cache if references is None else self._cache_references(references)
        if not streams:
            raise UsageError("no references: give streams, or references=... to the constructor")
        segments = arrange(hypotheses, streams, layout="streams")
        self.metric.check(segments)
        rows = self.metric.distinct_statistics(segments).tolist()
        tokenized = sum(segment.hypothesis.endswith(" .") for segment in segments)
        if tokenized >= MANY_TOKENIZED and not self._force:
            logger.warning(
                "%d hypotheses end in a tokenized period (' .'), which changes a score: give texts "
                "as people write them, or force=True",
                tokenized,
            )
        return [self._row(row) for row in rows]

    def _compute_score_from_stats(self, stats: Any) -> Any:
        # samples are single numbers of numpy there, which do not mix with those of Python
        return super()._compute_score_from_stats(np.asarray(stats).tolist())  # type: ignore[safe-super]

    def _row(self, counts: list[float]) -> list[Any]:
        """The counts of a segment as sacrebleu has them."""
        return [int(count) for count in counts]


class BLEU(_Counted, SacreBLEU):
    """As `sacrebleu.metrics.BLEU`."""

    def __init__(
        self,
        lowercase: bool = False,
        force: bool = False,
        tokenize: str | None = None,
        smooth_method: str = "exp",
        smooth_value: float | None = None,
        max_ngram_order: int = 4,
        effective_order: bool = False,
        trg_lang: str = "",
        references: Streams | None = None,
    ) -> None:
        settings: dict[str, Any] = {
            "lowercase": lowercase,
            "tokenize": self._TOKENIZER_MAP.get(trg_lang, "13a") if tokenize is None else tokenize,
            "smooth_method": smooth_method,
            "smooth_value": smooth_value,
            "max_ngram_order": max_ngram_order,
            "effective_order": effective_order,
        }
        self.metric = load_metric("bleu", **settings)
        chosen = settings | {"tokenize": tokenize}
        with explain_tokenizer(settings["tokenize"]):
            super().__init__(force=force, trg_lang=trg_lang, references=references, **chosen)


class CHRF(_Counted, SacreCHRF):
    """As `sacrebleu.metrics.CHRF`; `word_order=2` is chrF++."""

    def __init__(
        self,
        char_order: int = 6,
        word_order: int = 0,
        beta: int = 2,
        lowercase: bool = False,
        whitespace: bool = False,
        eps_smoothing: bool = False,
        references: Streams | None = None,
    ) -> None:
        settings: dict[str, Any] = {
            "char_order": char_order,
            "word_order": word_order,
            "beta": beta,
            "lowercase": lowercase,
            "whitespace": whitespace,
            "eps_smoothing": eps_smoothing,
        }
        self.metric = load_metric("chrf", **settings)
        super().__init__(references=references, **settings)


class TER(_Counted, SacreTER):
    """As `sacrebleu.metrics.TER`."""

    def __init__(
        self,
        normalized: bool = False,
        no_punct: bool = False,
        asian_support: bool = False,
        case_sensitive: bool = False,
        references: Streams | None = None,
    ) -> None:
        settings: dict[str, Any] = {
            "normalized": normalized,
            "no_punct": no_punct,
            "asian_support": asian_support,
            "case_sensitive": case_sensitive,
        }
        self.metric = load_metric("ter", **settings)
        super().__init__(references=references, **settings)

    def _row(self, counts: list[float]) -> list[Any]:
        edits, reference_length, *_ = counts
        return [int(edits), reference_length]


METRICS = {"BLEU": BLEU, "CHRF": CHRF, "TER": TER}
