"""Charts of the translations of a report: which it has, in which order, with notes."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import Any

import numpy as np

from tertium.core.charts import Axis, HeatMap, RidgeChart, ScatterChart
from tertium.core.result import Section
from tertium.meta.aligned_scores import AlignedScores
from tertium.meta.correlation import describe_correlation
from tertium.output.charts.chart_statistics import both_finite, pearson
from tertium.output.page.translation_grid import TranslationGrid
from tertium.studies.scatter_charts import make_scatter_charts

MAX_METRIC_PAIRS = 9
MAX_SYSTEM_CHARTS = 24
MIN_JUDGED_SYSTEMS = 3  # of a scatter plot of systems
MAX_SYSTEMS = 25  # of a distribution chart
MIN_SEGMENTS = 5  # of a distribution


def chart_translations(grid: TranslationGrid) -> list[Section]:
    """Return a section for each kind of chart that there is data for."""
    if not len(grid):
        return []
    sections = [
        _chart_distributions(grid),
        _chart_human_scores(grid),
        _chart_metric_pairs(grid),
    ]
    return [section for section in sections if section is not None]


def chart_systems(sets: Sequence[AlignedScores], negated: frozenset[str]) -> list[Section]:
    """Return scatter plots of system-level metric scores against human scores, if any."""
    charts = make_scatter_charts(sets, level="system", negated=negated)
    charts = [c for c in charts if both_finite(c.x, c.y).sum() >= MIN_JUDGED_SYSTEMS]
    title = "System level: metrics against human scores"
    contents = ["Each dot is a system.", *charts[:MAX_SYSTEM_CHARTS]]
    return [Section(title, contents)] if charts else []


def _chart_distributions(grid: TranslationGrid) -> Section | None:
    """Return the distribution of segment scores by system and metric."""
    counts = np.bincount(grid.system_indices, minlength=len(grid.systems))
    largest = sorted(np.argsort(-counts, kind="stable")[:MAX_SYSTEMS])
    charts = []
    for column in grid.columns:
        samples = {}
        for system in largest:
            values = column.values[grid.system_indices == system]
            if np.isfinite(values).sum() >= MIN_SEGMENTS:
                samples[grid.systems[system]] = values
        if samples:
            chart = RidgeChart(
                title=f"Distribution of {column.name}",
                caption=column.name,
                names=list(samples),
                samples=list(samples.values()),
                higher_is_better=column.higher_is_better,
            )
            charts.append(chart)
    note = (
        "The dot is the median, the line the interquartile range. "
        "Peaks more than twice as high as the median peak are cut off."
    )
    if (counts < MIN_SEGMENTS).any() or len(counts) > MAX_SYSTEMS:
        note += f" At most {MAX_SYSTEMS} systems with at least {MIN_SEGMENTS} segments are shown."
    return Section("Distributions", [note, *charts]) if charts else None


def _chart_human_scores(grid: TranslationGrid) -> Section | None:
    """Return scatter plots of each metric against human scores."""
    if grid.human is None or not np.isfinite(grid.human).any():
        return None
    human = Axis(name="human score", values=grid.human)
    note = "Each dot is a translation. The line is the least-squares fit."
    charts = [
        _correlation_chart(grid, human, own, own.name, has_trend=True) for own in grid.columns
    ]
    return Section("Metrics against human scores", [note, *charts])


def _chart_metric_pairs(grid: TranslationGrid) -> Section | None:
    """Return the correlations of all metric pairs and charts of the least correlated ones."""
    columns = grid.columns
    if len(columns) < 2:
        return None
    names = [column.name for column in columns]
    table = np.array([[abs(pearson(a, b)) for b in columns] for a in columns])
    title = "Correlation of segment scores, |r|"
    contents: list[Any] = [HeatMap(title=title, rows=names, columns=names, values=table)]
    all_pairs = combinations(range(len(columns)), 2)
    pairs = sorted(all_pairs, key=lambda pair: table[pair])
    if len(pairs) > MAX_METRIC_PAIRS:
        note = f"The {MAX_METRIC_PAIRS} least correlated of {len(pairs)} pairs are shown."
        contents.append(note)
    for i, j in pairs[:MAX_METRIC_PAIRS]:
        name = f"{names[i]}, {names[j]}"
        contents.append(_correlation_chart(grid, columns[i], columns[j], name))
    return Section("Metrics against each other", contents)


def _correlation_chart(
    grid: TranslationGrid, x: Axis, y: Axis, name: str, *, has_trend: bool = False
) -> ScatterChart:
    caption = f"{name}: {describe_correlation(x.values, y.values)}"
    return ScatterChart(x=x, y=y, caption=caption, has_trend=has_trend, label=grid.label)
