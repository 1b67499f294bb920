"""Training of the pairwise network: scaled inputs, Adagrad over small batches, the best epoch kept.

Guzmán et al. 2015, section 4.4. The epoch with the highest strict tau on held-out comparisons is
kept, the latest of those that tie. Networks that differ in their seed are trained side by side, in
the same products, each with its own start and its own order of the data: five cost little more than
one, and each is what it would be alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, Literal

import numpy as np

from tertium.arrays import IntArray
from tertium.errors import DataError
from tertium.metrics.pairwise.network import (
    Array,
    Cost,
    Inputs,
    PairwiseNetwork,
    Rows,
    Weights,
    gradient_of,
    inputs_of,
)
from tertium.models.options import Options
from tertium.runtime import task
from tertium.specs import Range

Scaling = Literal["minmax", "standard"]
BLOCK = 2048  # pairs whose inputs are gathered at a time
FARTHEST = 4.0  # standard deviations a standardised input may count from its mean
TINY = 1e-8  # a spread below is a constant input; Adagrad starts here, not to divide by zero


@dataclass(frozen=True, kw_only=True)
class PairwiseOptions(Options):
    """How to train; the defaults are the published ones but for `patience`."""

    rate: Annotated[float, Range(0, above=True), "step of Adagrad"] = 0.01
    kendall_rate: Annotated[float, Range(0), "step under Kendall's cost (0: --rate)"] = 0.0
    batch_size: Annotated[int, Range(1), "comparisons of a step"] = 30
    decay: Annotated[float, Range(0), "decay of weights"] = 1e-4
    epochs: Annotated[int, Range(1), "epochs of each cost, at most"] = 10_000
    patience: Annotated[int, Range(0), "epochs without a better one before it stops (0: never)"] = (
        100
    )
    order: Annotated[
        Literal["given", "random"], "in which order a pair is shown, in each epoch"
    ] = "given"
    choose_on: Annotated[int, Range(0), "comparisons drawn to choose by (0: all given)"] = field(
        default=0, repr=False
    )
    seed: Annotated[int, Range(0), "of everything random"] = 0

    def rate_of(self, cost: Cost) -> float:
        """The rate under a cost."""
        return (self.kendall_rate if cost == "kendall" else 0.0) or self.rate


@dataclass(frozen=True, kw_only=True, eq=False)
class Comparisons:
    """Human comparisons of rows, ties left out: `left` and `right` (n,), `verdicts` 1 or 0 (n,)."""

    rows: Rows
    left: IntArray
    right: IntArray
    verdicts: Array

    def __post_init__(self) -> None:
        if not len(self.verdicts):
            raise DataError("there is no comparison to learn from: ties do not count as such")

    def __len__(self) -> int:
        return len(self.verdicts)

    def tau(self, network: PairwiseNetwork) -> float:
        """(concordant - discordant - ties) / all, of the mean over both orders of each pair."""
        chances = network.prefer(self.rows, self.left, self.right)
        agrees = np.where(self.verdicts > 0.5, chances > 0.5, chances < 0.5)
        return float(2 * agrees.mean() - 1)


@dataclass(frozen=True, kw_only=True, eq=False)
class Scaler:
    """Maps each input to about [-1, 1]: (x - centre) / spread, cut at `farthest` either way.

    `minmax` puts the smallest and largest value of the training data at -1 and 1 and cuts nothing,
    as published; `standard` takes mean and deviation, which one outlier cannot squeeze.
    """

    centre: Mapping[str, Array]
    spread: Mapping[str, Array]
    farthest: float

    @classmethod
    def fit(cls, rows: Rows, scaling: Scaling) -> Scaler:
        """The scales of training rows; a text's vectors and its anchor's are scaled alike."""
        both = np.vstack([rows.vectors, rows.anchors])
        scales = {"vectors": _scale(both, scaling), "features": _scale(rows.features, scaling)}
        return cls(
            centre={name: centre for name, (centre, _) in scales.items()},
            spread={name: spread for name, (_, spread) in scales.items()},
            farthest=FARTHEST if scaling == "standard" else float("inf"),
        )

    def __call__(self, rows: Rows) -> Rows:
        return Rows(
            vectors=self._apply(rows.vectors, "vectors"),
            anchors=self._apply(rows.anchors, "vectors"),
            features=self._apply(rows.features, "features"),
        )

    def _apply(self, values: Array, kind: str) -> Array:
        scaled = (values - self.centre[kind]) / self.spread[kind]
        limited: Array = np.clip(scaled, -self.farthest, self.farthest).astype(np.float32)
        return limited


def _scale(values: Array, scaling: Scaling) -> tuple[Array, Array]:
    if scaling == "standard":
        centre, spread = values.mean(axis=0), values.std(axis=0)
    else:
        low, high = values.min(axis=0, initial=np.inf), values.max(axis=0, initial=-np.inf)
        centre, spread = (high + low) / 2, (high - low) / 2
    spread = np.where(spread > TINY, spread, 1.0)
    return centre.astype(np.float32), spread.astype(np.float32)


@dataclass(frozen=True, kw_only=True, eq=False)
class Learned:
    """A trained network, its tau on the held-out comparisons, and the epoch that was kept."""

    network: PairwiseNetwork
    tau: float
    epoch: int
    history: tuple[float, ...]


def train_networks(
    data: Comparisons,
    held_out: Comparisons,
    *,
    hidden: int,
    costs: tuple[Cost, ...],
    options: PairwiseOptions,
    seeds: Sequence[int],
) -> list[Learned]:
    """Train a network from each seed by each cost in turn, going on from the best epoch before."""
    generators = [np.random.default_rng(seed) for seed in seeds]
    width, features = data.rows.widths
    starts = [
        PairwiseNetwork.start(hidden=hidden, width=width, features=features, generator=generator)
        for generator in generators
    ]
    learned = [Learned(network=n, tau=-np.inf, epoch=0, history=()) for n in starts]
    for cost in costs:
        learned = _train_by(cost, data, held_out, learned, options, generators)
    return learned


def _train_by(
    cost: Cost,
    data: Comparisons,
    held_out: Comparisons,
    before: Sequence[Learned],
    options: PairwiseOptions,
    generators: Sequence[np.random.Generator],
) -> list[Learned]:
    """Go on until no network had a better tau for as long as the options say."""
    best, waited = list(before), [0] * len(before)
    weights = _stack([learned.network for learned in before])
    optimiser = Adagrad(weights, options.rate_of(cost))
    with task(f"training ({cost})", total=options.epochs) as advance:
        for _ in range(options.epochs):
            _epoch(weights, best[0].network.hidden, cost, data, options, optimiser, generators)
            for n, learned in enumerate(best):
                if options.patience and waited[n] >= options.patience:
                    continue
                own = Weights(weights.inner[n].copy(), weights.outer[n].copy())
                best[n] = _choose_epoch(learned, replace(learned.network, weights=own), held_out)
                waited[n] = 0 if best[n].tau > learned.tau else waited[n] + 1
            advance(1)
            if options.patience and min(waited) >= options.patience:
                break
    return best


def _choose_epoch(learned: Learned, network: PairwiseNetwork, held_out: Comparisons) -> Learned:
    """What is kept after another epoch: its network if its tau is not lower."""
    tau = held_out.tau(network)
    history = (*learned.history, tau)
    if tau < learned.tau:
        return replace(learned, history=history)
    return Learned(network=network, tau=tau, epoch=len(history), history=history)


def _stack(networks: Sequence[PairwiseNetwork]) -> Weights:
    """The weights of several networks side by side, `inner` (s, 3d + 1, 3h), `outer` (s, m)."""
    return Weights(
        np.stack([n.weights.inner for n in networks]), np.stack([n.weights.outer for n in networks])
    )


def _epoch(
    weights: Weights,
    hidden: int,
    cost: Cost,
    data: Comparisons,
    options: PairwiseOptions,
    optimiser: Adagrad,
    generators: Sequence[np.random.Generator],
) -> None:
    """Change the weights of all networks: each sees every comparison once, in its own order."""
    shown = [_shuffle(data, options, generator) for generator in generators]
    size = BLOCK - BLOCK % options.batch_size or options.batch_size
    for start in range(0, len(data), size):
        block = slice(start, start + size)
        parts = [inputs_of(data.rows, first[block], second[block]) for first, second, _ in shown]
        z, psi = np.stack([p.z for p in parts]), np.stack([p.psi for p in parts])
        said = np.stack([verdicts[block] for _, _, verdicts in shown])
        for at in range(0, said.shape[1], options.batch_size):
            part = slice(at, at + options.batch_size)
            batch = Inputs(z[:, part], psi[:, part])
            gradient = gradient_of(weights, batch, said[:, part], hidden, cost, options.decay)
            optimiser.step(weights, gradient)


def _shuffle(
    data: Comparisons, options: PairwiseOptions, generator: np.random.Generator
) -> tuple[IntArray, IntArray, Array]:
    """All comparisons in a random order, as given or each in a random order of its two sides."""
    order = generator.permutation(len(data))
    turned = generator.random(len(data)) < (0.5 if options.order == "random" else 0.0)
    first = np.where(turned, data.right, data.left)[order]
    second = np.where(turned, data.left, data.right)[order]
    verdicts = np.where(turned, 1 - data.verdicts, data.verdicts)[order]
    return first, second, verdicts.astype(np.float32)


class Adagrad:
    """w -= rate g / sqrt(sum of all g^2 so far), in place (Duchi et al. 2011)."""

    def __init__(self, weights: Weights, rate: float) -> None:
        self.rate = np.float32(rate)
        self.sums = [np.full_like(array, TINY) for array in weights]

    def step(self, weights: Weights, gradient: Weights) -> None:
        for array, slope, total in zip(weights, gradient, self.sums, strict=True):
            total += slope * slope
            array -= self.rate * slope / np.sqrt(total)
