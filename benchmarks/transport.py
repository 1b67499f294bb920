"""Exact Word Mover's Distance beside one call a pair on the joint matrix, as MoverScore makes it.

    python -m benchmarks transport [--pairs 1000] [--encoder minilm@4]

The peer puts the pieces of both texts into one set, computes all distances in it, and gives each
side the weight zero on the other's pieces; POT solves that, and pyemd where it is installed. Then
come POT on the distances between the two texts alone, ours on one thread and on all, and Sinkhorn
by length of text. Encoding is left out of every figure. A figure is the best of three by
processor seconds.
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
from tertium.encoders import Chunk, iter_chunks, load_encoder
from tertium.execution import runtime
from tertium.metrics.base.greedy_matching import normalize_rows, piece_ranges
from tertium.metrics.embedding.optimal_transport import (
    map_distances,
    solve_exact,
    solve_sinkhorn,
    unit_distances,
)
from tertium.metrics.embedding.wmd import WMD

Pair = tuple[np.ndarray, np.ndarray]
LENGTHS = (25, 50, 100, 200, 400)


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, default=1000)
    parser.add_argument("--encoder", default="minilm@4")
    args = parser.parse_args(arguments)
    chunk = read_chunk(args.encoder, args.pairs)
    pairs = pairs_of(chunk)
    sizes = [np.mean([len(side) for side in sides]) for sides in zip(*pairs, strict=True)]
    print(f"{len(pairs)} pairs of {sizes[0]:.0f} x {sizes[1]:.0f} pieces, {args.encoder}")
    base = best_of(lambda: [joint_pot(*pair) for pair in pairs])
    report("POT, joint matrix", base, base)
    if (solver := joint_pyemd()) is not None:
        report("pyemd, joint matrix", best_of(lambda: [solver(*pair) for pair in pairs]), base)
    report("POT, left x right", best_of(lambda: [plain_pot(*pair) for pair in pairs]), base)
    for threads in dict.fromkeys((1, os.cpu_count() or 1)):
        with runtime(threads=threads):
            ours = best_of(lambda: map_distances(chunk, WMD().distance))
        report(f"tertium, {threads} threads", ours, base)
        worst = np.abs(np.array(ours.value) - base.value).max()
        print(f"{'':24}largest difference {worst:.1e}")
    compare_solvers(pairs)


def read_chunk(encoder: str, count: int) -> Chunk:
    """The first comparisons of one system with the reference, in one chunk."""
    testset = wmt17(count)
    hypotheses = next(iter(testset.systems.values()))
    references = [row[0] for row in testset.references]
    loaded = load_encoder(encoder)
    return next(iter_chunks(loaded, hypotheses, references))


def pairs_of(chunk: Chunk) -> list[Pair]:
    vectors = normalize_rows(chunk.embeddings.vectors)
    starts, stops = piece_ranges(chunk.embeddings)
    return [
        (vectors[starts[i] : stops[i]], vectors[starts[j] : stops[j]])
        for i, j in zip(chunk.left, chunk.right, strict=True)
    ]


def joint_problem(left: np.ndarray, right: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Both texts' pieces as one set: two weightings of it and all distances in it."""
    joined = np.concatenate([left, right]).astype(np.float64)
    squares = (joined**2).sum(axis=1)
    costs = np.sqrt(np.maximum(squares[:, None] + squares - 2 * joined @ joined.T, 0))
    weights = np.zeros((2, len(joined)))
    weights[0, : len(left)], weights[1, len(left) :] = 1 / len(left), 1 / len(right)
    return weights[0], weights[1], costs


def joint_pot(left: np.ndarray, right: np.ndarray) -> float:
    return float(ot.emd2(*joint_problem(left, right)))


def joint_pyemd() -> Callable[[np.ndarray, np.ndarray], float] | None:
    try:
        from pyemd import emd
    except ImportError:
        return None
    return lambda left, right: float(emd(*joint_problem(left, right)))


def plain_pot(left: np.ndarray, right: np.ndarray) -> float:
    return float(ot.emd2([], [], unit_distances(left, right)))


def report(label: str, found: Measurement[Any], base: Measurement[Any]) -> None:
    each, work = (t / len(found.value) * 1e6 for t in (found.seconds, found.processor))
    print(
        f"{label:24}{each:9.0f} us a pair {base.seconds / found.seconds:7.1f} x"
        f"{work:9.0f} us of processors {base.processor / found.processor:7.1f} x"
        f"{found.megabytes:6.0f} MB",
        flush=True,
    )


def compare_solvers(pairs: list[Pair]) -> None:
    """Where Sinkhorn begins to pay: texts of growing length, made of the pairs' own pieces."""
    left, right = (np.concatenate(sides) for sides in zip(*pairs[:100], strict=True))
    for length in LENGTHS:
        problems = [
            unit_distances(left[start : start + length], right[start : start + length + 2])
            for start in range(0, min(5 * length, len(left) - length), length)
        ]
        slow, fast = (
            best_of(lambda: [solve(c).cost for c in problems])  # noqa: B023
            for solve in (
                solve_exact,
                lambda c: solve_sinkhorn(c, regularisation=WMD.regularisation),
            )
        )
        gap = np.max(np.array(fast.value) - slow.value)
        print(
            f"{length:4} pieces: exact {slow.seconds / len(problems) * 1e3:8.2f} ms, "
            f"sinkhorn {fast.seconds / len(problems) * 1e3:8.2f} ms, at most {gap:.3f} above"
        )


if __name__ == "__main__":
    main()
