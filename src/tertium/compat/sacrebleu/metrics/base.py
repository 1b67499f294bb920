"""Checks and counts of tertium's metrics for sacrebleu's classes, and the names of its `base`."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from inspect import Signature as CallSignature
from inspect import signature
from typing import Any, ClassVar

import numpy as np
from sacrebleu.metrics.base import Metric, Score, Signature

from tertium.core.errors import UsageError
from tertium.core.result import is_missing
from tertium.core.segment import check_texts
from tertium.metrics.base.capabilities import HasSettings
from tertium.metrics.base.compatibility_calls import as_text_list, make_segment, make_segments
from tertium.metrics.base.loading import load_metric
from tertium.metrics.base.metric import Metric as TertiumMetric
from tertium.metrics.base.metric import compute_statistics
from tertium.metrics.base.word_tokenizers import explain_tokenizer
from tertium.version import __version__

__all__ = ["CountingMetric", "Metric", "Score", "Signature", "Streams"]

Streams = Sequence[Sequence[Any]]  # texts; None if a segment has fewer references
TOKENIZED_WARNING_COUNT = 100  # sacrebleu warns from this number of tokenized hypotheses

logger = logging.getLogger(__name__)


class CountingMetric(Metric):
    """Checks and counts texts with a tertium metric, and adds tertium to signatures.

    Subclasses come before a class of sacrebleu, whose arguments they take, and name the metric.
    """

    metric_name: ClassVar[str]
    metric: TertiumMetric
    __signature__: ClassVar[CallSignature]

    def __init__(self, *arguments: Any, **keywords: Any) -> None:
        bound = self.__signature__.bind(*arguments, **keywords)
        bound.apply_defaults()
        settings = self._settings(bound.arguments)
        self.metric = load_metric(self.metric_name, **settings)
        with explain_tokenizer(settings.get("tokenize", "")):
            super().__init__(*arguments, **keywords)  # type: ignore[no-untyped-call]

    def __init_subclass__(cls) -> None:
        """Show the arguments of sacrebleu's class in help and completion."""
        cls.__signature__ = signature(cls.__mro__[2])

    def _settings(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Return the arguments that the metric of tertium has."""
        return {name: value for name, value in arguments.items() if name != "references"}

    def get_signature(self) -> Signature:
        """Return sacrebleu's signature, plus tertium's version and the settings it omits."""
        if not hasattr(self, "num_refs"):
            raise UsageError("score something first: the signature counts the references")
        extended: Signature = super().get_signature()
        fields = self.metric.signature_fields(()) if isinstance(self.metric, HasSettings) else {}
        omitted = {key: fields[key] for key in ("order", "beta") if key in fields}
        extended.info |= {**omitted, "tertium": __version__}
        extended._abbr |= {key: key for key in (*omitted, "tertium")}
        return extended

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
        rows = compute_statistics(self.metric, segments).tolist()
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
