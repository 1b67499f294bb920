"""Test segments are removed from training data."""

from __future__ import annotations

import numpy as np
import pytest

from tertium.core.errors import DataError
from tertium.core.segment import Judgment, Segment
from tertium.data.dataset_folder import DatasetFolder
from tertium.data.judgments import JudgmentSet
from tertium.data.rankings import PairwiseJudgment, RankingSet, build_ranking_set
from tertium.data.ratings import OVERLAP_REASON, drop_overlap, normalize_reference


def make_judgment_set(*references: str) -> JudgmentSet:
    rows = (Judgment(Segment("h", None, (r,)), 1.0, r) for r in references)
    return JudgmentSet(name="x", judgments=tuple(rows))


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("It 's over .", "it’s over", True),
        ("ＡＢＣ　１２３", "abc 123", True),
        ("caf\u00e9", "cafe\u0301", True),
        ("caf\u00e9", "cafe", False),
        ("नेपाल", "नपल", False),
        ("12 men", "13 men", False),
    ],
)
def test_normalization_ignores_case_spacing_and_punctuation(one, other, same):
    assert (normalize_reference(one) == normalize_reference(other)) is same


def test_judgments_with_a_shared_reference_are_dropped_and_counted():
    remaining = drop_overlap(
        make_judgment_set("One.", "Two.", "Three."),
        [make_judgment_set("two"), make_judgment_set("three !")],
    )
    assert remaining.items == ("One.",)
    assert remaining.excluded_counts == {OVERLAP_REASON: 2}


def compared_items(rankings: RankingSet) -> list[str]:
    return [rankings.items[n] for n in rankings.item_indices[rankings.left]]


def test_comparisons_with_a_shared_reference_are_dropped_and_counted():
    texts = {
        str(n): {name: Segment(name.lower(), None, (r,)) for name in "AB"}
        for n, r in enumerate("xyz")
    }
    pairs = [PairwiseJudgment(item, "A", "B", 1.0) for item in ("0", "1", "1", "2")]
    rankings = build_ranking_set(pairs, texts, name="x")
    remaining = drop_overlap(rankings, [make_judgment_set("Y")])
    assert compared_items(remaining) == ["0", "2"]
    assert remaining.excluded_counts == {OVERLAP_REASON: 2}
    with pytest.raises(
        DataError, match=rf"no usable comparison \(4 excluded; {OVERLAP_REASON}: 4\)"
    ):
        drop_overlap(rankings, [make_judgment_set("x", "y", "z")])


def test_uncompared_segments_are_not_held_out():
    texts = {
        str(n): {name: Segment(name.lower(), None, (r,)) for name in "AB"}
        for n, r in enumerate("xyz")
    }
    pairs = [PairwiseJudgment(item, "A", "B", 1.0) for item in ("0", "1", "2")]
    rankings = build_ranking_set(pairs, texts, name="x")
    drawn = rankings.select(np.array([1]))
    assert compared_items(drop_overlap(rankings, [drawn])) == ["0", "2"]


def test_one_shared_reference_or_source_is_enough():
    row = Judgment(Segment("h", None, ("a", "b")), 1.0, "1")
    with pytest.raises(DataError, match=r"no usable judgment .*held-out"):
        drop_overlap(JudgmentSet(name="x", judgments=(row,)), [make_judgment_set("b")])
    rows = tuple(Judgment(Segment("h", s), 1.0, s) for s in ("eins", "zwei"))
    qe = JudgmentSet(name="x", judgments=rows)
    test_set = JudgmentSet(name="y", judgments=(Judgment(Segment("k", "Zwei!"), 1.0),))
    assert drop_overlap(qe, [test_set]).items == ("eins",)
    assert len(drop_overlap(make_judgment_set("", "x"), [make_judgment_set("", "y")])) == 2


def test_the_rankings_of_wmt15_share_segments_with_its_direct_assessments(human_data):
    collection = DatasetFolder(human_data)
    held_out = [collection.judgments("da/wmt15", lp) for lp in ("cs-en", "fi-en", "ru-en")]
    train = collection.rankings("rankings/wmt15", "fi-en")
    remaining = drop_overlap(train, held_out)
    assert 0 < remaining.excluded_counts[OVERLAP_REASON] == len(train) - len(remaining)


@pytest.mark.slow
def test_test_sets_share_no_reference_with_other_rankings(human_data):
    """WMT17 and WMT12 have no overlap, as documented with the data."""
    collection = DatasetFolder(human_data)
    held_out = [collection.judgments("da/wmt17", lp) for lp in ("cs-en", "de-en", "ru-en")]
    train = collection.rankings("rankings/wmt16", "cs-en")
    assert drop_overlap(train, held_out).excluded_counts == {}
