"""BLEU of sacrebleu's `metrics.bleu`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sacrebleu.metrics.bleu import BLEU as SacreBLEU
from sacrebleu.metrics.bleu import BLEUScore, BLEUSignature

from tertium.compat.sacrebleu.metrics.base import CountingMetric

__all__ = ["BLEU", "BLEUScore", "BLEUSignature"]


class BLEU(CountingMetric, SacreBLEU):
    """Equivalent of `sacrebleu.metrics.BLEU`."""

    metric_name = "bleu"

    def _settings(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        settings = super()._settings(arguments)
        del settings["force"]
        language = settings.pop("trg_lang")
        if settings["tokenize"] is None:
            settings["tokenize"] = self._TOKENIZER_MAP.get(language, self.TOKENIZER_DEFAULT)
        return settings
