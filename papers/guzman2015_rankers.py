"""Pairwise rankers trained for a row of Guzmán et al. (2015), with several seeds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Literal

import numpy as np

from papers.experiments import Comparisons, average_over_seeds, read_judgments, read_rankings
from papers.table import Figure
from tertium.core.segment import Preference
from tertium.data.dataset_folder import DatasetFolder
from tertium.data.judgments import JudgmentSet
from tertium.data.rankings import RankingSet, sample_comparisons
from tertium.data.ratings import drop_overlap, find_shared_segments
from tertium.metrics.pairwise.neural_ranker import Pairwise, PairwiseOptions
from tertium.metrics.pairwise.ranker_training import DEV_SAMPLE_SEED, train_ranker

Decision = Literal["both orders", "one order"]

SEEDS = (0, 1, 2, 3, 4)
DEV_SIZE = 5000
WMT13, WMT15 = "rankings/wmt13", "rankings/wmt15"
# Segments of these rankings that are not in the training data of the bundled metrics.
HELD_OUT_SEGMENTS = {WMT15: "da/wmt15"}
OPTIONS = PairwiseOptions(rate=0.1, epochs=200, patience=40)


@dataclass(frozen=True, kw_only=True)
class RankerRecipe:
    """Inputs, architecture and training data of a ranker; trains one ranker per seed.

    The epoch is chosen on 5,000 comparisons of `dev`. Of WMT15, only segments of da/wmt15 are used
    for this: tertium-small was trained on all other rankings, but not on these. Training leaves
    out segments whose reference occurs in these comparisons or in those of WMT13.
    """

    vectors: tuple[str, ...] = ()
    features: tuple[str, ...] = ()
    hidden: int = 4
    cost: str = "logistic"
    scaling: str = "minmax"
    train: tuple[str, ...] = ("rankings/wmt11",)
    dev: str = WMT13
    options: PairwiseOptions = OPTIONS
    seeds: tuple[int, ...] = SEEDS

    def __call__(self, datasets: DatasetFolder, column: str) -> list[Pairwise]:
        return train_recipe(datasets, self)

    @property
    def note(self) -> str:
        """The training and development data, stored with the model."""
        part = (
            f", on segments of {HELD_OUT_SEGMENTS[self.dev]}"
            if self.dev in HELD_OUT_SEGMENTS
            else ""
        )
        return (
            f"{' '.join(self.train)}; epoch chosen on {DEV_SIZE:,} comparisons of {self.dev}{part}"
        )


@lru_cache(maxsize=64)
def train_recipe(datasets: DatasetFolder, recipe: RankerRecipe) -> list[Pairwise]:
    """Train the rankers of a recipe; cached, because several tables share recipes."""
    dev, wmt13 = held_out_sets(datasets, recipe.dev), held_out_sets(datasets, WMT13)
    data: list[Preference] = []
    for name in recipe.train:
        for rankings in read_rankings(datasets, name):
            data += drop_overlap(rankings, [*dev, *wmt13])
    names = ("vectors", "features", "hidden", "cost", "scaling")
    untrained = Pairwise(**{name: getattr(recipe, name) for name in names})
    dev_preferences = [p for rankings in dev for p in rankings]
    rankers = []
    for seed in recipe.seeds:
        options = replace(recipe.options, seed=seed)
        checkpoint = train_ranker(untrained, data, dev_preferences, options, recipe.note)
        rankers.append(Pairwise.from_checkpoint(checkpoint))
    return rankers


def keep_judged(rankings: RankingSet, judgment_sets: Sequence[JudgmentSet]) -> RankingSet:
    """Return the comparisons of segments that the judgment sets share."""
    is_shared = find_shared_segments(rankings.segments, judgment_sets)
    return rankings.select(is_shared[rankings.left] | is_shared[rankings.right])


def held_out_sets(datasets: DatasetFolder, name: str) -> list[RankingSet]:
    """Draw the comparisons for choosing the epoch; those of HELD_OUT_SEGMENTS have no ties."""
    if name in HELD_OUT_SEGMENTS:
        judgment_sets = read_judgments(datasets, HELD_OUT_SEGMENTS[name])
        rankings = [datasets.rankings(name, judgments.lp) for judgments in judgment_sets]
        sets = [keep_judged(one, judgment_sets).without_ties() for one in rankings]
    else:
        sets = read_rankings(datasets, name)
    return sample_comparisons(sets, DEV_SIZE, np.random.default_rng(DEV_SAMPLE_SEED))


@dataclass(frozen=True, kw_only=True)
class SeededRankings(Comparisons):
    """The mean of a pairwise statistic over rankers with different seeds.

    `decision` is how a network decides: by the mean of both orders of a pair, or by one order as in
    the paper.
    """

    decision: Decision = "both orders"

    def measure(self, datasets: DatasetFolder, model: Sequence[Pairwise], column: str) -> Figure:
        rankings = datasets.rankings(self.set, column)
        used = np.flatnonzero(rankings.compared_mask)
        index = np.full(len(rankings.segments), -1)
        index[used] = np.arange(len(used))
        segments = [rankings.segments[n] for n in used]
        rows = model[0].inputs(segments)
        left, right = index[rankings.left], index[rankings.right]
        agreements = []
        for ranker in model:
            network = ranker.trained.network
            if self.decision == "one order":
                probabilities = network.probabilities(rows, left, right)
            else:
                probabilities = network.prefer(rows, left, right)
            scores = probabilities.astype(np.float64)
            agreements.append(self.compare(rankings.verdicts, scores, 1 - scores))
        values = self.scale * np.array([float(agreement) for agreement in agreements])
        return average_over_seeds(
            values, int(agreements[0].used), excluded_counts=dict(rankings.excluded_counts)
        )
