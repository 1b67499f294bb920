"""Scores are summable statistics: segment, document, system and resampled scores are one formula.

A metric turns each segment into a row of numbers that may be added (`statistics`) and knows how to
turn a sum into a score (`reduce`). `Scores` keeps both, so that any subset, weighting, bootstrap
sample or permutation is `reduce(weights @ statistics)`, and no statistical test knows a metric.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from tertium.arrays import FloatArray, chosen_rows, mean_known
from tertium.display import Displayed
from tertium.errors import (
    DataError,
    LengthError,
    PluginError,
    UnknownNameError,
    UsageError,
    one_line,
)
from tertium.frames import check_columns, make_frame, names, numbers

if TYPE_CHECKING:
    from pandas import DataFrame

Reduce = Callable[[FloatArray], FloatArray]
ABOUT = ("metric", "name", "signature", "higher_is_better")  # what a frame of scores says of itself


@dataclass(frozen=True, eq=False, repr=False)
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

    def __repr__(self) -> str:
        system = f"{self.system:.{self.decimals}f}"
        return f"<Scores of {len(self)} segments under {self.metric}: {system}>"

    @cached_property
    def segments(self) -> FloatArray:
        """The score of each segment, (n,)."""
        scores = (self.reduce_segments or self.reduce)(self.statistics)
        return self._check_shape(scores, self.statistics)

    @cached_property
    def system(self) -> float:
        """The score of all segments together."""
        return float(self.scores_of(self.statistics.sum(axis=0)))

    def scores_of(self, totals: FloatArray) -> FloatArray:
        """Sums of statistics to scores, (..., k) -> (...)."""
        return self._check_shape(self.reduce(totals), totals)

    def _check_shape(self, scores: FloatArray, totals: FloatArray) -> FloatArray:
        """Refuse what a formula made of other axes than the last: it would be of other segments."""
        if np.shape(scores) != totals.shape[:-1]:
            raise PluginError(
                f"{self.metric}: of sums of shape {totals.shape} its formula makes scores of shape "
                f"{np.shape(scores)}, not {totals.shape[:-1]}: it reads the last axis, "
                "as totals[..., 0] does"
            )
        return scores

    @property
    def sign(self) -> float:
        """What turns scores so that more is better: -1 where less is."""
        return 1.0 if self.higher_is_better else -1.0

    @property
    def upward(self) -> FloatArray:
        """The score of each segment, turned so that more is better, (n,)."""
        return self.sign * self.segments

    def aggregate(self, weights: ArrayLike) -> FloatArray:
        """The score under each row of `weights`, (..., n) -> (...)."""
        try:
            given = np.asarray(weights, dtype=np.float64)
        except (TypeError, ValueError):
            raise UsageError(f"weights are numbers, not {one_line(weights)}") from None
        if given.shape[-1:] != (len(self),):
            count = given.shape[-1] if given.ndim else "no"
            raise LengthError(f"{count} weights for {len(self)} segments")
        if not np.isfinite(given).all():
            raise DataError("a weight is missing or infinite; give each segment a number")
        return self.scores_of(given @ self.statistics)

    def documents(self, ids: Iterable[str | int]) -> dict[str, float]:
        """The score of each document by its name, in order of first appearance."""
        given: list[Any] = list(ids)
        if len(given) != len(self):
            raise LengthError(f"{len(given)} document ids for {len(self)} segments")
        for number, name in enumerate(given, start=1):
            if name is None or (isinstance(name, float) and np.isnan(name)):
                raise DataError(f"segment {number} has no document; give each one")
        given = [str(name) for name in given]
        found, codes = np.unique(np.asarray(given, dtype=object).astype(str), return_inverse=True)
        totals = np.zeros((len(found), self.statistics.shape[1]))
        np.add.at(totals, codes, self.statistics)
        scores = dict(zip(found.tolist(), self.scores_of(totals).tolist(), strict=True))
        return {name: scores[name] for name in dict.fromkeys(given)}

    def subset(self, rows: Any) -> Scores:
        """The same metric on some of the segments (a slice, mask or index array).

        It has no warnings: they are counted for all segments, and do not tell for which.
        """
        kept = self.statistics[chosen_rows(rows, len(self))]
        return replace(self, statistics=kept, warnings={}, verbose="")

    def to_frame(self, *, statistics: bool = False) -> DataFrame:
        """A pandas frame with a row for each segment: `segment` (from 1), `score`.

        With `statistics` also the numbers behind the score, a column each. The metric, its name and
        signature are in `frame.attrs`.
        """
        columns = {"segment": np.arange(1, len(self) + 1), "score": self.segments}
        if statistics:
            columns.update(zip(self.columns, self.statistics.T, strict=True))
        return make_frame(
            columns,
            metric=self.metric,
            name=self.name,
            signature=self.signature,
            higher_is_better=self.higher_is_better,
        )

    @classmethod
    def from_frame(cls, frame: DataFrame, *, reduce: Reduce | None = None) -> Scores:
        """Scores from a frame as `to_frame` makes it, its rows by the number of their `segment`.

        Without `reduce` the system score is the mean of the column `score`; with it, the other
        columns are the statistics that it turns into scores (`metric.reduce`).
        """
        known = [str(name) for name in frame.columns] if reduce else ["segment", "score"]
        check_columns(frame, ["score"], known, "frame of scores")
        about = {"metric": "", **{key: frame.attrs[key] for key in ABOUT if key in frame.attrs}}
        columns = tuple(name for name in known if name not in ("segment", "score"))
        rows = [numbers(frame, name, "frame of scores") for name in columns]
        if reduce is None:
            scores = numbers(frame, "score", "frame of scores")
            rows, columns = [scores, np.ones(len(scores))], ("score", "segments")
        statistics = np.column_stack(rows)[_order(frame)]
        return cls(statistics=statistics, reduce=reduce or _mean, columns=columns, **about)


@dataclass(frozen=True, eq=False)
class ScoreMatrix:
    """Segment scores of several systems: systems x segments, NaN where there is none.

    The one currency of meta-evaluation: a metric's scores and people's judgments are both one.
    `items` names the columns (segment ids), `systems` the rows.
    """

    name: str
    systems: tuple[str, ...]
    values: FloatArray  # (systems, segments)
    items: tuple[str, ...] = field(default=(), repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "values", np.asarray(self.values, dtype=np.float64))
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

    @classmethod
    def of_cells(cls, name: str, cells: Mapping[tuple[str, str], float]) -> ScoreMatrix:
        """Scores by (system, item), NaN where there is none."""
        systems = {s: n for n, s in enumerate(dict.fromkeys(system for system, _ in cells))}
        items = {i: n for n, i in enumerate(dict.fromkeys(item for _, item in cells))}
        values = np.full((len(systems), len(items)), np.nan)
        for (system, item), score in cells.items():
            values[systems[system], items[item]] = score
        return cls(name, tuple(systems), values, tuple(items))

    @property
    def labels(self) -> tuple[str, ...]:
        """The names of the columns; those without are numbered from 1."""
        return self.items or tuple(str(n + 1) for n in range(self.values.shape[1]))

    def cells(self) -> dict[tuple[str, str], float]:
        """The score of each system and item, NaN among them."""
        rows = zip(self.systems, self.values.tolist(), strict=True)
        return {(s, i): v for s, row in rows for i, v in zip(self.labels, row, strict=True)}

    @property
    def system_scores(self) -> FloatArray:
        """The mean over judged segments of each system, (systems,); NaN where it has none."""
        return mean_known(self.values)

    def to_frame(self) -> DataFrame:
        """A pandas frame with a row for each score: `metric`, `system`, `item`, `score`.

        Missing scores are NaN; items without names are numbered from 1.
        """
        return make_frame(
            {
                "metric": [self.name] * self.values.size,
                "system": np.repeat(self.systems, self.values.shape[1]).tolist(),
                "item": list(self.labels) * len(self.systems),
                "score": self.values.ravel(),
            }
        )

    @classmethod
    def from_frame(cls, frame: DataFrame, *, name: str = "") -> ScoreMatrix:
        """A matrix from a frame with `system`, `item` (or `segment`) and `score`, in any order.

        NaN, and a pair that is not there, mean: no score. `name` chooses among several metrics.
        Scores are taken as they stand, also where a column `higher_is_better` says that it is not.
        """
        where = "frame of scores"
        known = ("metric", "system", "item", "segment", "document", "score", "higher_is_better")
        check_columns(frame, ["system", "score"], known, where)
        place = "item" if "item" in frame.columns else "segment"
        check_columns(frame, [place], known, where)
        found = list(dict.fromkeys(map(str, frame["metric"]))) if "metric" in frame.columns else []
        if name and found:
            if name not in found:
                raise UnknownNameError(f"metric of the {where}", name, found)
            frame = frame[frame["metric"].astype(str) == name]
        elif len(found) > 1:
            raise DataError(f"{where}: several metrics ({', '.join(found)}); choose one with name=")
        scores = numbers(frame, "score", where, missing=True)
        places = zip(*(names(frame, column, where) for column in ("system", place)), strict=True)
        cells: dict[tuple[str, str], float] = {}
        for n, (cell, score) in enumerate(zip(places, scores.tolist(), strict=True), start=1):
            if not np.isnan(cells.get(cell, np.nan)):
                raise DataError(f"{where}, row {n}: a second score of {cell[0]}, {cell[1]}")
            cells[cell] = score
        return cls.of_cells(name or (found[0] if found else ""), cells)

    def __getitem__(self, system: str) -> FloatArray:
        """The row of one system, (segments,)."""
        if system not in self.systems:
            raise UnknownNameError("system", system, self.systems)
        row: FloatArray = self.values[self.systems.index(system)]
        return row


def _order(frame: DataFrame) -> Any:
    """The rows of a frame by the numbers of their segments, as they stand where these do not tell.

    A frame that was sorted by score would pair a segment with another of the next system.
    """
    segments = frame["segment"] if "segment" in frame.columns else None
    if segments is None or segments.dtype.kind not in "iu" or not segments.is_unique:
        return slice(None)
    return np.argsort(segments.to_numpy())


def _mean(totals: FloatArray) -> FloatArray:
    return totals[..., 0] / totals[..., 1]
