"""What rankers are chosen on: comparisons drawn from several sets together."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tertium.data.collection import Collection
from tertium.data.rankings import sample_comparisons
from tertium.errors import UsageError


def test_a_sample_is_drawn_from_all_sets_and_repeats_under_a_seed(human_data: Path) -> None:
    sets = [Collection(human_data).rankings("rankings/wmt11", lp) for lp in ("cs-en", "fr-en")]
    drawn = sample_comparisons(sets, 500, np.random.default_rng(1))
    assert [part.lp for part in drawn] == ["cs-en", "fr-en"]
    assert sum(map(len, drawn)) == 500
    for whole, part in zip(sets, drawn, strict=True):
        pairs = set(zip(whole.left.tolist(), whole.right.tolist(), strict=True))
        assert pairs.issuperset(zip(part.left.tolist(), part.right.tolist(), strict=True))
    again = sample_comparisons(sets, 500, np.random.default_rng(1))
    assert [part.left.tolist() for part in again] == [part.left.tolist() for part in drawn]
    with pytest.raises(UsageError, match="cannot be drawn"):
        sample_comparisons(sets, 10**7, np.random.default_rng(1))
