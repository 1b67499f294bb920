"""Networks trained from several starts: the mean of their figures, and how far they lie apart."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from tertium.data.collection import Collection
from tertium.data.leaks import drop_shared
from tertium.data.preferences import RankingSet
from tertium.data.sampling import sample_comparisons
from tertium.metrics.pairwise import Pairwise, PairwiseOptions
from tertium.reproduce.experiments import Comparisons
from tertium.reproduce.table import Figure
from tertium.segment import Preference

SEEDS = (0, 1, 2, 3, 4)
DEV_SET, DEV_SIZE, DEV_SEED = "rankings/wmt13", 5000, 13
OPTIONS = PairwiseOptions(rate=0.05, epochs=400, patience=40)


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """A ranker as a row of a table: what it reads, and what it is trained on.

    Called with a collection and a column, it is the trained rankers, one for each seed; the epoch
    of each is chosen on 5,000 comparisons of WMT13, which training on WMT13 leaves out with every
    segment they are about.
    """

    vectors: tuple[str, ...] = ()
    features: tuple[str, ...] = ()
    hidden: int = 4
    cost: str = "logistic"
    scaling: str = "minmax"
    train: tuple[str, ...] = ("rankings/wmt11",)
    options: PairwiseOptions = OPTIONS
    seeds: tuple[int, ...] = SEEDS

    def __call__(self, collection: Collection, column: str) -> list[Pairwise]:
        return train(collection, self)


@lru_cache(maxsize=64)
def train(collection: Collection, recipe: Recipe) -> list[Pairwise]:
    """The rankers of a recipe; recipes that occur in several tables are trained once."""
    dev, rest = held_out(collection)
    data: list[Preference] = []
    for name in recipe.train:
        sets = rest if name == DEV_SET else all_pairs(collection, name)
        for rankings in sets:
            data += drop_shared(rankings, dev)
    return Pairwise.train_seeds(
        data, dev=[p for rankings in dev for p in rankings], seeds=recipe.seeds,
        options=recipe.options, note=" ".join(recipe.train), vectors=recipe.vectors,
        features=recipe.features, hidden=recipe.hidden, cost=recipe.cost, scaling=recipe.scaling,
    )  # fmt: skip


def all_pairs(collection: Collection, name: str) -> list[RankingSet]:
    """The rankings of a set into English."""
    pairs = [lp for lp in collection.find(name).lps if lp.endswith("-en")]
    return [collection.rankings(name, lp) for lp in pairs]


def held_out(collection: Collection) -> tuple[list[RankingSet], list[RankingSet]]:
    """The comparisons of WMT13 that choices are made on, and those on other segments."""
    generator = np.random.default_rng(DEV_SEED)
    return sample_comparisons(all_pairs(collection, DEV_SET), DEV_SIZE, generator)


@dataclass(frozen=True, kw_only=True)
class SeededComparisons(Comparisons):
    """The mean of a pairwise statistic over networks that differ in their seed."""

    def measure(
        self, collection: Collection, model: Sequence[Pairwise], column: str
    ) -> Figure:
        rankings = collection.rankings(self.set, column)
        used = np.flatnonzero(rankings.compared)
        place = np.full(len(rankings.segments), -1)
        place[used] = np.arange(len(used))
        rows = model[0].inputs([rankings.segments[n] for n in used])
        left, right = place[rankings.left], place[rankings.right]
        agreements = []
        for ranker in model:
            chances = ranker.trained.network.prefer(rows, left, right).astype(np.float64)
            agreements.append(self.compare(rankings.verdicts, chances, 1 - chances))
        values = self.scale * np.array([float(agreement) for agreement in agreements])
        spread = f"{len(values)} seeds, deviation {values.std(ddof=1):.2f} on {column}"
        return Figure(
            value=float(values.mean()), count=int(agreements[0].used), signature=spread,
            left_out=dict(rankings.left_out),
        )  # fmt: skip
