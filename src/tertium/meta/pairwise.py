"""Does the metric order pairs of translations as people do? The taus of Kendall and WMT.

All are formulas on five counts (C, D, T_h, T_m, T_hm): pairs that are concordant, discordant, tied
by people only, by the metric only, by both. Counts add up, so they are kept per unit (an item, a
group) and summed with any weights before the formula is applied. Two kinds of input: human
comparisons (`verdicts` with the metric's score of the left and the right translation), and matrices
of human scores whose pairs are formed here (`human`, `metrics` as in `correlation`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tertium.arrays import FloatArray, IntArray, divide
from tertium.data.rankings import check_verdicts
from tertium.data.win_rates import ComparisonIndex
from tertium.errors import LengthError, UsageError
from tertium.meta.agreement import (
    Agreement,
    Grouping,
    Layout,
    Measured,
    average_groups,
    finite,
    lay_out,
    pool_agreement,
)
from tertium.meta.replicates import of_sums
from tertium.meta.significance import finest_swaps, perm_both_any
from tertium.scores import Reduce

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
SMALL_GROUP = 64  # up to here all pairs at once beat one merge sort for each group


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
    said = finite(verdicts, "verdicts")
    check_verdicts(said[~np.isnan(said)], "human comparisons")
    people = said - 0.5
    difference = finite(left, "left scores") - finite(right, "right scores")
    if difference.shape[-1:] != people.shape:
        raise LengthError(f"{people.shape} verdicts for score differences {difference.shape}")
    where = np.zeros(len(people), dtype=np.int64) if units is None else units
    size = int(where.max(initial=0)) + 1
    stack = difference.reshape(int(np.prod(difference.shape[:-1])), len(people))
    return np.stack([tally(outcomes(people, row, epsilon), where, size) for row in stack])


def check_epsilon(epsilon: float) -> float:
    """The size of a difference that is a tie, checked."""
    if not 0 <= epsilon < np.inf:
        raise UsageError(f"epsilon, up to which a difference is a tie, is 0 or more, not {epsilon}")
    return epsilon


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


DARR_THRESHOLD = 25.0  # points of the raw 0-100 scale that make a difference (Bojar et al. 2017)


def kendall_strict(verdicts: ArrayLike, left: ArrayLike, right: ArrayLike) -> Agreement:
    """The tau of WMT 2011 and 2012: human ties are dropped, a metric tie is an error.

        tau = (C - D - T_m) / (C + D + T_m)

    `verdicts` (n,): 1 the left translation is better, 0 the right, 0.5 a tie; `left`, `right`:
    the metric's scores of the two translations, (..., n).

    >>> float(kendall_strict([1, 1, 0, 0.5], [3, 1, 1, 9], [2, 1, 2, 1])).__round__(6)
    0.333333
    """
    return _compare(verdicts, left, right, tau_strict, human_ties=False)


def kendall_wmt13(verdicts: ArrayLike, left: ArrayLike, right: ArrayLike) -> Agreement:
    """The tau of WMT 2013: (C - D) / (C + D), ties on either side ignored.

    >>> float(kendall_wmt13([1, 1, 0, 0.5], [3, 1, 1, 9], [2, 1, 2, 1]))
    1.0
    """
    return _compare(verdicts, left, right, tau_wmt13, human_ties=False)


def kendall_wmt14(verdicts: ArrayLike, left: ArrayLike, right: ArrayLike) -> Agreement:
    """The tau of WMT 2014: (C - D) / (C + D + T_m), human ties dropped, metric ties worth nothing.

    >>> float(kendall_wmt14([1, 1, 0, 0.5], [3, 1, 1, 9], [2, 1, 2, 1])).__round__(6)
    0.666667
    """
    return _compare(verdicts, left, right, tau_wmt14, human_ties=False)


def consistency(
    verdicts: ArrayLike, left: ArrayLike, right: ArrayLike, *, epsilon: float = 0.0
) -> Agreement:
    """The share of human comparisons, ties among them, that the metric reproduces (WMT 2008).

    A metric difference of at most `epsilon` is a tie.

    >>> float(consistency([1, 1, 0, 0.5], [3, 1, 1, 9], [2, 1, 2, 1]))
    0.5
    """
    tie = check_epsilon(epsilon)
    return _compare(verdicts, left, right, accuracy, human_ties=True, epsilon=tie)


def darr(
    human: ArrayLike,
    metrics: ArrayLike,
    *,
    year: Literal[2017, 2018] = 2018,
    threshold: float = DARR_THRESHOLD,
) -> Agreement:
    """The tau of WMT 2017 to 2019 on relative rankings made from direct assessments (DARR).

    Two translations of one segment are a pair where their raw human scores (0 to 100) differ by
    `threshold` or more. A metric tie counts as discordant from 2018 and as zero in 2017:

        2018: (C - D - T_m) / (C + D + T_m)      2017: (C - D) / (C + D + T_m)

    `human` is (systems, segments) of raw scores, `metrics` (..., systems, segments).

    >>> float(darr([[90, 50], [60, 45], [30, 0]], [[3, 5], [2, 4], [2, 1]])).__round__(6)
    0.6
    """
    if year not in (2017, 2018):
        raise UsageError(f"DARR is defined for 2017 and for 2018 (and after), not {year}")
    if not 0 < threshold < np.inf:
        raise UsageError(f"the DARR threshold must be above zero, got {threshold}")
    layout = lay_out(human, metrics, "item")
    counts = count_groups(layout, threshold=threshold).sum(axis=1)  # (metrics, 6)
    value = tau_strict(counts) if year == 2018 else tau_wmt14(counts)
    judged, used = int(counts.sum(axis=1).max(initial=0)), counts[:, :MISSING].sum(axis=1)
    return pool_agreement(value, layout.shape, judged=judged, used=used)


def kendall_b(human: ArrayLike, metrics: ArrayLike, *, by: Grouping = "none") -> Agreement:
    """Kendall's tau-b: concordant less discordant pairs of points, corrected for ties.

        tau_b = (C - D) / sqrt((C + D + T_h)(C + D + T_m))

    T_h and T_m count pairs tied by people only and by the metric only.

    >>> float(kendall_b([1, 2, 3, 4], [1, 3, 2, 4])).__round__(6)
    0.666667
    """
    layout = lay_out(human, metrics, by)
    return average_groups(layout, kendall_b_values(layout))


def kendall_b_values(layout: Layout) -> FloatArray:
    """Kendall's tau-b of each group, (metrics, groups)."""
    if layout.human.shape[1] <= SMALL_GROUP:
        return tau_b(count_groups(layout))
    from scipy.stats import kendalltau

    present = layout.present
    values = np.full(present.shape[:2], np.nan)
    for metric, group in zip(*np.nonzero(present.sum(axis=-1) > 1), strict=True):
        keep = present[metric, group]
        x, y = layout.human[group, keep], layout.metrics[metric, group, keep]
        if x.min() < x.max() and y.min() < y.max():
            values[metric, group] = kendalltau(x, y).statistic
    return values


