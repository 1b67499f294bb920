"""The kinds of experiment papers report: segments, systems, comparisons.

Each says which set it reads and which statistic it takes. A metric whose lower scores are better is
turned around first, so that agreement is always positive.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from papers.table import Figure
from tertium.arrays import FloatArray
from tertium.data.dataset_folder import DatasetFolder
from tertium.data.judgments import JudgmentSet
from tertium.data.rankings import RankingSet
from tertium.data.testset import TestSet
from tertium.data.wmt import SystemScores
from tertium.errors import DataError
from tertium.meta.agreement import Agreement
from tertium.meta.correlation import pearson
from tertium.meta.pairwise import kendall_strict
from tertium.metrics import Metric
from tertium.scores import Scores
from tertium.segment import Segment

Correlate = Callable[[FloatArray, FloatArray], Agreement]
Compare = Callable[[FloatArray, FloatArray, FloatArray], Agreement]
Pairs = Literal["into English", "all"]


@dataclass(frozen=True, kw_only=True)
class Segments:
    """Correlation of a metric's segment scores with human scores, one language pair at a time."""

    set: str
    columns: tuple[str, ...]
    part: str = ""
    correlate: Correlate = pearson
    statistic: str = "Pearson's r with human scores of segments"

    @property
    def data(self) -> str:
        return f"{self.set}{f', {self.part}' if self.part else ''}"

    def measure(self, datasets: DatasetFolder, model: Metric, column: str) -> Figure:
        judgment_set = datasets.judgments(self.set, column, self.part)
        scores = model.score(judgment_set.segments)
        agreement = self.correlate(judgment_set.scores, scores.oriented_segments)
        return _figure(agreement, scores.signature, dict(judgment_set.excluded_counts))

    def human_and_metric_scores(
        self, datasets: DatasetFolder, model: Metric, column: str
    ) -> tuple[FloatArray, FloatArray]:
        """What people and the model gave to each segment, (n,) each."""
        judgment_set = datasets.judgments(self.set, column, self.part)
        return judgment_set.scores, model.score(judgment_set.segments).oriented_segments


@dataclass(frozen=True, kw_only=True)
class Comparisons:
    """A pairwise statistic of a model against human comparisons.

    The model is a metric, or anything with `prefer(left, right)`, the chance that left is better.
    """

    set: str
    columns: tuple[str, ...]
    compare: Compare = kendall_strict
    scale: float = 100.0
    statistic: str = (
        "strict Kendall's tau x 100: (concordant - discordant - metric ties) / all, human ties out"
    )

    @property
    def data(self) -> str:
        return f"{self.set}, comparisons"

    def measure(self, datasets: DatasetFolder, model: Any, column: str) -> Figure:
        rankings = datasets.rankings(self.set, column)
        left, right, signature = score_comparisons(model, rankings)
        agreement = self.compare(rankings.verdicts, left, right)
        figure = _figure(agreement, signature, dict(rankings.excluded_counts))
        return Figure(
            value=self.scale * figure.value,
            count=figure.count,
            signature=signature,
            excluded_counts=figure.excluded_counts,
        )


