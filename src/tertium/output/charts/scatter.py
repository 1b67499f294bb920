"""Scatter plots: one dot per translation, or a density map if there are many.

They show outliers, ceilings and clusters of systems that a correlation coefficient hides.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from tertium.arrays import FloatArray, IntArray
from tertium.atomic import check_writable
from tertium.errors import DataError, UsageError
from tertium.meta.aligned_scores import AlignedScores
from tertium.meta.correlation import correlate
from tertium.output.charts.axes import (
    MAX_POINTS_WITH_FULL_RANGE,
    PlotArea,
    axis_limits,
    circle,
    make_plot_area,
    svg_chart,
)
from tertium.output.charts.svg_file import CaptionedChart, write_svg
from tertium.output.markup import Markup, element, format_coordinate

MAX_DOTS = MAX_POINTS_WITH_FULL_RANGE  # more are drawn as a density map
CELLS = 34  # of the density map, per axis
SHADE_COUNT = 5
MIN_OPACITY = 0.45  # a contrast of 2 with the background
LENGTH_BUCKETS = 8
MAX_OUTLIERS = 5


@dataclass(frozen=True, kw_only=True, eq=False)
class Axis:
    """The name of an axis and its value for each translation."""

    name: str
    values: FloatArray


def scatter_chart(
    x: Axis,
    y: Axis,
    *,
    fit: bool = False,
    names: Sequence[str] = (),
    label: Callable[[int], str] = "row {}".format,
) -> Markup:
    """Draw a scatter plot; `fit` adds the least-squares line.

    Dots have their entry of `names` as tooltip. Without `names`, `label` gives the tooltip of a
    row, and dots carry the row number so that a page can show the translation.
    """
    is_finite = np.isfinite(x.values) & np.isfinite(y.values)
    a, b = x.values[is_finite], y.values[is_finite]
    plot = make_plot_area(axis_limits(a), axis_limits(b))
    parts = [*plot.x_axis(x.name), *plot.y_axis(y.name)]
    rows = np.flatnonzero(is_finite)
    if names:
        cells = zip(a, b, rows, strict=True)
        dots = [circle(plot.x(float(x)), plot.y(float(y)), 4.5, names[int(n)]) for x, y, n in cells]
        parts.append(element("g", *dots, class_="dots"))
    else:
        parts += _translations(a, b, rows, plot, label)
    if fit:
        parts += _fit(a, b, plot)
    title = f"{y.name} against {x.name}"
    return svg_chart(plot.width, plot.height, title, describe_correlation(a, b), parts)


def length_chart(
    length: Axis, score: Axis, *, label: Callable[[int], str] = "row {}".format
) -> Markup:
    """Draw scores against translation length, with median and quartiles per length bucket."""
    is_finite = np.isfinite(score.values)
    lengths, values = length.values[is_finite], score.values[is_finite]
    plot = make_plot_area(axis_limits(lengths), axis_limits(values))
    rows = np.flatnonzero(is_finite)
    parts = [*plot.x_axis(length.name), *plot.y_axis(score.name)]
    parts += _translations(lengths, values, rows, plot, label)
    middles, quarters = length_buckets(lengths, values)
    if middles:
        lower, line, upper = ([*zip(middles, q, strict=True)] for q in zip(*quarters, strict=True))
        band = _points([*upper, *reversed(lower)], plot)
        parts.append(element("polygon", points=band, class_="spread"))
        parts.append(element("polyline", points=_points(line, plot), class_="fit"))
    title = f"{score.name} against length"
    return svg_chart(plot.width, plot.height, title, describe_correlation(lengths, values), parts)


def pearson(a: FloatArray, b: FloatArray) -> float:
    """Return Pearson's r over pairs of finite values; NaN if undefined.

    >>> pearson(np.array([1.0, 2, np.nan]), np.array([2.0, 4, 5]))
    1.0
    """
    return float(correlate(a, b, np.isfinite(a) & np.isfinite(b)))


def describe_correlation(a: FloatArray, b: FloatArray) -> str:
    """Return Pearson's r and the number of pairs, as text."""
    r, n = pearson(a, b), int((np.isfinite(a) & np.isfinite(b)).sum())
    return f"r = {r:z.3f}, n = {n:,}" if r == r else f"n = {n:,}"


