"""The figures of a report: which charts it shows, in which order, with captions."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

import numpy as np

from tertium.evaluation.comparison import Comparison
from tertium.evaluation.evaluation import Evaluation
from tertium.meta.aligned_scores import AlignedScores
from tertium.output.charts.row_charts import interval_chart, ridge_chart
from tertium.output.charts.scatter import (
    Axis,
    describe_correlation,
    find_outliers,
    length_chart,
    max_cell_count,
    pearson,
    scatter_chart,
)
from tertium.output.markup import Markup, element, join
from tertium.output.page.explanations import heat_map
from tertium.output.page.translation_grid import TranslationGrid

MAX_METRIC_PAIRS = 9
MAX_SYSTEM_FIGURES = 24
MAX_SYSTEMS, MIN_SEGMENTS = 25, 5  # of distribution charts


def all_figures(
    grid: TranslationGrid,
    evaluation: Evaluation | None = None,
    aligned_scores: Sequence[AlignedScores] = (),
) -> Markup:
    """Return all figures that there is data for."""
    parts = [
        ranking_figures(evaluation) if evaluation else Markup(""),
        distribution_figures(grid),
        human_figures(grid),
        system_figures(aligned_scores),
        metric_pair_figures(grid),
        length_figures(grid),
    ]
    return join(part for part in parts if part)


def ranking_figures(evaluation: Evaluation) -> Markup:
    """Return the ranking of systems under each metric."""
    comparison = evaluation if isinstance(evaluation, Comparison) else None
    names = evaluation.names
    figures = []
    for metric in evaluation.metrics:
        scores = evaluation.metric_scores(metric)
        bounds = [evaluation.intervals.get(s, {}).get(metric) for s in evaluation.systems]
        intervals = np.array([(b.low, b.high) if b else (np.nan, np.nan) for b in bounds])
        groups = comparison.clusters[metric] if comparison else [0] * len(scores)
        chart = interval_chart(
            evaluation.systems,
            np.array([s.system for s in scores]),
            intervals,
            groups,
            title=names[metric],
            higher_is_better=scores[0].higher_is_better,
            decimals=scores[0].decimals,
        )
        figures.append(captioned_figure(chart, names[metric]))
    clusters = " Bands are clusters, significantly better than all below." if comparison else ""
    lines = " Lines are 95 % bootstrap intervals." if evaluation.intervals else ""
    if len(evaluation.systems) == 1:
        return figure_group("Score of the system", lines.strip(), figures)
    return figure_group("Ranking of systems", f"Best first.{lines}{clusters}", figures)


def distribution_figures(grid: TranslationGrid) -> Markup:
    """Return the distribution of segment scores by system and metric."""
    figures = []
    counts = np.bincount(grid.system_indices, minlength=len(grid.systems))
    largest = [int(n) for n in np.argsort(-counts, kind="stable")[:MAX_SYSTEMS]]
    for column in grid.columns:
        samples = [column.values[grid.system_indices == s] for s in range(len(grid.systems))]
        selected = [n for n in sorted(largest) if np.isfinite(samples[n]).sum() >= MIN_SEGMENTS]
        if selected:
            chart = ridge_chart(
                [grid.systems[n] for n in selected],
                [samples[n] for n in selected],
                title=column.name,
                higher_is_better=column.higher_is_better,
            )
            figures.append(captioned_figure(chart, column.name))
    note = (
        "The dot is the median, the line the interquartile range. "
        "Peaks more than twice as high as the median peak are cut off."
    )
    if (counts < MIN_SEGMENTS).any() or len(counts) > MAX_SYSTEMS:
        note += f" At most {MAX_SYSTEMS} systems with at least {MIN_SEGMENTS} segments are shown."
    return figure_group("Distributions", note, figures)


def human_figures(grid: TranslationGrid) -> Markup:
    """Return scatter plots of each metric against human scores."""
    if grid.human is None or not np.isfinite(grid.human).any():
        return Markup("")
    human_axis = Axis(name="human score", values=grid.human)
    figures = [
        translations_figure(
            grid, human_axis, c, f"{c.name}: {describe_correlation(grid.human, c.values)}", fit=True
        )
        for c in grid.columns
    ]
    note = "The line is the least-squares fit."
    return figure_group("Metrics against human scores", f"{_point_note(figures)} {note}", figures)


def system_figures(sets: Sequence[AlignedScores]) -> Markup:
    """Return scatter plots of system-level metric scores against human scores."""
    figures: list[Markup] = []
    for dataset in sets:
        has_score = np.isfinite(dataset.human_systems)
        for name, scores in zip(dataset.metrics, dataset.system_scores, strict=True):
            if (has_score & np.isfinite(scores)).sum() < 3 or len(figures) >= MAX_SYSTEM_FIGURES:
                continue
            x = Axis(name="human system score", values=dataset.human_systems)
            chart = scatter_chart(
                x, Axis(name=name, values=scores), fit=True, names=dataset.systems
            )
            correlation = describe_correlation(dataset.human_systems, scores)
            figures.append(captioned_figure(chart, f"{dataset.name}, {name}: {correlation}"))
    return figure_group(
        "System level: metrics against human scores", "Each dot is a system.", figures
    )


def metric_pair_figures(grid: TranslationGrid) -> Markup:
    """Return the correlations of all metric pairs and charts of the least correlated ones."""
    columns = grid.columns
    if len(columns) < 2 or not len(grid):
        return Markup("")
    table = np.array([[abs(pearson(a.values, b.values)) for b in columns] for a in columns])
    names = [c.name for c in columns]
    matrix = heat_map(names, names, table, caption="Correlation of segment scores, |r|")
    pairs = sorted(combinations(range(len(columns)), 2), key=lambda pair: table[pair])
    figures = []
    for a, b in ((columns[i], columns[j]) for i, j in pairs[:MAX_METRIC_PAIRS]):
        caption = f"{a.name}, {b.name}: {describe_correlation(a.values, b.values)}"
        figures.append(translations_figure(grid, a, b, caption))
    hidden = len(pairs) - MAX_METRIC_PAIRS
    note = ""
    if hidden > 0:
        note = f" The {MAX_METRIC_PAIRS} least correlated of {len(pairs)} pairs are shown."
    return figure_group(
        "Metrics against each other", f"{_point_note(figures)}{note}", figures, matrix
    )


def length_figures(grid: TranslationGrid) -> Markup:
    """Return each metric against translation length."""
    if not any(grid.texts):
        return Markup("")
    length = Axis(name=f"translation length ({grid.unit}s)", values=grid.lengths)
    figures = []
    for column in grid.columns:
        chart = length_chart(length, column, label=grid.label)
        figures.append(_figure_with_outliers(grid, chart, column.name, length, column))
    note = "The line is the median of translations of similar length, the band the quartiles."
    return figure_group("Score by length", f"{_point_note(figures)} {note}", figures)


def translations_figure(
    grid: TranslationGrid, x: Axis, y: Axis, caption: str, *, fit: bool = False
) -> Markup:
    """Return a scatter plot of all translations with links to outliers."""
    chart = scatter_chart(x, y, fit=fit, label=grid.label)
    return _figure_with_outliers(grid, chart, caption, x, y)


def _figure_with_outliers(
    grid: TranslationGrid, chart: Markup, caption: str, x: Axis, y: Axis
) -> Markup:
    """Return a figure with links to outliers, or with the count of the darkest shade."""
    darkest = max_cell_count(x.values, y.values)
    if darkest:
        return captioned_figure(chart, f"{caption}; darkest shade: {darkest:,}")
    links = [
        element(
            "a", element("bdi", grid.label(row)), data_row=int(row), href=grid.segment_link(row)
        )
        for row in find_outliers(x.values, y.values)
    ]
    outliers = element("p", "Outliers: ", join(links, "; "), class_="note outer") if links else ""
    return captioned_figure(chart, caption, outliers)


def _point_note(figures: Sequence[Markup]) -> str:
    shaded = sum('class="shade"' in figure for figure in figures)
    dot, shade = "Each dot is a translation.", "Shades show the number of translations."
    return " ".join([dot] * (shaded < len(figures)) + [shade] * (shaded > 0))


def captioned_figure(chart: Markup, caption: str, below: str = "") -> Markup:
    return element("figure", element("figcaption", caption), chart, below)


def figure_group(title: str, note: str, figures: Sequence[Markup], before: str = "") -> Markup:
    """Return figures under a heading; empty without figures."""
    if not figures:
        return Markup("")
    name = title.lower().replace(" ", "-")
    return element(
        "section",
        element("h3", title, id=name),
        element("p", note, class_="note") if note else "",
        before,
        element("div", *figures, class_="figures"),
        aria_labelledby=name,
    )
