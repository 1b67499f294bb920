"""chrF of sacrebleu's `metrics.chrf`."""

from __future__ import annotations

from sacrebleu.metrics.chrf import CHRF as SacreCHRF
from sacrebleu.metrics.chrf import CHRFScore, CHRFSignature

from tertium.compat.sacrebleu.metrics.base import CountingMetric

__all__ = ["CHRF", "CHRFScore", "CHRFSignature"]


class CHRF(CountingMetric, SacreCHRF):
    """Equivalent of `sacrebleu.metrics.CHRF`; `word_order=2` is chrF++."""

    metric_name = "chrf"
