"""The pairwise network: one epoch on WMT11, and ranking all pairs of a WMT12 language pair.

Inputs are random numbers of the real sizes, so the figures are those of the network alone: texts
are converted to inputs once and cached on disk. Seconds are CPU seconds.
"""

from __future__ import annotations

import numpy as np

from benchmarks.measure import measure
from tertium.metrics.pairwise.neural_ranker import PairwiseOptions
from tertium.metrics.pairwise.ranker_training import ComparedRows, train_network
from tertium.metrics.pairwise.ranking_network import PairwiseNetwork, Rows

SHAPES = (
    ("published, 75 + 4 inputs", 75, 4, 4),
    ("pairwise-minilm, 48 + 70 inputs", 48, 70, 4),
    ("pairwise, 3 inputs", 0, 3, 0),
)
TEXTS, PAIRS = 7_943, 19_033  # of WMT11 into English, ties left out
SEGMENTS, SYSTEMS = 3_003, 16


def random_rows(count: int, width: int, features: int) -> Rows:
    """Return random input rows."""
    generator = np.random.default_rng(0)
    return Rows(
        vectors=generator.normal(size=(count, width)).astype(np.float32),
        anchors=generator.normal(size=(count, width)).astype(np.float32),
        features=generator.normal(size=(count, features)).astype(np.float32),
    )


def time_training(width: int, features: int, hidden: int) -> str:
    """Return seconds per epoch, with dev tau."""
    generator = np.random.default_rng(1)
    left, right = generator.integers(0, TEXTS, (2, PAIRS))
    verdicts = generator.integers(0, 2, PAIRS).astype(np.float32)
    data = ComparedRows(
        rows=random_rows(TEXTS, width, features), left=left, right=right, verdicts=verdicts
    )
    options = PairwiseOptions(epochs=5, patience=0)

    def train() -> object:
        return train_network(data, data, hidden=hidden, costs=("logistic",), options=options)

    return f"{measure(train).cpu_seconds / 5:.3f} s per epoch of {PAIRS:,} comparisons"


def time_ranking(width: int, features: int, hidden: int) -> str:
    """Return pairs per second, in both orders."""
    network = PairwiseNetwork.start(
        hidden=hidden, width=width, features=features, generator=np.random.default_rng(2)
    )
    table = random_rows(SEGMENTS * SYSTEMS, width, features)
    first, second = np.triu_indices(SYSTEMS, 1)
    starts = SYSTEMS * np.arange(SEGMENTS)[:, None]
    left, right = (starts + first).ravel(), (starts + second).ravel()
    measurement = measure(lambda: network.prefer(table, left, right))
    speed = len(left) / measurement.cpu_seconds
    return f"{len(left):,} pairs in {measurement.cpu_seconds:.2f} s: {speed:,.0f} per second"


def main() -> None:
    for label, *shape in SHAPES:
        print(f"{label}: {time_training(*shape)}; {time_ranking(*shape)}")