def _compare(
    verdicts: ArrayLike,
    left: ArrayLike,
    right: ArrayLike,
    reduce: Reduce,
    *,
    human_ties: bool,
    epsilon: float = 0.0,
) -> Agreement:
    counts = count_verdicts(verdicts, left, right, epsilon=epsilon).sum(axis=1)
    shape = np.shape(np.asarray(left))[:-1]
    return count_agreement(counts, reduce, verdicts, human_ties=human_ties, shape=shape)


def count_agreement(
    counts: FloatArray,
    reduce: Reduce,
    verdicts: ArrayLike,
    *,
    human_ties: bool,
    shape: tuple[int, ...],
) -> Agreement:
    """A formula on counts (metrics, 6) of human comparisons, pooled; `shape` is the metrics'.

    Where the formula drops `human_ties` they are not among the judged comparisons either.
    """
    people = finite(verdicts, "verdicts")
    dropped = np.isnan(people) | ((people == 0.5) & (not human_ties))
    used = counts[:, :MISSING].sum(axis=1)
    if not human_ties:
        used = used - counts[:, HUMAN_TIE] - counts[:, BOTH_TIE]
    return pool_agreement(reduce(counts), shape, judged=int((~dropped).sum()), used=used)


def measure_darr(
    human: FloatArray, scores: FloatArray, year: Literal[2017, 2018], threshold: float
) -> Measured:
    """DARR of (systems, segments) and (metrics, systems, segments), as a task asks for it."""
    statistic = partial(darr, year=year, threshold=threshold)
    counts = count_groups(lay_out(human, scores, "item"), threshold=threshold)
    return Measured(
        agreement=statistic(human, scores),
        replicate=of_sums(counts, tau_strict if year == 2018 else tau_wmt14),
        strata=(human.shape[1],),
        tests={"perm-both": partial(perm_both_any, human, scores, statistic)},
        finest={"perm-both": finest_swaps(human)},
    )


_FORMULAS: Mapping[str, tuple[Reduce, bool]] = {
    "tau-strict": (tau_strict, False),
    "tau13": (tau_wmt13, False),
    "tau14": (tau_wmt14, False),
    "consistency": (accuracy, True),
}


def measure_comparisons(compared: ComparisonIndex, scores: FloatArray, statistic: str) -> Measured:
    """A formula on human comparisons beside scores, (metrics, systems, items)."""
    reduce, human_ties = _FORMULAS[statistic]
    left = scores[:, compared.left, compared.item]
    right = scores[:, compared.right, compared.item]
    items, unit = np.unique(compared.item, return_inverse=True)
    counts = count_verdicts(compared.verdicts, left, right, units=unit)
    return Measured(
        agreement=count_agreement(
            counts.sum(axis=1),
            reduce,
            compared.verdicts,
            human_ties=human_ties,
            shape=left.shape[:1],
        ),
        replicate=of_sums(counts, reduce),
        strata=(len(items),),
    )
