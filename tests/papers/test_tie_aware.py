"""Tie-aware system scores equal the loop over their definition."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import strategies as st
from papers.tie_aware import find_tie_epsilon, tie_aware_scores, tie_aware_spearman

from tertium.core.errors import DataError, UsageError

few_values = st.sampled_from([np.nan, 0.0, 1.0, 2.0, 2.5, 7.0])


def test_ties_in_first_place_by_hand():
    scores = np.array([[5.0, 4, 3, 9], [5, 3, 3, 1], [1, 4, 2, 8]])
    # Leads over the second are 0, 0, 0, 1.
    assert find_tie_epsilon(scores, 0.75) == 0.0
    assert find_tie_epsilon(scores, 0.76) == 1.0
    assert find_tie_epsilon(scores, 0.0) == 0.0
    # Within 1 of the best: A everywhere; B on items 1, 2 and 3; C on 2, 3 and 4.
    assert tie_aware_scores(scores, 1.0).tolist() == [1.0, 3 / 4, 3 / 4]
    assert tie_aware_scores(scores, 0.0).tolist() == [1.0, 2 / 4, 1 / 4]


def test_tie_aware_spearman_by_hand():
    metric = np.array([[0.9, 0.9, 0.9], [0.8, 0.8, 0.1], [0.1, 0.1, 0.85]])
    # Epsilon .1 ties A with B twice and with C once: shares 1, 2/3, 1/3.
    result = tie_aware_spearman([3, 2, 1], metric, tie_rate=1.0)
    assert float(result) == pytest.approx(1.0)
    assert float(result.epsilon) == pytest.approx(0.1)
    assert float(tie_aware_spearman([1, 2, 3], metric, tie_rate=1.0)) == pytest.approx(-1.0)


def test_tie_aware_faults():
    with pytest.raises(UsageError, match="between 0 and 1"):
        find_tie_epsilon([[1, 2], [2, 1]], 1.5)
    with pytest.raises(DataError, match="two scored systems"):
        find_tie_epsilon([[1.0, 2.0]], 0.5)
