"""Tables of decisions based on a metric: thresholds, reranking and system differences."""

from __future__ import annotations

from collections.abc import Sequence

from tertium.core.result import Table
from tertium.evaluation.decisions import Decision
from tertium.meta.difference_scales import DifferenceScale
from tertium.output.tables.table import Cell, cell_table, number_cell

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
    """Return one row per dataset and metric, and a chance row per dataset."""
    rows: list[list[Cell | str]] = []
    for n, decision in enumerate(decisions):
        figures = decision.values
        cells = [number_cell(figures[name], decimals) for name in COLUMNS]
        if not decision.higher_is_better:
            cells[1] = Cell(f"≤ {cells[1].text}", cells[1].value)
        skill = number_cell(decision.risk.get("skill", float("nan")), decimals)
        rows.append([decision.set, decision.metric, *cells, skill])
        if n + 1 == len(decisions) or decisions[n + 1].set != decision.set:
            rows.append(_chance(decision, decimals))
    return cell_table(
        ["set", "metric", *COLUMNS.values(), "uncertainty"],
        rows,
        title="Decisions based on a metric",
        notes=[
            "AP: average precision of accepting good translations; threshold: maximizes F1, with "
            "its precision and recall; P at R .9: precision at a recall of 0.9",
            "reranking: share of segments whose best output is selected; gain: in human scores, "
            "1 is the best possible selection, 0 a random one",
            "uncertainty: 1 if the predicted uncertainty orders the errors, 0 if it does not",
        ],
        text_columns=frozenset({0, 1}),
    )


def _chance(decision: Decision, decimals: int) -> list[Cell | str]:
    figures, blank = decision.values, Cell("", "")
    chance_values = {"average_precision": figures["good"], "reranking": figures["reranking_chance"]}
    cells = [
        number_cell(chance_values[name], decimals, "dim") if name in chance_values else blank
        for name in COLUMNS
    ]
    return [decision.set, Cell("(chance)", "(chance)", "dim"), *cells, blank]


def difference_table(scales: Sequence[DifferenceScale], decimals: int = 3) -> Table:
    """Return one row per metric, language direction and range of differences."""
    rows: list[list[Cell | str]] = [
        [
            scale.metric,
            scale.direction,
            number_cell(part.low, decimals),
            number_cell(part.high, decimals),
            Cell(f"{100 * part.agree:.0f} %", part.agree),
            Cell(f"{part.pairs:,}", part.pairs),
        ]
        for scale in scales
        for part in scale.bins
    ]
    return cell_table(
        ["metric", "languages", "over", "up to", "human agreement", "pairs"],
        rows,
        title="Human agreement by size of the difference",
        notes=[
            "human agreement: share of system pairs with such a difference in the metric that "
            "human scores order the same way"
        ],
        text_columns=frozenset({0, 1}),
    )
