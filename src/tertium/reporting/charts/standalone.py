"""A picture as a file of its own: an SVG that carries its style, in light and dark.

Equal pictures give equal files: there is no date and no random name in them.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from pathlib import Path

from tertium.atomic import write_text
from tertium.reporting.charts.axes import words
from tertium.reporting.markup import Markup, compact, element

NAMESPACE = "http://www.w3.org/2000/svg"
MARGIN = 10.0
CAPTION = 22.0  # pixels above a picture in a grid
_VARIABLE = re.compile(r"(--\w+): (?:light-dark\((#\w+), (#\w+)\)|(#\w+));")

# A picture with its own width and height, and what stands above it.
Captioned = tuple[str, Markup]


def write_picture(path: str | Path, rows: Sequence[Sequence[Captioned]]) -> None:
    """Write pictures in rows side by side as one SVG; the caption of each may be empty."""
    parts: list[Markup] = []
    width, y = 0.0, MARGIN
    for row in rows:
        x = MARGIN
        above = CAPTION if any(caption for caption, _ in row) else 0.0
        sizes = [_size(picture) for _, picture in row]
        for (caption, picture), (wide, _) in zip(row, sizes, strict=True):
            if caption:
                parts.append(words(x + wide / 2, y + 14, caption, "name", anchor="middle"))
            place = f"translate({compact(x)} {compact(y + above)})"
            parts.append(element("g", picture, transform=place))
            x += wide + MARGIN
        width, y = max(width, x), y + above + max(high for _, high in sizes) + MARGIN
    write_text(path, _document(width, y, parts), make_folder=True)


def _document(width: float, height: float, parts: Sequence[Markup]) -> str:
    paper = element("rect", width=width, height=height, fill="var(--paper)")
    style = element("style", Markup(_style()))
    box = f"0 0 {compact(width)} {compact(height)}"
    return (
        element(
            "svg",
            style,
            paper,
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
    """The rules of a page that are about pictures, with the colours for light and for dark.

    A file in a page sees neither its variables nor its theme, only what the reader's system says.
    """
    rules = (files("tertium.reporting.page") / "pictures.css").read_text(encoding="utf-8")
    light = {name: plain for name, _, _, plain in _VARIABLE.findall(rules) if plain}
    dark = {name: dark for name, _, dark, plain in _VARIABLE.findall(rules) if not plain}
    of_pictures = [
        line
        for line in rules.splitlines()
        if line.startswith(".picture") and "height: auto" not in line
    ]
    return "\n".join(
        [
            f".tertium {{ {_declare(light)} }}",
            f"@media (prefers-color-scheme: dark) {{ .tertium {{ {_declare(dark)} }} }}",
            *of_pictures,
        ]
    )


def _declare(colours: dict[str, str]) -> str:
    return " ".join(f"{name}: {colour};" for name, colour in colours.items())


def _size(picture: Markup) -> tuple[float, float]:
    """The width and height that a drawing says in its first tag."""
    box = re.search(r'viewBox="0 0 ([\d.]+) ([\d.]+)"', picture.partition(">")[0])
    assert box  # every drawing has one
    return float(box[1]), float(box[2])
