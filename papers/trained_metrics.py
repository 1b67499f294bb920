"""Metrics that are trained for one row of a table, and experiments that average over seeds.

Trained models are stored in the cache folder, so that a second run trains nothing.
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
    ColumnScores,
    Correlation,
    Pairs,
    Segments,
    Systems,
    average_over_seeds,
    read_judgments,
    read_rankings,
)
from papers.table import Figure
from tertium.core.registry import METRICS, resolve
from tertium.core.segment import Judgment, Segment
from tertium.core.store import TRAINED
from tertium.data.dataset_folder import DatasetFolder
from tertium.data.judgments import JudgmentSet
from tertium.data.rankings import RankingSet
from tertium.data.record_files import read_jsonl
from tertium.meta.agreement import pearson
from tertium.metrics import Metric, load_metric
from tertium.metrics.heads.config import OURS, HeadOptions
from tertium.metrics.regression.svr import SVR, SVRConfig, SVROptions
from tertium.models.training_data import TrainingSets, remove_leaks

SEEDS = (1, 2, 3)
PREFERENCES = tuple(f"rankings/wmt{year}" for year in (11, 13, 15, 16))
ASSESSMENTS = ("wmt20", "wmt21", "wmt22")


@dataclass(frozen=True, kw_only=True)
class Head:
    """Trains a head on da/wmt16, with the epoch chosen on da/wmt15; one metric per seed.

    `preferences` trains on comparisons first. `judgments` limits the number of judgments of
    da/wmt16, drawn at random. Segments that share a reference with da/wmt15, da/wmt17 or
    rankings/wmt12 are left out of training. By default, differences are absolute and the input has
    no dropout: over these encoders, heads learn far less with the published settings.
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

    def __call__(self, datasets: DatasetFolder, column: str) -> list[Metric]:
        return [train_head(datasets, self, seed) for seed in self.seeds]

    def read_scores(self, datasets: DatasetFolder) -> list[JudgmentSet]:
        """Return the judgments to train on."""
        return read_judgments(datasets, "da/wmt16", self.pairs)

    def training_options(self, seed: int) -> HeadOptions:
        return replace(self.options, seed=seed)


@dataclass(frozen=True, kw_only=True)
class AssessmentHead(Head):
    """Trains a head on direct assessments into English of WMT20 to WMT22 instead of da/wmt16.

    With `raters`, only translations that were rated by so many people.
    """

    raters: int | None = None

    def read_scores(self, datasets: DatasetFolder) -> list[JudgmentSet]:
        names = [f"modern/train/da/{name}" for name in ASSESSMENTS]
        lps = {name: datasets.find(name).lps for name in names}
        pairs = [(name, lp) for name in names for lp in lps[name] if lp.endswith("-en")]
        return [read_assessments(datasets, name, lp, self.raters) for name, lp in pairs]


def read_assessments(
    datasets: DatasetFolder, name: str, lp: str, raters: int | None
) -> JudgmentSet:
    """Read judgments with a reference by `raters` people each (None: by any number)."""
    records = read_jsonl(datasets.find(name, "scores").file(lp))
    judgments = tuple(
        Judgment(
            Segment(record["hypothesis"], record["source"], (record["reference"],)),
            record["score"],
            item=record["segment"],
            system=record["system"],
            lp=lp,
            document=record["doc"],
        )
        for _, record in records
        if "reference" in record and raters in (None, record["raters"])
    )
    return JudgmentSet(name=name, lp=lp, judgments=judgments)


@lru_cache(maxsize=64)
def train_head(datasets: DatasetFolder, head: Head, seed: int) -> Any:
    """Train the metric of a row and a seed, or load it from the cache."""
    folder = model_folder(replace(head, seeds=(seed,)))
    if (folder / "config.json").is_file() and not (folder / "training.safetensors").exists():
        return load_metric(str(folder))
    dev = read_judgments(datasets, "da/wmt15", head.pairs)
    train = head.read_scores(datasets)
    rankings = [r for name in PREFERENCES for r in read_rankings(datasets, name)]
    held_out: list[JudgmentSet | RankingSet] = [*read_rankings(datasets, "rankings/wmt12")]
    held_out += read_judgments(datasets, "da/wmt17", head.pairs)
    sets = remove_leaks(TrainingSets(train, rankings if head.preferences else []), held_out)
    scores = sets.scores
    if head.judgments is not None:
        scores = [sample_judgments(scores, head.judgments, seed)]
    return resolve(METRICS, head.metric, "metric").train(
        [*scores, *sets.comparisons],
        dev=dev,
        options=head.training_options(seed),
        encoder=head.encoder,
        dropout=head.dropout,
        input_dropout=head.input_dropout,
        difference=head.difference,
        folder=folder,
    )


