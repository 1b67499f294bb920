"""Regularised linear regression with named coefficients, its strength chosen by cross validation.

    minimise  |y - b - Z w|^2 / n  +  strength sum_i (m_i / f_i) w_i^2,      w_i s_i >= 0

Z are the standardised features. Ridge keeps correlated features (n-gram orders, two directions)
together instead of picking one. f_i is the share of rows in which feature i differs from its
median: a feature that is seen rarely has to earn its weight. m_i is the size of its family over the
mean size: a metric with one component counts as much as one with fifty. s_i is what is known of its
sign (+1, -1, or 0 for nothing), so that a fault never counts as a merit since it comes with one. A
single family of measures that always vary is plain ridge. The strength is the one whose predictions
of held-out groups (languages, where there are several) correlate best with people.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from tertium.arrays import FloatArray
from tertium.errors import DataError, LengthError
from tertium.models.examples import pearson

STRENGTHS: tuple[float, ...] = (0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0)
FOLDS = 5  # of judgments whose groups are too few to leave one out
PATIENCE = 3  # rounds of pivoting by blocks without progress
ROUNDS = 10_000  # pivoting ends long before; without a bound, rounding could make it cycle
TINY = 1e-12  # a weight this far below zero is rounding, not a wrong sign
FARTHEST = 6.0  # standard deviations a feature may count from its mean


@dataclass(frozen=True, kw_only=True)
class Prior:
    """What is known of features beforehand; empty for nothing.

    `signs` (k,) say of each weight that it must not be negative (1) or positive (-1), or nothing
    (0); `families` (k,) name what each feature is a component of.
    """

    signs: tuple[int, ...] = ()
    families: tuple[str, ...] = ()


NOTHING_KNOWN = Prior()


@dataclass(frozen=True, eq=False, kw_only=True)
class LinearModel:
    """A fitted regression.

    `mean`, `scale` and `weights` (features,) belong to `names`; a prediction is
    bias + weights . z with z = (x - mean) / scale, cut at `FARTHEST` either way, so that a feature
    far outside what was seen in training cannot carry the score away. `least` is the lowest human
    score of training, where a scale for readers ends.
    """

    names: tuple[str, ...]
    mean: FloatArray
    scale: FloatArray
    weights: FloatArray
    bias: float
    strength: float
    least: float

    def contributions(self, features: FloatArray) -> FloatArray:
        """What each feature adds to the prediction, (n, features)."""
        if features.shape[-1] != len(self.names):
            raise LengthError(f"{features.shape[-1]} features for {len(self.names)} coefficients")
        z = np.clip((features - self.mean) / self.scale, -FARTHEST, FARTHEST)
        result: FloatArray = z * self.weights
        return result

    def predict(self, features: FloatArray) -> FloatArray:
        """The predictions, (n,); a row's does not depend on the others to the last bit."""
        parts = self.contributions(features)
        return np.array([self.bias + math.fsum(row) for row in parts.tolist()], dtype=np.float64)

    @property
    def coefficients(self) -> dict[str, float]:
        """The weight of each standardised feature, the strongest first."""
        order = np.argsort(-np.abs(self.weights), kind="stable")
        return {self.names[i]: float(self.weights[i]) for i in order}

    @property
    def arrays(self) -> Mapping[str, FloatArray]:
        """All numbers, for storage."""
        numbers = np.array([self.bias, self.strength, self.least])
        return {"mean": self.mean, "scale": self.scale, "weights": self.weights, "numbers": numbers}

    @classmethod
    def from_arrays(cls, names: Sequence[str], arrays: Mapping[str, FloatArray]) -> LinearModel:
        """The model `arrays` came from."""
        bias, strength, least = arrays["numbers"].tolist()
        return cls(
            names=tuple(names),
            mean=arrays["mean"],
            scale=arrays["scale"],
            weights=arrays["weights"],
            bias=bias,
            strength=strength,
            least=least,
        )

    @property
    def digest(self) -> str:
        """A short name for what was learned; `least` comes with the data it was learned from."""
        summary = hashlib.sha256("\n".join(self.names).encode())
        learned = {**self.arrays, "numbers": np.array([self.bias, self.strength])}
        for array in learned.values():
            summary.update(np.ascontiguousarray(array, dtype=np.float64).tobytes())
        return summary.hexdigest()[:12]


def fit(
    names: Sequence[str],
    features: FloatArray,
    targets: FloatArray,
    groups: Sequence[str] = (),
    strengths: Sequence[float] = STRENGTHS,
    prior: Prior = NOTHING_KNOWN,
    held: tuple[FloatArray, FloatArray] | None = None,
) -> LinearModel:
    """The regression of targets (n,) on features (n, k), its strength chosen on held-out groups.

    Where `held` features and targets are given, it is chosen on these.

    >>> x = np.arange(12.0)[:, None]
    >>> model = fit(["x"], x, 2 * x[:, 0] + 1)
    >>> model.predict(np.array([[4.0]])).round(1), list(model.coefficients)
    (array([9.]), ['x'])
    """
    _check(names, features, targets)
    strength = choose_strength(features, targets, groups, strengths, prior, held)
    mean, scale = _standards(features)
    weights = _solve(features, targets, [strength], prior)[0]
    return LinearModel(
        names=tuple(names),
        mean=mean,
        scale=scale,
        weights=weights,
        bias=float(targets.mean()),
        strength=strength,
        least=float(targets.min()),
    )


