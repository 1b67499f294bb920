"""What a metric says against what people say, a dot for each translation (or system).

A correlation hides outliers, ceilings and clusters by system; a scatter plot shows them. Needs
matplotlib, which comes with `tertium[report]`.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tertium.atomic import check_writable, replace_content
from tertium.errors import DataError, UsageError
from tertium.extras import explain_missing
from tertium.meta.correlation import pearson
from tertium.meta.judged import JudgedSet

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FORMATS = (".png", ".pdf", ".svg")
LARGEST = 120  # panels in one figure


def check_plot(path: str | Path) -> None:
    """Refuse a file that could not be written, before the work and not after it."""
    if Path(path).suffix.lower() not in FORMATS:
        raise UsageError(f"{path}: a plot is written to {', '.join(FORMATS)}")
    check_writable(path)
    _figure_class()


def scatter(sets: Sequence[JudgedSet], *, level: str = "segment") -> Figure:
    """A figure with a row of panels for each metric and a column for each judged set."""
    metrics = list(dict.fromkeys(m for judged in sets for m in judged.metrics))
    if not metrics or not sets:
        raise DataError("there is nothing to plot: no metric, or no judged set")
    if len(metrics) * len(sets) > LARGEST:
        raise UsageError(
            f"{len(metrics)} metrics x {len(sets)} sets are too many panels for one figure "
            f"(at most {LARGEST}): plot fewer"
        )
    size = (2.6 * len(sets) + 0.6, 2.4 * len(metrics) + 0.4)
    figure: Figure = _figure_class()(figsize=size, layout="constrained")
    panels = figure.subplots(len(metrics), len(sets), squeeze=False)
    for row, metric in enumerate(metrics):
        for column, judged in enumerate(sets):
            _draw(panels[row][column], judged, metric, level)
    return figure


def write_scatter(path: str | Path, sets: Sequence[JudgedSet], *, level: str = "segment") -> None:
    """Draw and write; the suffix of the file says the format."""
    check_plot(path)
    from matplotlib import rc_context

    # Without dates and random ids, equal data give equal files.
    metadata = {".pdf": {"CreationDate": None}, ".svg": {"Date": None}}
    suffix = Path(path).suffix.lower()
    with rc_context({"svg.hashsalt": "tertium"}):
        figure = scatter(sets, level=level)
        with replace_content(path) as stream:
            about = metadata.get(suffix)
            figure.savefig(stream, format=suffix.removeprefix("."), dpi=120, metadata=about)


def _draw(panel: Any, judged: JudgedSet, metric: str, level: str) -> None:
    panel.tick_params(labelsize=7)
    panel.set_xlabel("human", fontsize=8)
    panel.set_ylabel(metric, fontsize=8)
    if metric not in judged.metrics:
        panel.set_title(f"{judged.name}: not scored", fontsize=8)
        return
    number = judged.metrics.index(metric)
    x, y = judged.human, judged.scores[number]
    if level == "system":
        x, y = judged.human_systems, judged.system_scores[number]
    known = ~np.isnan(x) & ~np.isnan(y)
    agreement = float(pearson(x, y))
    panel.scatter(x[known], y[known], s=20 if level == "system" else 5, alpha=0.5, linewidths=0)
    if agreement == agreement:
        slope, start = np.polyfit(x[known], y[known], 1)
        ends = np.array([x[known].min(), x[known].max()])
        panel.plot(ends, start + slope * ends, linewidth=1, color="tab:red")
    panel.set_title(f"{judged.name}  r = {agreement:.3f}  n = {known.sum():,}", fontsize=8)


def _figure_class() -> Any:
    with explain_missing("a plot"):
        from matplotlib.figure import Figure
    return Figure
