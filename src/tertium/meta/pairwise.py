"""Pairwise agreement: Kendall's tau and the tau variants of WMT.

All are formulas on five counts of pairs (C, D, T_h, T_m, T_hm): concordant, discordant, tied by
humans only, by the metric only, by both. Counts are additive: they are kept per unit (an item, a
group) and summed with any weights before the formula is applied. Input is either human comparisons
(`verdicts` with the metric scores of the left and the right translation) or matrices of human
scores, from which pairs are formed (`human`, `metrics` as in `correlation`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tertium.core.arrays import FloatArray, IntArray, divide
from tertium.core.errors import LengthError, UsageError
from tertium.core.scores import Reduce
from tertium.data.rankings import ComparisonIndex, check_verdicts
from tertium.meta.agreement import (
    Agreement,
    Grouping,
    Layout,
    Measurement,
    average_groups,
    make_layout,
    make_pooled_agreement,
    to_float_array,
)
from tertium.meta.replicates import sums_replicate

CodeArray = NDArray[np.uint8]
SignArray = NDArray[np.int8]

CONCORDANT, DISCORDANT, HUMAN_TIE, METRIC_TIE, BOTH_TIE, MISSING = range(6)
BLOCK = 1 << 20  # pairs in memory at a time

# Rows: humans prefer the right, tie, prefer the left, unknown; columns: the same for the metric.
_OUTCOMES = np.array(
    [
        [CONCORDANT, METRIC_TIE, DISCORDANT, MISSING],
        [HUMAN_TIE, BOTH_TIE, HUMAN_TIE, MISSING],
        [DISCORDANT, METRIC_TIE, CONCORDANT, MISSING],
        [MISSING, MISSING, MISSING, MISSING],
    ],
    dtype=np.uint8,
).reshape(-1)
UNKNOWN = 2  # in addition to -1, 0 and 1
SMALL_GROUP = 64  # up to this size, all pairs at once are faster than one merge sort per group


def preference_signs(difference: FloatArray, epsilon: FloatArray | float = 0.0) -> SignArray:
    """Return which of two is better: 1 left, -1 right, 0 if they differ by at most `epsilon`.

    UNKNOWN if a value is missing.

    >>> preference_signs(np.array([2.0, -2.0, 0.5, np.nan]), 0.5)
    array([ 1, -1,  0,  2], dtype=int8)
    """
    signs: SignArray = (difference > epsilon).view(np.int8)
    signs -= (difference < -epsilon).view(np.int8)
    signs[np.isnan(difference)] = UNKNOWN
    return signs


def classify_pairs(human: SignArray, metric: SignArray) -> CodeArray:
    """Classify pairs from the preference signs of both sides (broadcast).

    >>> classify_pairs(np.array([1, -1, 0, 1, 0], np.int8), np.array([1, 1, 1, 0, 0], np.int8))
    array([0, 1, 2, 3, 4], dtype=uint8)
    """
    codes: CodeArray = _OUTCOMES[4 * human + metric + 5]
    return codes


def count_comparisons(
    verdicts: ArrayLike,
    left: ArrayLike,
    right: ArrayLike,
    *,
    epsilon: float = 0.0,
    units: IntArray | None = None,
) -> FloatArray:
    """Count outcomes of human comparisons against metric scores, (metrics, units, 6).

    `verdicts` (n,) is 1 if `left` was preferred, 0 if `right`, 0.5 for a tie. `left` and `right`
    are the metric scores, (metrics, n). `units` (n,) is the index of each comparison's item.
    """
    known_verdicts = to_float_array(verdicts, "verdicts")
    check_verdicts(known_verdicts[~np.isnan(known_verdicts)], "human comparisons")
    difference = to_float_array(left, "left scores") - to_float_array(right, "right scores")
    if difference.shape[-1:] != known_verdicts.shape:
        raise LengthError(
            f"{known_verdicts.shape} verdicts for score differences {difference.shape}"
        )
    stack = difference.reshape(int(np.prod(difference.shape[:-1])), len(known_verdicts))
    human = preference_signs(known_verdicts - 0.5)
    codes = classify_pairs(human, preference_signs(stack, epsilon))
    where = np.zeros(len(human), dtype=np.int64) if units is None else units
    metrics = np.arange(len(stack))[:, None]
    counts = np.zeros((len(stack), where.max(initial=0) + 1, 6))
    np.add.at(counts, (metrics, where, codes), 1.0)
    return counts


def check_epsilon(epsilon: float) -> float:
    """Check the largest difference that counts as a tie."""
    if not 0 <= epsilon < np.inf:
        raise UsageError(f"epsilon, the largest tied difference, must be at least 0, got {epsilon}")
    return epsilon


def count_groups(
    layout: Layout, *, epsilon: FloatArray | float = 0.0, threshold: float = 0.0
) -> FloatArray:
    """Count the outcomes of pairs within groups, (metrics, groups, 6), from `threshold` on."""
    counts = np.zeros((*layout.metrics.shape[:2], 6))
    for human, signs in compare_pairs(layout, epsilon):
        codes = classify_pairs(preference_signs(human), signs)  # (metrics, pairs, groups)
        codes[:, ~(np.abs(human) >= threshold)] = MISSING + 1
        for outcome in range(6):
            counts[..., outcome] += (codes == outcome).sum(axis=1)
    return counts


def compare_pairs(
    layout: Layout, epsilon: ArrayLike = 0.0
) -> Iterator[tuple[FloatArray, SignArray]]:
    """Yield the human differences of pairs (pairs, groups) and the preference of each metric.

    Preferences are (metrics, pairs, groups), with one epsilon per metric or for all.
    """
    for human, differences in pair_differences(layout):
        epsilons = np.broadcast_to(np.asarray(epsilon, dtype=np.float64), len(differences))
        yield human, preference_signs(differences, epsilons[:, None, None])


def pair_differences(layout: Layout) -> Iterator[tuple[FloatArray, FloatArray]]:
    """Yield differences of pairs, (pairs, groups) and (metrics, pairs, groups), in blocks."""
    metrics, groups, n = layout.metrics.shape
    human = layout.human.T
    scores = np.swapaxes(layout.metrics, 1, 2)
    for i, j in pair_blocks(n, groups * metrics):
        yield human[i] - human[j], scores[:, i] - scores[:, j]


def pair_blocks(n: int, groups: int = 1) -> Iterator[tuple[IntArray, IntArray]]:
    """Yield the index pairs i < j of n points, in blocks of about BLOCK pairs over all groups.

    >>> [(i.tolist(), j.tolist()) for i, j in pair_blocks(3)]
    [([0, 0, 1], [1, 2, 2])]
    """
    rows = np.arange(n - 1)
    ends = np.cumsum(n - 1 - rows)  # pairs up to and including each row
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
    """(C - D - T_m) / (C + D + T_m): WMT 2011 and 2012, and DARR from 2018."""
    c, d, _, m, *_ = np.moveaxis(counts, -1, 0)
    return divide(c - d - m, c + d + m)


def tau_wmt13(counts: FloatArray) -> FloatArray:
    """(C - D) / (C + D): WMT 2013, ties on either side are ignored."""
    c, d, *_ = np.moveaxis(counts, -1, 0)
    return divide(c - d, c + d)


def tau_wmt14(counts: FloatArray) -> FloatArray:
    """(C - D) / (C + D + T_m): WMT 2014, a metric tie counts 0; also DARR of 2017."""
    c, d, _, m, *_ = np.moveaxis(counts, -1, 0)
    return divide(c - d, c + d + m)


def tau_b(counts: FloatArray) -> FloatArray:
    """(C - D) / sqrt((C + D + T_h)(C + D + T_m))."""
    c, d, h, m, *_ = np.moveaxis(counts, -1, 0)
    return divide(c - d, np.sqrt((c + d + h) * (c + d + m)))


def accuracy(counts: FloatArray) -> FloatArray:
    """(C + T_hm) / all: a metric tie is correct if the human scores tie too."""
    return divide(counts[..., CONCORDANT] + counts[..., BOTH_TIE], counts[..., :MISSING].sum(-1))


# Formulas on human comparisons, and whether human ties count.
_FORMULAS: Mapping[str, tuple[Reduce, bool]] = {
    "tau-strict": (tau_strict, False),
    "tau13": (tau_wmt13, False),
    "tau14": (tau_wmt14, False),
    "consistency": (accuracy, True),
}
DARR_THRESHOLD = 25.0  # points of the raw 0-100 scale (Bojar et al. 2017)


def kendall_strict(verdicts: ArrayLike, left: ArrayLike, right: ArrayLike) -> Agreement:
    """Compute the tau of WMT 2011 and 2012: human ties are dropped, a metric tie is an error.

        tau = (C - D - T_m) / (C + D + T_m)

    `verdicts` (n,) is 1 if the left translation is better, 0 if the right is, 0.5 for a tie. `left`
    and `right` are the metric scores of the two translations, (..., n).

    >>> float(kendall_strict([1, 1, 0, 0.5], [3, 1, 1, 9], [2, 1, 2, 1])).__round__(6)
    0.333333
    """
    return _compare("tau-strict", verdicts, left, right)


def kendall_wmt13(verdicts: ArrayLike, left: ArrayLike, right: ArrayLike) -> Agreement:
    """Compute the tau of WMT 2013: (C - D) / (C + D), ties on either side are ignored.

    >>> float(kendall_wmt13([1, 1, 0, 0.5], [3, 1, 1, 9], [2, 1, 2, 1]))
    1.0
    """
    return _compare("tau13", verdicts, left, right)


def kendall_wmt14(verdicts: ArrayLike, left: ArrayLike, right: ArrayLike) -> Agreement:
    """Compute the tau of WMT 2014: (C - D) / (C + D + T_m).

    Human ties are dropped, metric ties count 0.

    >>> float(kendall_wmt14([1, 1, 0, 0.5], [3, 1, 1, 9], [2, 1, 2, 1])).__round__(6)
    0.666667
    """
    return _compare("tau14", verdicts, left, right)


def consistency(
    verdicts: ArrayLike, left: ArrayLike, right: ArrayLike, *, epsilon: float = 0.0
) -> Agreement:
    """Compute the share of human comparisons, with ties, that the metric reproduces (WMT 2008).

    A metric difference of at most `epsilon` is a tie.

    >>> float(consistency([1, 1, 0, 0.5], [3, 1, 1, 9], [2, 1, 2, 1]))
    0.5
    """
    return _compare("consistency", verdicts, left, right, check_epsilon(epsilon))


def darr(
    human: ArrayLike,
    metrics: ArrayLike,
    *,
    year: Literal[2017, 2018] = 2018,
    threshold: float = DARR_THRESHOLD,
) -> Agreement:
    """Compute the tau of WMT 2017 to 2019 on relative rankings from direct assessments (DARR).

    Two translations of one segment form a pair if their raw human scores (0 to 100) differ by at
    least `threshold`. A metric tie counts as discordant from 2018, and as zero in 2017:

        2018: (C - D - T_m) / (C + D + T_m)      2017: (C - D) / (C + D + T_m)

    `human` holds raw scores (systems, segments), `metrics` is (..., systems, segments).

    >>> float(darr([[90, 50], [60, 45], [30, 0]], [[3, 5], [2, 4], [2, 1]])).__round__(6)
    0.6
    """
    if year not in (2017, 2018):
        raise UsageError(f"year must be 2017, or 2018 for later years, too, got {year}")
    if not 0 < threshold < np.inf:
        raise UsageError(f"threshold must be above 0, got {threshold}")
    return measure_darr(make_layout(human, metrics, "item"), year, threshold).agreement


def kendall_b(human: ArrayLike, metrics: ArrayLike, *, grouping: Grouping = "none") -> Agreement:
    """Compute Kendall's tau-b: concordant minus discordant pairs, corrected for ties.

        tau_b = (C - D) / sqrt((C + D + T_h)(C + D + T_m))

    T_h and T_m count pairs tied by the human scores only and by the metric only.

    >>> float(kendall_b([1, 2, 3, 4], [1, 3, 2, 4])).__round__(6)
    0.666667
    """
    layout = make_layout(human, metrics, grouping)
    return average_groups(layout, kendall_b_values(layout))


def kendall_b_values(layout: Layout) -> FloatArray:
    """Return Kendall's tau-b of each group, (metrics, groups)."""
    if layout.human.shape[1] <= SMALL_GROUP:
        return tau_b(count_groups(layout))
    from scipy.stats import kendalltau

    present = layout.present
    values = np.full(present.shape[:2], np.nan)
    for metric, group in zip(*np.nonzero(present.sum(axis=-1) > 1), strict=True):
        keep = present[metric, group]
        x = layout.human[group, keep]
        y = layout.metrics[metric, group, keep]
        if x.min() < x.max() and y.min() < y.max():
            values[metric, group] = kendalltau(x, y).statistic
    return values


