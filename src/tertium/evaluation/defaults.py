"""Which metrics score a test set where none is named."""

from __future__ import annotations

from tertium.data.testset import TestSet
from tertium.extras import is_installed
from tertium.models.trained import are_installed
from tertium.text.english import looks_english

COMPANIONS = ("bleu", "chrf")  # what comparisons and reports show beside the best metric


def best_metric(testset: TestSet) -> str:
    """The metric that agrees best with people on such a test set, of those that can run here."""
    if not is_installed("torch", "transformers"):
        return "chrf"
    first = [texts[0] for texts in testset.references if texts]
    if not are_installed():
        return "chrf" if first or not testset.sources else "sss"
    if first and looks_english(first):
        return "tertium-small"
    return "tertium-multi" if first or testset.sources else "chrf"


def usual_metrics(testset: TestSet) -> list[str]:
    """The best metric beside those that readers of a comparison know."""
    companions = COMPANIONS if testset.references else ()
    return list(dict.fromkeys([*companions, best_metric(testset)]))
