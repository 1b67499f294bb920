"""Upper bounds for the network of Guzmán et al. (2015) with our inputs.

- `BestMetricWeights`: the best weights of the four metrics, found on WMT12 itself.
- `CrossValidation`: a network trained on other segments of WMT12.
- `TrainedOnWMT13`: a network trained on WMT13, whose segments are known exactly (those of WMT11
  are inferred), compared with one trained on as much of WMT11.

Whatever is fitted on WMT12 is labeled so, and no setting is chosen by it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from papers.guzman2015_ablations import (
    FOUR_METRICS,
    METEOR_PARAPHRASES,
    AblationTaus,
    NetworkInputs,
    NetworkVariant,
    TausByColumn,
    compute_taus,
    load_network_inputs,
    measure_variant,
    network_taus,
    predict_both_orders,
    train_variant,
)
from tertium.core.arrays import FloatArray
from tertium.core.resampling import make_rng
from tertium.data.dataset_folder import DatasetFolder

FOLDS = 4
ROUNDS, DIRECTIONS, STARTS = 12, 8, 4  # of the search for weights


@dataclass(frozen=True, kw_only=True)
class CrossValidation:
    """Four-fold cross-validation of a variant on WMT12.

    Folds are by reference, so that training and test share no sentence. The epoch is chosen on
    WMT13. It trains on 33,000 comparisons of the test year; WMT11 has 19,000.
    """

    variant: NetworkVariant

    def __call__(self, datasets: DatasetFolder, column: str) -> TausByColumn:
        has_paraphrases = METEOR_PARAPHRASES in self.variant.features
        inputs = load_network_inputs(datasets, paraphrases=has_paraphrases)
        return cross_validate(inputs, self.variant)


@dataclass(frozen=True, kw_only=True)
class TrainedOnWMT13:
    """A variant trained on 5,000 comparisons of WMT13, with the epoch chosen on WMT11."""

    variant: NetworkVariant

    def __call__(self, datasets: DatasetFolder, column: str) -> TausByColumn:
        inputs = load_network_inputs(datasets)
        pairs = {**inputs.pairs, "train": inputs.pairs["dev"], "dev": inputs.pairs["train"]}
        taus = measure_variant(replace(inputs, pairs=pairs), self.variant)
        return {**taus, "WMT13": taus["WMT11"], "WMT11": taus["WMT13"]}


# Columns: whether one order is scored (with a constant), and whether each pair has own weights.
WEIGHT_SETTINGS: Mapping[str, tuple[bool, bool]] = {
    "both orders": (False, False),
    "one order": (True, False),
    "both orders, own weights": (False, True),
    "one order, own weights": (True, True),
}


@dataclass(frozen=True, kw_only=True)
class BestMetricWeights:
    """The highest tau on WMT12 of any weights of the metrics that a search finds.

    The model is linear in the differences of metric scores. With one order it also has a constant,
    so that equal scores are not ties. Weights are shared by all language pairs, or are their own.
    """

    features: tuple[str, ...] = FOUR_METRICS

    def __call__(self, datasets: DatasetFolder, column: str) -> TausByColumn:
        inputs = load_network_inputs(datasets, paraphrases=METEOR_PARAPHRASES in self.features)
        return {
            name: measure_best_weights(inputs, self.features, *setting)
            for name, setting in WEIGHT_SETTINGS.items()
        }


@dataclass(frozen=True, kw_only=True)
class BestWeightTaus(AblationTaus):
    """Strict tau x 100 of the best weights, mean of four language pairs."""

    columns: tuple[str, ...] = (*WEIGHT_SETTINGS,)
    data: str = "rankings/wmt12, on which the weights are found"
    statistic: str = "strict Kendall's tau x 100, mean of cs-en, de-en, es-en and fr-en"


def cross_validate(
    inputs: NetworkInputs, variant: NetworkVariant, folds: int = FOLDS
) -> TausByColumn:
    """Return the taus of a variant that is trained on the other folds of WMT12."""
    test = inputs.pairs["test"]
    fold_of_item = make_rng(12).permutation(int(inputs.items.max()) + 1) % folds
    predictions: list[list[FloatArray]] = [[] for _ in test]
    other_years = []
    for fold in range(folds):
        masks = [fold_of_item[inputs.items[p.left]] == fold for p in test]
        train = [p.select(~mask) for p, mask in zip(test, masks, strict=True)]
        networks, rows = train_variant(
            replace(inputs, pairs={**inputs.pairs, "train": train}), variant
        )
        for n, (pairs, mask) in enumerate(zip(test, masks, strict=True)):
            part = pairs.select(mask)
            left, right = predict_both_orders(networks, rows, part)
            predictions[n].append(np.vstack([left, right, part.verdicts]))
        taus = [network_taus(networks, rows, inputs.pairs[part])[0] for part in ("dev", "train")]
        other_years.append(taus)
    joined = [np.hstack(parts) for parts in predictions]  # (2 networks + 1, pairs)
    both, listed, ensemble = compute_taus([(*np.split(x[:-1], 2), x[-1]) for x in joined])
    wmt13, wmt11 = np.mean(other_years, axis=0)
    return {
        "WMT13": wmt13,
        "WMT12": both,
        "WMT12, one order": listed,
        "WMT12, ensemble": ensemble[:1],
        "WMT11": wmt11,
    }


def measure_best_weights(
    inputs: NetworkInputs, features: Sequence[str], one_order: bool, own_weights: bool
) -> FloatArray:
    """Return the tau on WMT12 of the best weights of some features, (1,)."""
    values = np.hstack([inputs.columns[name] for name in features]).astype(np.float64)
    values = values / values.std(axis=0)
    sets = []
    for left, right, verdicts in inputs.pairs["test"]:
        constant = np.ones((len(left), int(one_order)))
        rows = np.hstack([values[left] - values[right], constant])
        sets.append(rows * np.where(verdicts > 0.5, 1.0, -1.0)[:, None])
    groups = [[rows] for rows in sets] if own_weights else [sets]
    return np.array([np.mean([maximize_tau(group) for group in groups])])


def maximize_tau(sets: Sequence[FloatArray]) -> float:
    """Return the highest mean tau x 100 over weights w (k,); a row (k,) is right if row @ w > 0.

    Along a line of weights, each row changes its sign at one known point, so that the best point
    of the line is found exactly. Lines are the axes and random directions, from several starts.
    """
    rows = np.vstack(sets)
    row_weights = np.concatenate([np.full(len(x), 1 / len(x) / len(sets)) for x in sets])
    rng, best = make_rng(5), 0.0
    for _ in range(STARTS):
        weights = np.abs(rng.normal(size=rows.shape[1]))
        for _ in range(ROUNDS):
            directions = rng.normal(size=(DIRECTIONS, rows.shape[1]))
            for direction in (*np.eye(rows.shape[1]), *directions):
                weights, accuracy = _search_line(rows, row_weights, weights, direction)
                best = max(best, accuracy)
    return 100 * (2 * best - 1)


def _search_line(
    rows: FloatArray, row_weights: FloatArray, weights: FloatArray, direction: FloatArray
) -> tuple[FloatArray, float]:
    """Return the best weights on a line and their accuracy."""
    base, slope = rows @ weights, rows @ direction
    moves = np.abs(slope) > 1e-12
    crossings = -base[moves] / slope[moves]  # where a row changes its sign
    order = np.argsort(crossings)
    gains = np.where(slope[moves] > 0, row_weights[moves], -row_weights[moves])[order]
    start = row_weights[~moves & (base > 0)].sum() + row_weights[moves][slope[moves] < 0].sum()
    accuracies = start + np.concatenate([[0.0], np.cumsum(gains)])
    edges = np.concatenate(
        [[crossings[order[0]] - 2], crossings[order], [crossings[order[-1]] + 2]]
    )
    middles = (edges[1:] + edges[:-1]) / 2
    # There is no point between two equal edges.
    best = int(np.argmax(np.where(np.diff(edges) > 1e-12, accuracies, -np.inf)))
    chosen = weights + middles[best] * direction
    return chosen / np.linalg.norm(chosen), float(row_weights[rows @ chosen > 0].sum())