@dataclass(frozen=True, kw_only=True)
class Systems:
    """Correlation of a metric's system scores with human scores of systems.

    `set` is a metrics task, or rankings that come with system scores. A system's score is the
    metric's own (`corpus`), or the mean of its segment scores (`mean`), as some tools have it.
    """

    set: str
    columns: tuple[str, ...]
    aggregate: Literal["corpus", "mean"] = "corpus"
    correlate: Correlate = pearson

    @property
    def statistic(self) -> str:
        mean = ", each the mean of its segment scores" if self.aggregate == "mean" else ""
        return f"Pearson's r with human scores of systems{mean}"

    @property
    def data(self) -> str:
        return f"{self.set}, all segments of every system"

    def measure(self, datasets: DatasetFolder, model: Metric, column: str) -> Figure:
        outputs, human = self._read(datasets, column)
        systems = [system for system in outputs if system in human.scores]
        if len(systems) < 2:
            raise DataError(f"{self.set} {column}: {len(systems)} judged system with outputs")
        scored = [model.score(outputs[system]) for system in systems]
        values = np.array([self._system_score(scores) for scores in scored])
        missing = {"no output": len(human) - len(systems)} if len(human) > len(systems) else {}
        agreement = self.correlate(human.of(systems), values)
        return _figure(agreement, scored[0].signature, {**human.excluded_counts, **missing})

    def human_and_metric_scores(
        self, datasets: DatasetFolder, model: Metric, column: str
    ) -> tuple[FloatArray, FloatArray]:
        """What people and the model gave to each system, (systems,) each."""
        outputs, human = self._read(datasets, column)
        systems = [system for system in outputs if system in human.scores]
        scored = [self._system_score(model.score(outputs[system])) for system in systems]
        return human.of(systems), np.array(scored)

    def _system_score(self, scores: Scores) -> float:
        value = scores.system if self.aggregate == "corpus" else float(scores.segments.mean())
        return scores.sign * value

    def _read(
        self, datasets: DatasetFolder, column: str
    ) -> tuple[dict[str, Sequence[Segment]], SystemScores]:
        if datasets.find(self.set).kind == "metrics task":
            return _outputs(datasets.metrics_task(self.set).testset(column)), (
                datasets.system_scores(self.set, column)
            )
        rankings = datasets.rankings(self.set, column)
        return group_by_system(rankings), datasets.system_scores(self.set, column)


def read_judgments(
    datasets: DatasetFolder, name: str, pairs: Pairs = "into English"
) -> list[JudgmentSet]:
    """The judgments of a set, into English or all."""
    lps = [lp for lp in datasets.find(name).lps if pairs == "all" or lp.endswith("-en")]
    return [datasets.judgments(name, lp) for lp in lps]


def read_rankings(datasets: DatasetFolder, name: str) -> list[RankingSet]:
    """The comparisons of a set, into English."""
    lps = [lp for lp in datasets.find(name).lps if lp.endswith("-en")]
    return [datasets.rankings(name, lp) for lp in lps]


def score_comparisons(model: Any, rankings: RankingSet) -> tuple[FloatArray, FloatArray, str]:
    """What a model gives to the left and the right of each comparison, (comparisons,) each.

    Texts that nobody compared are not scored.
    """
    if hasattr(model, "prefer"):
        chances = model.prefer(
            [rankings.segments[n] for n in rankings.left],
            [rankings.segments[n] for n in rankings.right],
        )
        return chances, 1.0 - chances, getattr(model, "spec", repr(model))
    used = np.flatnonzero(rankings.compared_mask)
    scores = model.score([rankings.segments[n] for n in used])
    values = np.full(len(rankings.segments), np.nan)
    values[used] = scores.oriented_segments
    return values[rankings.left], values[rankings.right], scores.signature


def group_by_system(rankings: RankingSet) -> dict[str, Sequence[Segment]]:
    """The translations of each system."""
    groups: dict[str, list[Segment]] = {system: [] for system in rankings.systems}
    for segment, system in zip(rankings.segments, rankings.system_indices, strict=True):
        groups[rankings.systems[system]].append(segment)
    return {system: tuple(segments) for system, segments in groups.items()}


def _outputs(testset: TestSet) -> dict[str, Sequence[Segment]]:
    return {system: testset.segments(system) for system in testset.systems}


def average_over_seeds(
    values: FloatArray,
    count: int,
    signature: str = "",
    excluded_counts: dict[str, int] | None = None,
) -> Figure:
    """The mean of what networks of several seeds reached, (seeds,), with its spread."""
    return Figure(
        value=float(values.mean()),
        count=count,
        signature=signature,
        seeds=len(values),
        deviation=float(values.std(ddof=1)) if len(values) > 1 else 0.0,
        excluded_counts=excluded_counts or {},
    )


def _figure(agreement: Agreement, signature: str, excluded_counts: dict[str, int]) -> Figure:
    unscored = int(agreement.excluded_counts)
    if unscored:
        excluded_counts = {**excluded_counts, "no metric score": unscored}
    return Figure(
        value=float(agreement),
        count=int(agreement.used),
        signature=signature,
        excluded_counts=excluded_counts,
    )
