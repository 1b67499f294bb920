"""Does the metric order pairs of translations as people do? The taus of WMT, DARR, acc_eq.

All are formulas on the five counts of `pairs`. Two kinds of input: human comparisons (`verdicts`
with the metric's score of the left and the right translation), and matrices of human scores whose
pairs are formed here (`human`, `metrics` as in `agreement`).
"""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from tertium.arrays import BoolArray, FloatArray, divide
from tertium.errors import UsageError
from tertium.meta import pairs
from tertium.meta.agreement import (
    Agreement,
    Grouping,
    Layout,
    average_groups,
    finite,
    lay_out,
    pool_agreement,
)
from tertium.meta.pairs import BOTH_TIE, HUMAN_TIE, MISSING
from tertium.scores import Reduce

DARR_THRESHOLD = 25.0  # points of the raw 0-100 scale that make a difference (Bojar et al. 2017)


def kendall_strict(verdicts: ArrayLike, left: ArrayLike, right: ArrayLike) -> Agreement:
    """The tau of WMT 2011 and 2012: human ties are dropped, a metric tie is an error.

        tau = (C - D - T_m) / (C + D + T_m)

    `verdicts` (n,): 1 the left translation is better, 0 the right, 0.5 a tie; `left`, `right`:
    the metric's scores of the two translations, (..., n).

    >>> float(kendall_strict([1, 1, 0, 0.5], [3, 1, 1, 9], [2, 1, 2, 1])).__round__(6)
    0.333333
    """
    return _compare(verdicts, left, right, pairs.tau_strict, human_ties=False)


def kendall_wmt13(verdicts: ArrayLike, left: ArrayLike, right: ArrayLike) -> Agreement:
    """The tau of WMT 2013: (C - D) / (C + D), ties on either side ignored.

    >>> float(kendall_wmt13([1, 1, 0, 0.5], [3, 1, 1, 9], [2, 1, 2, 1]))
    1.0
    """
    return _compare(verdicts, left, right, pairs.tau_wmt13, human_ties=False)


def kendall_wmt14(verdicts: ArrayLike, left: ArrayLike, right: ArrayLike) -> Agreement:
    """The tau of WMT 2014: (C - D) / (C + D + T_m), human ties dropped, metric ties worth nothing.

    >>> float(kendall_wmt14([1, 1, 0, 0.5], [3, 1, 1, 9], [2, 1, 2, 1])).__round__(6)
    0.666667
    """
    return _compare(verdicts, left, right, pairs.tau_wmt14, human_ties=False)


def consistency(
    verdicts: ArrayLike, left: ArrayLike, right: ArrayLike, *, epsilon: float = 0.0
) -> Agreement:
    """The share of human comparisons, ties among them, that the metric reproduces (WMT 2008).

    A metric difference of at most `epsilon` is a tie.

    >>> float(consistency([1, 1, 0, 0.5], [3, 1, 1, 9], [2, 1, 2, 1]))
    0.5
    """
    return _compare(verdicts, left, right, pairs.accuracy, human_ties=True, epsilon=epsilon)


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
    if threshold <= 0:
        raise UsageError(f"the DARR threshold must be above zero, got {threshold}")
    layout = lay_out(human, metrics, "item")
    counts = pairs.count_groups(layout, threshold=threshold).sum(axis=1)  # (metrics, 6)
    value = pairs.tau_strict(counts) if year == 2018 else pairs.tau_wmt14(counts)
    judged, used = int(counts.sum(axis=1).max(initial=0)), counts[:, :MISSING].sum(axis=1)
    return pool_agreement(value, layout.shape, judged=judged, used=used)


def acc_eq(
    human: ArrayLike, metrics: ArrayLike, *, by: Grouping = "item", epsilon: float = 0.0
) -> Agreement:
    """Pairwise accuracy in which ties must be predicted (Deutsch et al. 2023).

        acc_eq = (C + T_hm) / (C + D + T_h + T_m + T_hm)

    computed in each group and averaged over groups that have a pair.

    >>> float(acc_eq([[1, 5], [1, 3], [2, 4]], [[7, 3], [7, 1], [9, 9]])).__round__(6)
    0.833333
    """
    layout = lay_out(human, metrics, by)
    return average_accuracy(layout, np.full(len(layout.metrics), epsilon))


