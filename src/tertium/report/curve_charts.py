"""Learning curves as lines and ablations as bars, both with their spread over seeds."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tertium.meta.curves import Curve, Point
from tertium.report.axes import Panel, Scale, bounds, drawing, words
from tertium.report.markup import Markup, compact, element

COLOURS = 8  # of lines, then they repeat; their marks differ as well
WIDTH, HEIGHT = 460.0, 280.0
BAR = 22.0
ALL = "all"


def curve_chart(curve: Curve, title: str) -> Markup:
    """Lines over growing data where sizes are numbers, bars where settings are names."""
    points = curve.points()
    growing = all(point.setting == str(point.size) for point in points)
    return lines_chart(points, title) if growing else bars_chart(points, title)


def lines_chart(points: Sequence[Point], title: str) -> Markup:
    """A line for each test set over the number of examples, on a logarithmic scale."""
    tests = list(dict.fromkeys(point.test for point in points))
    sizes = np.log10([point.size for point in points])
    spread = np.array([[p.low, p.high] for p in points]).ravel()
    low, high = bounds(sizes)
    plot = Panel(
        width=WIDTH, height=HEIGHT, x=Scale(low, high, 52, WIDTH - 110),
        y=Scale(*bounds(spread), HEIGHT - 42, 10),
    )  # fmt: skip
    parts = [*_sizes(plot, points), *plot.vertical("agreement")]
    ends = []
    for n, test in enumerate(tests):
        own = sorted((p for p in points if p.test == test), key=lambda p: p.size)
        parts += _line(own, plot, n % COLOURS)
        ends.append((plot.y(own[-1].mean), test, n % COLOURS))
    parts += _line_names(ends, plot)
    said = "; ".join(f"{p.test} with {p.size} examples: {p.mean:.3f}" for p in points)
    return drawing(WIDTH, HEIGHT, title, said, parts)


def bars_chart(points: Sequence[Point], title: str) -> Markup:
    """A bar for each setting, with what it loses or gains against all parts together."""
    height = len(points) * BAR + 52
    full = {point.test: point.mean for point in points if point.setting == ALL}
    values = np.array([[p.mean, p.low, p.high] for p in points]).ravel()
    low, high = bounds(values)
    x = Scale(min(low, 0.0), max(high, 0.0), 190, WIDTH - 70)
    plot = Panel(width=WIDTH, height=height, x=x, y=Scale(0, 1, len(points) * BAR + 12, 6))
    parts = plot.horizontal("agreement")
    for place, point in enumerate(points):
        parts += _bar(point, place, plot, full.get(point.test))
    said = "; ".join(f"{p.setting} on {p.test}: {p.mean:.3f}" for p in points)
    return drawing(WIDTH, height, title, said, parts)


def _sizes(plot: Panel, points: Sequence[Point]) -> list[Markup]:
    """The numbers of examples themselves are the ticks."""
    parts = []
    last = -np.inf
    for size in sorted({point.size for point in points}):
        place = plot.x(float(np.log10(size)))
        parts.append(
            element("line", x1=place, x2=place, y1=plot.y.end, y2=plot.y.start, class_="grid")
        )
        if place - last > 34:
            text = words(place, plot.y.start + 15, f"{size:,}", "tick", anchor="middle")
            parts.append(text)
            last = place
    middle = (plot.x.start + plot.x.end) / 2
    parts.append(words(middle, plot.y.start + 32, "training examples", "label", anchor="middle"))
    return parts


def _line(points: Sequence[Point], plot: Panel, colour: int) -> list[Markup]:
    def place(point: Point, value: float) -> tuple[float, float]:
        return plot.x(float(np.log10(point.size))), plot.y(value)

    known = [p for p in points if p.mean == p.mean]
    line = " ".join(",".join(map(compact, place(p, p.mean))) for p in known)
    parts = [element("polyline", points=line, class_=f"line c{colour}")]
    for p in known:
        x, y = place(p, p.mean)
        parts.append(
            element("line", x1=x, x2=x, y1=plot.y(p.low), y2=plot.y(p.high),
                    class_=f"seeds c{colour}")
        )  # fmt: skip
        shown = f"{p.test}, {p.size:,} examples: {p.mean:.4f} ({p.runs} runs)"
        parts.append(_mark(x, y, colour, shown))
    return parts


def _mark(x: float, y: float, colour: int, shown: str) -> Markup:
    """A sign that tells lines apart without their colour: disc, square, diamond, triangle."""
    shapes = (
        "M-4 0a4 4 0 1 0 8 0a4 4 0 1 0 -8 0z",
        "M-3.6 -3.6h7.2v7.2h-7.2z",
        "M0 -5L5 0L0 5L-5 0z",
        "M0 -5L4.6 3.6H-4.6z",
    )
    return element(
        "path", element("title", shown), d=shapes[colour % len(shapes)], class_=f"mark c{colour}",
        transform=f"translate({compact(x)} {compact(y)})",
    )  # fmt: skip


def _line_names(ends: Sequence[tuple[float, str, int]], plot: Panel) -> list[Markup]:
    """Names at the ends of lines, moved apart where they would cover each other."""
    parts = []
    free = -np.inf
    for y, name, colour in sorted(ends):
        place = max(y, free + 13)
        free = place
        parts.append(words(plot.x.end + 9, place + 4, name[:14], f"name c{colour}"))
    return parts


def _bar(point: Point, place: int, plot: Panel, full: float | None) -> list[Markup]:
    top = 10 + BAR * place
    middle = top + BAR / 2
    zero = plot.x(0.0)
    end = plot.x(point.mean)
    whole = point.setting == ALL
    shown = f"{point.setting}, {point.test}: {point.mean:.4f}"
    parts = [
        words(plot.x.start - 8, middle + 4, f"{point.setting} · {point.test}"[:30], "name",
              anchor="end"),
        element("rect", element("title", shown), x=min(zero, end), y=top + 3,
                width=abs(end - zero), height=BAR - 6, class_="bar whole" if whole else "bar"),
    ]  # fmt: skip
    if point.low < point.high:
        parts.append(
            element("line", x1=plot.x(point.low), x2=plot.x(point.high), y1=middle, y2=middle,
                    class_="interval")
        )  # fmt: skip
    change = "" if full is None or whole else f"{point.mean - full:+.3f}"
    text = change or f"{point.mean:.3f}"
    parts.append(words(plot.x.end + 8, middle + 4, text, "tick"))
    return parts


