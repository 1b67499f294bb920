"""Scatter plots of metrics against human scores, as `tertium meta --plot` writes them."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

import numpy as np

from tertium.core.charts import Axis, ScatterChart
from tertium.errors import DataError, UsageError
from tertium.meta.aligned_scores import AlignedScores
from tertium.output.charts.chart_statistics import describe_correlation

MAX_PANELS = 120  # in one file


def scatter_grid(
    sets: Sequence[AlignedScores], *, level: str = "segment", negated: Collection[str] = ()
) -> list[list[ScatterChart]]:
    """Return one row of scatter plots per metric, with a column per dataset."""
    metrics = _find_metrics(sets)
    if not metrics:
        raise DataError("nothing to plot: no metrics or no datasets")
    if len(metrics) * len(sets) > MAX_PANELS:
        raise UsageError(
            f"{len(metrics)} metrics x {len(sets)} datasets: too many panels for one figure "
            f"(at most {MAX_PANELS}); select fewer"
        )
    return scatter_charts(sets, level=level, negated=negated)


def scatter_charts(
    sets: Sequence[AlignedScores], *, level: str, negated: Collection[str]
) -> list[list[ScatterChart]]:
    """Return rows of any number of scatter plots."""
    rows = []
    for metric in _find_metrics(sets):
        name = f"−{metric}" if metric in negated else metric
        rows.append([_panel(dataset, metric, name, level) for dataset in sets])
    return rows


def _find_metrics(sets: Sequence[AlignedScores]) -> list[str]:
    return list(dict.fromkeys(m for dataset in sets for m in dataset.metrics))


def _panel(dataset: AlignedScores, metric: str, name: str, level: str) -> ScatterChart:
    caption = f"{dataset.name}: not scored"
    x = Axis(name="human", values=np.zeros(0))
    y = Axis(name=name, values=np.zeros(0))
    systems: Sequence[str] = ()
    if metric in dataset.metrics:
        number = dataset.metrics.index(metric)
        human = dataset.human.ravel()
        scores = dataset.scores[number].ravel()
        if level == "system":
            human = dataset.human_systems
            scores = dataset.system_scores[number]
            systems = dataset.systems
        x = replace(x, values=human)
        y = replace(y, values=scores)
        caption = f"{dataset.name}  {describe_correlation(x, y)}"
    return ScatterChart(
        caption=caption,
        x=x,
        y=y,
        trend="fit",
        names=systems,
    )
