"""Charts with one row per system or group: intervals, distributions and dot plots."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tertium.arrays import FloatArray
from tertium.output.charts.axes import (
    LETTER_WIDTH,
    PlotArea,
    Scale,
    axis_limits,
    circle,
    horizontal_line,
    name_element,
    svg_chart,
    text_element,
    vertical_line,
)
from tertium.output.charts.series import COLOR_COUNT, series_marker
from tertium.output.markup import Markup, element, format_coordinate
from tertium.output.short_names import shorten_names
from tertium.text.cell_width import cell_width

WIDTH, ROW_HEIGHT = 360.0, 26.0
MAX_NAME_LENGTH = 17  # characters
DENSITY_POINTS = 80


def interval_chart(
    names: Sequence[str],
    values: FloatArray,
    intervals: FloatArray,
    groups: Sequence[int],
    *,
    title: str,
    higher_is_better: bool = True,
    decimals: int = 2,
) -> Markup:
    """Draw systems from best to worst with confidence intervals and shaded cluster `groups`."""
    order = _best_first(values, higher_is_better)
    short = shorten_names(names, MAX_NAME_LENGTH)
    plot = _plot(short, np.concatenate([values, intervals.ravel()]))
    parts = _bands([groups[n] for n in order], plot)
    parts += plot.x_axis(describe_direction(higher_is_better))
    for place, n in enumerate(order):
        y = _middle(place)
        low, high = intervals[n]
        parts.append(_name(names[n], short[n], y, plot))
        if low == low:
            parts.append(horizontal_line(plot.x(low), plot.x(high), y, "interval"))
        tooltip = f"{names[n]}: {values[n]:z.{decimals}f}"
        if values[n] == values[n]:
            parts.append(circle(plot.x(float(values[n])), y, 4.5, tooltip, class_="dot"))
    description = "; ".join(
        _describe_system(names[n], values[n], intervals[n], decimals, groups[n]) for n in order
    )
    return svg_chart(plot.width, plot.height, f"Systems by {title}", description, parts)


def ridge_chart(
    names: Sequence[str], samples: Sequence[FloatArray], *, title: str, higher_is_better: bool
) -> Markup:
    """Draw the distribution of each system's segment scores with quartiles and median."""
    finite = [values[np.isfinite(values)] for values in samples]
    medians = np.array([np.median(values) if values.size else np.nan for values in finite])
    order = _best_first(medians, higher_is_better)
    short = shorten_names(names, MAX_NAME_LENGTH)
    plot = _plot(short, np.concatenate([*finite, np.zeros(0)]), margin=0.0)
    parts = plot.x_axis(f"segment score, {describe_direction(higher_is_better)}")
    densities = [estimate_density(values, plot.x.low, plot.x.high) for values in finite]
    peak = _peak_height([float(d.max()) for d in densities])
    for place, n in enumerate(order):
        base = _middle(place) + ROW_HEIGHT * 0.36
        parts.append(_name(names[n], short[n], _middle(place), plot))
        parts.append(_outline(np.minimum(densities[n] / peak, 1.0), plot.x, base))
        if finite[n].size:
            parts += _quartiles(finite[n], plot.x, base, names[n])
    description = "; ".join(
        f"{names[n]}: median {medians[n]:.3g}, {finite[n].size} segments" for n in order
    )
    return svg_chart(plot.width, plot.height, f"Distribution of {title}", description, parts)


