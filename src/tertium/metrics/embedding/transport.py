"""Optimal transport between two small sets of vectors, exact or entropic, many problems at once.

    W(C) = min_T sum_ij T_ij C_ij,   T >= 0,  T 1 = 1/rows,  T' 1 = 1/columns

Points of a side weigh the same. Equal numbers of them make an assignment problem, which has a
faster exact solver; every other problem goes to the network simplex of POT. Both let go of Python's
lock, so problems are solved on several cores.
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

from tertium.arrays import Float32Array, FloatArray, IntArray, on_grid
from tertium.arrays import squares as exact_squares
from tertium.encoders.encoder import offsets_of
from tertium.encoders.stream import Chunk
from tertium.errors import TertiumError
from tertium.extras import explain_missing
from tertium.metrics.base.matching import spans
from tertium.runtime import cores

T = TypeVar("T")

SIMPLEX_ROUNDS = 1_000_000  # far more than any two texts need; reaching it is an error
OPTIMAL = 1  # the status of a plan that cannot be improved
SINKHORN_ROUNDS = 10_000
SHARE = 64  # comparisons whose distances are computed together
NEAR = 0.02  # squared distances below this lose too many digits in a float32 product
TINY = np.float32(1e-30)  # keeps a vector of zeros from being divided by zero


@dataclass(frozen=True, kw_only=True, eq=False)
class Transport:
    """A plan (left, right) and what it costs."""

    cost: float
    plan: FloatArray


def unit_distances(left: Float32Array, right: Float32Array) -> FloatArray:
    """Euclidean distances (l, r) of vectors (l, d) and (r, d) scaled to length 1.

    >>> unit_distances(np.eye(2, dtype=np.float32), 3 * np.eye(2, dtype=np.float32)).round(3)
    array([[0.   , 1.414],
           [1.414, 0.   ]])
    """
    both, edges = np.concatenate([left, right]), offsets_of([len(left), len(right)])
    sides = (edges[:1], edges[1:2]), (edges[1:2], edges[2:])
    [found] = _distances(both, on_grid(both), _scales(both), *sides)
    return found


def _scales(vectors: Float32Array) -> Float32Array:
    """One over the length of each vector."""
    lengths = np.sqrt(exact_squares(vectors))
    scales: Float32Array = (1 / np.maximum(lengths, TINY)).astype(np.float32)
    return scales


def exact(costs: FloatArray) -> Transport:
    """The cheapest plan.

    >>> round(exact(np.array([[0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])).cost, 6)
    0.333333
    """
    rows, columns = costs.shape
    if rows == columns:
        return _assign(costs)
    a, b = np.full(rows, 1 / rows), np.full(columns, 1 / columns)
    plan, cost, _, _, status = _simplex()(a, b, costs, SIMPLEX_ROUNDS, 1)
    if status != OPTIMAL:
        raise TertiumError(
            f"the transport of {rows} x {columns} points was not solved (code {status}): "
            "costs must be finite"
        )
    return Transport(cost=float(cost), plan=plan)


def sinkhorn(
    costs: FloatArray, *, regularisation: float = 0.05, tolerance: float = 0.03
) -> Transport:
    """A plan near the one of least cost less `regularisation` x entropy (Cuturi 2013).

    Rows and columns are scaled in turn until the weights are met up to `tolerance`, and the rest
    is moved evenly (Altschuler et al. 2017), so that the plan is a plan and its cost never below
    the exact one. Work grows with the square of the number of points, where the exact solvers'
    grows with the cube: it pays for texts of hundreds of pieces.

    >>> round(sinkhorn(np.array([[0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])).cost, 4)
    0.3333
    """
    rows, columns = costs.shape
    a, b = np.full(rows, 1 / rows), np.full(columns, 1 / columns)
    # Constants taken off a row or column change no plan; so each has an entry that is not tiny.
    reduced = costs - costs.min(axis=1, keepdims=True)
    reduced -= reduced.min(axis=0)
    kernel = np.exp(-reduced / regularisation)
    v = np.full(columns, 1 / columns)
    for number in range(1, SINKHORN_ROUNDS + 1):
        u = a / (kernel * v).sum(axis=1)
        reached = (u[:, None] * kernel).sum(axis=0)
        if number % 5 == 0 and np.abs(v * reached - b).sum() < tolerance:
            break
        v = b / reached
    plan = _complete(u[:, None] * kernel * v, a, b)
    return Transport(cost=float((plan * costs).sum()), plan=plan)


def _complete(plan: FloatArray, left: FloatArray, right: FloatArray) -> FloatArray:
    """A plan that almost meets both weights, with what is missing moved evenly."""
    plan = plan * np.minimum(1, left / plan.sum(axis=1))[:, None]
    plan *= np.minimum(1, right / plan.sum(axis=0))
    here, there = left - plan.sum(axis=1), right - plan.sum(axis=0)
    missing = here.sum()
    return plan + np.outer(here, there) / missing if missing > 0 else plan


def solve_chunk(chunk: Chunk, solve: Callable[[FloatArray], T]) -> list[T]:
    """What `solve` makes of the distances (left, right) between the pieces of each comparison.

    Special tokens are left out. Comparisons are dealt to as many threads as the runtime allows, in
    shares whose distances are computed together.
    """
    starts, stops = spans(chunk.texts)
    scales, exact_vectors = _scales(chunk.texts.vectors), on_grid(chunk.texts.vectors)

    def work(first: int) -> list[T]:
        left, right = chunk.left[first : first + SHARE], chunk.right[first : first + SHARE]
        sides = (starts[left], stops[left]), (starts[right], stops[right])
        found = _distances(chunk.texts.vectors, exact_vectors, scales, *sides)
        return [solve(costs) for costs in found]

    return list(chain.from_iterable(_in_threads(work, range(0, len(chunk), SHARE))))


def _distances(
    vectors: Float32Array,
    wide: FloatArray,
    scales: Float32Array,
    left: tuple[IntArray, IntArray],
    right: tuple[IntArray, IntArray],
) -> list[FloatArray]:
    """What `unit_distances` gives for the rows start:stop of each comparison's two texts.

    An exact product for each comparison (`wide` are the vectors on its grid, `scales` bring rows to
    length 1); everything after it for all of them at once, since numpy takes longer to be called
    than to work on a few hundred numbers. Where two vectors almost agree a product has too few
    digits, and the length of their difference is taken.
    """
    rows, columns = left[1] - left[0], right[1] - right[0]
    edges = offsets_of(rows * columns)
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
    near = np.flatnonzero(squares < NEAR)
    if len(near):
        owners = np.searchsorted(edges, near, side="right") - 1
        place, width = near - edges[owners], columns[owners]
        here, there = left[0][owners] + place // width, right[0][owners] + place % width
        gaps = vectors[here] * scales[here, None] - vectors[there] * scales[there, None]
        result[near] = np.einsum("ij,ij->i", gaps, gaps)
    np.sqrt(result, out=result)
    return [result[begin:end].reshape(r, c) for begin, end, r, c in blocks]


def _in_threads(work: Callable[[int], T], jobs: Iterable[int]) -> Iterator[T]:
    """The results of jobs, in their order, on as many threads as the runtime allows."""
    workers = cores()
    with _one_blas_thread():
        if workers == 1:
            yield from map(work, jobs)
            return
        with ThreadPoolExecutor(workers) as pool:
            yield from pool.map(work, jobs)


def _one_blas_thread() -> AbstractContextManager[object]:
    """Products of a few thousand numbers are over before a second thread has woken up."""
    controller = _blas()
    return nullcontext() if controller is None else controller.limit(limits=1, user_api="blas")


@cache
def _blas() -> Any:
    """Handles of numpy's products, looked up once: that takes longer than a short call."""
    try:
        from threadpoolctl import ThreadpoolController
    except ImportError:
        return None
    return ThreadpoolController()


def _assign(costs: FloatArray) -> Transport:
    """Equal points on both sides: each goes to one whole point."""
    from scipy.optimize import linear_sum_assignment

    rows, columns = linear_sum_assignment(costs)
    plan = np.zeros_like(costs)
    plan[rows, columns] = 1 / len(costs)
    return Transport(cost=float(costs[rows, columns].mean()), plan=plan)


@cache
def _simplex() -> Callable[..., tuple[FloatArray, float, FloatArray, FloatArray, int]]:
    """POT's network simplex, without the checks and conversions of its public face."""
    with explain_missing("exact transport", hint="or choose solver=sinkhorn"):
        from ot.lp.emd_wrap import emd_c
    solver: Callable[..., tuple[FloatArray, float, FloatArray, FloatArray, int]] = emd_c
    return solver