def _compare(
    statistic: str, verdicts: ArrayLike, left: ArrayLike, right: ArrayLike, epsilon: float = 0.0
) -> Agreement:
    counts = count_comparisons(verdicts, left, right, epsilon=epsilon)
    return _apply_formula(statistic, counts, verdicts, np.shape(left)[:-1])


def _apply_formula(
    statistic: str, counts: FloatArray, verdicts: ArrayLike, shape: tuple[int, ...]
) -> Agreement:
    """Apply a formula to the counts of human comparisons, pooled over units."""
    reduce, human_ties = _FORMULAS[statistic]
    pooled = counts.sum(axis=1)
    values = to_float_array(verdicts, "verdicts")
    used = pooled[:, :MISSING].sum(axis=1)
    is_judged = ~np.isnan(values)
    if not human_ties:
        is_judged &= values != 0.5
        used -= pooled[:, HUMAN_TIE] + pooled[:, BOTH_TIE]
    return make_pooled_agreement(
        reduce(pooled), shape, judged_count=int(is_judged.sum()), used=used
    )


def measure_darr(layout: Layout, year: int, threshold: float) -> Measurement:
    """Measure DARR of scores grouped by item for a task."""
    reduce = tau_strict if year == 2018 else tau_wmt14
    counts = count_groups(layout, threshold=threshold)
    return Measurement(
        agreement=pool_pairs(counts.sum(axis=1), reduce, layout.shape),
        replicate=sums_replicate(counts, reduce),
        strata=(len(layout.human),),
    )


def pool_pairs(
    counts: FloatArray, reduce: Reduce, shape: tuple[int, ...], groups: int = 1
) -> Agreement:
    """Apply a formula to pooled counts (metrics, 6) of pairs of human scores."""
    return make_pooled_agreement(
        reduce(counts),
        shape,
        judged_count=int(counts.sum(axis=1).max(initial=0)),
        used=counts[:, :MISSING].sum(axis=1),
        groups=groups,
    )


def measure_comparisons(index: ComparisonIndex, scores: FloatArray, statistic: str) -> Measurement:
    """Measure a formula on human comparisons for a task; scores are (metrics, systems, items)."""
    left = scores[:, index.left, index.item]
    right = scores[:, index.right, index.item]
    items, unit = np.unique(index.item, return_inverse=True)
    counts = count_comparisons(index.verdicts, left, right, units=unit)
    return Measurement(
        agreement=_apply_formula(statistic, counts, index.verdicts, left.shape[:1]),
        replicate=sums_replicate(counts, _FORMULAS[statistic][0]),
        strata=(len(items),),
    )
