"""Scatter plots: one dot per translation, or a density map if there are many.

They show outliers, ceilings and clusters of systems that a correlation coefficient hides.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tertium.arrays import FloatArray, IntArray
from tertium.core.charts import ScatterChart
from tertium.meta.correlation import correlate
from tertium.output.charts.axes import (
    MAX_POINTS_WITH_FULL_RANGE,
    PlotArea,
    axis_limits,
    circle,
    format_place,
    make_plot_area,
    svg_chart,
)
from tertium.output.markup import Markup, element, format_coordinate

MAX_DOTS = MAX_POINTS_WITH_FULL_RANGE  # more are drawn as a density map
CELLS = 34  # of the density map, per axis
SHADE_COUNT = 5
MIN_OPACITY = 0.45  # a contrast of 2 with the background
LENGTH_BUCKETS = 8
MAX_OUTLIERS = 5


def draw_scatter(chart: ScatterChart) -> Markup:
    """Draw the points with a finite x and y, and the trend."""
    rows, a, b = _finite_points(chart.x.values, chart.y.values)
    plot = make_plot_area(axis_limits(a), axis_limits(b))
    parts = [*plot.x_axis(chart.x.name), *plot.y_axis(chart.y.name)]
    if chart.names or len(a) <= MAX_DOTS:
        dots = []
        for row, x, y in zip(rows, a, b, strict=True):
            place = plot.x(x), plot.y(y)
            if chart.names:
                dots.append(circle(*place, 4.5, chart.names[row]))
            else:
                title = f"{chart.label(int(row))}: {x:.3g} / {y:.3g}"
                dots.append(circle(*place, 3, title, data_row=int(row)))
        parts.append(element("g", *dots, class_="dots"))
    else:
        parts += _shades(a, b, plot)
    if chart.trend == "fit":
        parts += _fit_line(a, b, plot)
    elif chart.trend == "quartiles":
        parts += _quartile_band(a, b, plot)
    title = chart.title or f"{chart.y.name} against {chart.x.name}"
    return svg_chart(plot.width, plot.height, title, describe_correlation(a, b), parts)


def _finite_points(x: FloatArray, y: FloatArray) -> tuple[IntArray, FloatArray, FloatArray]:
    """Return the rows in which both values are finite, with these values."""
    rows = np.flatnonzero(np.isfinite(x) & np.isfinite(y))
    return rows, x[rows], y[rows]


def pearson(a: FloatArray, b: FloatArray) -> float:
    """Return Pearson's r over pairs of finite values; NaN if undefined.

    >>> pearson(np.array([1.0, 2, np.nan]), np.array([2.0, 4, 5]))
    1.0
    """
    return float(correlate(a, b, np.isfinite(a) & np.isfinite(b)))


def describe_correlation(a: FloatArray, b: FloatArray) -> str:
    """Return Pearson's r and the number of pairs, as text."""
    r = pearson(a, b)
    count = f"n = {len(_finite_points(a, b)[0]):,}"
    return f"r = {r:z.3f}, {count}" if r == r else count


def max_cell_count(x: FloatArray, y: FloatArray) -> int:
    """Return the translations in the densest cell of the density map; 0 if dots are drawn."""
    rows, a, b = _finite_points(x, y)
    return int(_count_cells(a, b)[0].max()) if len(rows) > MAX_DOTS else 0


def find_outliers(x: FloatArray, y: FloatArray) -> list[int]:
    """Return the rows with the largest Mahalanobis distance from the mean.

    >>> x = np.array([1.0, 2, 3, 4, 5, 6, 7])
    >>> find_outliers(x, np.array([1.0, 2, 3, 9, 5, 6, 7]))[0]
    3
    """
    rows, *points = _finite_points(x, y)
    if not len(rows):
        return []
    places = np.stack(points)  # (2, rows)
    places = places - places.mean(axis=1, keepdims=True)
    places /= np.maximum(places.std(axis=1, keepdims=True), 1e-12)  # an axis may be constant
    inverse = np.linalg.pinv(places @ places.T / len(rows))
    distances = np.einsum("in,ij,jn->n", places, inverse, places)
    outliers: list[int] = rows[np.argsort(-distances, kind="stable")][:MAX_OUTLIERS].tolist()
    return outliers


def _count_cells(a: FloatArray, b: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Count translations per cell; outliers beyond the axes count in the border cells."""
    x, y = axis_limits(a), axis_limits(b)
    return np.histogram2d(np.clip(a, *x), np.clip(b, *y), bins=CELLS, range=[x, y])


def _shades(a: FloatArray, b: FloatArray, plot: PlotArea) -> list[Markup]:
    """Return a density map with one path per shade."""
    counts, xs, ys = _count_cells(a, b)
    width = format_coordinate(plot.x(xs[1]) - plot.x(xs[0]))
    height = format_coordinate(plot.y(ys[0]) - plot.y(ys[1]))
    # log scale: a cell of one stays visible next to a cell of a thousand
    shades = np.ceil(SHADE_COUNT * np.log1p(counts) / np.log1p(counts.max()))
    parts = []
    for shade in range(1, SHADE_COUNT + 1):
        cells = []
        for i, j in np.argwhere(shades == shade):
            place = format_place(plot.x(xs[i]), plot.y(ys[j + 1]))
            cells.append(f"M{place}h{width}v{height}h-{width}z")
        opacity = MIN_OPACITY + (1 - MIN_OPACITY) * (shade - 1) / (SHADE_COUNT - 1)
        if cells:
            parts.append(element("path", d="".join(cells), class_="shade", opacity=opacity))
    return parts


def _fit_line(a: FloatArray, b: FloatArray, plot: PlotArea) -> list[Markup]:
    """Return the least-squares line, clipped to the plot."""
    if np.isnan(pearson(a, b)):
        return []
    slope, start = np.polyfit(a, b, 1).tolist()
    left, right = max(a.min(), plot.x.low), min(a.max(), plot.x.high)
    if slope:
        below, above = sorted((edge - start) / slope for edge in (plot.y.low, plot.y.high))
        left, right = max(left, below), min(right, above)
    if left >= right:
        return []
    ends = (left, right)
    return [plot.line("polyline", ends, [start + slope * x for x in ends], "fit")]


def _quartile_band(a: FloatArray, b: FloatArray, plot: PlotArea) -> list[Markup]:
    """Return the median of the points with similar x as a line, the quartiles as a band."""
    x, (lower, median, upper) = length_buckets(a, b)
    if not len(x):
        return []
    both = np.append(upper, lower[::-1])
    return [
        plot.line("polygon", np.append(x, x[::-1]), both, "spread"),
        plot.line("polyline", x, median, "fit"),
    ]


def length_buckets(lengths: FloatArray, values: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the median length and the quartiles of the values of each length bucket."""
    middles: list[Any] = []
    quartiles: list[Any] = []
    if len(lengths) >= 2 * LENGTH_BUCKETS:
        edges = np.unique(np.quantile(lengths, np.linspace(0, 1, LENGTH_BUCKETS + 1)))
        buckets = np.searchsorted(edges[1:-1], lengths, side="right")
        for bucket in np.unique(buckets):
            own = buckets == bucket
            if own.sum() >= 3:
                middles.append(np.median(lengths[own]))
                quartiles.append(np.percentile(values[own], [25, 50, 75]))
    return np.array(middles), np.array(quartiles).reshape(-1, 3).T
