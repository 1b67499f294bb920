"""Scores as additive statistics: one formula gives segment, document, system and resampled scores.

A metric maps each segment to a row of additive numbers (`statistics`) and a sum of rows to a score
(`reduce`). `Scores` holds both. Any subset, weighting, bootstrap sample or permutation is
`reduce(weights @ statistics)`, so statistical tests do not depend on the metric.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from tertium.core.arrays import BoolArray, FloatArray, nan_mean, resolve_row_indices
from tertium.core.errors import (
    DataError,
    LengthError,
    PluginError,
    UnknownNameError,
)
from tertium.core.result import Column, Result, Table, is_missing, make_frame

if TYPE_CHECKING:
    from pandas import DataFrame


Reduce = Callable[[FloatArray], FloatArray]
FRAME_ATTRIBUTES = ("metric", "name", "signature", "higher_is_better")


@dataclass(frozen=True, eq=False, repr=False)
class Scores(Result):
    """The scores of one metric for one system.

    `metric` is the spec that rebuilds the metric; `signature` is published with the score.
    `statistics` has one row per segment, (segments, k); `reduce` maps sums of rows (..., k) to
    scores. `reduce_segments` replaces it for single segments, where a published metric treats
    sentences differently from a corpus (effective order in BLEU). `columns` names the k
    statistics. `flags` has a mask of segments for each kind of problem, and `warnings` counts
    them. `decimals` is the precision in tables, and
    `verbose` a text with details of the score. `usage` has the tokens and the cost of a judge.

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
    flags: Mapping[str, BoolArray] = field(default_factory=dict)
    higher_is_better: bool = True
    decimals: int = 4
    verbose: str = ""
    usage: Mapping[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.statistics.ndim != 2:
            raise DataError(f"statistics must be (segments, k), got {self.statistics.shape}")

    def __len__(self) -> int:
        return len(self.statistics)

    def __repr__(self) -> str:
        system = f"{self.system:.{self.decimals}f}"
        return f"<Scores of {len(self)} segments under {self.metric}: {system}>"

    __str__ = __repr__

    @property
    def warnings(self) -> dict[str, int]:
        """The number of segments of each kind of problem."""
        return {kind: int(mask.sum()) for kind, mask in self.flags.items()}

    @cached_property
    def segments(self) -> FloatArray:
        """The score of each segment, (n,)."""
        scores = (self.reduce_segments or self.reduce)(self.statistics)
        return self._check_shape(scores, self.statistics)

    @cached_property
    def system(self) -> float:
        """The score of all segments together."""
        return float(self.scores_from_totals(self.statistics.sum(axis=0)))

    def scores_from_totals(self, totals: FloatArray) -> FloatArray:
        """Map sums of statistics to scores, (..., k) -> (...)."""
        return self._check_shape(self.reduce(totals), totals)

    def _check_shape(self, scores: FloatArray, totals: FloatArray) -> FloatArray:
        """Raise `PluginError` if `reduce` did not reduce exactly the last axis."""
        if np.shape(scores) != totals.shape[:-1]:
            raise PluginError(
                f"{self.metric}: `reduce` maps sums of shape {totals.shape} to scores of shape "
                f"{np.shape(scores)}; expected {totals.shape[:-1]}: index the last axis only, "
                "as in totals[..., 0]"
            )
        return scores

    @property
    def sign(self) -> float:
        """1 if higher scores are better, else -1."""
        return 1.0 if self.higher_is_better else -1.0

    @property
    def oriented_segments(self) -> FloatArray:
        """The score of each segment, negated if lower is better, (n,)."""
        return self.sign * self.segments

    def aggregate(self, weights: ArrayLike) -> FloatArray:
        """Compute the score under each row of segment `weights`, (..., n) -> (...)."""
        array = np.asarray(weights, dtype=np.float64)
        if array.shape[-1:] != (len(self),):
            count = array.shape[-1] if array.ndim else "no"
            raise LengthError(f"{count} weights for {len(self)} segments")
        if not np.isfinite(array).all():
            raise DataError("a weight is missing or infinite: give each segment a number")
        return self.scores_from_totals(array @ self.statistics)

    def documents(self, ids: Iterable[str | int]) -> dict[str, float]:
        """Compute the score of each document, in order of first appearance."""
        given_ids: list[Any] = list(ids)
        if len(given_ids) != len(self):
            raise LengthError(f"{len(given_ids)} document ids for {len(self)} segments")
        for number, name in enumerate(given_ids, start=1):
            if is_missing(name):
                raise DataError(f"segment {number} has no document: give one for each segment")
        labels = [str(name) for name in given_ids]
        numbers = {name: n for n, name in enumerate(dict.fromkeys(labels))}
        totals = np.zeros((len(numbers), self.statistics.shape[1]))
        np.add.at(totals, [numbers[label] for label in labels], self.statistics)
        return dict(zip(numbers, self.scores_from_totals(totals).tolist(), strict=True))

    def subset(self, rows: Any) -> Scores:
        """Restrict the scores to some segments (a slice, mask or index array), without warnings."""
        statistics = self.statistics[resolve_row_indices(rows, len(self))]
        return replace(self, statistics=statistics, flags={}, verbose="", usage={})

    def tables(self) -> list[Table]:
        """Return the score with the quartiles of segments."""
        finite = self.segments[np.isfinite(self.segments)]
        quartiles = np.percentile(finite, [0, 25, 50, 75, 100]) if finite.size else [np.nan] * 5
        names = ("min", "25 %", "median", "75 %", "max")
        row = {"metric": self.name or self.metric, "system": self.system, "segments": len(self)}
        row |= dict(zip(names, map(float, quartiles), strict=True))
        columns = [
            Column("metric"),
            Column("system", decimals=self.decimals, mark=lambda _: "best"),
            Column("segments", decimals=0),
            *(Column(name, decimals=self.decimals) for name in names),
        ]
        warnings = [f"warning: {kind}: {count}" for kind, count in self.warnings.items()]
        notes = [text for text in (self.verbose, self.signature, *warnings) if text]
        return [Table(columns, [row], notes=notes)]

    def file_table(self, suffix: str = "") -> Table:
        """Return one row per segment: `segment` (from 1) and `score`."""
        numbers = range(1, len(self) + 1)
        return Table.from_values({"segment": numbers, "score": self.segments.tolist()})

    def to_frame(self, *, statistics: bool = False) -> DataFrame:
        """Convert `file_table` to a pandas frame.

        `statistics` adds one column per statistic. `frame.attrs` holds the metric, its name and
        signature.
        """
        columns: dict[str, Any] = self.file_table().values()
        if statistics:
            columns.update(zip(self.columns, self.statistics.T, strict=True))
        return make_frame(columns, **{key: getattr(self, key) for key in FRAME_ATTRIBUTES})


@dataclass(frozen=True, eq=False)
class ScoreMatrix:
    """Segment scores of several systems, (systems, segments); NaN marks a missing score.

    Meta-evaluation uses it for metric scores and for human scores. `items` names the columns
    (segment ids), `systems` the rows.
    """

    name: str
    systems: tuple[str, ...]
    values: FloatArray  # (systems, segments)
    items: tuple[str, ...] = field(default=(), repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "values", np.asarray(self.values, dtype=np.float64))
        label = self.name or "score matrix"
        if self.values.ndim != 2 or len(self.values) != len(self.systems):
            raise LengthError(
                f"{label}: {len(self.systems)} systems but values of shape {self.values.shape}"
            )
        if self.items and len(self.items) != self.values.shape[1]:
            raise LengthError(
                f"{label}: {len(self.items)} items but {self.values.shape[1]} columns"
            )

    @classmethod
    def from_cells(cls, name: str, cells: Mapping[tuple[str, str], float]) -> ScoreMatrix:
        """Create a matrix from scores by (system, item); missing pairs become NaN."""
        systems = {s: n for n, s in enumerate(dict.fromkeys(system for system, _ in cells))}
        items = {i: n for n, i in enumerate(dict.fromkeys(item for _, item in cells))}
        values = np.full((len(systems), len(items)), np.nan)
        for (system, item), score in cells.items():
            values[systems[system], items[item]] = score
        return cls(name, tuple(systems), values, tuple(items))

    @property
    def labels(self) -> tuple[str, ...]:
        """The names of the columns; numbers from 1 without item names."""
        return self.items or tuple(str(n + 1) for n in range(self.values.shape[1]))

    def cells(self) -> dict[tuple[str, str], float]:
        """Return the score of each (system, item), including NaN."""
        rows = zip(self.systems, self.values.tolist(), strict=True)
        return {(s, i): v for s, row in rows for i, v in zip(self.labels, row, strict=True)}

    @property
    def system_scores(self) -> FloatArray:
        """The mean score of each system, ignoring NaN, (systems,)."""
        return nan_mean(self.values)

    def to_frame(self) -> DataFrame:
        """Convert to a pandas frame of `metric`, `system`, `item`, `score`; NaN if missing."""
        return make_frame(
            {
                "metric": [self.name] * self.values.size,
                "system": np.repeat(self.systems, self.values.shape[1]).tolist(),
                "item": list(self.labels) * len(self.systems),
                "score": self.values.ravel(),
            }
        )

    def __getitem__(self, system: str) -> FloatArray:
        """Return the row of one system, (segments,)."""
        if system not in self.systems:
            raise UnknownNameError("system", system, self.systems)
        row: FloatArray = self.values[self.systems.index(system)]
        return row


def format_warning_counts(counts: Mapping[str, Mapping[str, int]]) -> list[str]:
    """Return one line per kind of warning with its count for each system.

    >>> format_warning_counts({"empty hypothesis": {"a": 2, "b": 1}})
    ['warning: empty hypothesis: a 2, b 1']
    """
    return [
        f"warning: {kind}: " + ", ".join(f"{system} {n}" for system, n in by_system.items())
        for kind, by_system in counts.items()
    ]
