"""Every pairwise statistic as a plain loop over its definition: the oracle of the fast forms.

Deutsch et al. 2023 (acc_eq and tie calibration), Bojar et al. 2017 and Ma et al. 2018 (DARR),
Callison-Burch et al. 2011/2012, Machacek & Bojar 2013/2014 (the taus), Thompson et al. 2024 (SPA).
"""

from __future__ import annotations

import math
from itertools import combinations, permutations

import numpy as np
from scipy import stats


def points(human, metric):
    """The pairs of values that are known on both sides."""
    return [(h, m) for h, m in zip(human, metric, strict=True) if not (math.isnan(h + m))]


def groups(human, metric, grouping):
    """(human, metric) vectors of each group, missing values dropped."""
    human, metric = np.asarray(human, float), np.asarray(metric, float)
    if grouping == "none":
        return [points(human.ravel(), metric.ravel())]
    if grouping == "item":
        human, metric = human.T, metric.T
    return [points(h, m) for h, m in zip(human, metric, strict=True)]


def count(group, epsilon=0.0):
    """C, D, T_h, T_m, T_hm of all pairs of a group."""
    counts = [0, 0, 0, 0, 0]
    for (h1, m1), (h2, m2) in combinations(group, 2):
        counts[outcome(h1 - h2, m1 - m2, epsilon)] += 1
    return counts


def outcome(human, metric, epsilon=0.0):
    tied = abs(metric) <= epsilon
    if human == 0:
        return 4 if tied else 2
    if tied:
        return 3
    return 0 if (human > 0) == (metric > 0) else 1


def mean(values):
    defined = [v for v in values if not math.isnan(v)]
    return sum(defined) / len(defined) if defined else math.nan


def correlation(human, metric, grouping, function):
    """A scipy correlation in each group, averaged over those where it is defined."""
    values = []
    for group in groups(human, metric, grouping):
        constant = len({h for h, _ in group}) < 2 or len({m for _, m in group}) < 2
        values.append(math.nan if constant else float(function(*zip(*group, strict=True))[0]))
    return mean(values)


def pearson(human, metric, grouping="none"):
    return correlation(human, metric, grouping, stats.pearsonr)


def spearman(human, metric, grouping="none"):
    return correlation(human, metric, grouping, stats.spearmanr)


def kendall_b(human, metric, grouping="none"):
    values = []
    for group in groups(human, metric, grouping):
        c, d, h, m, _ = count(group)
        below = math.sqrt((c + d + h) * (c + d + m))
        values.append((c - d) / below if below else math.nan)
    return mean(values)


def acc_eq(human, metric, grouping="item", epsilon=0.0):
    values = []
    for group in groups(human, metric, grouping):
        c, d, h, m, both = count(group, epsilon)
        total = c + d + h + m + both
        values.append((c + both) / total if total else math.nan)
    return mean(values)


def acc_eq_calibrated(human, metric, grouping="item"):
    """(the best value, the smallest epsilon that gives it) over every candidate."""
    candidates = {0.0}
    for group in groups(human, metric, grouping):
        candidates |= {abs(a[1] - b[1]) for a, b in combinations(group, 2)}
    scored = [(acc_eq(human, metric, grouping, e), e) for e in sorted(candidates)]
    best = max(value for value, _ in scored)
    return best, next((e for value, e in scored if value >= best - 1e-12), 0.0)


def taus(verdicts, left, right):
    """strict, WMT13, WMT14, consistency."""
    counts = [0, 0, 0, 0, 0]
    for v, a, b in zip(verdicts, left, right, strict=True):
        if not math.isnan(v + a + b):
            counts[outcome(v - 0.5, a - b)] += 1
    c, d, h, m, both = counts

    def share(top, below):
        return top / below if below else math.nan

    return (
        share(c - d - m, c + d + m),
        share(c - d, c + d),
        share(c - d, c + d + m),
        share(c + both, c + d + h + m + both),
    )


def darr(human, metric, year, threshold=25.0):
    c = d = t = 0
    for group in groups(human, metric, "item"):
        for (h1, m1), (h2, m2) in combinations(group, 2):
            if abs(h1 - h2) >= threshold:
                kind = outcome(h1 - h2, m1 - m2)
                c, d, t = c + (kind == 0), d + (kind == 1), t + (kind == 3)
    if not c + d + t:
        return math.nan
    return (c - d - t) / (c + d + t) if year == 2018 else (c - d) / (c + d + t)


def system_accuracy(human, metrics):
    right = total = 0
    for human_values, scores in zip(human, metrics, strict=True):
        pairs = list(combinations(points(human_values, scores), 2))
        if not pairs and (~np.isnan(human_values)).sum() > 1:
            return math.nan
        for (h1, m1), (h2, m2) in pairs:
            right += np.sign(h1 - h2) == np.sign(m1 - m2)
            total += 1
    return right / total if total else math.nan


def soft_pairwise_accuracy(human, metric, signs):
    """Each system of a pair comes first once: mt-metrics-eval has no given order."""
    gaps = []
    for i, j in permutations(range(len(human)), 2):
        human_values, scores = human[i] - human[j], metric[i] - metric[j]
        both = ~np.isnan(human_values) & ~np.isnan(scores)
        if both.any():
            ps = [
                np.mean([(row[both] * d[both]).sum() >= d[both].sum() - 1e-9 for row in signs])
                for d in (human_values, scores)
            ]
            gaps.append(abs(ps[0] - ps[1]))
    return 1 - sum(gaps) / len(gaps) if gaps else math.nan


def perm_both_spa(human, first, second, swaps, signs):
    """SPA of each mixture less that of its opposite, one swap after the other."""
    a, b = stats.zscore(first, axis=None), stats.zscore(second, axis=None)
    draws = []
    for mask in swaps:  # (systems, segments) of booleans
        one = soft_pairwise_accuracy(human, np.where(mask, a, b), signs)
        other = soft_pairwise_accuracy(human, np.where(mask, b, a), signs)
        draws.append(one - other)
    return np.array(draws)


def pair_lots(human, first, second, epsilons, resamples, rng):
    """acc_eq of two metrics, with their outcomes on each pair of translations swapped at random."""
    draws = []
    for _ in range(resamples):
        values = []
        for one, other in zip(
            groups(human, first, "item"), groups(human, second, "item"), strict=True
        ):
            right = []
            for k, m in combinations(range(len(one)), 2):
                human_values = one[k][0] - one[m][0]
                verdicts = [
                    outcome(human_values, group[k][1] - group[m][1], epsilon) in (0, 4)
                    for group, epsilon in zip((one, other), epsilons, strict=True)
                ]
                right.append(verdicts[::-1] if rng.random() < 0.5 else verdicts)
            values.append(np.mean(right, axis=0))
        both = np.mean(values, axis=0)
        draws.append(both[0] - both[1])
    return np.array(draws)
