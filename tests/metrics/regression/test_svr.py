"""SVR: distances, grid search and predictions agree with scikit-learn."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from tertium.arrays import round_to_grid
from tertium.errors import DataError, MissingResourceError, UsageError
from tertium.metrics.regression.svr import (
    Grid,
    Hyperparameters,
    fit_svr,
    match_vectors,
    predict,
    rbf_kernel,
    search_grid,
    squared_distances,
    squared_lengths,
)


@pytest.fixture(scope="module")
def data() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(60, 6))
    return x, np.sin(x[:, 0]) + 0.3 * x[:, 1] + 0.1 * rng.normal(size=60)


def test_distances_equal_a_loop(data: tuple[np.ndarray, np.ndarray]) -> None:
    x, _ = data
    distances = squared_distances(x[:7], x)
    for i, j in itertools.product(range(7), range(60)):
        assert distances[i, j] == pytest.approx(((x[i] - x[j]) ** 2).sum(), abs=1e-12)
    assert (distances >= 0).all()


def test_search_equals_grid_search_cv(data: tuple[np.ndarray, np.ndarray]) -> None:
    from sklearn.model_selection import GridSearchCV
    from sklearn.svm import SVR

    x, y = data
    grid = Grid(c=(0.1, 1.0, 10.0), epsilon=(0.01, 0.1), gamma=(0.01, 0.1, 1.0))
    results = search_grid(squared_distances(x, x), y, grid=grid, folds=5)
    peer = GridSearchCV(
        SVR(kernel="rbf"),
        {"C": list(grid.c), "epsilon": list(grid.epsilon), "gamma": list(grid.gamma)},
        cv=5,
    ).fit(x, y)
    expected = {
        (p["C"], p["epsilon"], p["gamma"]): s
        for p, s in zip(
            peer.cv_results_["params"], peer.cv_results_["mean_test_score"], strict=True
        )
    }
    assert len(results) == len(expected) == 18
    for setting, value in results:
        key = (setting.c, setting.epsilon, setting.gamma)
        assert value == pytest.approx(expected[key], abs=3e-4)  # libsvm stops within 1e-3
    best = results[0][0]
    assert peer.best_params_ == {"C": best.c, "epsilon": best.epsilon, "gamma": best.gamma}


def test_predictions_equal_scikit_learns(data: tuple[np.ndarray, np.ndarray]) -> None:
    from sklearn.svm import SVR

    x, y = data
    setting = Hyperparameters(c=1.0, epsilon=0.1, gamma=0.3)
    solution = fit_svr(rbf_kernel(squared_distances(x[:40], x[:40]), 0.3), y[:40], setting)
    vectors = round_to_grid(x[:40][solution.rows])
    learned = solution.coefficients, solution.intercept, 0.3
    predicted = predict(x[40:], vectors, squared_lengths(vectors), *learned)
    peer = SVR(kernel="rbf", C=1.0, epsilon=0.1, gamma=0.3).fit(x[:40], y[:40])
    np.testing.assert_allclose(predicted, peer.predict(x[40:]), atol=1e-6)
    assert len(solution.rows) < 40  # only support vectors


def test_number_of_threads_does_not_change_results(data: tuple[np.ndarray, np.ndarray]) -> None:
    x, y = data
    grid, distances = Grid(c=(1.0,), gamma=(0.1, 1.0)), squared_distances(x, x)
    one, three = (search_grid(distances, y, grid=grid, threads=n) for n in (1, 3))
    assert one == three


def test_default_grid_is_the_published_one() -> None:
    assert len(Grid()) == len(list(Grid())) == 64
    assert {s.gamma for s in Grid()} == {0.01, 0.1, 1.0, 10.0}


def test_invalid_folds_are_rejected(data: tuple[np.ndarray, np.ndarray]) -> None:
    x, y = data
    distances = squared_distances(x, x)
    with pytest.raises(UsageError, match="folds=61 with 60 judgments"):
        search_grid(distances, y, folds=61)
    with pytest.raises(DataError, match="all equal"):
        search_grid(distances, np.repeat([1.0, 2.0], 30), folds=2)


def test_training_without_scikit_learn_shows_what_to_install(
    data: tuple[np.ndarray, np.ndarray], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(__import__("sys").modules, "sklearn.svm", None)
    x, y = data
    with pytest.raises(MissingResourceError, match=r"tertium\[learn\]"):
        fit_svr(squared_distances(x, x), y, Hyperparameters(c=1, epsilon=0.1, gamma=1))


def test_match_vectors() -> None:
    left, right = np.array([[1.0, -2.0]]), np.array([[3.0, 4.0]])
    assert match_vectors(left, right).tolist() == [[1, -2, 3, 4, 3, -8, 2, 6]]
