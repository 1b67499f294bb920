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

from tertium.core.arrays import BoolArray, FloatArray, IntArray
from tertium.core.errors import DataError, UsageError
from tertium.core.resampling import FOLDS, number_folds
from tertium.models.ridge import fit_ridge_weights
from tertium.models.training_examples import pearson

MIN_ROWS, MIN_SOURCES = 30, 10  # to adapt the head


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

    def take(self, rows: BoolArray | IntArray) -> JudgedValues:
        """Return the values of these rows."""
        return JudgedValues(
            values=self.values[rows],
            targets=self.targets[rows],
            sources=self.sources[rows],
            shipped=self.shipped,
        )


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


def adapt_head(data: JudgedValues, strengths: Sequence[float]) -> list[Adaptation]:
    """Return the adapted head for each strength, relative to the mean squared length of a row."""
    (weights, bias), targets = data.shipped, data.targets
    raw = data.values @ weights + bias
    mean, deviation = float(targets.mean()), float(targets.std())
    z = (targets - mean) / deviation
    factor, offset = fit_scale(raw, z)
    center = data.values.mean(0)
    values, rest = data.values - center, z - factor * raw - offset
    unit = float((values**2).sum()) / len(values) ** 2
    adaptations = []
    for difference in fit_ridge_weights(values, rest, [unit * strength for strength in strengths]):
        shift = factor * bias + offset - float(difference @ center)
        adaptation = Adaptation(
            weights=deviation * (factor * weights + difference), bias=mean + deviation * shift
        )
        adaptations.append(adaptation)
    return adaptations


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


def cross_validate(data: JudgedValues, strengths: Sequence[float]) -> CrossValidation:
    """Measure adapted heads on held-out sources; translations of one source are in one fold."""
    sources = len(np.unique(data.sources))
    if len(data.sources) < MIN_ROWS or sources < MIN_SOURCES:
        raise DataError(
            f"{len(data.sources)} translations of {sources} sources are too few to adapt the head: "
            f"give at least {MIN_ROWS} of {MIN_SOURCES}, or adapt only the scale (--adapt scale)"
        )
    folds, (weights, bias) = number_folds(data.sources, FOLDS), data.shipped
    shipped_r, adapted_r = np.zeros(FOLDS), np.zeros((FOLDS, len(strengths)))
    predictions = np.zeros((len(folds), len(strengths)))
    for fold in range(FOLDS):
        held_out = folds == fold
        values, targets = data.values[held_out], data.targets[held_out]
        shipped_r[fold] = pearson(values @ weights + bias, targets)
        for n, adaptation in enumerate(adapt_head(data.take(~held_out), strengths)):
            predictions[held_out, n] = predicted = adaptation.predict(values)
            adapted_r[fold, n] = pearson(predicted, targets)
    best = int(adapted_r.mean(0).argmax())
    return CrossValidation(
        shipped=shipped_r,
        adapted=adapted_r,
        residuals=data.targets - predictions[:, best],
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
