"""The section of a page that shows the panel of doubts: a sentence, a picture and a table each."""

from __future__ import annotations

from tertium.evaluation.panel.case import Doubt
from tertium.evaluation.panel.panel import DoubtPanel
from tertium.reporting.charts.dots import dots_chart
from tertium.reporting.charts.pictures import figure
from tertium.reporting.markup import Markup, element, join
from tertium.reporting.tables.html import html_table
from tertium.reporting.tables.panels import doubt_table, not_asked_lines


def doubts_contents(panel: DoubtPanel) -> Markup:
    """All doubts, then what could not be asked."""
    parts = [_doubt(doubt) for doubt in panel.doubts]
    missing = [element("li", line) for line in not_asked_lines(panel)]
    return join([*parts, element("ul", *missing, class_="note") if missing else ""])


def _doubt(doubt: Doubt) -> Markup:
    chart = dots_chart(
        doubt.rows,
        doubt.series,
        doubt.values,
        title=doubt.question,
        label=doubt.label,
        intervals=doubt.intervals,
        rule=doubt.rule,
        span=doubt.span,
    )
    table = html_table(doubt_table(doubt, drawn=False))
    numbers = element("details", element("summary", "Numbers"), table)
    reading = element("p", doubt.reading)
    picture = element("div", figure(chart, doubt.name), class_="figures")
    return join([element("h3", doubt.question), reading, picture, numbers])
