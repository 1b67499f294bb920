"""Judgments and comparisons as index arrays: complete and without duplicates."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from tertium.core.errors import DataError, UsageError
from tertium.core.segment import Judgment, Preference, Segment
from tertium.data.judgments import JudgmentSet
from tertium.data.rankings import PairwiseJudgment, RankingSet, build_ranking_set
from tertium.models.training_data import sort_training_sets
from tertium.models.training_examples import (
    has_decided_comparisons,
    longest_per_item,
    number_compared_pairs,
    number_scored_pairs,
    select_comparisons,
    shuffle_into_batches,
)


def outputs(texts: dict[str, str], source: str | None, reference: str) -> dict[str, Segment]:
    return {system: Segment(text, source, (reference,)) for system, text in texts.items()}


def rankings() -> RankingSet:
    texts = {
        "1": outputs({"A": "a one", "B": "b one", "C": "a one"}, "s1", "r one"),
        "2": outputs({"A": "a two", "B": "b two", "C": "c two"}, "s2", "r two"),
    }
    comparisons = [
        PairwiseJudgment("1", "A", "B", 1.0),
        PairwiseJudgment("1", "B", "A", 0.0),  # the same with sides swapped
        PairwiseJudgment("1", "A", "C", 1.0),  # equal texts: a tie under any metric
        PairwiseJudgment("2", "A", "B", 0.5),
        PairwiseJudgment("2", "C", "A", 1.0),
    ]
    return build_ranking_set(comparisons, texts, name="demo")


def test_comparisons_are_merged_and_each_pair_is_kept_once() -> None:
    table: dict[str, int] = {}
    data = number_compared_pairs([rankings()], "reference", table)
    weights = {
        (list(table)[data.pairs[b, 0]], list(table)[data.pairs[w, 0]]): n
        for b, w, n in zip(data.better, data.worse, data.weights, strict=True)
    }
    assert weights == {("a one", "b one"): 2.0, ("a one", "a one"): 1.0, ("c two", "a two"): 1.0}
    assert [list(table)[n] for n in data.pairs[:, 1]] == ["r one"] * 2 + ["r two"] * 2
    assert len(data) == 2
    assert data.starts.tolist() == [0, 2, 3]


def test_a_batch_of_items_holds_their_comparisons() -> None:
    table: dict[str, int] = {}
    data = number_compared_pairs([rankings(), rankings()], "reference", table)
    assert len(data) == 4  # equal items of two sets stay separate
    batch = select_comparisons(data, np.array([3, 0]))
    better = [list(table)[batch.pairs[n, 0]] for n in batch.better]
    assert sorted(better) == ["a one", "c two"]
    assert len(batch.pairs) == 4
    assert batch.weights.sum() == 3  # comparisons of a text with itself are not used


def test_an_item_of_equal_texts_is_measured_and_not_learned_from() -> None:
    texts = {
        "1": outputs({"A": "same", "B": "same"}, None, "r"),
        "2": outputs({"A": "a", "B": "b"}, None, "r"),
    }
    comparisons = [PairwiseJudgment(item, "A", "B", 1.0) for item in ("1", "2")]
    both = build_ranking_set(comparisons, texts, name="demo")
    data = number_compared_pairs([both], "reference", {})
    assert data.weights.sum() == 2
    assert has_decided_comparisons(data).tolist() == [False, True]
    only = both.select(np.array([0]))
    with pytest.raises(DataError, match="compares a text with itself"):
        number_compared_pairs([only], "reference", {})


def test_sizes_are_those_of_the_longest_text() -> None:
    table: dict[str, int] = {}
    data = number_compared_pairs([rankings()], "both", table)
    lengths = np.array([len(text) + 10 * (text == "s2") for text in list(table)])
    assert longest_per_item(data, lengths).tolist() == [5, 12]
    assert has_decided_comparisons(data).all()


def test_ties_only_are_refused() -> None:
    demo = rankings()
    ties = replace(demo, verdicts=np.full(len(demo), 0.5))
    with pytest.raises(DataError, match=rf"demo.*no usable comparison.*tie: {len(demo)}"):
        number_compared_pairs([ties], "reference", {})


@pytest.mark.parametrize(
    ("scores", "message"),
    [([0.5, 0.5, 0.5], "all 3 human scores are 0.5"), ([0.5, float("nan")], "not numbers")],
)
def test_scores_nothing_can_be_learned_from(scores: list[float], message: str) -> None:
    rows = tuple(Judgment(Segment(f"h{n}", None, ("r",)), s) for n, s in enumerate(scores))
    one = JudgmentSet(name="x", judgments=rows)
    with pytest.raises(DataError, match=message):
        number_scored_pairs([one], "reference", {})


def test_an_epoch_has_every_example_once_in_another_order_each_time() -> None:
    sizes = np.random.default_rng(0).integers(1, 50, size=500)
    rng = np.random.default_rng(1)
    first, second = (list(shuffle_into_batches(sizes, 8, rng)) for _ in range(2))
    for batches in (first, second):
        assert sorted(np.concatenate(batches).tolist()) == list(range(500))
        assert max(len(b) for b in batches) == 8
    assert [b.tolist() for b in first] != [b.tolist() for b in second]
    spread = np.mean([np.ptp(sizes[b]) for b in first])
    assert spread < 5  # 41 on average for batches drawn at random from these sizes


def test_ambiguous_single_comparisons_are_refused() -> None:
    left, right, third = (Segment(text, "s", ("r",)) for text in ("a", "b", "c"))
    with pytest.raises(DataError, match=r"1 verdicts are not 1 .* the first is nan"):
        sort_training_sets([Preference(left, right, 1.0), Preference(left, third, math.nan)])
    with pytest.raises(DataError, match="same source and references"):
        sort_training_sets([Preference(left, Segment("b", "s", ("another",)), 1.0)])
    names = {"left_system": "A", "right_system": "B"}
    ambiguous = [Preference(segment, right, 1.0, **names) for segment in (left, third)]
    with pytest.raises(DataError, match="A has two translations of one item, 'a' and 'c'"):
        sort_training_sets(ambiguous)


def test_a_score_that_is_a_text_is_refused() -> None:
    with pytest.raises(UsageError, match="the score '3' is not a number"):
        sort_training_sets([Judgment(Segment("a", None, ("r",)), "3")])
