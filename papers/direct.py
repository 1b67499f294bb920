"""Preferences learned directly: a logistic regression on how the features of two texts differ.

Padó et al. (2009), footnote 6, where a regression on absolute scores decides otherwise.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from papers.experiments import read_rankings
from tertium.arrays import FloatArray
from tertium.data.collection import Collection
from tertium.data.rankings import RankingSet, sample_comparisons
from tertium.metrics.regression.metric import Regression
from tertium.segment import Segment

COMPARISONS, SEED = 4000, 13
STRENGTHS = (0.001, 0.01, 0.1, 1.0)


@dataclass(frozen=True, eq=False)
class DirectPreference:
    """The chance that one translation is better: the features of both, less each other, weighed."""

    metric: Regression
    weights: FloatArray

    def prefer(self, left: Sequence[Segment], right: Sequence[Segment]) -> FloatArray:
        """The chance that each on the left is better, (pairs,)."""
        rows = self.metric.features([*left, *right])
        margins = (rows[: len(left)] - rows[len(left) :]) @ self.weights
        chances: FloatArray = 1 / (1 + np.exp(-margins))
        return chances


@dataclass(frozen=True)
class Direct:
    """A row: learns from comparisons of WMT11, drawn at random, with the features of a metric."""

    metric: type[Regression]

    def __call__(self, collection: Collection, column: str) -> DirectPreference:
        return learn_directly(collection, self.metric)


@lru_cache(maxsize=8)
def learn_directly(collection: Collection, kind: type[Regression]) -> DirectPreference:
    """The regression of a metric's features; strength by leaving out one language pair in turn."""
    sets = [one.drop_ties() for one in read_rankings(collection, "rankings/wmt11")]
    drawn = sample_comparisons(sets, COMPARISONS, np.random.default_rng(SEED))
    metric = kind()
    differences = [_differences(metric, one) for one in drawn]
    scale = np.concatenate(differences).std(axis=0)
    scale[scale == 0] = 1.0
    rows = [part / scale for part in differences]
    said = [one.verdicts for one in drawn]
    best = max(STRENGTHS, key=lambda strength: _held_out(rows, said, strength))
    return DirectPreference(metric, _fit(rows, said, best) / scale)


def _differences(metric: Regression, rankings: RankingSet) -> FloatArray:
    used = np.flatnonzero(rankings.is_compared)
    place = np.full(len(rankings.segments), -1)
    place[used] = np.arange(len(used))
    rows = metric.features([rankings.segments[n] for n in used])
    result: FloatArray = rows[place[rankings.left]] - rows[place[rankings.right]]
    return result


def _held_out(rows: Sequence[FloatArray], said: Sequence[FloatArray], strength: float) -> float:
    """The mean share of comparisons that is right where a language pair was not learned from."""
    shares = []
    for n in range(len(rows)):
        others = [k for k in range(len(rows)) if k != n]
        weights = _fit([rows[k] for k in others], [said[k] for k in others], strength)
        shares.append(float(((rows[n] @ weights > 0) == (said[n] > 0.5)).mean()))
    return float(np.mean(shares))


def _fit(rows: Sequence[FloatArray], said: Sequence[FloatArray], strength: float) -> FloatArray:
    """Weights of a logistic regression without intercept: a pair turned round is the opposite."""
    from sklearn.linear_model import LogisticRegression

    model = LogisticRegression(C=strength, fit_intercept=False, max_iter=1000)
    found: FloatArray = model.fit(np.concatenate(rows), np.concatenate(said) > 0.5).coef_[0]
    return found
