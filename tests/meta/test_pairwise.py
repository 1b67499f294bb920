"""Statistics of pairs of translations and systems equal the loops over their definitions."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.testing import assert_allclose
from tests.meta import slow_loops

from tertium.core.errors import DataError, LengthError, UsageError
from tertium.meta import (
    acc_eq,
    acc_eq_calibrated,
    consistency,
    darr,
    kendall_strict,
    kendall_wmt13,
    kendall_wmt14,
    pairwise,
    soft_pairwise_accuracy,
    system_accuracy,
)
from tertium.meta.accuracy import permutation_p_values

few_values = st.sampled_from([np.nan, 0.0, 1.0, 2.0, 2.5, 7.0])
matrices = arrays(float, (3, 5, 4), elements=few_values)
raw_scores = arrays(float, (4, 5), elements=st.sampled_from([np.nan, 0.0, 20.0, 25.0, 50.0, 99.0]))
comparisons = st.lists(
    st.tuples(st.sampled_from([0.0, 0.5, 1.0]), few_values, few_values), min_size=0, max_size=20
)


@given(comparisons)
def test_taus_and_consistency_equal_the_loop(rows):
    verdicts, left, right = np.array(rows, float).reshape(-1, 3).T
    functions = (kendall_strict, kendall_wmt13, kendall_wmt14, consistency)
    for function, expected in zip(functions, slow_loops.taus(verdicts, left, right), strict=True):
        assert_allclose(float(function(verdicts, left, right)), expected)


def test_taus_by_hand():
    # human: left left left right right tie; the metric: C, C, tie, C, D, and one that is dropped.
    data = [1, 1, 1, 0, 0, 0.5], [5, 4, 3, 1, 7, 2], [1, 2, 3, 6, 1, 2]
    functions = (kendall_strict, kendall_wmt13, kendall_wmt14, consistency)
    values = [float(function(*data)) for function in functions]
    assert values == pytest.approx([(3 - 1 - 1) / 5, (3 - 1) / 4, (3 - 1) / 5, (3 + 1) / 6])
    assert np.isnan(float(kendall_strict([0.5, 0.5], [1, 2], [2, 1])))  # only ties
    assert float(consistency([0.5], [1.0], [1.2])) == 0.0
    assert float(consistency([0.5], [1.0], [1.2], epsilon=0.25)) == 1.0


def test_counts_of_comparisons_and_pairs():
    result = kendall_strict([1, 0, 0.5, 1], [3, np.nan, 1, 2], [1, 1, 1, 1])
    assert (result.judged_count, int(result.used), int(result.excluded_counts)) == (3, 2, 1)
    tied = consistency([1, 0, 0.5, 1], [3, np.nan, 1, 2], [1, 1, 1, 1])
    assert (tied.judged_count, int(tied.used), int(tied.excluded_counts)) == (4, 3, 1)
    human = [[1, 1, np.nan], [2, np.nan, np.nan], [2, 3, 4]]
    metric = [[1, 1, 1], [2, 2, 2], [3, np.nan, 3]]
    result = acc_eq(human, metric)
    # Three pairs of the first item, one of the second (a metric score is missing), none after.
    assert (result.judged_count, int(result.used), int(result.excluded_counts)) == (4, 3, 1)
    assert (result.groups, int(result.undefined)) == (2, 1)


def test_invalid_comparisons():
    matrix, rows = [[1, 2], [2, 1]], ([1, 0], [3, 2], [1, 2])
    # ties are 0.5, not 0
    with pytest.raises(DataError, match=r"1 verdicts are not 1 .* the first is -1"):
        kendall_strict([1, 0, -1], [3, 2, 1], [1, 2, 3])
    for epsilon in (-0.1, np.nan):
        for function, data in ((consistency, rows), (acc_eq, (matrix, matrix))):
            with pytest.raises(UsageError, match="epsilon"):
                function(*data, epsilon=epsilon)
    with pytest.raises(LengthError, match="verdicts"):
        kendall_strict([1, 0], [1, 2, 3], [1, 2, 3])
    for threshold in (0, np.nan):
        with pytest.raises(UsageError, match="above 0"):
            darr([[1.0]], [[1.0]], threshold=threshold)


@pytest.mark.parametrize("year", [2017, 2018])
@given(raw_scores, arrays(float, (4, 5), elements=few_values))
def test_darr_equals_the_loop(year, human, metric):
    result = darr(human, metric, year=year)
    assert_allclose(float(result), slow_loops.darr(human, metric, year))


def test_darr_by_hand():
    # Pairs with a difference of 25 or more: 90-60 C, 90-30 C, 60-30 tied by the metric.
    human, metric = [[90], [60], [30]], [[3], [2], [2]]
    assert float(darr(human, metric)) == pytest.approx((2 - 1) / 3)
    assert float(darr(human, metric, year=2017)) == pytest.approx(2 / 3)
    assert darr(human, metric).judged_count == 3
    missing = darr(human, [[3], [np.nan], [2]])
    assert (missing.judged_count, int(missing.used)) == (3, 1)
    with pytest.raises(UsageError, match="year must be 2017, or 2018"):
        darr(human, metric, year=2019)  # type: ignore[arg-type]


@pytest.mark.parametrize("grouping", ["none", "item", "system"])
@settings(max_examples=60, deadline=None)
@given(matrices)
def test_acc_eq_equals_the_loop(grouping, stack):
    human, metrics = stack[0], stack[1:]
    for epsilon in (0.0, 0.5, 1.0):
        result = acc_eq(human, metrics, grouping=grouping, epsilon=epsilon)
        expected = [slow_loops.acc_eq(human, m, grouping, epsilon) for m in metrics]
        assert_allclose(result.value, expected, atol=1e-12)


@pytest.mark.parametrize("grouping", ["none", "item", "system"])
@settings(max_examples=40, deadline=None)
@given(matrices)
def test_calibration_equals_trying_every_epsilon(grouping, stack):
    human, metrics = stack[0], stack[1:]
    result = acc_eq_calibrated(human, metrics, grouping=grouping)
    for n, metric in enumerate(metrics):
        value, epsilon = slow_loops.acc_eq_calibrated(human, metric, grouping)
        assert_allclose(result.value[n], value, atol=1e-12)
        if not np.isnan(value):
            assert result.epsilon[n] == epsilon


def test_calibration_on_fine_scores():
    rng = np.random.default_rng(7)
    human = rng.integers(-5, 1, (6, 30)).astype(float)
    metric = human + rng.normal(0, 1.5, human.shape)
    metric[rng.random(metric.shape) < 0.1] = np.nan
    value, epsilon = slow_loops.acc_eq_calibrated(human, metric)
    result = acc_eq_calibrated(human, metric)
    assert float(result) == pytest.approx(value, abs=1e-12)
    assert float(result.epsilon) == epsilon
    assert float(result) >= float(acc_eq(human, metric))


@pytest.mark.parametrize("grouping", ["none", "item", "system"])
def test_blocks_do_not_change_a_value(monkeypatch, grouping):
    rng = np.random.default_rng(3)
    human, metric = rng.integers(0, 5, (2, 4, 15)).astype(float)
    expected = acc_eq_calibrated(human, metric, grouping=grouping)
    monkeypatch.setattr(pairwise, "BLOCK", 16)
    result = acc_eq_calibrated(human, metric, grouping=grouping)
    assert (float(result), result.epsilon) == (float(expected), expected.epsilon)


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
    lone = system_accuracy([[1.0]], [[2.0]])
    assert np.isnan(float(lone))
    assert lone.judged_count == 0
    with pytest.raises(LengthError, match="2 sets of human scores, but 1"):
        system_accuracy([[1, 2], [1, 2]], [[1, 2]])
    with pytest.raises(LengthError, match="metrics differ"):
        system_accuracy([[1, 2], [1, 2]], [np.ones((2, 2)), np.ones((3, 2))])
    with pytest.raises(DataError, match="at least one"):
        system_accuracy([], [])
    with pytest.raises(UsageError, match="from 1 to 1,000,000"):
        soft_pairwise_accuracy(np.eye(2), np.eye(2), rng=np.random.default_rng(1), resamples=0)


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


def test_permutation_p_values_and_spa_of_complete_scores():
    rng = np.random.default_rng(8)
    human = rng.normal(size=(5, 30)) + np.arange(5)[:, None] * 0.2
    metric = human + rng.normal(size=(5, 30))
    value = float(soft_pairwise_accuracy(human, metric, rng=np.random.default_rng(2)))
    signs = np.random.default_rng(2).choice([-1.0, 1.0], size=(1000, 30))
    assert value == pytest.approx(slow_loops.soft_pairwise_accuracy(human, metric, signs))
    same = soft_pairwise_accuracy(human, human, rng=np.random.default_rng(2))
    assert float(same) == 1.0
    assert same.judged_count == int(same.used) == 10
    # All 2^3 sign flips of (1, 2, 3): sums at least 6, 4 and 0 occur 1, 2 and 5 times of 8.
    signs = np.array(np.meshgrid(*[[-1.0, 1.0]] * 3)).reshape(3, -1).T
    rows = np.array([[1.0, 2, 3], [-1, 2, 3], [1, 2, -3]])
    assert permutation_p_values(rows, signs)[0].tolist() == [1 / 8, 2 / 8, 5 / 8]


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