@dataclass(frozen=True, kw_only=True)
class SentenceRegression:
    """Trains an SVR on da/wmt15 and the other language pairs of da/wmt16.

    The published grid is searched on the training data of each column (`search="anew"`), or once
    on da/wmt15.
    """

    encoders: tuple[str, ...]
    search: Literal["anew", "once"] = "anew"

    def __call__(self, datasets: DatasetFolder, column: str) -> Metric:
        metric: Metric = train_svr(datasets, self, column)
        return metric


@lru_cache(maxsize=64)
def train_svr(datasets: DatasetFolder, row: SentenceRegression, column: str) -> Any:
    """Train the SVR that is tested on a language pair, or load it from the cache."""
    folder = model_folder((row, column))
    if (folder / "config.json").is_file():
        return load_metric(str(folder))
    other_pairs = [j for j in read_judgments(datasets, "da/wmt16") if j.lp != column]
    data = [*read_judgments(datasets, "da/wmt15"), *other_pairs]
    options = SVROptions()
    if row.search == "once":
        best = search_svr(datasets, row.encoders)
        options = SVROptions(c=(best.c,), epsilon=(best.epsilon,), gamma=(best.gamma,))
    test_set = datasets.judgments("da/wmt16", column)
    return SVR.train(data, dev=[test_set], encoders=row.encoders, options=options).save(folder)


@lru_cache(maxsize=16)
def search_svr(datasets: DatasetFolder, encoders: tuple[str, ...]) -> SVRConfig:
    """Return the settings that 10-fold cross-validation on da/wmt15 chooses."""
    folder = model_folder(("searched on da/wmt15", encoders))
    if not (folder / "config.json").is_file():
        SVR.train(read_judgments(datasets, "da/wmt15"), encoders=encoders).save(folder)
    return SVR.load(folder).config


class Seeded(Correlation):
    """Averages a correlation over metrics with different seeds; scores are of the first seed."""

    def read_scores(self, datasets: DatasetFolder, model: Any, column: str) -> ColumnScores:
        return super().read_scores(datasets, model[0], column)  # type: ignore[safe-super]

    def measure(self, datasets: DatasetFolder, model: Any, column: str) -> Figure:
        figures = [super(Seeded, self).measure(datasets, [metric], column) for metric in model]
        first, values = figures[0], np.array([figure.value for figure in figures])
        return average_over_seeds(values, first.count, first.signature, dict(first.excluded_counts))


@dataclass(frozen=True, kw_only=True)
class SeededSegments(Seeded, Segments):
    """The mean of a segment-level statistic over seeds."""


@dataclass(frozen=True, kw_only=True)
class SeededSystems(Seeded, Systems):
    """The mean of a system-level statistic over seeds."""


@dataclass(frozen=True, kw_only=True)
class LearningCurve:
    """Average Pearson's r on a test set; a column is the number of training judgments."""

    set: str
    pairs: tuple[str, ...]
    columns: tuple[str, ...]
    statistic: str = "Pearson's r with human scores of segments, average over language pairs"

    @property
    def data(self) -> str:
        return f"{self.set}, average of {len(self.pairs)} language pairs"

    def measure(self, datasets: DatasetFolder, model: Head, column: str) -> Figure:
        head = replace(model, judgments=int(column))
        values, count = [], 0
        for metric in head(datasets, column):
            correlations = []
            for lp in self.pairs:
                judgment_set = datasets.judgments(self.set, lp)
                scores = metric.score(judgment_set.segments).segments
                correlations.append(float(pearson(judgment_set.scores, scores)))
                count += len(judgment_set)
            values.append(float(np.mean(correlations)))
        return average_over_seeds(np.array(values), count // len(values))


def first_seed_only(head: Head) -> Any:
    """Return a model that trains the first seed only."""
    return lambda datasets, column: train_head(datasets, head, head.seeds[0])


def untrained_head(head: Head) -> Any:
    """Return a model for `LearningCurve`, which trains the head itself."""
    return lambda datasets, column: head


def sample_judgments(sets: Sequence[JudgmentSet], count: int, seed: int) -> JudgmentSet:
    """Draw judgments from several sets at random."""
    judgments = [j for judgment_set in sets for j in judgment_set.judgments]
    drawn = np.random.default_rng(seed).permutation(len(judgments))[:count]
    return replace(sets[0], lp="", judgments=tuple(judgments[n] for n in drawn), excluded_counts={})


def model_folder(recipe: object) -> Path:
    """Return the cache folder of a trained model."""
    key = repr((recipe, OURS))
    return TRAINED.path(hashlib.sha256(key.encode()).hexdigest()[:16])
