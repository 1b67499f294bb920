"""A pair of translations ordered twice: what people and a metric make of it, counted.

Every pairwise statistic is a formula on five counts (C, D, T_h, T_m, T_hm): concordant, discordant,
tied by people only, by the metric only, by both. Counts add up, so they are kept per unit (an item,
a group) and summed with any weights before the formula is applied.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tertium.arrays import FloatArray, IntArray, divide
from tertium.errors import LengthError
from tertium.meta.agreement import Layout, finite

CodeArray = NDArray[np.uint8]
SignArray = NDArray[np.int8]

CONCORDANT, DISCORDANT, HUMAN_TIE, METRIC_TIE, BOTH_TIE, MISSING = range(6)
BLOCK = 1 << 20  # pairs in memory at a time

# Row: people prefer the right, tie, prefer the left, said nothing; column: the metric, likewise.
_OUTCOMES = np.array(
    [
        [CONCORDANT, METRIC_TIE, DISCORDANT, MISSING],
        [HUMAN_TIE, BOTH_TIE, HUMAN_TIE, MISSING],
        [DISCORDANT, METRIC_TIE, CONCORDANT, MISSING],
        [MISSING, MISSING, MISSING, MISSING],
    ],
    dtype=np.uint8,
).reshape(-1)
UNKNOWN = 2  # beside -1, 0 and 1


def order(difference: FloatArray, epsilon: float = 0.0) -> SignArray:
    """Which of two is better: 1 the left, -1 the right, 0 neither by more than `epsilon`.

    One byte a pair, UNKNOWN where a value is missing.

    >>> order(np.array([2.0, -2.0, 0.5, np.nan]), 0.5)
    array([ 1, -1,  0,  2], dtype=int8)
    """
    signs: SignArray = (difference > epsilon).view(np.int8)
    signs -= (difference < -epsilon).view(np.int8)
    signs[np.isnan(difference)] = UNKNOWN
    return signs


def outcomes(human: FloatArray, metric: FloatArray, epsilon: float = 0.0) -> CodeArray:
    """What became of each pair, from the differences left - right on both sides (broadcast).

    A metric difference of at most `epsilon` is a tie.

    >>> outcomes(np.array([1.0, -1, 0, 1, 0, 1]), np.array([2.0, 3, 1, 0, 0, np.nan]))
    array([0, 1, 2, 3, 4, 5], dtype=uint8)
    """
    return code_orders(order(human), order(metric, epsilon))


def code_orders(human: SignArray, metric: SignArray) -> CodeArray:
    """What became of pairs that both sides put in order."""
    codes: CodeArray = _OUTCOMES[4 * human + metric + 5]
    return codes


def tally(codes: CodeArray, units: IntArray, size: int) -> FloatArray:
    """How often each outcome occurs in each unit, (pairs,) -> (size, 6)."""
    flat = np.bincount((units * 6 + codes).reshape(-1), minlength=6 * size)
    return flat.reshape(size, 6).astype(np.float64)


def count_verdicts(
    verdicts: ArrayLike,
    left: ArrayLike,
    right: ArrayLike,
    *,
    epsilon: float = 0.0,
    units: IntArray | None = None,
) -> FloatArray:
    """Counts of human comparisons against metric scores, (metrics, units, 6).

    `verdicts` (n,) is 1 where people preferred `left`, 0 where `right`, 0.5 for a tie; `left` and
    `right` are the metric's scores, (metrics, n). `units` (n,) numbers the item of each comparison.
    """
    people = finite(verdicts, "verdicts") - 0.5
    difference = finite(left, "left scores") - finite(right, "right scores")
    if difference.shape[-1:] != people.shape:
        raise LengthError(f"{people.shape} verdicts for score differences {difference.shape}")
    where = np.zeros(len(people), dtype=np.int64) if units is None else units
    size = int(where.max(initial=0)) + 1
    stack = difference.reshape(int(np.prod(difference.shape[:-1])), len(people))
    return np.stack([tally(outcomes(people, row, epsilon), where, size) for row in stack])


def count_groups(
    layout: Layout, *, epsilon: FloatArray | float = 0.0, threshold: float = 0.0
) -> FloatArray:
    """Counts of all pairs within each group, (metrics, groups, 6).

    Pairs closer than `threshold` in the human score are not counted at all.
    """
    metrics, groups, n = layout.metrics.shape
    epsilons = np.broadcast_to(np.asarray(epsilon, dtype=np.float64), (metrics,))
    counts = np.zeros((metrics, groups, 6))
    for i, j in pair_blocks(n, groups):
        people = layout.human.T[i] - layout.human.T[j]  # (block, groups)
        unasked, human = ~(np.abs(people) >= threshold), order(people)
        for metric, scores in enumerate(layout.metrics):
            codes = code_orders(human, order(scores.T[i] - scores.T[j], float(epsilons[metric])))
            codes[unasked] = MISSING + 1
            for outcome in range(6):
                counts[metric, :, outcome] += (codes == outcome).sum(axis=0)
    return counts


def pair_blocks(n: int, groups: int = 1) -> Iterator[tuple[IntArray, IntArray]]:
    """The index pairs i < j of n points, in blocks of about BLOCK pairs over all groups.

    >>> [(i.tolist(), j.tolist()) for i, j in pair_blocks(3)]
    [([0, 0, 1], [1, 2, 2])]
    """
    rows = np.arange(n - 1)
    ends = np.cumsum(n - 1 - rows)  # pairs up to and with each row
    size = max(1, BLOCK // max(1, groups))
    start = 0
    while start < n - 1:
        done = ends[start - 1] if start else 0
        stop = max(start + 1, int(np.searchsorted(ends, done + size, side="right")))
        block = np.arange(start, stop)
        lengths = n - 1 - block
        i = np.repeat(block, lengths)
        first = np.repeat(np.cumsum(lengths) - lengths, lengths)
        yield i, i + 1 + np.arange(len(i)) - first
        start = stop


def tau_strict(counts: FloatArray) -> FloatArray:
    """(C - D - T_m) / (C + D + T_m): WMT 2011 and 2012; also DARR from 2018."""
    c, d, m = counts[..., CONCORDANT], counts[..., DISCORDANT], counts[..., METRIC_TIE]
    return divide(c - d - m, c + d + m)


def tau_wmt13(counts: FloatArray) -> FloatArray:
    """(C - D) / (C + D): WMT 2013, ties on either side ignored."""
    c, d = counts[..., CONCORDANT], counts[..., DISCORDANT]
    return divide(c - d, c + d)


def tau_wmt14(counts: FloatArray) -> FloatArray:
    """(C - D) / (C + D + T_m): WMT 2014, a metric tie is worth nothing; also DARR of 2017."""
    c, d, m = counts[..., CONCORDANT], counts[..., DISCORDANT], counts[..., METRIC_TIE]
    return divide(c - d, c + d + m)


def tau_b(counts: FloatArray) -> FloatArray:
    """(C - D) / sqrt((C + D + T_h)(C + D + T_m))."""
    c, d = counts[..., CONCORDANT], counts[..., DISCORDANT]
    h, m = counts[..., HUMAN_TIE], counts[..., METRIC_TIE]
    return divide(c - d, np.sqrt((c + d + h) * (c + d + m)))


def accuracy(counts: FloatArray) -> FloatArray:
    """(C + T_hm) / all: a tie is right where people tie too."""
    return divide(counts[..., CONCORDANT] + counts[..., BOTH_TIE], counts[..., :MISSING].sum(-1))
