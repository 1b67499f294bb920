"""Tie-aware system scores (Padó et al. 2009): how often a system is best, or nearly so."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike

from tertium.core.arrays import FloatArray, divide
from tertium.core.errors import DataError, UsageError
from tertium.meta.agreement import Agreement, spearman, to_float_array


def find_tie_epsilon(scores: ArrayLike, rate: float) -> float:
    """Find the smallest epsilon for which ties for first place are at least as frequent as `rate`.

    The second-best system ties with the best if it is at most epsilon worse.

    >>> find_tie_epsilon([[9, 9, 9, 9], [8, 7, 6, 5]], rate=0.5)
    2.0
    """
    if not 0.0 <= rate <= 1.0:
        raise UsageError(f"the tie rate must be between 0 and 1, got {rate}")
    gaps = np.sort(_first_place_margins(to_float_array(scores, "scores")))
    gaps = gaps[~np.isnan(gaps)]
    if not len(gaps):
        raise DataError("no segment has two scored systems: ties for first place are undefined")
    needed = int(np.ceil(rate * len(gaps) - 1e-9))  # the product may round above an integer
    return float(gaps[needed - 1]) if needed else 0.0


def tie_aware_scores(scores: ArrayLike, epsilon: float = 0.0) -> FloatArray:
    """Return each system's share of segments where it is at most epsilon below the best.

    This is the tie-aware system score of Pado et al. 2009, (systems,).

    >>> tie_aware_scores([[9, 9, 9, 9], [8, 7, 6, 5]], epsilon=2)
    array([1. , 0.5])
    """
    matrix = to_float_array(scores, "scores")
    present = ~np.isnan(matrix)
    best = np.where(present, matrix, -np.inf).max(axis=0, initial=-np.inf)
    near = present & (best - np.where(present, matrix, 0.0) <= epsilon)
    return divide(near.sum(axis=1), present.sum(axis=1))


def tie_aware_spearman(
    human_systems: ArrayLike, scores: ArrayLike, *, tie_rate: float
) -> Agreement:
    """Compute Spearman's rho of human system scores and tie-aware predictions (Pado et al. 2009).

    `human_systems` is (systems,), `scores` (..., systems, segments). Each metric gets the epsilon
    for which first places are tied as often as `tie_rate`.
    """
    stack = to_float_array(scores, "scores")
    shape = stack.shape[:-2]
    flat = stack.reshape((int(np.prod(shape)), *stack.shape[-2:]))
    scored = [(~np.isnan(_first_place_margins(m))).any() for m in flat]
    epsilons = np.array(
        [find_tie_epsilon(m, tie_rate) if s else np.nan for m, s in zip(flat, scored, strict=True)]
    )
    shares = [tie_aware_scores(m, e) for m, e in zip(flat, epsilons, strict=True)]
    result = spearman(human_systems, np.stack(shares).reshape(stack.shape[:-1]))
    return replace(result, epsilon=epsilons.reshape(shape))


def _first_place_margins(matrix: FloatArray) -> FloatArray:
    """Return the margin of the best system on each segment, (segments,); NaN if it is alone."""
    present = ~np.isnan(matrix)
    ordered = np.sort(np.where(present, matrix, -np.inf), axis=0)
    if len(ordered) < 2:
        return np.full(matrix.shape[1], np.nan)
    two = present.sum(axis=0) >= 2
    return np.where(two, ordered[-1] - np.where(two, ordered[-2], 0.0), np.nan)
