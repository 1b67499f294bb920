"""Several series in one chart: markers that differ in color or shape, and names at their ends."""

from __future__ import annotations

from collections.abc import Sequence

from tertium.output.charts.axes import PlotArea, format_place, name_element
from tertium.output.markup import Markup, element

COLOR_COUNT = 8  # colors repeat after eight series; marker shapes differ
LABEL_SPACING = 13.0  # pixels between names at the ends of lines


def series_marker(x: float, y: float, number: int, tooltip: str) -> Markup:
    """Return a marker; shapes distinguish series without color."""
    shapes = (
        "M-4 0a4 4 0 1 0 8 0a4 4 0 1 0 -8 0z",
        "M-3.6 -3.6h7.2v7.2h-7.2z",
        "M0 -5L5 0L0 5L-5 0z",
        "M0 -5L4.6 3.6H-4.6z",
    )
    # when colors repeat, the shapes are shifted
    shape = shapes[(number + number // COLOR_COUNT) % len(shapes)]
    return element(
        "path",
        element("title", tooltip),
        d=shape,
        class_=f"mark c{number % COLOR_COUNT}",
        transform=f"translate({format_place(x, y)})",
    )


def line_labels(
    ends: Sequence[tuple[float, int]], names: Sequence[str], short: Sequence[str], plot: PlotArea
) -> list[Markup]:
    """Return a marker and a name at the end of each line, spread so that they do not overlap."""
    parts = []
    ordered = sorted(ends)
    places = spread_positions([y for y, _ in ordered], plot.y.start)
    for (_, n), y in zip(ordered, places, strict=True):
        parts.append(series_marker(plot.x.end + 10, y, n, names[n]))
        parts.append(name_element(plot.x.end + 20, y + 4, names[n], short[n]))
    return parts


def spread_positions(positions: Sequence[float], last: float) -> list[float]:
    """Move ascending positions apart by at least `LABEL_SPACING`, none beyond `last`.

    >>> spread_positions([10, 12, 50, 51], 58)
    [10, 23.0, 45.0, 58]
    """
    moved: list[float] = []
    for position in positions:
        moved.append(max(position, moved[-1] + LABEL_SPACING) if moved else position)
    for n in range(len(moved) - 1, -1, -1):
        moved[n] = min(moved[n], moved[n + 1] - LABEL_SPACING if n + 1 < len(moved) else last)
    return moved
