"""Logistic regression on preferences: the feature differences of two translations.

Padó et al. (2009), footnote 6, as an alternative to regression on absolute scores.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from papers.experiments import read_rankings
from tertium.core.arrays import FloatArray
from tertium.core.segment import Segment
from tertium.data.dataset_folder import DatasetFolder
from tertium.data.rankings import RankingSet, sample_comparisons
from tertium.metrics import load_metric
from tertium.metrics.regression.linear_metric import Regression

COMPARISONS, SEED = 4000, 13
STRENGTHS = (0.001, 0.01, 0.1, 1.0)


@dataclass(frozen=True, eq=False)
class PreferenceRegression:
    """Predicts the better translation from the weighted feature differences."""

    metric: Regression
    weights: FloatArray

    def prefer(self, left: Sequence[Segment], right: Sequence[Segment]) -> FloatArray:
        """Return the probability that each left translation is better, (pairs,)."""
        rows = self.metric.compute_features([*left, *right])
        margins = (rows[: len(left)] - rows[len(left) :]) @ self.weights
        probabilities: FloatArray = 1 / (1 + np.exp(-margins))
        return probabilities


@dataclass(frozen=True)
class PreferenceTraining:
    """Trains on random comparisons of WMT11, with the features of a metric."""

    metric: str

    def __call__(self, datasets: DatasetFolder, column: str) -> PreferenceRegression:
        return train_preferences(datasets, self.metric)


@lru_cache(maxsize=8)
def train_preferences(datasets: DatasetFolder, metric_name: str) -> PreferenceRegression:
    """Train with the regularization strength chosen by leaving out one language pair in turn."""
    sets = [rankings.without_ties() for rankings in read_rankings(datasets, "rankings/wmt11")]
    drawn = sample_comparisons(sets, COMPARISONS, np.random.default_rng(SEED))
    metric: Any = load_metric(metric_name)
    differences = [_feature_differences(metric, rankings) for rankings in drawn]
    scale = np.concatenate(differences).std(axis=0)
    scale[scale == 0] = 1.0
    rows = [part / scale for part in differences]
    verdicts = [rankings.verdicts for rankings in drawn]
    best = max(STRENGTHS, key=lambda strength: _held_out_accuracy(rows, verdicts, strength))
    return PreferenceRegression(metric, _fit(rows, verdicts, best) / scale)


def _feature_differences(metric: Regression, rankings: RankingSet) -> FloatArray:
    used = np.flatnonzero(rankings.compared_mask)
    index = np.full(len(rankings.segments), -1)
    index[used] = np.arange(len(used))
    rows = metric.compute_features([rankings.segments[n] for n in used])
    differences: FloatArray = rows[index[rankings.left]] - rows[index[rankings.right]]
    return differences


def _held_out_accuracy(
    rows: Sequence[FloatArray], verdicts: Sequence[FloatArray], strength: float
) -> float:
    """Return the mean accuracy on language pairs that were left out of training."""
    accuracies = []
    for n in range(len(rows)):
        train = [k for k in range(len(rows)) if k != n]
        weights = _fit([rows[k] for k in train], [verdicts[k] for k in train], strength)
        accuracies.append(float(((rows[n] @ weights > 0) == (verdicts[n] > 0.5)).mean()))
    return float(np.mean(accuracies))


def _fit(rows: Sequence[FloatArray], verdicts: Sequence[FloatArray], strength: float) -> FloatArray:
    """Fit without intercept, so that swapping a pair negates the prediction."""
    from sklearn.linear_model import LogisticRegression

    model = LogisticRegression(C=strength, fit_intercept=False, max_iter=1000)
    weights: FloatArray = model.fit(np.concatenate(rows), np.concatenate(verdicts) > 0.5).coef_[0]
    return weights
