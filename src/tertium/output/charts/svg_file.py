"""Write charts as a standalone SVG file with styles for light and dark themes.

Files are deterministic: equal charts give equal files.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from importlib.resources import files

from tertium.core.atomic import PathLike, write_text
from tertium.output.charts.axes import format_place
from tertium.output.markup_builder import Markup, element

NAMESPACE = "http://www.w3.org/2000/svg"
MARGIN = 10.0
CAPTION = 22.0  # pixels
_SIZE = re.compile(r'viewBox="0 0 (\S+) (\S+)"')
_COLORS = re.compile(r"(--\w+: )light-dark\((#\w+), (#\w+)\);")


def write_svg(path: PathLike, rows: Sequence[Sequence[tuple[str, Markup]]]) -> None:
    """Write rows of captions and charts as one SVG; captions may be empty."""
    parts: list[Markup] = []
    width, y = 0.0, MARGIN
    for row in rows:
        x, bottom = MARGIN, y
        top = y + CAPTION if any(caption for caption, _ in row) else y
        for caption, chart in row:
            chart_width, chart_height = map(float, _SIZE.findall(chart)[0])
            if caption:
                place = {"x": x + chart_width / 2, "y": y + 14}
                parts.append(element("text", caption, **place, class_="name", text_anchor="middle"))
            parts.append(element("g", chart, transform=f"translate({format_place(x, top)})"))
            x += chart_width + MARGIN
            bottom = max(bottom, top + chart_height)
        width, y = max(width, x), bottom + MARGIN
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
