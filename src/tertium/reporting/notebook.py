"""How values show themselves in a notebook: a table, a picture, and the style they need."""

from __future__ import annotations

from functools import singledispatch

import numpy as np

from tertium.evaluation.agreement import AgreementStudy
from tertium.evaluation.challenge import ChallengeStudy
from tertium.evaluation.comparison import Comparison
from tertium.evaluation.error_spans import SpanStudy
from tertium.evaluation.explaining import MarkedTranslations
from tertium.evaluation.ranking import Ranking
from tertium.evaluation.scoring import Evaluation
from tertium.metrics.base.explanation import Explanation
from tertium.reporting.charts.axes import bounds
from tertium.reporting.charts.pictures import figure, ranking_pictures
from tertium.reporting.charts.rows import ridge_chart
from tertium.reporting.marks import marked_section
from tertium.reporting.markup import Markup, element, join, set_apart
from tertium.reporting.page.explained import explanation
from tertium.reporting.page.page import Report, resource
from tertium.reporting.tables.agreements import agreement_table
from tertium.reporting.tables.challenges import challenge_chart, challenge_table
from tertium.reporting.tables.error_spans import detail_tables, span_table
from tertium.reporting.tables.evaluations import comparison_table, ranking_table, system_table
from tertium.reporting.tables.table import Cell, Table, html_table, number
from tertium.scores import Scores

HOW_TO_WRITE = element("code", 'report.write("report.html")')


@singledispatch
def show(value: object) -> str:
    """A value as HTML, by the function of its class."""
    raise TypeError(f"{type(value).__name__} has no function here that shows it")


@show.register
def show_scores(scores: Scores) -> str:
    """One metric on one system: its score, the spread of the segments, and their outline."""
    values = scores.segments[np.isfinite(scores.segments)]
    quartiles = np.percentile(values, [0, 25, 50, 75, 100]) if values.size else [np.nan] * 5
    places = scores.decimals
    header = ["metric", "system", "segments", "lowest", "quarter", "median"]
    header += ["three quarters", "highest"]
    name = scores.name or scores.metric
    row: list[Cell | str] = [name, number(scores.system, places, "best"), number(len(scores), 0)]
    row += [number(float(value), places) for value in quartiles]
    warned = [f"warning: {kind}: {count}" for kind, count in scores.warnings.items()]
    notes = [text for text in (scores.verbose, scores.signature, *warned) if text]
    table = html_table(Table(header, [row], notes=notes))
    low, high = bounds(values)
    if not values.size or low == high:
        return fragment(table)
    chart = ridge_chart(
        ["segments"], [values], title=name, higher_is_better=scores.higher_is_better
    )
    return fragment(table, figure(chart, f"{name}, {len(scores)} segments"))


@show.register
def show_evaluation(evaluation: Evaluation) -> str:
    """Systems x metrics, and the systems in their order."""
    return fragment(html_table(system_table(evaluation)), ranking_pictures(evaluation))


@show.register
def show_comparison(comparison: Comparison) -> str:
    """The same with p-values and clusters."""
    table = html_table(comparison_table(comparison))
    return fragment(table, ranking_pictures(comparison))


@show.register
def show_ranking(ranking: Ranking) -> str:
    """Systems by their chance to win, and the same as a picture."""
    return fragment(html_table(ranking_table(ranking)), ranking_pictures(ranking.as_evaluation()))


@show.register
def show_agreement(agreement: AgreementStudy) -> str:
    """A table for each statistic."""
    parts = agreement.results.by_statistic().values()
    return fragment(*(html_table(agreement_table(part)) for part in parts))


@show.register
def show_challenge(study: ChallengeStudy) -> str:
    """Phenomena x metrics, and the same as a picture."""
    chart = figure(challenge_chart(study), "How often the better translation scores higher")
    return fragment(html_table(challenge_table(study)), chart)


@show.register
def show_explanation(explained: Explanation) -> str:
    """Heat maps, transport plans, reasons and votes, whatever there is."""
    heading = element("p", element("b", f"{explained.metric}: {number(explained.score, 4).text}"))
    told = explained.reasons or explained.votes  # which have headings of their own
    warned = [element("p", f"warning: {kind}", class_="muted") for kind in explained.warnings]
    return fragment(Markup("") if told else heading, explanation(explained), *warned)


@show.register
def show_marked(marked: MarkedTranslations) -> str:
    """The worst translations with their errors marked."""
    return fragment(marked_section([marked]))


@show.register
def show_spans(study: SpanStudy) -> str:
    """Marked errors beside people's, by set, then by severity and category."""
    tables = ((span_table(study, name), *detail_tables(study, name)) for name in study.people)
    return fragment(*(html_table(table) for several in tables for table in several))


@show.register
def show_report(report: Report) -> str:
    """What a page is about and its tables; pictures and segments are on the page itself."""
    tables = [*report.agreement]
    match report.results:
        case Comparison() as compared:
            tables.insert(0, comparison_table(compared))
        case Evaluation() as scored:
            tables.insert(0, system_table(scored))
    lines = [element("li", element("bdi", name), f" {text}.") for name, text in report.findings]
    return fragment(
        element("p", element("b", *set_apart(report.title, report.grid.systems))),
        element("p", report.subtitle),
        element("ul", *lines) if lines else Markup(""),
        *map(html_table, tables),
        element("p", "The page itself, with pictures and every segment: ", HOW_TO_WRITE),
    )


def fragment(*parts: Markup) -> str:
    """A piece of HTML with the style of reports."""
    style = element("style", Markup(resource("pictures.css")))
    return str(element("div", style, join(parts), class_="tertium"))
