"""The common experiments: correlation on segments, on systems, and human comparisons.

Scores are oriented first (higher is better), so that good agreement is always positive.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple

import numpy as np

from papers.table import Figure
from tertium.core.arrays import FloatArray
from tertium.core.errors import DataError, MissingResourceError
from tertium.core.scores import Scores
from tertium.core.segment import Segment
from tertium.data.dataset_folder import DatasetFolder
from tertium.data.human_data import HumanData
from tertium.data.judgments import JudgmentSet
from tertium.data.rankings import RankingSet
from tertium.meta.agreement import Agreement, pearson
from tertium.meta.pairwise import kendall_strict
from tertium.metrics import Metric

Correlate = Callable[[FloatArray, FloatArray], Agreement]
Compare = Callable[[FloatArray, FloatArray, FloatArray], Agreement]
Pairs = Literal["into English", "all"]


class ColumnScores(NamedTuple):
    """Human and oriented metric scores of the segments or systems of a column, (n,) each."""

    human: FloatArray
    metric: FloatArray
    signature: str
    excluded_counts: dict[str, int]


class Correlation(ABC):
    """Base class of experiments that correlate metric scores with human scores."""

    correlate: Correlate

    @abstractmethod
    def read_scores(self, datasets: DatasetFolder, model: Any, column: str) -> ColumnScores:
        """Return human and metric scores of a column."""

    def measure(self, datasets: DatasetFolder, model: Any, column: str) -> Figure:
        scores = self.read_scores(datasets, model, column)
        agreement = self.correlate(scores.human, scores.metric)
        return _make_figure(agreement, scores.signature, scores.excluded_counts)


@dataclass(frozen=True, kw_only=True)
class Segments(Correlation):
    """Correlation of segment scores with human scores; a column is a language pair."""

    set: str
    columns: tuple[str, ...]
    part: str = ""
    correlate: Correlate = pearson
    statistic: str = "Pearson's r with human scores of segments"

    @property
    def data(self) -> str:
        return f"{self.set}{f', {self.part}' if self.part else ''}"

    def read(self, datasets: DatasetFolder, column: str) -> JudgmentSet:
        """Return the judgments of a column."""
        return datasets.judgments(self.set, column, self.part)

    def read_scores(self, datasets: DatasetFolder, model: Metric, column: str) -> ColumnScores:
        judgment_set = self.read(datasets, column)
        scores = model.score(judgment_set.segments)
        excluded_counts = dict(judgment_set.excluded_counts)
        return ColumnScores(
            judgment_set.scores, scores.oriented_segments, scores.signature, excluded_counts
        )


@dataclass(frozen=True, kw_only=True)
class SegmentsByPart(Segments):
    """The same for a set with one language pair; a column is a part of the set."""

    lp: str

    @property
    def data(self) -> str:
        return f"{self.set}, {self.lp}"

    def read(self, datasets: DatasetFolder, column: str) -> JudgmentSet:
        return datasets.judgments(self.set, self.lp, column)


@dataclass(frozen=True, kw_only=True)
class Comparisons:
    """Agreement of a model with human comparisons of two translations.

    The model is a metric, or any object with `prefer(left, right)`, the probability that left is
    better.
    """

    set: str
    columns: tuple[str, ...]
    compare: Compare = kendall_strict
    scale: float = 100.0
    statistic: str = (
        "strict Kendall's tau x 100: (concordant - discordant - metric ties) / all comparisons, "
        "without human ties"
    )

    @property
    def data(self) -> str:
        return f"{self.set}, comparisons"

    def measure(self, datasets: DatasetFolder, model: Any, column: str) -> Figure:
        rankings = datasets.rankings(self.set, column)
        left, right, signature = score_comparisons(model, rankings)
        agreement = self.compare(rankings.verdicts, left, right)
        figure = _make_figure(agreement, signature, dict(rankings.excluded_counts))
        return replace(figure, value=self.scale * figure.value)


@dataclass(frozen=True, kw_only=True)
class Systems(Correlation):
    """Correlation of system scores with human scores of systems.

    `set` is a metrics task, or rankings with system scores. `aggregate` selects the metric's own
    system score (`corpus`) or the mean of its segment scores (`mean`). With a `step` above 1, only
    every step-th segment is scored.
    """

    set: str
    columns: tuple[str, ...]
    step: int = 1
    aggregate: Literal["corpus", "mean"] = "corpus"
    correlate: Correlate = pearson

    @property
    def statistic(self) -> str:
        mean = ", each the mean of its segment scores" if self.aggregate == "mean" else ""
        return f"Pearson's r with human scores of systems{mean}"

    @property
    def data(self) -> str:
        segments = "all segments" if self.step == 1 else f"1 of {self.step} segments"
        return f"{self.set}, {segments} of every system"

    def read_scores(self, datasets: DatasetFolder, model: Metric, column: str) -> ColumnScores:
        outputs, human = self._read(datasets, column)
        scored = human.system_scores
        systems = [system for system in outputs if system in scored]
        if len(systems) < 2:
            raise DataError(f"{self.set} {column}: {len(systems)} judged system with outputs")
        scores = [model.score(outputs[system][:: self.step]) for system in systems]
        values = np.array([self._system_score(one) for one in scores])
        missing = {"no output": len(scored) - len(systems)} if len(scored) > len(systems) else {}
        excluded_counts = {**human.excluded_counts, **missing}
        human_scores = np.array([scored[system] for system in systems])
        return ColumnScores(human_scores, values, scores[0].signature, excluded_counts)

    def _system_score(self, scores: Scores) -> float:
        value = scores.system if self.aggregate == "corpus" else float(scores.segments.mean())
        return scores.sign * value

    def _read(
        self, datasets: DatasetFolder, column: str
    ) -> tuple[dict[str, tuple[Segment, ...]], HumanData]:
        if datasets.find(self.set).kind == "metrics task":
            testset = datasets.metrics_task(self.set).testset(column)
            outputs = {system: tuple(testset.segments(system)) for system in testset.systems}
        else:
            outputs = group_by_system(datasets.rankings(self.set, column))
        return outputs, datasets.system_scores(self.set, column)


@dataclass(frozen=True, kw_only=True)
class Archived:
    """An experiment whose code was removed; its stored figures name the commit that has it."""

    columns: tuple[str, ...]
    data: str
    statistic: str

    def measure(self, datasets: DatasetFolder, model: Any, column: str) -> Figure:
        raise MissingResourceError(
            "the code of this experiment was removed; its stored figures name a commit that has it"
        )


def no_model(datasets: DatasetFolder, column: str) -> None:
    """Build nothing: the experiment needs no model."""


def read_judgments(
    datasets: DatasetFolder, name: str, pairs: Pairs = "into English"
) -> list[JudgmentSet]:
    """Read the judgments of a set, one `JudgmentSet` per language pair."""
    lps = [lp for lp in datasets.find(name).lps if pairs == "all" or lp.endswith("-en")]
    return [datasets.judgments(name, lp) for lp in lps]


def read_rankings(datasets: DatasetFolder, name: str) -> list[RankingSet]:
    """Read the comparisons of a set into English, one `RankingSet` per language pair."""
    lps = [lp for lp in datasets.find(name).lps if lp.endswith("-en")]
    return [datasets.rankings(name, lp) for lp in lps]


def score_comparisons(model: Any, rankings: RankingSet) -> tuple[FloatArray, FloatArray, str]:
    """Return the scores of both sides of each comparison, (comparisons,) each, and the signature.

    Translations without a comparison are not scored.
    """
    if hasattr(model, "prefer"):
        probabilities = model.prefer(
            [rankings.segments[n] for n in rankings.left],
            [rankings.segments[n] for n in rankings.right],
        )
        return probabilities, 1.0 - probabilities, getattr(model, "spec", repr(model))
    used = np.flatnonzero(rankings.compared_mask)
    scores = model.score([rankings.segments[n] for n in used])
    values = np.full(len(rankings.segments), np.nan)
    values[used] = scores.oriented_segments
    return values[rankings.left], values[rankings.right], scores.signature


def group_by_system(rankings: RankingSet) -> dict[str, tuple[Segment, ...]]:
    """Return the translations of each system."""
    groups: dict[str, list[Segment]] = {system: [] for system in rankings.systems}
    for segment, system in zip(rankings.segments, rankings.system_indices, strict=True):
        groups[rankings.systems[system]].append(segment)
    return {system: tuple(segments) for system, segments in groups.items()}


def average_over_seeds(
    values: FloatArray,
    count: int,
    signature: str = "",
    excluded_counts: dict[str, int] | None = None,
) -> Figure:
    """Return the mean and the standard deviation of the values of several seeds, (seeds,)."""
    return Figure(
        value=float(values.mean()),
        count=count,
        signature=signature,
        seeds=len(values),
        deviation=float(values.std(ddof=1)) if len(values) > 1 else 0.0,
        excluded_counts=excluded_counts or {},
    )


def _make_figure(agreement: Agreement, signature: str, excluded_counts: dict[str, int]) -> Figure:
    if unscored := int(agreement.excluded_counts):
        excluded_counts = {**excluded_counts, "no metric score": unscored}
    return Figure(
        value=float(agreement),
        count=int(agreement.used),
        signature=signature,
        excluded_counts=excluded_counts,
    )
