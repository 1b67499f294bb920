"""TER of sacrebleu's `metrics.ter`."""

from __future__ import annotations

from typing import Any

from sacrebleu.metrics.ter import TER as SacreTER
from sacrebleu.metrics.ter import TERScore, TERSignature

from tertium.compat.sacrebleu.metrics.base import CountingMetric, Streams
from tertium.metrics.base.loading import load_metric

__all__ = ["TER", "TERScore", "TERSignature"]


class TER(CountingMetric, SacreTER):
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
