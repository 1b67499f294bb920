"""Regularised linear regression with named coefficients, its strength chosen by cross validation.

    minimise  |y - b - Z w|^2 / n  +  strength |w|^2,      Z the standardised features

Ridge keeps correlated features (n-gram orders, two directions) together instead of picking one.
The strength is the one whose predictions of held-out groups (languages, where there are several)
correlate best with people.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from tertium.errors import DataError, LengthError
from tertium.scores import FloatArray

STRENGTHS: tuple[float, ...] = (0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0)
FOLDS = 5
FARTHEST = 6.0  # standard deviations a feature may count from its mean


@dataclass(frozen=True, eq=False, kw_only=True)
class LinearModel:
    """A fitted regression.

    `mean`, `scale` and `weights` (features,) belong to `names`; a prediction is
    bias + weights . z with z = (x - mean) / scale, cut at `FARTHEST` either way, so that a feature
    far outside what was seen in training cannot carry the score away.
    """

    names: tuple[str, ...]
    mean: FloatArray
    scale: FloatArray
    weights: FloatArray
    bias: float
    strength: float

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
        numbers = np.array([self.bias, self.strength])
        return {
            "mean": self.mean, "scale": self.scale, "weights": self.weights, "numbers": numbers,
        }  # fmt: skip

    @classmethod
    def from_arrays(cls, names: Sequence[str], arrays: Mapping[str, FloatArray]) -> LinearModel:
        """The model `arrays` came from."""
        bias, strength = arrays["numbers"].tolist()
        return cls(
            names=tuple(names), mean=arrays["mean"], scale=arrays["scale"],
            weights=arrays["weights"], bias=bias, strength=strength,
        )  # fmt: skip

    @property
    def digest(self) -> str:
        """A short name for these very numbers."""
        summary = hashlib.sha256("\n".join(self.names).encode())
        for array in self.arrays.values():
            summary.update(np.ascontiguousarray(array, dtype=np.float64).tobytes())
        return summary.hexdigest()[:12]


def fit(
    names: Sequence[str],
    features: FloatArray,
    targets: FloatArray,
    groups: Sequence[str] = (),
    strengths: Sequence[float] = STRENGTHS,
) -> LinearModel:
    """The regression of targets (n,) on features (n, k), its strength chosen on held-out groups.

    >>> x = np.arange(12.0)[:, None]
    >>> model = fit(["x"], x, 2 * x[:, 0] + 1)
    >>> model.predict(np.array([[4.0]])).round(1), list(model.coefficients)
    (array([9.]), ['x'])
    """
    _check(names, features, targets)
    strength = choose_strength(features, targets, groups, strengths)
    mean, scale = _standards(features)
    weights = _solve((features - mean) / scale, targets - targets.mean(), [strength])[0]
    return LinearModel(
        names=tuple(names), mean=mean, scale=scale, weights=weights,
        bias=float(targets.mean()), strength=strength,
    )  # fmt: skip


def choose_strength(
    features: FloatArray,
    targets: FloatArray,
    groups: Sequence[str] = (),
    strengths: Sequence[float] = STRENGTHS,
) -> float:
    """The strength whose predictions of each group from the others agree best with its targets."""
    if len(strengths) == 1:
        return strengths[0]
    folds = _folds(len(targets), groups)
    quality = np.zeros(len(strengths))
    for fold in np.unique(folds):
        inside = folds != fold
        quality += _qualities(
            features[inside], targets[inside], features[~inside], targets[~inside], strengths
        )
    return strengths[int(np.argmax(quality))]


def held_out_strength(
    features: FloatArray,
    targets: FloatArray,
    held: FloatArray,
    held_targets: FloatArray,
    strengths: Sequence[float] = STRENGTHS,
) -> float:
    """The strength whose predictions of held-out rows agree best with their targets."""
    quality = _qualities(features, targets, held, held_targets, strengths)
    return strengths[int(np.argmax(quality))]


def _qualities(
    features: FloatArray,
    targets: FloatArray,
    held: FloatArray,
    held_targets: FloatArray,
    strengths: Sequence[float],
) -> FloatArray:
    """The correlation with held-out targets under each strength, (strengths,)."""
    mean, scale = _standards(features)
    fitted = _solve((features - mean) / scale, targets - targets.mean(), strengths)
    z = (held - mean) / scale
    return np.array([_pearson(z @ weights, held_targets) for weights in fitted])


def _folds(size: int, groups: Sequence[str]) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """Groups as folds where there are at least three, else blocks in the order of the data."""
    if len(set(groups)) > 2:
        return np.unique(np.asarray(groups), return_inverse=True)[1].astype(np.int64)
    return (np.arange(size) * FOLDS // size).astype(np.int64)


def _solve(z: FloatArray, y: FloatArray, strengths: Sequence[float]) -> list[FloatArray]:
    """The weights for each strength from one decomposition of Z'Z."""
    values, vectors = np.linalg.eigh(z.T @ z / len(z))
    moments = vectors.T @ (z.T @ y / len(z))
    return [vectors @ (moments / (np.maximum(values, 0.0) + s)) for s in strengths]


def _standards(features: FloatArray) -> tuple[FloatArray, FloatArray]:
    scale = features.std(axis=0)
    return features.mean(axis=0), np.where(scale > 1e-9, scale, 1.0)


def _pearson(x: FloatArray, y: FloatArray) -> float:
    x, y = x - x.mean(), y - y.mean()
    size = float(np.sqrt((x @ x) * (y @ y)))
    return float(x @ y) / size if size > 0 else 0.0


def _check(names: Sequence[str], features: FloatArray, targets: FloatArray) -> None:
    if features.shape != (len(targets), len(names)):
        raise LengthError(
            f"features of shape {features.shape} for {len(targets)} targets and {len(names)} names"
        )
    if len(targets) < 2 * FOLDS:
        raise DataError(f"{len(targets)} judgements are too few to learn from: give {2 * FOLDS}")
    if not np.isfinite(targets).all():
        raise DataError("a human score is missing or infinite: leave such rows out of training")
