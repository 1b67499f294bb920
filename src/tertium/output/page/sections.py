"""Sections of a report: challenge sets, diagnostics and slices.

A section has a summary, a chart and the numbers, collapsed if there are many.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from tertium.core.charts import DotChart, describe_direction
from tertium.core.result import Table
from tertium.evaluation.challenge import ChallengeStudy
from tertium.evaluation.diagnostics.diagnostic import Diagnostic
from tertium.evaluation.diagnostics.run import DiagnosticReport
from tertium.evaluation.evaluation import Evaluation
from tertium.evaluation.slices import Slices
from tertium.meta.results import Results
from tertium.output.html_table import render_table as render_html_table
from tertium.output.markup import Markup, collapsible, element, join
from tertium.output.page.figures import figure, figure_row

MAX_CHART_SLICES = 60
MAX_EXPANDED_ROWS = 24  # longer tables are collapsed


def challenge_contents(study: ChallengeStudy) -> Markup:
    """Return a summary, a chart and a collapsed table."""
    [chart] = study.charts()
    chart = replace(chart, caption=study.challenge.name)
    numbers = collapsible("Numbers", render_html_table(study.tables()[0]))
    return join([element("p", _summarize_challenge(study)), figure_row([figure(chart)]), numbers])


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
    skipped = [element("li", line) for line in report.skipped_lines()]
    return join([*parts, element("ul", *skipped, class_="note") if skipped else ""])


def _diagnostic(diagnostic: Diagnostic) -> Markup:
    chart = DotChart(
        title=diagnostic.question,
        caption=diagnostic.name,
        label=diagnostic.label,
        rows=diagnostic.rows,
        series=diagnostic.series,
        values=diagnostic.values,
        intervals=diagnostic.intervals,
        reference_value=diagnostic.reference_value,
        axis_range=diagnostic.axis_range,
    )
    numbers = collapsible("Numbers", render_html_table(diagnostic.table()))
    heading, reading = element("h3", diagnostic.question), element("p", diagnostic.summary)
    return join([heading, reading, figure_row([figure(chart)]), numbers])


def slices_contents(slicings: Sequence[Slices]) -> Markup:
    """Return a table and a chart per metric for each way to slice."""
    parts = []
    for slices in slicings:
        charts = [_slice_chart(slices, metric) for metric in _first_part(slices).metrics]
        parts += [*map(_table, slices.tables()), figure_row(map(figure, charts))]
    return join(parts)


def agreement_slices_contents(sliced: Mapping[str, Results]) -> Markup:
    """Return a table and a chart of agreement for each slicing and statistic."""
    parts = []
    for by, results in sliced.items():
        tables = results.slice_tables(by)
        for table, own in zip(tables, results.by_statistic().values(), strict=True):
            chart = replace(_agreement_chart(own, by), caption=table.title)
            parts += [_table(table), figure_row([figure(chart)])]
    return join(parts)


def _first_part(slices: Slices) -> Evaluation:
    return next(iter(slices.parts.values()))


def _slice_chart(slices: Slices, metric: str) -> DotChart:
    first = _first_part(slices)
    scores = first.metric_scores(metric)[0]
    title = f"{first.names[metric]} by {slices.by}"
    names = [*slices.parts][:MAX_CHART_SLICES]
    values = [[s.system for s in slices.parts[name].metric_scores(metric)] for name in names]
    return DotChart(
        title=title,
        caption=title,
        label=describe_direction(scores.higher_is_better),
        rows=names,
        series=first.systems,
        values=np.array(values),
        decimals=scores.decimals,
    )


def _agreement_chart(results: Results, by: str) -> DotChart:
    tasks = results.tasks[:MAX_CHART_SLICES]
    return DotChart(
        title=f"Agreement by {by}",
        label=tasks[0].task.kind.title,
        rows=[task.task.label for task in tasks],
        series=results.metrics,
        values=np.array([task.values for task in tasks]),
        intervals=np.array([np.stack([task.low, task.high], axis=1) for task in tasks]),
    )


def _table(table: Table) -> Markup:
    html = render_html_table(table, sortable=True)
    is_long = len(table.rows) > MAX_EXPANDED_ROWS
    return collapsible(f"{table.title}: numbers", html) if is_long else html