def choose_strength(
    features: FloatArray,
    targets: FloatArray,
    groups: Sequence[str] = (),
    strengths: Sequence[float] = STRENGTHS,
    prior: Prior = NOTHING_KNOWN,
    held: tuple[FloatArray, FloatArray] | None = None,
) -> float:
    """The strength whose predictions of held-out rows agree best with their targets: of `held`
    ones, or of each group from the others."""
    if len(strengths) == 1:
        return strengths[0]
    if held is not None:
        return strengths[int(np.argmax(_qualities(features, targets, *held, strengths, prior)))]
    folds = _folds(len(targets), groups)
    quality = np.zeros(len(strengths))
    for fold in np.unique(folds):
        inside = folds != fold
        quality += _qualities(
            features[inside], targets[inside], features[~inside], targets[~inside], strengths, prior
        )
    return strengths[int(np.argmax(quality))]


def _qualities(
    features: FloatArray,
    targets: FloatArray,
    held: FloatArray,
    held_targets: FloatArray,
    strengths: Sequence[float],
    prior: Prior,
) -> FloatArray:
    """The correlation with held-out targets under each strength, (strengths,)."""
    mean, scale = _standards(features)
    fitted = _solve(features, targets, strengths, prior)
    z = np.clip((held - mean) / scale, -FARTHEST, FARTHEST)
    return np.array([pearson(z @ weights, held_targets) for weights in fitted])


def _folds(size: int, groups: Sequence[str]) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """Groups as folds where there are at least three, else blocks in the order of the data."""
    if len(set(groups)) > 2:
        return np.unique(np.asarray(groups), return_inverse=True)[1].astype(np.int64)
    return (np.arange(size) * FOLDS // size).astype(np.int64)


def _solve(
    features: FloatArray, targets: FloatArray, strengths: Sequence[float], prior: Prior
) -> list[FloatArray]:
    """The weights of the standardised features for each strength, from one Z'Z."""
    mean, scale = _standards(features)
    z = (features - mean) / scale
    products, moments = z.T @ z / len(z), z.T @ (targets - targets.mean()) / len(z)
    penalty = np.diag(crowding(prior.families) / deviating_share(features))
    signs = np.array(prior.signs or (0,) * len(moments), dtype=np.float64)
    return [minimise(products + strength * penalty, moments, signs) for strength in strengths]


def crowding(families: Sequence[str]) -> FloatArray:
    """The size of each feature's family over the mean size of families, (k,).

    >>> crowding(["ter", "ter", "ter", "meteor"]).tolist()
    [1.5, 1.5, 1.5, 0.5]
    """
    if not families:
        return np.ones(1)
    _, place, sizes = np.unique(np.asarray(families), return_inverse=True, return_counts=True)
    crowded: FloatArray = sizes[place] / sizes.mean()
    return crowded


def deviating_share(features: FloatArray) -> FloatArray:
    """The share of rows in which each feature differs from its median, at least one, (k,).

    >>> deviating_share(np.array([[0.0, 1.0], [0.0, 2.0], [0.0, 3.0], [5.0, 4.0]]))
    array([0.25, 1.  ])
    """
    shares: FloatArray = (features != np.median(features, axis=0)).mean(axis=0)
    return np.maximum(shares, 1.0 / len(features))


def minimise(products: FloatArray, moments: FloatArray, signs: FloatArray) -> FloatArray:
    """The w of least w'Aw / 2 - b'w with w_i s_i >= 0, A (k, k) positive definite, b and s (k,).

    Block principal pivoting (Kim and Park 2011): guess which weights are zero, solve for the rest,
    exchange all that have the wrong sign or the wrong gradient; one at a time where that circles.

    >>> minimise(np.eye(3), np.array([1.0, -1.0, -1.0]), np.array([1.0, 1.0, 0.0]))
    array([ 1.,  0., -1.])
    """
    flip = np.where(signs == 0, 1.0, signs)
    a, b = products * flip[:, None] * flip, moments * flip
    free = np.ones(len(b), dtype=bool)
    fewest, patience = len(b) + 1, PATIENCE
    weights = np.zeros(len(b))
    for _ in range(ROUNDS):
        weights = np.zeros(len(b))
        weights[free] = np.linalg.solve(a[np.ix_(free, free)], b[free])
        wrong = (signs != 0) & (np.where(free, weights, a @ weights - b) < -TINY)
        count = int(wrong.sum())
        if not count:
            break
        patience = PATIENCE if count < fewest else patience - 1
        fewest = min(fewest, count)
        if patience < 0:
            wrong = np.arange(len(b)) == np.flatnonzero(wrong)[-1]
        free ^= wrong
    return np.asarray(weights * flip + 0.0)


def _standards(features: FloatArray) -> tuple[FloatArray, FloatArray]:
    scale = features.std(axis=0)  # a constant column, whose rounding is no scale, counts as it is
    return features.mean(axis=0), np.where(scale > 1e-9, scale, 1.0)


def _check(names: Sequence[str], features: FloatArray, targets: FloatArray) -> None:
    if features.shape != (len(targets), len(names)):
        raise LengthError(
            f"features of shape {features.shape} for {len(targets)} targets and {len(names)} names"
        )
    if len(targets) < 2 * FOLDS:
        raise DataError(f"{len(targets)} judgments are too few to learn from: give {2 * FOLDS}")
    if not np.isfinite(targets).all():
        raise DataError("a human score is missing or infinite: leave such rows out of training")
