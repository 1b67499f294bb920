"""The formula of a blend: a linear model of the scores of metrics, of which some may be missing.

    score = bias + factor sum_i weight_i (n_i(x_i) - mean_i) / deviation_i + sum_j b_j

x_i is the score of metric i, oriented so that higher is better, and weight_i >= 0. n_i is the
identity (`z`), or maps a score to its rank among the scores in training, 0 to 1 (`rank`). The
metrics i have a score for the segment, the metrics j have none, such as a judge without a valid
answer. The factor is 1 if there is no such j. The weights are fitted on segments with all scores.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np

from tertium.core.arrays import BoolArray, FloatArray, IntArray
from tertium.core.errors import DataError
from tertium.core.resampling import FOLDS, number_folds
from tertium.models.ridge import LinearModel, Prior, fit_ridge, minimize_quadratic

Normalization = Literal["z", "rank"]
STRENGTHS = (0.001, 0.01, 0.1)  # stronger ones shrink the scores towards their mean
QUANTILES = 101  # of the scores in training, for ranks
MISSING_PRIOR_ROWS = 10  # the bias of a missing score is shrunk as by so many rows without bias


@dataclass(frozen=True, eq=False, kw_only=True)
class BlendModel(LinearModel):
    """A linear model of normalized scores, with a bias for each score that is missing.

    `missing_biases` (metrics,) are added for missing scores. `covariances` (metrics, metrics) are
    those of the contributions of the metrics in training. `quantiles` (metrics, QUANTILES) of the
    scores in training turn scores into ranks; without them, scores are used as they are.
    """

    missing_biases: FloatArray
    covariances: FloatArray
    quantiles: FloatArray | None = field(default=None, repr=False)

    def contributions(self, features: FloatArray) -> FloatArray:
        """Compute the contribution of each metric, (n, metrics).

        A missing score (NaN) contributes its bias, and the others are multiplied by a factor. All
        contributions to a row without any score are NaN.
        """
        parts = super().contributions(normalize(features, self.quantiles))
        is_present = ~np.isnan(features)
        for pattern in np.unique(is_present, axis=0):
            if pattern.any() and not pattern.all():
                rows = (is_present == pattern).all(axis=1)
                scaled = self.factor_for(pattern) * parts[rows]
                parts[rows] = np.where(pattern, scaled, self.missing_biases)
        return parts

    def factor_for(self, is_present: BoolArray) -> float:
        """Return the factor of the present metrics (metrics,) that predicts the full sum best."""
        variance = self.covariances[np.ix_(is_present, is_present)].sum()
        covariance = self.covariances[is_present].sum()
        return max(0.0, float(covariance / variance)) if variance > 0 else 1.0

    @property
    def arrays(self) -> Mapping[str, FloatArray]:
        """All numbers, for storage."""
        arrays = {"missing_biases": self.missing_biases, "covariances": self.covariances}
        if self.quantiles is not None:
            arrays["quantiles"] = self.quantiles
        return {**super().arrays, **arrays}

    @classmethod
    def from_arrays(cls, names: Sequence[str], arrays: Mapping[str, FloatArray]) -> BlendModel:
        """Restore a model from its `arrays`."""
        return cls(
            **vars(LinearModel.from_arrays(names, arrays)),
            missing_biases=arrays["missing_biases"],
            covariances=arrays["covariances"],
            quantiles=arrays.get("quantiles"),
        )


def normalize(values: FloatArray, quantiles: FloatArray | None) -> FloatArray:
    """Turn scores (n, metrics) into ranks, if there are quantiles; NaN stays NaN."""
    if quantiles is None:
        return values
    columns = zip(values.T, quantiles, strict=True)
    return np.column_stack([_ranks(column, own) for column, own in columns])


def _ranks(values: FloatArray, quantiles: FloatArray) -> FloatArray:
    """Return the rank of values among quantiles, 0 to 1; equal quantiles share their mean rank."""
    knots, members, counts = np.unique(quantiles, return_inverse=True, return_counts=True)
    grid = np.linspace(0.0, 1.0, len(quantiles))
    ranks = np.bincount(members, weights=grid) / counts
    return np.where(np.isnan(values), np.nan, np.interp(values, knots, ranks))


def fit_blend(
    names: Sequence[str],
    values: FloatArray,
    targets: FloatArray,
    groups: IntArray,
    *,
    normalization: Normalization = "z",
    strengths: Sequence[float] = STRENGTHS,
    dev: tuple[FloatArray, FloatArray] | None = None,
) -> BlendModel:
    """Fit human scores (n,) on metric scores (n, metrics).

    `groups` (n,) numbers the documents, which are held out as a whole to choose the ridge strength;
    with `dev` values and targets it is chosen on these. Weights are fitted on the rows with all
    scores, and the biases of missing scores on the other rows.
    """
    quantiles = None
    if normalization == "rank":
        quantiles = np.nanquantile(values, np.linspace(0, 1, QUANTILES), axis=0).T
    is_complete = ~np.isnan(values).any(axis=1)
    if is_complete.sum() < 2 * FOLDS:
        raise DataError(
            f"only {int(is_complete.sum())} of {len(values)} judgments have scores of all of "
            f"{', '.join(names)}: give at least {2 * FOLDS}"
        )
    rows = normalize(values[is_complete], quantiles)
    if dev is not None:
        has_scores = ~np.isnan(dev[0]).any(axis=1)
        dev = normalize(dev[0][has_scores], quantiles), dev[1][has_scores]
    linear = fit_ridge(
        names,
        rows,
        targets[is_complete],
        number_folds(groups, FOLDS)[is_complete].tolist(),
        strengths,
        Prior(signs=(1,) * len(names)),
        dev,
    )
    parts = linear.contributions(rows)
    model = BlendModel(
        **vars(linear),
        missing_biases=np.zeros(len(names)),
        covariances=parts.T @ parts / len(parts),  # their means are 0
        quantiles=quantiles,
    )
    return replace(model, missing_biases=_fit_missing_biases(model, values, targets))


def _fit_missing_biases(model: BlendModel, values: FloatArray, targets: FloatArray) -> FloatArray:
    """Fit the errors of a model without biases to which scores are missing, (metrics,)."""
    is_missing = np.isnan(values)
    used = is_missing.any(axis=1) & ~is_missing.all(axis=1)
    errors = targets[used] - model.predict(values[used])
    missing = is_missing[used].astype(np.float64)
    counts = missing.T @ missing + MISSING_PRIOR_ROWS * np.eye(len(model.names))
    return minimize_quadratic(counts, missing.T @ errors, np.zeros(len(model.names)))
