"""Display of results: tables and charts as HTML in notebooks, text tables when printed."""

from __future__ import annotations

from dataclasses import replace
from functools import singledispatch

from tertium.core.result import Result, Table
from tertium.evaluation.challenge import ChallengeStudy
from tertium.evaluation.error_marking import MarkedErrors
from tertium.evaluation.evaluation import Evaluation
from tertium.evaluation.ranking import Ranking
from tertium.metrics.base.explanation import Explanation
from tertium.output.error_span_markup import marked_errors_section
from tertium.output.html_table import render_table as render_html_table
from tertium.output.markup import Markup, element, isolate_names, join
from tertium.output.page.explanations import explanation_html
from tertium.output.page.figures import figure, ranking_figures
from tertium.output.page.report import Report
from tertium.output.page.template import read_asset
from tertium.output.render import render_table

WRITE_EXAMPLE = element("code", 'report.write("report.html")')


@singledispatch
def render_html(value: object) -> str:
    """Return a result as HTML with its style sheet: by default its tables and charts."""
    tables = result_tables(value)
    if not tables:
        raise TypeError(f"{type(value).__name__} has no HTML renderer: register one")
    figures = map(figure, value.charts()) if hasattr(value, "charts") else ()
    return html_fragment(*map(render_html_table, tables), *figures)


@singledispatch
def result_tables(value: object) -> list[Table]:
    """Return the tables of a result; empty for other values."""
    return [*value.tables()] if isinstance(value, Result) else []


@singledispatch
def render_text(value: object) -> str:
    """Return what `print` shows: the tables of a result, or the repr of another value."""
    text = "\n".join(render_table(table) for table in result_tables(value))
    return text.strip("\n") or repr(value)


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
    return html_fragment(explanation_html(explanation))


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
