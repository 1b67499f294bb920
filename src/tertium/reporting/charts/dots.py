"""Rows of named signs on one scale: systems on slices, metrics on phenomena or doubts."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tertium.arrays import FloatArray
from tertium.reporting.charts.axes import LETTER, Panel, Scale, bounds, drawing, words
from tertium.reporting.charts.curves import COLOURS, mark
from tertium.reporting.markup import Markup, element
from tertium.reporting.names import letters, short_names

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
    plot = _plot(rows, len(series), tall, known, label)
    parts = plot.horizontal(label)
    if rule is not None:
        x = plot.x(rule)
        parts.append(
            element("line", x1=x, x2=x, y1=plot.y.end, y2=plot.y.start, class_="fit dashed")
        )
    for place, (name, short) in enumerate(zip(rows, short_names(rows, LONGEST), strict=True)):
        top = 10 + tall * place
        if place:
            x1, x2 = plot.x.start, plot.x.end
            parts.append(element("line", x1=x1, x2=x2, y1=top, y2=top, class_="grid"))
        parts.append(_row_name(name, short, top + tall / 2, plot))
        for n, other in enumerate(series):
            y = top + tall * (n + 1) / (len(series) + 1)
            value, (low, high) = float(values[place, n]), lines[place, n]
            if low == low:
                x1, x2 = plot.x(float(low)), plot.x(float(high))
                parts.append(
                    element("line", x1=x1, x2=x2, y1=y, y2=y, class_=f"line c{n % COLOURS}")
                )
            if value == value:
                shown = f"{other}, {name}: {value:.{decimals}f}"
                parts.append(mark(plot.x(value), y, n, shown))
    parts += _legend(series, plot)
    said = "; ".join(
        f"{row}: " + ", ".join(f"{s} {v:.{decimals}f}" for s, v in zip(series, own, strict=True))
        for row, own in zip(rows, values, strict=True)
    )
    return drawing(plot.width, plot.height, title, said, parts)


def _plot(rows: Sequence[str], series: int, tall: float, values: FloatArray, label: str) -> Panel:
    low, high = bounds(values, margin=0.06)
    wide = max(PLOT, LETTER * letters(label) * 0.85)  # a label is set a little smaller
    left = 18 + LETTER * max(map(letters, short_names(rows, LONGEST)), default=0)
    bottom = 12 + tall * len(rows)
    return Panel(
        width=left + wide + 14,
        height=bottom + 46 + LINE * series,
        x=Scale(low, high, left, left + wide),
        y=Scale(0, 1, bottom, 6),
    )


def _row_name(name: str, short: str, y: float, plot: Panel) -> Markup:
    place = {"x": plot.x.start - 10, "y": y + 4}
    title = element("title", name)
    return element("text", title, short, class_="name", text_anchor="end", **place)


def _legend(series: Sequence[str], plot: Panel) -> list[Markup]:
    parts = []
    top = plot.y.start + 46
    for n, (name, short) in enumerate(zip(series, short_names(series, LONGEST), strict=True)):
        y = top + LINE * n
        parts += [mark(18, y, n, name), words(30, y + 4, short, "name")]
    return parts
