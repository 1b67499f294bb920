"""Thresholds with a promised precision."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binomtest, ks_2samp

from tertium.core.resampling import make_rng
from tertium.decide.route import (
    find_threshold,
    intraclass_correlation,
    measure_drift,
    min_rows,
    precision_bounds,
    stored_quantiles,
)


def find(scores, labels, target, alpha, repeats=1):
    clusters = [str(n // repeats) for n in range(len(scores))]
    return find_threshold(scores, labels, clusters, target, alpha, total=len(scores))


@pytest.mark.parametrize(("right", "rows"), [(0, 10), (45, 50), (50, 50)])
def test_bounds_are_those_of_an_exact_test(right, rows):
    expected = binomtest(right, rows).proportion_ci(0.9, method="exact")  # 5 % on each side
    low, high = precision_bounds(np.array([float(right)]), np.array([float(rows)]), 0.05)
    assert (low[0], high[0]) == pytest.approx((expected.low, expected.high))


def test_reachable_and_unreachable_targets():
    assert min_rows(0.95, 0.05) == 59  # 0.95^59 = 0.0485
    assert min_rows(0.99, 0.05) == 299
    rng = make_rng(2)
    chosen, best = find(rng.standard_normal(300), rng.random(300) < 0.5, 0.95, 0.05)
    assert chosen is None
    assert best.low < 0.6


def true_precision(threshold: float) -> float:
    """The share of right rows above a threshold, for the rows of `draw`."""
    grid = np.linspace(max(threshold, -4), 4, 2001)
    density = np.exp(-(grid**2) / 2)
    return float((density / (1 + np.exp(-1.2 - 1.3 * grid))).sum() / density.sum())


def test_a_promise_is_broken_as_rarely_as_stated():
    rng, broken, chosen, draws = make_rng(3), 0, 0, 150
    for _ in range(draws):
        scores = rng.standard_normal(400)
        labels = rng.random(400) < 1 / (1 + np.exp(-1.2 - 1.3 * scores))
        found = find(scores, labels, 0.85, 0.1)[0]
        chosen += found is not None
        broken += found is not None and true_precision(found.score) < 0.85
    assert chosen > draws / 2  # otherwise the test says nothing
    assert broken <= 0.1 * draws


def test_clusters_shrink_the_number_of_rows():
    rng = make_rng(5)
    scores, labels = rng.standard_normal(300), rng.random(300) < 0.95
    separate = find(scores, labels, 0.8, 0.05)[0]
    # each row repeated: the same evidence, not three times as much
    repeated = find(np.repeat(scores, 3), np.repeat(labels, 3), 0.8, 0.05, repeats=3)[0]
    assert repeated.effective_rows == pytest.approx(repeated.rows / 3, rel=0.01)
    assert repeated.low == pytest.approx(separate.low, abs=0.02)
    labels = make_rng(1).random(2000) < 0.5
    assert intraclass_correlation(labels, [str(n // 4) for n in range(2000)]) < 0.05


def test_drift_is_the_statistic_of_scipy():
    rng = make_rng(4)
    old, new = rng.standard_normal(400), rng.standard_normal(300) + 0.5
    drift = measure_drift(stored_quantiles(old), new)
    expected = ks_2samp(old, new, method="asymp")
    assert drift["distance"] == pytest.approx(expected.statistic)
    assert drift["p_value"] == pytest.approx(expected.pvalue, rel=0.5)
    scores = make_rng(1).standard_normal(5000)
    stored = stored_quantiles(scores)
    assert len(stored) == 501
    assert measure_drift(stored, scores)["distance"] < 0.005
