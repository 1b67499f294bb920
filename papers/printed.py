"""Examples that papers print, scored by our metrics: a column for each translation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from papers.experiments import read_judgments
from papers.table import Figure
from tertium.arrays import FloatArray
from tertium.data.collection import Collection
from tertium.segment import Segment


@dataclass(frozen=True)
class Example:
    """A printed translation; `reference` is its source where it was scored against that."""

    name: str
    reference: str
    hypothesis: str

    @property
    def segment(self) -> Segment:
        """The example as metrics read it, its other text as reference and as source."""
        return Segment(self.hypothesis, self.reference, (self.reference,))


@dataclass(frozen=True, kw_only=True)
class Printed:
    """The score of each example, alone."""

    examples: tuple[Example, ...]
    data: str = "the examples as printed"
    statistic: str = "score"

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(example.name for example in self.examples)

    def segment(self, column: str) -> Segment:
        """The example of a column."""
        return self.examples[self.columns.index(column)].segment

    def measure(self, collection: Collection, model: Any, column: str) -> Figure:
        scores = model.score([self.segment(column)])
        return Figure(value=float(scores.segments[0]), count=1, signature=scores.signature)


@dataclass(frozen=True, kw_only=True)
class Standing(Printed):
    """The share of a set's translations into English that a metric scores below an example."""

    set: str = "da/wmt15"
    data: str = "the examples as printed, among the translations of da/wmt15"
    statistic: str = "share of the set's translations into English that score lower"

    def measure(self, collection: Collection, model: Any, column: str) -> Figure:
        values = scores_in(collection, model, self.set, self.examples)
        place = self.columns.index(column)
        others = values[len(self.examples) :]
        return Figure(value=float((others < values[place]).mean()), count=len(others))


@lru_cache(maxsize=8)
def scores_in(
    collection: Collection, model: Any, name: str, examples: Sequence[Example]
) -> FloatArray:
    """Scores of the examples, then of all translations of a set into English; higher is better."""
    judged = [j for one in read_judgments(collection, name) for j in one.judgments]
    segments = [*(e.segment for e in examples), *(j.segment for j in judged)]
    scores: FloatArray = model.score(segments).upward
    return scores


@dataclass(frozen=True, kw_only=True)
class PrintedRanks:
    """The rank of a system's translation of a segment among those that people ranked with it.

    `examples` are (name of the column, segment, system).
    """

    set: str
    lp: str
    examples: tuple[tuple[str, str, str], ...]
    statistic: str = "rank among the translations that were compared with it, 1 is best"

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(name for name, _, _ in self.examples)

    @property
    def data(self) -> str:
        return f"{self.set}, {self.lp}"

    def measure(self, collection: Collection, model: Any, column: str) -> Figure:
        rankings = collection.rankings(self.set, self.lp)
        _, item, system = self.examples[self.columns.index(column)]
        own = (np.array(rankings.items)[rankings.item_of] == item) & (
            np.array(rankings.systems)[rankings.system_of] == system
        )
        (row,) = np.flatnonzero(own)
        beside = np.concatenate(
            [rankings.right[rankings.left == row], rankings.left[rankings.right == row]]
        )
        others = np.unique(beside[beside != row])
        scores = model.score([rankings.segments[n] for n in (row, *others)])
        values = scores.upward
        return Figure(
            value=float(1 + (values[1:] > values[0]).sum()),
            count=len(values),
            signature=scores.signature,
        )