def acc_eq_calibrated(human: ArrayLike, metrics: ArrayLike, *, by: Grouping = "item") -> Agreement:
    """acc_eq*: acc_eq under the tie threshold that serves the metric best (Deutsch et al. 2023).

    One epsilon, shared by all groups, maximises acc_eq; the candidates are 0 and every difference
    the metric makes. `epsilon` of the result tells which was chosen (the smallest of the best).

    >>> result = acc_eq_calibrated([[1, 5], [1, 3]], [[0.50, 0.9], [0.52, 0.1]])
    >>> float(result), round(float(result.epsilon), 2)
    (1.0, 0.02)
    """
    layout = lay_out(human, metrics, by)
    return average_accuracy(layout, np.array([calibrate(layout, m) for m in layout.metrics]))


def average_accuracy(layout: Layout, epsilon: FloatArray) -> Agreement:
    """acc_eq with one epsilon for each metric, averaged over groups."""
    counts = pairs.count_groups(layout, epsilon=epsilon)  # (metrics, groups, 6)
    judged = counts[0].sum(axis=-1) if len(counts) else np.zeros(0)
    averaged = average_groups(layout, pairs.accuracy(counts))
    undefined = int((judged > 0).sum()) - (counts[..., :MISSING].sum(axis=-1) > 0).sum(axis=-1)
    return Agreement(
        value=averaged.value,
        judged=int(judged.sum()),
        used=counts[..., :MISSING].sum(axis=(1, 2)).astype(np.int64).reshape(layout.shape),
        groups=int((judged > 0).sum()),
        undefined=undefined.reshape(layout.shape),
        epsilon=epsilon.reshape(layout.shape),
    )


def calibrate(layout: Layout, metric: FloatArray) -> float:
    """The epsilon that maximises average acc_eq of one metric, (groups, points).

    Raising epsilon past a pair's difference makes it a tie, which is a gain where people tie and a
    loss where the pair was concordant, so one sort and a running sum try every candidate.
    """
    sizes, ties, gains = [np.zeros(0)], [np.zeros(0, dtype=bool)], [np.zeros(0)]
    weights = _pair_weights(layout.human, metric)
    alike = len(np.unique(weights)) < 2
    for i, j in pairs.pair_blocks(layout.human.shape[1], len(layout.human)):
        people = pairs.order(layout.human.T[i] - layout.human.T[j])  # (block, groups)
        difference = metric.T[i] - metric.T[j]
        scores = pairs.order(difference)
        decided = (scores & 1).view(bool)  # neither a tie nor unknown
        changes = decided & ((people == scores) | (people == 0))
        sizes.append(np.abs(difference[changes]))
        ties.append(people[changes] == 0)
        if not alike:
            own = np.broadcast_to(weights, changes.shape)[changes]
            gains.append(np.where(ties[-1], own, -own))
    if alike:
        return _best_threshold(*_order_alike(np.concatenate(sizes), np.concatenate(ties)))
    return _best_threshold(*_order_gains(np.concatenate(sizes), np.concatenate(gains)))


def _pair_weights(human: FloatArray, metric: FloatArray) -> FloatArray:
    """What one pair weighs in the average over groups: 1 / pairs of its group, (groups,)."""
    n = (~np.isnan(human) & ~np.isnan(metric)).sum(axis=-1)
    return divide(1.0, np.maximum(n * (n - 1) / 2, 1.0))


def _order_alike(sizes: FloatArray, ties: BoolArray) -> tuple[FloatArray, FloatArray]:
    """Differences in order and the running gain, where all pairs weigh the same.

    The bits of floats from 0 up are in order, and the one for the sign is free to carry the tie:
    such keys are sorted several times as fast as places are.
    """
    keys = np.sort((sizes.view(np.uint64) << np.uint64(1)) | ties)
    gains = 2.0 * (keys & np.uint64(1)) - 1.0
    return (keys >> np.uint64(1)).view(np.float64), np.cumsum(gains)


def _order_gains(sizes: FloatArray, gains: FloatArray) -> tuple[FloatArray, FloatArray]:
    order = np.argsort(sizes)
    return sizes[order], np.cumsum(gains[order])


def _best_threshold(ordered: FloatArray, running: FloatArray) -> float:
    ends = np.flatnonzero(np.append(ordered[1:] != ordered[:-1], True)[: len(ordered)])
    if not len(ends) or running[ends].max() <= 1e-9:
        return 0.0
    # Equal sums differ by rounding; the smallest epsilon among the best is the one to report.
    best = ends[np.argmax(running[ends] >= running[ends].max() - 1e-9)]
    return float(ordered[best])


def _compare(
    verdicts: ArrayLike,
    left: ArrayLike,
    right: ArrayLike,
    reduce: Reduce,
    *,
    human_ties: bool,
    epsilon: float = 0.0,
) -> Agreement:
    counts = pairs.count_verdicts(verdicts, left, right, epsilon=epsilon).sum(axis=1)
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
