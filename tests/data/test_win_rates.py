"""System scores from comparisons, on tables that can be checked by hand."""

from __future__ import annotations

import numpy as np
import pytest

from tertium.data.rankings import (
    ComparisonIndex,
    PairwiseJudgment,
    RankingSet,
    build_ranking_set,
    expected_wins,
    win_ratio,
)


def rankings(*rows: tuple[str, str, float]) -> RankingSet:
    return build_ranking_set([PairwiseJudgment("1", a, b, v) for a, b, v in rows], name="x")


# A beats B twice and ties once; B beats C once; C beats A once.
ROWS = [("A", "B", 1.0), ("B", "A", 0.0), ("A", "B", 0.5), ("B", "C", 1.0), ("A", "C", 0.0)]
SMALL = rankings(*ROWS)


def test_wins_and_ties_are_counted_from_both_sides() -> None:
    wins, ties = ComparisonIndex.of(SMALL).counts(3)
    assert wins.tolist() == [[0, 2, 0], [0, 0, 1], [1, 0, 0]]
    assert ties.tolist() == [[0, 1, 0], [1, 0, 0], [0, 0, 0]]


@pytest.mark.parametrize(
    ("ties", "expected"),
    [
        ("excluded", [2 / 3, 1 / 3, 1 / 2]),
        ("won", [3 / 4, 2 / 4, 1 / 2]),
        ("half", [2.5 / 4, 1.5 / 4, 1 / 2]),
    ],
)
def test_win_ratio_for_each_treatment_of_ties(ties: str, expected: list[float]) -> None:
    np.testing.assert_allclose(win_ratio(SMALL, ties), expected)  # type: ignore[arg-type]


def test_expected_wins_average_over_opponents() -> None:
    np.testing.assert_allclose(expected_wins(SMALL), [(1 + 0) / 2, (0 + 1) / 2, (0 + 1) / 2])


def test_system_with_only_ties_is_nan() -> None:
    tied = rankings(("A", "B", 0.5), ("A", "C", 1.0))
    assert np.isnan(win_ratio(tied)[1])
    assert np.isnan(expected_wins(tied)[1])
