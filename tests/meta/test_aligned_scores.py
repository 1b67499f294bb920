"""Metric scores are matched to judgments by name; unmatched systems are counted."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

from tertium.core.errors import DataError, UnknownNameError
from tertium.core.scores import ScoreMatrix
from tertium.data.rankings import PairwiseJudgment, RankingSet, build_ranking_set
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
    metric = ScoreMatrix("m", ("A",), np.arange(1.0, 13)[None])
    aligned = AlignedScores.align("x", [metric], human=HUMAN)
    assert_allclose(aligned.scores[0, 0], [7, 9, 12])


def test_unjudged_and_unscored_systems_are_counted():
    metric = ScoreMatrix("m", ("A", "D", "E"), np.ones((3, 3)), HUMAN.items)
    aligned = AlignedScores.align("x", [metric], human=HUMAN)
    assert aligned.excluded_counts["m"] == {UNJUDGED_SYSTEM: 2, NO_SYSTEM_SCORE: 2}
    assert aligned.unscored_systems == {"m": ("B", "C")}
    assert aligned.drop_systems(["B"]).unscored_systems == {"m": ("C",)}
    assert aligned.drop_systems(["B", "C"]).excluded_counts == {"m": {UNJUDGED_SYSTEM: 2}}
    scores = {"m": {"A": 1.0}, "n": {"A": 1.0, "B": 2.0}}
    human_scores = {"A": 3.0, "B": 4.0}
    aligned = AlignedScores.align("x", [], human_systems=human_scores, system_scores=scores)
    assert aligned.excluded_counts == {"m": {NO_SYSTEM_SCORE: 1}}
    assert aligned.unscored_systems == {"m": ("B",), "n": ()}


@pytest.mark.parametrize(
    ("human_items", "metric_items", "message"),
    [
        (("0", "1", "2"), (), "segment 0 and none of 3, but segments that m scored"),
        (("1", "2", "3"), ("0", "1", "2"), "segment 3 and none of 0, but segments that m scored"),
        (("7", "8", "9"), ("97", "98", "99"), "none of the segments scored by m"),
    ],
)
def test_items_that_do_not_match_raise(human_items, metric_items, message):
    human = ScoreMatrix("human", ("A",), np.array([[1.0, 2, 3]]), human_items)
    metric = ScoreMatrix("m", ("A",), np.array([[1.0, 2, 3]]), metric_items)
    with pytest.raises(DataError, match=message):
        AlignedScores.align("set", [metric], human=human)


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


def make_rankings(*verdicts: tuple[str, str, str, float]) -> RankingSet:
    return build_ranking_set([PairwiseJudgment(*verdict) for verdict in verdicts], name="r")


def test_comparisons_become_indices():
    rankings = make_rankings(("1", "A", "B", 1.0), ("1", "B", "C", 0.5), ("2", "C", "A", 0.0))
    metric = ScoreMatrix("m", ("A", "B", "C"), np.array([[3.0, 6], [2, 5], [1, 4]]), ("1", "2"))
    aligned = AlignedScores.align("x", [metric], comparisons=rankings)
    compared = aligned.comparisons
    left, right = (aligned.scores[0, s, compared.item] for s in (compared.left, compared.right))
    assert (left - right).tolist() == [1, 1, -2]
    assert len(compared) == 3
    # A beat B and C, who never beat anyone: expected wins 1, 0, 0.
    assert_allclose(aligned.human_systems, [1, 0, 0])


def test_systems_are_dropped_with_their_wins():
    metric = ScoreMatrix("m", ("A", "B", "C"), np.ones((3, 3)), HUMAN.items)
    aligned = AlignedScores.align("x", [metric], human=HUMAN).drop_systems(["A"])
    assert (~np.isnan(aligned.human)).sum() == 5
    assert_allclose(aligned.human_systems, [np.nan, 5, 8])
    with pytest.raises(UnknownNameError, match="unknown system of x 'Q'"):
        aligned.drop_systems(["A", "Q"])
    verdicts = [("A", "B", 1.0), ("A", "C", 0.0), ("B", "C", 1.0), ("B", "C", 0.5), ("B", "C", 0.0)]
    rankings = make_rankings(*(("1", *verdict) for verdict in verdicts))
    rest = AlignedScores.align("x", [], comparisons=rankings).drop_systems(["A"])
    assert len(rest.comparisons) == 3
    assert_allclose(rest.human_systems, [np.nan, 0.5, 0.5])
    system_scores = {"A": 3.0, "B": 2.0, "C": 1.0}
    official = AlignedScores.align("x", [], comparisons=rankings, human_systems=system_scores)
    assert_allclose(official.drop_systems(["A"]).human_systems, [np.nan, 2, 1])


def test_given_human_system_scores_are_kept():
    rankings = make_rankings(*(("1", *pair, 1.0) for pair in ("AB", "AC", "BC")))
    system_scores = {"A": 1.0, "B": 0.5, "C": 0.0}  # of one opponent beaten, B beats half
    official = AlignedScores.align("x", [], comparisons=rankings, human_systems=system_scores)
    assert_allclose(official.human_systems, official.comparisons.expected_wins(3))
    assert_allclose(official.drop_systems(["A"]).human_systems, [np.nan, 0.5, 0.0])
    slice_of_it = official.keep_items(np.array([True]), "slice")
    assert_allclose(slice_of_it.drop_systems(["A"]).human_systems, [np.nan, 1.0, 0.0])


@pytest.mark.parametrize(
    ("systems", "message"),
    [
        ([], "no human judgments"),
        ([("X", "Y")], r"none of the systems scored by m \(X, Y\).*\(A, B, C\)"),
        ([("A",), ("A",)], "two metrics have one name: m$"),
        ([("A", "A")], "m scores some of its systems more than once"),
    ],
)
def test_invalid_input(systems, message):
    metrics = [ScoreMatrix("m", names, np.ones((len(names), 3)), HUMAN.items) for names in systems]
    with pytest.raises(DataError, match=message):
        AlignedScores.align("x", metrics, human=HUMAN if metrics else None)
