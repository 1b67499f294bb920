"""Regressions of Padó, Galley, Jurafsky, Manning 2009, trained on other languages or on shares."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from papers.table import Figure, MakeModel
from tertium.core.resampling import make_rng
from tertium.core.segment import Judgment
from tertium.data.dataset_folder import DatasetFolder
from tertium.data.ratings import drop_overlap
from tertium.meta.agreement import ranks, spearman
from tertium.meta.replicates import williams
from tertium.metrics.base.lexical_features import FeatureExtractor, NgramInformation
from tertium.metrics.lexical.meteor_metric import METEOR, Parameters
from tertium.metrics.regression.linear_metric import Regression
from tertium.metrics.regression.regression_metrics import METEORR, MetricColumns

DRAWS = 5
ROUND_ROBIN_SETS = ("da/wmt16",)


def other_pairs_judgments(
    datasets: DatasetFolder, column: str, sets: Sequence[str] = ROUND_ROBIN_SETS
) -> list[Judgment]:
    """Return the judgments of sets in all language pairs into English but one.

    Language pairs of a year share one reference in eleven. Segments that share a reference with
    the tested pair are left out.
    """
    test_sets = [
        datasets.judgments(name, column) for name in sets if column in datasets.find(name).lps
    ]
    return [
        judgment
        for name in sets
        for lp in datasets.find(name).lps
        if lp.endswith("-en") and lp != column
        for judgment in drop_overlap(datasets.judgments(name, lp), test_sets).judgments
    ]


def train_round_robin(
    cls: type[Regression], sets: Sequence[str] = ROUND_ROBIN_SETS, **config: Any
) -> MakeModel:
    """Train on the other language pairs of some sets."""
    return lambda datasets, column: cls.train(
        other_pairs_judgments(datasets, column, sets), **config
    )


@dataclass(frozen=True, kw_only=True)
class EarlyMETEOR(METEOR):
    """METEOR before version 1.0: function words and all kinds of matches count fully."""

    @property
    def parameters(self) -> Parameters:
        return super().parameters._replace(delta=0.5, stem=1.0, synonym=1.0, paraphrase=1.0)


@dataclass(frozen=True, kw_only=True, eq=False)
class METEORR2007(METEORR):
    """METEORR with the English parameters in CMU's script meteor.pl, adequacy and fluency."""

    def feature_extractors(self, information: NgramInformation) -> tuple[FeatureExtractor, ...]:
        return (MetricColumns(EarlyMETEOR(alpha=0.8, beta=0.83, gamma=0.28)),)


@dataclass(frozen=True, kw_only=True, eq=False)
class METEORR2008(METEORR):
    """METEORR with the English parameters of Agarwal and Lavie (2008), ranking."""

    def feature_extractors(self, information: NgramInformation) -> tuple[FeatureExtractor, ...]:
        return (MetricColumns(EarlyMETEOR(alpha=0.95, beta=0.5, gamma=0.45)),)


def bundled_model(cls: type[Regression]) -> MakeModel:
    """Load the bundled model, trained on WMT15 and WMT16."""
    return lambda datasets, column: cls()


def train_on_shares(cls: type[Regression], test: str) -> MakeModel:
    """Train on random shares of the other language pairs; `column` is the share."""

    def train(datasets: DatasetFolder, column: str) -> list[Regression]:
        data = other_pairs_judgments(datasets, test)
        count = round(len(data) * float(column.rstrip("%")) / 100)
        draws = range(1 if count == len(data) else DRAWS)
        chosen = ([data[n] for n in draw_subset(len(data), count, seed)] for seed in draws)
        return [cls.train(subset) for subset in chosen]

    return train


def draw_subset(total: int, count: int, seed: int) -> list[int]:
    """Draw `count` of `total` indices, in ascending order; subsets of one seed are nested."""
    chosen = make_rng(seed).permutation(total)[:count]
    return sorted(chosen.tolist())


@dataclass(frozen=True, kw_only=True)
class TrainingShareCurve:
    """Spearman's rho on one language pair by share of training data, mean of random draws."""

    columns: tuple[str, ...]
    test: str

    data: str = "da/wmt16, share of the other language pairs"
    statistic: str = f"Spearman's rho with human scores of segments, mean of {DRAWS} draws"

    def measure(self, datasets: DatasetFolder, model: Sequence[Regression], column: str) -> Figure:
        judgment_set = datasets.judgments("da/wmt16", self.test)
        values = [
            float(spearman(judgment_set.scores, one.score(judgment_set.segments).segments))
            for one in model
        ]
        return Figure(value=float(np.mean(values)), count=len(judgment_set))


@dataclass(frozen=True, kw_only=True)
class SpearmanGain:
    """Difference of Spearman's rho between two regressions.

    The signature has the p-value of Williams' test on ranks.
    """

    columns: tuple[str, ...]
    set: str
    statistic: str = "difference of Spearman's rho; p of Williams' test on ranks, one-sided"

    @property
    def data(self) -> str:
        return self.set

    def measure(
        self, datasets: DatasetFolder, model: tuple[Regression, Regression], column: str
    ) -> Figure:
        judgment_set = datasets.judgments(self.set, column)
        scores = np.stack(
            [metric.score(judgment_set.segments).oriented_segments for metric in model]
        )
        better, worse = (float(spearman(judgment_set.scores, row)) for row in scores)
        p = williams(ranks(judgment_set.scores), np.stack([ranks(row) for row in scores]))[0, 1]
        return Figure(
            value=better - worse, count=len(judgment_set), signature=f"{column} p = {p:.2g}"
        )


def model_pair(left: MakeModel, right: MakeModel) -> MakeModel:
    """Build two models."""
    return lambda datasets, column: (left(datasets, column), right(datasets, column))
