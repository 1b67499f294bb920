"""Experiments on single translations that papers print; a column is one translation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from papers.experiments import read_judgments
from papers.table import Figure
from tertium.core.arrays import FloatArray
from tertium.core.segment import Segment
from tertium.data.dataset_folder import DatasetFolder


@dataclass(frozen=True)
class Example:
    """A printed translation; `reference` is the source in tables that score against the source."""

    name: str
    reference: str
    hypothesis: str

    @property
    def segment(self) -> Segment:
        """The example as a segment; `reference` is used as reference and as source."""
        return Segment(self.hypothesis, self.reference, (self.reference,))


def load_examples(table: str) -> tuple[Example, ...]:
    """Read the examples of a table from `printed_examples.tsv`."""
    lines = (Path(__file__).parent / "printed_examples.tsv").read_text("utf-8").splitlines()
    rows = [line.split("\t") for line in lines[1:]]
    return tuple(Example(*row[1:]) for row in rows if row[0] == table)


@dataclass(frozen=True, kw_only=True)
class ExampleScores:
    """The score of each example."""

    examples: tuple[Example, ...]
    data: str = "the printed examples"
    statistic: str = "score"

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(example.name for example in self.examples)

    def segment(self, column: str) -> Segment:
        """Return the example of a column as a segment."""
        return self.examples[self.columns.index(column)].segment

    def measure(self, datasets: DatasetFolder, model: Any, column: str) -> Figure:
        scores = model.score([self.segment(column)])
        return Figure(value=float(scores.segments[0]), count=1, signature=scores.signature)


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
class ExamplePercentiles(ExampleScores):
    """The share of a set's translations into English that score lower than an example."""

    set: str = "da/wmt15"
    data: str = "the printed examples and the translations of da/wmt15"
    statistic: str = "share of the translations into English of the set that score lower"

    def measure(self, datasets: DatasetFolder, model: Any, column: str) -> Figure:
        values = _score_examples_and_set(datasets, model, self.set, self.examples)
        set_values = values[len(self.examples) :]
        value = float((set_values < values[self.columns.index(column)]).mean())
        return Figure(value=value, count=len(set_values))


@lru_cache(maxsize=8)
def _score_examples_and_set(
    datasets: DatasetFolder, model: Any, name: str, examples: Sequence[Example]
) -> FloatArray:
    """Return oriented scores of the examples, then of all translations of a set into English."""
    judgments = [j for part in read_judgments(datasets, name) for j in part.judgments]
    segments = [*(e.segment for e in examples), *(j.segment for j in judgments)]
    scores: FloatArray = model.score(segments).oriented_segments
    return scores


@dataclass(frozen=True, kw_only=True)
class ExampleRanks:
    """The rank of a translation among those that human raters compared it with.

    `examples` are (column, segment, system).
    """

    set: str
    lp: str
    examples: tuple[tuple[str, str, str], ...]
    statistic: str = "rank among the translations it was compared with; 1 is best"

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(name for name, _, _ in self.examples)

    @property
    def data(self) -> str:
        return f"{self.set}, {self.lp}"

    def measure(self, datasets: DatasetFolder, model: Any, column: str) -> Figure:
        rankings = datasets.rankings(self.set, self.lp)
        _, item, system = self.examples[self.columns.index(column)]
        is_example = (np.array(rankings.items)[rankings.item_indices] == item) & (
            np.array(rankings.systems)[rankings.system_indices] == system
        )
        (row,) = np.flatnonzero(is_example)
        compared = np.concatenate(
            [rankings.right[rankings.left == row], rankings.left[rankings.right == row]]
        )
        rivals = np.unique(compared[compared != row])
        scores = model.score([rankings.segments[n] for n in (row, *rivals)])
        values = scores.oriented_segments
        return Figure(
            value=float(1 + (values[1:] > values[0]).sum()),
            count=len(values),
            signature=scores.signature,
        )
