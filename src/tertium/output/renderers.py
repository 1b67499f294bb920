"""Display of results: tables and charts as HTML in notebooks, text tables when printed."""

from __future__ import annotations

from dataclasses import replace
from functools import singledispatch

import numpy as np

from tertium.core.charts import RidgeChart
from tertium.core.result import Result, Table
from tertium.evaluation.challenge import ChallengeStudy
from tertium.evaluation.error_marking import MarkedErrors
from tertium.evaluation.evaluation import Evaluation
from tertium.evaluation.ranking import Ranking
from tertium.evaluation.rater_agreement import RaterStudy
from tertium.metrics.base.explanation import Explanation
from tertium.output.charts.axes import axis_limits
from tertium.output.error_span_markup import marked_errors_section
from tertium.output.html_table import render_table as render_html_table
from tertium.output.markup import Markup, element, isolate_names, join
from tertium.output.page.explanations import explanation_html
from tertium.output.page.figures import figure, ranking_figures
from tertium.output.page.report import Report
from tertium.output.page.template import read_asset
from tertium.output.render import render_table
from tertium.output.tables.explanations import explanation_parts
from tertium.output.tables.rater_agreement import study_tables
from tertium.output.tables.table import Cell, cell_table, number_cell
from tertium.scores import Scores

WRITE_EXAMPLE = element("code", 'report.write("report.html")')


@singledispatch
def render_html(value: object) -> str:
    """Return a result as HTML with its style sheet: by default its tables."""
    tables = result_tables(value)
    if not tables:
        raise TypeError(f"{type(value).__name__} has no HTML renderer: register one")
    return html_fragment(*map(render_html_table, tables))


@render_html.register
def _(scores: Scores) -> str:
    """Return one metric on one system: scores, quartiles and the distribution of segments."""
    values = scores.segments[np.isfinite(scores.segments)]
    quartiles = np.percentile(values, [0, 25, 50, 75, 100]) if values.size else [np.nan] * 5
    places = scores.decimals
    header = ["metric", "system", "segments", "min", "25 %", "median", "75 %", "max"]
    name = scores.name or scores.metric
    row: list[Cell | str] = [
        name,
        number_cell(scores.system, places, "best"),
        number_cell(len(scores), 0),
    ]
    row += [number_cell(float(value), places) for value in quartiles]
    warnings = [f"warning: {kind}: {count}" for kind, count in scores.warnings.items()]
    notes = [text for text in (scores.verbose, scores.signature, *warnings) if text]
    table = render_html_table(cell_table(header, [row], notes=notes))
    low, high = axis_limits(values)
    if not values.size or low == high:
        return html_fragment(table)
    chart = RidgeChart(
        title=f"Distribution of {name}",
        caption=f"{name}, {len(scores)} segments",
        names=["segments"],
        samples=[values],
        higher_is_better=scores.higher_is_better,
    )
    return html_fragment(table, figure(chart))


@singledispatch
def result_tables(value: object) -> list[Table]:
    """Return the tables of a result; empty for other values."""
    return [*value.tables()] if isinstance(value, Result) else []


@result_tables.register
def _(study: RaterStudy) -> list[Table]:
    return study_tables(study)


@singledispatch
def render_text(value: object) -> str:
    """Return what `print` shows: the tables of a result, or the repr of another value."""
    text = "\n".join(render_table(table) for table in result_tables(value))
    return text.strip("\n") or repr(value)


@render_text.register
def _(explanation: Explanation) -> str:
    """Return lines and tables as `tertium explain` prints them."""
    warnings = (f"warning: {kind}" for kind in explanation.warnings)
    parts = (*explanation_parts(explanation), *warnings)
    return "".join(f"{p}\n" if isinstance(p, str) else render_table(p) for p in parts).rstrip("\n")


@render_html.register
def _(evaluation: Evaluation) -> str:
    """Return systems x metrics (with p-values for a comparison) and a chart of the ranking."""
    return html_fragment(
        *map(render_html_table, result_tables(evaluation)), ranking_figures(evaluation)
    )


@render_html.register
def _(ranking: Ranking) -> str:
    """Return systems by win probability, as a table and a chart."""
    figures = ranking_figures(ranking.as_evaluation())
    return html_fragment(*map(render_html_table, result_tables(ranking)), figures)


@render_html.register
def _(study: ChallengeStudy) -> str:
    """Return phenomena x metrics, as a table and a chart."""
    caption = "How often the better translation scores higher"
    chart = figure(replace(study.charts()[0], caption=caption))
    return html_fragment(*map(render_html_table, result_tables(study)), chart)


@render_html.register
def _(explanation: Explanation) -> str:
    """Return heat maps, transport plans, features or win probabilities of an explanation."""
    score = number_cell(explanation.score, 4).text
    heading = element("p", element("b", f"{explanation.metric}: {score}"))
    if explanation.attribution or explanation.win_probabilities:
        heading = Markup("")  # their HTML has its own heading
    warnings = [element("p", f"warning: {kind}", class_="muted") for kind in explanation.warnings]
    return html_fragment(heading, explanation_html(explanation), *warnings)


@render_html.register
def _(marked: MarkedErrors) -> str:
    return html_fragment(marked_errors_section(marked))


@render_html.register
def _(report: Report) -> str:
    """Return the findings and tables of a report; figures and segments are only on its page."""
    tables = [*result_tables(report.results), *report.agreement]
    lines = [element("li", element("bdi", name), f" {text}.") for name, text in report.findings]
    return html_fragment(
        element("p", element("b", *isolate_names(report.title, report.grid.systems))),
        element("p", report.subtitle),
        element("ul", *lines) if lines else Markup(""),
        *map(render_html_table, tables),
        element("p", "Write the full page with charts and all segments: ", WRITE_EXAMPLE),
    )


def html_fragment(*parts: Markup) -> str:
    """Return HTML in a container with the style sheet of reports."""
    style = element("style", Markup(read_asset("charts.css")))
    return str(element("div", style, join(parts), class_="tertium"))
