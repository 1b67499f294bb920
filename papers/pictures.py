"""Measured tables as pictures: curves, ablations, published against measured.

Written as SVG without dates and random ids, so that equal figures give equal files. Needs
matplotlib, which comes with `tertium[report]`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from papers.table import MeasuredRow, Outcome
from tertium.atomic import replace_content
from tertium.extras import explain_missing

if TYPE_CHECKING:
    from matplotlib.figure import Figure

WIDTH = 7.0  # inches


def write_picture(outcome: Outcome, path: Path) -> bool:
    """Draw a table as its `picture` says; False where there is nothing to draw."""
    rows = [row for row in outcome.rows if any(value == value for value in row.measured)]
    if not outcome.table.picture or not rows:
        return False
    draw = {"columns": draw_columns, "rows": draw_rows, "layers": draw_layers}
    save(draw[outcome.table.picture](outcome, rows), path)
    return True


def draw_columns(outcome: Outcome, rows: Sequence[MeasuredRow]) -> Figure:
    """A line for each row over the columns; published figures dashed."""
    figure, panel = _panel(3.4)
    columns = outcome.table.experiment.columns
    places = range(len(columns))
    for row in rows:
        (line,) = panel.plot(places, row.measured, marker="o", label=row.row.label)
        if any(value == value for value in row.row.published):
            panel.plot(places, row.row.published, linestyle="--", marker="x",
                       color=line.get_color(), label=f"{row.row.label}, published")  # fmt: skip
    panel.set_xticks(places, columns)
    panel.set_ylabel(_short(outcome.table.experiment.statistic), fontsize=8)
    panel.legend(fontsize=8)
    return figure


def draw_rows(outcome: Outcome, rows: Sequence[MeasuredRow]) -> Figure:
    """A bar for each row, its average over the columns; a published one is a line across it.

    Pale bars are averages of some columns only. Metrics side by side stand in their order.
    """
    if outcome.table.paper == "overview":
        rows = sorted(rows, key=lambda row: -known_mean(row.measured))
    figure, panel = _panel(0.6 + 0.24 * len(rows))
    for place, row in enumerate(rows):
        value, whole = known_mean(row.measured), all(v == v for v in row.measured)
        panel.barh(place, value, height=0.7, color="tab:blue", alpha=1.0 if whole else 0.4)
        shown = f"{value:.{outcome.table.digits}f}"
        text = f" {shown if whole else f'({shown})'}"
        panel.text(value, place, text, va="center", fontsize=7)
        if row.published_average == row.published_average:
            panel.vlines(row.published_average, place - 0.4, place + 0.4, color="tab:red")
    panel.set_yticks(range(len(rows)), [row.row.label for row in rows])
    panel.invert_yaxis()
    panel.margins(x=0.12)
    panel.set_xlabel(f"{_short(outcome.table.experiment.statistic)}, average", fontsize=8)
    return figure


def draw_layers(outcome: Outcome, rows: Sequence[MeasuredRow]) -> Figure:
    """A line for each encoder over its layers, the average; the range over columns behind it.

    Rows are labelled as in "minilm, layer 4".
    """
    figure, panel = _panel(3.4)
    curves: dict[str, dict[int, list[float]]] = {}
    for row in rows:
        encoder, _, layer = row.row.label.rpartition(", layer ")
        known = [value for value in row.measured if value == value]
        curves.setdefault(encoder, {})[int(layer)] = known
    for encoder, curve in curves.items():
        layers = sorted(curve)
        means = [known_mean(curve[layer]) for layer in layers]
        (line,) = panel.plot(layers, means, marker="o", label=encoder)
        panel.fill_between(layers, [min(curve[layer]) for layer in layers],
                           [max(curve[layer]) for layer in layers],
                           color=line.get_color(), alpha=0.12, linewidth=0)  # fmt: skip
    panel.set_xticks(sorted({layer for curve in curves.values() for layer in curve}))
    panel.set_xlabel("layer (0: the embeddings); the band is the range over columns", fontsize=8)
    panel.set_ylabel(_short(outcome.table.experiment.statistic), fontsize=8)
    panel.legend(fontsize=8)
    return figure


def published_against_measured(outcomes: Sequence[Outcome], path: Path) -> bool:
    """A dot for each figure that is both published and measured, a colour for each paper."""
    points: dict[str, list[tuple[float, float]]] = {}
    for outcome in outcomes:
        scale = 1.0 if outcome.table.digits == 3 else 100.0
        for row in outcome.rows:
            for published, found in zip(row.row.published, row.measured, strict=False):
                if not math.isnan(published + found):
                    pair = (published / scale, found / scale)
                    points.setdefault(outcome.table.paper, []).append(pair)
    if not points:
        return False
    figure, panel = _panel(4.6)
    panel.axline((0, 0), slope=1, color="grey", linewidth=0.8)
    for paper, pairs in points.items():
        panel.scatter(*zip(*pairs, strict=True), s=9, alpha=0.7, linewidths=0, label=paper)
    panel.set_xlabel("published", fontsize=8)
    panel.set_ylabel("measured", fontsize=8)
    panel.legend(fontsize=8)
    save(figure, path)
    return True


def known_mean(values: Sequence[float]) -> float:
    """The mean of the values that are there; NaN of none.

    >>> known_mean([1.0, float("nan"), 3.0])
    2.0
    """
    known = [value for value in values if value == value]
    return sum(known) / len(known) if known else math.nan


def save(figure: Figure, path: Path) -> None:
    """Write a figure as SVG; equal figures give equal files."""
    from matplotlib import rc_context

    with (
        rc_context({"svg.hashsalt": "tertium", "svg.fonttype": "none"}),
        replace_content(path, make_folder=True) as stream,
    ):
        figure.savefig(stream, format="svg", metadata={"Date": None})


def _panel(height: float) -> tuple[Figure, Any]:
    with explain_missing("a picture"):
        from matplotlib.figure import Figure
    figure = Figure(figsize=(WIDTH, height), layout="constrained")
    panel = figure.subplots()
    panel.tick_params(labelsize=8)
    panel.spines[["top", "right"]].set_visible(False)
    return figure, panel


def _short(statistic: str) -> str:
    return statistic.partition(":")[0].partition(",")[0]
