"""Tests between metrics: equal to loops, exact enumeration and published formulas."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats

from tertium.core.errors import DataError, UsageError
from tertium.core.resampling import percentile_interval
from tertium.meta import acc_eq
from tertium.meta.accuracy import accuracy_pair_test, coin_p_values, count_wins, sign_flip_p_values
from tertium.meta.agreement import make_layout
from tertium.meta.agreement_results import assign_ranks
from tertium.meta.replicates import bootstrap_p_values, perm_both, williams, williams_t


@pytest.fixture
def scored():
    rng = np.random.default_rng(21)
    human = rng.normal(size=60)
    metrics = np.stack([human + rng.normal(0, s, 60) for s in (0.6, 0.8, 3.0)])
    return human, metrics


def swaps(seed, resamples, n):
    """The masks that a generator gives to perm_both."""
    width = -(-n // 8)
    bits = np.frombuffer(np.random.default_rng(seed).bytes(resamples * width), np.uint8)
    return np.unpackbits(bits.reshape(resamples, width), axis=1, count=n)


def test_perm_both_equals_the_loop(scored):
    human, metrics = scored
    p = perm_both(human, metrics, resamples=300, rng=np.random.default_rng(9))
    x, y = stats.zscore(metrics[0]), stats.zscore(metrics[1])
    observed = stats.pearsonr(human, x)[0] - stats.pearsonr(human, y)[0]
    null = []
    for mask in swaps(9, 300, 60):
        first, second = np.where(mask, x, y), np.where(mask, y, x)
        null.append(stats.pearsonr(human, first)[0] - stats.pearsonr(human, second)[0])
    assert p[0, 1] == (1 + np.sum(np.array(null) >= observed)) / 301
    assert p[1, 0] == (1 + np.sum(np.array(null) <= observed)) / 301


def test_perm_both_of_missing_and_constant_scores(scored):
    human, metrics = scored
    metrics = metrics.copy()
    metrics[0, :5] = np.nan
    metrics[1, 5:9] = np.nan
    p = perm_both(human, metrics, resamples=200, rng=np.random.default_rng(3))
    both = slice(9, None)
    pair = perm_both(human[both], metrics[:2, both], resamples=200, rng=np.random.default_rng(3))
    assert p[0, 1] == pair[0, 1]
    assert p[1, 0] == pair[1, 0]
    human, metrics = scored
    p = perm_both(
        human, np.stack([metrics[0], np.ones(60)]), resamples=20, rng=np.random.default_rng(0)
    )
    assert np.isnan(p[0, 1])
    assert p[0, 0] == 1.0
    with pytest.raises(UsageError, match="from 1 to 1,000,000"):
        perm_both(human, metrics, resamples=0, rng=np.random.default_rng(0))


@pytest.mark.parametrize("points", [1023, 1024, 5000])
def test_perm_both_of_many_points_draws_swaps(points):
    rng = np.random.default_rng(4)
    human = rng.normal(size=points)
    metrics = human + np.array([[1.0], [9.0]]) * rng.normal(size=(2, points))
    assert perm_both(human, metrics, resamples=40, rng=rng)[0, 1] == 1 / 41


def enumerate_swaps(human, metrics):
    """The shares of all swaps with at least the observed difference, upwards and downwards."""
    standard, null = [stats.zscore(m) for m in metrics], []
    for swaps in product([False, True], repeat=len(human)):
        mixed = np.where(swaps, *standard), np.where(swaps, *standard[::-1])
        if min(np.ptp(m) for m in mixed) > 0.1:  # a constant metric has no correlation
            null.append(stats.pearsonr(human, mixed[0])[0] - stats.pearsonr(human, mixed[1])[0])
    observed = stats.pearsonr(human, metrics[0])[0] - stats.pearsonr(human, metrics[1])[0]
    drawn = np.array([null, np.negative(null)])
    return (drawn >= np.array([[observed], [-observed]]) - 1e-9).mean(axis=1)


def test_perm_both_enumerates_swaps_of_few_points():
    rng = np.random.default_rng(0)
    for _ in range(12):
        human, metrics = rng.normal(size=5), rng.integers(0, 2, size=(2, 5)).astype(float)
        metrics[:, :2] = [[0, 1], [1, 0]]
        p = perm_both(human, metrics, resamples=32, rng=rng)
        assert_allclose([p[0, 1], p[1, 0]], enumerate_swaps(human, metrics))
    human = np.array([1.0, 2.0, 3.0, 4.0])
    metrics = np.array([[1.1, 2.0, 2.9, 4.2], [1.0, 4.0, 2.0, 2.5]])
    for seed in (1, 2):
        p = perm_both(human, metrics, resamples=1000, rng=np.random.default_rng(seed))
        assert p[0, 1] == enumerate_swaps(human, metrics)[0] >= 1 / 16
    drawn = perm_both(human, metrics, resamples=15, rng=np.random.default_rng(1))
    assert drawn[0, 1] * 16 == round(drawn[0, 1] * 16)


def test_williams_by_hand():
    # r12 = .6, r13 = .4, r23 = .5, n = 103 worked through the formula term by term:
    # K = 1 - .36 - .16 - .25 + .24 = .47; below = 2 * .47 * 102 / 100 + .25 * .125 = .99005;
    # t = .2 * sqrt(102 * 1.5) / sqrt(.99005) = 2.48628...
    t = williams_t(0.6, 0.4, 0.5, 103)
    assert_allclose(t, 0.2 * np.sqrt(153) / np.sqrt(0.99005), rtol=1e-12)
    assert_allclose(t, 2.48628, atol=1e-4)
    assert np.isnan(williams([1, 2, 3], [[1, 2, 3], [3, 1, 2]])[0, 1])
    assert np.isnan(williams(np.arange(9.0), [np.arange(9.0) ** 2, np.ones(9)])[0, 1])


def test_williams_reads_the_scores(scored):
    human, metrics = scored
    p = williams(human, metrics)
    r = [stats.pearsonr(human, m)[0] for m in metrics]
    between = stats.pearsonr(metrics[0], metrics[2])[0]
    expected = stats.t.sf(williams_t(r[0], r[2], between, 60), 57)
    assert_allclose(p[0, 2], expected)
    assert_allclose(p[2, 0], 1 - expected)
    assert p.diagonal().tolist() == [1, 1, 1]
    permuted = perm_both(human, metrics, resamples=4000, rng=np.random.default_rng(2))
    assert_allclose(williams(human, metrics)[0, 1], permuted[0, 1], atol=0.05)


def test_coin_p_values_equal_full_enumeration():
    # Six decided pairs, metric 0 wins five: P(heads >= 5) over all 2^6 outcomes.
    heads = [sum(flips) for flips in product([0, 1], repeat=6)]
    expected = np.mean([h >= 5 for h in heads])
    wins = np.array([[[0.0, 5], [1, 0]]])
    p = coin_p_values(wins, np.ones(1), rng=np.random.default_rng(0))
    assert_allclose(p[0, 1], expected)
    assert_allclose(p[1, 0], np.mean([h >= 1 for h in heads]))
    # Weights 1 (3 pairs, won 2) and 1/3 (4 pairs, won 3): 2^7 outcomes.
    wins = np.array([[[0.0, 2], [1, 0]], [[0.0, 3], [1, 0]]])
    classify_pairs = [sum(f[:3]) + sum(f[3:]) / 3 for f in product([0, 1], repeat=7)]
    expected = np.mean([o >= 2 + 1 - 1e-9 for o in classify_pairs])
    p = coin_p_values(wins, np.array([1.0, 1 / 3]), resamples=40_000, rng=np.random.default_rng(0))
    assert_allclose(p[0, 1], expected, atol=0.01)


@pytest.mark.parametrize("grouping", ["none", "item", "system"])
def test_wins_give_the_difference_of_accuracies(grouping):
    rng = np.random.default_rng(13)
    human = rng.integers(0, 4, (5, 8)).astype(float)
    metrics = human + rng.integers(-2, 3, (2, 5, 8))
    layout = make_layout(human, metrics, grouping)
    wins, weights = count_wins(layout, [0.0, 1.0])
    values = [float(acc_eq(human, metrics[n], grouping=grouping, epsilon=n)) for n in (0, 1)]
    difference = weights @ (wins[:, 0, 1] - wins[:, 1, 0]) / len(layout.human)
    assert_allclose(difference, values[0] - values[1], atol=1e-12)


def test_pair_test_is_binomial():
    rng = np.random.default_rng(14)
    human = rng.normal(size=(4, 30))
    metrics = np.stack([human + rng.normal(size=(4, 30)) * s for s in (0.5, 2.0)])
    layout = make_layout(human, metrics, "item")
    p = accuracy_pair_test(layout, rng=np.random.default_rng(0))
    wins = count_wins(layout)[0][0]
    test = stats.binomtest(int(wins[0, 1]), int(wins[0, 1] + wins[1, 0]), alternative="greater")
    assert_allclose(p[0, 1], test.pvalue)
    assert p[0, 1] < 0.05
    with pytest.raises(DataError, match="no pair"):
        accuracy_pair_test(make_layout([[1.0, 2]], [[[1.0, 2]]], "item"), rng=rng)


def test_sign_flips_equal_full_enumeration():
    errors = np.array([[0.1, 0.2, 0.05, 0.3], [0.3, 0.25, 0.1, 0.2]])
    difference = errors[1] - errors[0]
    sums = [np.dot(s, difference) for s in product([-1, 1], repeat=4)]
    expected = np.mean([s >= difference.sum() - 1e-9 for s in sums])
    p = sign_flip_p_values(errors, resamples=20_000, rng=np.random.default_rng(0))
    assert_allclose(p[0, 1], expected, atol=0.01)
    assert p[0, 0] == 1.0


def test_bootstrap_p_values_and_interval():
    drawn = np.array([[0.5, 0.4, np.nan], [0.6, 0.7, 0.1], [0.4, 0.3, 0.2], [0.8, 0.8, np.nan]])
    p = bootstrap_p_values(drawn)
    assert p[0, 1] == (1 + 2) / 5  # not better in the second and in the (tied) last sample
    assert p[1, 0] == (1 + 3) / 5
    assert p[0, 2] == 1 / 3  # of the two samples in which both are defined; never 0
    low, high = percentile_interval(drawn, 0.5)
    assert_allclose([low[2], high[2]], [0.125, 0.175])
    assert np.isnan(percentile_interval(np.full((3, 1), np.nan))[0]).all()
    with pytest.raises(UsageError, match="between 0 and 1"):
        percentile_interval(drawn, 95)


def test_ranks_by_hand():
    values = np.array([0.1, 0.9, 0.8, np.nan, 0.7])
    p = np.ones((5, 5))
    p[1, 4] = p[1, 0] = p[2, 0] = 0.01  # the best beats the third, which is level with the second
    # Order 1, 2, 4, 0: metric 4 is beaten by metric 1 and opens rank 2; 0 is not beaten by 4.
    assert assign_ranks(values, p) == [2, 1, 1, None, 2]
    assert assign_ranks(np.array([np.nan]), np.ones((1, 1))) == [None]
    assert assign_ranks(np.array([0.2, np.nan, 0.3]), np.full((3, 3), np.nan)) == [2, None, 1]
