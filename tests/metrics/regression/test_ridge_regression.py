"""Ridge regression: equal to scikit-learn's, with sign constraints and chosen strength."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import nnls
from sklearn.linear_model import Ridge

from tertium.core.errors import DataError
from tertium.models.ridge import (
    MAX_Z_SCORE,
    Prior,
    choose_strength,
    fit_ridge,
    minimize_quadratic,
    non_median_shares,
)


def make_data(n: int = 80, k: int = 6, noise: float = 0.1) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(3)
    features = rng.normal(size=(n, k)) * [1, 10, 0.1, 1, 1, 1] + 5
    weights = np.array([1.0, 0.05, -3.0, 0.0, 0.0, 0.5])
    return features, features @ weights + noise * rng.normal(size=n)


def test_equals_ridge_regression_on_standardized_features() -> None:
    features, targets = make_data()
    model = fit_ridge("abcdef", features, targets, strengths=(0.3,))
    z = (features - features.mean(axis=0)) / features.std(axis=0)
    peer = Ridge(alpha=0.3 * len(targets)).fit(z, targets)
    np.testing.assert_allclose(model.weights, peer.coef_, rtol=1e-9)
    np.testing.assert_allclose(model.predict(features), peer.predict(z), rtol=1e-9)


@pytest.mark.parametrize("seed", range(8))
def test_sign_constraints_equal_non_negative_least_squares(seed: int) -> None:
    # Expected: scipy's non-negative least squares, free columns split into two.
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(60, 4)) @ rng.normal(size=(4, 30)) + 0.1 * rng.normal(size=(60, 30))
    y, signs = rng.normal(size=60), rng.integers(-1, 2, size=30).astype(float)
    products, moments = x.T @ x + 0.1 * np.eye(30), x.T @ y
    weights = minimize_quadratic(products, moments, signs)
    root = np.linalg.cholesky(products).T
    free = signs == 0
    columns = np.hstack([root * np.where(free, 1.0, signs), -root[:, free]])
    split = nnls(columns, np.linalg.solve(root.T, moments))[0]
    expected = split[:30] * np.where(free, 1.0, signs)
    expected[free] -= split[30:]
    np.testing.assert_allclose(weights, expected, atol=1e-9)
    assert (weights * signs >= 0).all()
    assert (weights[~free] == 0).any()


def make_rare_data() -> tuple[np.ndarray, np.ndarray]:
    """One feature that always varies, and one that differs from its median in 4 of 200 rows."""
    rare = np.zeros(200)
    rare[:4] = 1.0
    features = np.column_stack([np.random.default_rng(4).normal(size=200), rare])
    return features, (features - features.mean(axis=0)) / features.std(axis=0)


def test_rare_features_are_penalized_more() -> None:
    features, z = make_rare_data()
    np.testing.assert_allclose(non_median_shares(features), [1.0, 0.02])
    prior = Prior(penalize_rare=True)
    model = fit_ridge("ab", features, z @ [1.0, 1.0], strengths=(0.1,), prior=prior)
    shrunk = z.T @ z / 200 + 0.1 * np.diag([1.0, 50.0])
    expected = np.linalg.solve(shrunk, z.T @ z @ [1.0, 1.0] / 200)
    np.testing.assert_allclose(model.weights, expected)
    assert model.coefficients["a"] > 4 * model.coefficients["b"] > 0


def test_small_and_large_families_have_equal_influence() -> None:
    # Two equally good features, one of them repeated ten times.
    one, other = np.tile([1.0, -1.0, 1.0, -1.0], 10), np.tile([1.0, 1.0, -1.0, -1.0], 10)
    features = np.column_stack([one, *[other] * 10])
    names = [f"x{n}" for n in range(11)]
    prior = Prior(families=("one", *["other"] * 10))
    plain = fit_ridge(names, features, one + other, strengths=(0.5,)).weights
    fair = fit_ridge(names, features, one + other, strengths=(0.5,), prior=prior).weights
    np.testing.assert_allclose([plain[0], plain[1:].sum()], [1 / 1.5, 1 / 1.05])
    np.testing.assert_allclose([fair[0], fair[1:].sum()], 1 / (1 + 0.5 / 5.5))


def test_strength_is_chosen_on_dev_data() -> None:
    rng = np.random.default_rng(4)
    features = rng.normal(size=(60, 12))
    targets = features[:, 0] + 2 * rng.normal(size=60)
    train, dev = (features[:30], targets[:30]), (features[30:], targets[30:])
    names = [f"f{n}" for n in range(12)]

    def correlation(strength: float) -> float:
        predicted = fit_ridge(names, *train, strengths=(strength,)).predict(dev[0])
        return float(np.corrcoef(predicted, dev[1])[0, 1])

    strengths = (1e-6, 0.3, 30.0)
    assert choose_strength(*train, strengths=strengths, dev=dev) == max(strengths, key=correlation)
    assert choose_strength(*train, strengths=(0.5,), dev=dev) == 0.5


def test_constant_features_and_outliers_are_harmless() -> None:
    features, targets = make_data()
    features[:, 3] = 7.0
    model = fit_ridge("abcdef", features, targets)
    assert np.isfinite(model.weights).all()
    outlier = features[:1].copy()
    outlier[0, 0] = 1e9
    bound = MAX_Z_SCORE * np.abs(model.weights).sum() + abs(model.bias)
    assert abs(model.predict(outlier)[0]) <= bound


def test_few_judgments_are_rejected() -> None:
    features, targets = make_data()
    with pytest.raises(DataError, match="too few"):
        fit_ridge("abcdef", features[:4], targets[:4])
