"""sacrebleu's metric classes (`sacrebleu.metrics`) on top of the counts of tertium's metrics.

Each class inherits settings, formulas, scores, intervals and output from sacrebleu's class of the
same name. Checks and counts are tertium's, and signatures also name tertium.
"""

from __future__ import annotations

from tertium.compat.sacrebleu.metrics.base import Score
from tertium.compat.sacrebleu.metrics.bleu import BLEU, BLEUScore
from tertium.compat.sacrebleu.metrics.chrf import CHRF, CHRFScore
from tertium.compat.sacrebleu.metrics.ter import TER, TERScore

__all__ = ["BLEU", "CHRF", "METRICS", "TER", "BLEUScore", "CHRFScore", "Score", "TERScore"]

METRICS = {"BLEU": BLEU, "CHRF": CHRF, "TER": TER}
