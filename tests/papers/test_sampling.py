"""Sampling of comparisons from several ranking sets."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tertium.core.errors import UsageError
from tertium.data.dataset_folder import DatasetFolder
from tertium.data.rankings import sample_comparisons


def test_a_sample_covers_all_sets_and_is_deterministic(human_data: Path) -> None:
    sets = [DatasetFolder(human_data).rankings("rankings/wmt11", lp) for lp in ("cs-en", "fr-en")]
    drawn = sample_comparisons(sets, 500, np.random.default_rng(1))
    assert [part.lp for part in drawn] == ["cs-en", "fr-en"]
    assert sum(map(len, drawn)) == 500
    for rankings, part in zip(sets, drawn, strict=True):
        pairs = set(zip(rankings.left.tolist(), rankings.right.tolist(), strict=True))
        assert pairs.issuperset(zip(part.left.tolist(), part.right.tolist(), strict=True))
    second = sample_comparisons(sets, 500, np.random.default_rng(1))
    assert [part.left.tolist() for part in second] == [part.left.tolist() for part in drawn]
    with pytest.raises(UsageError, match="cannot sample 10000000 of"):
        sample_comparisons(sets, 10**7, np.random.default_rng(1))
