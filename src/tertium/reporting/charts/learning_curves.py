"""Charts of learning curves (lines) and ablations (bars) with their range over seeds."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tertium.meta.learning_curves import CurvePoint, LearningCurve
from tertium.reporting.charts.axes import (
    LETTER_WIDTH,
    PlotArea,
    Scale,
    axis_limits,
    horizontal_line,
    make_plot_area,
    name_element,
    svg_chart,
    text_element,
    vertical_line,
)
from tertium.reporting.markup import Markup, element, format_coordinate
from tertium.reporting.short_names import shorten_names
from tertium.text.cell_width import cell_width

COLOR_COUNT = 8  # colors repeat after eight series; marker shapes differ
WIDTH, HEIGHT = 298.0, 280.0  # pixels, without names; minimum height
LABEL_SPACING = 13.0  # pixels between names at the ends of lines
BAR_HEIGHT = 22.0
MAX_TEST_NAME, MAX_SETTING_NAME = 26, 42  # characters
ALL_PARTS = "all"


def learning_curve_chart(curve: LearningCurve, title: str) -> Markup:
    """Draw lines if all settings are training sizes, else bars."""
    points = curve.points()
    are_sizes = all(point.setting == str(point.size) for point in points)
    return line_chart(points, title) if are_sizes else bar_chart(points, title)


def line_chart(points: Sequence[CurvePoint], title: str) -> Markup:
    """Draw one line per test set over the number of training examples (log scale)."""
    tests = list(dict.fromkeys(point.test for point in points))
    short = shorten_names(tests, MAX_TEST_NAME)
    spread = np.array([[p.low, p.high] for p in points]).ravel()
    height = max(HEIGHT, LABEL_SPACING * len(tests) + 60)
    lower = axis_limits(np.log10([point.size for point in points]))
    plot = make_plot_area(lower, axis_limits(spread), width=WIDTH + 62, height=height)
    sizes = {float(np.log10(size)): f"{size:,}" for size in sorted({p.size for p in points})}
    parts = [*plot.x_axis("training examples", sizes), *plot.y_axis("agreement")]
    ends = []
    for n, test in enumerate(tests):
        own = sorted((p for p in points if p.test == test), key=lambda p: p.size)
        defined = [p for p in own if p.mean == p.mean]
        parts += _line(defined, plot, n)
        if defined:
            ends.append((plot.y(defined[-1].mean), n))
    parts += line_labels(ends, tests, short, plot)
    description = "; ".join(f"{p.test} with {p.size} examples: {p.mean:z.3f}" for p in points)
    width = plot.width + 18 + LETTER_WIDTH * max(map(cell_width, short), default=0)
    return svg_chart(width, height, title, description, parts)


def bar_chart(points: Sequence[CurvePoint], title: str) -> Markup:
    """Draw one bar per setting, grouped by test set, with its difference to all parts."""
    tests = list(dict.fromkeys(point.test for point in points))
    ordered = sorted(points, key=lambda p: tests.index(p.test))
    settings = list(dict.fromkeys(point.setting for point in points))
    short = dict(zip(settings, shorten_names(settings, MAX_SETTING_NAME), strict=True))
    rows = len(points) + len(tests)
    full = {point.test: point.mean for point in points if point.setting == ALL_PARTS}
    low, high = axis_limits(np.array([[p.mean, p.low, p.high] for p in points]).ravel())
    left = 18 + LETTER_WIDTH * max(map(cell_width, short.values()), default=0)
    x = Scale(min(low, 0.0), max(high, 0.0), left, left + 200)
    height = rows * BAR_HEIGHT + 52
    plot = PlotArea(width=left + 270, height=height, x=x, y=Scale(0, 1, rows * BAR_HEIGHT + 12, 6))
    parts = plot.x_axis("agreement")
    for place, point in enumerate(ordered):
        headings = tests.index(point.test) + 1  # above the bar
        if not place or ordered[place - 1].test != point.test:
            (heading,) = shorten_names([point.test], int(plot.width / LETTER_WIDTH) - 2)
            y = 10 + BAR_HEIGHT * (place + headings - 0.5) + 5
            parts.append(name_element(6, y, point.test, heading, font_weight=600))
        parts += _bar(point, short[point.setting], place + headings, plot, full.get(point.test))
    description = "; ".join(f"{p.setting} on {p.test}: {p.mean:z.3f}" for p in ordered)
    return svg_chart(plot.width, height, title, description, parts)


def _line(points: Sequence[CurvePoint], plot: PlotArea, number: int) -> list[Markup]:
    def place(point: CurvePoint, value: float) -> tuple[float, float]:
        return plot.x(float(np.log10(point.size))), plot.y(value)

    color = f"c{number % COLOR_COUNT}"
    line = " ".join(",".join(map(format_coordinate, place(p, p.mean))) for p in points)
    parts = [element("polyline", points=line, class_=f"line {color}")]
    for p in points:
        x, y = place(p, p.mean)
        parts.append(vertical_line(x, plot.y(p.low), plot.y(p.high), f"seeds {color}"))
        tooltip = f"{p.test}, {p.size:,} examples: {p.mean:z.4f} ({p.runs} runs)"
        parts.append(series_marker(x, y, number, tooltip))
    return parts


def series_marker(x: float, y: float, number: int, tooltip: str) -> Markup:
    """Return a marker; shapes distinguish series without color."""
    shapes = (
        "M-4 0a4 4 0 1 0 8 0a4 4 0 1 0 -8 0z",
        "M-3.6 -3.6h7.2v7.2h-7.2z",
        "M0 -5L5 0L0 5L-5 0z",
        "M0 -5L4.6 3.6H-4.6z",
    )
    # when colors repeat, the shapes are shifted
    shape = shapes[(number + number // COLOR_COUNT) % len(shapes)]
    return element(
        "path",
        element("title", tooltip),
        d=shape,
        class_=f"mark c{number % COLOR_COUNT}",
        transform=f"translate({format_coordinate(x)} {format_coordinate(y)})",
    )


def line_labels(
    ends: Sequence[tuple[float, int]], names: Sequence[str], short: Sequence[str], plot: PlotArea
) -> list[Markup]:
    """Return a marker and a name at the end of each line, spread so that they do not overlap."""
    parts = []
    ordered = sorted(ends)
    places = spread_positions([y for y, _ in ordered], plot.y.start)
    for (_, n), y in zip(ordered, places, strict=True):
        parts.append(series_marker(plot.x.end + 10, y, n, names[n]))
        parts.append(name_element(plot.x.end + 20, y + 4, names[n], short[n]))
    return parts


def spread_positions(positions: Sequence[float], last: float) -> list[float]:
    """Move ascending positions apart by at least `LABEL_SPACING`, none beyond `last`.

    >>> spread_positions([10, 12, 50, 51], 58)
    [10, 23.0, 45.0, 58]
    """
    moved: list[float] = []
    for position in positions:
        moved.append(max(position, moved[-1] + LABEL_SPACING) if moved else position)
    for n in range(len(moved) - 1, -1, -1):
        moved[n] = min(moved[n], moved[n + 1] - LABEL_SPACING if n + 1 < len(moved) else last)
    return moved


def _bar(
    point: CurvePoint, name: str, place: int, plot: PlotArea, full_mean: float | None
) -> list[Markup]:
    top = 10 + BAR_HEIGHT * place
    middle = top + BAR_HEIGHT / 2
    is_full = point.setting == ALL_PARTS
    parts = [name_element(plot.x.start - 8, middle + 4, point.setting, name, text_anchor="end")]
    if point.mean != point.mean:
        return [*parts, text_element(plot.x.end + 8, middle + 4, "–", "tick")]
    zero, end = plot.x(0.0), plot.x(point.mean)
    tooltip = f"{point.setting}, {point.test}: {point.mean:z.4f}"
    parts.append(
        element(
            "rect",
            element("title", tooltip),
            x=min(zero, end),
            y=top + 3,
            width=abs(end - zero),
            height=BAR_HEIGHT - 6,
            class_="bar whole" if is_full else "bar",
        )
    )
    if point.low < point.high:
        parts.append(horizontal_line(plot.x(point.low), plot.x(point.high), middle, "interval"))
    text = f"{point.mean:z.3f}"
    if full_mean is not None and full_mean == full_mean and not is_full:
        text = f"{point.mean - full_mean:+z.3f}"
    parts.append(text_element(plot.x.end + 8, middle + 4, text, "tick"))
    return parts
