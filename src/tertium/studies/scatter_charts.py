"""Scatter plots of metric scores against human scores."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np

from tertium.core.charts import Axis, ScatterChart
from tertium.meta.aligned_scores import AlignedScores
from tertium.meta.correlation import describe_correlation


def make_scatter_charts(
    sets: Sequence[AlignedScores], *, level: str = "segment", negated: Collection[str] = ()
) -> list[ScatterChart]:
    """Return one row of scatter plots per metric, with a column per dataset."""
    charts: list[ScatterChart] = []
    metrics = dict.fromkeys(metric for dataset in sets for metric in dataset.metrics)
    for row, metric in enumerate(metrics):
        name = f"−{metric}" if metric in negated else metric
        charts += [_make_chart(dataset, metric, name, level, row) for dataset in sets]
    return charts


def _make_chart(
    dataset: AlignedScores, metric: str, name: str, level: str, row: int
) -> ScatterChart:
    caption = f"{dataset.name}: not scored"
    human = scores = np.zeros(0)
    systems: Sequence[str] = ()
    if metric in dataset.metrics:
        number = dataset.metrics.index(metric)
        human = dataset.human.ravel()
        scores = dataset.scores[number].ravel()
        if level == "system":
            human = dataset.human_systems
            scores = dataset.system_scores[number]
            systems = dataset.systems
        caption = f"{dataset.name}  {describe_correlation(human, scores)}"
    return ScatterChart(
        caption=caption,
        row=row,
        x=Axis(name="human", values=human),
        y=Axis(name=name, values=scores),
        has_trend=True,
        names=systems,
    )
