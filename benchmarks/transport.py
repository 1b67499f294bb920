"""Exact Word Mover's Distance compared with one POT call per pair, as in MoverScore.

    python -m benchmarks transport [--pairs 1000] [--encoder minilm@4]

The baseline joins the pieces of both texts, computes all distances, and gives each side zero weight
on the other side's pieces; POT solves that, and pyemd if it is installed. Then follow POT on the
distances between the texts alone and tertium on one thread and on all.
Encoding is excluded. Each figure is the best of three by CPU seconds.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable
from typing import Any

import numpy as np
import ot

from benchmarks.corpus import wmt17
from benchmarks.measure import Measurement, best_of
from tertium.core.runtime import runtime
from tertium.encoders import Chunk, iter_chunks, load_encoder
from tertium.metrics.base.greedy_matching import normalize_rows, piece_ranges
from tertium.metrics.embedding.optimal_transport import (
    WMD,
    map_distances,
    unit_distances,
)

Pair = tuple[np.ndarray, np.ndarray]


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, default=1000)
    parser.add_argument("--encoder", default="minilm@4")
    args = parser.parse_args(arguments)
    chunk = encode_pairs(args.encoder, args.pairs)
    pairs = piece_pairs(chunk)
    sizes = [np.mean([len(side) for side in sides]) for sides in zip(*pairs, strict=True)]
    print(f"{len(pairs)} pairs of {sizes[0]:.0f} x {sizes[1]:.0f} pieces, {args.encoder}")
    base = best_of(lambda: [pot_joint(*pair) for pair in pairs])
    print_time("POT, joint matrix", base, base)
    if (solver := pyemd_joint()) is not None:
        print_time("pyemd, joint matrix", best_of(lambda: [solver(*pair) for pair in pairs]), base)
    print_time("POT, left x right", best_of(lambda: [pot_distances(*pair) for pair in pairs]), base)
    for threads in dict.fromkeys((1, os.cpu_count() or 1)):
        with runtime(threads=threads):
            ours = best_of(lambda: map_distances(chunk, WMD().distance))
        print_time(f"tertium, {threads} threads", ours, base)
        worst = np.abs(np.array(ours.value) - base.value).max()
        print(f"{'':24}largest difference {worst:.1e}")


def encode_pairs(encoder: str, count: int) -> Chunk:
    """Encode the first pairs of one system and the reference in one chunk."""
    testset = wmt17(count)
    hypotheses = next(iter(testset.systems.values()))
    references = [row[0] for row in testset.references]
    loaded = load_encoder(encoder)
    return next(iter_chunks(loaded, hypotheses, references))


def piece_pairs(chunk: Chunk) -> list[Pair]:
    vectors = normalize_rows(chunk.embeddings.vectors)
    starts, stops = piece_ranges(chunk.embeddings)
    return [
        (vectors[starts[i] : stops[i]], vectors[starts[j] : stops[j]])
        for i, j in zip(chunk.left, chunk.right, strict=True)
    ]


def joint_problem(left: np.ndarray, right: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return both weightings and all distances of the joined pieces of two texts."""
    joined = np.concatenate([left, right]).astype(np.float64)
    squares = (joined**2).sum(axis=1)
    costs = np.sqrt(np.maximum(squares[:, None] + squares - 2 * joined @ joined.T, 0))
    weights = np.zeros((2, len(joined)))
    weights[0, : len(left)], weights[1, len(left) :] = 1 / len(left), 1 / len(right)
    return weights[0], weights[1], costs


def pot_joint(left: np.ndarray, right: np.ndarray) -> float:
    return float(ot.emd2(*joint_problem(left, right)))


def pyemd_joint() -> Callable[[np.ndarray, np.ndarray], float] | None:
    try:
        from pyemd import emd
    except ImportError:
        return None
    return lambda left, right: float(emd(*joint_problem(left, right)))


def pot_distances(left: np.ndarray, right: np.ndarray) -> float:
    return float(ot.emd2([], [], unit_distances(left, right)))


def print_time(label: str, measurement: Measurement[Any], base: Measurement[Any]) -> None:
    each, work = (
        t / len(measurement.value) * 1e6 for t in (measurement.seconds, measurement.cpu_seconds)
    )
    print(
        f"{label:24}{each:9.0f} us per pair {base.seconds / measurement.seconds:7.1f} x"
        f"{work:9.0f} us CPU {base.cpu_seconds / measurement.cpu_seconds:7.1f} x"
        f"{measurement.megabytes:6.0f} MB",
        flush=True,
    )
