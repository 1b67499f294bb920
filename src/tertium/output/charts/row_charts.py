"""Charts with one row per system or group: intervals, distributions and dot plots."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from tertium.arrays import FloatArray, IntArray
from tertium.core.charts import DotChart, IntervalChart, RidgeChart, describe_direction
from tertium.output.charts.axes import (
    LETTER_WIDTH,
    PlotArea,
    Scale,
    axis_limits,
    circle,
    format_place,
    horizontal_line,
    name_element,
    svg_chart,
    text_element,
)
from tertium.output.charts.series import COLOR_COUNT, series_marker
from tertium.output.markup import Markup, element
from tertium.output.short_names import shorten_names
from tertium.text.cell_width import cell_width

WIDTH, ROW_HEIGHT = 360.0, 26.0  # pixels
MAX_NAME_LENGTH = 17  # characters
DENSITY_POINTS = 80
DOT_CHART_WIDTH, LINE_HEIGHT = 250.0, 18.0  # pixels
MAX_LABEL_LENGTH = 34  # characters of row names and legend entries of dot charts


@dataclass(frozen=True, kw_only=True)
class RowPlot(PlotArea):
    """A plot with rows from top to bottom."""

    short_names: Mapping[str, str]
    row_height: float

    def middle(self, place: int) -> float:
        return 10 + self.row_height * (place + 0.5)

    def row_name(self, name: str, place: int) -> Markup:
        y = self.middle(place) + 4
        return name_element(self.x.start - 10, y, name, self.short_names[name], text_anchor="end")


def draw_intervals(chart: IntervalChart) -> Markup:
    """Draw systems from best to worst with confidence intervals and shaded clusters."""
    order = _best_first(chart.values, chart.higher_is_better)
    plot = _plot_rows(chart.names, np.hstack([chart.values, chart.intervals.ravel()]))
    parts = _bands([chart.clusters[n] for n in order], plot)
    parts += plot.x_axis(describe_direction(chart.higher_is_better))
    descriptions = []
    for place, n in enumerate(order):
        name, value = chart.names[n], chart.values[n]
        low, high = chart.intervals[n]
        number, first, last = (f"{v:z.{chart.decimals}f}" for v in (value, low, high))
        y = plot.middle(place)
        text = f"{name}: no score"
        parts.append(plot.row_name(name, place))
        if low == low:
            parts.append(horizontal_line(plot.x(low), plot.x(high), y, "interval"))
        if value == value:
            parts.append(circle(plot.x(value), y, 4.5, f"{name}: {number}", class_="dot"))
            text = f"{name} {number}"
        if low == low:
            text += f" ({first} to {last})"
        if chart.clusters[n]:
            text += f", cluster {chart.clusters[n]}"
        descriptions.append(text)
    return svg_chart(plot.width, plot.height, chart.title, "; ".join(descriptions), parts)


def draw_ridges(chart: RidgeChart) -> Markup:
    """Draw the distribution of each system's segment scores with quartiles and median."""
    samples = [values[np.isfinite(values)] for values in chart.samples]
    medians = np.array([np.median(values) if values.size else np.nan for values in samples])
    plot = _plot_rows(chart.names, np.hstack([[], *samples]), margin=0.0)
    parts = plot.x_axis(f"segment score, {describe_direction(chart.higher_is_better)}")
    densities = [estimate_density(values, plot.x.low, plot.x.high) for values in samples]
    peak = _peak_height([density.max() for density in densities])
    descriptions = []
    for place, n in enumerate(_best_first(medians, chart.higher_is_better)):
        name = chart.names[n]
        base = plot.middle(place) + ROW_HEIGHT * 0.36
        parts.append(plot.row_name(name, place))
        parts.append(_outline(np.minimum(densities[n] / peak, 1.0), plot.x, base))
        if samples[n].size:
            parts += _quartiles(samples[n], plot.x, base, name)
        descriptions.append(f"{name}: median {medians[n]:.3g}, {samples[n].size} segments")
    return svg_chart(plot.width, plot.height, chart.title, "; ".join(descriptions), parts)