def max_cell_count(x: FloatArray, y: FloatArray) -> int:
    """Return the translations in the densest cell of the density map; 0 if dots are drawn."""
    is_finite = np.isfinite(x) & np.isfinite(y)
    if is_finite.sum() <= MAX_DOTS:
        return 0
    counts, _, _ = _count_cells(
        x[is_finite], y[is_finite], axis_limits(x[is_finite]), axis_limits(y[is_finite])
    )
    return int(counts.max())


def find_outliers(x: FloatArray, y: FloatArray) -> list[int]:
    """Return the rows with the largest Mahalanobis distance from the mean.

    >>> x = np.array([1.0, 2, 3, 4, 5, 6, 7])
    >>> find_outliers(x, np.array([1.0, 2, 3, 9, 5, 6, 7]))[0]
    3
    """
    rows = np.flatnonzero(np.isfinite(x) & np.isfinite(y))
    if len(rows) < 2:
        return [int(row) for row in rows]
    places = np.stack([x[rows], y[rows]])  # (2, rows)
    places = places - places.mean(axis=1, keepdims=True)
    places /= np.maximum(places.std(axis=1, keepdims=True), 1e-12)  # an axis may be constant
    inverse = np.linalg.pinv(places @ places.T / len(rows))
    distances = np.einsum("in,ij,jn->n", places, inverse, places)
    return [int(rows[n]) for n in np.argsort(-distances, kind="stable")[:MAX_OUTLIERS]]


def length_buckets(lengths: FloatArray, values: FloatArray) -> tuple[list[float], list[FloatArray]]:
    """Return the median length and the quartiles of the values of each length bucket."""
    if len(lengths) < 2 * LENGTH_BUCKETS:
        return [], []
    edges = np.unique(np.quantile(lengths, np.linspace(0, 1, LENGTH_BUCKETS + 1)))
    place = np.clip(np.searchsorted(edges, lengths, side="right") - 1, 0, max(len(edges) - 2, 0))
    groups = [place == n for n in range(max(len(edges) - 1, 1))]
    large_enough = [mask for mask in groups if mask.sum() >= 3]
    middles = [float(np.median(lengths[mask])) for mask in large_enough]
    return middles, [np.percentile(values[mask], [25, 50, 75]) for mask in large_enough]


def _translations(
    a: FloatArray, b: FloatArray, rows: IntArray, plot: PlotArea, label: Callable[[int], str]
) -> list[Markup]:
    """Return a dot per translation, or a density map if there are many."""
    if len(a) > MAX_DOTS:
        return _shades(a, b, plot)
    dots = []
    for x, y, row in zip(a, b, rows, strict=True):
        title = f"{label(int(row))}: {x:.3g} / {y:.3g}"
        dots.append(circle(plot.x(float(x)), plot.y(float(y)), 3, title, data_row=int(row)))
    return [element("g", *dots, class_="dots")]


