"""A replicate under weights is the statistic of the sample that the weights describe."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

from tertium.core.errors import DataError
from tertium.meta import acc_eq, kendall_b, pearson, spearman
from tertium.meta.accuracy import accuracy_replicate
from tertium.meta.replicates import (
    bootstrap,
    grouped_replicate,
    kendall_b_replicate,
    means_replicate,
    pair_matrix_replicate,
    pearson_replicate,
    quadratic_form,
    spearman_replicate,
    sums_replicate,
)

PAIRED = [
    (pearson_replicate, pearson),
    (spearman_replicate, spearman),
    (kendall_b_replicate, kendall_b),
]


@pytest.fixture
def scored():
    """Human scores and three metrics with ties and missing values, 4 systems x 12 segments."""
    rng = np.random.default_rng(11)
    human = rng.integers(0, 6, (4, 12)).astype(float)
    metrics = human + rng.integers(-3, 4, (3, 4, 12))
    human[rng.random(human.shape) < 0.2] = np.nan
    metrics[0][rng.random(human.shape) < 0.2] = np.nan
    return human, metrics


@pytest.mark.parametrize(("form", "statistic"), PAIRED)
def test_weights_give_the_statistic_of_the_sample(form, statistic, scored):
    human, metrics = scored
    weights = np.random.default_rng(2).multinomial(12, [1 / 12] * 12, size=5).astype(float)
    weights[0] = 1.0
    values = form(human, metrics)(weights)
    for row, value in zip(weights.astype(int), values, strict=True):
        drawn = np.repeat(np.arange(12), row)
        assert_allclose(value, statistic(human[:, drawn], metrics[:, :, drawn]).value)


def test_pooled_accuracy_weighs_pairs_of_distinct_cells(scored):
    human, metrics = scored
    epsilon = np.array([0.0, 1.0, 2.0])
    replicate = accuracy_replicate(human, metrics, epsilon)
    for n, e in enumerate(epsilon):
        expected = acc_eq(human, metrics[n], grouping="none", epsilon=e)
        assert_allclose(replicate(np.ones((1, 12)))[0, n], float(expected))
    # Weight 0 removes a segment.
    weights = np.ones((1, 12))
    weights[0, 3] = 0
    left = np.delete(human, 3, axis=1), np.delete(metrics, 3, axis=2)
    expected = acc_eq(left[0], left[1][1], grouping="none", epsilon=1.0)
    assert_allclose(replicate(weights)[0, 1], float(expected))


def test_pearson_of_scores_far_from_zero_keeps_its_digits():
    rng = np.random.default_rng(4)
    human = rng.normal(size=(1, 50))
    metrics = (human + rng.normal(size=(1, 50)))[None] + 1e6
    value = pearson_replicate(human, metrics)(np.ones((1, 50)))[0, 0]
    assert_allclose(value, float(pearson(human, metrics[0] - 1e6)), rtol=1e-6)


@pytest.mark.parametrize("form", [pearson_replicate, spearman_replicate, kendall_b_replicate])
def test_samples_of_one_unit_and_metrics_without_scores_are_undefined(form):
    human, metrics = np.array([[1.0, 2.1, 3.3]]), np.array([[[1.0, 2.1, 3.3]], [[np.nan] * 3]])
    values = form(human, metrics)(np.array([[3.0, 0, 0], [1, 1, 1]]))
    assert_allclose(values, [[np.nan, np.nan], [1, np.nan]])


def test_no_correlation_of_a_sample_is_beyond_one():
    """Rounding must not exceed 1."""
    rng = np.random.default_rng(5)
    human = rng.normal(size=(1, 40))
    metrics = np.stack([3 * human + 7, -human / 7, human**3])
    drawn = rng.multinomial(40, [1 / 40] * 40, size=500).astype(float)
    for form in (pearson_replicate, spearman_replicate, kendall_b_replicate):
        assert np.abs(form(human, metrics)(drawn)).max() == 1.0


def test_sums_values_and_averages():
    counts = np.array([[[1.0, 2], [3, 4]]])  # one metric, two units
    share = sums_replicate(counts, lambda sums: sums[..., 0] / sums[..., 1])
    assert_allclose(share(np.array([[1.0, 1], [2, 0]])), [[4 / 6], [0.5]])
    mean = means_replicate(np.array([[0.2, np.nan, 0.8]]))
    assert_allclose(mean(np.array([[1.0, 5, 2], [0, 1, 0]])), [[1.8 / 3], [np.nan]])
    parts = iter([share, means_replicate(np.array([[np.nan, 1.0]]))])
    human, scores = np.zeros((2, 2)), np.zeros((1, 2, 2))
    both = grouped_replicate(human, scores, "system", lambda *_: next(parts), scores[0])
    assert_allclose(both(np.array([[1.0, 1], [2, 0]])), [[(4 / 6 + 1) / 2], [0.5]])


def test_quadratic_forms_in_blocks(monkeypatch):
    rng = np.random.default_rng(6)
    matrix = rng.integers(-1, 2, (9, 9)).astype(float)
    weights = rng.integers(0, 4, (3, 9)).astype(float)
    expected = np.einsum("di,ij,dj->d", weights, matrix, weights)
    monkeypatch.setattr("tertium.core.arrays.BLOCK_NUMBERS", 20)
    assert_allclose(quadratic_form(lambda rows: matrix[rows].astype(np.float32), weights), expected)
    eligible = np.ones((1, 9, 9)) - np.eye(9)
    value = pair_matrix_replicate(np.abs(matrix)[None] * eligible, eligible)(np.ones((1, 9)))
    assert_allclose(value, (np.abs(matrix) * eligible[0]).sum() / 72)


def test_bootstrap_is_deterministic_and_blocks_do_not_change_it(scored, monkeypatch):
    human, metrics = scored
    replicate = pearson_replicate(human, metrics)
    first = bootstrap(replicate, [12], resamples=40, rng=np.random.default_rng(1))
    assert first.shape == (40, 3)
    monkeypatch.setattr("tertium.core.arrays.BLOCK_NUMBERS", 12 * 7)
    again = bootstrap(replicate, [12], resamples=40, rng=np.random.default_rng(1))
    assert_allclose(first, again)
    assert len(np.unique(first[:, 1])) > 30


def test_strata_are_resampled_separately():
    draws = []

    def note(weights):
        draws.append(weights)
        return weights[:, :1]

    bootstrap(note, [3, 5], resamples=20, rng=np.random.default_rng(0))
    assert (draws[0][:, :3].sum(axis=1) == 3).all()
    assert (draws[0][:, 3:].sum(axis=1) == 5).all()


def test_bootstrap_spread_is_that_of_theory():
    # The standard error of a mean of n values is their deviation over sqrt(n).
    values = np.random.default_rng(3).normal(size=(1, 400))
    drawn = bootstrap(means_replicate(values), [400], resamples=2000, rng=np.random.default_rng(5))
    assert drawn.std() == pytest.approx(values.std() / 20, rel=0.1)
    with pytest.raises(DataError, match="at least one judged unit"):
        bootstrap(means_replicate(np.ones((1, 0))), [0], resamples=3, rng=np.random.default_rng(0))
