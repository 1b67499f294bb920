"""Metrics that are trained for a row of a table: what on, chosen how, from how many starts.

What was trained is kept in the cache folder, so that a table measured again trains nothing, and one
that was interrupted goes on.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

import numpy as np

from papers.experiments import (
    Pairs,
    Segments,
    Systems,
    over_seeds,
    read_judgments,
    read_rankings,
)
from papers.table import Figure
from tertium.arrays import FloatArray
from tertium.cache.files import TRAINED
from tertium.data.collection import Collection
from tertium.data.judgments import JudgmentSet
from tertium.data.rankings import RankingSet
from tertium.meta.correlation import pearson
from tertium.metrics import Metric, load_metric
from tertium.metrics.heads.settings import OURS, HeadOptions
from tertium.metrics.regression.svr import SVR, SVRConfig, SVROptions
from tertium.models.judged import without_leaks
from tertium.registry import METRICS, resolve

SEEDS = (1, 2, 3)
PREFERENCES = tuple(f"rankings/wmt{year}" for year in (11, 13, 15, 16))


@dataclass(frozen=True, kw_only=True)
class Head:
    """A head as a row: trained on da/wmt16, after comparisons where asked, chosen on da/wmt15.

    Called with a collection and a column, it is the trained metrics, one for each seed. Segments
    that share a reference with da/wmt15, da/wmt17 or rankings/wmt12 are left out of training.
    `judgments` trains on so many of da/wmt16, drawn at random by the seed. Differences are
    absolute and the encoder's vectors whole: with the published sign and dropout every head learns
    far less over these encoders. `options` go with them, so that a row is known by the others.
    """

    metric: str
    encoder: str = "minilm"
    preferences: bool = False
    pairs: Pairs = "into English"
    dropout: float = 0.5
    input_dropout: float | None = 0.0
    difference: Literal["signed", "absolute"] = "absolute"
    judgments: int | None = None
    seeds: tuple[int, ...] = SEEDS
    options: HeadOptions = field(default=OURS.options, repr=False)

    def __call__(self, collection: Collection, column: str) -> list[Metric]:
        return [train_head(collection, self, seed) for seed in self.seeds]


@lru_cache(maxsize=64)
def train_head(collection: Collection, head: Head, seed: int) -> Any:
    """The metric of a row and a seed, from its folder where it was trained before."""
    folder = model_folder(replace(head, seeds=(seed,)))
    if (folder / "config.json").is_file() and not (folder / "training.safetensors").exists():
        return load_metric(str(folder))
    dev = read_judgments(collection, "da/wmt15", head.pairs)
    train = read_judgments(collection, "da/wmt16", head.pairs)
    rankings = [r for name in PREFERENCES for r in read_rankings(collection, name)]
    held_out: list[JudgmentSet | RankingSet] = [*read_rankings(collection, "rankings/wmt12")]
    held_out += read_judgments(collection, "da/wmt17", head.pairs)
    scores, comparisons = without_leaks(train, rankings if head.preferences else [], held_out)
    if head.judgments is not None:
        scores = [sample_judgments(scores, head.judgments, seed)]
    return resolve(METRICS, head.metric, "metric").train(
        [*scores, *comparisons],
        dev=dev,
        options=replace(head.options, seed=seed),
        encoder=head.encoder,
        dropout=head.dropout,
        input_dropout=head.input_dropout,
        difference=head.difference,
        folder=folder,
    )


@dataclass(frozen=True, kw_only=True)
class SentenceRegression:
    """SVR as a row: trained on da/wmt15 and the other pairs of da/wmt16, tested on the column.

    The published grid is searched on what it trains on, anew for each column (`search="anew"`), or
    once on da/wmt15 alone.
    """

    encoders: tuple[str, ...]
    search: Literal["anew", "once"] = "anew"

    def __call__(self, collection: Collection, column: str) -> Metric:
        metric: Metric = train_svr(collection, self, column)
        return metric


@lru_cache(maxsize=64)
def train_svr(collection: Collection, row: SentenceRegression, column: str) -> Any:
    """The regression that is tested on a language pair."""
    folder = model_folder((row, column))
    if (folder / "config.json").is_file():
        return load_metric(str(folder))
    others = [j for j in read_judgments(collection, "da/wmt16") if j.lp != column]
    data = [*read_judgments(collection, "da/wmt15"), *others]
    options = SVROptions()
    if row.search == "once":
        best = search_svr(collection, row.encoders)
        options = SVROptions(c=(best.c,), epsilon=(best.epsilon,), gamma=(best.gamma,))
    tested = collection.judgments("da/wmt16", column)
    return SVR.train(data, dev=[tested], encoders=row.encoders, options=options).save(folder)


@lru_cache(maxsize=16)
def search_svr(collection: Collection, encoders: tuple[str, ...]) -> SVRConfig:
    """What ten-fold cross validation on da/wmt15 chooses."""
    folder = model_folder(("searched on da/wmt15", encoders))
    if not (folder / "config.json").is_file():
        SVR.train(read_judgments(collection, "da/wmt15"), encoders=encoders).save(folder)
    return SVR.load(folder).config


@dataclass(frozen=True, kw_only=True)
class SeededSegments(Segments):
    """The mean of a segment-level statistic over metrics that differ in their seed."""

    def measure(self, collection: Collection, model: Any, column: str) -> Figure:
        judged = collection.judgments(self.set, column, self.part)
        scored = [metric.score(judged.segments) for metric in model]
        agreements = [self.correlate(judged.scores, scores.upward) for scores in scored]
        values = np.array([float(agreement) for agreement in agreements])
        return over_seeds(
            values, int(agreements[0].used), scored[0].signature, dict(judged.left_out)
        )

    def both_scores(
        self, collection: Collection, model: Any, column: str
    ) -> tuple[FloatArray, FloatArray]:
        """What people and the first of the metrics gave to each segment: a test is of one."""
        return super().both_scores(collection, model[0], column)


@dataclass(frozen=True, kw_only=True)
class SeededSystems(Systems):
    """The mean of a system-level statistic over metrics that differ in their seed."""

    def measure(self, collection: Collection, model: Any, column: str) -> Figure:
        first = super().measure(collection, model[0], column)
        others = [super(SeededSystems, self).measure(collection, m, column) for m in model[1:]]
        values = np.array([figure.value for figure in (first, *others)])
        return over_seeds(values, first.count, first.signature, dict(first.left_out))

    def both_scores(
        self, collection: Collection, model: Any, column: str
    ) -> tuple[FloatArray, FloatArray]:
        """What people and the first of the metrics gave to each system."""
        return super().both_scores(collection, model[0], column)


@dataclass(frozen=True, kw_only=True)
class Curve:
    """Average Pearson's r on a test set against the number of judgments trained on (columns)."""

    set: str
    pairs: tuple[str, ...]
    columns: tuple[str, ...]
    statistic: str = "Pearson's r with human scores of segments, average over language pairs"

    @property
    def data(self) -> str:
        return f"{self.set}, average of {len(self.pairs)} language pairs"

    def measure(self, collection: Collection, model: Head, column: str) -> Figure:
        head = replace(model, judgments=int(column))
        values, count = [], 0
        for metric in head(collection, column):
            parts = []
            for lp in self.pairs:
                judged = collection.judgments(self.set, lp)
                parts.append(float(pearson(judged.scores, metric.score(judged.segments).segments)))
                count += len(judged)
            values.append(float(np.mean(parts)))
        return over_seeds(np.array(values), count // len(values))


def first_of(head: Head) -> Any:
    """A row that takes the first seed only, where scoring is dear."""
    return lambda collection, column: train_head(collection, head, head.seeds[0])


def curve_row(head: Head) -> Any:
    """A row of a learning curve: the experiment itself trains for each column."""
    return lambda collection, column: head


def sample_judgments(sets: Sequence[JudgmentSet], count: int, seed: int) -> JudgmentSet:
    """So many judgments of several sets, drawn at random."""
    rows = [j for one in sets for j in one.judgments]
    chosen = np.random.default_rng(seed).permutation(len(rows))[:count]
    return replace(sets[0], lp="", judgments=tuple(rows[n] for n in chosen), left_out={})


def model_folder(recipe: object) -> Path:
    """The folder of what a recipe trains."""
    key = repr((recipe, OURS))
    return TRAINED.path(hashlib.sha256(key.encode()).hexdigest()[:16])
