"""Batches contain every text once, respect their budget and have little padding."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tertium.encoders.batching import plan_batches

LENGTHS = st.lists(st.integers(1, 60), max_size=80)


@given(LENGTHS, st.integers(1, 200), st.integers(0, 100), st.none() | st.integers(1, 9))
def test_every_item_is_in_one_batch_under_the_budget(
    lengths: list[int], budget: int, overhead: int, limit: int | None
) -> None:
    batches = plan_batches(lengths, budget=budget, overhead=overhead, limit=limit)
    assert sorted(i for batch in batches for i in batch.tolist()) == list(range(len(lengths)))
    for batch in batches:
        longest = max(lengths[i] for i in batch)
        assert len(batch) == 1 or longest * len(batch) <= budget
        assert limit is None or len(batch) <= limit


@given(LENGTHS, st.integers(1, 200))
def test_without_overhead_nothing_is_padded(lengths: list[int], budget: int) -> None:
    batches = plan_batches(lengths, budget=budget, overhead=0)
    assert all(len({lengths[i] for i in batch}) == 1 for batch in batches)


def test_news_text_has_little_padding() -> None:
    lengths = np.random.default_rng(5).gamma(4.0, 7.0, size=3000).astype(int) + 3
    batches = plan_batches(lengths, budget=1024, overhead=64)
    computed = sum(lengths[batch].max() * len(batch) for batch in batches)
    assert 1 - lengths.sum() / computed < 0.03
    assert np.mean([lengths[batch].sum() for batch in batches]) > 800


def test_a_few_texts_of_different_lengths_share_a_batch() -> None:
    batches = plan_batches([12, 10, 11, 9], budget=1024, overhead=64)
    assert [batch.tolist() for batch in batches] == [[0, 2, 1, 3]]
