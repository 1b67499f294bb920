"""Pictures of two numbers: a dot for each translation, or shades where there are very many."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tertium.report.axes import MANY, Panel, bounds, drawing, panel
from tertium.report.markup import Markup, compact, element
from tertium.scores import FloatArray

DOTS = MANY  # more than these become shades
CELLS = 34  # of the shades, on either side
STEPS = 5  # of darkness
BUCKETS = 8  # of lengths

IntArray = NDArray[np.int64]


@dataclass(frozen=True, kw_only=True, eq=False)
class Axis:
    """One of the two numbers: what it is called, and its value of each translation."""

    name: str
    values: FloatArray


def cloud_chart(x: Axis, y: Axis, *, fit: bool = False, names: Sequence[str] = ()) -> Markup:
    """Two numbers of the same translations, with the least-squares line where asked for.

    A dot carries its name where there are `names`, else the row it stands for, so that a page can
    show the translation behind it.
    """
    known = np.isfinite(x.values) & np.isfinite(y.values)
    a, b = x.values[known], y.values[known]
    plot = panel(bounds(a), bounds(b))
    parts = [*plot.horizontal(x.name), *plot.vertical(y.name)]
    rows = np.flatnonzero(known)
    if names:
        parts += _named_dots(a, b, [names[int(n)] for n in rows], plot)
    else:
        parts += _dots(a, b, rows, plot) if len(a) <= DOTS else _shades(a, b, plot)
    if fit:
        parts += _fit(a, b, plot)
    title = f"{y.name} against {x.name}"
    return drawing(plot.width, plot.height, title, described(a, b), parts)


def length_chart(lengths: FloatArray, score: Axis) -> Markup:
    """Scores against the length of a translation, with median and quartiles of each bucket."""
    known = np.isfinite(score.values)
    words, values = lengths[known], score.values[known]
    plot = panel(bounds(words), bounds(values))
    rows = np.flatnonzero(known)
    parts = [*plot.horizontal("words of the translation"), *plot.vertical(score.name)]
    parts += (
        _dots(words, values, rows, plot) if len(words) <= DOTS else _shades(words, values, plot)
    )
    middles, quarters = buckets(words, values)
    if len(middles):
        upper = [(m, q[2]) for m, q in zip(middles, quarters, strict=True)]
        lower = [(m, q[0]) for m, q in zip(middles, quarters, strict=True)]
        parts.append(
            element("polygon", points=_points([*upper, *reversed(lower)], plot), class_="spread")
        )
        line = [(m, q[1]) for m, q in zip(middles, quarters, strict=True)]
        parts.append(element("polyline", points=_points(line, plot), class_="fit"))
    title = f"{score.name} against length"
    return drawing(plot.width, plot.height, title, described(words, values), parts)


def correlation(a: FloatArray, b: FloatArray) -> float:
    """Pearson's r of the pairs that are known; NaN where it is not defined.

    >>> correlation(np.array([1.0, 2, np.nan]), np.array([2.0, 4, 5]))
    1.0
    """
    known = np.isfinite(a) & np.isfinite(b)
    x, y = a[known], b[known]
    if len(x) < 2 or np.ptp(x) == 0 or np.ptp(y) == 0:
        return float("nan")
    x, y = x - x.mean(), y - y.mean()
    return float(x @ y / np.sqrt((x @ x) * (y @ y)))


def described(a: FloatArray, b: FloatArray) -> str:
    """How close two numbers go together, in words."""
    r = correlation(a, b)
    return f"r = {r:.3f}, n = {len(a):,}" if r == r else f"n = {len(a):,}"


def buckets(words: FloatArray, values: FloatArray) -> tuple[list[float], list[FloatArray]]:
    """Translations in equal shares by length: the median length, and the quartiles of the values.

    Translations of one length stay together, so there may be fewer buckets.
    """
    if len(words) < 2 * BUCKETS:
        return [], []
    edges = np.unique(np.quantile(words, np.linspace(0, 1, BUCKETS + 1)))
    place = np.clip(np.searchsorted(edges, words, side="right") - 1, 0, max(len(edges) - 2, 0))
    groups = [place == n for n in range(max(len(edges) - 1, 1))]
    kept = [mask for mask in groups if mask.sum() >= 3]
    middles = [float(np.median(words[mask])) for mask in kept]
    return middles, [np.percentile(values[mask], [25, 50, 75]) for mask in kept]


def _named_dots(
    a: FloatArray, b: FloatArray, names: Sequence[str], plot: Panel
) -> list[Markup]:
    dots = [
        element("circle", element("title", name), cx=plot.x(float(x)), cy=plot.y(float(y)), r=4.5)
        for x, y, name in zip(a, b, names, strict=True)
    ]
    return [element("g", *dots, class_="dots")]


def _dots(a: FloatArray, b: FloatArray, rows: IntArray, plot: Panel) -> list[Markup]:
    dots = [
        element("circle", cx=plot.x(float(x)), cy=plot.y(float(y)), r=3, data_row=int(row))
        for x, y, row in zip(a, b, rows, strict=True)
    ]
    return [element("g", *dots, class_="dots")]


def _shades(a: FloatArray, b: FloatArray, plot: Panel) -> list[Markup]:
    """Cells shaded by how many translations they hold, one path for each step of darkness."""
    ranges = [[plot.x.low, plot.x.high], [plot.y.low, plot.y.high]]
    # What lies beyond the frame is drawn at its edge.
    x = np.clip(a, plot.x.low, plot.x.high)
    y = np.clip(b, plot.y.low, plot.y.high)
    counts, xs, ys = np.histogram2d(x, y, bins=CELLS, range=ranges)
    wide = plot.x(float(xs[1])) - plot.x(float(xs[0]))
    high = plot.y(float(ys[0])) - plot.y(float(ys[1]))
    # Steps on a log scale: a cell of one is still seen beside a cell of a thousand.
    level = np.ceil(STEPS * np.log1p(counts) / np.log1p(counts.max())).astype(int)
    parts = []
    for step in range(1, STEPS + 1):
        cells = "".join(
            f"M{compact(plot.x(float(xs[i])))} {compact(plot.y(float(ys[j + 1])))}"
            f"h{compact(wide)}v{compact(high)}h-{compact(wide)}z"
            for i, j in zip(*np.nonzero(level == step), strict=True)
        )
        if cells:
            parts.append(element("path", d=cells, class_="shade", opacity=step / STEPS))
    return parts


def _fit(a: FloatArray, b: FloatArray, plot: Panel) -> list[Markup]:
    if correlation(a, b) != correlation(a, b):
        return []
    slope, start = np.polyfit(a, b, 1)
    ends = [(float(x), float(start + slope * x)) for x in (a.min(), a.max())]
    return [element("polyline", points=_points(ends, plot), class_="fit")]


def _points(places: list[tuple[float, float]], plot: Panel) -> str:
    low, high = plot.y.low, plot.y.high
    return " ".join(
        f"{compact(plot.x(x))},{compact(plot.y(min(max(y, low), high)))}" for x, y in places
    )
