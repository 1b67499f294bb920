"""The section of a page that shows results slice by slice: a table and a picture of each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from tertium.evaluation.scoring import Evaluation
from tertium.evaluation.slices import Slices
from tertium.meta.evaluation import Results
from tertium.reporting.charts.dots import dots_chart
from tertium.reporting.charts.pictures import figure
from tertium.reporting.markup import Markup, element, join
from tertium.reporting.page.grid import metric_names
from tertium.reporting.tables.html import html_table
from tertium.reporting.tables.slices import agreement_slice_tables, slice_table
from tertium.reporting.tables.table import Table

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
    return slices.evaluation(next(iter(slices.parts)))


def _picture(slices: Slices, metric: str) -> Markup:
    first = _first(slices)
    names = [*slices.parts][:MOST]
    values = [[s.system for s in slices.evaluation(name).of_metric(metric)] for name in names]
    title, scores = metric_names(first)[metric], first.of_metric(metric)[0]
    direction = "higher is better" if scores.higher_is_better else "lower is better"
    chart = dots_chart(
        names,
        first.systems,
        np.array(values),
        title=f"{title} by {slices.by}",
        label=direction,
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
    if len(table.rows) <= MOST_ROWS:
        return shown
    return element("details", element("summary", f"{table.title}: numbers"), shown)


def _figures(figures: Sequence[Markup]) -> Markup:
    return element("div", *figures, class_="figures")
