"""Experiments of Song, Zhao, Specia 2021, "SentSim: Crosslingual Semantic Evaluation"."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Literal

import numpy as np

from papers.experiments import Segments
from papers.printed_examples import ExampleScores
from papers.table import Figure
from tertium.core.scores import Scores
from tertium.core.segment import Segment
from tertium.data.dataset_folder import DatasetFolder
from tertium.data.judgments import JudgmentSet
from tertium.encoders import share_encoding
from tertium.encoders.encoder import load_encoder
from tertium.meta.correlation import pearson


@dataclass(frozen=True, kw_only=True)
class LayerCurve(Segments):
    """Correlation at each layer of encoders; one forward pass serves the rows of all layers.

    `depths` has the number of layers of each encoder. The cache needs 2 GB for minilm and 9 GB for
    mpnet on WMT17; with less memory, layers are computed again.
    """

    depths: tuple[tuple[str, int], ...]

    def measure(self, datasets: DatasetFolder, model: Any, column: str) -> Figure:
        judgment_set = self.read(datasets, column)
        encoder = model.encoder.partition("@")[0]
        layers = range(dict(self.depths)[encoder] + 1)
        models = [replace(model, encoder=f"{encoder}@{layer}") for layer in layers]
        with share_encoding(
            [need for one in models for need in one.required_embeddings(judgment_set.segments)]
        ):
            return super().measure(datasets, model, column)


@dataclass(frozen=True, kw_only=True)
class ExampleScoreShares(ExampleScores):
    """The score of each example, divided by the score of equal texts."""

    statistic: str = "score, divided by the score of equal texts"

    def measure(self, datasets: DatasetFolder, model: Any, column: str) -> Figure:
        text = self.segment(column).references[0]
        maximum = float(model.score([Segment(text, text, (text,))]).segments[0])
        figure = super().measure(datasets, model, column)
        return replace(figure, value=figure.value / maximum)


@dataclass(frozen=True, kw_only=True)
class TwoLayers(Segments):
    """Correlation of a SentSim whose two parts use different layers of an encoder.

    The model has the layer of the token metric; `layer` is that of the sentence metric. Both are
    scaled to [0, 1] over the test set, as published.
    """

    layer: int

    def measure(self, datasets: DatasetFolder, model: Any, column: str) -> Figure:
        judgment_set = self.read(datasets, column)
        sentence, token = model.components
        name = model.encoder.partition("@")[0]
        sentence = replace(sentence, encoder=f"{name}@{self.layer}")
        token = replace(token, encoder=model.encoder)
        values = np.stack(
            [m.score(judgment_set.segments).segments for m in (sentence, token)], axis=1
        )
        scores = model.postprocess(values, load_encoder(name), "reference")[:, 0]
        agreement = self.correlate(judgment_set.scores, scores)
        return Figure(value=float(agreement), count=int(agreement.used))


@dataclass(frozen=True, kw_only=True)
class AverageOverPairs:
    """Mean or standard deviation of Pearson's r over the language pairs of test sets."""

    settings: tuple[tuple[str, Segments], ...]
    reduce: Literal["mean", "standard deviation"] = "mean"

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(name for name, _ in self.settings)

    @property
    def data(self) -> str:
        return "; ".join(f"{name}: {segments.data}" for name, segments in self.settings)

    @property
    def statistic(self) -> str:
        return f"{self.reduce} over language pairs of Pearson's r with human scores of segments"

    def measure(self, datasets: DatasetFolder, model: Any, column: str) -> Figure:
        figures = _measure_pairs(datasets, dict(self.settings)[column], model)
        values = np.array([figure.value for figure in figures])
        value = values.mean() if self.reduce == "mean" else values.std(ddof=1)
        count = sum(figure.count for figure in figures)
        return Figure(value=float(value), count=count, signature=figures[0].signature)


@lru_cache(maxsize=64)
def _measure_pairs(datasets: DatasetFolder, experiment: Segments, model: Any) -> list[Figure]:
    """Return the figure of each language pair; rows with mean and deviation share them."""
    return [experiment.measure(datasets, model, lp) for lp in experiment.columns]


@dataclass(frozen=True, kw_only=True)
class ByLength:
    """Pearson's r by length of the reference in words, average over language pairs.

    `ranges` has the shortest and the longest length of each column. Metrics score the whole test
    set, so that the bounds of SentSim do not depend on the length.
    """

    set: str
    pairs: tuple[str, ...]
    ranges: tuple[tuple[str, int, float], ...]
    statistic: str = (
        "Pearson's r with human scores of segments whose reference has so many words, average over "
        "language pairs"
    )

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(name for name, *_ in self.ranges)

    @property
    def data(self) -> str:
        return f"{self.set}, {len(self.pairs)} language pairs"

    def measure(self, datasets: DatasetFolder, model: Any, column: str) -> Figure:
        ((shortest, longest),) = (limits for name, *limits in self.ranges if name == column)
        values, count, signature = [], 0, ""
        for lp in self.pairs:
            judgment_set, scores = _score_pair(datasets, self.set, lp, model)
            lengths = np.array([len(s.references[0].split()) for s in judgment_set.segments])
            rows = (shortest <= lengths) & (lengths <= longest)
            agreement = pearson(judgment_set.scores[rows], scores.oriented_segments[rows])
            values.append(float(agreement))
            count += int(rows.sum())
            signature = scores.signature
        return Figure(value=float(np.mean(values)), count=count, signature=signature)


@lru_cache(maxsize=16)
def _score_pair(
    datasets: DatasetFolder, set_name: str, lp: str, model: Any
) -> tuple[JudgmentSet, Scores]:
    """Return the judgments of a language pair and their scores, for several ranges of length."""
    judgment_set = datasets.judgments(set_name, lp)
    return judgment_set, model.score(judgment_set.segments)
