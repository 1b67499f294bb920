"""Draw charts as SVG by their type."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from tertium.core.charts import (
    Chart,
    DotChart,
    IntervalChart,
    LineChart,
    RidgeChart,
    ScatterChart,
)
from tertium.output.charts.line_chart import draw_lines
from tertium.output.charts.row_charts import draw_dots, draw_intervals, draw_ridges
from tertium.output.charts.scatter import draw_scatter
from tertium.output.charts.svg_file import write_svg
from tertium.output.markup import Markup

DRAWING_FUNCTIONS: Mapping[type, Callable[[Any], Markup]] = {
    DotChart: draw_dots,
    IntervalChart: draw_intervals,
    LineChart: draw_lines,
    RidgeChart: draw_ridges,
    ScatterChart: draw_scatter,
}


def draw(chart: Chart) -> Markup:
    """Return a chart as SVG."""
    return DRAWING_FUNCTIONS[type(chart)](chart)


def write_charts(path: str | Path, rows: Sequence[Sequence[Chart]]) -> None:
    """Write rows of charts with their captions as one SVG file."""
    write_svg(path, [[(chart.caption, draw(chart)) for chart in row] for row in rows])
