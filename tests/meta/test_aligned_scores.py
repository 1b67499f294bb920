"""Metric scores are matched to judgments by name; unmatched systems are counted."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

from tertium.data.rankings import PairwiseJudgment, build_ranking_set
from tertium.errors import DataError, LengthError, UnknownNameError
from tertium.meta.aligned_scores import NO_SYSTEM_SCORE, UNJUDGED_SYSTEM, AlignedScores
from tertium.scores import ScoreMatrix

PEOPLE = ScoreMatrix(
    "da", ("A", "B", "C"), np.array([[1.0, 2, 3], [4, np.nan, 6], [7, 8, 9]]), ("7", "9", "12")
)


def test_rows_and_columns_are_matched_by_name():
    metric = ScoreMatrix("m", ("C", "A"), np.array([[10.0, 20, 30], [40, 50, 60]]), ("9", "7", "8"))
    judged = AlignedScores.align("x", [metric], human=PEOPLE)
    assert_allclose(judged.scores[0], [[50, 40, np.nan], [np.nan] * 3, [20, 10, np.nan]])
    assert judged.excluded_counts == {"m": {NO_SYSTEM_SCORE: 1}}
    assert (~np.isnan(judged.human)).sum() == 8


def test_unjudged_systems_are_counted():
    metric = ScoreMatrix("m", ("A", "D", "E"), np.ones((3, 3)), PEOPLE.items)
    judged = AlignedScores.align("x", [metric], human=PEOPLE)
    assert judged.excluded_counts["m"] == {UNJUDGED_SYSTEM: 2, NO_SYSTEM_SCORE: 2}


def test_metric_without_match_error():
    stranger = ScoreMatrix("m", ("X", "Y"), np.ones((2, 3)), PEOPLE.items)
    with pytest.raises(DataError, match=r"none of the systems scored by m \(X, Y\).*\(A, B, C\)"):
        AlignedScores.align("x", [stranger], human=PEOPLE)
    elsewhere = ScoreMatrix("m", ("A", "B"), np.ones((2, 2)), ("100", "101"))
    with pytest.raises(DataError, match="none of the segments scored by m"):
        AlignedScores.align("x", [elsewhere], human=PEOPLE)


def test_items_from_0_do_not_match_lines_from_1():
    people = ScoreMatrix("human", ("A",), np.array([[1.0, 2, 3]]), ("0", "1", "2"))
    lines = ScoreMatrix("m", ("A",), np.array([[1.0, 2, 3]]))
    with pytest.raises(DataError, match="segment 0 and none of 3, but segments that m scored"):
        AlignedScores.align("set", [lines], human=people)


def test_items_from_1_do_not_match_segments_from_0():
    people = ScoreMatrix("human", ("A",), np.array([[1.0, 2, 3]]), ("1", "2", "3"))
    named = ScoreMatrix("m", ("A",), np.array([[1.0, 2, 3]]), ("0", "1", "2"))
    with pytest.raises(DataError, match="segment 3 and none of 0, but segments that m scored"):
        AlignedScores.align("set", [named], human=people)


def test_unnamed_lines_are_items_from_1():
    metric = ScoreMatrix("m", ("A",), np.arange(1.0, 13)[None])
    judged = AlignedScores.align("x", [metric], human=PEOPLE)
    assert_allclose(judged.scores[0, 0], [7, 9, 12])


def test_system_scores_are_given_or_means_of_all_segments():
    metric = ScoreMatrix(
        "m", ("A", "B", "C"), np.arange(15.0).reshape(3, 5), ("7", "9", "12", "13", "14")
    )
    judged = AlignedScores.align("x", [metric], human=PEOPLE)
    assert_allclose(judged.system_scores, [[2, 7, 12]])
    assert_allclose(judged.human_systems, [2, 5, 8])
    given = AlignedScores.align(
        "x",
        [metric],
        human=PEOPLE,
        system_scores={"m": {"A": 3.0, "C": 1.0}, "sys": {"B": 2.0}},
        human_systems={"A": 1.0, "B": 2.0},
    )
    assert given.metrics == ("m", "sys")
    assert_allclose(given.system_scores, [[3, np.nan, 1], [np.nan, 2, np.nan]])
    assert np.isnan(given.scores[1]).all()
    assert_allclose(given.human_systems, [1, 2, np.nan])


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
    judged = AlignedScores.align("x", [metric], comparisons=rankings)
    compared = judged.comparisons
    assert compared is not None
    difference = (
        judged.scores[0, compared.left, compared.item]
        - judged.scores[0, compared.right, compared.item]
    )
    assert difference.tolist() == [1, 1, -2]
    assert len(compared) == 3
    # A beat B and C, who never beat anyone: expected wins 1, 0, 0.
    assert_allclose(judged.human_systems, [1, 0, 0])


def test_drop_systems():
    metric = ScoreMatrix("m", ("A", "B", "C"), np.ones((3, 3)), PEOPLE.items)
    judged = AlignedScores.align("x", [metric], human=PEOPLE).drop_systems(["A"])
    assert (~np.isnan(judged.human)).sum() == 5
    assert_allclose(judged.human_systems, [np.nan, 5, 8])
    with pytest.raises(UnknownNameError, match="unknown system of x 'Q'"):
        judged.drop_systems(["A", "Q"])


def test_drop_systems_of_comparisons_removes_their_wins():
    said = [("A", "B", 1.0), ("A", "C", 0.0), ("B", "C", 1.0), ("B", "C", 0.5), ("B", "C", 0.0)]
    rankings = build_ranking_set([PairwiseJudgment("1", *verdict) for verdict in said], name="r")
    rest = AlignedScores.align("x", [], comparisons=rankings).drop_systems(["A"])
    assert rest.comparisons is not None
    assert len(rest.comparisons) == 3
    assert_allclose(rest.human_systems, [np.nan, 0.5, 0.5])
    given = {"A": 3.0, "B": 2.0, "C": 1.0}
    official = AlignedScores.align("x", [], comparisons=rankings, human_systems=given)
    assert_allclose(official.drop_systems(["A"]).human_systems, [np.nan, 2, 1])


def test_given_human_system_scores_are_kept():
    said = [("A", "B", 1.0), ("A", "C", 1.0), ("B", "C", 1.0)]
    rankings = build_ranking_set([PairwiseJudgment("1", *verdict) for verdict in said], name="r")
    given = {"A": 1.0, "B": 0.5, "C": 0.0}  # of one opponent beaten, B beats half
    official = AlignedScores.align("x", [], comparisons=rankings, human_systems=given)
    assert_allclose(official.human_systems, official.comparisons.expected_wins(3))
    assert_allclose(official.drop_systems(["A"]).human_systems, [np.nan, 0.5, 0.0])
    slice_of_it = official.keep_items(np.array([True]), "slice")
    assert_allclose(slice_of_it.drop_systems(["A"]).human_systems, [np.nan, 1.0, 0.0])


def test_invalid_input():
    with pytest.raises(DataError, match="no human judgments"):
        AlignedScores.align("x", [])
    twice = ScoreMatrix("m", ("A",), np.ones((1, 3)), PEOPLE.items)
    with pytest.raises(DataError, match=r"more than one metric is named m$"):
        AlignedScores.align("x", [twice, twice], human=PEOPLE)
    repeated = ScoreMatrix("m", ("A", "A"), np.ones((2, 3)), PEOPLE.items)
    with pytest.raises(DataError, match="'A' occurs 2 times"):
        AlignedScores.align("x", [repeated], human=PEOPLE)
    with pytest.raises(
        LengthError, match=r"x: human scores have shape \(1, 1\), expected \(2, 1\)"
    ):
        AlignedScores(
            name="x",
            systems=("A", "B"),
            items=("1",),
            metrics=(),
            human=np.ones((1, 1)),
            scores=np.ones((0, 2, 1)),
            human_systems=np.ones(2),
            system_scores=np.ones((0, 2)),
        )
