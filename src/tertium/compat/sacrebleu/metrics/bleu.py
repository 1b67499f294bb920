"""BLEU of sacrebleu's `metrics.bleu`."""

from __future__ import annotations

from typing import Any

from sacrebleu.metrics.bleu import BLEU as SacreBLEU
from sacrebleu.metrics.bleu import BLEUScore, BLEUSignature

from tertium.compat.sacrebleu.metrics.base import CountingMetric, Streams
from tertium.metrics.base.loading import load_metric
from tertium.metrics.lexical.sacrebleu_adapter import explain_tokenizer

__all__ = ["BLEU", "BLEUScore", "BLEUSignature"]


class BLEU(CountingMetric, SacreBLEU):
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
