"""Networks trained from several starts: the mean of their figures, and how far they lie apart."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from papers.experiments import Comparisons, over_seeds, read_judgments, read_rankings
from papers.table import Figure
from tertium.data.collection import Collection
from tertium.data.leaks import drop_shared, keep_shared
from tertium.data.rankings import RankingSet, sample_comparisons
from tertium.metrics.pairwise.ranker import DRAWN_BY, Pairwise, PairwiseOptions, learn
from tertium.segment import Preference

SEEDS = (0, 1, 2, 3, 4)
DEV_SIZE = 5000
WMT13, WMT15 = "rankings/wmt13", "rankings/wmt15"
UNSEEN = {WMT15: "da/wmt15"}  # of these rankings, the segments that the metrics we ship never saw
OPTIONS = PairwiseOptions(rate=0.1, epochs=200, patience=40)


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """A ranker as a row of a table: what it reads, what it learns from, what it is chosen on.

    Called with a collection and a column, it is the trained rankers, one for each seed. The epoch
    of each is chosen on 5,000 comparisons of `choose`. Of WMT15 only segments of da/wmt15 serve for
    choosing: tertium-small learned from all other rankings and never saw these. Training leaves out
    every segment whose reference occurs among these comparisons or those of WMT13.
    """

    vectors: tuple[str, ...] = ()
    features: tuple[str, ...] = ()
    hidden: int = 4
    cost: str = "logistic"
    scaling: str = "minmax"
    train: tuple[str, ...] = ("rankings/wmt11",)
    choose: str = WMT13
    options: PairwiseOptions = OPTIONS
    seeds: tuple[int, ...] = SEEDS

    def __call__(self, collection: Collection, column: str) -> list[Pairwise]:
        return train(collection, self)

    @property
    def note(self) -> str:
        """What was learned from and chosen on, in words."""
        part = f", on segments of {UNSEEN[self.choose]}" if self.choose in UNSEEN else ""
        chosen = f"epoch chosen on {DEV_SIZE:,} comparisons of {self.choose}{part}"
        return f"{' '.join(self.train)}; {chosen}"


@lru_cache(maxsize=64)
def train(collection: Collection, recipe: Recipe) -> list[Pairwise]:
    """The rankers of a recipe; recipes that occur in several tables are trained once."""
    dev, others = held_out_sets(collection, recipe.choose), held_out_sets(collection, WMT13)
    data: list[Preference] = []
    for name in recipe.train:
        for rankings in read_rankings(collection, name):
            data += drop_shared(rankings, [*dev, *others])
    names = ("vectors", "features", "hidden", "cost", "scaling")
    blank = Pairwise(**{name: getattr(recipe, name) for name in names})
    chosen_on = [p for rankings in dev for p in rankings]
    learned = learn(blank, data, chosen_on, recipe.seeds, recipe.options, recipe.note)
    return [Pairwise.from_checkpoint(checkpoint) for checkpoint in learned]


def held_out_sets(collection: Collection, name: str) -> list[RankingSet]:
    """The comparisons that choices are made on; of rankings in UNSEEN without ties."""
    if name in UNSEEN:
        judged = read_judgments(collection, UNSEEN[name])
        ranked = [collection.rankings(name, judgments.lp) for judgments in judged]
        sets = [keep_shared(rankings, judged).drop_ties() for rankings in ranked]
    else:
        sets = read_rankings(collection, name)
    return sample_comparisons(sets, DEV_SIZE, np.random.default_rng(DRAWN_BY))


@dataclass(frozen=True, kw_only=True)
class SeededComparisons(Comparisons):
    """The mean of a pairwise statistic over networks that differ in their seed."""

    def measure(self, collection: Collection, model: Sequence[Pairwise], column: str) -> Figure:
        rankings = collection.rankings(self.set, column)
        used = np.flatnonzero(rankings.is_compared)
        place = np.full(len(rankings.segments), -1)
        place[used] = np.arange(len(used))
        rows = model[0].inputs([rankings.segments[n] for n in used])
        left, right = place[rankings.left], place[rankings.right]
        agreements = []
        for ranker in model:
            chances = ranker.trained.network.prefer(rows, left, right).astype(np.float64)
            agreements.append(self.compare(rankings.verdicts, chances, 1 - chances))
        values = self.scale * np.array([float(agreement) for agreement in agreements])
        return over_seeds(values, int(agreements[0].used), left_out=dict(rankings.left_out))
