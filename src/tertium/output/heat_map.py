"""Heat maps as HTML tables, so that screen readers and printers can use them."""

from __future__ import annotations

from tertium.core.charts import HeatMap
from tertium.output.markup_builder import Markup, element, scrollable

MAX_TOKENS = 60  # of a text in a heat map
SHADE_COUNT = 20  # of a heat map; `charts.css` has a class for each


def render_heat_map(heat_map: HeatMap) -> Markup:
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
