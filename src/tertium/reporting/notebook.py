"""How values show themselves: in a notebook tables, pictures and style, when printed the text."""

from __future__ import annotations

from functools import singledispatch

import numpy as np

from tertium.evaluation.agreement import AgreementStudy
from tertium.evaluation.challenge import ChallengeStudy
from tertium.evaluation.comparison import Comparison
from tertium.evaluation.error_spans import SpanStudy
from tertium.evaluation.marking import MarkedTranslations
from tertium.evaluation.ranking import Ranking
from tertium.evaluation.scoring import Evaluation
from tertium.metrics.base.explanation import Explanation
from tertium.reporting.charts.axes import bounds
from tertium.reporting.charts.rows import ridge_chart
from tertium.reporting.marks import marked_section
from tertium.reporting.markup import Markup, element, join, set_apart
from tertium.reporting.page.explained import explanation
from tertium.reporting.page.page import Report, resource
from tertium.reporting.page.pictures import figure, ranking_pictures
from tertium.reporting.tables.agreements import agreement_table
from tertium.reporting.tables.challenges import challenge_chart, challenge_table
from tertium.reporting.tables.error_spans import detail_tables, span_table
from tertium.reporting.tables.evaluations import comparison_table, ranking_table, system_table
from tertium.reporting.tables.explanations import parts_of
from tertium.reporting.tables.table import Cell, Table, html_table, number, render
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


@singledispatch
def tables_of(value: object) -> list[Table]:
    """The tables of a value that consists of such; none where it does not."""
    return []


@tables_of.register
def _(evaluation: Evaluation) -> list[Table]:
    return [system_table(evaluation)]


@tables_of.register
def _(comparison: Comparison) -> list[Table]:
    return [comparison_table(comparison)]


@tables_of.register
def _(ranking: Ranking) -> list[Table]:
    return [ranking_table(ranking)]


@tables_of.register
def _(agreement: AgreementStudy) -> list[Table]:
    return [agreement_table(part) for part in agreement.results.by_statistic().values()]


@tables_of.register
def _(study: ChallengeStudy) -> list[Table]:
    return [challenge_table(study)]


@tables_of.register
def _(study: SpanStudy) -> list[Table]:
    tables = ((span_table(study, name), *detail_tables(study, name)) for name in study.people)
    return [table for several in tables for table in several]


@singledispatch
def tell(value: object) -> str:
    """What `print` shows of a value: its tables, as a command prints them, or how it is made."""
    return "\n".join(render(table) for table in tables_of(value)).strip("\n") or repr(value)


@tell.register
def tell_explanation(explained: Explanation) -> str:
    """Lines and tables as `tertium explain` prints them, and what a reader should know."""
    warned = (f"warning: {kind}" for kind in explained.warnings)
    parts = (*parts_of(explained), *warned)
    return "".join(f"{p}\n" if isinstance(p, str) else render(p) for p in parts).rstrip("\n")


@show.register
def show_evaluation(evaluation: Evaluation) -> str:
    """Systems x metrics, of a comparison with p-values, and the systems in their order."""
    return fragment(*map(html_table, tables_of(evaluation)), ranking_pictures(evaluation))


@show.register
def show_ranking(ranking: Ranking) -> str:
    """Systems by their chance to win, and the same as a picture."""
    pictures = ranking_pictures(ranking.as_evaluation())
    return fragment(*map(html_table, tables_of(ranking)), pictures)


@show.register
def show_agreement(agreement: AgreementStudy) -> str:
    """A table for each statistic."""
    return fragment(*map(html_table, tables_of(agreement)))


@show.register
def show_challenge(study: ChallengeStudy) -> str:
    """Phenomena x metrics, and the same as a picture."""
    chart = figure(challenge_chart(study), "How often the better translation scores higher")
    return fragment(*map(html_table, tables_of(study)), chart)


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
    return fragment(*map(html_table, tables_of(study)))


@show.register
def show_report(report: Report) -> str:
    """What a page is about and its tables; pictures and segments are on the page itself."""
    tables = [*tables_of(report.results), *report.agreement]
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
