"""Pictures with a row for each system: where it stands, and how its scores are spread."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tertium.arrays import FloatArray
from tertium.reporting.charts.axes import LETTER, Panel, Scale, bounds, drawing
from tertium.reporting.markup import Markup, compact, element
from tertium.reporting.names import letters, short_names

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
    parts += plot.horizontal(_direction(higher_is_better))
    for place, n in enumerate(order):
        y = _middle(place)
        low, high = intervals[n]
        parts.append(_name(names[n], short[n], y, plot))
        if low == low:
            parts.append(
                element("line", x1=plot.x(low), x2=plot.x(high), y1=y, y2=y, class_="interval")
            )
        shown = f"{names[n]}: {values[n]:.{decimals}f}"
        if values[n] == values[n]:
            parts.append(
                element(
                    "circle",
                    element("title", shown),
                    cx=plot.x(float(values[n])),
                    cy=y,
                    r=4.5,
                    class_="dot",
                )
            )
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
    parts = plot.horizontal(f"score of a segment, {_direction(higher_is_better)}")
    densities = [density(values, plot.x.low, plot.x.high) for values in known]
    tallest = max((float(d.max()) for d in densities), default=1.0) or 1.0
    for place, n in enumerate(order):
        base = _middle(place) + ROW * 0.36
        parts.append(_name(names[n], short[n], _middle(place), plot))
        parts.append(_outline(densities[n] / tallest, plot.x, base))
        if known[n].size:
            parts += _quartiles(known[n], plot.x, base, names[n])
    said = "; ".join(
        f"{names[n]}: median {medians[n]:.3g}, {known[n].size} segments" for n in order
    )
    return drawing(plot.width, plot.height, f"Distribution of {title}", said, parts)


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
    result: FloatArray = smooth / total if total else smooth
    return result


def _plot(names: Sequence[str], values: FloatArray, *, margin: float = 0.06) -> Panel:
    rows = len(names)
    height = rows * ROW + 52
    low, high = bounds(values, margin=margin)
    widest = max(map(letters, names), default=0)
    x = Scale(low, high, 18 + LETTER * widest, WIDTH - 12)
    return Panel(width=WIDTH, height=height, x=x, y=Scale(0, 1, rows * ROW + 12, 6))


def _middle(place: int) -> float:
    return 10 + ROW * (place + 0.5)


def _best_first(values: FloatArray, higher_is_better: bool) -> list[int]:
    signed = -values if higher_is_better else values
    order: list[int] = np.argsort(np.nan_to_num(signed, nan=np.inf), kind="stable").tolist()
    return order


def _direction(higher_is_better: bool) -> str:
    return "higher is better" if higher_is_better else "lower is better"


def _name(name: str, short: str, y: float, plot: Panel) -> Markup:
    text = element(
        "text",
        element("title", name),
        short,
        x=plot.x.start - 10,
        y=y + 4,
        class_="name",
        text_anchor="end",
    )
    return text


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
            parts.append(element("line", x1=start, x2=end, y1=top, y2=top, class_="border"))
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
        element("line", x1=x(first), x2=x(third), y1=base, y2=base, class_="interval"),
        element("circle", element("title", shown), cx=x(middle), cy=base, r=3.5, class_="dot"),
    ]


def _in_words(name: str, value: float, bounds: FloatArray, decimals: int, group: int) -> str:
    low, high = bounds
    text = f"{name} {value:.{decimals}f}"
    if low == low:
        text += f" ({low:.{decimals}f} to {high:.{decimals}f})"
    return f"{text}, cluster {group}" if group else text
