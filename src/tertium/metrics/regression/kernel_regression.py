"""Support vector regression with a Gaussian kernel, and the search of its settings.

    K_ij = exp(-gamma |x_i - x_j|^2)        y(x) = sum_i a_i K(x_i, x) + b

The settings and folds of a grid search share the squared distances, which cost O(n^2 d) and are
computed once. A kernel is computed once for each gamma and fold. The solver is libsvm through
scikit-learn. Predictions use exact distances (`tertium.core.arrays`), so that none depends on the
other rows.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from threading import Event

import numpy as np

from tertium.core.arrays import FloatArray, IntArray, round_to_grid
from tertium.core.errors import DataError
from tertium.core.extras import explain_missing
from tertium.core.resampling import make_folds
from tertium.core.runtime import progress_task

DEFAULT_VALUES = (0.01, 0.1, 1.0, 10.0)
PREDICTION_ROWS = 512  # rows of the distance matrix computed at once


@dataclass(frozen=True, kw_only=True)
class Hyperparameters:
    """Values chosen by the search: penalty `c`, tube width `epsilon`, kernel parameter `gamma`."""

    c: float
    epsilon: float
    gamma: float


@dataclass(frozen=True, kw_only=True)
class Grid:
    """Values to search; the defaults are the 64 settings of Shimanaka et al. (2018)."""

    c: tuple[float, ...] = DEFAULT_VALUES
    epsilon: tuple[float, ...] = DEFAULT_VALUES
    gamma: tuple[float, ...] = DEFAULT_VALUES

    def __len__(self) -> int:
        return len(self.c) * len(self.epsilon) * len(self.gamma)

    def __iter__(self) -> Iterator[Hyperparameters]:
        for gamma, c, epsilon in itertools.product(self.gamma, self.c, self.epsilon):
            yield Hyperparameters(c=c, epsilon=epsilon, gamma=gamma)


@dataclass(frozen=True, kw_only=True, eq=False)
class SVRSolution:
    """A libsvm solution: indices of the support vectors, their coefficients, the intercept."""

    rows: IntArray
    coefficients: FloatArray
    intercept: float

    def predict(self, kernel: FloatArray) -> FloatArray:
        """Predict from kernel values with all training rows, (n, training rows) -> (n,)."""
        return kernel[:, self.rows] @ self.coefficients + self.intercept


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


def search_grid(
    distances: FloatArray,
    targets: FloatArray,
    *,
    groups: IntArray | None = None,
    grid: Grid = Grid(),  # noqa: B008
    folds: int = 10,
    threads: int = 2,
) -> list[tuple[Hyperparameters, float]]:
    """Cross-validate every setting, best first; `distances` (n, n) are squared, `targets` (n,).

    Rows with the same number in `groups` (n,) are in the same fold; without groups, folds are
    consecutive rows, as in scikit-learn, so shuffle the rows first. The score of a setting is the
    mean R^2 over folds whose targets differ; of equal scores the earlier setting wins. The score of
    a grid with one setting is NaN.
    """
    if len(grid) == 1:
        return [(next(iter(grid)), math.nan)]
    fold_rows = make_folds(np.arange(len(targets)) if groups is None else groups, folds)
    tasks = list(itertools.product(grid.gamma, range(folds)))
    scores: dict[Hyperparameters, list[float]] = {setting: [] for setting in grid}
    stopped = Event()
    with (
        ThreadPoolExecutor(threads) as pool,
        progress_task("searching", total=len(tasks)) as advance,
    ):
        results = pool.map(
            lambda t: _score_fold(distances, targets, grid, t[0], fold_rows[t[1]], stopped), tasks
        )
        try:
            for values in results:
                for setting, value in values:
                    scores[setting].append(value)
                advance(1)
        finally:  # after Ctrl-C, leaving the pool would wait for all settings
            stopped.set()
    if np.isnan(list(scores.values())).all():
        raise DataError("the human scores in every fold are all equal: use fewer folds")
    means = [(setting, float(np.nanmean(values))) for setting, values in scores.items()]
    return sorted(means, key=lambda item: -item[1])


def _score_fold(
    distances: FloatArray,
    targets: FloatArray,
    grid: Grid,
    gamma: float,
    held_out: IntArray,
    stopped: Event,
) -> list[tuple[Hyperparameters, float]]:
    """Compute R^2 on one fold for all settings with the same gamma, until it is stopped."""
    if stopped.is_set():
        return []
    train = np.setdiff1d(np.arange(len(targets)), held_out)
    kernel = rbf_kernel(distances[np.ix_(train, train)], gamma)
    held_out_kernel = rbf_kernel(distances[np.ix_(held_out, train)], gamma)
    result: list[tuple[Hyperparameters, float]] = []
    for c, epsilon in itertools.product(grid.c, grid.epsilon):
        if stopped.is_set():
            return result
        setting = Hyperparameters(c=c, epsilon=epsilon, gamma=gamma)
        predicted = fit_svr(kernel, targets[train], setting).predict(held_out_kernel)
        result.append((setting, r_squared(predicted, targets[held_out])))
    return result


def fit_svr(kernel: FloatArray, targets: FloatArray, setting: Hyperparameters) -> SVRSolution:
    """Fit one setting to a kernel matrix (n, n) and targets (n,)."""
    purpose = "training a support vector regression"
    with explain_missing(purpose, hint="scoring with a trained one does not"):
        from sklearn.svm import SVR
    size = 4 * len(targets) ** 2 / 1e6 + 50  # megabytes: the kernel in single precision
    machine = SVR(kernel="precomputed", C=setting.c, epsilon=setting.epsilon, cache_size=size)
    machine.fit(kernel, targets)
    return SVRSolution(
        rows=machine.support_.astype(np.int64),
        coefficients=machine.dual_coef_[0].astype(np.float64),
        intercept=float(machine.intercept_[0]),
    )


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


def r_squared(predicted: FloatArray, targets: FloatArray) -> float:
    """Compute 1 - sum (y - y^)^2 / sum (y - mean y)^2; NaN if all targets are equal."""
    spread = float(((targets - targets.mean()) ** 2).sum())
    return math.nan if spread == 0 else 1.0 - float(((targets - predicted) ** 2).sum()) / spread
