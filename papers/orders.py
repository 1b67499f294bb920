"""Experiments on the order that scores give: of systems, of good and of bad hypotheses, by chance.

Padó et al. (2009), sections 4.2 and 6.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from papers.experiments import Comparisons
from papers.table import Figure
from tertium.arrays import BoolArray, FloatArray, divide
from tertium.data.collection import Collection
from tertium.data.rankings import RankingSet
from tertium.data.win_rates import win_ratio
from tertium.meta.pairwise import consistency
from tertium.meta.systems import tie_aware_spearman
from tertium.metrics.regression.metric import Regression

DRAWS = 200


@dataclass(frozen=True, kw_only=True)
class TieAwareSystems:
    """Spearman's rho of systems: how often each is best or at most epsilon worse, against people.

    People's score of a system is the share of its comparisons that it does not lose. A `tie_rate`
    of 0 is the plain prediction: how often a system is best.
    """

    columns: tuple[str, ...]
    tie_rate: float
    set: str = "rankings/wmt08"
    data: str = "rankings/wmt08, all systems with comparisons"
    statistic: str = "Spearman's rho x 100 of tie-aware system scores"

    def measure(self, collection: Collection, model: Regression, column: str) -> Figure:
        rankings = collection.rankings(self.set, column)
        scores = model.score(rankings.segments)
        matrix = rankings.arrange(scores.upward, model.name, "system")
        order = [matrix.systems.index(system) for system in rankings.systems]
        human = win_ratio(rankings, ties="won")
        agreement = tie_aware_spearman(human, matrix.values[order], tie_rate=self.tie_rate)
        return Figure(
            value=100 * float(agreement), count=len(rankings.systems), signature=scores.signature
        )


@dataclass(frozen=True, kw_only=True)
class TieAwareTask:
    """The same on a metrics task, whose systems have human scores: the first `segments` of each."""

    columns: tuple[str, ...]
    tie_rate: float
    segments: int
    set: str = "wmt17-metrics-task"

    @property
    def data(self) -> str:
        return f"{self.set}, {self.segments} segments of every system, drawn evenly"

    @property
    def statistic(self) -> str:
        return f"Spearman's rho x 100 of tie-aware system scores, a tie share of {self.tie_rate:g}"

    def measure(self, collection: Collection, model: Regression, column: str) -> Figure:
        testset = collection.metrics_task(self.set).testset(column)
        human = collection.system_scores(self.set, column)
        systems = [system for system in testset.systems if system in human.scores]
        rows = np.linspace(0, len(testset) - 1, self.segments).astype(int)
        texts = [testset.segments(system)[n] for system in systems for n in rows]
        scores = model.score(texts)
        values = scores.upward.reshape(len(systems), len(rows))
        agreement = tie_aware_spearman(human.of(systems), values, tie_rate=self.tie_rate)
        return Figure(value=100 * float(agreement), count=len(systems), signature=scores.signature)


@dataclass(frozen=True, kw_only=True)
class TopAndBottom:
    """Consistency on comparisons with the best, or with the worst hypothesis of a reference.

    Which is best people say: the share of its comparisons within the reference that it does not
    lose. Columns are pooled over language pairs.
    """

    pairs: tuple[str, ...]
    set: str = "rankings/wmt08"
    columns: tuple[str, ...] = ("top", "bottom")
    statistic: str = "share of human comparisons reproduced, ties among them, in percent"

    @property
    def data(self) -> str:
        return f"{self.set}, {len(self.pairs)} language pairs together"

    def measure(self, collection: Collection, model: Any, column: str) -> Figure:
        agreed, count = 0.0, 0
        for lp in self.pairs:
            rankings = collection.rankings(self.set, lp)
            rows = _with_extreme(rankings, column)
            values = model.score(rankings.segments).upward
            left, right = values[rankings.left[rows]], values[rankings.right[rows]]
            agreed += float(consistency(rankings.verdicts[rows], left, right)) * int(rows.sum())
            count += int(rows.sum())
        return Figure(value=100 * agreed / count, count=count)


def _with_extreme(rankings: RankingSet, column: str) -> BoolArray:
    """The comparisons in which the best (top) or the worst (bottom) of a segment takes part."""
    size = len(rankings.segments)
    won = np.bincount(rankings.left, rankings.verdicts >= 0.5, size)
    won += np.bincount(rankings.right, rankings.verdicts <= 0.5, size)
    played = np.bincount(rankings.left, minlength=size) + np.bincount(
        rankings.right, minlength=size
    )
    share = divide(won, played.astype(np.float64)) * (1 if column == "top" else -1)
    share = np.where(played > 0, share, -np.inf)
    most = np.full(len(rankings.items), -np.inf)
    np.maximum.at(most, rankings.item_of, share)
    extreme = (share == most[rankings.item_of]) & (played > 0)
    result: BoolArray = extreme[rankings.left] | extreme[rankings.right]
    return result


@dataclass(frozen=True, kw_only=True)
class RandomOrder(Comparisons):
    """What a random total order of the hypotheses of each reference gets, mean of many draws."""

    def measure(self, collection: Collection, model: Any, column: str) -> Figure:
        rankings = collection.rankings(self.set, column)
        values = [_draw(self, rankings, seed) for seed in range(DRAWS)]
        return Figure(value=float(np.mean(values)), count=len(rankings))


def _draw(experiment: RandomOrder, rankings: RankingSet, seed: int) -> float:
    scores: FloatArray = np.random.default_rng(seed).random(len(rankings.segments))
    left, right = scores[rankings.left], scores[rankings.right]
    return experiment.scale * float(experiment.compare(rankings.verdicts, left, right))


def chance(collection: Collection, column: str) -> object:
    """The model of a row that needs none."""
    return None
