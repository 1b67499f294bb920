"""What diagnostics read of a judged set, and how they measure it: bootstrap samples of items."""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import compress

import numpy as np

from tertium.core.arrays import BoolArray, FloatArray, divide, nan_mean
from tertium.core.errors import DataError
from tertium.core.resampling import draw_group_counts, make_rng
from tertium.core.segment import Segment
from tertium.data.human_data import HumanData, Texts
from tertium.evaluation.rows import find_scorable_by_all
from tertium.meta.agreement import Grouping
from tertium.meta.aligned_scores import AlignedScores
from tertium.meta.metric_agreement import MetaEvaluation
from tertium.meta.tasks import Task
from tertium.metrics.base.metric import Metric

SAMPLE = 200  # translations of a set that are changed and scored again
RESAMPLES = 1000  # bootstrap samples of items

Cell = tuple[str, str]  # system and item of a translation


@dataclass(frozen=True, eq=False)
class DiagnosticRow:
    """A row of a diagnostic: a value for each series, and values of bootstrap samples.

    `draws` are (resamples, series); one draw of NaN if there is no sampling variation.
    """

    series: tuple[str, ...]
    values: FloatArray
    draws: FloatArray


def average(parts: Sequence[DiagnosticRow]) -> DiagnosticRow:
    """Return the mean of independent rows of the same series."""
    values = nan_mean(np.stack([part.values for part in parts], axis=-1))
    draws = nan_mean(np.stack([part.draws for part in parts], axis=-1))
    return DiagnosticRow(parts[0].series, values, draws)


@dataclass(frozen=True, kw_only=True, eq=False)
class DiagnosticData:
    """Human and metric scores of one set; `metrics` are those that can score new texts."""

    aligned: AlignedScores
    human_data: HumanData
    metrics: tuple[Metric, ...]
    seed: int

    @cached_property
    def human(self) -> FloatArray:
        """Human scores of each translation, (systems, items); win rates if humans compared."""
        if self.aligned.comparisons is None:
            return self.aligned.human
        return self.human_data.segment_scores().values

    @property
    def metric_names(self) -> tuple[str, ...]:
        """The names of the metrics that can score new texts."""
        return tuple(metric.spec for metric in self.metrics)

    @property
    def score_tables(self) -> dict[str, FloatArray]:
        """The scores of each metric, (systems, items)."""
        return dict(zip(self.aligned.metrics, self.aligned.scores, strict=True))

    @cached_property
    def has_several_outputs(self) -> BoolArray:
        """Mask of the items with two or more judged translations, (items,)."""
        mask: BoolArray = (~np.isnan(self.human)).sum(axis=0) > 1
        return mask

    @cached_property
    def positions(self) -> dict[Cell, tuple[int, int]]:
        """The row and column of each judged translation."""
        cells = np.argwhere(~np.isnan(self.human)).tolist()
        return {(self.aligned.systems[r], self.aligned.items[c]): (r, c) for r, c in cells}

    @cached_property
    def texts(self) -> Texts:
        """The judged translations that all metrics can score, by a hash of their names."""
        texts = {cell: s for cell, s in self.human_data.texts().items() if cell in self.positions}
        scorable = compress(texts.items(), find_scorable_by_all([*texts.values()], self.metrics))
        return dict(sorted(scorable, key=lambda entry: self.hash_names(*entry[0])))

    def sample(self, count: int | None = SAMPLE) -> list[tuple[Cell, Segment]]:
        """Sample translations to change and score again, independent of the order of files."""
        if not self.metrics:
            raise DataError("metrics must score texts: give them with -m")
        if not self.texts:
            raise DataError("the judgments have no texts")
        return [*self.texts.items()][:count]

    def hash_names(self, *names: str) -> int:
        """Hash names together with the seed."""
        return zlib.crc32("\t".join([str(self.seed), *names]).encode())

    def score(self, segments: Sequence[Segment]) -> FloatArray:
        """Score segments with each metric, oriented (higher is better), (metrics, segments)."""
        return np.stack([metric.score(segments).oriented_segments for metric in self.metrics])

    def make_tables(
        self, cells: Sequence[Cell], values: Mapping[str, FloatArray]
    ) -> dict[str, FloatArray]:
        """Arrange values of cells (cells,) as systems x items; the others are NaN."""
        rows, columns = np.array([self.positions[cell] for cell in cells]).T
        tables = {}
        for name, own in values.items():
            tables[name] = np.full(self.human.shape, np.nan)
            tables[name][rows, columns] = own
        return tables

    def agreement(
        self, tables: Mapping[str, FloatArray], statistic: str, grouping: Grouping
    ) -> DiagnosticRow:
        """Measure the agreement of score tables with human scores, where there are scores."""
        values = np.stack([*tables.values()])
        human = np.where(np.isnan(values).all(axis=0), np.nan, self.human)
        aligned = replace(
            self.aligned,
            metrics=tuple(tables),
            human=human,
            human_systems=nan_mean(human),
            scores=values,
            system_scores=nan_mean(values),
            comparisons=None,
        )
        task = Task(
            sets=(aligned.name,),
            statistic=statistic,
            grouping=grouping,
            resamples=RESAMPLES,
            test="none",
        )
        result = MetaEvaluation([aligned], seed=self.seed).run_task(task)
        return DiagnosticRow(tuple(tables), result.values, result.replicates)

    def means(
        self, values: FloatArray, items: Sequence[str], series: Sequence[str] = ()
    ) -> DiagnosticRow:
        """Average values (series, units) that belong to items; series are by default metrics."""
        draws = weighted_means(values, self.weights(items))
        return DiagnosticRow(tuple(series) or self.metric_names, values.mean(axis=-1), draws)

    def weights(self, items: Sequence[str]) -> FloatArray:
        """Return how often bootstrap samples of items contain each unit, (resamples, units)."""
        return draw_group_counts([*items], RESAMPLES, make_rng(self.seed))


def weighted_means(values: FloatArray, weights: FloatArray) -> FloatArray:
    """Average the known values (..., units) for each resample, (resamples, ...)."""
    is_known = ~np.isnan(values)
    total = np.moveaxis(np.where(is_known, values, 0.0) @ weights.T, -1, 0)
    return divide(total, np.moveaxis(is_known @ weights.T, -1, 0))
