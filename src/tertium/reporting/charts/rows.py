"""Pictures of rows: where systems stand, how their scores are spread, named signs on one scale."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from rich.cells import cell_len

from tertium.arrays import FloatArray
from tertium.reporting.charts.axes import (
    LETTER,
    Panel,
    Scale,
    bounds,
    dot,
    drawing,
    level,
    named,
    upright,
    words,
)
from tertium.reporting.charts.curves import COLOURS, mark
from tertium.reporting.markup import Markup, compact, element
from tertium.reporting.names import short_names

WIDTH, ROW = 360.0, 26.0
LONGEST_NAME = 17  # letters of a name that fit beside a row
POINTS = 80  # of an outline


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
    """Systems from best to worst with their intervals (systems, 2), NaN where there are none.

    Shaded bands are `groups` of systems that cannot be told apart; all 0 for no bands.
    """
    order = _best_first(values, higher_is_better)
    short = short_names(names, LONGEST_NAME)
    plot = _plot(short, np.concatenate([values, intervals.ravel()]))
    parts = _bands([groups[n] for n in order], plot)
    parts += plot.horizontal(direction(higher_is_better))
    for place, n in enumerate(order):
        y = _middle(place)
        low, high = intervals[n]
        parts.append(_name(names[n], short[n], y, plot))
        if low == low:
            parts.append(level(plot.x(low), plot.x(high), y, "interval"))
        shown = f"{names[n]}: {values[n]:z.{decimals}f}"
        if values[n] == values[n]:
            parts.append(dot(plot.x(float(values[n])), y, 4.5, shown, class_="dot"))
    said = "; ".join(
        _in_words(names[n], values[n], intervals[n], decimals, groups[n]) for n in order
    )
    return drawing(plot.width, plot.height, f"Systems by {title}", said, parts)


def ridge_chart(
    names: Sequence[str], samples: Sequence[FloatArray], *, title: str, higher_is_better: bool
) -> Markup:
    """The distribution of each system's segment scores: outline, quartiles and median."""
    known = [values[np.isfinite(values)] for values in samples]
    medians = np.array([np.median(values) if values.size else np.nan for values in known])
    order = _best_first(medians, higher_is_better)
    short = short_names(names, LONGEST_NAME)
    plot = _plot(short, np.concatenate([*known, np.zeros(0)]), margin=0.0)
    parts = plot.horizontal(f"score of a segment, {direction(higher_is_better)}")
    densities = [density(values, plot.x.low, plot.x.high) for values in known]
    tallest = _tallest([float(d.max()) for d in densities])
    for place, n in enumerate(order):
        base = _middle(place) + ROW * 0.36
        parts.append(_name(names[n], short[n], _middle(place), plot))
        parts.append(_outline(np.minimum(densities[n] / tallest, 1.0), plot.x, base))
        if known[n].size:
            parts += _quartiles(known[n], plot.x, base, names[n])
    said = "; ".join(
        f"{names[n]}: median {medians[n]:.3g}, {known[n].size} segments" for n in order
    )
    return drawing(plot.width, plot.height, f"Distribution of {title}", said, parts)


