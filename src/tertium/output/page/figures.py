"""The figures of a report: which charts it shows, in which order, with captions."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import combinations
from typing import Literal

import numpy as np

from tertium.core.charts import Axis, Chart, HeatMap, IntervalChart, RidgeChart, ScatterChart
from tertium.evaluation.comparison import Comparison
from tertium.evaluation.evaluation import Evaluation
from tertium.meta.aligned_scores import AlignedScores
from tertium.output.charts.chart_statistics import (
    both_finite,
    describe_correlation,
    find_outliers,
    max_cell_count,
    pearson,
)
from tertium.output.charts.draw import draw
from tertium.output.markup import Markup, element, join
from tertium.output.page.explanations import heat_map_html
from tertium.output.page.translation_grid import TranslationGrid

MAX_METRIC_PAIRS = 9
MAX_SYSTEM_FIGURES = 24
MIN_JUDGED_SYSTEMS = 3  # of a scatter plot of systems
MAX_SYSTEMS = 25  # of a distribution chart
MIN_SEGMENTS = 5  # of a distribution


def all_figures(
    grid: TranslationGrid,
    evaluation: Evaluation | None = None,
    aligned_scores: Sequence[AlignedScores] = (),
) -> Markup:
    """Return all figures that there is data for."""
    groups = [
        distribution_figures(grid),
        human_figures(grid),
        system_figures(aligned_scores),
        metric_pair_figures(grid),
        length_figures(grid),
    ]
    if evaluation:
        groups.insert(0, ranking_figures(evaluation))
    return join(groups)


def ranking_figures(evaluation: Evaluation) -> Markup:
    """Return the ranking of systems under each metric."""
    clusters = evaluation.clusters if isinstance(evaluation, Comparison) else {}
    charts = []
    for metric in evaluation.metrics:
        scores = evaluation.metric_scores(metric)
        intervals = []
        for system in evaluation.systems:
            interval = evaluation.intervals.get(system, {}).get(metric)
            intervals.append((interval.low, interval.high) if interval else (np.nan, np.nan))
        name = evaluation.names[metric]
        chart = IntervalChart(
            title=f"Systems by {name}",
            caption=name,
            names=evaluation.systems,
            values=np.array([own.system for own in scores]),
            intervals=np.array(intervals),
            clusters=clusters.get(metric, [0] * len(scores)),
            higher_is_better=scores[0].higher_is_better,
            decimals=scores[0].decimals,
        )
        charts.append(chart)
    lines = " Lines are 95 % bootstrap intervals." if evaluation.intervals else ""
    if len(evaluation.systems) == 1:
        return figure_group("Score of the system", lines.strip(), map(figure, charts))
    bands = " Bands are clusters, significantly better than all below." if clusters else ""
    return figure_group("Ranking of systems", f"Best first.{lines}{bands}", map(figure, charts))


def distribution_figures(grid: TranslationGrid) -> Markup:
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
    return figure_group("Distributions", note, map(figure, charts))


def human_figures(grid: TranslationGrid) -> Markup:
    """Return scatter plots of each metric against human scores."""
    if grid.human is None or not np.isfinite(grid.human).any():
        return Markup("")
    human = Axis(name="human score", values=grid.human)
    charts = [_correlation_chart(human, column, column.name, "fit") for column in grid.columns]
    note = "The line is the least-squares fit."
    return _translation_figures("Metrics against human scores", note, charts, grid)


def system_figures(sets: Sequence[AlignedScores]) -> Markup:
    """Return scatter plots of system-level metric scores against human scores."""
    charts = []
    for dataset in sets:
        human = Axis(name="human system score", values=dataset.human_systems)
        for metric, scores in zip(dataset.metrics, dataset.system_scores, strict=True):
            y = Axis(name=metric, values=scores)
            if both_finite(human, y).sum() >= MIN_JUDGED_SYSTEMS:
                chart = _correlation_chart(human, y, f"{dataset.name}, {metric}", "fit")
                charts.append(replace(chart, names=dataset.systems))
    title = "System level: metrics against human scores"
    return figure_group(title, "Each dot is a system.", map(figure, charts[:MAX_SYSTEM_FIGURES]))


def metric_pair_figures(grid: TranslationGrid) -> Markup:
    """Return the correlations of all metric pairs and charts of the least correlated ones."""
    columns = grid.columns
    if len(columns) < 2 or not len(grid):
        return Markup("")
    names = [column.name for column in columns]
    table = np.array([[abs(pearson(a, b)) for b in columns] for a in columns])
    title = "Correlation of segment scores, |r|"
    matrix = heat_map_html(HeatMap(title=title, rows=names, columns=names, values=table))
    all_pairs = combinations(range(len(columns)), 2)
    pairs = sorted(all_pairs, key=lambda pair: table[pair])
    charts = []
    for i, j in pairs[:MAX_METRIC_PAIRS]:
        name = f"{names[i]}, {names[j]}"
        charts.append(_correlation_chart(columns[i], columns[j], name))
    note = ""
    if len(pairs) > MAX_METRIC_PAIRS:
        note = f"The {MAX_METRIC_PAIRS} least correlated of {len(pairs)} pairs are shown."
    return _translation_figures("Metrics against each other", note, charts, grid, matrix)


def length_figures(grid: TranslationGrid) -> Markup:
    """Return each metric against translation length."""
    if not any(grid.texts):
        return Markup("")
    length = Axis(name=f"translation length ({grid.unit}s)", values=grid.lengths)
    charts = []
    for column in grid.columns:
        title = f"{column.name} against length"
        chart = ScatterChart(
            title=title, caption=column.name, x=length, y=column, trend="quartiles"
        )
        charts.append(chart)
    note = "The line is the median of translations of similar length, the band the quartiles."
    return _translation_figures("Score by length", note, charts, grid)


def _correlation_chart(
    x: Axis, y: Axis, name: str, trend: Literal["fit"] | None = None
) -> ScatterChart:
    caption = f"{name}: {describe_correlation(x, y)}"
    return ScatterChart(x=x, y=y, caption=caption, trend=trend)


def _translation_figures(
    title: str, note: str, charts: Sequence[ScatterChart], grid: TranslationGrid, before: str = ""
) -> Markup:
    """Return scatter plots of translations, and what their dots or shades mean."""
    figures = [_translation_figure(chart, grid) for chart in charts]
    has_shades = ['class="shade"' in text for text in figures]
    notes = [] if all(has_shades) else ["Each dot is a translation."]
    if any(has_shades):
        notes.append("Shades show the number of translations.")
    if note:
        notes.append(note)
    return figure_group(title, " ".join(notes), figures, before)


def _translation_figure(chart: ScatterChart, grid: TranslationGrid) -> Markup:
    """Return a figure with links to outliers, or with the count of the darkest shade."""
    darkest = max_cell_count(chart.x, chart.y)
    if darkest:
        caption = f"{chart.caption}; darkest shade: {darkest:,}"
        return figure(replace(chart, caption=caption))
    links = []
    for row in find_outliers(chart.x, chart.y):
        label = element("bdi", grid.label(row))
        link = element("a", label, data_row=row, href=grid.segment_link(row))
        links.append(link)
    chart = replace(chart, label=grid.label)
    if not links:
        return figure(chart)
    outliers = element("p", "Outliers: ", join(links, "; "), class_="note outer")
    return figure(chart, outliers)


def figure(chart: Chart, below: str = "") -> Markup:
    """Return a chart with its caption."""
    return element("figure", element("figcaption", chart.caption), draw(chart), below)


def figure_row(figures: Iterable[Markup]) -> Markup:
    return element("div", *figures, class_="figures")


def figure_group(title: str, note: str, figures: Iterable[Markup], before: str = "") -> Markup:
    """Return figures under a heading; empty without figures."""
    contents = [*figures]
    if not contents:
        return Markup("")
    name = title.lower().replace(" ", "-")
    return element(
        "section",
        element("h3", title, id=name),
        element("p", note, class_="note") if note else "",
        before,
        figure_row(contents),
        aria_labelledby=name,
    )
