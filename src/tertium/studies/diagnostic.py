"""The data that diagnostics check, and their result type."""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import compress
from string import ascii_lowercase
from typing import Any

import numpy as np

from tertium.core.arrays import BoolArray, FloatArray, divide, nan_mean
from tertium.core.charts import DotChart
from tertium.core.errors import DataError
from tertium.core.resampling import draw_multinomial, make_rng, percentile_interval
from tertium.core.result import Column, Table, format_number
from tertium.core.segment import Segment
from tertium.data.human_data import HumanData, Texts
from tertium.evaluation.rows import find_scorable_by_all
from tertium.meta.agreement_results import TaskResult
from tertium.meta.aligned_scores import AlignedScores
from tertium.meta.metric_agreement import MetaEvaluation
from tertium.meta.tasks import Task
from tertium.metrics.base.metric import Metric

SAMPLE = 200  # translations of a set that are changed and scored again
MAX_POOLED = 1500  # cells whose pairs are all compared if no item has two translations
RESAMPLES = 1000  # bootstrap samples of items
CHART_WIDTH = 31  # characters


class NotApplicableError(DataError):
    """A diagnostic cannot be run on these data."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Diagnostic:
    """The result of one diagnostic: a table of rows x series, and a sentence that summarizes it.

    Charts show at least `axis_range` and mark `reference_value`. `draws` (resamples, rows, series)
    are bootstrap values; None if there is no sampling variation.
    """

    name: str
    question: str
    rows: tuple[str, ...]
    series: tuple[str, ...]
    values: FloatArray  # (rows, series)
    label: str
    reference_value: float
    summary: str = ""
    axis_range: tuple[float, float] = (np.nan, np.nan)
    notes: tuple[str, ...] = ()
    draws: FloatArray | None = None

    @cached_property
    def intervals(self) -> FloatArray:
        """The 95 % intervals of the values, (rows, series, 2); NaN without draws."""
        if self.draws is None:
            return np.full((*self.values.shape, 2), np.nan)
        low, high = percentile_interval(self.draws.reshape(len(self.draws), -1), 0.95)
        return np.stack([low, high], axis=-1).reshape(*self.values.shape, 2)

    def records(self) -> dict[str, Any]:
        """Return all values as plain values, for JSON."""
        return {
            "doubt": self.name,
            "question": self.question,
            "measure": self.label,
            "reading": self.summary,
            "rule": self.reference_value,
            "rows": [
                {
                    "row": row,
                    **dict(zip(self.series, own, strict=True)),
                    "intervals": dict(zip(self.series, bounds, strict=True)),
                }
                for row, own, bounds in zip(
                    self.rows, self.values.tolist(), self.intervals.tolist(), strict=True
                )
            ],
            "notes": list(self.notes),
        }

    def table(self, *, chart: bool = False) -> Table:
        """Return rows x series; `chart` adds a line with a letter at the value of each series."""
        columns = [Column("", self.rows.__getitem__)]
        for n, series in enumerate(self.series):
            name = f"{_letter(n)} {series}" if chart else series
            columns.append(self._series_column(name, n))
        between = ""
        if not np.isnan(self.intervals).all():
            between = "; in brackets 95 % bootstrap intervals over items"
        return Table(
            [*columns, *([self._chart_column()] if chart else [])],
            range(len(self.rows)),
            title=f"{self.name}: {self.question}",
            notes=[self.summary, f"values: {self.label}{between}", *self.notes],
        )

    def chart(self) -> DotChart:
        """Return rows x series with their intervals; a line marks the reference value."""
        return DotChart(
            title=self.question,
            caption=self.name,
            label=self.label,
            rows=self.rows,
            series=self.series,
            values=self.values,
            intervals=self.intervals,
            reference_value=self.reference_value,
            axis_range=self.axis_range,
        )

    def _series_column(self, name: str, series: int) -> Column:
        """Return values with their intervals, which have one decimal less."""
        values, intervals = self.values[:, series].tolist(), self.intervals[:, series]

        def text(row: int, decimals: int) -> str:
            value, (low, high) = format_number(values[row], decimals), intervals[row]
            if np.isnan(low):
                return value
            digits = max(decimals - 1, 0)
            return f"{value} [{low:z.{digits}f}, {high:z.{digits}f}]"

        return Column(name, values.__getitem__, 3, text=text, adjustable=True)

    def _chart_column(self) -> Column:
        """Return lines of dots with a letter at each value; `+` is an overlap, `|` the reference.

        The header is the scale.
        """
        limits = [*self.values.ravel(), *self.axis_range, self.reference_value]
        low, high = float(np.nanmin(limits)), float(np.nanmax(limits))
        if low == high:
            low, high = low - 1, high + 1

        def position(value: float) -> int:
            return round((value - low) / (high - low) * (CHART_WIDTH - 1))

        def draw(row: int) -> str:
            line = ["·"] * CHART_WIDTH
            line[position(self.reference_value)] = "|"
            for series, value in enumerate(self.values[row].tolist()):
                if value == value:
                    place = position(value)
                    line[place] = _letter(series) if line[place] in "·|" else "+"
            return "".join(line)

        return Column(f"{low:.2g}".ljust(CHART_WIDTH - len(f"{high:.2g}")) + f"{high:.2g}", draw)

    def row(self, name: str) -> FloatArray:
        """Return the values of one row, (series,)."""
        own: FloatArray = self.values[self.rows.index(name)]
        return own


def _letter(series: int) -> str:
    return ascii_lowercase[series % len(ascii_lowercase)]


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
        human, shares = self.aligned.human, self.human_data.segment_scores().cells()
        values = [[shares[s, i] for i in self.aligned.items] for s in self.aligned.systems]
        return np.where(np.isnan(human), values, human)

    @property
    def metric_names(self) -> tuple[str, ...]:
        return self.aligned.metrics

    @property
    def scorer_names(self) -> tuple[str, ...]:
        """The names of the metrics that can score new texts."""
        return tuple(metric.spec for metric in self.metrics)

    @cached_property
    def has_several_outputs(self) -> BoolArray:
        """Mask of the items with two or more judged translations, (items,)."""
        mask: BoolArray = (~np.isnan(self.human)).sum(axis=0) > 1
        return mask

    @cached_property
    def positions(self) -> dict[tuple[str, str], tuple[int, int]]:
        """The row and column of each judged translation, by system and item."""
        cells = np.argwhere(~np.isnan(self.human)).tolist()
        return {(self.aligned.systems[r], self.aligned.items[c]): (r, c) for r, c in cells}

    @cached_property
    def texts(self) -> Texts:
        """The judged translations that all metrics can score, by system and item."""
        texts = {cell: s for cell, s in self.human_data.texts().items() if cell in self.positions}
        return dict(compress(texts.items(), find_scorable_by_all([*texts.values()], self.metrics)))

    def sample(self, count: int = SAMPLE) -> list[tuple[tuple[str, str], Segment]]:
        """Sample translations by a hash of their names, independent of file order."""
        if not self.metrics:
            raise NotApplicableError("metrics must score texts: give them with -m")
        if not self.texts:
            raise NotApplicableError("the judgments have no texts")
        return sorted(self.texts.items(), key=lambda entry: self.hash_names(*entry[0]))[:count]

    def hash_names(self, *names: str) -> int:
        """Hash names together with the seed."""
        return zlib.crc32("\t".join([str(self.seed), *names]).encode())

    def score(self, segments: Sequence[Segment]) -> FloatArray:
        """Score segments with each metric, oriented (higher is better), (metrics, segments)."""
        return np.stack([metric.score(segments).oriented_segments for metric in self.metrics])

    def agreement(
        self,
        scores: Mapping[str, FloatArray],
        statistic: str,
        *,
        grouping: str = "",
        human: FloatArray | None = None,
    ) -> TaskResult:
        """Measure the agreement of score tables (systems, items) with human scores, with draws."""
        human_scores = self.human if human is None else human
        values = np.stack([*scores.values()])
        aligned = replace(
            self.aligned,
            metrics=tuple(scores),
            human=human_scores,
            human_systems=nan_mean(human_scores),
            scores=values,
            system_scores=nan_mean(values),
            comparisons=None,
        )
        task = Task(
            sets=(aligned.name,),
            statistic=statistic,
            grouping=grouping,  # type: ignore[arg-type]
            resamples=RESAMPLES,
            test="none",
        )
        return MetaEvaluation([aligned], seed=self.seed).run_task(task)

    def weights(self, items: Sequence[str]) -> FloatArray:
        """Return how often bootstrap samples of items contain each unit, (resamples, units)."""
        names, owner = np.unique(np.array(items), return_inverse=True)
        rng = make_rng(self.seed, len(names))
        return draw_multinomial(len(names), RESAMPLES, rng)[:, owner]

    @property
    def score_tables(self) -> dict[str, FloatArray]:
        """The scores of each metric, (systems, items)."""
        return dict(zip(self.metric_names, self.aligned.scores, strict=True))


def weighted_means(values: FloatArray, weights: FloatArray) -> FloatArray:
    """Average the known values (..., units) for each resample, (resamples, ...)."""
    is_known = ~np.isnan(values)
    total = np.moveaxis(np.where(is_known, values, 0.0) @ weights.T, -1, 0)
    return divide(total, np.moveaxis(is_known @ weights.T, -1, 0))


def weighted_correlations(scores: FloatArray, human: FloatArray, weights: FloatArray) -> FloatArray:
    """Correlate scores (metrics, units) and human scores (units,): (resamples, metrics)."""
    x, y = scores - scores.mean(axis=1, keepdims=True), human - human.mean()
    sums = weighted_means(np.stack([x, x * x, x * y]), weights)  # (resamples, 3, metrics)
    mean, second = weighted_means(np.stack([y, y * y]), weights).T[..., None]  # (resamples, 1)
    covariance = sums[:, 2] - sums[:, 0] * mean
    spread = (sums[:, 1] - sums[:, 0] ** 2) * (second - mean**2)
    return divide(covariance, np.sqrt(np.maximum(spread, 0.0)))


def merge(diagnostics: Sequence[tuple[str, Diagnostic]]) -> Diagnostic:
    """Merge a diagnostic of several sets: the mean if rows are the same, else all rows by set."""
    first = diagnostics[0][1]
    if len(diagnostics) == 1:
        return first
    all_values = [diagnostic.values for _, diagnostic in diagnostics]
    parts = [diagnostic.draws for _, diagnostic in diagnostics if diagnostic.draws is not None]
    if any(diagnostic.rows != first.rows for _, diagnostic in diagnostics):
        rows = tuple(f"{name} {row}" for name, diagnostic in diagnostics for row in diagnostic.rows)
        draws = np.concatenate(parts, axis=1) if parts else None
        questions = " ".join(dict.fromkeys(diagnostic.question for _, diagnostic in diagnostics))
        values = np.concatenate(all_values)
        return replace(first, question=questions, rows=rows, values=values, draws=draws)
    stacked = np.stack(all_values, axis=-1)
    drawn = nan_mean(np.stack(parts, axis=-1)) if parts else None  # sets are independent
    note = f"mean over {len(diagnostics)} sets: {', '.join(name for name, _ in diagnostics)}"
    return replace(first, values=nan_mean(stacked), draws=drawn, notes=(*first.notes, note))
