"""The pairwise network: an epoch of training on WMT11, and all pairs of a WMT12 language pair.

Inputs are random numbers of the true sizes, so that the figures are those of the network alone:
texts become inputs once, and are kept on disk. Seconds are those of one processor.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from benchmarks.measure import measure
from tertium.metrics.pairwise.network import PairwiseNetwork, Rows
from tertium.metrics.pairwise.options import PairwiseOptions
from tertium.metrics.pairwise.training import Comparisons, train_networks

SHAPES = (
    ("published, 75 + 4 inputs", 75, 4, 4),
    ("pairwise-minilm, 48 + 70 inputs", 48, 70, 4),
    ("pairwise, 3 inputs", 0, 3, 0),
)
SEEDS = (0, 1, 2, 3, 4)
TEXTS, PAIRS = 7_943, 19_033  # of WMT11 into English, ties left out
SEGMENTS, SYSTEMS = 3_003, 16


def rows(count: int, width: int, features: int) -> Rows:
    """Random rows."""
    generator = np.random.default_rng(0)
    return Rows(
        vectors=generator.normal(size=(count, width)).astype(np.float32),
        anchors=generator.normal(size=(count, width)).astype(np.float32),
        features=generator.normal(size=(count, features)).astype(np.float32),
    )


def training(width: int, features: int, hidden: int) -> str:
    """Seconds an epoch, with the development tau after it, of one network and of five at once."""
    generator = np.random.default_rng(1)
    left, right = generator.integers(0, TEXTS, (2, PAIRS))
    verdicts = generator.integers(0, 2, PAIRS).astype(np.float32)
    data = Comparisons(rows=rows(TEXTS, width, features), left=left, right=right, verdicts=verdicts)
    options = PairwiseOptions(epochs=5, patience=0)

    def train(seeds: tuple[int, ...]) -> object:
        return train_networks(
            data, data, hidden=hidden, costs=("logistic",), options=options, seeds=seeds
        )

    one, five = (measure(partial(train, seeds)).processor / 5 for seeds in (SEEDS[:1], SEEDS))
    return f"{one:.3f} s an epoch of {PAIRS:,} comparisons, {five:.3f} s for five networks"


def ranking(width: int, features: int, hidden: int) -> str:
    """Pairs a second, both orders of each."""
    network = PairwiseNetwork.start(
        hidden=hidden, width=width, features=features, generator=np.random.default_rng(2)
    )
    table = rows(SEGMENTS * SYSTEMS, width, features)
    first, second = np.triu_indices(SYSTEMS, 1)
    starts = SYSTEMS * np.arange(SEGMENTS)[:, None]
    left, right = (starts + first).ravel(), (starts + second).ravel()
    done = measure(lambda: network.prefer(table, left, right))
    speed = len(left) / done.processor
    return f"{len(left):,} pairs in {done.processor:.2f} s: {speed:,.0f} a second"


def main() -> None:
    for label, *shape in SHAPES:
        print(f"{label}: {training(*shape)}; {ranking(*shape)}")


if __name__ == "__main__":
    main()