def _tallest(peaks: Sequence[float]) -> float:
    """The peak that fills a row: the highest, but no more than twice that of most rows.

    A system whose scores are all alike, a reference beside itself say, would flatten the others.
    """
    known = sorted(peak for peak in peaks if peak) or [1.0]
    return min(known[-1], 2 * known[(len(known) - 1) // 2])


def density(values: FloatArray, low: float, high: float) -> FloatArray:
    """A smooth histogram of values between two bounds, (POINTS,), its mean 1.

    The kernel is Silverman's, at least one and a half steps wide.
    """
    top = high if high > low else low + 1
    counts, _ = np.histogram(np.clip(values, low, top), bins=POINTS, range=(low, top))
    if not values.size:
        return np.zeros(POINTS)
    step = (high - low) / POINTS or 1.0
    quarter, three = np.percentile(values, [25, 75])
    spread = min(float(values.std()), float(three - quarter) / 1.34) or float(values.std())
    width = max(1.06 * spread * values.size**-0.2 / step, 1.5)
    reach = np.arange(-POINTS, POINTS + 1)
    kernel = np.exp(-0.5 * (reach / width) ** 2)
    full = np.convolve(counts, kernel / kernel.sum(), mode="full")
    smooth = full[POINTS : 2 * POINTS]  # the part over the counts
    total = float(smooth.mean())
    return smooth / total if total else smooth


def _plot(names: Sequence[str], values: FloatArray, *, margin: float = 0.06) -> Panel:
    rows = len(names)
    height = rows * ROW + 52
    low, high = bounds(values, margin=margin)
    widest = max(map(cell_len, names), default=0)
    x = Scale(low, high, 18 + LETTER * widest, WIDTH - 12)
    return Panel(width=WIDTH, height=height, x=x, y=Scale(0, 1, rows * ROW + 12, 6))


def _middle(place: int) -> float:
    return 10 + ROW * (place + 0.5)


def _best_first(values: FloatArray, higher_is_better: bool) -> list[int]:
    signed = -values if higher_is_better else values
    order: list[int] = np.argsort(np.nan_to_num(signed, nan=np.inf), kind="stable").tolist()
    return order


def direction(higher_is_better: bool) -> str:
    """Which way a metric goes, in words."""
    return "higher is better" if higher_is_better else "lower is better"


def _name(name: str, short: str, y: float, plot: Panel) -> Markup:
    return named(plot.x.start - 10, y + 4, name, short, text_anchor="end")


def _bands(groups: Sequence[int], plot: Panel) -> list[Markup]:
    """A shade behind every other group, in the order drawn, and a rule between any two."""
    parts, start, end = [], plot.x.start - 4, plot.x.end + 6
    for place, group in enumerate(groups):
        top = 10 + ROW * place
        if group and group % 2:
            parts.append(
                element("rect", x=start, y=top, width=end - start, height=ROW, class_="band")
            )
        if place and group != groups[place - 1]:
            parts.append(level(start, end, top, "border"))
    return parts


def _outline(heights: FloatArray, x: Scale, base: float) -> Markup:
    steps = np.linspace(x.start, x.end, len(heights))
    line = " ".join(
        f"{compact(float(s))} {compact(base - float(h) * ROW * 0.95)}"
        for s, h in zip(steps, heights, strict=True)
    )
    path = f"M{compact(x.start)} {compact(base)} L{line} L{compact(x.end)} {compact(base)}Z"
    return element("path", d=path, class_="ridge")


def _quartiles(values: FloatArray, x: Scale, base: float, name: str) -> list[Markup]:
    first, middle, third = (float(v) for v in np.percentile(values, [25, 50, 75]))
    shown = f"{name}: median {middle:.3g}, half of the segments from {first:.3g} to {third:.3g}"
    return [
        level(x(first), x(third), base, "interval"),
        dot(x(middle), base, 3.5, shown, class_="dot"),
    ]


def _in_words(name: str, value: float, bounds: FloatArray, decimals: int, group: int) -> str:
    low, high = bounds
    text = f"{name} {value:z.{decimals}f}" if value == value else f"{name}: no score"
    if low == low:
        text += f" ({low:z.{decimals}f} to {high:z.{decimals}f})"
    return f"{text}, cluster {group}" if group else text


PLOT, LINE = 250.0, 18.0  # pixels of the scale, of a row and of a line of the legend
LONGEST = 34  # letters of a name beside a row or in the legend


def dots_chart(
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
    """A sign for each series in each row; `values` are (rows, series), NaN where there is none.

    `intervals` (rows, series, 2) are drawn as lines; `rule` is a value to compare with, chance say;
    `span` are values that the scale holds in any case.
    """
    lines = np.full((*values.shape, 2), np.nan) if intervals is None else intervals
    tall = max(LINE, 7.0 * len(series))  # of a row: intervals lie below each other
    extra = [*span, np.nan if rule is None else rule]
    known = np.concatenate([values.ravel(), lines.ravel(), extra])
    plot = _dots_plot(rows, len(series), tall, known, label)
    parts = plot.horizontal(label)
    if rule is not None:
        parts.append(upright(plot.x(rule), plot.y.end, plot.y.start, "fit dashed"))
    for place, (name, short) in enumerate(zip(rows, short_names(rows, LONGEST), strict=True)):
        top = 10 + tall * place
        if place:
            parts.append(level(plot.x.start, plot.x.end, top, "grid"))
        parts.append(_name(name, short, top + tall / 2, plot))
        for n, other in enumerate(series):
            y = top + tall * (n + 1) / (len(series) + 1)
            value, (low, high) = float(values[place, n]), lines[place, n]
            if low == low:
                x1, x2 = plot.x(float(low)), plot.x(float(high))
                parts.append(level(x1, x2, y, f"line c{n % COLOURS}"))
            if value == value:
                shown = f"{other}, {name}: {value:z.{decimals}f}"
                parts.append(mark(plot.x(value), y, n, shown))
    parts += _legend(series, plot)
    said = "; ".join(
        f"{row}: "
        + ", ".join(f"{s} {v:z.{decimals}f}" for s, v in zip(series, own, strict=True) if v == v)
        for row, own in zip(rows, values, strict=True)
    )
    return drawing(plot.width, plot.height, title, said, parts)


def _dots_plot(
    rows: Sequence[str], series: int, tall: float, values: FloatArray, label: str
) -> Panel:
    low, high = bounds(values, margin=0.06)
    wide = max(PLOT, LETTER * cell_len(label) * 0.85)  # a label is set a little smaller
    left = 18 + LETTER * max(map(cell_len, short_names(rows, LONGEST)), default=0)
    bottom = 12 + tall * len(rows)
    return Panel(
        width=left + wide + 14,
        height=bottom + 46 + LINE * series,
        x=Scale(low, high, left, left + wide),
        y=Scale(0, 1, bottom, 6),
    )


def _legend(series: Sequence[str], plot: Panel) -> list[Markup]:
    parts = []
    top = plot.y.start + 46
    for n, (name, short) in enumerate(zip(series, short_names(series, LONGEST), strict=True)):
        y = top + LINE * n
        parts += [mark(18, y, n, name), words(30, y + 4, short, "name")]
    return parts
