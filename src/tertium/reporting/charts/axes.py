"""The ground every picture stands on: scales, round ticks, the frame of a plot, its title in words.

A picture is an SVG whose colours come from the page's style, so that it follows light and dark; it
carries its title and what it shows in words for those who cannot see it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from tertium.arrays import FloatArray
from tertium.reporting.markup import Attribute, Markup, compact, element

MANY, OUTER = 450, 0.002
TICK_WIDTH = 48.0  # pixels that a number on the lower axis takes
LETTER, DIGIT = 7.2, 6.6  # pixels of a letter of a name, of a digit beside an axis
UPRIGHT = 26.0  # pixels that the label of the left axis takes, with the space around it


@dataclass(frozen=True)
class Scale:
    """Values from `low` to `high` on places from `start` to `end`.

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
class Panel:
    """A plot with two scales inside a frame; sizes in pixels."""

    width: float
    height: float
    x: Scale
    y: Scale

    def horizontal(self, label: str, texts: Mapping[float, str] | None = None) -> list[Markup]:
        """The lower axis: grid lines, numbers and a label.

        `texts` stand at values in place of round numbers, as many as have room.
        """
        top, bottom = self.y.end, self.y.start
        parts = []
        room = (self.x.end - self.x.start) / TICK_WIDTH
        free = -math.inf
        wanted = texts or dict(ticks(self.x.low, self.x.high, max(2, min(5, round(room)))))
        for value, text in wanted.items():
            place = self.x(value)
            parts.append(upright(place, top, bottom, "grid"))
            half = DIGIT * len(text) / 2
            if place - half > free or texts is None:
                inside = min(place, self.width - half)  # a long number at the end would be cut
                parts.append(words(inside, bottom + 15, text, "tick", anchor="middle"))
                free = place + half + DIGIT
        middle = (self.x.start + self.x.end) / 2
        return [*parts, words(middle, bottom + 32, label, "label", anchor="middle")]

    def vertical(self, label: str) -> list[Markup]:
        """The left axis: grid lines, numbers and a label that stands upright."""
        parts = []
        for value, text in ticks(self.y.low, self.y.high, 4):
            place = self.y(value)
            parts.append(level(self.x.start, self.x.end, place, "grid"))
            parts.append(words(self.x.start - 6, place + 4, text, "tick", anchor="end"))
        middle = (self.y.start + self.y.end) / 2
        turned = f"translate(12 {compact(middle)}) rotate(-90)"
        name = element("text", label, class_="label", text_anchor="middle", transform=turned)
        return [*parts, name]


def panel(
    x: tuple[float, float], y: tuple[float, float], *, width: float = 340, height: float = 250
) -> Panel:
    """A plot of two numbers with room for its axes; long numbers at the left take more."""
    longest = max((len(text) for _, text in ticks(*y, 4)), default=0)
    return Panel(
        width=width,
        height=height,
        x=Scale(*x, max(52, UPRIGHT + DIGIT * longest), width - 10),
        y=Scale(*y, height - 42, 10),
    )


def words(x: float, y: float, text: str, style: str, *, anchor: str = "start") -> Markup:
    """A text in a picture."""
    return element("text", text, x=x, y=y, class_=style, text_anchor=anchor)


def named(x: float, y: float, name: str, short: str, **more: Attribute) -> Markup:
    """A name in few letters, whose title says the whole."""
    return element("text", element("title", name), short, x=x, y=y, class_="name", **more)


def level(x1: float, x2: float, y: float, style: str) -> Markup:
    """A line from left to right."""
    return element("line", x1=x1, x2=x2, y1=y, y2=y, class_=style)


def upright(x: float, y1: float, y2: float, style: str) -> Markup:
    """A line from above to below."""
    return element("line", x1=x, x2=x, y1=y1, y2=y2, class_=style)


def dot(x: float, y: float, radius: float, title: str, **more: Attribute) -> Markup:
    """A disc that says what it stands for."""
    return element("circle", element("title", title), cx=x, cy=y, r=radius, **more)


def drawing(
    width: float, height: float, title: str, description: str, parts: Sequence[Markup]
) -> Markup:
    """The SVG around some shapes, named for screen readers."""
    return element(
        "svg",
        *parts,
        viewBox=f"0 0 {compact(width)} {compact(height)}",
        width=width,
        height=height,
        role="img",
        class_="picture",
        aria_label=f"{title}. {description}",
    )


def ticks(low: float, high: float, wanted: int) -> list[tuple[float, str]]:
    """About so many round values between two, with their texts.

    >>> ticks(0, 97, 5)
    [(0.0, '0'), (20.0, '20'), (40.0, '40'), (60.0, '60'), (80.0, '80')]
    """
    if not math.isfinite(low + high) or high <= low:
        return [(low, f"{low:.3g}")] if math.isfinite(low) else []
    raw = (high - low) / wanted
    power = 10.0 ** math.floor(math.log10(raw))
    step = min((m * power for m in (1, 2, 5, 10)), key=lambda s: abs(s - raw))
    # 1e-9: a step of 0.1 or an end at 0.3 is a little less in binary, and would be rounded away
    decimals = max(0, -math.floor(math.log10(step) + 1e-9))
    places = range(math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9) + 1)
    return [(place * step, f"{place * step:z.{decimals}f}") for place in places]


def bounds(values: FloatArray, *, margin: float = 0.04) -> tuple[float, float]:
    """The range of the known values with a margin; 0 to 1 where there is none.

    Of more than `MANY` values the outermost are not counted: one translation that is ten times too
    long would squeeze all others into a corner.
    """
    known = values[np.isfinite(values)]
    if not known.size:
        return 0.0, 1.0
    few = known.size <= MANY
    low, high = (float(v) for v in np.quantile(known, [0, 1] if few else [OUTER, 1 - OUTER]))
    extra = (high - low) * margin if high > low else abs(high) * margin or 1.0
    return low - extra, high + extra
