"""Sections of a report: challenge sets, diagnostics and slices.

A section has a summary, a chart and the numbers, collapsed if there are many.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from tertium.core.result import Table
from tertium.evaluation.challenge import ChallengeStudy
from tertium.evaluation.diagnostics.diagnostic import Diagnostic
from tertium.evaluation.diagnostics.run import DiagnosticReport
from tertium.evaluation.evaluation import Evaluation
from tertium.evaluation.slices import Slices
from tertium.meta.results import Results
from tertium.output.charts.row_charts import describe_direction, dot_chart
from tertium.output.html_table import render_table as render_html_table
from tertium.output.markup import Markup, collapsible, element, join
from tertium.output.page.figures import captioned_figure
from tertium.output.tables.challenge_sets import challenge_chart, challenge_table
from tertium.output.tables.diagnostics import diagnostic_table, format_skipped_diagnostics
from tertium.output.tables.slices import agreement_slice_tables

MAX_CHART_SLICES = 60
MAX_EXPANDED_ROWS = 24  # longer tables are collapsed


def challenge_contents(study: ChallengeStudy) -> Markup:
    """Return a summary, a chart and a collapsed table."""
    chart = _figures([captioned_figure(challenge_chart(study), study.challenge.name)])
    numbers = collapsible("Numbers", render_html_table(challenge_table(study)))
    return join([element("p", _summarize_challenge(study)), chart, numbers])


def _summarize_challenge(study: ChallengeStudy) -> str:
    """Return each metric's mean accuracy over groups and its weakest group."""
    sentences = []
    for m, name in enumerate(study.names):
        worst = int(study.accuracy[m].argmin())
        share = 100 * study.accuracy[m, worst]
        sentences.append(
            f"{name} {100 * study.mean[m]:.0f} %, lowest {share:.0f} % ({study.groups[worst]})"
        )
    return (
        "Accuracy at preferring the better of two translations, mean over "
        f"{len(study.groups)} groups: {'; '.join(sentences)}. Random choice gets 50 %."
    )


def diagnostics_contents(report: DiagnosticReport) -> Markup:
    """Return all diagnostics, then those that were skipped."""
    parts = [_diagnostic(diagnostic) for diagnostic in report.diagnostics]
    skipped = [element("li", line) for line in format_skipped_diagnostics(report)]
    return join([*parts, element("ul", *skipped, class_="note") if skipped else ""])


def _diagnostic(diagnostic: Diagnostic) -> Markup:
    chart = dot_chart(
        diagnostic.rows,
        diagnostic.series,
        diagnostic.values,
        title=diagnostic.question,
        label=diagnostic.label,
        intervals=diagnostic.intervals,
        rule=diagnostic.reference_value,
        span=diagnostic.axis_range,
    )
    numbers = collapsible("Numbers", render_html_table(diagnostic_table(diagnostic, chart=False)))
    heading, reading = element("h3", diagnostic.question), element("p", diagnostic.summary)
    return join([heading, reading, _figures([captioned_figure(chart, diagnostic.name)]), numbers])


def slices_contents(slicings: Sequence[Slices]) -> Markup:
    """Return a table and a chart per metric for each way to slice."""
    parts = []
    for slices in slicings:
        figures = [_slice_figure(slices, metric) for metric in _first_part(slices).metrics]
        parts += [*map(_table, slices.tables()), _figures(figures)]
    return join(parts)


def agreement_slices_contents(sliced: Mapping[str, Results]) -> Markup:
    """Return a table and a chart of agreement for each slicing and statistic."""
    parts = []
    for by, results in sliced.items():
        tables = agreement_slice_tables(results, by)
        for table, own in zip(tables, results.by_statistic().values(), strict=True):
            chart = _agreement_chart(own, by)
            parts += [_table(table), _figures([captioned_figure(chart, table.title)])]
    return join(parts)


def _first_part(slices: Slices) -> Evaluation:
    return next(iter(slices.parts.values()))


def _slice_figure(slices: Slices, metric: str) -> Markup:
    first = _first_part(slices)
    names = [*slices.parts][:MAX_CHART_SLICES]
    values = [[s.system for s in slices.parts[name].metric_scores(metric)] for name in names]
    title, scores = first.names[metric], first.metric_scores(metric)[0]
    chart = dot_chart(
        names,
        first.systems,
        np.array(values),
        title=f"{title} by {slices.by}",
        label=describe_direction(scores.higher_is_better),
        decimals=scores.decimals,
    )
    return captioned_figure(chart, f"{title} by {slices.by}")


def _agreement_chart(results: Results, by: str) -> Markup:
    tasks = results.tasks[:MAX_CHART_SLICES]
    bounds = np.array([np.stack([task.low, task.high], axis=1) for task in tasks])
    return dot_chart(
        [task.task.label for task in tasks],
        results.metrics,
        np.array([task.values for task in tasks]),
        title=f"Agreement by {by}",
        label=tasks[0].task.kind.title,
        intervals=bounds,
    )


def _table(table: Table) -> Markup:
    html = render_html_table(table, sortable=True)
    is_long = len(table.rows) > MAX_EXPANDED_ROWS
    return collapsible(f"{table.title}: numbers", html) if is_long else html


def _figures(figures: Sequence[Markup]) -> Markup:
    return element("div", *figures, class_="figures")
