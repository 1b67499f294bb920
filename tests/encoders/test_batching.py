"""Batches contain every text once, respect their budget and have little padding."""

from __future__ import annotations

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
