"""TER of sacrebleu's `metrics.ter`."""

from __future__ import annotations

from typing import Any

from sacrebleu.metrics.ter import TER as SacreTER
from sacrebleu.metrics.ter import TERScore, TERSignature

from tertium.compat.sacrebleu.metrics.base import CountingMetric

__all__ = ["TER", "TERScore", "TERSignature"]


class TER(CountingMetric, SacreTER):
    """Equivalent of `sacrebleu.metrics.TER`."""

    metric_name = "ter"

    def _row(self, counts: list[float]) -> list[Any]:
        edits, reference_length, *_ = counts
        return [int(edits), reference_length]
