"""The search over shared distances gives what scikit-learn's own search gives."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from tertium.arrays import on_grid
from tertium.errors import DataError, MissingResourceError, UsageError
from tertium.metrics.regression.svr import (
    Grid,
    Setting,
    match_vectors,
    predict,
    rbf,
    search,
    solve,
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
    found = squared_distances(x[:7], x)
    for i, j in itertools.product(range(7), range(60)):
        assert found[i, j] == pytest.approx(((x[i] - x[j]) ** 2).sum(), abs=1e-12)
    assert (found >= 0).all()


def test_the_search_equals_grid_search_cv(data: tuple[np.ndarray, np.ndarray]) -> None:
    from sklearn.model_selection import GridSearchCV
    from sklearn.svm import SVR

    x, y = data
    grid = Grid(c=(0.1, 1.0, 10.0), epsilon=(0.01, 0.1), gamma=(0.01, 0.1, 1.0))
    found = search(squared_distances(x, x), y, grid=grid, folds=5)
    plain = GridSearchCV(
        SVR(kernel="rbf"),
        {"C": list(grid.c), "epsilon": list(grid.epsilon), "gamma": list(grid.gamma)},
        cv=5,
    ).fit(x, y)
    expected = {
        (p["C"], p["epsilon"], p["gamma"]): s
        for p, s in zip(
            plain.cv_results_["params"], plain.cv_results_["mean_test_score"], strict=True
        )
    }
    assert len(found) == len(expected) == 18
    for setting, value in found:
        key = (setting.c, setting.epsilon, setting.gamma)
        assert value == pytest.approx(expected[key], abs=3e-4)  # libsvm stops within 1e-3
    best = found[0][0]
    assert plain.best_params_ == {"C": best.c, "epsilon": best.epsilon, "gamma": best.gamma}


def test_predictions_equal_scikit_learns(data: tuple[np.ndarray, np.ndarray]) -> None:
    from sklearn.svm import SVR

    x, y = data
    setting = Setting(c=1.0, epsilon=0.1, gamma=0.3)
    found = solve(rbf(squared_distances(x[:40], x[:40]), 0.3), y[:40], setting)
    vectors = on_grid(x[:40][found.rows])
    said = found.coefficients, found.intercept, 0.3
    ours = predict(x[40:], vectors, squared_lengths(vectors), *said)
    plain = SVR(kernel="rbf", C=1.0, epsilon=0.1, gamma=0.3).fit(x[:40], y[:40])
    np.testing.assert_allclose(ours, plain.predict(x[40:]), atol=1e-6)
    assert len(found.rows) < 40  # only support vectors are kept


def test_threads_change_nothing(data: tuple[np.ndarray, np.ndarray]) -> None:
    x, y = data
    grid, distances = Grid(c=(1.0,), gamma=(0.1, 1.0)), squared_distances(x, x)
    assert search(distances, y, grid=grid, threads=1) == search(distances, y, grid=grid, threads=3)


def test_the_published_grid() -> None:
    assert len(Grid()) == len(list(Grid())) == 64
    assert {s.gamma for s in Grid()} == {0.01, 0.1, 1.0, 10.0}


def test_folds_that_cannot_be(data: tuple[np.ndarray, np.ndarray]) -> None:
    x, y = data
    distances = squared_distances(x, x)
    with pytest.raises(UsageError, match="61 folds of 60"):
        search(distances, y, folds=61)
    with pytest.raises(DataError, match="all equal"):
        search(distances, np.repeat([1.0, 2.0], 30), folds=2)


def test_without_scikit_learn_training_says_what_to_install(
    data: tuple[np.ndarray, np.ndarray], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(__import__("sys").modules, "sklearn.svm", None)
    x, y = data
    with pytest.raises(MissingResourceError, match=r"tertium\[learn\]"):
        solve(squared_distances(x, x), y, Setting(c=1, epsilon=0.1, gamma=1))


def test_matching() -> None:
    left, right = np.array([[1.0, -2.0]]), np.array([[3.0, 4.0]])
    assert match_vectors(left, right).tolist() == [[1, -2, 3, 4, 3, -8, 2, 6]]
