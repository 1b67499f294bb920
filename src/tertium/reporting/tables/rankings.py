"""Tables of a ranking: systems in their order, and their chances segment by segment."""

from __future__ import annotations

from tertium.evaluation.ranking import Ranking
from tertium.reporting.tables.table import Cell, Table, counted_lines, number

DECIMALS = 4  # of chances, unless told otherwise


def system_table(ranking: Ranking, decimals: int | None = None, *, warnings: bool = True) -> Table:
    """A row for each system, from best to worst."""
    places, scores, best = ranking.places, ranking.matrix.system_scores, ranking.best_on
    width = DECIMALS if decimals is None else decimals
    rows: list[list[Cell | str]] = [
        [
            ranking.matrix.systems[n],
            number(places[n], 0),
            number(float(scores[n]), width, "best" if places[n] == 1 else ""),
            number(int(best[n]), 0),
        ]
        for n in ranking.order
    ]
    size = f"{len(ranking.testset)} segments, every pair of {len(places)} systems"
    said = counted_lines(ranking.warnings) if warnings else []
    notes = [size, ranking.signature, *said]
    return Table(["system", "rank", "wins", "best on"], rows, notes=notes)


def segment_table(ranking: Ranking, decimals: int | None = None) -> Table:
    """A row for each segment, with the chance of each system."""
    width = DECIMALS if decimals is None else decimals
    rows: list[list[Cell | str]] = [
        [item, *(number(float(value), width) for value in column)]
        for item, column in zip(ranking.matrix.items, ranking.matrix.values.T, strict=True)
    ]
    return Table(["segment", *ranking.matrix.systems], rows)
