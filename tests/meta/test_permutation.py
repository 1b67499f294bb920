"""Permutation tests equal the loops of mt-metrics-eval, by draw or in distribution."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats
from tests.meta import slow_loops

from tertium.core.errors import DataError, UsageError
from tertium.meta import acc_eq_calibrated, soft_pairwise_accuracy
from tertium.meta.accuracy import accuracy_pair_test
from tertium.meta.agreement import make_layout
from tertium.meta.protocol import average_tests, permute_accuracy, permute_soft_accuracy


def scored(systems=4, segments=90, metrics=3):
    rng = np.random.default_rng(4)
    quality = np.linspace(0, 0.4, systems)[:, None] + rng.normal(0, 0.5, segments)
    human = quality + rng.normal(0, 0.5, (systems, segments))
    noise = np.linspace(0.5, 2.0, metrics)[:, None, None]
    return human, quality + noise * rng.normal(size=(metrics, systems, segments))


def swaps_of(seed, resamples, shape):
    """The swaps that a generator gives in one block: (resamples, systems, segments)."""
    systems, segments = shape
    size = systems * resamples * segments
    bits = np.frombuffer(np.random.default_rng(seed).bytes(-(-size // 8)), np.uint8)
    drawn = np.unpackbits(bits, count=size).reshape(systems, resamples, segments)
    return drawn.astype(bool).transpose(1, 0, 2)


def test_mixtures_equal_the_sampled_loop():
    human, metrics = scored(systems=3)
    test = permute_soft_accuracy(human, metrics, resamples=12, rng=np.random.default_rng(3))
    signs = np.random.default_rng(0).choice([-1.0, 1.0], size=(1000, human.shape[1]))
    swaps = swaps_of(3, 12, human.shape)
    expected = slow_loops.perm_both_spa(human, metrics[0], metrics[2], swaps, signs)
    # a p-value of 1,000 flips has an error of .016, and a draw averages four to six of them
    assert_allclose(test.draws[:, 0, 2], expected, atol=0.04)
    assert np.corrcoef(test.draws[:, 0, 2], expected)[0, 1] > 0.99
    spa = [slow_loops.soft_pairwise_accuracy(human, m, signs) for m in metrics]
    assert_allclose(test.observed[0], spa[0] - np.array(spa), atol=0.02)


def test_soft_accuracy_separates_good_from_bad():
    human, metrics = scored(systems=6, segments=200)
    stack = np.stack([metrics[0], -metrics[0], 2 * metrics[0] + 7])
    p = permute_soft_accuracy(human, stack, resamples=200, rng=np.random.default_rng(1)).p_values
    assert p[0, 1] < 0.01 < 0.99 < p[1, 0]
    assert p[0, 2] == p[2, 0] == 1
    assert (np.diagonal(p) == 1).all()


def test_metric_that_ties_all_systems():
    human, metrics = scored(systems=6, segments=200)
    blind = np.broadcast_to(np.random.default_rng(2).normal(size=200), human.shape)
    stack = np.stack([metrics[0], blind, np.full(human.shape, 0.3)])
    for order in (np.arange(6), np.arange(6)[::-1]):
        test = permute_soft_accuracy(
            human[order], stack[:, order], resamples=100, rng=np.random.default_rng(1)
        )
        rng = np.random.default_rng(1)
        spa = soft_pairwise_accuracy(human[order], stack[:, order], rng=rng).value
        assert_allclose(test.observed[0], spa[0] - spa, atol=0.02)
        assert test.p_values[0, 1:].max() < 0.05 < test.p_values[1:, 0].min()


def test_missing_scores_and_metrics():
    human, metrics = scored()
    human[0, :10] = np.nan
    metrics[1, 2, 5] = np.nan
    metrics[2] = np.nan
    test = permute_soft_accuracy(human, metrics, resamples=20, rng=np.random.default_rng(3))
    assert np.isnan(test.p_values[2]).all()
    assert not np.isnan(test.p_values[:2, :2]).any()
    # pairs of systems are compared on the segments that both have
    signs = np.random.default_rng(0).choice([-1.0, 1.0], size=(1000, human.shape[1]))
    shared = np.where(np.isnan(metrics[1]), np.nan, human)
    spa = [slow_loops.soft_pairwise_accuracy(shared, m, signs) for m in metrics[:2]]
    assert test.observed[0, 1] == pytest.approx(spa[0] - spa[1], abs=0.02)


def test_accuracy_draws_have_the_distribution_of_the_loop():
    rng = np.random.default_rng(5)
    human = rng.integers(0, 3, (4, 12)).astype(float)
    human[3, :4] = np.nan  # groups of two sizes
    metrics = human + rng.normal(0, [[[0.5]], [[2.0]]], (2, 4, 12))
    metrics = np.where(np.isnan(human), 0.0, metrics)
    epsilon = np.asarray(acc_eq_calibrated(human, metrics).epsilon)
    test = permute_accuracy(make_layout(human, metrics, "item"), epsilon, resamples=2000, rng=rng)
    values = acc_eq_calibrated(human, metrics).value
    assert test.observed[0, 1] == pytest.approx(values[0] - values[1])
    loop = slow_loops.pair_lots(human, metrics[0], metrics[1], epsilon, 300, rng)
    drawn = test.draws[:, 0, 1].astype(float).round(5)  # steps of 1/72, in single precision
    assert stats.ks_2samp(drawn, loop.round(5)).pvalue > 0.001
    assert_allclose(test.draws, -np.swapaxes(test.draws, 1, 2))
    p = accuracy_pair_test(make_layout(human, metrics, "item"), epsilon, resamples=4000, rng=rng)
    assert_allclose(test.p_values, p, atol=0.05)


def test_average_of_tests():
    human, metrics = scored()
    rngs = (np.random.default_rng(n) for n in range(2))
    parts = [permute_soft_accuracy(human, metrics, resamples=50, rng=rng) for rng in rngs]
    average = average_tests(parts)
    assert_allclose(average.observed, parts[0].observed)
    assert_allclose(average.draws, (parts[0].draws + parts[1].draws) / 2, atol=1e-6)


def test_invalid_input():
    human, metrics = scored()
    rng = np.random.default_rng(0)
    with pytest.raises(UsageError, match="from 1 to 1,000,000"):
        permute_soft_accuracy(human, metrics, resamples=0, rng=rng)
    with pytest.raises(DataError, match="no two systems"):
        permute_soft_accuracy(human[:1], metrics[:, :1], resamples=5, rng=rng)
    with pytest.raises(DataError, match="no pair to test"):
        permute_accuracy(make_layout(human[:1], metrics[:, :1], "item"), 0.0, resamples=5, rng=rng)
