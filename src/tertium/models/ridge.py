"""Ridge regression: the weights for several penalties, with sign constraints."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tertium.core.arrays import FloatArray

BLOCK_PATIENCE = 3  # rounds of block pivoting without progress
MAX_PIVOT_ROUNDS = 10_000  # a bound, in case rounding errors cause a cycle
SIGN_TOLERANCE = 1e-12  # smaller violations of a sign are rounding errors


def fit_ridge_weights(x: FloatArray, y: FloatArray, penalties: Sequence[float]) -> list[FloatArray]:
    """Minimize |y - x w|^2 / n + p |w|^2 for each penalty p, x (n, k) and y (n,) centered.

    With more columns than rows, the equations are solved for the rows.

    >>> x, y = np.array([[-1.0], [1.0]]), np.array([-2.0, 2.0])
    >>> fit_ridge_weights(x, y, [0.0, 1.0])
    [array([2.]), array([1.])]
    """
    is_wide = len(x) <= x.shape[1]
    gram = (x @ x.T if is_wide else x.T @ x) / len(x)
    goal = (y if is_wide else x.T @ y) / len(x)
    results = []
    for penalty in penalties:
        solution = np.linalg.solve(gram + penalty * np.eye(len(gram)), goal)
        results.append(np.asarray(x.T @ solution if is_wide else solution, dtype=np.float64))
    return results


def minimize_quadratic(products: FloatArray, moments: FloatArray, signs: FloatArray) -> FloatArray:
    """Minimize w'Aw / 2 - b'w subject to w_i s_i >= 0, A (k, k) positive definite, b and s (k,).

    Block principal pivoting (Kim and Park 2011): guess which weights are zero, solve for the rest,
    and exchange all weights with the wrong sign or gradient. If that makes no progress, exchange
    one at a time.

    >>> minimize_quadratic(np.eye(3), np.array([1.0, -1.0, -1.0]), np.array([1.0, 1.0, 0.0]))
    array([ 1.,  0., -1.])
    """
    flip = np.where(signs == 0, 1.0, signs)
    a, b = products * flip[:, None] * flip, moments * flip
    free = np.ones(len(b), dtype=bool)
    fewest, patience = len(b) + 1, BLOCK_PATIENCE
    weights = np.zeros(len(b))
    for _ in range(MAX_PIVOT_ROUNDS):
        weights = np.zeros(len(b))
        weights[free] = np.linalg.solve(a[np.ix_(free, free)], b[free])
        wrong = (signs != 0) & (np.where(free, weights, a @ weights - b) < -SIGN_TOLERANCE)
        count = int(wrong.sum())
        if not count:
            break
        patience = BLOCK_PATIENCE if count < fewest else patience - 1
        fewest = min(fewest, count)
        if patience < 0:
            wrong = np.arange(len(b)) == np.flatnonzero(wrong)[-1]
        free ^= wrong
    return np.asarray(weights * flip + 0.0)
