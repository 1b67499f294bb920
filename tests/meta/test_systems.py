"""System-level statistics equal the loops over their definitions."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.testing import assert_allclose
from tests.meta import slow_loops

from tertium.core.errors import DataError, LengthError, UsageError
from tertium.meta import soft_pairwise_accuracy, system_accuracy
from tertium.meta.accuracy import permutation_p_values

few_values = st.sampled_from([np.nan, 0.0, 1.0, 2.0, 2.5, 7.0])
vectors = arrays(float, (3, 6), elements=few_values)


@given(vectors, vectors)
def test_system_accuracy_pools_language_pairs(first, second):
    human = [first[0], second[0]]
    metrics = [first[1:], second[1:]]
    result = system_accuracy(human, metrics)
    expected = [slow_loops.system_accuracy(human, [m[k] for m in metrics]) for k in range(2)]
    assert_allclose(result.value, expected)
    assert result.groups == 2


def test_system_accuracy_by_hand():
    # Three pairs of the first set, one wrong; one pair of the second, right.
    assert float(system_accuracy([[3, 2, 1], [1, 2]], [[3, 1, 2], [5, 9]])) == pytest.approx(3 / 4)


def test_one_system_has_no_accuracy():
    result = system_accuracy([[1.0]], [[2.0]])
    assert np.isnan(float(result))
    assert result.judged_count == 0


def test_system_accuracy_faults():
    with pytest.raises(LengthError, match="2 sets of human scores, but 1"):
        system_accuracy([[1, 2], [1, 2]], [[1, 2]])
    with pytest.raises(LengthError, match="metrics differ"):
        system_accuracy([[1, 2], [1, 2]], [np.ones((2, 2)), np.ones((3, 2))])
    with pytest.raises(DataError, match="at least one"):
        system_accuracy([], [])


@settings(max_examples=40, deadline=None)
@given(arrays(float, (3, 4, 6), elements=few_values))
def test_spa_equals_the_loop(stack):
    human, metrics = stack[0], stack[1:]
    result = soft_pairwise_accuracy(human, metrics, rng=np.random.default_rng(5), resamples=50)
    is_judged = (~np.isnan(human)).any(axis=0)
    signs = np.random.default_rng(5).choice([-1.0, 1.0], size=(50, is_judged.sum()))
    for n, metric in enumerate(metrics):
        expected = slow_loops.soft_pairwise_accuracy(
            human[:, is_judged], metric[:, is_judged], signs
        )
        assert_allclose(result.value[n], expected, atol=1e-12)


def test_spa_of_complete_scores_equals_the_loop():
    rng = np.random.default_rng(8)
    human = rng.normal(size=(5, 30)) + np.arange(5)[:, None] * 0.2
    metric = human + rng.normal(size=(5, 30))
    value = float(soft_pairwise_accuracy(human, metric, rng=np.random.default_rng(2)))
    signs = np.random.default_rng(2).choice([-1.0, 1.0], size=(1000, 30))
    assert value == pytest.approx(slow_loops.soft_pairwise_accuracy(human, metric, signs))
    same = soft_pairwise_accuracy(human, human, rng=np.random.default_rng(2))
    assert float(same) == 1.0
    assert same.judged_count == int(same.used) == 10


@pytest.mark.parametrize("holes", [False, True])
def test_spa_does_not_depend_on_system_order(holes):
    rng = np.random.default_rng(8)
    human = np.round(rng.normal(size=(5, 30)) + np.arange(5)[:, None] * 0.4)  # worst first, tied
    blind = np.broadcast_to(rng.normal(size=30), (5, 30))  # scores that depend on the source only
    metrics = np.stack([human + np.round(rng.normal(size=(5, 30))), blind, np.ones((5, 30))])
    if holes:
        human[0, :3] = np.nan
    values = [
        soft_pairwise_accuracy(
            human[order], metrics[:, order], rng=np.random.default_rng(2), resamples=400
        ).value
        for order in (np.arange(5), np.arange(5)[::-1], np.array([2, 0, 4, 1, 3]))
    ]
    assert_allclose(values, np.broadcast_to(values[0], (3, 3)), atol=1e-12)
    # p_human and 1 - p_human compared with 1; if permutations tie, their sum is larger
    assert_allclose(values[0][1:], 0.5, atol=0.05)
    assert values[0][0] > 0.7


def test_spa_needs_resamples():
    with pytest.raises(UsageError, match="from 1 to 1,000,000"):
        soft_pairwise_accuracy(np.eye(2), np.eye(2), rng=np.random.default_rng(1), resamples=0)


def test_permutation_p_values_equal_the_exact_ones():
    # All 2^3 sign flips of (1, 2, 3): sums at least 6, 4 and 0 occur 1, 2 and 5 times of 8.
    signs = np.array(np.meshgrid(*[[-1.0, 1.0]] * 3)).reshape(3, -1).T
    rows = np.array([[1.0, 2, 3], [-1, 2, 3], [1, 2, -3]])
    assert permutation_p_values(rows, signs).tolist() == [1 / 8, 2 / 8, 5 / 8]
