"""sacrebleu's metric classes (`sacrebleu.metrics`) on top of the counts of tertium's metrics.

Each class inherits settings, formulas, scores, intervals and output from sacrebleu's class of the
same name. Checks and counts are tertium's, and signatures also name tertium.
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
from tertium.metrics.base.compatibility_calls import as_text_list, make_segment, make_segments
from tertium.metrics.base.loading import load_metric
from tertium.metrics.base.metric import Metric
from tertium.metrics.lexical.sacrebleu_adapter import explain_tokenizer
from tertium.segment import check_texts
from tertium.version import __version__

__all__ = ["BLEU", "CHRF", "METRICS", "TER", "BLEUScore", "CHRFScore", "Score", "TERScore"]

Streams = Sequence[Sequence[Any]]  # texts; None if a segment has fewer references
TOKENIZED_WARNING_COUNT = 100  # sacrebleu warns from this number of tokenized hypotheses

logger = logging.getLogger(__name__)


class _TertiumCounts(SacreMetric):
    """Checks and counts texts with a tertium metric, and adds tertium to signatures."""

    metric: Metric

    def get_signature(self) -> Signature:
        """Return sacrebleu's signature, plus tertium's version and the settings it omits."""
        if not hasattr(self, "num_refs"):
            raise UsageError("score something first: the signature counts the references")
        signature: Signature = super().get_signature()
        fields = self.metric.signature_fields(())
        omitted = {key: fields[key] for key in ("order", "beta") if key in fields}
        signature.info |= {**omitted, "tertium": __version__}
        signature._abbr |= {key: key for key in (*omitted, "tertium")}
        return signature

    def sentence_score(self, hypothesis: str, references: Sequence[str | None]) -> Any:
        """Score one sentence; references that are None are skipped."""
        segment = make_segment(hypothesis, references)
        if not segment.references:
            raise UsageError("no references: give a list of texts, such as [reference]")
        self.num_refs = len(segment.references)
        (counts,) = self.metric.statistics([segment]).tolist()
        return self._aggregate_and_compute([self._row(counts)])

    def _check_corpus_score_args(self, hyps: Sequence[str], refs: Streams | None) -> None:
        check_texts(hyps, "hypotheses", "hypothesis")

    def _cache_references(self, references: Streams) -> list[Any]:
        streams = as_text_list(references, "references")
        if any(isinstance(stream, str) for stream in streams):
            raise UsageError(
                "references are a list of texts: expected one list for each set of references; "
                "give [references]"
            )
        rows = zip(*streams, strict=False)  # lengths are checked with the hypotheses
        counts = {sum(not is_missing(text) for text in row) for row in rows}
        self.num_refs = counts.pop() if len(counts) == 1 else -1  # printed as `var`
        return streams

    def _extract_corpus_statistics(
        self, hypotheses: Sequence[str], references: Streams | None
    ) -> list[list[Any]]:
        streams = self._ref_cache if references is None else self._cache_references(references)
        if not streams:
            raise UsageError("no references: give streams, or references=... to the constructor")
        segments = make_segments(hypotheses, streams, layout="streams")
        self.metric.check(segments)
        rows = self.metric.compute_statistics(segments).tolist()
        tokenized = sum(segment.hypothesis.endswith(" .") for segment in segments)
        if tokenized >= TOKENIZED_WARNING_COUNT and not self._force:
            logger.warning(
                "%d hypotheses end in a tokenized period (' .'), which changes scores: give "
                "detokenized texts, or force=True",
                tokenized,
            )
        return [self._row(row) for row in rows]

    def _compute_score_from_stats(self, stats: Any) -> Any:
        # Bootstrap samples are numpy scalars in sacrebleu; `statistics.mean` needs Python numbers.
        return super()._compute_score_from_stats(np.asarray(stats).tolist())  # type: ignore[safe-super]

    def _row(self, counts: list[float]) -> list[Any]:
        return [int(count) for count in counts]


class BLEU(_TertiumCounts, SacreBLEU):
    """Equivalent of `sacrebleu.metrics.BLEU`."""

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
        settings_for_sacrebleu = settings | {"tokenize": tokenize}
        with explain_tokenizer(settings["tokenize"]):
            super().__init__(
                force=force, trg_lang=trg_lang, references=references, **settings_for_sacrebleu
            )


class CHRF(_TertiumCounts, SacreCHRF):
    """Equivalent of `sacrebleu.metrics.CHRF`; `word_order=2` is chrF++."""

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


class TER(_TertiumCounts, SacreTER):
    """Equivalent of `sacrebleu.metrics.TER`."""

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
