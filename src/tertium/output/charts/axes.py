"""Building blocks of SVG charts: scales, ticks, axes, labels and the accessible title.

Colors come from the style sheet of the page, so that charts follow its light or dark theme.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from tertium.arrays import FloatArray
from tertium.output.markup import Attribute, Markup, element, format_coordinate

MAX_POINTS_WITH_FULL_RANGE = 450  # with more points, axes ignore outliers
OUTLIER_QUANTILE = 0.002
TICK_WIDTH = 48.0  # pixels of a number on the x-axis
LETTER_WIDTH, DIGIT_WIDTH = 7.2, 6.6  # pixels
AXIS_LABEL_WIDTH = 26.0  # pixels of the y-axis label with margins


@dataclass(frozen=True)
class Scale:
    """A linear map from values (`low` to `high`) to pixels (`start` to `end`).

    >>> Scale(0, 10, 100, 200)(2.5)
    125.0
    """

    low: float
    high: float
    start: float
    end: float

    def __call__(self, value: float) -> float:
        width = self.high - self.low
        share = (value - self.low) / width if width else 0.5
        return self.start + share * (self.end - self.start)


@dataclass(frozen=True, kw_only=True)
class PlotArea:
    """The size of a chart in pixels and the scales of its axes."""

    width: float
    height: float
    x: Scale
    y: Scale

    def x_axis(self, label: str, texts: Mapping[float, str] | None = None) -> list[Markup]:
        """Return the x-axis: grid lines, numbers (or tick labels `texts` by value) and a label."""
        bottom = self.y.start
        parts = []
        tick_count = max(2, min(5, round((self.x.end - self.x.start) / TICK_WIDTH)))
        last_end = -math.inf
        labels = texts or dict(ticks(self.x.low, self.x.high, tick_count))
        for value, text in labels.items():
            place = self.x(value)
            parts.append(self.vertical_line(value, "grid"))
            half = DIGIT_WIDTH * len(text) / 2
            if place - half > last_end or texts is None:
                inside = min(place, self.width - half)  # the last number must not be cut off
                parts.append(text_element(inside, bottom + 15, text, "tick", anchor="middle"))
                last_end = place + half + DIGIT_WIDTH
        middle = (self.x.start + self.x.end) / 2
        return [*parts, text_element(middle, bottom + 32, label, "label", anchor="middle")]

    def y_axis(self, label: str) -> list[Markup]:
        """Return the y-axis: grid lines, numbers and a vertical label."""
        parts = []
        for value, text in ticks(self.y.low, self.y.high, 4):
            place = self.y(value)
            parts.append(horizontal_line(self.x.start, self.x.end, place, "grid"))
            parts.append(text_element(self.x.start - 6, place + 4, text, "tick", anchor="end"))
        middle = (self.y.start + self.y.end) / 2
        transform = f"translate(12 {format_coordinate(middle)}) rotate(-90)"
        name = element("text", label, class_="label", text_anchor="middle", transform=transform)
        return [*parts, name]

    def vertical_line(self, value: float, style: str) -> Markup:
        """Return a line over the height of the plot."""
        x = self.x(value)
        return element("line", x1=x, x2=x, y1=self.y.end, y2=self.y.start, class_=style)

    def line(self, shape: str, x: Iterable[float], y: Iterable[float], style: str) -> Markup:
        """Return a polyline or polygon; points above or below the plot are drawn on its edge."""
        points = []
        for left, height in zip(x, y, strict=True):
            inside = min(max(height, self.y.low), self.y.high)
            points.append(f"{format_coordinate(self.x(left))},{format_coordinate(self.y(inside))}")
        return element(shape, points=" ".join(points), class_=style)


def make_plot_area(
    x: tuple[float, float], y: tuple[float, float], *, width: float = 340, height: float = 250
) -> PlotArea:
    """Return a plot area whose left margin fits the numbers of the y-axis."""
    longest = max((len(text) for _, text in ticks(*y, 4)), default=0)
    return PlotArea(
        width=width,
        height=height,
        x=Scale(*x, max(52, AXIS_LABEL_WIDTH + DIGIT_WIDTH * longest), width - 10),
        y=Scale(*y, height - 42, 10),
    )


def text_element(x: float, y: float, text: str, style: str, *, anchor: str = "start") -> Markup:
    """Return a text label."""
    return element("text", text, x=x, y=y, class_=style, text_anchor=anchor)


def name_element(x: float, y: float, name: str, short: str, **more: Attribute) -> Markup:
    """Return a shortened name with the full name as its tooltip."""
    return element("text", element("title", name), short, x=x, y=y, class_="name", **more)


def horizontal_line(x1: float, x2: float, y: float, style: str) -> Markup:
    return element("line", x1=x1, x2=x2, y1=y, y2=y, class_=style)


def circle(x: float, y: float, radius: float, title: str, **more: Attribute) -> Markup:
    """Return a circle with a tooltip."""
    return element("circle", element("title", title), cx=x, cy=y, r=radius, **more)


def svg_chart(
    width: float, height: float, title: str, description: str, parts: Sequence[Markup]
) -> Markup:
    """Return an SVG with a description for screen readers."""
    return element(
        "svg",
        *parts,
        viewBox=f"0 0 {format_place(width, height)}",
        width=width,
        height=height,
        role="img",
        class_="picture",
        aria_label=f"{title}. {description}",
    )


def format_place(x: float, y: float) -> str:
    """Format two coordinates, as paths and transforms have them.

    >>> format_place(1.25, 10.0)
    '1.25 10'
    """
    return f"{format_coordinate(x)} {format_coordinate(y)}"


def ticks(low: float, high: float, count: int) -> list[tuple[float, str]]:
    """Return about `count` round values between two bounds, with their texts.

    >>> ticks(0, 97, 5)
    [(0.0, '0'), (20.0, '20'), (40.0, '40'), (60.0, '60'), (80.0, '80')]
    """
    if not math.isfinite(low + high) or high <= low:
        return [(low, f"{low:.3g}")] if math.isfinite(low) else []
    raw = (high - low) / count
    power = 10.0 ** math.floor(math.log10(raw))
    step = min((m * power for m in (1, 2, 5, 10)), key=lambda s: abs(s - raw))
    # 1e-9 tolerates binary rounding: 0.1 and 0.3 are not exact
    decimals = max(0, -math.floor(math.log10(step) + 1e-9))
    places = range(math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9) + 1)
    return [(place * step, f"{place * step:z.{decimals}f}") for place in places]


def axis_limits(values: FloatArray, *, margin: float = 0.04) -> tuple[float, float]:
    """Return the range of the finite values with a margin; 0 to 1 if all are NaN.

    With more than `MAX_POINTS_WITH_FULL_RANGE` values, outliers are ignored.
    """
    finite = values[np.isfinite(values)]
    if not finite.size:
        return 0.0, 1.0
    ignored = OUTLIER_QUANTILE if finite.size > MAX_POINTS_WITH_FULL_RANGE else 0.0
    low, high = np.quantile(finite, [ignored, 1 - ignored]).tolist()
    extra = (high - low) * margin if high > low else abs(high) * margin or 1.0
    return low - extra, high + extra
