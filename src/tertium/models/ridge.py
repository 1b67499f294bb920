"""Ridge regression with named coefficients, sign constraints and cross-validated strength.

    minimize  |y - b - Z w|^2 / n  +  strength sum_i (m_i / f_i) w_i^2,      w_i s_i >= 0

Z are the standardized features. Ridge distributes weight over correlated features (n-gram orders,
two directions) instead of picking one. A `Prior` may set the rest:

- f_i is the share of rows in which feature i differs from its median: rare features are penalized
  more.
- m_i is the size of the feature's family divided by the mean family size: a metric with one
  component counts as much as one with fifty.
- s_i is the required sign (+1, -1, or 0 for any): an error feature never raises the score because
  it correlates with a positive one.

Without a prior, m_i = f_i = 1 and s_i = 0: plain ridge regression. The strength maximizes the
correlation with human scores on held-out groups (languages, if there are several).
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from tertium.core.arrays import FloatArray, IntArray
from tertium.core.errors import DataError
from tertium.core.resampling import FOLDS
from tertium.models.training_examples import pearson

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
    a = products * flip[:, None] * flip
    b = moments * flip
    free = np.ones(len(b), dtype=bool)
    fewest = len(b) + 1
    patience = BLOCK_PATIENCE
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


STRENGTHS: tuple[float, ...] = (0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0)
MAX_Z_SCORE = 6.0


@dataclass(frozen=True, kw_only=True)
class Prior:
    """Prior knowledge about features; the default, no prior, gives plain ridge regression.

    `signs` (k,) is 1 for a weight that must not be negative, -1 for one that must not be positive
    and 0 for any. `families` (k,) names the metric or group each feature is a component of.
    `penalize_rare` divides the penalty of a feature by the share of rows in which it varies.
    """

    signs: tuple[int, ...] = ()
    families: tuple[str, ...] = ()
    penalize_rare: bool = False


NO_PRIOR = Prior()


@dataclass(frozen=True, eq=False, kw_only=True)
class LinearModel:
    """A fitted regression.

    `mean`, `scale` and `weights` (features,) belong to `names`. The prediction is bias + weights .
    z with z = (x - mean) / scale, clipped at `MAX_Z_SCORE`, so that a feature far outside the
    training range cannot dominate the score. `min_target` is the lowest human score in training.
    """

    names: tuple[str, ...]
    mean: FloatArray
    scale: FloatArray
    weights: FloatArray
    bias: float
    strength: float
    min_target: float

    def standardize(self, features: FloatArray) -> FloatArray:
        """Compute z, (n, features)."""
        return np.clip((features - self.mean) / self.scale, -MAX_Z_SCORE, MAX_Z_SCORE)

    def contributions(self, features: FloatArray) -> FloatArray:
        """Compute the contribution of each feature to the prediction, (n, features)."""
        return self.standardize(features) * self.weights

    def predict(self, features: FloatArray) -> FloatArray:
        """Predict scores, (n,); each row is independent of the others to the last bit."""
        parts = self.contributions(features)
        return np.array([self.bias + math.fsum(row) for row in parts.tolist()], dtype=np.float64)

    @property
    def coefficients(self) -> dict[str, float]:
        """Weight of each standardized feature, largest magnitude first."""
        order = np.argsort(-np.abs(self.weights), kind="stable")
        return {self.names[i]: float(self.weights[i]) for i in order}

    @property
    def arrays(self) -> Mapping[str, FloatArray]:
        """All numbers, for storage."""
        numbers = np.array([self.bias, self.strength, self.min_target])
        return {"mean": self.mean, "scale": self.scale, "weights": self.weights, "numbers": numbers}

    @classmethod
    def from_arrays(cls, names: Sequence[str], arrays: Mapping[str, FloatArray]) -> LinearModel:
        """Restore a model from its `arrays`."""
        bias, strength, min_target = arrays["numbers"].tolist()
        return cls(
            names=tuple(names),
            mean=arrays["mean"],
            scale=arrays["scale"],
            weights=arrays["weights"],
            bias=bias,
            strength=strength,
            min_target=min_target,
        )

    @property
    def digest(self) -> str:
        """Hash of the learned numbers, without `min_target`, which depends on the data only."""
        summary = hashlib.sha256("\n".join(self.names).encode())
        learned = {**self.arrays, "numbers": np.array([self.bias, self.strength])}
        for array in learned.values():
            summary.update(np.ascontiguousarray(array, dtype=np.float64).tobytes())
        return summary.hexdigest()[:12]


def fit_ridge(
    names: Sequence[str],
    features: FloatArray,
    targets: FloatArray,
    groups: Sequence[str] = (),
    strengths: Sequence[float] = STRENGTHS,
    prior: Prior = NO_PRIOR,
    dev: tuple[FloatArray, FloatArray] | None = None,
) -> LinearModel:
    """Fit targets (n,) on features (n, k); choose the strength on held-out groups.

    If `dev` features and targets are given, choose it on these.

    >>> x = np.arange(12.0)[:, None]
    >>> model = fit_ridge(["x"], x, 2 * x[:, 0] + 1)
    >>> model.predict(np.array([[4.0]])).round(1), list(model.coefficients)
    (array([9.]), ['x'])
    """
    if len(targets) < 2 * FOLDS:
        raise DataError(
            f"{len(targets)} judgments are too few to train on: give at least {2 * FOLDS}"
        )
    strength = choose_strength(features, targets, groups, strengths, prior, dev)
    [model] = _fit_models(names, features, targets, [strength], prior)
    return model


def choose_strength(
    features: FloatArray,
    targets: FloatArray,
    groups: Sequence[str] = (),
    strengths: Sequence[float] = STRENGTHS,
    prior: Prior = NO_PRIOR,
    dev: tuple[FloatArray, FloatArray] | None = None,
) -> float:
    """Choose the strength with the highest correlation on `dev`, or on each held-out group."""
    if len(strengths) == 1:
        return strengths[0]
    splits = [(features, targets, *dev)] if dev is not None else []
    if dev is None:
        folds = _assign_folds(len(targets), groups)
        for fold in np.unique(folds):
            train = folds != fold
            held_out = folds == fold
            held_out_rows = features[held_out], targets[held_out]
            splits.append((features[train], targets[train], *held_out_rows))
    correlations = np.zeros(len(strengths))
    for x, y, dev_x, dev_y in splits:
        models = _fit_models((), x, y, strengths, prior)
        correlations += [
            pearson(model.standardize(dev_x) @ model.weights, dev_y) for model in models
        ]
    return strengths[int(np.argmax(correlations))]


def _assign_folds(size: int, groups: Sequence[str]) -> IntArray:
    """Use groups as folds if there are several, else consecutive blocks of rows."""
    if len(set(groups)) > 1:
        return np.unique(np.asarray(groups), return_inverse=True)[1]
    return np.arange(size) * FOLDS // size


def _fit_models(
    names: Sequence[str],
    features: FloatArray,
    targets: FloatArray,
    strengths: Sequence[float],
    prior: Prior,
) -> list[LinearModel]:
    """Fit the standardized features with each strength, from one Z'Z."""
    mean = features.mean(axis=0)
    scale = features.std(axis=0)
    scale = np.where(scale > 1e-9, scale, 1.0)  # that of a constant column may be a rounding error
    z = (features - mean) / scale
    products = z.T @ z / len(z)
    moments = z.T @ (targets - targets.mean()) / len(z)
    penalty = relative_family_sizes(prior.families) * np.ones(len(moments))
    if prior.penalize_rare:
        penalty = penalty / non_median_shares(features)
    signs = np.array(prior.signs or (0,) * len(moments), dtype=np.float64)
    return [
        LinearModel(
            names=tuple(names),
            mean=mean,
            scale=scale,
            weights=minimize_quadratic(products + strength * np.diag(penalty), moments, signs),
            bias=float(targets.mean()),
            strength=strength,
            min_target=float(targets.min()),
        )
        for strength in strengths
    ]


def relative_family_sizes(families: Sequence[str]) -> FloatArray:
    """Divide the size of each feature's family by the mean family size, (k,).

    >>> relative_family_sizes(["ter", "ter", "ter", "meteor"]).tolist()
    [1.5, 1.5, 1.5, 0.5]
    """
    if not families:
        return np.ones(1)
    _, index, sizes = np.unique(np.asarray(families), return_inverse=True, return_counts=True)
    ratios: FloatArray = sizes[index] / sizes.mean()
    return ratios


def non_median_shares(features: FloatArray) -> FloatArray:
    """Compute the share of rows in which each feature differs from its median, at least 1/n, (k,).

    >>> non_median_shares(np.array([[0.0, 1.0], [0.0, 2.0], [0.0, 3.0], [5.0, 4.0]]))
    array([0.25, 1.  ])
    """
    shares: FloatArray = (features != np.median(features, axis=0)).mean(axis=0)
    return np.maximum(shares, 1.0 / len(features))
