"""Adapt the last layer of tertium-multi to own human scores: ridge regression and its guard.

The score of tertium-multi is y = w . x + b with the values x of its head. An adapted score is

    mean + deviation (a y + c + d . (x - mean of x))

a and c are fitted by least squares to standardized human scores, d by ridge regression to what they
leave over. The strength of the penalty of d is chosen by cross-validation over sources.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tertium.arrays import BoolArray, FloatArray, IntArray
from tertium.errors import DataError, UsageError
from tertium.models.training_examples import pearson

MIN_ROWS, MIN_SOURCES = 30, 10  # to adapt the head
FOLDS = 5


@dataclass(frozen=True, kw_only=True)
class Adaptation:
    """Weights of the head values, (values,), and bias, on the scale of human scores."""

    weights: FloatArray
    bias: float

    def predict(self, values: FloatArray) -> FloatArray:
        return values @ self.weights + self.bias


@dataclass(frozen=True, kw_only=True, eq=False)
class JudgedValues:
    """Head values of rows, (rows, values), with human scores and numbers of sources, (rows,) each.

    `shipped` are weights and bias of the last layer of tertium-multi.
    """

    values: FloatArray
    targets: FloatArray
    sources: IntArray
    shipped: tuple[FloatArray, float]


@dataclass(frozen=True, kw_only=True)
class CrossValidation:
    """Pearson's r on held-out folds, (folds,): as shipped, and adapted with each strength."""

    shipped: FloatArray
    adapted: FloatArray  # (folds, strengths)
    residuals: FloatArray  # (rows,): human score minus held-out prediction, of the best strength
    strengths: tuple[float, ...]

    @property
    def best(self) -> float:
        """The strength with the best mean r."""
        return self.strengths[int(self.adapted.mean(0).argmax())]

    @property
    def unbiased(self) -> FloatArray:
        """The r of each fold, (folds,), with the strength that is best on the other folds."""
        chosen: IntArray = (self.adapted.sum(0) - self.adapted).argmax(1)
        return self.adapted[np.arange(len(self.adapted)), chosen]


def fit_scale(raw: FloatArray, targets: FloatArray) -> tuple[float, float]:
    """Return factor and offset that map raw scores to human scores by least squares."""
    factor, offset = np.polyfit(raw, targets, 1)
    return float(factor), float(offset)


class HeadRidge:
    """Ridge solutions of many strengths from one decomposition of the Gram matrix."""

    def __init__(self, data: JudgedValues, rows: BoolArray | None = None) -> None:
        """`rows` selects what to fit to; all by default."""
        from scipy.linalg import eigh

        chosen = slice(None) if rows is None else rows
        values, targets = data.values[chosen], data.targets[chosen]
        self.shipped = data.shipped
        raw = values @ self.shipped[0] + self.shipped[1]
        self.mean, self.deviation = float(targets.mean()), float(targets.std())
        z = (targets - self.mean) / self.deviation
        self.factor, self.offset = fit_scale(raw, z)
        self.center = values.mean(0)
        self.values = values - self.center
        self.is_wide = len(values) <= values.shape[1]
        rest = z - self.factor * raw - self.offset
        gram = self.values @ self.values.T if self.is_wide else self.values.T @ self.values
        self.eigenvalues, self.vectors = eigh(gram, driver="evd", overwrite_a=True)
        goal = rest if self.is_wide else self.values.T @ rest
        self.projected = self.vectors.T @ goal
        self.unit = float(self.eigenvalues.sum()) / len(values)

    def difference(self, strength: float) -> FloatArray:
        """Return d, (values,), for a penalty relative to the mean squared length of a row."""
        penalty = strength * self.unit
        shares = self.projected / (self.eigenvalues.clip(0) + penalty)
        solution: FloatArray = self.vectors @ shares
        return self.values.T @ solution if self.is_wide else solution

    def adaptation(self, strength: float) -> Adaptation:
        """Return the adapted head."""
        weights, bias = self.shipped
        difference = self.difference(strength)
        offset = self.factor * bias + self.offset - float(difference @ self.center)
        return Adaptation(
            weights=self.deviation * (self.factor * weights + difference),
            bias=self.mean + self.deviation * offset,
        )


def scale_only(data: JudgedValues) -> Adaptation:
    """Map shipped scores to the human scale without changing their order."""
    weights, bias = data.shipped
    factor, offset = fit_scale(data.values @ weights + bias, data.targets)
    if factor <= 0:
        raise UsageError(
            "these human scores fall where those of tertium-multi rise: check that higher human "
            "scores are better, and that texts and scores belong together"
        )
    return Adaptation(weights=factor * weights, bias=factor * bias + offset)


def assign_folds(sources: IntArray, seed: int) -> IntArray:
    """Return the fold of each row, (rows,); translations of one source are in one fold."""
    names, numbers = np.unique(sources, return_inverse=True)
    if len(sources) < MIN_ROWS or len(names) < MIN_SOURCES:
        raise DataError(
            f"{len(sources)} translations of {len(names)} sources are too few to adapt the head: "
            f"give at least {MIN_ROWS} of {MIN_SOURCES}, or adapt only the scale (--adapt scale)"
        )
    order = np.random.default_rng(seed).permutation(len(names))
    return (np.argsort(order) % FOLDS)[numbers]


def cross_validate(data: JudgedValues, strengths: Sequence[float], seed: int) -> CrossValidation:
    """Measure adapted heads on held-out sources."""
    folds = assign_folds(data.sources, seed)
    values, targets, (weights, bias) = data.values, data.targets, data.shipped
    shipped_r, adapted_r = np.zeros(FOLDS), np.zeros((FOLDS, len(strengths)))
    predictions = np.zeros((len(targets), len(strengths)))
    for fold in range(FOLDS):
        held_out = folds == fold
        ridge = HeadRidge(data, ~held_out)
        shipped_r[fold] = pearson(values[held_out] @ weights + bias, targets[held_out])
        for n, strength in enumerate(strengths):
            own = ridge.adaptation(strength).predict(values[held_out])
            predictions[held_out, n] = own
            adapted_r[fold, n] = pearson(own, targets[held_out])
    best = int(adapted_r.mean(0).argmax())
    return CrossValidation(
        shipped=shipped_r,
        adapted=adapted_r,
        residuals=targets - predictions[:, best],
        strengths=tuple(strengths),
    )


def check_gain(study: CrossValidation, rows: int) -> None:
    """Raise an error if adapted scores do not clearly agree better with held-out human scores.

    The gain in r must exceed its standard error over the folds.
    """
    gains = study.unbiased - study.shipped
    error = gains.std(ddof=1) / np.sqrt(len(gains))
    if gains.mean() <= error:
        before, after = study.shipped.mean(), study.unbiased.mean()
        raise DataError(
            f"an adapted head does not clearly agree better with these {rows} human scores than "
            f"tertium-multi (r {after:.3f} against {before:.3f} on held-out sources, standard "
            f"error of the gain {error:.3f}): use tertium-multi, give more judgments, or adapt "
            "only the scale (--adapt scale)"
        )
