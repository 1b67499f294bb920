"""Draw each kind of chart as SVG."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, groupby
from operator import attrgetter
from typing import Any

import numpy as np

from tertium.core.arrays import BoolArray, FloatArray, IntArray
from tertium.core.atomic import PathLike
from tertium.core.charts import (
    Axis,
    Chart,
    DotChart,
    IntervalChart,
    LineChart,
    ScatterChart,
    describe_direction,
)
from tertium.core.result import Result
from tertium.meta.agreement import correlate, describe_correlation
from tertium.output.charts.axes import (
    COLOR_COUNT,
    LETTER_WIDTH,
    MAX_POINTS_WITH_FULL_RANGE,
    Plot,
    Scale,
    axis_limits,
    make_plot,
    write_svg,
)
from tertium.output.markup_builder import Markup, element
from tertium.text.printable import cell_width

ROW_CHART_WIDTH = 360.0  # pixels
ROW_HEIGHT = 26.0  # pixels
MAX_NAME_LENGTH = 17  # characters
DOT_CHART_WIDTH = 250.0  # pixels, without the names of rows
LINE_HEIGHT = 18.0  # pixels of a row with few series, or of a legend entry
MAX_LABEL_LENGTH = 34  # characters of row names and legend entries of dot charts
LINE_CHART_WIDTH = 380.0  # pixels
LINE_CHART_HEIGHT = 280.0  # pixels, without the legend


@dataclass(kw_only=True)
class RowPlot(Plot):
    """A plot with named rows from top to bottom."""

    names: Sequence[str]
    short_names: Sequence[str]
    row_height: float

    def rows(self, order: Iterable[int]) -> Iterator[tuple[int, float]]:
        """Add the names of rows in an order; yield each row with its middle to draw there."""
        for place, row in enumerate(order):
            y = 10 + self.row_height * (place + 0.5)
            left = self.x.start - 10
            self.text(left, y + 4, self.short_names[row], "name", "end", title=self.names[row])
            yield row, y

    def dot(self, value: float, y: float, radius: float, title: str) -> None:
        x = self.x(value)
        self.add("circle", title=title, cx=x, cy=y, r=radius, class_="dot")


def make_row_plot(
    names: Sequence[str],
    values: FloatArray,
    max_length: int = MAX_NAME_LENGTH,
    row_height: float = ROW_HEIGHT,
) -> RowPlot:
    """Return a plot of all values with a row for each name."""
    short_names = shorten_names(names, max_length)
    widest = max(map(cell_width, short_names), default=0)
    left = 18 + LETTER_WIDTH * widest
    bottom = 12 + row_height * len(names)
    return RowPlot(
        width=ROW_CHART_WIDTH,
        height=bottom + 40,
        x=Scale(*axis_limits(values, margin=0.06), left, ROW_CHART_WIDTH - 12),
        y=Scale(0, 1, bottom, 6),
        names=names,
        short_names=short_names,
        row_height=row_height,
    )


def draw_intervals(chart: IntervalChart) -> Markup:
    """Draw systems from best to worst with confidence intervals and shaded clusters."""
    ascending = -chart.values if chart.higher_is_better else chart.values
    order = np.argsort(ascending, kind="stable")  # NaN is last
    scale_values = np.hstack([chart.values, chart.intervals.ravel()])
    plot = make_row_plot(chart.names, scale_values)
    _draw_bands(plot, [chart.clusters[n] for n in order])
    plot.x_axis(describe_direction(chart.higher_is_better))
    decimals = chart.decimals
    descriptions = []
    for n, y in plot.rows(order):
        name = chart.names[n]
        value = chart.values[n]
        low, high = chart.intervals[n]
        text = f"{name}: no score"
        plot.interval(low, high, y, "interval")
        if value == value:
            number = f"{value:z.{decimals}f}"
            plot.dot(value, y, 4.5, f"{name}: {number}")
            text = f"{name} {number}"
        if low == low:
            text += f" ({low:z.{decimals}f} to {high:z.{decimals}f})"
        if chart.clusters[n]:
            text += f", cluster {chart.clusters[n]}"
        descriptions.append(text)
    return plot.svg(chart.title, descriptions)


def _draw_bands(plot: Plot, clusters: Sequence[int]) -> None:
    """Draw a band behind every other cluster and a line between clusters."""
    start = plot.x.start - 4
    end = plot.x.end + 6
    for place, cluster in enumerate(clusters):
        top = 10 + ROW_HEIGHT * place
        if cluster % 2:
            plot.add(
                "rect",
                x=start,
                y=top,
                width=end - start,
                height=ROW_HEIGHT,
                class_="band",
            )
        if place and cluster != clusters[place - 1]:
            plot.add("line", x1=start, x2=end, y1=top, y2=top, class_="border")


def draw_dots(chart: DotChart) -> Markup:
    """Draw a marker per series in each row, and a legend below."""
    values = chart.values
    intervals = chart.intervals
    reference = chart.reference_value
    if intervals is None:
        intervals = np.full((*values.shape, 2), np.nan)
    extra = [np.nan if reference is None else reference]
    scale_values = np.hstack([values.ravel(), intervals.ravel(), extra])
    series_count = len(chart.series)
    row_height = max(LINE_HEIGHT, 7.0 * series_count)  # the series of a row are stacked
    plot = make_row_plot(chart.rows, scale_values, MAX_LABEL_LENGTH, row_height)
    label_width = LETTER_WIDTH * cell_width(chart.label) * 0.85  # labels use a smaller font
    end = plot.x.start + max(DOT_CHART_WIDTH, label_width)
    plot.x = replace(plot.x, end=end)
    plot.width = end + 14
    plot.x_axis(chart.label)
    if reference is not None:
        plot.vertical_line(reference, "fit dashed")
    descriptions = []
    row_count = len(chart.rows)
    for place, middle in plot.rows(range(row_count)):
        row = chart.rows[place]
        top = middle - row_height / 2
        numbers = []
        for n, name in enumerate(chart.series):
            y = top + row_height * (n + 1) / (series_count + 1)
            value = values[place, n]
            low, high = intervals[place, n]
            plot.interval(low, high, y, f"line c{n % COLOR_COUNT}")
            if value == value:
                number = f"{value:z.{chart.decimals}f}"
                plot.marker(plot.x(value), y, n, f"{name}, {row}: {number}")
                numbers.append(f"{name} {number}")
        descriptions.append(f"{row}: {', '.join(numbers)}")
        if place < row_count - 1:
            plot.interval(plot.x.low, plot.x.high, top + row_height, "grid")
    _draw_legend(plot, chart.series)
    return plot.svg(chart.title, descriptions)


def _draw_legend(plot: Plot, series: Sequence[str]) -> None:
    """Draw the markers of series with their names below the plot."""
    for n, short in enumerate(shorten_names(series, MAX_LABEL_LENGTH)):
        y = plot.height + 6
        plot.marker(18, y, n, series[n])
        plot.text(30, y + 4, short, "name", "start")
        plot.height += LINE_HEIGHT
    plot.height += 6


def draw_lines(chart: LineChart) -> Markup:
    """Draw curves with a marker at the end, and a legend below."""
    x = chart.x.values
    plot = make_plot(
        (0.0, x.max()),
        chart.y_range,
        width=LINE_CHART_WIDTH,
        height=LINE_CHART_HEIGHT,
    )
    plot.x_axis(chart.x.name)
    plot.y_axis(chart.y_label)
    if chart.reference_value is not None:
        plot.interval(plot.x.low, plot.x.high, plot.y(chart.reference_value), "interval")
    for number, curve in enumerate(chart.curves.values()):
        plot.line("polyline", x, curve, f"line c{number % COLOR_COUNT}")
    for number, (name, curve) in enumerate(chart.curves.items()):
        plot.marker(plot.x.end, plot.y(curve[-1]), number, name)
    _draw_legend(plot, [*chart.curves])
    return plot.svg(chart.title, [chart.description])


def draw_scatter(chart: ScatterChart) -> Markup:
    """Draw the points with a finite x and y, and the trend."""
    rows, x, y = finite_points(chart.x, chart.y)
    plot = make_plot(axis_limits(x), axis_limits(y))
    plot.x_axis(chart.x.name)
    plot.y_axis(chart.y.name)
    step = 1 if chart.names else max(1, len(rows) // MAX_DOTS)
    dots = []
    for row, a, b in zip(rows[::step], x[::step], y[::step], strict=True):
        if chart.names:
            tooltip = chart.names[row]
            style: dict[str, float] = {"r": 4.5}
        else:
            tooltip = f"{chart.label(row)}: {a:.3g} / {b:.3g}"
            style = {"r": 3, "data_row": row}
        name = element("title", tooltip)
        dot = element("circle", name, cx=plot.x(a), cy=plot.y(b), **style)
        dots.append(dot)
    plot.add("g", *dots, class_="dots")
    if chart.has_trend:
        _draw_fit(plot, x, y)
    title = chart.title or f"{chart.y.name} against {chart.x.name}"
    return plot.svg(title, [describe_correlation(chart.x.values, chart.y.values)])


def _draw_fit(plot: Plot, x: FloatArray, y: FloatArray) -> None:
    """Draw the least-squares line, clipped to the plot."""
    if not len(x) or not np.ptp(x) or not np.ptp(y):
        return
    slope, start = np.polyfit(x, y, 1).tolist()
    slope = slope or 1e-300  # a flat line never leaves the plot at the top or bottom
    below, above = sorted((edge - start) / slope for edge in (plot.y.low, plot.y.high))
    left = max(x.min(), plot.x.low, below)
    right = min(x.max(), plot.x.high, above)
    if left < right:
        ends = (left, right)
        plot.line("polyline", ends, [start + slope * end for end in ends], "fit")


DRAWING_FUNCTIONS: Mapping[type, Callable[[Any], Markup]] = {
    DotChart: draw_dots,
    IntervalChart: draw_intervals,
    LineChart: draw_lines,
    ScatterChart: draw_scatter,
}


def draw(chart: Chart) -> Markup:
    """Return a chart as SVG."""
    return DRAWING_FUNCTIONS[type(chart)](chart)


def write(result: Result, path: PathLike) -> None:
    """Write the charts of a result with their captions, row by row."""
    rows = groupby(result.charts(), key=attrgetter("row"))
    write_svg(path, [[(chart.caption, draw(chart)) for chart in row] for _, row in rows])


MAX_DOTS = MAX_POINTS_WITH_FULL_RANGE  # of twice as many or more, a part is drawn


def both_finite(x: Axis, y: Axis) -> BoolArray:
    """Mask the rows in which both values are finite."""
    mask: BoolArray = np.isfinite(x.values) & np.isfinite(y.values)
    return mask


def finite_points(x: Axis, y: Axis) -> tuple[IntArray, FloatArray, FloatArray]:
    """Return the rows in which both values are finite, with these values."""
    rows = np.flatnonzero(both_finite(x, y))
    return rows, x.values[rows], y.values[rows]


def pearson(x: Axis, y: Axis) -> float:
    """Return Pearson's r over pairs of finite values; NaN if undefined.

    >>> x = Axis(name="x", values=np.array([1.0, 2, np.nan]))
    >>> pearson(x, Axis(name="y", values=np.array([2.0, 4, 5])))
    1.0
    """
    return float(correlate(x.values, y.values, both_finite(x, y)))


ELLIPSIS = "…"


def shorten_names(names: Sequence[str], max_length: int) -> list[str]:
    """Shorten names to at most `max_length` characters, without their middle.

    >>> shorten_names(["a", "one-system-of-a-very-long-name"], 12)
    ['a', 'one-s…g-name']
    """
    head = (max_length - 1) // 2
    shortened = []
    for name in names:
        if cell_width(name) > max_length:
            end = _prefix_of_width(name[::-1], max_length - 1 - head)[::-1]
            name = _prefix_of_width(name, head) + ELLIPSIS + end
        shortened.append(name)
    return shortened


def _prefix_of_width(text: str, width: int) -> str:
    """Return the longest prefix of a text that is at most `width` columns wide."""
    total_widths = accumulate(map(cell_width, text))
    return text[: sum(total <= width for total in total_widths)]
