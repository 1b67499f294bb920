"""Tables of acting on a metric: what a threshold decides, what a difference of systems means."""

from __future__ import annotations

from collections.abc import Sequence

from tertium.evaluation.decisions import Decision
from tertium.meta.differences import DifferenceScale
from tertium.reporting.tables.table import Cell, Table, number

COLUMNS = {
    "average_precision": "AP",
    "threshold": "threshold",
    "precision": "precision",
    "recall": "recall",
    "precision_at_90": "P at R .9",
    "reranking": "reranking",
    "gain": "gain",
}


def decision_table(decisions: Sequence[Decision], decimals: int = 3) -> Table:
    """A row for each set and metric, and one of chance for each set."""
    rows: list[list[Cell | str]] = []
    for n, decision in enumerate(decisions):
        figures = decision.figures
        cells = [number(figures[name], decimals) for name in COLUMNS]
        if not decision.higher_is_better:
            cells[1] = Cell(f"≤ {cells[1].text}", cells[1].value)
        skill = number(decision.risk.get("skill", float("nan")), decimals)
        rows.append([decision.set, decision.metric, *cells, skill])
        if n + 1 == len(decisions) or decisions[n + 1].set != decision.set:
            rows.append(_chance(decision, decimals))
    return Table(
        ["set", "metric", *COLUMNS.values(), "doubt"],
        rows,
        title="Deciding by a metric",
        notes=[
            "AP: average precision of good enough; threshold: where F1 is best, with its precision "
            "and recall; P at R .9: precision where nine in ten good ones are accepted",
            "reranking: segments whose best output is chosen; gain: 1 is always the best choice, "
            "0 a random one, in human scores",
            "doubt: 1 where the uncertainty it tells foretells its errors, 0 where it says nothing",
        ],
        left=frozenset({0, 1}),
    )


def _chance(decision: Decision, decimals: int) -> list[Cell | str]:
    figures, blank = decision.figures, Cell("", "")
    shown = {"average_precision": figures["good"], "reranking": figures["reranking_chance"]}
    cells = [number(shown[name], decimals, "dim") if name in shown else blank for name in COLUMNS]
    return [decision.set, Cell("(chance)", "(chance)", "dim"), *cells, blank]


def difference_table(scales: Sequence[DifferenceScale], decimals: int = 3) -> Table:
    """A row for each metric, language direction and range of differences."""
    rows: list[list[Cell | str]] = [
        [
            scale.metric,
            scale.direction,
            number(part.low, decimals),
            number(part.high, decimals),
            Cell(f"{100 * part.agree:.0f} %", part.agree),
            Cell(f"{part.pairs:,}", part.pairs),
        ]
        for scale in scales
        for part in scale.bins
    ]
    return Table(
        ["metric", "languages", "over", "up to", "people agree", "pairs"],
        rows,
        title="What a difference of two systems means",
        notes=["of pairs of systems that the metric puts so far apart, those people order alike"],
        left=frozenset({0, 1}),
    )
