"""Metric scores are matched to judgments by name; unmatched systems are counted."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

from tertium.core.errors import DataError, UnknownNameError
from tertium.core.scores import ScoreMatrix
from tertium.data.rankings import PairwiseJudgment, build_ranking_set
from tertium.meta.aligned_scores import NO_SYSTEM_SCORE, UNJUDGED_SYSTEM, AlignedScores

HUMAN = ScoreMatrix(
    "da", ("A", "B", "C"), np.array([[1.0, 2, 3], [4, np.nan, 6], [7, 8, 9]]), ("7", "9", "12")
)


def test_rows_and_columns_are_matched_by_name():
    metric = ScoreMatrix("m", ("C", "A"), np.array([[10.0, 20, 30], [40, 50, 60]]), ("9", "7", "8"))
    aligned = AlignedScores.align("x", [metric], human=HUMAN)
    assert_allclose(aligned.scores[0], [[50, 40, np.nan], [np.nan] * 3, [20, 10, np.nan]])
    assert aligned.excluded_counts == {"m": {NO_SYSTEM_SCORE: 1}}
    assert (~np.isnan(aligned.human)).sum() == 8


def test_unjudged_systems_are_counted():
    metric = ScoreMatrix("m", ("A", "D", "E"), np.ones((3, 3)), HUMAN.items)
    aligned = AlignedScores.align("x", [metric], human=HUMAN)
    assert aligned.excluded_counts["m"] == {UNJUDGED_SYSTEM: 2, NO_SYSTEM_SCORE: 2}
    assert aligned.unscored_systems == {"m": ("B", "C")}
    assert aligned.drop_systems(["B"]).unscored_systems == {"m": ("C",)}
    assert aligned.drop_systems(["B", "C"]).excluded_counts == {"m": {UNJUDGED_SYSTEM: 2}}


def test_judged_systems_without_a_system_score_are_counted():
    scores = {"m": {"A": 1.0}, "n": {"A": 1.0, "B": 2.0}}
    human_scores = {"A": 3.0, "B": 4.0}
    aligned = AlignedScores.align("x", [], human_systems=human_scores, system_scores=scores)
    assert aligned.excluded_counts == {"m": {NO_SYSTEM_SCORE: 1}}
    assert aligned.unscored_systems == {"m": ("B",), "n": ()}


def test_metric_without_match_error():
    unmatched = ScoreMatrix("m", ("X", "Y"), np.ones((2, 3)), HUMAN.items)
    with pytest.raises(DataError, match=r"none of the systems scored by m \(X, Y\).*\(A, B, C\)"):
        AlignedScores.align("x", [unmatched], human=HUMAN)
    elsewhere = ScoreMatrix("m", ("A", "B"), np.ones((2, 2)), ("100", "101"))
    with pytest.raises(DataError, match="none of the segments scored by m"):
        AlignedScores.align("x", [elsewhere], human=HUMAN)


def test_items_from_0_do_not_match_lines_from_1():
    human = ScoreMatrix("human", ("A",), np.array([[1.0, 2, 3]]), ("0", "1", "2"))
    lines = ScoreMatrix("m", ("A",), np.array([[1.0, 2, 3]]))
    with pytest.raises(DataError, match="segment 0 and none of 3, but segments that m scored"):
        AlignedScores.align("set", [lines], human=human)


def test_items_from_1_do_not_match_segments_from_0():
    human = ScoreMatrix("human", ("A",), np.array([[1.0, 2, 3]]), ("1", "2", "3"))
    with_items = ScoreMatrix("m", ("A",), np.array([[1.0, 2, 3]]), ("0", "1", "2"))
    with pytest.raises(DataError, match="segment 3 and none of 0, but segments that m scored"):
        AlignedScores.align("set", [with_items], human=human)


def test_unnamed_lines_are_items_from_1():
    metric = ScoreMatrix("m", ("A",), np.arange(1.0, 13)[None])
    aligned = AlignedScores.align("x", [metric], human=HUMAN)
    assert_allclose(aligned.scores[0, 0], [7, 9, 12])


def test_system_scores_are_given_or_means_of_all_segments():
    metric = ScoreMatrix(
        "m", ("A", "B", "C"), np.arange(15.0).reshape(3, 5), ("7", "9", "12", "13", "14")
    )
    aligned = AlignedScores.align("x", [metric], human=HUMAN)
    assert_allclose(aligned.system_scores, [[2, 7, 12]])
    assert_allclose(aligned.human_systems, [2, 5, 8])
    with_systems = AlignedScores.align(
        "x",
        [metric],
        human=HUMAN,
        system_scores={"m": {"A": 3.0, "C": 1.0}, "sys": {"B": 2.0}},
        human_systems={"A": 1.0, "B": 2.0},
    )
    assert with_systems.metrics == ("m", "sys")
    assert_allclose(with_systems.system_scores, [[3, np.nan, 1], [np.nan, 2, np.nan]])
    assert np.isnan(with_systems.scores[1]).all()
    assert_allclose(with_systems.human_systems, [1, 2, np.nan])


def test_comparisons_become_indices():
    rankings = build_ranking_set(
        [
            PairwiseJudgment("1", "A", "B", 1.0),
            PairwiseJudgment("1", "B", "C", 0.5),
            PairwiseJudgment("2", "C", "A", 0.0),
        ],
        name="r",
    )
    metric = ScoreMatrix("m", ("A", "B", "C"), np.array([[3.0, 6], [2, 5], [1, 4]]), ("1", "2"))
    aligned = AlignedScores.align("x", [metric], comparisons=rankings)
    compared = aligned.comparisons
    assert compared is not None
    difference = (
        aligned.scores[0, compared.left, compared.item]
        - aligned.scores[0, compared.right, compared.item]
    )
    assert difference.tolist() == [1, 1, -2]
    assert len(compared) == 3
    # A beat B and C, who never beat anyone: expected wins 1, 0, 0.
    assert_allclose(aligned.human_systems, [1, 0, 0])


def test_drop_systems():
    metric = ScoreMatrix("m", ("A", "B", "C"), np.ones((3, 3)), HUMAN.items)
    aligned = AlignedScores.align("x", [metric], human=HUMAN).drop_systems(["A"])
    assert (~np.isnan(aligned.human)).sum() == 5
    assert_allclose(aligned.human_systems, [np.nan, 5, 8])
    with pytest.raises(UnknownNameError, match="unknown system of x 'Q'"):
        aligned.drop_systems(["A", "Q"])


def test_drop_systems_of_comparisons_removes_their_wins():
    verdicts = [("A", "B", 1.0), ("A", "C", 0.0), ("B", "C", 1.0), ("B", "C", 0.5), ("B", "C", 0.0)]
    rankings = build_ranking_set(
        [PairwiseJudgment("1", *verdict) for verdict in verdicts], name="r"
    )
    rest = AlignedScores.align("x", [], comparisons=rankings).drop_systems(["A"])
    assert rest.comparisons is not None
    assert len(rest.comparisons) == 3
    assert_allclose(rest.human_systems, [np.nan, 0.5, 0.5])
    system_scores = {"A": 3.0, "B": 2.0, "C": 1.0}
    official = AlignedScores.align("x", [], comparisons=rankings, human_systems=system_scores)
    assert_allclose(official.drop_systems(["A"]).human_systems, [np.nan, 2, 1])


def test_given_human_system_scores_are_kept():
    verdicts = [("A", "B", 1.0), ("A", "C", 1.0), ("B", "C", 1.0)]
    rankings = build_ranking_set(
        [PairwiseJudgment("1", *verdict) for verdict in verdicts], name="r"
    )
    system_scores = {"A": 1.0, "B": 0.5, "C": 0.0}  # of one opponent beaten, B beats half
    official = AlignedScores.align("x", [], comparisons=rankings, human_systems=system_scores)
    assert_allclose(official.human_systems, official.comparisons.expected_wins(3))
    assert_allclose(official.drop_systems(["A"]).human_systems, [np.nan, 0.5, 0.0])
    slice_of_it = official.keep_items(np.array([True]), "slice")
    assert_allclose(slice_of_it.drop_systems(["A"]).human_systems, [np.nan, 1.0, 0.0])


def test_invalid_input():
    with pytest.raises(DataError, match="no human judgments"):
        AlignedScores.align("x", [])
    twice = ScoreMatrix("m", ("A",), np.ones((1, 3)), HUMAN.items)
    with pytest.raises(DataError, match=r"more than one metric is named m$"):
        AlignedScores.align("x", [twice, twice], human=HUMAN)
    repeated = ScoreMatrix("m", ("A", "A"), np.ones((2, 3)), HUMAN.items)
    with pytest.raises(DataError, match="'A' occurs 2 times"):
        AlignedScores.align("x", [repeated], human=HUMAN)
