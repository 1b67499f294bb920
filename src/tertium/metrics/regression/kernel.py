"""Support vector regression with an RBF kernel, and its grid search over one distance matrix.

    K_ij = exp(-gamma |x_i - x_j|^2)        y(x) = sum_i a_i K(x_i, x) + b

All settings and folds of a search differ in gamma, C, epsilon and rows only: the squared distances,
which cost (n^2 d), are computed once, a kernel once for each gamma and fold. The solver is libsvm
as scikit-learn brings it; what was learned is arrays, and predicting needs numpy alone. Predictions
are made of exact distances (`tertium.arrays`) and kernels added up row by row, so that none depends
on the rows beside it.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np

from tertium.arrays import FloatArray, IntArray, on_grid
from tertium.errors import DataError, UsageError
from tertium.registry import explain_missing
from tertium.runtime import task

VALUES = (0.01, 0.1, 1.0, 10.0)
ROWS = 512  # of a distance matrix that are predicted from at once


@dataclass(frozen=True, kw_only=True)
class Setting:
    """What a search chooses: the penalty `c`, the tube `epsilon`, the kernel's `gamma`."""

    c: float
    epsilon: float
    gamma: float


@dataclass(frozen=True, kw_only=True)
class Grid:
    """The settings to try; the defaults are those of Shimanaka et al. (2018), 64 in all."""

    c: tuple[float, ...] = VALUES
    epsilon: tuple[float, ...] = VALUES
    gamma: tuple[float, ...] = VALUES

    def __len__(self) -> int:
        return len(self.c) * len(self.epsilon) * len(self.gamma)

    def __iter__(self) -> Iterator[Setting]:
        for gamma, c, epsilon in itertools.product(self.gamma, self.c, self.epsilon):
            yield Setting(c=c, epsilon=epsilon, gamma=gamma)


@dataclass(frozen=True, kw_only=True, eq=False)
class Solution:
    """What libsvm found: rows that are support vectors, their coefficients, the intercept."""

    rows: IntArray
    coefficients: FloatArray
    intercept: float

    def predict(self, kernel: FloatArray) -> FloatArray:
        """Values from kernels with all training rows, (n, training rows) -> (n,)."""
        values: FloatArray = kernel[:, self.rows] @ self.coefficients + self.intercept
        return values


def squared_lengths(rows: FloatArray) -> FloatArray:
    """|r_i|^2, (n, d) -> (n,)."""
    lengths: FloatArray = (np.asarray(rows, np.float64) ** 2).sum(axis=1)
    return lengths


def squared_distances(
    left: FloatArray, right: FloatArray, lengths: FloatArray | None = None
) -> FloatArray:
    """|l_i - r_j|^2, (n, d), (m, d) -> (n, m), given the squared lengths of r where known.

    >>> squared_distances(np.array([[0.0, 0.0]]), np.array([[3.0, 4.0]]))
    array([[25.]])
    """
    left, right = np.asarray(left, np.float64), np.asarray(right, np.float64)
    result: FloatArray = left @ right.T
    result *= -2.0
    result += squared_lengths(left)[:, None]
    result += squared_lengths(right) if lengths is None else lengths
    return np.maximum(result, 0.0, out=result)


def search(
    distances: FloatArray,
    targets: FloatArray,
    *,
    grid: Grid = Grid(),  # noqa: B008
    folds: int = 10,
    threads: int = 2,
) -> list[tuple[Setting, float]]:
    """Cross-validate every setting, the best first; `distances` (n, n) are squared, `targets` (n,).

    Folds are consecutive rows, as scikit-learn's are, so shuffle before; the score of a setting is
    the mean of R^2 over folds whose targets differ, and of equal ones the earlier wins. A grid of
    one setting has nothing to choose: its score is NaN.
    """
    if len(grid) == 1:
        return [(next(iter(grid)), math.nan)]
    if not 2 <= folds <= len(targets):
        raise UsageError(f"{folds} folds of {len(targets)} judgements: expected 2 to as many")
    parts = np.array_split(np.arange(len(targets)), folds)
    tasks = list(itertools.product(grid.gamma, range(folds)))
    scores: dict[Setting, list[float]] = {setting: [] for setting in grid}
    with ThreadPoolExecutor(threads) as pool, task("searching", total=len(tasks)) as advance:
        found = pool.map(lambda t: _fold(distances, targets, grid, t[0], parts[t[1]]), tasks)
        for values in found:
            for setting, value in values:
                scores[setting].append(value)
            advance(1)
    if np.isnan(list(scores.values())).all():
        raise DataError("the human scores of every fold are all equal: use fewer folds")
    means = [(setting, float(np.nanmean(values))) for setting, values in scores.items()]
    return sorted(means, key=lambda item: -item[1])


