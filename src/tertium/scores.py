"""Scores are summable statistics: segment, document, system and resampled scores are one formula.

A metric turns each segment into a row of numbers that may be added (`statistics`) and knows how to
turn a sum into a score (`reduce`). `Scores` keeps both, so that any subset, weighting, bootstrap
sample or permutation is `reduce(weights @ statistics)`, and no statistical test knows a metric.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tertium.display import Displayed
from tertium.errors import DataError, LengthError

FloatArray = NDArray[np.float64]
Reduce = Callable[[FloatArray], FloatArray]


@dataclass(frozen=True, eq=False)
class Scores(Displayed):
    """What one metric says of one system's segments.

    `metric` is the spec that rebuilds the metric, `signature` what to publish with the score,
    `statistics` the (segments, k) rows, `reduce` the map from sums of rows (..., k) to scores.
    `reduce_segments` is the same for single segments; it differs only where a published metric
    treats one sentence differently from a corpus (BLEU's effective order).
    `columns` names the k statistics; `warnings` counts what a reader of the score should know;
    `decimals` is how many a table shows, `verbose` what stands behind the score in words.

    >>> mean = lambda totals: totals[..., 0] / totals[..., 1]
    >>> s = Scores(metric="demo", statistics=np.array([[1.0, 1], [3.0, 1]]), reduce=mean)
    >>> s.segments, s.system
    (array([1., 3.]), 2.0)
    >>> s.aggregate([[1, 0], [1, 3]])
    array([1. , 2.5])
    """

    metric: str
    statistics: FloatArray
    reduce: Reduce
    reduce_segments: Reduce | None = None
    name: str = ""
    signature: str = ""
    columns: tuple[str, ...] = ()
    warnings: Mapping[str, int] = field(default_factory=dict)
    higher_is_better: bool = True
    decimals: int = 4
    verbose: str = ""

    def __post_init__(self) -> None:
        if self.statistics.ndim != 2:
            raise DataError(f"statistics must be (segments, k), got {self.statistics.shape}")

    def __len__(self) -> int:
        return len(self.statistics)

    @cached_property
    def segments(self) -> FloatArray:
        """The score of each segment, (n,)."""
        return (self.reduce_segments or self.reduce)(self.statistics)

    @cached_property
    def system(self) -> float:
        """The score of all segments together."""
        return float(self.reduce(self.statistics.sum(axis=0)))

    def aggregate(self, weights: ArrayLike) -> FloatArray:
        """The score under each row of `weights`, (..., n) -> (...)."""
        return self.reduce(np.asarray(weights, dtype=np.float64) @ self.statistics)

    def documents(self, ids: Sequence[str]) -> dict[str, float]:
        """The score of each document, in order of first appearance."""
        if len(ids) != len(self):
            raise LengthError(f"{len(ids)} document ids for {len(self)} segments")
        names, codes = np.unique(np.asarray(ids, dtype=object).astype(str), return_inverse=True)
        totals = np.zeros((len(names), self.statistics.shape[1]))
        np.add.at(totals, codes, self.statistics)
        scores = dict(zip(names.tolist(), self.reduce(totals).tolist(), strict=True))
        return {name: scores[name] for name in dict.fromkeys(ids)}

    def subset(self, rows: Any) -> Scores:
        """The same metric on some of the segments (a slice, mask or index array)."""
        return replace(self, statistics=self.statistics[rows], verbose="")


@dataclass(frozen=True, eq=False)
class ScoreMatrix:
    """Segment scores of several systems: systems x segments, NaN where there is none.

    The one currency of meta-evaluation: a metric's scores and people's judgements are both one.
    `items` names the columns (segment ids), `systems` the rows.
    """

    name: str
    systems: tuple[str, ...]
    values: FloatArray  # (systems, segments)
    items: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.values.ndim != 2 or len(self.values) != len(self.systems):
            raise LengthError(
                f"{self.name or 'score matrix'}: {len(self.systems)} systems "
                f"but values of shape {self.values.shape}"
            )
        if self.items and len(self.items) != self.values.shape[1]:
            raise LengthError(
                f"{self.name or 'score matrix'}: {len(self.items)} items "
                f"but {self.values.shape[1]} columns"
            )

    @property
    def system_scores(self) -> FloatArray:
        """The mean over judged segments of each system, (systems,); NaN where it has none."""
        present = ~np.isnan(self.values)
        counts = present.sum(axis=1)
        totals = np.where(present, self.values, 0.0).sum(axis=1)
        means: FloatArray = np.divide(
            totals, counts, out=np.full(len(counts), np.nan), where=counts > 0
        )
        return means

    def __getitem__(self, system: str) -> FloatArray:
        """The row of one system, (segments,)."""
        row: FloatArray = self.values[self.systems.index(system)]
        return row
