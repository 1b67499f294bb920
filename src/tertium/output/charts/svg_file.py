"""Write charts as a standalone SVG file with styles for light and dark themes.

Files are deterministic: equal charts give equal files.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from pathlib import Path

from tertium.atomic import write_text
from tertium.output.charts.axes import text_element
from tertium.output.markup import Markup, element, format_coordinate

NAMESPACE = "http://www.w3.org/2000/svg"
MARGIN = 10.0
CAPTION = 22.0  # pixels
_VARIABLE = re.compile(r"(--\w+): (?:light-dark\((#\w+), (#\w+)\)|(#\w+));")

# a caption and a chart
CaptionedChart = tuple[str, Markup]


def write_svg(path: str | Path, rows: Sequence[Sequence[CaptionedChart]]) -> None:
    """Write rows of charts as one SVG; captions may be empty."""
    parts: list[Markup] = []
    width, y = 0.0, MARGIN
    for row in rows:
        x = MARGIN
        above = CAPTION if any(caption for caption, _ in row) else 0.0
        sizes = [_size(chart) for _, chart in row]
        for (caption, chart), (chart_width, _) in zip(row, sizes, strict=True):
            if caption:
                parts.append(
                    text_element(x + chart_width / 2, y + 14, caption, "name", anchor="middle")
                )
            place = f"translate({format_coordinate(x)} {format_coordinate(y + above)})"
            parts.append(element("g", chart, transform=place))
            x += chart_width + MARGIN
        width, y = max(width, x), y + above + max(high for _, high in sizes) + MARGIN
    write_text(path, _document(width, y, parts), make_folder=True)


def _document(width: float, height: float, parts: Sequence[Markup]) -> str:
    background = element("rect", width=width, height=height, fill="var(--paper)")
    style = element("style", Markup(_style()))
    box = f"0 0 {format_coordinate(width)} {format_coordinate(height)}"
    return (
        element(
            "svg",
            style,
            background,
            *parts,
            xmlns=NAMESPACE,
            viewBox=box,
            width=width,
            height=height,
            class_="tertium picture",
        )
        + "\n"
    )


@cache
def _style() -> str:
    """Return the chart rules of the style sheet; a standalone file follows the system theme."""
    rules = (files("tertium.output.page") / "charts.css").read_text(encoding="utf-8")
    light = {name: plain for name, _, _, plain in _VARIABLE.findall(rules) if plain}
    dark = {name: dark for name, _, dark, plain in _VARIABLE.findall(rules) if not plain}
    chart_rules = [
        line
        for line in rules.splitlines()
        if line.startswith(".picture") and "height: auto" not in line
    ]
    return "\n".join(
        [
            f".tertium {{ {_declare(light)} }}",
            f"@media (prefers-color-scheme: dark) {{ .tertium {{ {_declare(dark)} }} }}",
            *chart_rules,
        ]
    )


def _declare(colors: dict[str, str]) -> str:
    return " ".join(f"{name}: {color};" for name, color in colors.items())


def _size(chart: Markup) -> tuple[float, float]:
    box = re.search(r'viewBox="0 0 ([\d.]+) ([\d.]+)"', chart.partition(">")[0])
    assert box  # every chart has one
    return float(box[1]), float(box[2])