def _fold(
    distances: FloatArray, targets: FloatArray, grid: Grid, gamma: float, held: IntArray
) -> list[tuple[Setting, float]]:
    """R^2 on one fold of all settings that share a gamma."""
    train = np.setdiff1d(np.arange(len(targets)), held)
    kernel = rbf(distances[np.ix_(train, train)], gamma)
    against = rbf(distances[np.ix_(held, train)], gamma)
    result = []
    for c, epsilon in itertools.product(grid.c, grid.epsilon):
        setting = Setting(c=c, epsilon=epsilon, gamma=gamma)
        predicted = solve(kernel, targets[train], setting).predict(against)
        result.append((setting, r_squared(predicted, targets[held])))
    return result


def solve(kernel: FloatArray, targets: FloatArray, setting: Setting) -> Solution:
    """Fit one setting to a kernel matrix (n, n) and targets (n,)."""
    why = "training a support vector regression"
    with explain_missing(why, hint="scoring with a trained one does not"):
        from sklearn.svm import SVR
    size = 4 * len(targets) ** 2 / 1e6 + 50  # megabytes: the whole matrix in single precision
    machine = SVR(kernel="precomputed", C=setting.c, epsilon=setting.epsilon, cache_size=size)
    machine.fit(kernel, targets)
    return Solution(
        rows=machine.support_.astype(np.int64),
        coefficients=machine.dual_coef_[0].astype(np.float64),
        intercept=float(machine.intercept_[0]),
    )


def rbf(distances: FloatArray, gamma: float) -> FloatArray:
    """exp(-gamma D) of squared distances, in a new array.

    >>> rbf(np.array([[0.0, 1.0]]), 0.5).round(4)
    array([[1.    , 0.6065]])
    """
    kernel: FloatArray = np.exp(-gamma * distances)
    return kernel


def predict(
    features: FloatArray,
    vectors: FloatArray,
    lengths: FloatArray,
    coefficients: FloatArray,
    intercept: float,
    gamma: float,
) -> FloatArray:
    """Scores of new rows (n, d) by support vectors on the grid (s, d).

    Their squared lengths and coefficients are (s,).
    """
    result = np.full(len(features), intercept, dtype=np.float64)
    for start in range(0, len(features), ROWS):
        part = squared_distances(on_grid(features[start : start + ROWS]), vectors, lengths)
        result[start : start + ROWS] += (rbf(part, gamma) * coefficients).sum(axis=1)
    return result


def r_squared(predicted: FloatArray, targets: FloatArray) -> float:
    """1 - sum (y - y^)^2 / sum (y - mean y)^2; NaN where all targets are equal.

    >>> r_squared(np.array([1.0, 2.0]), np.array([1.0, 2.0]))
    1.0
    """
    spread = float(((targets - targets.mean()) ** 2).sum())
    return math.nan if spread == 0 else 1.0 - float(((targets - predicted) ** 2).sum()) / spread


def match_vectors(left: FloatArray, right: FloatArray) -> FloatArray:
    """[l; r; l*r; |l-r|] of sentence vectors, (n, d) each -> (n, 4d).

    >>> match_vectors(np.array([[1.0]]), np.array([[3.0]]))
    array([[1., 3., 3., 2.]])
    """
    return np.hstack([left, right, left * right, np.abs(left - right)])
