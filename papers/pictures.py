"""Measured tables as pictures: curves, ablations, published against measured."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np
from rich.cells import cell_len

from papers.table import MeasuredRow, Outcome
from tertium.reporting.charts import svg_file
from tertium.reporting.charts.axes import (
    LETTER_WIDTH,
    PlotArea,
    Scale,
    axis_limits,
    make_plot_area,
    svg_chart,
    text_element,
)
from tertium.reporting.charts.learning_curves import (
    BAR_HEIGHT,
    line_labels,
    series_marker,
)
from tertium.reporting.markup import Markup, element, format_coordinate

WIDTH, HEIGHT = 470.0, 330.0  # pixels of a plot without the names beside it
Places = Sequence[tuple[float, float]]


def write_picture(outcome: Outcome, path: Path) -> bool:
    """Draw a table as its `picture` says; False where there is nothing to draw."""
    rows = [row for row in outcome.rows if any(value == value for value in row.measured)]
    if not outcome.table.picture or not rows:
        return False
    draw: Mapping[str, Callable[[Outcome, Sequence[MeasuredRow]], Markup]] = {
        "columns": draw_columns,
        "rows": draw_rows,
        "layers": draw_layers,
    }
    svg_file.write_svg(path, [[("", draw[outcome.table.picture](outcome, rows))]])
    return True


def draw_columns(outcome: Outcome, rows: Sequence[MeasuredRow]) -> Markup:
    """A line for each row over the columns; published figures dashed."""
    columns = outcome.table.experiment.columns
    published = {f"{row.row.label}, published": _places(row.row.published) for row in rows}
    lines = {row.row.label: _places(row.measured) for row in rows}
    lines |= {label: line for label, line in published.items() if line}
    heights = [y for line in lines.values() for _, y in line]
    plot = make_plot_area(
        (-0.3, len(columns) - 0.7), axis_limits(np.array(heights)), width=WIDTH, height=HEIGHT
    )
    statistic = short_statistic(outcome.table.experiment.statistic)
    parts = [*plot.x_axis("", dict(enumerate(columns))), *plot.y_axis(statistic)]
    for number, (label, line) in enumerate(lines.items()):
        style = "line dashed" if label in published else "line"
        parts += _line(line, plot, number, label, style)
    return _with_names(outcome.table.title, lines, plot, parts)


def draw_rows(outcome: Outcome, rows: Sequence[MeasuredRow]) -> Markup:
    """A bar for each row, its average over the columns; a published one is a line across it.

    Pale bars are averages of some columns only. Metrics side by side stand in their order.
    """
    if outcome.table.paper == "overview":
        rows = sorted(rows, key=lambda row: -known_mean(row.measured))
    values = [value for row in rows for value in (known_mean(row.measured), row.published_average)]
    low, high = axis_limits(np.array(values))
    left = 18 + LETTER_WIDTH * max(cell_len(row.row.label) for row in rows)
    bottom = len(rows) * BAR_HEIGHT + 12
    plot = PlotArea(
        width=left + 350,
        height=bottom + 40,
        x=Scale(min(low, 0.0), max(high, 0.0), left, left + 280),
        y=Scale(0, 1, bottom, 6),
    )
    parts = plot.x_axis(f"{short_statistic(outcome.table.experiment.statistic)}, average")
    for place, row in enumerate(rows):
        parts += _bar(row, 10 + BAR_HEIGHT * place, plot, outcome.table.digits)
    said = "; ".join(f"{row.row.label} {known_mean(row.measured):.3f}" for row in rows)
    return svg_chart(plot.width, plot.height, outcome.table.title, said, parts)


def draw_layers(outcome: Outcome, rows: Sequence[MeasuredRow]) -> Markup:
    """A line for each encoder over its layers, the average; the range over columns behind it.

    Rows are labeled as in "minilm, layer 4".
    """
    curves: dict[str, dict[int, list[float]]] = {}
    for row in rows:
        encoder, _, layer = row.row.label.rpartition(", layer ")
        known = [value for value in row.measured if value == value]
        curves.setdefault(encoder, {})[int(layer)] = known
    layers = sorted({layer for curve in curves.values() for layer in curve})
    heights = np.array([v for curve in curves.values() for known in curve.values() for v in known])
    width = (layers[0] - 0.3, layers[-1] + 0.3)
    plot = make_plot_area(width, axis_limits(heights), width=WIDTH, height=HEIGHT)
    label = "layer (0: the embeddings); the band is the range over columns"
    parts = plot.x_axis(label, {layer: str(layer) for layer in layers})
    parts += plot.y_axis(short_statistic(outcome.table.experiment.statistic))
    lines: dict[str, Places] = {}
    for number, (encoder, curve) in enumerate(curves.items()):
        upper = [(layer, max(curve[layer])) for layer in sorted(curve)]
        lower = [(layer, min(curve[layer])) for layer in sorted(curve, reverse=True)]
        band = element(
            "polygon",
            points=_points([*upper, *lower], plot),
            class_=f"mark range c{number % COLOR_COUNT}",
        )
        lines[encoder] = [(layer, known_mean(curve[layer])) for layer in sorted(curve)]
        parts += [band, *_line(lines[encoder], plot, number, encoder)]
    return _with_names(outcome.table.title, lines, plot, parts)


def write_agreement(outcomes: Sequence[Outcome], path: Path) -> bool:
    """A sign for each figure that is both published and measured, a colour for each paper."""
    points: dict[str, list[tuple[float, float]]] = {}
    for outcome in (o for o in outcomes if o.table.averaged):
        scale = 1.0 if outcome.table.digits == 3 else 100.0
        for row in outcome.rows:
            for published, found in zip(row.row.published, row.measured, strict=False):
                if not math.isnan(published + found):
                    pair = (published / scale, found / scale)
                    points.setdefault(outcome.table.paper, []).append(pair)
    if not points:
        return False
    both = axis_limits(np.array([value for pairs in points.values() for value in pairs]).ravel())
    plot = make_plot_area(both, both, width=WIDTH, height=WIDTH - 10)
    parts = [*plot.x_axis("published"), *plot.y_axis("measured")]
    ends = [(value, value) for value in both]
    parts.append(element("polyline", points=_points(ends, plot), class_="border"))
    for number, (paper, pairs) in enumerate(points.items()):
        parts += _marks(pairs, plot, number, paper)
    # Names stand one below the other: no line leads to them.
    last = {paper: [(both[1], both[1])] for paper in points}
    title = "published against measured figures"
    svg_file.write_svg(path, [[("", _with_names(title, last, plot, parts))]])
    return True


def known_mean(values: Sequence[float]) -> float:
    """The mean of the values that are there; NaN of none.

    >>> known_mean([1.0, float("nan"), 3.0])
    2.0
    """
    known = [value for value in values if value == value]
    return sum(known) / len(known) if known else math.nan


def _bar(row: MeasuredRow, top: float, plot: PlotArea, digits: int) -> list[Markup]:
    value, whole = known_mean(row.measured), all(v == v for v in row.measured)
    zero, end, middle = plot.x(0.0), plot.x(value), top + BAR_HEIGHT / 2
    shown = f"{value:.{digits}f}" if whole else f"({value:.{digits}f})"
    parts = [
        text_element(plot.x.start - 8, middle + 4, row.row.label, "name", anchor="end"),
        element(
            "rect",
            element("title", f"{row.row.label}: {shown}"),
            x=min(zero, end),
            y=top + 3,
            width=abs(end - zero),
            height=BAR_HEIGHT - 6,
            class_="bar whole",
            opacity=None if whole else 0.45,
        ),
        text_element(plot.x.end + 8, middle + 4, shown, "tick"),
    ]
    if row.published_average == row.published_average:
        place = plot.x(row.published_average)
        parts.append(
            element(
                "line",
                element("title", f"published: {row.published_average:.{digits}f}"),
                x1=place,
                x2=place,
                y1=top + 1,
                y2=top + BAR_HEIGHT - 1,
                class_="published",
            )
        )
    return parts


def _line(
    places: Places, plot: PlotArea, number: int, label: str, style: str = "line"
) -> list[Markup]:
    line = element(
        "polyline", points=_points(places, plot), class_=f"{style} c{number % COLOR_COUNT}"
    )
    return [line, *_marks(places, plot, number, label)]


def _marks(places: Places, plot: PlotArea, number: int, label: str) -> list[Markup]:
    return [series_marker(plot.x(x), plot.y(y), number, f"{label}: {y:.4g}") for x, y in places]


def _with_names(
    title: str, lines: Mapping[str, Places], plot: PlotArea, parts: Sequence[Markup]
) -> Markup:
    """The drawing with the names of its lines at their ends."""
    ends = [(plot.y(line[-1][1]), number) for number, line in enumerate(lines.values())]
    names = line_labels(ends, list(lines), list(lines), plot)
    said = "; ".join(f"{name} {line[-1][1]:.3f}" for name, line in lines.items())
    width = plot.width + 26 + LETTER_WIDTH * max(map(cell_len, lines))
    return svg_chart(width, plot.height, title, said, [*parts, *names])


def _places(values: Sequence[float]) -> list[tuple[float, float]]:
    return [(float(place), value) for place, value in enumerate(values) if value == value]


def _points(places: Places, plot: PlotArea) -> str:
    return " ".join(
        f"{format_coordinate(plot.x(x))},{format_coordinate(plot.y(y))}" for x, y in places
    )


def short_statistic(statistic: str) -> str:
    """A statistic without how it is computed."""
    return re.split(r":|, | \(", statistic)[0]
