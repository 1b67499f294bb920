"""SVR: distances, grid search and predictions agree with scikit-learn."""

from __future__ import annotations

import numpy as np
import pytest

from tertium.core.arrays import round_to_grid
from tertium.core.errors import MissingResourceError, UsageError
from tertium.core.resampling import make_folds
from tertium.core.segment import Judgment, Segment
from tertium.metrics.regression.svr import (
    SVR,
    SVROptions,
    build_features,
    make_machine,
    predict,
    rbf_kernel,
    search_grid,
    squared_distances,
    squared_lengths,
)

GRID = {"c": (1.0,), "epsilon": (0.1,), "gamma": (0.1, 1.0)}


@pytest.fixture(scope="module")
def data() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(60, 6))
    return x, np.sin(x[:, 0]) + 0.3 * x[:, 1] + 0.1 * rng.normal(size=60)


def test_search_equals_grid_search_cv(data: tuple[np.ndarray, np.ndarray]) -> None:
    from sklearn import svm
    from sklearn.model_selection import GridSearchCV

    x, y = data
    grid = {"c": (0.1, 1.0, 10.0), "epsilon": (0.01, 0.1), "gamma": (0.01, 0.1, 1.0)}
    groups = np.arange(60) // 3
    results = search_grid(squared_distances(x, x), y, groups, grid, 5)
    folds = make_folds(groups, 5)
    peer = GridSearchCV(
        svm.SVR(kernel="rbf"),
        {"C": grid["c"], **{name: grid[name] for name in ("epsilon", "gamma")}},
        cv=[(np.setdiff1d(np.arange(60), held_out), held_out) for held_out in folds],
    ).fit(x, y)
    table = peer.cv_results_
    settings = [tuple(params.values()) for params in table["params"]]  # C, epsilon, gamma
    expected = dict(zip(settings, table["mean_test_score"], strict=True))
    found = {tuple(setting.values()): value for setting, value in results}
    assert found == pytest.approx(expected, abs=3e-4)  # libsvm stops within 1e-3
    assert next(iter(found)) == tuple(peer.best_params_.values())


def test_predictions_equal_scikit_learns(data: tuple[np.ndarray, np.ndarray]) -> None:
    from sklearn import svm

    x, y = data
    machine = make_machine(40, C=1.0, epsilon=0.1)
    machine.fit(rbf_kernel(squared_distances(x[:40], x[:40]), 0.3), y[:40])
    vectors = round_to_grid(x[:40][machine.support_])
    learned = machine.dual_coef_[0], float(machine.intercept_[0]), 0.3
    predicted = predict(x[40:], vectors, squared_lengths(vectors), *learned)
    peer = svm.SVR(kernel="rbf", C=1.0, epsilon=0.1, gamma=0.3).fit(x[:40], y[:40])
    np.testing.assert_allclose(predicted, peer.predict(x[40:]), atol=1e-6)
    assert len(machine.support_) < 40  # only support vectors


def test_folds_hold_out_whole_segments_and_have_similar_sizes() -> None:
    groups = np.random.default_rng(2).integers(0, 40, size=203)
    folds = make_folds(groups, 7)
    assert np.array_equal(np.sort(np.concatenate(folds)), np.arange(203))
    assert {len(fold) for fold in folds} <= {28, 29, 30}
    for fold in folds:
        assert not set(groups[fold]) & set(np.delete(groups, fold))


def test_search_does_not_reward_recognizing_segments() -> None:
    """Human scores that depend on the segment only: R^2 over rows was .99, here it is below 0."""
    judgments = [
        Judgment(Segment(f"{noun} sat", f"Quelle {noun}", (f"{noun} sat {verb}",)), float(n))
        for n, noun in enumerate(("mouse", "house", "river", "cloud", "table", "chair"))
        for verb in ("down", "up", "there", "alone", "again", "quietly")
    ]
    trained = SVR.train(judgments, encoders=("toy",), options=SVROptions(folds=3, gamma=(0.1, 1.0)))
    assert trained.checkpoint.training["search"][0][1] < 0


def test_invalid_folds_are_rejected(data: tuple[np.ndarray, np.ndarray]) -> None:
    x, y = data
    distances = squared_distances(x, x)
    with pytest.raises(UsageError, match=r"folds=61 with 60 segments .*: expected 2"):
        search_grid(distances, y, np.arange(60), GRID, 61)
    with pytest.raises(UsageError, match=r"with 1 segments .*: give more segments"):
        search_grid(distances, y, np.zeros(60, dtype=np.int64), GRID, 2)


def test_training_without_scikit_learn_shows_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(__import__("sys").modules, "sklearn.svm", None)
    with pytest.raises(MissingResourceError, match=r"tertium\[learn\]"):
        make_machine(60)


def test_features_of_two_vectors() -> None:
    vectors = np.array([[[1.0, -2.0], [3.0, 4.0]]])
    assert build_features(vectors).tolist() == [[1, -2, 3, 4, 3, -8, 2, 6]]
