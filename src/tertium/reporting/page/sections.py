"""Sections of a page: metrics on a challenge set, the panel of doubts, results slice by slice.

Each is a sentence, a picture and the numbers, folded where they are many.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from tertium.evaluation.challenge import ChallengeStudy
from tertium.evaluation.panel.case import Doubt
from tertium.evaluation.panel.panel import DoubtPanel
from tertium.evaluation.scoring import Evaluation
from tertium.evaluation.slices import Slices
from tertium.meta.evaluation import Results
from tertium.reporting.charts.pictures import figure
from tertium.reporting.charts.rows import direction, dots_chart
from tertium.reporting.markup import Markup, element, folded, join
from tertium.reporting.tables.challenges import challenge_chart, challenge_table
from tertium.reporting.tables.panels import doubt_table, not_asked_lines
from tertium.reporting.tables.slices import agreement_slice_tables, slice_table
from tertium.reporting.tables.table import Table, html_table


def challenge_contents(study: ChallengeStudy) -> Markup:
    """A sentence, the picture, and the table folded below it."""
    picture = _figures([figure(challenge_chart(study), study.challenge.name)])
    numbers = folded("Numbers", html_table(challenge_table(study)))
    return join([element("p", _reading(study)), picture, numbers])


def _reading(study: ChallengeStudy) -> str:
    """Each metric's mean over groups, and where it is weakest."""
    said = []
    for m, name in enumerate(study.names):
        worst = int(study.accuracy[m].argmin())
        share = 100 * study.accuracy[m, worst]
        said.append(
            f"{name} puts {100 * study.mean[m]:.0f} % right, "
            f"{share:.0f} % where it is weakest ({study.groups[worst]})"
        )
    return (
        "Of pairs of a better and a worse translation, in the mean over "
        f"{len(study.groups)} groups, {'; '.join(said)}. A coin gets 50 %."
    )


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
    numbers = folded("Numbers", html_table(doubt_table(doubt, drawn=False)))
    heading, reading = element("h3", doubt.question), element("p", doubt.reading)
    return join([heading, reading, _figures([figure(chart, doubt.name)]), numbers])


MOST, MOST_ROWS = 60, 24  # slices in a picture, rows of a table that stands open


def slices_contents(several: Sequence[Slices]) -> Markup:
    """Systems on slices: a table, and a picture for each metric."""
    parts = []
    for slices in several:
        figures = [_picture(slices, metric) for metric in _first(slices).metrics]
        parts += [_table(slice_table(slices)), _figures(figures)]
    return join(parts)


def agreement_slices_contents(sliced: Mapping[str, Results]) -> Markup:
    """Metrics on slices: a table and a picture for each statistic."""
    parts = []
    for by, results in sliced.items():
        tables = agreement_slice_tables(results, by)
        for table, own in zip(tables, results.by_statistic().values(), strict=True):
            chart = _agreement_picture(own, by)
            parts += [_table(table), _figures([figure(chart, table.title)])]
    return join(parts)


def _first(slices: Slices) -> Evaluation:
    return next(iter(slices.parts.values()))


def _picture(slices: Slices, metric: str) -> Markup:
    first = _first(slices)
    names = [*slices.parts][:MOST]
    values = [[s.system for s in slices.parts[name].of_metric(metric)] for name in names]
    title, scores = first.names[metric], first.of_metric(metric)[0]
    chart = dots_chart(
        names,
        first.systems,
        np.array(values),
        title=f"{title} by {slices.by}",
        label=direction(scores.higher_is_better),
        decimals=scores.decimals,
    )
    return figure(chart, f"{title} by {slices.by}")


def _agreement_picture(results: Results, by: str) -> Markup:
    tasks = results.tasks[:MOST]
    bounds = np.array([np.stack([task.low, task.high], axis=1) for task in tasks])
    return dots_chart(
        [task.task.label for task in tasks],
        results.metrics,
        np.array([task.values for task in tasks]),
        title=f"Agreement by {by}",
        label=tasks[0].task.kind.title,
        intervals=bounds,
    )


def _table(table: Table) -> Markup:
    """A table; a long one folded, with its notes."""
    shown = html_table(table, sortable=True)
    return shown if len(table.rows) <= MOST_ROWS else folded(f"{table.title}: numbers", shown)


def _figures(figures: Sequence[Markup]) -> Markup:
    return element("div", *figures, class_="figures")
