"""Charts of statistical power by number of segments."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tertium.campaigns.power import PowerPlan
from tertium.output.charts.axes import LETTER_WIDTH, horizontal_line, make_plot_area, svg_chart
from tertium.output.charts.series import COLOR_COUNT, line_labels
from tertium.output.markup import Markup, element, format_coordinate

WIDTH, HEIGHT, POINTS = 380.0, 280.0, 60
NAME_LETTERS = 20  # of the longest name, "10 raters per segment"


def power_chart(plans: Sequence[PowerPlan]) -> Markup:
    """Draw a curve for each number of raters; a line marks the requested power."""
    largest = max(plan.curve[-1].segments for plan in plans)
    plot = make_plot_area((0.0, float(largest)), (0.0, 1.0), width=WIDTH, height=HEIGHT)
    parts = [*plot.x_axis("segments"), *plot.y_axis("power")]
    target = plans[0].design.target_power
    parts.append(horizontal_line(plot.x.start, plot.x.end, plot.y(target), "interval"))
    names, ends = [], []
    sizes = np.linspace(2, largest, POINTS)
    for number, plan in enumerate(plans):
        values = plan.power(sizes)
        line = " ".join(
            f"{format_coordinate(plot.x(float(x)))},{format_coordinate(plot.y(float(y)))}"
            for x, y in zip(sizes, values, strict=True)
        )
        parts.append(element("polyline", points=line, class_=f"line c{number % COLOR_COUNT}"))
        raters = plan.design.raters
        names.append(f"{raters} rater{'s' * (raters > 1)} per segment")
        ends.append((plot.y(float(values[-1])), number))
    parts += line_labels(ends, names, names, plot)
    description = "; ".join(
        f"{name}: {plan.segments} segments" for name, plan in zip(names, plans, strict=True)
    )
    title = f"Power to find a difference of {plans[0].difference:.3g}"
    return svg_chart(WIDTH + 24 + LETTER_WIDTH * NAME_LETTERS, HEIGHT, title, description, parts)
