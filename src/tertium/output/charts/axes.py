"""Building blocks of SVG charts: scales, ticks, axes, markers, names and the accessible title.

Colors come from the style sheet of the page, so that charts follow its light or dark theme.

Write charts as a standalone SVG file with styles for light and dark themes.

Files are deterministic: equal charts give equal files.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files

import numpy as np

from tertium.core.arrays import FloatArray
from tertium.core.atomic import PathLike, write_text
from tertium.output.markup_builder import Attribute, Markup, element, format_coordinate

MAX_POINTS_WITH_FULL_RANGE = 450  # with more points, axes ignore outliers
OUTLIER_QUANTILE = 0.002
TICK_WIDTH = 48.0  # pixels of a number on the x-axis
LETTER_WIDTH = 7.2  # pixels
DIGIT_WIDTH = 6.6  # pixels
AXIS_LABEL_WIDTH = 26.0  # pixels of the y-axis label with margins
COLOR_COUNT = 8  # colors repeat after eight series; marker shapes differ
MARKER_SHAPES = (
    "M-4 0a4 4 0 1 0 8 0a4 4 0 1 0 -8 0z",
    "M-3.6 -3.6h7.2v7.2h-7.2z",
    "M0 -5L5 0L0 5L-5 0z",
    "M0 -5L4.6 3.6H-4.6z",
)


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


@dataclass(kw_only=True)
class Plot:
    """A chart to draw on: its size in pixels, the scales of its axes, and its elements so far.

    Vertical places are pixels, unless a method takes values.
    """

    width: float
    height: float
    x: Scale
    y: Scale
    parts: list[Markup] = field(default_factory=list)

    def add(
        self, name: str, *children: str, title: str | None = None, **attributes: Attribute
    ) -> None:
        """Add an element, see `markup.element`; `title` is its tooltip."""
        if title is not None:
            children = (element("title", title), *children)
        self.parts.append(element(name, *children, **attributes))

    def x_axis(self, label: str, texts: Mapping[float, str] | None = None) -> None:
        """Add the x-axis: grid lines, numbers (or tick labels `texts` by value) and a label."""
        bottom = self.y.start
        tick_count = max(2, min(5, round((self.x.end - self.x.start) / TICK_WIDTH)))
        last_end = -math.inf
        labels = texts or dict(ticks(self.x.low, self.x.high, tick_count))
        for value, text in labels.items():
            place = self.x(value)
            self.vertical_line(value, "grid")
            half = DIGIT_WIDTH * len(text) / 2
            if place - half > last_end or texts is None:
                inside = min(place, self.width - half)  # the last number must not be cut off
                self.text(inside, bottom + 15, text, "tick", "middle")
                last_end = place + half + DIGIT_WIDTH
        self.text((self.x.start + self.x.end) / 2, bottom + 32, label, "label", "middle")

    def y_axis(self, label: str) -> None:
        """Add the y-axis: grid lines, numbers and a vertical label."""
        for value, text in ticks(self.y.low, self.y.high, 4):
            place = self.y(value)
            self.interval(self.x.low, self.x.high, place, "grid")
            self.text(self.x.start - 6, place + 4, text, "tick", "end")
        middle = format_coordinate((self.y.start + self.y.end) / 2)
        transform = f"translate(12 {middle}) rotate(-90)"
        self.add(
            "text",
            label,
            class_="label",
            text_anchor="middle",
            transform=transform,
        )

    def text(
        self,
        x: float,
        y: float,
        text: str,
        style: str,
        anchor: str | None = None,
        title: str | None = None,
    ) -> None:
        self.add("text", text, title=title, x=x, y=y, class_=style, text_anchor=anchor)

    def interval(self, low: float, high: float, y: float, style: str) -> None:
        """Add a line between two values of x, unless they are unknown."""
        if low == low:
            start = self.x(low)
            end = self.x(high)
            self.add("line", x1=start, x2=end, y1=y, y2=y, class_=style)

    def vertical_line(self, value: float, style: str) -> None:
        x = self.x(value)
        self.add("line", x1=x, x2=x, y1=self.y.end, y2=self.y.start, class_=style)

    def line(self, shape: str, x: Iterable[float], y: Iterable[float], style: str) -> None:
        """Add a polyline or polygon; points above or below the plot are drawn on its edge."""
        points = []
        for value, height in zip(x, y, strict=True):
            inside = min(max(height, self.y.low), self.y.high)
            left = format_coordinate(self.x(value))
            top = format_coordinate(self.y(inside))
            points.append(f"{left},{top}")
        self.add(shape, points=" ".join(points), class_=style)

    def marker(self, x: float, y: float, number: int, title: str) -> None:
        """Add the marker of a series; shapes distinguish series without color."""
        # when colors repeat, the shapes are shifted
        shape = MARKER_SHAPES[(number + number // COLOR_COUNT) % len(MARKER_SHAPES)]
        self.add(
            "path",
            title=title,
            d=shape,
            class_=f"mark c{number % COLOR_COUNT}",
            transform=f"translate({format_place(x, y)})",
        )

    def svg(self, title: str, descriptions: Iterable[str]) -> Markup:
        """Return the chart with descriptions for screen readers."""
        return element(
            "svg",
            *self.parts,
            viewBox=f"0 0 {format_place(self.width, self.height)}",
            width=self.width,
            height=self.height,
            role="img",
            class_="picture",
            aria_label=f"{title}. {'; '.join(descriptions)}",
        )


def make_plot(
    x: tuple[float, float], y: tuple[float, float], *, width: float = 340, height: float = 250
) -> Plot:
    """Return a plot whose left margin fits the numbers of the y-axis."""
    longest = max((len(text) for _, text in ticks(*y, 4)), default=0)
    left = max(52, AXIS_LABEL_WIDTH + DIGIT_WIDTH * longest)
    return Plot(
        width=width,
        height=height,
        x=Scale(*x, left, width - 10),
        y=Scale(*y, height - 42, 10),
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


NAMESPACE = "http://www.w3.org/2000/svg"
MARGIN = 10.0
CAPTION = 22.0  # pixels
_SIZE = re.compile(r'viewBox="0 0 (\S+) (\S+)"')
_COLORS = re.compile(r"(--\w+: )light-dark\((#\w+), (#\w+)\);")


def write_svg(path: PathLike, rows: Sequence[Sequence[tuple[str, Markup]]]) -> None:
    """Write rows of captions and charts as one SVG; captions may be empty."""
    parts: list[Markup] = []
    width = 0.0
    y = MARGIN
    for row in rows:
        x = MARGIN
        bottom = y
        top = y + CAPTION if any(caption for caption, _ in row) else y
        for caption, chart in row:
            chart_width, chart_height = map(float, _SIZE.findall(chart)[0])
            if caption:
                place = {"x": x + chart_width / 2, "y": y + 14}
                parts.append(element("text", caption, **place, class_="name", text_anchor="middle"))
            parts.append(element("g", chart, transform=f"translate({format_place(x, top)})"))
            x += chart_width + MARGIN
            bottom = max(bottom, top + chart_height)
        width = max(width, x)
        y = bottom + MARGIN
    document = element(
        "svg",
        element("style", Markup(_style())),
        element("rect", width=width, height=y, fill="var(--paper)"),
        *parts,
        xmlns=NAMESPACE,
        viewBox=f"0 0 {format_place(width, y)}",
        width=width,
        height=y,
        class_="tertium picture",
    )
    write_text(path, f"{document}\n", make_folder=True)


@cache
def _style() -> str:
    """Return the chart rules of the style sheet; a standalone file follows the system theme."""
    rules = (files("tertium.output.page") / "charts.css").read_text(encoding="utf-8")
    colors = _COLORS.findall(rules)
    light = " ".join(f"{name}{color};" for name, color, _ in colors)
    dark = " ".join(f"{name}{color};" for name, _, color in colors)
    lines = [
        f".tertium {{ {light} }}",
        f"@media (prefers-color-scheme: dark) {{ .tertium {{ {dark} }} }}",
    ]
    for line in rules.splitlines():
        if line.startswith(".picture") and "height: auto" not in line:
            lines.append(line)
    return "\n".join(lines)
