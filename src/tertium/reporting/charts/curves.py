"""Learning curves as lines and ablations as bars, both with their spread over seeds."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from rich.cells import cell_len

from tertium.meta.curves import Curve, Point
from tertium.reporting.charts.axes import (
    LETTER,
    Panel,
    Scale,
    bounds,
    drawing,
    level,
    named,
    panel,
    upright,
    words,
)
from tertium.reporting.markup import Markup, compact, element
from tertium.reporting.names import short_names

COLOURS = 8  # of lines, then they repeat; their marks differ as well
WIDTH, HEIGHT = 298.0, 280.0  # of the plot without names, of a picture of few lines
LINE = 13.0  # pixels between two names at the ends of lines
BAR = 22.0
LONGEST = 26, 42  # letters of a test set's name beside a line, of a setting's beside a bar
ALL = "all"


def curve_chart(curve: Curve, title: str) -> Markup:
    """Lines over growing data where sizes are numbers, bars where settings are names."""
    points = curve.points()
    growing = all(point.setting == str(point.size) for point in points)
    return lines_chart(points, title) if growing else bars_chart(points, title)


def lines_chart(points: Sequence[Point], title: str) -> Markup:
    """A line for each test set over the number of examples, on a logarithmic scale."""
    tests = list(dict.fromkeys(point.test for point in points))
    short = short_names(tests, LONGEST[0])
    spread = np.array([[p.low, p.high] for p in points]).ravel()
    height = max(HEIGHT, LINE * len(tests) + 60)
    lower = bounds(np.log10([point.size for point in points]))
    plot = panel(lower, bounds(spread), width=WIDTH + 62, height=height)
    sizes = {float(np.log10(size)): f"{size:,}" for size in sorted({p.size for p in points})}
    parts = [*plot.horizontal("training examples", sizes), *plot.vertical("agreement")]
    ends = []
    for n, test in enumerate(tests):
        own = sorted((p for p in points if p.test == test), key=lambda p: p.size)
        known = [p for p in own if p.mean == p.mean]
        parts += _line(known, plot, n)
        if known:
            ends.append((plot.y(known[-1].mean), n))
    parts += line_names(ends, tests, short, plot)
    said = "; ".join(f"{p.test} with {p.size} examples: {p.mean:z.3f}" for p in points)
    width = plot.width + 18 + LETTER * max(map(cell_len, short), default=0)
    return drawing(width, height, title, said, parts)


def bars_chart(points: Sequence[Point], title: str) -> Markup:
    """A bar for each setting below its test set, with what it loses or gains against all parts."""
    tests = list(dict.fromkeys(point.test for point in points))
    ordered = sorted(points, key=lambda p: tests.index(p.test))
    settings = list(dict.fromkeys(point.setting for point in points))
    short = dict(zip(settings, short_names(settings, LONGEST[1]), strict=True))
    rows = len(points) + len(tests)
    full = {point.test: point.mean for point in points if point.setting == ALL}
    low, high = bounds(np.array([[p.mean, p.low, p.high] for p in points]).ravel())
    left = 18 + LETTER * max(map(cell_len, short.values()), default=0)
    x = Scale(min(low, 0.0), max(high, 0.0), left, left + 200)
    height = rows * BAR + 52
    plot = Panel(width=left + 270, height=height, x=x, y=Scale(0, 1, rows * BAR + 12, 6))
    parts = plot.horizontal("agreement")
    for place, point in enumerate(ordered):
        before = tests.index(point.test) + 1  # headings above the bar
        if not place or ordered[place - 1].test != point.test:
            (heading,) = short_names([point.test], int(plot.width / LETTER) - 2)
            y = 10 + BAR * (place + before - 0.5) + 5  # over the whole width, above its bars
            parts.append(named(6, y, point.test, heading, font_weight=600))
        parts += _bar(point, short[point.setting], place + before, plot, full.get(point.test))
    said = "; ".join(f"{p.setting} on {p.test}: {p.mean:z.3f}" for p in ordered)
    return drawing(plot.width, height, title, said, parts)


def _line(points: Sequence[Point], plot: Panel, number: int) -> list[Markup]:
    def place(point: Point, value: float) -> tuple[float, float]:
        return plot.x(float(np.log10(point.size))), plot.y(value)

    colour = f"c{number % COLOURS}"
    line = " ".join(",".join(map(compact, place(p, p.mean))) for p in points)
    parts = [element("polyline", points=line, class_=f"line {colour}")]
    for p in points:
        x, y = place(p, p.mean)
        parts.append(upright(x, plot.y(p.low), plot.y(p.high), f"seeds {colour}"))
        shown = f"{p.test}, {p.size:,} examples: {p.mean:z.4f} ({p.runs} runs)"
        parts.append(mark(x, y, number, shown))
    return parts


def mark(x: float, y: float, number: int, shown: str) -> Markup:
    """A sign that tells lines apart without their colour: disc, square, diamond, triangle."""
    shapes = (
        "M-4 0a4 4 0 1 0 8 0a4 4 0 1 0 -8 0z",
        "M-3.6 -3.6h7.2v7.2h-7.2z",
        "M0 -5L5 0L0 5L-5 0z",
        "M0 -5L4.6 3.6H-4.6z",
    )
    # Colours repeat after eight lines: the next sign goes with them then.
    shape = shapes[(number + number // COLOURS) % len(shapes)]
    return element(
        "path",
        element("title", shown),
        d=shape,
        class_=f"mark c{number % COLOURS}",
        transform=f"translate({compact(x)} {compact(y)})",
    )


def line_names(
    ends: Sequence[tuple[float, int]], names: Sequence[str], short: Sequence[str], plot: Panel
) -> list[Markup]:
    """Names at the ends of lines behind their signs, moved apart where they would cover each other.

    Where the last would then stand below the plot, those above it move up.
    """
    parts = []
    ordered = sorted(ends)
    places = space_out([y for y, _ in ordered], plot.y.start)
    for (_, n), y in zip(ordered, places, strict=True):
        parts.append(mark(plot.x.end + 10, y, n, names[n]))
        parts.append(named(plot.x.end + 20, y + 4, names[n], short[n]))
    return parts


def space_out(places: Sequence[float], last: float) -> list[float]:
    """Ascending places moved so that they are a line apart, none beyond the last.

    >>> space_out([10, 12, 50, 51], 58)
    [10, 23.0, 45.0, 58]
    """
    moved: list[float] = []
    for place in places:
        moved.append(max(place, moved[-1] + LINE) if moved else place)
    for n in range(len(moved) - 1, -1, -1):
        moved[n] = min(moved[n], moved[n + 1] - LINE if n + 1 < len(moved) else last)
    return moved


def _bar(point: Point, name: str, place: int, plot: Panel, full: float | None) -> list[Markup]:
    top = 10 + BAR * place
    middle = top + BAR / 2
    whole = point.setting == ALL
    parts = [named(plot.x.start - 8, middle + 4, point.setting, name, text_anchor="end")]
    if point.mean != point.mean:
        return [*parts, words(plot.x.end + 8, middle + 4, "–", "tick")]
    zero, end = plot.x(0.0), plot.x(point.mean)
    shown = f"{point.setting}, {point.test}: {point.mean:z.4f}"
    parts.append(
        element(
            "rect",
            element("title", shown),
            x=min(zero, end),
            y=top + 3,
            width=abs(end - zero),
            height=BAR - 6,
            class_="bar whole" if whole else "bar",
        )
    )
    if point.low < point.high:
        parts.append(level(plot.x(point.low), plot.x(point.high), middle, "interval"))
    text = f"{point.mean:z.3f}"
    if full is not None and full == full and not whole:
        text = f"{point.mean - full:+z.3f}"
    parts.append(words(plot.x.end + 8, middle + 4, text, "tick"))
    return parts
