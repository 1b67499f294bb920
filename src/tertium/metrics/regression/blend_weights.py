"""Weights of a blend: normalize the scores of metrics, fit weights, and predict with what is there.

    score = bias + sum_i weight_i (n_i(x_i) - mean_i) / deviation_i,        weight_i >= 0

x_i is the score of metric i, oriented so that higher is better. n_i is the identity (`z`), or maps
a score to its rank among the scores in training, 0 to 1 (`rank`). A score of a judge may be
missing. Therefore every subset of the metrics has weights of its own, fitted on the same data, and
a segment is scored with the weights of the metrics that scored it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Literal

import numpy as np

from tertium.arrays import BoolArray, FloatArray, IntArray
from tertium.errors import DataError
from tertium.metrics.regression.folds import make_folds
from tertium.metrics.regression.ridge_regression import (
    FOLDS,
    MAX_Z_SCORE,
    LinearModel,
    Prior,
    fit_ridge,
)

Normalization = Literal["z", "rank"]
STRENGTHS = (0.001, 0.01, 0.1)  # stronger ones shrink the scores towards their mean
QUANTILES = 101  # of the scores in training, for ranks
MIN_SYSTEMS = 3  # fewer are not held out


@dataclass(frozen=True, eq=False, kw_only=True)
class BlendWeights:
    """A linear model for each subset of the metrics that has one, by bit mask.

    `quantiles` (metrics, QUANTILES) of the scores in training turn scores into ranks; without
    them, scores are used as they are.
    """

    names: tuple[str, ...]
    models: Mapping[int, LinearModel] = field(repr=False)
    quantiles: FloatArray | None = field(default=None, repr=False)

    @property
    def full(self) -> LinearModel:
        """The model of all metrics."""
        return self.models[2 ** len(self.names) - 1]

    def normalize(self, values: FloatArray) -> FloatArray:
        """Turn scores (n, metrics) into ranks, if the blend was trained on ranks; NaN stays NaN."""
        if self.quantiles is None:
            return values
        columns = zip(values.T, self.quantiles, strict=True)
        return np.column_stack([_ranks(column, own) for column, own in columns])

    def predict(self, values: FloatArray) -> FloatArray:
        """Score rows (n, metrics) by the metrics that are not NaN; NaN if no model fits, (n,)."""
        rows, present = self.normalize(values), ~np.isnan(values)
        masks = present @ (1 << np.arange(len(self.names)))
        scores = np.full(len(rows), np.nan)
        for mask in np.unique(masks).tolist():
            if model := self.models.get(mask):
                own = masks == mask
                scores[own] = model.predict(rows[np.ix_(own, unpack(mask, len(self.names)))])
        return scores

    def contributions(self, values: FloatArray) -> tuple[LinearModel | None, FloatArray]:
        """Return the model for one row (metrics,), and the contributions of its metrics."""
        present = ~np.isnan(values)
        model = self.models.get(int(present @ (1 << np.arange(len(self.names)))))
        if model is None:
            return None, np.zeros(0)
        return model, model.contributions(self.normalize(values[None])[:, present])[0]

    @property
    def arrays(self) -> dict[str, FloatArray]:
        """All numbers, for storage: a row for each subset, with zeros for absent metrics."""
        count = len(self.names)
        rows: dict[str, list[FloatArray]] = {name: [] for name in ("mean", "scale", "weights")}
        for mask in range(1, 2**count):
            for name, own in rows.items():
                row = np.full(count, 1.0 if name == "scale" else 0.0)
                row[unpack(mask, count)] = self.models[mask].arrays[name]
                own.append(row)
        numbers = [self.models[mask].arrays["numbers"] for mask in range(1, 2**count)]
        quantiles = {} if self.quantiles is None else {"quantiles": self.quantiles}
        return {name: np.array(own) for name, own in {**rows, "numbers": numbers}.items()} | (
            quantiles
        )

    @classmethod
    def from_arrays(cls, names: Sequence[str], arrays: Mapping[str, FloatArray]) -> BlendWeights:
        """Restore the weights from their `arrays`."""
        models = {}
        for mask in range(1, 2 ** len(names)):
            used = unpack(mask, len(names))
            own = {name: arrays[name][mask - 1][used] for name in ("mean", "scale", "weights")}
            own["numbers"] = arrays["numbers"][mask - 1]
            models[mask] = LinearModel.from_arrays(np.array(names)[used].tolist(), own)
        return cls(names=tuple(names), models=models, quantiles=arrays.get("quantiles"))

    @classmethod
    def from_constants(
        cls, names: Sequence[str], mean: FloatArray, scale: FloatArray, weights: FloatArray
    ) -> BlendWeights:
        """Weight z-scores with given numbers (metrics,); the weights of a subset sum to 1."""
        models = {}
        for mask in range(1, 2 ** len(names)):
            used = unpack(mask, len(names))
            if total := weights[used].sum():
                models[mask] = LinearModel(
                    names=tuple(np.array(names)[used].tolist()),
                    mean=mean[used],
                    scale=scale[used],
                    weights=weights[used] / total,
                    bias=0.0,
                    strength=0.0,
                    min_target=-MAX_Z_SCORE,
                )
        return cls(names=tuple(names), models=models)


def unpack(mask: int, count: int) -> BoolArray:
    """Return which metrics are in a subset, (count,).

    >>> unpack(5, 3)
    array([ True, False,  True])
    """
    used: BoolArray = (mask >> np.arange(count)) % 2 == 1
    return used


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
) -> BlendWeights:
    """Fit human scores (n,) on metric scores (n, metrics) for every subset of the metrics.

    `groups` (n,) numbers the documents, which are held out as a whole to choose the ridge strength;
    with `dev` values and targets it is chosen on these. Rows that lack a metric are used for the
    subsets without it.
    """
    quantiles = None
    if normalization == "rank":
        quantiles = np.nanquantile(values, np.linspace(0, 1, QUANTILES), axis=0).T
    blend = BlendWeights(names=tuple(names), models={}, quantiles=quantiles)
    rows, folds = blend.normalize(values), _fold_names(groups)
    dev_rows = None
    if dev is not None:
        complete = ~np.isnan(dev[0]).any(axis=1)
        dev_rows = blend.normalize(dev[0][complete]), dev[1][complete]
    everything = 2 ** len(names) - 1
    models: dict[int, LinearModel] = {}
    for mask in range(everything, 0, -1):  # all metrics first: they choose the strength
        used = unpack(mask, len(names))
        complete = ~np.isnan(rows[:, used]).any(axis=1)
        if mask == everything and complete.sum() < 2 * FOLDS:
            raise DataError(
                f"only {int(complete.sum())} of {len(rows)} judgments have scores of all of "
                f"{', '.join(names)}: give at least {2 * FOLDS}"
            )
        models[mask] = fit_ridge(
            np.array(names)[used].tolist(),
            rows[np.ix_(complete, used)],
            targets[complete],
            folds[complete].tolist(),
            strengths if mask == everything else (models[everything].strength,),
            Prior(signs=(1,) * int(used.sum())),
            dev_rows if mask == everything else None,
        )
    return BlendWeights(names=tuple(names), models=models, quantiles=quantiles)


def _fold_names(groups: IntArray) -> IntArray:
    """Return the fold of each row, (n,); zeros if there is one group only."""
    folds = np.zeros(len(groups), dtype=np.int64)
    if (count := len(np.unique(groups))) > 1:
        for number, rows in enumerate(make_folds(groups, min(FOLDS, count))):
            folds[rows] = number
    return folds


def cross_validate(
    names: Sequence[str],
    values: FloatArray,
    targets: FloatArray,
    documents: IntArray,
    systems: IntArray,
    *,
    normalization: Normalization = "z",
    strengths: Sequence[float] = STRENGTHS,
) -> FloatArray:
    """Predict each row, up to a constant, by a blend that saw neither its document nor its system.

    `documents` and `systems` (n,) are numbers. Fewer than three systems are not held out.
    """
    if len(np.unique(documents)) < 2:
        raise DataError("cross-validation needs at least two documents or segments")
    document_folds = _fold_names(documents)
    enough = len(np.unique(systems)) >= MIN_SYSTEMS
    system_folds = _fold_names(systems) if enough else np.full(len(systems), -1)
    predicted = np.full(len(targets), np.nan)
    for document, system in product(np.unique(document_folds), np.unique(system_folds)):
        test = (document_folds == document) & (system_folds == system)
        train = (document_folds != document) & ((system_folds != system) | (system < 0))
        if not test.any():
            continue
        blend = fit_blend(
            names,
            values[train],
            targets[train],
            documents[train],
            normalization=normalization,
            strengths=strengths,
        )
        predicted[test] = _keep_ratios(blend, values).predict(values[test])
    return predicted


def _keep_ratios(blend: BlendWeights, values: FloatArray) -> BlendWeights:
    """Keep only the ratios of the weights, so that blends of different folds are comparable.

    Means and deviations are those of all scores. Bias and size of the weights are dropped: with the
    human scores of a fold, they would tell how good the systems are that it leaves out.
    """
    rows = blend.normalize(values)
    means, deviations = np.nanmean(rows, axis=0), np.nanstd(rows, axis=0)
    models = {}
    for mask, model in blend.models.items():
        used = unpack(mask, len(means))
        models[mask] = replace(
            model,
            mean=means[used],
            scale=np.where(deviations[used] > 0, deviations[used], 1.0),
            weights=model.weights / (model.weights.sum() or 1.0),
            bias=0.0,
        )
    return replace(blend, models=models)
