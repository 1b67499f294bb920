"""Source-only rows of Song et al. (2021)."""

from __future__ import annotations

import pytest
from papers.departures import DEPARTURES

from papers import find_table

BERTSCORE_F1, CENTERED_SOURCES = DEPARTURES["bertscore-f1"], DEPARTURES["centered-sources"]


@pytest.mark.parametrize("number", ["2-source", "3", "5", "6-source", "8", "10"])
def test_source_only_rows_exist_with_and_without_our_corrections(number: str) -> None:
    table = find_table("song2021", number)
    assert CENTERED_SOURCES in table.departures
    rows = {row.label: row for row in table.rows if row.model is not None}
    plain = [label for label in rows if label.endswith(", not centered")]
    assert len(rows) == 2 * len(plain)
    for label in plain:
        row, corrected = rows[label], rows[label.removesuffix(", not centered")]
        assert row.model == f"{corrected.model},centre=none,wrong_language_penalty=0"
        assert not row.column_specs  # no language pair
        assert row.published == corrected.published
        assert not CENTERED_SOURCES.applies_to(row)
        assert CENTERED_SOURCES.applies_to(corrected)


def test_recall_of_bertscore_is_not_a_departure() -> None:
    labels = {r.label: r for r in find_table("song2021", "equation 5").rows}
    assert BERTSCORE_F1.applies_to(labels["SSS + BERTScore, F1"])
    assert not BERTSCORE_F1.applies_to(labels["SSS + BERTScore, recall"])
