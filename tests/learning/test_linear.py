"""The regression: equal to scikit-learn's ridge, chooses its strength on held-out groups."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import Ridge

from tertium.errors import DataError, LengthError
from tertium.learning.linear import (
    FARTHEST,
    LinearModel,
    choose_strength,
    fit,
    held_out_strength,
)


def data(n: int = 80, k: int = 6, noise: float = 0.1) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(3)
    features = rng.normal(size=(n, k)) * [1, 10, 0.1, 1, 1, 1] + 5
    weights = np.array([1.0, 0.05, -3.0, 0.0, 0.0, 0.5])
    return features, features @ weights + noise * rng.normal(size=n)


def test_it_is_ridge_regression_on_standardised_features() -> None:
    features, targets = data()
    model = fit("abcdef", features, targets, strengths=(0.3,))
    z = (features - features.mean(axis=0)) / features.std(axis=0)
    peer = Ridge(alpha=0.3 * len(targets)).fit(z, targets)
    np.testing.assert_allclose(model.weights, peer.coef_, rtol=1e-9)
    np.testing.assert_allclose(model.predict(features), peer.predict(z), rtol=1e-9)


def test_contributions_sum_to_the_prediction() -> None:
    features, targets = data()
    model = fit("abcdef", features, targets)
    total = model.contributions(features).sum(axis=1) + model.bias
    np.testing.assert_allclose(total, model.predict(features))


def test_coefficients_are_named_strongest_first() -> None:
    model = fit("abcdef", *data(noise=0.01))
    names = list(model.coefficients)
    assert set(names[:2]) == {"a", "b"} or set(names[:3]) == {"a", "b", "f"}
    assert abs(model.coefficients["d"]) < 0.02


def test_more_noise_asks_for_more_strength() -> None:
    rng = np.random.default_rng(1)
    features = rng.normal(size=(60, 50))
    signal = features[:, 0]
    clean = choose_strength(features, signal, strengths=(1e-6, 10.0))
    noisy = choose_strength(features, signal + 5 * rng.normal(size=60), strengths=(1e-6, 10.0))
    assert (clean, noisy) == (1e-6, 10.0)


def test_groups_are_held_out_together() -> None:
    # Within a group the feature leaks the target, across groups it says the opposite.
    rng = np.random.default_rng(2)
    groups = [g for g in "abc" for _ in range(20)]
    own = np.array([{"a": 1.0, "b": 0.0, "c": -1.0}[g] for g in groups])
    features = np.column_stack([own, rng.normal(size=60)])
    strength = choose_strength(features, own + 0.1 * features[:, 1], groups, (0.01, 100.0))
    assert strength in (0.01, 100.0)
    assert held_out_strength(features[:40], own[:40], features[40:], own[40:], (0.5,)) == 0.5


def test_a_constant_feature_and_an_outlier_do_no_harm() -> None:
    features, targets = data()
    features[:, 3] = 7.0
    model = fit("abcdef", features, targets)
    assert np.isfinite(model.weights).all()
    wild = features[:1].copy()
    wild[0, 0] = 1e9
    bound = FARTHEST * np.abs(model.weights).sum() + abs(model.bias)
    assert abs(model.predict(wild)[0]) <= bound


def test_arrays_rebuild_the_model() -> None:
    model = fit("abcdef", *data())
    again = LinearModel.from_arrays(model.names, model.arrays)
    assert again.digest == model.digest
    assert fit("abcdef", *data(noise=0.2)).digest != model.digest


def test_what_cannot_be_learned_from_is_refused() -> None:
    features, targets = data()
    with pytest.raises(LengthError, match="names"):
        fit("abc", features, targets)
    with pytest.raises(DataError, match="too few"):
        fit("abcdef", features[:4], targets[:4])
    targets[3] = np.nan
    with pytest.raises(DataError, match="missing"):
        fit("abcdef", features, targets)
    with pytest.raises(LengthError, match="coefficients"):
        fit("abcdef", *data()).predict(features[:, :2])
