"""What the network of Guzmán et al. (2015) could reach at best with our inputs: bounds, no choices.

Three questions about the figures that it misses. Could any weights of the four metrics give them
(`BestWeights`, found on WMT12 itself)? Could a network that learns from WMT12 itself, other
segments than it is tested on (`Folds`)? And does one that learns from WMT13, whose segments nobody
had to infer, do better than one that learns from as much of WMT11 (`FromWMT13`)? What fits WMT12
is labeled so, and nothing is chosen by it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from papers.causes import (
    FOUR,
    PARAPHRASES,
    Material,
    Pairs,
    Variation,
    Worth,
    decide,
    material_of,
    measure_variation,
    taus_of,
    train_variation,
)
from tertium.arrays import BoolArray, FloatArray, generator
from tertium.data.collection import Collection
from tertium.metrics.pairwise.network import PairwiseNetwork, Rows

FOLDS = 4
ROUNDS, DIRECTIONS, STARTS = 12, 8, 4  # of the search for weights
Outcome = Mapping[str, FloatArray]


@dataclass(frozen=True, kw_only=True)
class Folds:
    """A variation that learns from three quarters of WMT12 and decides the last, four times over.

    Quarters are of references, so that no sentence stands on both sides. The epoch is chosen on
    WMT13, as always. It learns from 33,000 comparisons of the year, systems and judges that it is
    tested on, where WMT11 has 19,000 of another.
    """

    variation: Variation

    def __call__(self, collection: Collection, column: str) -> Outcome:
        asked = PARAPHRASES in self.variation.features
        return measure_folds(material_of(collection, paraphrases=asked), self.variation)


@dataclass(frozen=True, kw_only=True)
class FromWMT13:
    """A variation that learns from the 5,000 comparisons of WMT13, the epoch chosen on WMT11."""

    variation: Variation

    def __call__(self, collection: Collection, column: str) -> Outcome:
        material = material_of(collection)
        pairs = {**material.pairs, "train": material.pairs["dev"], "dev": material.pairs["train"]}
        found = measure_variation(replace(material, pairs=pairs), self.variation)
        return {**found, "WMT13": found["WMT11"], "WMT11": found["WMT13"]}


@dataclass(frozen=True, kw_only=True)
class BestWeights:
    """The weights of the metrics with the highest tau on WMT12 itself that a search finds.

    A linear decision on the differences of metrics, and on a constant where one order decides:
    then comparisons of equal values are no ties. All language pairs share the weights, or each
    has its own.
    """

    features: tuple[str, ...] = FOUR

    def __call__(self, collection: Collection, column: str) -> Outcome:
        material = material_of(collection, paraphrases=PARAPHRASES in self.features)
        return {name: best_weights(material, self.features, *how) for name, how in WAYS.items()}


WAYS: Mapping[str, tuple[bool, bool]] = {  # whether one order decides, whether each has its own
    "both orders": (False, False),
    "one order": (True, False),
    "both orders, own weights": (False, True),
    "one order, own weights": (True, True),
}


@dataclass(frozen=True, kw_only=True)
class Reached(Worth):
    """What the best weights reach: strict tau x 100, mean of four language pairs."""

    columns: tuple[str, ...] = (*WAYS,)
    data: str = "rankings/wmt12, on which the weights are found"
    statistic: str = "strict Kendall's tau x 100, mean of cs-en, de-en, es-en and fr-en"


def measure_folds(material: Material, variation: Variation, folds: int = FOLDS) -> Outcome:
    """The taus of a variation that learns from WMT12 but for the part it decides."""
    test = material.pairs["test"]
    parts = generator(12).permutation(int(material.items.max()) + 1) % folds
    decided: list[list[FloatArray]] = [[] for _ in test]
    others = []
    for fold in range(folds):
        inside = [parts[material.items[p.left]] == fold for p in test]
        train = [_some(p, ~rows) for p, rows in zip(test, inside, strict=True)]
        networks, rows = train_variation(
            replace(material, pairs={**material.pairs, "train": train}), variation
        )
        for at, (pairs, mine) in enumerate(zip(test, inside, strict=True)):
            part = _some(pairs, mine)
            forth, back = decide(networks, rows, part)
            decided[at].append(np.vstack([forth, back, part.verdicts]))
        others.append([_mean(networks, rows, material.pairs[k]) for k in ("dev", "train")])
    joined = [np.hstack(some) for some in decided]  # (2 networks + 1, pairs)
    both, listed, together = taus_of([(*np.split(x[:-1], 2), x[-1]) for x in joined])
    wmt13, wmt11 = np.mean(others, axis=0)
    return {"WMT13": wmt13, "WMT12": both, "WMT12, one order": listed,
            "WMT12, together": together[:1], "WMT11": wmt11}  # fmt: skip


def best_weights(
    material: Material, features: Sequence[str], one_order: bool, each: bool
) -> FloatArray:
    """What the best weights of some columns reach on WMT12, (1,)."""
    values = np.hstack([material.columns[name] for name in features]).astype(np.float64)
    values = values / values.std(axis=0)
    sets = []
    for left, right, verdicts in material.pairs["test"]:
        constant = np.ones((len(left), int(one_order)))
        rows = np.hstack([values[left] - values[right], constant])
        sets.append(rows * np.where(verdicts > 0.5, 1.0, -1.0)[:, None])
    groups = [[one] for one in sets] if each else [sets]
    return np.array([np.mean([highest_tau(group) for group in groups])])


def highest_tau(sets: Sequence[FloatArray]) -> float:
    """The highest mean tau x 100 of sets of rows (n, k) over weights w (k,): where row @ w > 0.

    Along any line of weights the rows that are right change at known places, so that the best of
    a line is found exactly; the lines are the axes and random ones, from several starts.
    """
    rows = np.vstack(sets)
    share = np.concatenate([np.full(len(one), 1 / len(one) / len(sets)) for one in sets])
    draws, best = generator(5), 0.0
    for _ in range(STARTS):
        weights = np.abs(draws.normal(size=rows.shape[1]))
        for _ in range(ROUNDS):
            drawn = draws.normal(size=(DIRECTIONS, rows.shape[1]))
            for line in (*np.eye(rows.shape[1]), *drawn):
                weights, reached = _along(rows, share, weights, line)
                best = max(best, reached)
    return 100 * (2 * best - 1)


def _along(
    rows: FloatArray, share: FloatArray, weights: FloatArray, line: FloatArray
) -> tuple[FloatArray, float]:
    """The best weights on a line, and the share of rows that are right there."""
    base, slope = rows @ weights, rows @ line
    moves = np.abs(slope) > 1e-12
    at = -base[moves] / slope[moves]  # where a row changes sides
    order = np.argsort(at)
    gains = np.where(slope[moves] > 0, share[moves], -share[moves])[order]
    start = share[~moves & (base > 0)].sum() + share[moves][slope[moves] < 0].sum()
    reached = start + np.concatenate([[0.0], np.cumsum(gains)])
    edges = np.concatenate([[at[order[0]] - 2], at[order], [at[order[-1]] + 2]])
    middles = (edges[1:] + edges[:-1]) / 2
    # Between two equal edges there is no place to stand.
    best = int(np.argmax(np.where(np.diff(edges) > 1e-12, reached, -np.inf)))
    chosen = weights + middles[best] * line
    return chosen / np.linalg.norm(chosen), float(share[rows @ chosen > 0].sum())


def _some(pairs: Pairs, rows: BoolArray) -> Pairs:
    return Pairs(pairs.left[rows], pairs.right[rows], pairs.verdicts[rows])


def _mean(networks: Sequence[PairwiseNetwork], rows: Rows, sets: Sequence[Pairs]) -> FloatArray:
    """The taus of networks by both orders, as a mean of sets."""
    return taus_of([(*decide(networks, rows, p), p.verdicts) for p in sets])[0]
