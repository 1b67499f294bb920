"""What differences of systems mean to people, as a table."""

from __future__ import annotations

from collections.abc import Sequence

from tertium.meta.differences import DifferenceScale
from tertium.reporting.tables.table import Cell, Table, number


def difference_table(scales: Sequence[DifferenceScale], decimals: int | None = None) -> Table:
    """A row for each metric, language direction and range of differences."""
    places = 3 if decimals is None else decimals
    rows: list[list[Cell | str]] = [
        [
            scale.metric,
            scale.direction,
            number(part.low, places),
            number(part.high, places),
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
