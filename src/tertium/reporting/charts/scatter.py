"""What a metric says against what people say, a dot for each translation (or system).

A correlation hides outliers, ceilings and clusters by system; a scatter plot shows them.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from tertium.atomic import check_writable
from tertium.errors import DataError, UsageError
from tertium.meta.tasks import JudgedSet
from tertium.reporting.charts.clouds import Axis, cloud_chart, describe
from tertium.reporting.charts.standalone import Captioned, write_picture

LARGEST = 120  # panels in one figure


def check_plot(path: str | Path) -> None:
    """Refuse a file that could not be written, before the work and not after it."""
    if Path(path).suffix.lower() != ".svg":
        raise UsageError(f"{path}: a plot is written as .svg")
    check_writable(path)


def scatter(sets: Sequence[JudgedSet], *, level: str = "segment") -> list[list[Captioned]]:
    """A row of captioned pictures for each metric with a column for each judged set."""
    metrics = list(dict.fromkeys(m for judged in sets for m in judged.metrics))
    if not metrics or not sets:
        raise DataError("there is nothing to plot: no metric, or no judged set")
    if len(metrics) * len(sets) > LARGEST:
        raise UsageError(
            f"{len(metrics)} metrics x {len(sets)} sets are too many panels for one figure "
            f"(at most {LARGEST}): plot fewer"
        )
    return [[_draw(judged, metric, level) for judged in sets] for metric in metrics]


def write_scatter(path: str | Path, sets: Sequence[JudgedSet], *, level: str = "segment") -> None:
    """Draw and write; equal data give equal files."""
    check_plot(path)
    write_picture(path, scatter(sets, level=level))


def _draw(judged: JudgedSet, metric: str, level: str) -> Captioned:
    nothing = np.zeros(0)
    if metric not in judged.metrics:
        empty = cloud_chart(Axis(name="human", values=nothing), Axis(name=metric, values=nothing))
        return f"{judged.name}: not scored", empty
    number = judged.metrics.index(metric)
    x, y = judged.human, judged.scores[number]
    names: Sequence[str] = ()
    if level == "system":
        x, y, names = judged.human_systems, judged.system_scores[number], judged.systems
    x, y = x.ravel(), y.ravel()
    known = np.isfinite(x) & np.isfinite(y)
    chart = cloud_chart(
        Axis(name="human", values=x), Axis(name=metric, values=y), fit=True, names=names
    )
    return f"{judged.name}  {describe(x[known], y[known])}", chart
