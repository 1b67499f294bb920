"""How informative a segment is for comparing systems, from metric scores or outputs alone.

    variance        standard deviation of a metric's scores over systems
    disagreement    standard deviation over metrics, averaged over systems
    consistency     correlation of the segment's scores with the scores of the systems
    diversity       mean distance between the outputs of two systems, by character trigrams

Scores of several metrics are standardized first, and their utilities averaged (Zouhar et al. 2025).
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

import numpy as np

from tertium.arrays import FloatArray, divide
from tertium.errors import UnknownNameError, UsageError

UTILITIES = ("variance", "disagreement", "consistency", "diversity")


def score_utilities(name: str, scores: FloatArray) -> FloatArray:
    """Return the utility of each segment from oriented scores (metrics, systems, segments)."""
    if name not in UTILITIES[:3]:
        raise UnknownNameError("utility of metric scores", name, UTILITIES[:3])
    deviations = np.nanstd(scores, axis=(1, 2), keepdims=True)
    standardized = (scores - np.nanmean(scores, axis=(1, 2), keepdims=True)) / np.where(
        deviations > 0, deviations, 1.0
    )
    if name == "variance":
        spread: FloatArray = np.nan_to_num(np.nanstd(standardized, axis=1).mean(axis=0))
        return spread
    if name == "disagreement":
        if len(scores) < 2:
            raise UsageError("disagreement between metrics needs two metrics or more")
        gaps: FloatArray = np.nan_to_num(np.nanstd(standardized, axis=0).mean(axis=0))
        return gaps
    systems = np.nanmean(standardized, axis=2, keepdims=True)
    centered = standardized - np.nanmean(standardized, axis=1, keepdims=True)
    systems = systems - systems.mean(axis=1, keepdims=True)
    top = np.nansum(centered * systems, axis=1)
    bottom = np.sqrt(np.nansum(centered**2, axis=1) * (systems**2).sum(axis=1))
    correlations: FloatArray = np.nan_to_num(divide(top, bottom)).mean(axis=0)
    return np.maximum(correlations, 0.0)


def output_diversity(outputs: Sequence[Sequence[str]]) -> FloatArray:
    """Return the mean trigram distance of the outputs (systems x segments) of each segment."""
    if len(outputs) < 2:
        raise UsageError("diversity of outputs needs two systems or more")
    distances = np.zeros(len(outputs[0]))
    for number, texts in enumerate(zip(*outputs, strict=True)):
        grams = [_trigrams(text) for text in texts]
        pairs = [*combinations(range(len(grams)), 2)]
        shares = [len(grams[a] & grams[b]) / max(1, len(grams[a] | grams[b])) for a, b in pairs]
        distances[number] = 1.0 - sum(shares) / len(pairs)
    return distances


def _trigrams(text: str) -> set[str]:
    return {text[n : n + 3] for n in range(max(1, len(text) - 2))}
