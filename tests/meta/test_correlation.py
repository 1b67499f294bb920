"""Correlations equal scipy's and the definitions, missing values and ties included."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.testing import assert_allclose, assert_array_equal
from tests.meta import slow_loops

from tertium.core.errors import DataError, LengthError, UnknownNameError, UsageError
from tertium.meta import kendall_b, pearson, spearman
from tertium.meta.agreement import ranks
from tertium.meta.replicates import pearson_replicate, perm_both, williams

few_values = st.sampled_from([np.nan, 0.0, 1.0, 2.0, 2.5, 7.0])
matrices = arrays(float, (3, 5, 7), elements=few_values)  # human scores and two metrics


@pytest.mark.parametrize("grouping", ["none", "item", "system"])
@pytest.mark.parametrize(
    ("fast", "slow"),
    [
        (pearson, slow_loops.pearson),
        (spearman, slow_loops.spearman),
        (kendall_b, slow_loops.kendall_b),
    ],
)
@settings(max_examples=60, deadline=None)
@given(matrices)
def test_equals_the_loop_with_ties_and_missing_values(fast, slow, grouping, stack):
    human, metrics = stack[0], stack[1:]
    result = fast(human, metrics, grouping=grouping)
    assert_allclose(result.value, [slow(human, m, grouping) for m in metrics], atol=1e-12)
    present = ~np.isnan(human) & ~np.isnan(metrics)
    assert result.used.tolist() == present.sum(axis=(1, 2)).tolist()
    assert result.judged_count == (~np.isnan(human)).sum()
    assert (result.excluded_counts == result.judged_count - result.used).all()


def test_long_vectors_equal_scipy_and_short_ones_the_definition():
    from scipy import stats

    rng = np.random.default_rng(1)
    human = rng.integers(0, 101, 500).astype(float)
    metric = human + rng.normal(0, 30, 500).round()
    assert_allclose(float(pearson(human, metric)), stats.pearsonr(human, metric)[0])
    assert_allclose(float(spearman(human, metric)), stats.spearmanr(human, metric)[0])
    assert_allclose(float(kendall_b(human, metric)), stats.kendalltau(human, metric)[0])
    assert_allclose(float(kendall_b(human, metric)), slow_loops.kendall_b(human, metric))
    # Deviations (-1, 0, 1) and (-2, 1, 1): 3 / sqrt(2 * 6).
    assert_allclose(float(pearson([1, 2, 3], [0, 3, 3])), 3 / np.sqrt(12))
    # Of three pairs two are concordant and one is tied by the metric: 2 / sqrt(3 * 2).
    assert_allclose(float(kendall_b([1, 2, 3], [0, 3, 3])), 2 / np.sqrt(6))


@pytest.mark.parametrize("scale", [1e-300, 1e-170, 1e-90, 1e90])
def test_correlation_of_very_small_and_large_scores(scale):
    """Sentence probabilities are this small, and their squares underflow."""
    rng = np.random.default_rng(3)
    human = rng.normal(size=(3, 10))
    metrics = human + rng.normal(0, [[[0.5]], [[2.0]]], (2, 3, 10))
    power = 2.0 ** np.round(np.log2(scale))
    for grouping in ("none", "item"):
        plain, scaled = (
            pearson(human, metrics, grouping=grouping),
            pearson(human, power * metrics, grouping=grouping),
        )
        assert scaled.value.tolist() == plain.value.tolist()
    expected = np.ones((1, 10))
    assert_allclose(
        pearson_replicate(human, scale * metrics)(expected)[0], pearson(human, metrics).value
    )
    assert_allclose(williams(human, scale * metrics), williams(human, metrics))
    plain_p, scaled_p = (
        perm_both(human, stack, resamples=100, rng=np.random.default_rng(1))
        for stack in (metrics, scale * metrics)
    )
    assert_allclose(scaled_p, plain_p)


def test_constant_and_short_vectors_are_undefined_and_counted():
    human = np.array([[1.0, 2, 3], [3, 2, 1], [5, 5, 5]])
    result = pearson(human, human, grouping="system")
    assert float(result) == pytest.approx(1.0)
    assert (result.groups, int(result.undefined)) == (3, 1)
    one_system = pearson([[1.0, 2.0, 3.0]], [[1.0, 2.0, 4.0]], grouping="item")
    assert (one_system.groups, int(one_system.undefined)) == (3, 3)
    unscored = pearson(np.full((2, 3), np.nan), np.ones((4, 2, 3)))
    assert (unscored.judged_count, unscored.used.tolist()) == (0, [0] * 4)
    # 0.1 has no exact binary form: a constant must not have a spread from rounding.
    assert np.isnan(float(pearson(np.arange(10), np.full(10, 0.1))))
    for statistic in (pearson, spearman, kendall_b):
        assert np.isnan(float(statistic([1.0], [2.0])))
        assert np.isnan(float(statistic([1.0, 2.0], [np.nan, 2.0])))
    assert np.isnan([float(spearman([], [])), float(one_system), *unscored.value]).all()


def test_many_metrics_keep_their_axes():
    metrics = np.random.default_rng(0).normal(size=(2, 3, 4, 5))
    human = metrics[0, 0]
    result = pearson(human, metrics)
    assert result.value.shape == (2, 3)
    assert result.value[0, 0] == pytest.approx(1.0)
    with pytest.raises(UsageError, match=r"got 6: use \.value"):
        float(result)


@pytest.mark.parametrize(("human", "metric", "options", "error", "message"), [
    ([1, 2, 3], [1, 2, 3, 4], {}, LengthError, r"\(4,\), which does not end in .* \(3,\)"),
    ([[1, 2], [3, 4]], [1, 2], {}, LengthError, "does not end"),
    ([1, 2, 3], [1, 2, np.inf], {}, DataError, "1 values that are infinite or above 1e"),
    ([1, 2, 3], [1, 2, -1e200], {}, DataError, "1 values that are infinite or above 1e"),
    ([1, 2], [1, 2], {"grouping": "item"}, UsageError, "grouping=item needs matrices"),
    ([[1, 2]], [[1, 2]], {"grouping": "items"}, UnknownNameError, "did you mean 'item'"),
    ([[[1, 2]]], [[[1, 2]]], {}, DataError, "have shape \\(1, 1, 2\\)"),
])  # fmt: skip
def test_invalid_shapes(human, metric, options, error, message):
    with pytest.raises(error, match=message):
        pearson(human, metric, **options)


@given(arrays(float, (4, 6), elements=st.sampled_from([0.0, 1.0, 2.0, np.inf, -np.inf, np.nan])))
def test_ranks_equal_scipy(values):
    from scipy.stats import rankdata

    assert_array_equal(ranks(values), rankdata(values, axis=-1, nan_policy="omit"))
