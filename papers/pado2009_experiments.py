"""Experiments of Padó et al. (2009), sections 4.2 and 6, on rankings of systems and hypotheses."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from papers.experiments import Comparisons
from papers.table import Figure
from papers.tie_aware import tie_aware_spearman
from tertium.data.dataset_folder import DatasetFolder
from tertium.data.rankings import ComparisonIndex
from tertium.metrics.regression.linear_metric import Regression

RANDOM_DRAWS = 200


@dataclass(frozen=True, kw_only=True)
class TieAwareSystems:
    """Spearman's rho of systems, scored by how often each is best or at most epsilon worse.

    The human score of a system is the share of its comparisons that it does not lose. With a
    `tie_rate` of 0, the metric score is how often a system is best.
    """

    columns: tuple[str, ...]
    tie_rate: float
    set: str = "rankings/wmt08"
    data: str = "rankings/wmt08, all systems with comparisons"
    statistic: str = "Spearman's rho x 100 of tie-aware system scores"

    def measure(self, datasets: DatasetFolder, model: Regression, column: str) -> Figure:
        rankings = datasets.rankings(self.set, column)
        scores = model.score(rankings.segments)
        matrix = rankings.to_score_matrix(scores.oriented_segments, model.name, "system")
        order = [matrix.systems.index(system) for system in rankings.systems]
        wins, ties = ComparisonIndex.of(rankings).counts(len(rankings.systems))
        won = (wins + ties).sum(axis=1)  # (wins + ties) / all, official until WMT11
        human = won / (won + wins.sum(axis=0))
        agreement = tie_aware_spearman(human, matrix.values[order], tie_rate=self.tie_rate)
        return Figure(
            value=100 * float(agreement), count=len(rankings.systems), signature=scores.signature
        )


@dataclass(frozen=True, kw_only=True)
class TieAwareMetricsTask:
    """The same for a metrics task with human system scores, on some `segments` of each system."""

    columns: tuple[str, ...]
    tie_rate: float
    segments: int
    set: str = "wmt17-metrics-task"

    @property
    def data(self) -> str:
        return f"{self.set}, {self.segments} segments of every system, evenly spaced"

    @property
    def statistic(self) -> str:
        return f"Spearman's rho x 100 of tie-aware system scores, tie rate {self.tie_rate:g}"

    def measure(self, datasets: DatasetFolder, model: Regression, column: str) -> Figure:
        testset = datasets.metrics_task(self.set).testset(column)
        human = datasets.system_scores(self.set, column).system_scores
        systems = [system for system in testset.systems if system in human]
        rows = np.linspace(0, len(testset) - 1, self.segments).astype(int)
        scores = model.score([testset.segments(system)[n] for system in systems for n in rows])
        values = scores.oriented_segments.reshape(len(systems), len(rows))
        human_scores = np.array([human[system] for system in systems])
        agreement = tie_aware_spearman(human_scores, values, tie_rate=self.tie_rate)
        return Figure(value=100 * float(agreement), count=len(systems), signature=scores.signature)


@dataclass(frozen=True, kw_only=True)
class RandomOrder(Comparisons):
    """The statistic of a random order of the hypotheses of each reference, mean of many draws."""

    def measure(self, datasets: DatasetFolder, model: Any, column: str) -> Figure:
        rankings = datasets.rankings(self.set, column)
        values = []
        for seed in range(RANDOM_DRAWS):
            scores = np.random.default_rng(seed).random(len(rankings.segments))
            left, right = scores[rankings.left], scores[rankings.right]
            values.append(self.scale * float(self.compare(rankings.verdicts, left, right)))
        return Figure(value=float(np.mean(values)), count=len(rankings))