def _peak_height(peaks: Sequence[float]) -> float:
    """Return the density that fills a row: the highest, but at most twice the median."""
    nonzero = sorted(peak for peak in peaks if peak) or [1.0]
    return min(nonzero[-1], 2 * nonzero[(len(nonzero) - 1) // 2])


def estimate_density(values: FloatArray, low: float, high: float) -> FloatArray:
    """Return a Gaussian kernel density (Silverman's bandwidth), (DENSITY_POINTS,), of mean 1."""
    top = high if high > low else low + 1
    counts, _ = np.histogram(np.clip(values, low, top), bins=DENSITY_POINTS, range=(low, top))
    if not values.size:
        return np.zeros(DENSITY_POINTS)
    step = (high - low) / DENSITY_POINTS or 1.0
    quarter, three = np.percentile(values, [25, 75])
    spread = min(float(values.std()), float(three - quarter) / 1.34) or float(values.std())
    width = max(1.06 * spread * values.size**-0.2 / step, 1.5)
    offsets = np.arange(-DENSITY_POINTS, DENSITY_POINTS + 1)
    kernel = np.exp(-0.5 * (offsets / width) ** 2)
    full = np.convolve(counts, kernel / kernel.sum(), mode="full")
    smooth = full[DENSITY_POINTS : 2 * DENSITY_POINTS]
    total = float(smooth.mean())
    return smooth / total if total else smooth


def _plot(names: Sequence[str], values: FloatArray, *, margin: float = 0.06) -> PlotArea:
    rows = len(names)
    height = rows * ROW_HEIGHT + 52
    low, high = axis_limits(values, margin=margin)
    widest = max(map(cell_width, names), default=0)
    x = Scale(low, high, 18 + LETTER_WIDTH * widest, WIDTH - 12)
    return PlotArea(width=WIDTH, height=height, x=x, y=Scale(0, 1, rows * ROW_HEIGHT + 12, 6))


def _middle(place: int) -> float:
    return 10 + ROW_HEIGHT * (place + 0.5)


def _best_first(values: FloatArray, higher_is_better: bool) -> list[int]:
    signed = -values if higher_is_better else values
    order: list[int] = np.argsort(np.nan_to_num(signed, nan=np.inf), kind="stable").tolist()
    return order


def describe_direction(higher_is_better: bool) -> str:
    """Return whether higher or lower is better, in words."""
    return "higher is better" if higher_is_better else "lower is better"


def _name(name: str, short: str, y: float, plot: PlotArea) -> Markup:
    return name_element(plot.x.start - 10, y + 4, name, short, text_anchor="end")


def _bands(groups: Sequence[int], plot: PlotArea) -> list[Markup]:
    """Return a band behind every other group and a line between groups."""
    parts, start, end = [], plot.x.start - 4, plot.x.end + 6
    for place, group in enumerate(groups):
        top = 10 + ROW_HEIGHT * place
        if group and group % 2:
            parts.append(
                element("rect", x=start, y=top, width=end - start, height=ROW_HEIGHT, class_="band")
            )
        if place and group != groups[place - 1]:
            parts.append(horizontal_line(start, end, top, "border"))
    return parts


def _outline(heights: FloatArray, x: Scale, base: float) -> Markup:
    steps = np.linspace(x.start, x.end, len(heights))
    line = " ".join(
        f"{format_coordinate(float(s))} {format_coordinate(base - float(h) * ROW_HEIGHT * 0.95)}"
        for s, h in zip(steps, heights, strict=True)
    )
    start, end, bottom = map(format_coordinate, (x.start, x.end, base))
    path = f"M{start} {bottom} L{line} L{end} {bottom}Z"
    return element("path", d=path, class_="ridge")


def _quartiles(values: FloatArray, x: Scale, base: float, name: str) -> list[Markup]:
    first, middle, third = (float(v) for v in np.percentile(values, [25, 50, 75]))
    tooltip = f"{name}: median {middle:.3g}, interquartile range {first:.3g} to {third:.3g}"
    return [
        horizontal_line(x(first), x(third), base, "interval"),
        circle(x(middle), base, 3.5, tooltip, class_="dot"),
    ]


def _describe_system(name: str, value: float, limits: FloatArray, decimals: int, group: int) -> str:
    low, high = limits
    text = f"{name} {value:z.{decimals}f}" if value == value else f"{name}: no score"
    if low == low:
        text += f" ({low:z.{decimals}f} to {high:z.{decimals}f})"
    return f"{text}, cluster {group}" if group else text


DOT_CHART_WIDTH, LINE_HEIGHT = 250.0, 18.0  # pixels
MAX_LABEL_LENGTH = 34  # characters of row names and legend entries


def dot_chart(
    rows: Sequence[str],
    series: Sequence[str],
    values: FloatArray,
    *,
    title: str,
    label: str,
    intervals: FloatArray | None = None,
    rule: float | None = None,
    span: tuple[float, float] = (np.nan, np.nan),
    decimals: int = 3,
) -> Markup:
    """Draw a marker per series in each row; `values` are (rows, series), NaN if missing.

    `intervals` (rows, series, 2) are drawn as lines; `rule` is a reference value such as chance;
    `span` is a range that the scale always includes.
    """
    lines = np.full((*values.shape, 2), np.nan) if intervals is None else intervals
    row_height = max(LINE_HEIGHT, 7.0 * len(series))  # the series of a row are stacked
    extra = [*span, np.nan if rule is None else rule]
    scale_values = np.concatenate([values.ravel(), lines.ravel(), extra])
    plot = _dots_plot(rows, len(series), row_height, scale_values, label)
    parts = plot.x_axis(label)
    if rule is not None:
        parts.append(vertical_line(plot.x(rule), plot.y.end, plot.y.start, "fit dashed"))
    for place, (name, short) in enumerate(
        zip(rows, shorten_names(rows, MAX_LABEL_LENGTH), strict=True)
    ):
        top = 10 + row_height * place
        if place:
            parts.append(horizontal_line(plot.x.start, plot.x.end, top, "grid"))
        parts.append(_name(name, short, top + row_height / 2, plot))
        for n, other in enumerate(series):
            y = top + row_height * (n + 1) / (len(series) + 1)
            value, (low, high) = float(values[place, n]), lines[place, n]
            if low == low:
                x1, x2 = plot.x(float(low)), plot.x(float(high))
                parts.append(horizontal_line(x1, x2, y, f"line c{n % COLOR_COUNT}"))
            if value == value:
                tooltip = f"{other}, {name}: {value:z.{decimals}f}"
                parts.append(series_marker(plot.x(value), y, n, tooltip))
    parts += _legend(series, plot)
    description = "; ".join(
        f"{row}: "
        + ", ".join(f"{s} {v:z.{decimals}f}" for s, v in zip(series, own, strict=True) if v == v)
        for row, own in zip(rows, values, strict=True)
    )
    return svg_chart(plot.width, plot.height, title, description, parts)


def _dots_plot(
    rows: Sequence[str], series: int, row_height: float, values: FloatArray, label: str
) -> PlotArea:
    low, high = axis_limits(values, margin=0.06)
    wide = max(
        DOT_CHART_WIDTH, LETTER_WIDTH * cell_width(label) * 0.85
    )  # labels use a smaller font
    left = 18 + LETTER_WIDTH * max(
        map(cell_width, shorten_names(rows, MAX_LABEL_LENGTH)), default=0
    )
    bottom = 12 + row_height * len(rows)
    return PlotArea(
        width=left + wide + 14,
        height=bottom + 46 + LINE_HEIGHT * series,
        x=Scale(low, high, left, left + wide),
        y=Scale(0, 1, bottom, 6),
    )


def _legend(series: Sequence[str], plot: PlotArea) -> list[Markup]:
    parts = []
    top = plot.y.start + 46
    for n, (name, short) in enumerate(
        zip(series, shorten_names(series, MAX_LABEL_LENGTH), strict=True)
    ):
        y = top + LINE_HEIGHT * n
        parts += [series_marker(18, y, n, name), text_element(30, y + 4, short, "name")]
    return parts
