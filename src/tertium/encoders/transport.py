"""Optimal transport between two small sets of vectors, exact or entropic, many problems at once.

    W(C, a, b) = min_T sum_ij T_ij C_ij,   T >= 0,  T 1 = a,  T' 1 = b

Equal numbers of points that weigh the same make an assignment problem, which has a faster exact
solver; every other problem goes to the network simplex of POT. Both let go of Python's lock, so
problems are solved on several cores.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from itertools import islice
from typing import TypeVar

import numpy as np

from tertium.encoders.embeddings import Float32Array
from tertium.encoders.runtime import current_runtime
from tertium.errors import MissingResourceError, TertiumError
from tertium.scores import FloatArray

T = TypeVar("T")

SIMPLEX_ROUNDS = 1_000_000
OPTIMAL = 1
SINKHORN_ROUNDS = 10_000
NEAR = 0.01  # squared distances below this lose too many digits in a float32 product
SHARE = 64  # problems a thread takes at once


@dataclass(frozen=True, kw_only=True, eq=False)
class Transport:
    """A plan (left, right) and what it costs."""

    cost: float
    plan: FloatArray


def distances(left: Float32Array, right: Float32Array) -> FloatArray:
    """Euclidean distances (left, right) by one matrix product, to six digits or better.

    >>> distances(np.eye(2, dtype=np.float32), np.eye(2, dtype=np.float32)).round(3)
    array([[0.   , 1.414],
           [1.414, 0.   ]])
    """
    squares = (
        np.einsum("ij,ij->i", left, left)[:, None]
        + np.einsum("ij,ij->i", right, right)
        - 2 * (left @ right.T)
    )
    near = np.nonzero(squares < NEAR * max(float(squares.max(initial=0.0)), 1e-30))
    if len(near[0]):
        gap = left[near[0]].astype(np.float64) - right[near[1]]
        squares[near] = np.einsum("ij,ij->i", gap, gap)
    result: FloatArray = np.sqrt(squares.astype(np.float64))
    return result


def exact(
    costs: FloatArray, left: FloatArray | None = None, right: FloatArray | None = None
) -> Transport:
    """The cheapest plan between weights `left` and `right` (each sums to 1; None: all alike).

    >>> round(exact(np.array([[0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])).cost, 6)
    0.333333
    """
    rows, columns = costs.shape
    if rows == columns and left is None and right is None:
        return _assign(costs)
    a = np.full(rows, 1 / rows) if left is None else left
    b = np.full(columns, 1 / columns) if right is None else right
    plan, cost, _, _, status = _simplex()(a, b, costs, SIMPLEX_ROUNDS, 1)
    if status != OPTIMAL:
        raise TertiumError(
            f"the transport of {rows} x {columns} points was not solved (code {status}): "
            "weights must be positive and sum to 1, costs finite"
        )
    return Transport(cost=float(cost), plan=plan)


def sinkhorn(
    costs: FloatArray,
    left: FloatArray | None = None,
    right: FloatArray | None = None,
    *,
    regularisation: float = 0.05,
    tolerance: float = 0.03,
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
    a = np.full(rows, 1 / rows) if left is None else left
    b = np.full(columns, 1 / columns) if right is None else right
    # Constants taken off a row or column change no plan; so each has an entry that is not tiny.
    reduced = costs - costs.min(axis=1, keepdims=True)
    reduced -= reduced.min(axis=0)
    kernel = np.exp(-reduced / regularisation)
    v = np.full(columns, 1 / columns)
    for number in range(1, SINKHORN_ROUNDS + 1):
        u = a / (kernel @ v)
        reached = u @ kernel
        if number % 5 == 0 and np.abs(v * reached - b).sum() < tolerance:
            break
        v = b / reached
    plan = _completed(u[:, None] * kernel * v, a, b)
    return Transport(cost=float((plan * costs).sum()), plan=plan)


def _completed(plan: FloatArray, left: FloatArray, right: FloatArray) -> FloatArray:
    """A plan that almost meets both weights, with what is missing moved evenly."""
    plan = plan * np.minimum(1, left / plan.sum(axis=1))[:, None]
    plan *= np.minimum(1, right / plan.sum(axis=0))
    here, there = left - plan.sum(axis=1), right - plan.sum(axis=0)
    missing = here.sum()
    return plan + np.outer(here, there) / missing if missing > 0 else plan


def solve_all(
    problems: Iterable[FloatArray], solve: Callable[[FloatArray], T]
) -> Iterator[T]:
    """Solve problems on as many threads as the runtime allows, in their order.

    Problems are taken as they are needed, so that few of them are in memory at a time.
    """
    workers = current_runtime().threads or os.cpu_count() or 1
    if workers == 1:
        yield from map(solve, problems)
        return
    stream = iter(problems)
    with ThreadPoolExecutor(workers) as pool:
        pending: deque[Future[list[T]]] = deque()
        while True:
            while len(pending) < 2 * workers and (share := list(islice(stream, SHARE))):
                pending.append(pool.submit(lambda some: [solve(c) for c in some], share))
            if not pending:
                return
            yield from pending.popleft().result()


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
    try:
        from ot.lp.emd_wrap import emd_c
    except ImportError:
        raise MissingResourceError(
            "exact transport needs the package POT: pip install 'tertium[neural]' "
            "(or choose solver=sinkhorn)"
        ) from None
    solver: Callable[..., tuple[FloatArray, float, FloatArray, FloatArray, int]] = emd_c
    return solver
