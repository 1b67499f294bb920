"""Support vector regression with a Gaussian kernel, and the search of its settings.

    K_ij = exp(-gamma |x_i - x_j|^2)        y(x) = sum_i a_i K(x_i, x) + b

The settings and folds of a grid search share the squared distances, which cost O(n^2 d) and are
computed once, and the kernel of each gamma. The solver and the search are those of scikit-learn.
Predictions use exact distances (`tertium.core.arrays`), so that none depends on the other rows.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tertium.core.arrays import FloatArray, IntArray, round_to_grid
from tertium.core.extras import explain_missing
from tertium.core.resampling import make_folds
from tertium.core.runtime import progress_task, usable_cores

PREDICTION_ROWS = 512  # rows of the distance matrix computed at once


def squared_lengths(rows: FloatArray) -> FloatArray:
    """Compute |r_i|^2, (n, d) -> (n,)."""
    lengths: FloatArray = (np.asarray(rows, np.float64) ** 2).sum(axis=1)
    return lengths


def squared_distances(
    left: FloatArray, right: FloatArray, lengths: FloatArray | None = None
) -> FloatArray:
    """Compute |l_i - r_j|^2, (n, d), (m, d) -> (n, m); `lengths` are the squared norms of r."""
    left, right = np.asarray(left, np.float64), np.asarray(right, np.float64)
    result: FloatArray = left @ right.T
    result *= -2.0
    result += squared_lengths(left)[:, None]
    result += squared_lengths(right) if lengths is None else lengths
    return np.maximum(result, 0.0, out=result)


def make_machine(rows: int, **settings: float) -> Any:
    """Return an untrained regression of scikit-learn on a kernel of so many rows."""
    purpose = "training a support vector regression"
    with explain_missing(purpose, hint="scoring with a trained one does not"):
        from sklearn.svm import SVR
    size = 4 * rows**2 / 1e6 + 50  # megabytes: the kernel in single precision
    return SVR(kernel="precomputed", cache_size=size, **settings)


def search_grid(
    distances: FloatArray,
    targets: FloatArray,
    groups: IntArray,
    grid: Mapping[str, Sequence[float]],
    folds: int,
) -> list[tuple[dict[str, float], float]]:
    """Cross-validate all settings of `c`, `epsilon` and `gamma`, best first.

    `distances` (n, n) are squared. Rows with the same number in `groups` (n,) are in the same fold.
    The score is the mean R^2 over folds; of equal scores the earlier setting wins. The score of a
    grid with one setting is NaN.
    """
    if all(len(values) == 1 for values in grid.values()):
        return [({name: values[0] for name, values in grid.items()}, math.nan)]
    machine = make_machine(len(targets))
    from joblib import parallel_config
    from sklearn.model_selection import GridSearchCV

    rows = np.arange(len(targets))
    splits = [(np.setdiff1d(rows, fold), fold) for fold in make_folds(groups, folds)]
    values = {"C": grid["c"], "epsilon": grid["epsilon"]}
    search = GridSearchCV(machine, values, cv=splits, refit=False)
    results: list[tuple[dict[str, float], float]] = []
    with (
        progress_task("searching", total=len(grid["gamma"])) as advance,
        parallel_config("threading", n_jobs=usable_cores()),
    ):
        for gamma in grid["gamma"]:
            table = search.fit(rbf_kernel(distances, gamma), targets).cv_results_
            for setting, score in zip(table["params"], table["mean_test_score"], strict=True):
                chosen = {"c": setting["C"], "epsilon": setting["epsilon"], "gamma": gamma}
                results.append((chosen, float(score)))
            advance(1)
    return sorted(results, key=lambda result: -result[1])


def rbf_kernel(distances: FloatArray, gamma: float) -> FloatArray:
    """Compute exp(-gamma D) of squared distances D."""
    return np.exp(-gamma * distances)


def predict(
    features: FloatArray,
    vectors: FloatArray,
    lengths: FloatArray,
    coefficients: FloatArray,
    intercept: float,
    gamma: float,
) -> FloatArray:
    """Predict scores of rows (n, d) from support vectors (s, d), norms and coefficients (s,)."""
    result = np.full(len(features), intercept, dtype=np.float64)
    for start in range(0, len(features), PREDICTION_ROWS):
        block = slice(start, start + PREDICTION_ROWS)
        distances = squared_distances(round_to_grid(features[block]), vectors, lengths)
        result[block] += (rbf_kernel(distances, gamma) * coefficients).sum(axis=1)
    return result
