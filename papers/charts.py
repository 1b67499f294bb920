"""Draw charts of measured tables: learning curves, ablations, published against measured."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np
from rich.cells import cell_len

from papers.table import RowResult, TableResult, mean_without_nan
from tertium.output.charts.axes import (
    COLOR_COUNT,
    LETTER_WIDTH,
    Plot,
    Scale,
    axis_limits,
    make_plot,
    write_svg,
)
from tertium.output.markup_builder import Markup

WIDTH, HEIGHT = 470.0, 330.0  # pixels, without the names of the lines
BAR_HEIGHT = 22.0
NAME_SPACING = 13.0  # between the names of lines
Points = Sequence[tuple[float, float]]


def write_chart(result: TableResult, path: Path) -> bool:
    """Draw the chart of a table; return False if there is nothing to draw."""
    rows = [row for row in result.rows if not math.isnan(row.partial_average)]
    if not result.table.chart or not rows:
        return False
    draw: Mapping[str, Callable[[TableResult, Sequence[RowResult]], Markup]] = {
        "columns": draw_line_chart,
        "rows": draw_bar_chart,
        "layers": draw_layer_chart,
    }
    write_svg(path, [[("", draw[result.table.chart](result, rows))]])
    return True


def draw_line_chart(result: TableResult, rows: Sequence[RowResult]) -> Markup:
    """Draw a line per row over the columns; published figures are dashed."""
    columns = result.table.experiment.columns
    published = {f"{row.label}, published": _indexed_points(row.row.published) for row in rows}
    lines = {row.label: _indexed_points(row.measured_values) for row in rows}
    lines |= {label: line for label, line in published.items() if line}
    heights = [y for line in lines.values() for _, y in line]
    plot = make_plot(
        (-0.3, len(columns) - 0.7), axis_limits(np.array(heights)), width=WIDTH, height=HEIGHT
    )
    plot.x_axis("", dict(enumerate(columns)))
    plot.y_axis(short_statistic(result.table.experiment.statistic))
    for number, (label, line) in enumerate(lines.items()):
        style = "line dashed" if label in published else "line"
        _draw_line(plot, line, number, label, style)
    return _with_names(plot, result.table.title, lines)


def draw_bar_chart(result: TableResult, rows: Sequence[RowResult]) -> Markup:
    """Draw a bar per row for its average; the published average is a vertical line.

    Pale bars are averages of some of the columns. Bars of the overview are sorted.
    """
    if result.table.paper == "overview":
        rows = sorted(rows, key=lambda row: -row.partial_average)
    values = [v for row in rows for v in (row.partial_average, row.published_average)]
    low, high = axis_limits(np.array(values))
    left = 18 + LETTER_WIDTH * max(cell_len(row.label) for row in rows)
    bottom = len(rows) * BAR_HEIGHT + 12
    plot = Plot(
        width=left + 350,
        height=bottom + 40,
        x=Scale(min(low, 0.0), max(high, 0.0), left, left + 280),
        y=Scale(0, 1, bottom, 6),
    )
    plot.x_axis(f"{short_statistic(result.table.experiment.statistic)}, average")
    for position, row in enumerate(rows):
        _draw_bar(plot, row, 10 + BAR_HEIGHT * position, result.table.decimals)
    descriptions = [f"{row.label} {row.partial_average:.3f}" for row in rows]
    return plot.svg(result.table.title, descriptions)


def draw_layer_chart(result: TableResult, rows: Sequence[RowResult]) -> Markup:
    """Draw the average of each encoder over its layers, with a band for the range over columns.

    Rows are labeled "ENCODER, layer N".
    """
    curves: dict[str, dict[int, list[float]]] = {}
    for row in rows:
        encoder, _, layer = row.label.rpartition(", layer ")
        column_values = [value for value in row.measured_values if not math.isnan(value)]
        curves.setdefault(encoder, {})[int(layer)] = column_values
    layers = sorted({layer for curve in curves.values() for layer in curve})
    heights = np.array([v for row in rows for v in row.measured_values if not math.isnan(v)])
    width = (layers[0] - 0.3, layers[-1] + 0.3)
    plot = make_plot(width, axis_limits(heights), width=WIDTH, height=HEIGHT)
    label = "layer (0: input embeddings); band: range over columns"
    plot.x_axis(label, {layer: str(layer) for layer in layers})
    plot.y_axis(short_statistic(result.table.experiment.statistic))
    lines: dict[str, Points] = {}
    for number, (encoder, curve) in enumerate(curves.items()):
        own = sorted(curve)
        upper = [max(curve[layer]) for layer in own]
        lower = [min(curve[layer]) for layer in own]
        style = f"mark range c{number % COLOR_COUNT}"
        plot.line("polygon", [*own, *own[::-1]], [*upper, *lower[::-1]], style)
        lines[encoder] = [(layer, mean_without_nan(curve[layer])) for layer in own]
        _draw_line(plot, lines[encoder], number, encoder)
    return _with_names(plot, result.table.title, lines)


def write_agreement_chart(results: Sequence[TableResult], path: Path) -> bool:
    """Draw a point per figure that is published and measured, with a color per paper."""
    points: dict[str, list[tuple[float, float]]] = {}
    for result in (result for result in results if result.table.has_average):
        scale = 1.0 if result.table.decimals == 3 else 100.0
        for row in result.rows:
            for published, measured in zip(row.row.published, row.measured_values, strict=False):
                if not math.isnan(published + measured):
                    pair = (published / scale, measured / scale)
                    points.setdefault(result.table.paper, []).append(pair)
    if not points:
        return False
    both = axis_limits(np.array([value for pairs in points.values() for value in pairs]).ravel())
    plot = make_plot(both, both, width=WIDTH, height=WIDTH - 10)
    plot.x_axis("published")
    plot.y_axis("measured")
    plot.line("polyline", both, both, "border")
    for number, (paper, pairs) in enumerate(points.items()):
        _draw_markers(plot, pairs, number, paper)
    # All names start at the same point, so that they are listed one below the other.
    last = {paper: [(both[1], both[1])] for paper in points}
    title = "Published and measured figures"
    write_svg(path, [[("", _with_names(plot, title, last))]])
    return True


def _draw_bar(plot: Plot, row: RowResult, top: float, decimals: int) -> None:
    value, is_complete = row.partial_average, not math.isnan(row.average)
    zero, end, middle = plot.x(0.0), plot.x(value), top + BAR_HEIGHT / 2
    label = f"{value:.{decimals}f}" if is_complete else f"({value:.{decimals}f})"
    plot.text(plot.x.start - 8, middle + 4, row.label, "name", "end")
    plot.add(
        "rect",
        title=f"{row.label}: {label}",
        x=min(zero, end),
        y=top + 3,
        width=abs(end - zero),
        height=BAR_HEIGHT - 6,
        class_="bar whole",
        opacity=None if is_complete else 0.45,
    )
    plot.text(plot.x.end + 8, middle + 4, label, "tick", "start")
    if not math.isnan(row.published_average):
        x = plot.x(row.published_average)
        title = f"published: {row.published_average:.{decimals}f}"
        ends = {"x1": x, "x2": x, "y1": top + 1, "y2": top + BAR_HEIGHT - 1}
        plot.add("line", title=title, **ends, class_="published")


def _draw_line(plot: Plot, points: Points, number: int, label: str, style: str = "line") -> None:
    x, y = zip(*points, strict=True)
    plot.line("polyline", x, y, f"{style} c{number % COLOR_COUNT}")
    _draw_markers(plot, points, number, label)


def _draw_markers(plot: Plot, points: Points, number: int, label: str) -> None:
    for x, y in points:
        plot.marker(plot.x(x), plot.y(y), number, f"{label}: {y:.4g}")


def _with_names(plot: Plot, title: str, lines: Mapping[str, Points]) -> Markup:
    """Return the chart with the names of its lines at their ends."""
    _write_names_at_ends(plot, {name: line[-1][1] for name, line in lines.items()})
    plot.width += 26 + LETTER_WIDTH * max(map(cell_len, lines))
    return plot.svg(title, [f"{name} {line[-1][1]:.3f}" for name, line in lines.items()])


def _write_names_at_ends(plot: Plot, ends: Mapping[str, float]) -> None:
    """Add a marker and a name next to the last value of each line, without overlap."""
    names = list(ends)
    places = np.array([plot.y(value) for value in ends.values()])
    order = np.argsort(places, kind="stable")
    offsets = NAME_SPACING * np.arange(len(places))
    moved = np.maximum.accumulate(places[order] - offsets)
    spread = np.minimum(moved, plot.y.start - offsets[-1]) + offsets
    for number, y in zip(order.tolist(), spread.tolist(), strict=True):
        plot.marker(plot.x.end + 10, y, number, names[number])
        plot.text(plot.x.end + 20, y + 4, names[number], "name", title=names[number])


def _indexed_points(values: Sequence[float]) -> list[tuple[float, float]]:
    return [(float(n), value) for n, value in enumerate(values) if not math.isnan(value)]


def short_statistic(statistic: str) -> str:
    """Return the name of a statistic without its formula."""
    return re.split(r":|, | \(", statistic)[0]
