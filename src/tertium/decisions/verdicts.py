"""A verdict in words: what a comparison of systems allows to conclude, in one sentence."""

from __future__ import annotations

from tertium.evaluation.comparison import MAX_UNSEGMENTED_SHARE
from tertium.evaluation.scoring import Evaluation
from tertium.metrics.lexical.sacrebleu_adapter import UNSEGMENTED


def find_unfit_metrics(evaluation: Evaluation) -> dict[str, str]:
    """Return metrics that cannot split the texts into words, with a sentence about each."""
    unfit: dict[str, str] = {}
    for metric in evaluation.metrics:
        for scores in evaluation.metric_scores(metric):
            if scores.warnings.get(UNSEGMENTED, 0) > MAX_UNSEGMENTED_SHARE * len(scores):
                unfit[metric] = (
                    f"{evaluation.names[metric]} is unfit for these texts: it splits words at "
                    "blanks, and the language has none; choose a tokenizer, or chrf"
                )
    return unfit
