"""System scores from comparisons, on tables that can be checked by hand."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tertium.core.errors import DataError
from tertium.data.dataset_folder import DatasetFolder
from tertium.data.rankings import PairwiseJudgment, RankingSet, build_ranking_set
from tertium.data.win_rates import (
    ComparisonIndex,
    annotator_agreement,
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


def test_agreement_computed_by_hand() -> None:
    """Item 1: ann and bob agree that A > B, cy says tie; item 2: ann contradicts herself."""
    rows = [
        PairwiseJudgment("1", "A", "B", 1.0, "ann"),
        PairwiseJudgment("1", "B", "A", 0.0, "bob"),
        PairwiseJudgment("1", "A", "B", 0.5, "cy"),
        PairwiseJudgment("2", "A", "B", 1.0, "ann"),
        PairwiseJudgment("2", "A", "B", 0.0, "ann"),
        PairwiseJudgment("2", "A", "B", 1.0, ""),
    ]
    inter, intra = annotator_agreement(build_ranking_set(rows, name="x"))
    chance = 0.2**2 + 2 * 0.4**2
    assert (inter.pairs, intra.pairs) == (3, 1)
    assert inter.observed == pytest.approx(1 / 3)
    assert inter.expected == pytest.approx(chance)
    assert inter.kappa == pytest.approx((1 / 3 - chance) / (1 - chance))
    assert intra.kappa == pytest.approx((0 - chance) / (1 - chance))


def test_agreement_without_judges_raises() -> None:
    with pytest.raises(DataError, match="no annotators are named"):
        annotator_agreement(SMALL)


def test_agreement_without_repeats_is_nan() -> None:
    inter, intra = annotator_agreement(
        build_ranking_set([PairwiseJudgment("1", "A", "B", 1.0, "ann")], name="x")
    )
    assert np.isnan(inter.kappa)
    assert np.isnan(intra.kappa)


@pytest.mark.parametrize(("lp", "kappa"), [("cs-en", 0.311), ("de-en", 0.385), ("fr-en", 0.272)])
def test_agreement_on_wmt12_is_close_to_the_published_value(
    human_data: Path, lp: str, kappa: float
) -> None:
    """Findings of WMT13, table 3, column WMT12, which includes unpublished systems."""
    inter, _ = annotator_agreement(DatasetFolder(human_data).rankings("rankings/wmt12", lp))
    assert inter.kappa == pytest.approx(kappa, abs=0.02)
