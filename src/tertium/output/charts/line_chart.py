"""Charts of curves over one axis, such as statistical power by number of segments."""

from __future__ import annotations

from tertium.core.charts import LineChart
from tertium.output.charts.axes import LETTER_WIDTH, horizontal_line, make_plot_area, svg_chart
from tertium.output.charts.series import COLOR_COUNT, line_labels
from tertium.output.markup import Markup

WIDTH, HEIGHT = 380.0, 280.0  # pixels, without the names of the curves
NAME_LETTERS = 20  # room for names


def draw_lines(chart: LineChart) -> Markup:
    """Draw curves with their names at the end."""
    x = chart.x.values
    plot = make_plot_area((0.0, x.max()), chart.y_range, width=WIDTH, height=HEIGHT)
    parts = [*plot.x_axis(chart.x.name), *plot.y_axis(chart.y_label)]
    if chart.reference_value is not None:
        y = plot.y(chart.reference_value)
        parts.append(horizontal_line(plot.x.start, plot.x.end, y, "interval"))
    ends = []
    for number, curve in enumerate(chart.curves.values()):
        parts.append(plot.line("polyline", x, curve, f"line c{number % COLOR_COUNT}"))
        ends.append((plot.y(curve[-1]), number))
    names = list(chart.curves)
    parts += line_labels(ends, names, names, plot)
    width = WIDTH + 24 + LETTER_WIDTH * NAME_LETTERS
    return svg_chart(width, HEIGHT, chart.title, chart.description, parts)
