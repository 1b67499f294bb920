"""Explanations as HTML, with heat maps.

Heat maps are tables, so that screen readers and printers can use them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tertium.core.charts import HeatMap
from tertium.core.result import MarkedLine, Section, Table
from tertium.metrics.base.explanation import Explanation
from tertium.output.error_span_markup import error_span_paragraph
from tertium.output.html_table import render_table
from tertium.output.markup import Markup, element, join, scrollable

MAX_TOKENS = 60  # of a text in a heat map
SHADE_COUNT = 20  # of a heat map; `charts.css` has a class for each


@dataclass(frozen=True)
class SegmentExplanation:
    """An explanation of one translation."""

    item: int
    system: int
    title: str
    html: Markup


def explanation_html(explanation: Explanation) -> Markup:
    """Return all parts of an explanation as HTML."""
    return element("div", *map(_part, explanation.contents()), class_="explanation")


def _part(part: Any) -> Markup:
    match part:
        case Section():
            return _section(part)
        case HeatMap():
            return heat_map_html(part)
        case MarkedLine():
            is_source = part.side == "source"
            return error_span_paragraph(
                part.text, part.spans, "source" if is_source else "hypothesis"
            )
        case Table():
            return render_table(part)
        case list():
            return element("ul", *(element("li", item) for item in part))
    return element("p", part, dir="auto")


def _section(section: Section) -> Markup:
    """Return a section, in which drawings replace the tables of text output."""
    contents = section.contents
    if any(isinstance(part, HeatMap | MarkedLine) for part in contents):
        contents = [part for part in contents if not isinstance(part, Table)]
    title = element("p", element("b", section.title)) if section.title else ""
    return join([title, *map(_part, contents)])


def heat_map_html(heat_map: HeatMap) -> Markup:
    """Return a heat map as a table.

    Texts are truncated after `MAX_TOKENS` tokens, which the caption states.
    """
    rows, columns = heat_map.rows[:MAX_TOKENS], heat_map.columns[:MAX_TOKENS]
    is_truncated = max(heat_map.values.shape) > MAX_TOKENS
    note = f" (first {MAX_TOKENS} tokens)" if is_truncated else ""
    head = [element("th", element("span", name, dir="auto"), scope="col") for name in columns]
    lines = []
    for i, name in enumerate(rows):
        shades = [_shade(heat_map, (i, j)) for j in range(len(columns))]
        lines.append(element("tr", element("th", element("bdi", name), scope="row"), *shades))
    table = element(
        "table",
        element("caption", heat_map.title + note),
        element("thead", element("tr", element("td"), *head)),
        element("tbody", *lines),
        class_="heat",
    )
    return scrollable(table, heat_map.title)


def _shade(heat_map: HeatMap, place: tuple[int, int]) -> Markup:
    value = float(heat_map.values[place])
    if value != value:
        return element("td")
    tooltip = heat_map.tooltips.get(place)
    is_framed = heat_map.has_frames and tooltip is not None
    step = round(SHADE_COUNT * min(max(value, 0.0), 1.0))
    return element(
        "td",
        f"{value:.2f}".replace("0.", "."),
        element("span", " best", class_="hidden") if is_framed else "",
        class_=f"h{step} framed" if is_framed else f"h{step}",
        title=tooltip,
    )
