"""chrF of sacrebleu's `metrics.chrf`."""

from __future__ import annotations

from typing import Any

from sacrebleu.metrics.chrf import CHRF as SacreCHRF
from sacrebleu.metrics.chrf import CHRFScore, CHRFSignature

from tertium.compat.sacrebleu.metrics.base import CountingMetric, Streams
from tertium.metrics.base.loading import load_metric

__all__ = ["CHRF", "CHRFScore", "CHRFSignature"]


class CHRF(CountingMetric, SacreCHRF):
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
