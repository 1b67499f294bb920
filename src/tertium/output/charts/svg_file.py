"""Write charts as a standalone SVG file with styles for light and dark themes.

Files are deterministic: equal charts give equal files.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from pathlib import Path

from tertium.atomic import check_writable, write_text
from tertium.errors import UsageError
from tertium.output.charts.axes import format_place, text_element
from tertium.output.markup import Markup, element

NAMESPACE = "http://www.w3.org/2000/svg"
MARGIN = 10.0
CAPTION = 22.0  # pixels
_VARIABLE = re.compile(r"(--\w+): (?:light-dark\((#\w+), (#\w+)\)|(#\w+));")

# a caption and a chart
CaptionedChart = tuple[str, Markup]


def check_plot_file(path: str | Path) -> None:
    """Raise an error early if the file is not .svg or cannot be written."""
    if Path(path).suffix.lower() != ".svg":
        raise UsageError(f"{path}: plots are written as SVG; expected a name that ends in .svg")
    check_writable(path)


def write_svg(path: str | Path, rows: Sequence[Sequence[CaptionedChart]]) -> None:
    """Write rows of charts as one SVG; captions may be empty."""
    parts: list[Markup] = []
    width, y = 0.0, MARGIN
    for row in rows:
        x, row_height = MARGIN, 0.0
        top = y + CAPTION if any(caption for caption, _ in row) else y
        for caption, chart in row:
            chart_width, chart_height = _size(chart)
            if caption:
                middle = x + chart_width / 2
                parts.append(text_element(middle, y + 14, caption, "name", anchor="middle"))
            parts.append(element("g", chart, transform=f"translate({format_place(x, top)})"))
            x += chart_width + MARGIN
            row_height = max(row_height, chart_height)
        width = max(width, x)
        y = top + row_height + MARGIN
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
