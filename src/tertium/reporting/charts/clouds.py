"""Pictures of two numbers: a dot for each translation, or shades where there are very many.

A correlation hides outliers, ceilings and clusters by system; what a metric says against what
people say shows them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from tertium.arrays import FloatArray, IntArray
from tertium.atomic import check_writable
from tertium.errors import DataError, UsageError
from tertium.meta.correlation import correlate
from tertium.meta.judged import JudgedSet
from tertium.reporting.charts.axes import MANY, Panel, bounds, dot, drawing, panel
from tertium.reporting.charts.standalone import Captioned, write_picture
from tertium.reporting.markup import Markup, compact, element

DOTS = MANY  # more than these become shades
CELLS = 34  # of the shades, on either side
STEPS = 5  # of darkness
PALEST = 0.45  # has a contrast of 2 with the paper
BUCKETS = 8  # of lengths
OUTERMOST = 5  # translations that are named below a picture


@dataclass(frozen=True, kw_only=True, eq=False)
class Axis:
    """One of the two numbers: what it is called, and its value of each translation."""

    name: str
    values: FloatArray


def cloud_chart(
    x: Axis,
    y: Axis,
    *,
    fit: bool = False,
    names: Sequence[str] = (),
    label: Callable[[int], str] = "row {}".format,
) -> Markup:
    """Two numbers of the same translations, with the least-squares line where asked for.

    A dot carries its name where there are `names`, else the row it stands for, so that a page can
    show the translation behind it; `label` says which one that is.
    """
    known = np.isfinite(x.values) & np.isfinite(y.values)
    a, b = x.values[known], y.values[known]
    plot = panel(bounds(a), bounds(b))
    parts = [*plot.horizontal(x.name), *plot.vertical(y.name)]
    rows = np.flatnonzero(known)
    if names:
        cells = zip(a, b, rows, strict=True)
        dots = [dot(plot.x(float(x)), plot.y(float(y)), 4.5, names[int(n)]) for x, y, n in cells]
        parts.append(element("g", *dots, class_="dots"))
    else:
        parts += _translations(a, b, rows, plot, label)
    if fit:
        parts += _fit(a, b, plot)
    title = f"{y.name} against {x.name}"
    return drawing(plot.width, plot.height, title, describe(a, b), parts)


def length_chart(
    length: Axis, score: Axis, *, label: Callable[[int], str] = "row {}".format
) -> Markup:
    """Scores against the length of a translation, with median and quartiles of each bucket."""
    known = np.isfinite(score.values)
    lengths, values = length.values[known], score.values[known]
    plot = panel(bounds(lengths), bounds(values))
    rows = np.flatnonzero(known)
    parts = [*plot.horizontal(length.name), *plot.vertical(score.name)]
    parts += _translations(lengths, values, rows, plot, label)
    middles, quarters = buckets(lengths, values)
    if middles:
        lower, line, upper = ([*zip(middles, q, strict=True)] for q in zip(*quarters, strict=True))
        band = _points([*upper, *reversed(lower)], plot)
        parts.append(element("polygon", points=band, class_="spread"))
        parts.append(element("polyline", points=_points(line, plot), class_="fit"))
    title = f"{score.name} against length"
    return drawing(plot.width, plot.height, title, describe(lengths, values), parts)


def correlation(a: FloatArray, b: FloatArray) -> float:
    """Pearson's r of the pairs that are known; NaN where it is not defined.

    >>> correlation(np.array([1.0, 2, np.nan]), np.array([2.0, 4, 5]))
    1.0
    """
    return float(correlate(a, b, np.isfinite(a) & np.isfinite(b)))


def describe(a: FloatArray, b: FloatArray) -> str:
    """How close two numbers go together where both are known, in words."""
    r, n = correlation(a, b), int((np.isfinite(a) & np.isfinite(b)).sum())
    return f"r = {r:z.3f}, n = {n:,}" if r == r else f"n = {n:,}"


def darkest(x: FloatArray, y: FloatArray) -> int:
    """The number of translations that the darkest shade stands for; 0 where they are dots."""
    known = np.isfinite(x) & np.isfinite(y)
    if known.sum() <= DOTS:
        return 0
    counts, _, _ = _count_cells(x[known], y[known], bounds(x[known]), bounds(y[known]))
    return int(counts.max())


def outermost(x: FloatArray, y: FloatArray) -> list[int]:
    """The rows farthest from the middle, by Mahalanobis's distance: off the trend is far.

    >>> x = np.array([1.0, 2, 3, 4, 5, 6, 7])
    >>> outermost(x, np.array([1.0, 2, 3, 9, 5, 6, 7]))[0]
    3
    """
    rows = np.flatnonzero(np.isfinite(x) & np.isfinite(y))
    if len(rows) < 2:
        return [int(row) for row in rows]
    places = np.stack([x[rows], y[rows]])  # (2, known)
    places = places - places.mean(axis=1, keepdims=True)
    places /= np.maximum(places.std(axis=1, keepdims=True), 1e-12)  # all may be equal on an axis
    inverse = np.linalg.pinv(places @ places.T / len(rows))
    far = np.einsum("in,ij,jn->n", places, inverse, places)
    return [int(rows[n]) for n in np.argsort(-far, kind="stable")[:OUTERMOST]]


def buckets(lengths: FloatArray, values: FloatArray) -> tuple[list[float], list[FloatArray]]:
    """Translations in equal shares by length: the median length, and the quartiles of the values.

    Translations of one length stay together, so there may be fewer buckets.
    """
    if len(lengths) < 2 * BUCKETS:
        return [], []
    edges = np.unique(np.quantile(lengths, np.linspace(0, 1, BUCKETS + 1)))
    place = np.clip(np.searchsorted(edges, lengths, side="right") - 1, 0, max(len(edges) - 2, 0))
    groups = [place == n for n in range(max(len(edges) - 1, 1))]
    kept = [mask for mask in groups if mask.sum() >= 3]
    middles = [float(np.median(lengths[mask])) for mask in kept]
    return middles, [np.percentile(values[mask], [25, 50, 75]) for mask in kept]


def _translations(
    a: FloatArray, b: FloatArray, rows: IntArray, plot: Panel, label: Callable[[int], str]
) -> list[Markup]:
    """A dot for each translation that names it, or shades where there are very many."""
    if len(a) > DOTS:
        return _shades(a, b, plot)
    dots = []
    for x, y, row in zip(a, b, rows, strict=True):
        title = f"{label(int(row))}: {x:.3g} / {y:.3g}"
        dots.append(dot(plot.x(float(x)), plot.y(float(y)), 3, title, data_row=int(row)))
    return [element("g", *dots, class_="dots")]


def _count_cells(
    a: FloatArray, b: FloatArray, x: tuple[float, float], y: tuple[float, float]
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """How many translations each cell holds, and its edges; what lies beyond counts at the edge."""
    counts, xs, ys = np.histogram2d(np.clip(a, *x), np.clip(b, *y), bins=CELLS, range=[x, y])
    return counts, xs, ys


def _shades(a: FloatArray, b: FloatArray, plot: Panel) -> list[Markup]:
    """Cells shaded by how many translations they hold, one path for each step of darkness."""
    x, y = (plot.x.low, plot.x.high), (plot.y.low, plot.y.high)
    counts, xs, ys = _count_cells(a, b, x, y)
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
        opacity = PALEST + (1 - PALEST) * (step - 1) / (STEPS - 1)
        if cells:
            parts.append(element("path", d=cells, class_="shade", opacity=opacity))
    return parts


def _fit(a: FloatArray, b: FloatArray, plot: Panel) -> list[Markup]:
    """The least-squares line over the values known, as far as it runs inside the plot."""
    if correlation(a, b) != correlation(a, b):
        return []
    slope, start = (float(v) for v in np.polyfit(a, b, 1))
    left, right = max(float(a.min()), plot.x.low), min(float(a.max()), plot.x.high)
    if slope:
        below, above = sorted((edge - start) / slope for edge in (plot.y.low, plot.y.high))
        left, right = max(left, below), min(right, above)
    if left >= right:
        return []
    ends = [(x, start + slope * x) for x in (left, right)]
    return [element("polyline", points=_points(ends, plot), class_="fit")]


def _points(places: list[tuple[float, float]], plot: Panel) -> str:
    low, high = plot.y.low, plot.y.high
    return " ".join(
        f"{compact(plot.x(x))},{compact(plot.y(min(max(y, low), high)))}" for x, y in places
    )


LARGEST = 120  # panels in one figure


def check_plot(path: str | Path) -> None:
    """Refuse a file that could not be written, before the work and not after it."""
    if Path(path).suffix.lower() != ".svg":
        raise UsageError(f"{path}: a plot is written as .svg")
    check_writable(path)


def scatter(
    sets: Sequence[JudgedSet], *, level: str = "segment", turned: Collection[str] = ()
) -> list[list[Captioned]]:
    """A row of captioned pictures for each metric with a column for each judged set.

    Metrics that were turned over, so that more is better, stand with a minus.
    """
    metrics = list(dict.fromkeys(m for judged in sets for m in judged.metrics))
    if not metrics or not sets:
        raise DataError("there is nothing to plot: no metric, or no judged set")
    if len(metrics) * len(sets) > LARGEST:
        raise UsageError(
            f"{len(metrics)} metrics x {len(sets)} sets are too many panels for one figure "
            f"(at most {LARGEST}): plot fewer"
        )
    names = {metric: f"−{metric}" if metric in turned else metric for metric in metrics}
    return [[_draw(judged, m, names[m], level) for judged in sets] for m in metrics]


def write_scatter(path: str | Path, sets: Sequence[JudgedSet], **choices: Any) -> None:
    """Draw and write, with the choices of `scatter`; equal data give equal files."""
    check_plot(path)
    write_picture(path, scatter(sets, **choices))


def _draw(judged: JudgedSet, metric: str, title: str, level: str) -> Captioned:
    nothing = np.zeros(0)
    if metric not in judged.metrics:
        empty = cloud_chart(Axis(name="human", values=nothing), Axis(name=title, values=nothing))
        return f"{judged.name}: not scored", empty
    number = judged.metrics.index(metric)
    x, y = judged.human, judged.scores[number]
    names: Sequence[str] = ()
    if level == "system":
        x, y, names = judged.human_systems, judged.system_scores[number], judged.systems
    x, y = x.ravel(), y.ravel()
    chart = cloud_chart(
        Axis(name="human", values=x), Axis(name=title, values=y), fit=True, names=names
    )
    return f"{judged.name}  {describe(x, y)}", chart
