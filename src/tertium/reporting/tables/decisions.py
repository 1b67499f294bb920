"""How well metrics decide, as a table."""

from __future__ import annotations

from collections.abc import Sequence

from tertium.evaluation.decisions import Decision
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


def decision_table(decisions: Sequence[Decision], decimals: int | None = None) -> Table:
    """A row for each set and metric, and one of chance for each set."""
    places = 3 if decimals is None else decimals
    rows: list[list[Cell | str]] = []
    for n, decision in enumerate(decisions):
        figures = decision.figures
        cells = [number(figures[name], places) for name in COLUMNS]
        skill = number(decision.risk.get("skill", float("nan")), places)
        rows.append([decision.set, decision.metric, *cells, skill])
        if n + 1 == len(decisions) or decisions[n + 1].set != decision.set:
            rows.append(_chance(decision, places))
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


def _chance(decision: Decision, places: int) -> list[Cell | str]:
    figures, blank = decision.figures, Cell("", "")
    shown = {"average_precision": figures["good"], "reranking": figures["reranking_chance"]}
    cells = [number(shown[name], places, "dim") if name in shown else blank for name in COLUMNS]
    return [decision.set, Cell("(chance)", "(chance)", "dim"), *cells, blank]
