"""Exact optimal transport between two small sets of vectors.

    W(C) = min_T sum_ij T_ij C_ij,   T >= 0,  T 1 = 1/rows,  T' 1 = 1/columns

All points of a side have the same weight. Sides of equal size make an assignment problem, which has
a faster exact solver; all other problems go to the network simplex of POT. Both release the GIL, so
problems are solved on several cores.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import cache
from itertools import chain
from typing import Any, TypeVar

import numpy as np

from tertium.core.arrays import Float32Array, FloatArray, IntArray, round_to_grid
from tertium.core.arrays import exact_squared_norms as exact_squares
from tertium.core.errors import TertiumError
from tertium.core.extras import explain_missing
from tertium.core.runtime import usable_cores
from tertium.encoders.cached_encoding import Chunk
from tertium.encoders.encoder import offsets_from_lengths
from tertium.metrics.base.greedy_matching import piece_ranges

T = TypeVar("T")

MAX_SIMPLEX_ITERATIONS = 1_000_000  # far more than any two texts need; reaching it is an error
OPTIMAL = 1  # solver status
PAIRS_PER_BATCH = 64  # whose distances are computed together
MIN_PRODUCT_SQUARE = 0.02  # smaller squared distances lose too many digits in a float32 product
TINY = np.float32(1e-30)  # avoids division by zero for zero vectors


@dataclass(frozen=True, kw_only=True, eq=False)
class Transport:
    """A transport plan (left, right) and its cost."""

    cost: float
    plan: FloatArray


def unit_distances(left: Float32Array, right: Float32Array) -> FloatArray:
    """Return the Euclidean distances (l, r) of vectors (l, d) and (r, d) scaled to length 1.

    >>> unit_distances(np.eye(2, dtype=np.float32), 3 * np.eye(2, dtype=np.float32)).round(3)
    array([[0.   , 1.414],
           [1.414, 0.   ]])
    """
    both, edges = np.concatenate([left, right]), offsets_from_lengths([len(left), len(right)])
    sides = (edges[:1], edges[1:2]), (edges[1:2], edges[2:])
    [distances] = _batch_distances(both, round_to_grid(both), _inverse_lengths(both), *sides)
    return distances


def _inverse_lengths(vectors: Float32Array) -> Float32Array:
    lengths = np.sqrt(exact_squares(vectors))
    return (1 / np.maximum(lengths, TINY)).astype(np.float32)


def solve_exact(costs: FloatArray) -> Transport:
    """Return the plan of minimum cost.

    >>> round(solve_exact(np.array([[0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])).cost, 6)
    0.333333
    """
    rows, columns = costs.shape
    if rows == columns:
        return _solve_assignment(costs)
    a, b = np.full(rows, 1 / rows), np.full(columns, 1 / columns)
    plan, cost, _, _, status = _load_simplex()(a, b, costs, MAX_SIMPLEX_ITERATIONS, 1)
    if status != OPTIMAL:
        raise TertiumError(
            f"optimal transport of {rows} x {columns} points failed (status {status}): costs must "
            "be finite"
        )
    return Transport(cost=float(cost), plan=plan)


def map_distances(chunk: Chunk, solve: Callable[[FloatArray], T]) -> list[T]:
    """Apply `solve` to the token distances (left, right) of each pair, in parallel threads."""
    starts, stops = piece_ranges(chunk.embeddings)
    scales = _inverse_lengths(chunk.embeddings.vectors)
    exact_vectors = round_to_grid(chunk.embeddings.vectors)

    def work(first: int) -> list[T]:
        left = chunk.left[first : first + PAIRS_PER_BATCH]
        right = chunk.right[first : first + PAIRS_PER_BATCH]
        sides = (starts[left], stops[left]), (starts[right], stops[right])
        distances = _batch_distances(chunk.embeddings.vectors, exact_vectors, scales, *sides)
        return [solve(costs) for costs in distances]

    return list(chain.from_iterable(_in_threads(work, range(0, len(chunk), PAIRS_PER_BATCH))))


def _batch_distances(
    vectors: Float32Array,
    wide: FloatArray,
    scales: Float32Array,
    left: tuple[IntArray, IntArray],
    right: tuple[IntArray, IntArray],
) -> list[FloatArray]:
    """Return `unit_distances` of many pairs, given the rows start:stop of their texts.

    `wide` are the vectors rounded for exact products, `scales` their inverse lengths. Each pair
    gets its own product; all further steps run on all pairs at once, to save numpy calls. Nearly
    equal vectors would lose digits in a product, so their difference is computed directly.
    """
    rows, columns = left[1] - left[0], right[1] - right[0]
    edges = offsets_from_lengths(rows * columns)
    squares = np.empty(int(edges[-1]), dtype=np.float32)
    blocks = []
    for begin, end, i, j, k, m in zip(
        *(numbers.tolist() for numbers in (edges[:-1], edges[1:], *left, *right)), strict=True
    ):
        block = squares[begin:end].reshape(j - i, m - k)
        block[:] = wide[i:j] @ wide[k:m].T
        block *= scales[i:j, None]
        block *= scales[k:m]
        blocks.append((begin, end, j - i, m - k))
    squares *= -2
    squares += 2
    result: FloatArray = squares.astype(np.float64)
    near = np.flatnonzero(squares < MIN_PRODUCT_SQUARE)
    if len(near):
        owners = np.searchsorted(edges, near, side="right") - 1
        place, width = near - edges[owners], columns[owners]
        here, there = left[0][owners] + place // width, right[0][owners] + place % width
        gaps = vectors[here] * scales[here, None] - vectors[there] * scales[there, None]
        result[near] = np.einsum("ij,ij->i", gaps, gaps)
    np.sqrt(result, out=result)
    return [result[begin:end].reshape(r, c) for begin, end, r, c in blocks]


def _in_threads(work: Callable[[int], T], jobs: Iterable[int]) -> Iterator[T]:
    """Yield the results of jobs in order, using as many threads as the runtime allows."""
    workers = usable_cores()
    with _one_blas_thread():
        if workers == 1:
            yield from map(work, jobs)
            return
        with ThreadPoolExecutor(workers) as pool:
            yield from pool.map(work, jobs)


def _one_blas_thread() -> AbstractContextManager[object]:
    """Limit BLAS to one thread: these products are too small for more."""
    controller = _blas_controller()
    return nullcontext() if controller is None else controller.limit(limits=1, user_api="blas")


@cache
def _blas_controller() -> Any:
    """Return the handles of the BLAS libraries; looking them up is slow."""
    try:
        from threadpoolctl import ThreadpoolController
    except ImportError:
        return None
    return ThreadpoolController()


def _solve_assignment(costs: FloatArray) -> Transport:
    """Solve a square problem: each point is moved to exactly one point."""
    from scipy.optimize import linear_sum_assignment

    rows, columns = linear_sum_assignment(costs)
    plan = np.zeros_like(costs)
    plan[rows, columns] = 1 / len(costs)
    return Transport(cost=float(costs[rows, columns].mean()), plan=plan)


@cache
def _load_simplex() -> Callable[..., tuple[FloatArray, float, FloatArray, FloatArray, int]]:
    """Return POT's network simplex without the checks and conversions of its public API."""
    with explain_missing("optimal transport"):
        from ot.lp.emd_wrap import emd_c
    solver: Callable[..., tuple[FloatArray, float, FloatArray, FloatArray, int]] = emd_c
    return solver