def _count_cells(
    a: FloatArray, b: FloatArray, x: tuple[float, float], y: tuple[float, float]
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Count translations per cell; values outside the range count in the border cells."""
    counts, xs, ys = np.histogram2d(np.clip(a, *x), np.clip(b, *y), bins=CELLS, range=[x, y])
    return counts, xs, ys


def _shades(a: FloatArray, b: FloatArray, plot: PlotArea) -> list[Markup]:
    """Return a density map with one path per shade."""
    x, y = (plot.x.low, plot.x.high), (plot.y.low, plot.y.high)
    counts, xs, ys = _count_cells(a, b, x, y)
    wide = plot.x(float(xs[1])) - plot.x(float(xs[0]))
    high = plot.y(float(ys[0])) - plot.y(float(ys[1]))
    # log scale: a cell of one stays visible next to a cell of a thousand
    shade = np.ceil(SHADE_COUNT * np.log1p(counts) / np.log1p(counts.max())).astype(int)
    width, height = format_coordinate(wide), format_coordinate(high)
    parts = []
    for step in range(1, SHADE_COUNT + 1):
        cells = "".join(
            f"M{format_coordinate(plot.x(float(xs[i])))} "
            f"{format_coordinate(plot.y(float(ys[j + 1])))}h{width}v{height}h-{width}z"
            for i, j in zip(*np.nonzero(shade == step), strict=True)
        )
        opacity = MIN_OPACITY + (1 - MIN_OPACITY) * (step - 1) / (SHADE_COUNT - 1)
        if cells:
            parts.append(element("path", d=cells, class_="shade", opacity=opacity))
    return parts


def _fit(a: FloatArray, b: FloatArray, plot: PlotArea) -> list[Markup]:
    """Return the least-squares line, clipped to the plot."""
    if pearson(a, b) != pearson(a, b):
        return []
    slope, start = (float(v) for v in np.polyfit(a, b, 1))
    left, right = max(float(a.min()), plot.x.low), min(float(a.max()), plot.x.high)
    if slope:
        below, above = sorted((edge - start) / slope for edge in (plot.y.low, plot.y.high))
        left, right = max(left, below), min(right, above)
    if left >= right:
        return []
    ends = [(x, start + slope * x) for x in (left, right)]
    return [element("polyline", points=_points(ends, plot), class_="fit")]


def _points(places: list[tuple[float, float]], plot: PlotArea) -> str:
    low, high = plot.y.low, plot.y.high
    return " ".join(
        f"{format_coordinate(plot.x(x))},{format_coordinate(plot.y(min(max(y, low), high)))}"
        for x, y in places
    )


MAX_PANELS = 120  # in one file


def check_plot_file(path: str | Path) -> None:
    """Raise an error early if the file is not .svg or cannot be written."""
    if Path(path).suffix.lower() != ".svg":
        raise UsageError(f"{path}: plots are written as SVG; expected a name that ends in .svg")
    check_writable(path)


def draw_scatter_plots(
    sets: Sequence[AlignedScores], *, level: str = "segment", negated: Collection[str] = ()
) -> list[list[CaptionedChart]]:
    """Return one row of captioned scatter plots per metric, with a column per dataset."""
    metrics = list(dict.fromkeys(m for dataset in sets for m in dataset.metrics))
    if not metrics or not sets:
        raise DataError("nothing to plot: no metrics or no datasets")
    if len(metrics) * len(sets) > MAX_PANELS:
        raise UsageError(
            f"{len(metrics)} metrics x {len(sets)} datasets: too many panels for one figure "
            f"(at most {MAX_PANELS}); select fewer"
        )
    names = {metric: f"−{metric}" if metric in negated else metric for metric in metrics}
    return [[_draw_panel(dataset, m, names[m], level) for dataset in sets] for m in metrics]


def write_scatter_plots(path: str | Path, sets: Sequence[AlignedScores], **options: Any) -> None:
    """Draw and write scatter plots; takes the options of `draw_scatter_plots`."""
    check_plot_file(path)
    write_svg(path, draw_scatter_plots(sets, **options))


def _draw_panel(dataset: AlignedScores, metric: str, title: str, level: str) -> CaptionedChart:
    blank = np.zeros(0)
    if metric not in dataset.metrics:
        empty = scatter_chart(Axis(name="human", values=blank), Axis(name=title, values=blank))
        return f"{dataset.name}: not scored", empty
    number = dataset.metrics.index(metric)
    x, y = dataset.human, dataset.scores[number]
    names: Sequence[str] = ()
    if level == "system":
        x, y, names = dataset.human_systems, dataset.system_scores[number], dataset.systems
    x, y = x.ravel(), y.ravel()
    chart = scatter_chart(
        Axis(name="human", values=x), Axis(name=title, values=y), fit=True, names=names
    )
    return f"{dataset.name}  {describe_correlation(x, y)}", chart