def draw_dots(chart: DotChart) -> Markup:
    """Draw a marker per series in each row, and a legend below."""
    values, intervals, reference = chart.values, chart.intervals, chart.reference_value
    if intervals is None:
        intervals = np.full((*values.shape, 2), np.nan)
    shown = [values.ravel(), intervals.ravel(), chart.axis_range]
    if reference is not None:
        shown.append([reference])
    series_count = len(chart.series)
    row_height = max(LINE_HEIGHT, 7.0 * series_count)  # the series of a row are stacked
    plot = _plot_rows(chart.rows, np.hstack(shown), MAX_LABEL_LENGTH, row_height)
    label_width = LETTER_WIDTH * cell_width(chart.label) * 0.85  # labels use a smaller font
    end = plot.x.start + max(DOT_CHART_WIDTH, label_width)
    legend = plot.height + 6
    plot = replace(
        plot,
        x=replace(plot.x, end=end),
        width=end + 14,
        height=legend + LINE_HEIGHT * series_count,
    )
    parts = plot.x_axis(chart.label)
    if reference is not None:
        parts.append(plot.vertical_line(reference, "fit dashed"))
    descriptions = []
    for place, row in enumerate(chart.rows):
        top = plot.middle(place) - row_height / 2
        if place:
            parts.append(horizontal_line(plot.x.start, plot.x.end, top, "grid"))
        parts.append(plot.row_name(row, place))
        known = []
        for n, name in enumerate(chart.series):
            y = top + row_height * (n + 1) / (series_count + 1)
            value, (low, high) = values[place, n], intervals[place, n]
            if low == low:
                style = f"line c{n % COLOR_COUNT}"
                parts.append(horizontal_line(plot.x(low), plot.x(high), y, style))
            if value == value:
                number = f"{value:z.{chart.decimals}f}"
                parts.append(series_marker(plot.x(value), y, n, f"{name}, {row}: {number}"))
                known.append(f"{name} {number}")
        descriptions.append(f"{row}: {', '.join(known)}")
    for n, short in enumerate(shorten_names(chart.series, MAX_LABEL_LENGTH)):
        y = legend + LINE_HEIGHT * n
        parts.append(series_marker(18, y, n, chart.series[n]))
        parts.append(text_element(30, y + 4, short, "name"))
    return svg_chart(plot.width, plot.height, chart.title, "; ".join(descriptions), parts)


def _plot_rows(
    names: Sequence[str],
    values: FloatArray,
    max_length: int = MAX_NAME_LENGTH,
    row_height: float = ROW_HEIGHT,
    margin: float = 0.06,
) -> RowPlot:
    """Return a plot of all values with a row for each name."""
    short_names = shorten_names(names, max_length)
    left = 18 + LETTER_WIDTH * max(map(cell_width, short_names), default=0)
    bottom = 12 + row_height * len(names)
    return RowPlot(
        width=WIDTH,
        height=bottom + 40,
        x=Scale(*axis_limits(values, margin=margin), left, WIDTH - 12),
        y=Scale(0, 1, bottom, 6),
        short_names=dict(zip(names, short_names, strict=True)),
        row_height=row_height,
    )


def _best_first(values: FloatArray, higher_is_better: bool) -> IntArray:
    """Return the order of systems; those without a value are last."""
    return np.argsort(-values if higher_is_better else values, kind="stable")


def _bands(clusters: Sequence[int], plot: RowPlot) -> list[Markup]:
    """Return a band behind every other cluster and a line between clusters."""
    parts = []
    start, end = plot.x.start - 4, plot.x.end + 6
    for place, cluster in enumerate(clusters):
        top = plot.middle(place) - ROW_HEIGHT / 2
        if cluster % 2:
            size = {"width": end - start, "height": ROW_HEIGHT}
            parts.append(element("rect", x=start, y=top, **size, class_="band"))
        if place and cluster != clusters[place - 1]:
            parts.append(horizontal_line(start, end, top, "border"))
    return parts


def estimate_density(values: FloatArray, low: float, high: float) -> FloatArray:
    """Return a Gaussian kernel density (Silverman's bandwidth), (DENSITY_POINTS,), of mean 1."""
    if not values.size:
        return np.zeros(DENSITY_POINTS)
    counts, _ = np.histogram(np.clip(values, low, high), bins=DENSITY_POINTS, range=(low, high))
    first, third = np.percentile(values, [25, 75])
    spread = min(values.std(), (third - first) / 1.34) or values.std()
    step = (high - low) / DENSITY_POINTS
    width = max(1.06 * spread * values.size**-0.2 / step, 1.5)
    offsets = np.arange(-DENSITY_POINTS, DENSITY_POINTS + 1)
    kernel = np.exp(-0.5 * (offsets / width) ** 2)
    smooth = np.convolve(counts, kernel / kernel.sum())[DENSITY_POINTS : 2 * DENSITY_POINTS]
    return smooth / smooth.mean()


def _peak_height(peaks: Sequence[float]) -> float:
    """Return the density that fills a row: the highest, but at most twice the median."""
    nonzero = sorted(peak for peak in peaks if peak) or [1.0]
    return min(nonzero[-1], 2 * nonzero[(len(nonzero) - 1) // 2])


def _outline(heights: FloatArray, x: Scale, base: float) -> Markup:
    steps = np.linspace(x.start, x.end, len(heights))
    tops = base - heights * ROW_HEIGHT * 0.95
    line = " ".join(map(format_place, steps, tops))
    path = f"M{format_place(x.start, base)} L{line} L{format_place(x.end, base)}Z"
    return element("path", d=path, class_="ridge")


def _quartiles(values: FloatArray, x: Scale, base: float, name: str) -> list[Markup]:
    first, median, third = np.percentile(values, [25, 50, 75])
    tooltip = f"{name}: median {median:.3g}, interquartile range {first:.3g} to {third:.3g}"
    return [
        horizontal_line(x(first), x(third), base, "interval"),
        circle(x(median), base, 3.5, tooltip, class_="dot"),
    ]
