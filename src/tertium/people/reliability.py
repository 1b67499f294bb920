"""Reliability of raters: Krippendorff's alpha, ICC, correlations, kappa and span agreement.

Each statistic is a formula of sums over translations, so a bootstrap sample is a weighted sum.
Ratings are (raters, units), NaN where a rater did not judge.

    alpha     1 - observed / expected disagreement; squared differences (interval) or squared
              differences of mid-ranks (ordinal)
    ICC       (MSB - MSW) / (MSB + (k0 - 1) MSW): one rater, one-way random effects, ICC(1)
    pairs     Pearson's r and Kendall's tau-b of two raters, averaged over pairs of raters with the
              number of shared translations as weights
    kappa     Cohen's kappa of two raters for the worst severity in a translation, averaged over
              pairs of raters like the correlations
    spans     F1 of two raters, by characters and by spans with partial credit, micro-averaged
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from tertium.core.arrays import FloatArray, IntArray, divide
from tertium.core.resampling import draw_group_counts
from tertium.core.spans import ErrorAnnotations, Span, UnlocatedError
from tertium.meta.correlation import ranks
from tertium.meta.pairwise import kendall_b
from tertium.meta.replicates import kendall_b_replicate
from tertium.meta.span_scores import count_characters, f1_from_totals, match_spans

Reduce = Callable[[FloatArray], FloatArray]  # sums (..., k) -> (...)
MIN_SHARED = 3  # translations for a correlation of two raters
MAX_KENDALL_UNITS = 1500  # shared translations, whose pairs are resampled
MAX_KENDALL_PAIRS = 15  # of raters, for an interval
SEVERITY_LEVELS = {"neutral": 0, "bad": 1, "minor": 1, "major": 2, "critical": 3}


@dataclass(frozen=True, kw_only=True)
class Statistic:
    """A value with a 95 % interval and the number of translations or judgments it is based on."""

    name: str
    value: float
    low: float = math.nan
    high: float = math.nan
    count: int = 0


@dataclass(frozen=True, kw_only=True)
class Resampler:
    """Draws documents with replacement; `clusters` is the document number of each unit."""

    clusters: IntArray
    resamples: int
    rng: np.random.Generator

    def weights(self) -> FloatArray:
        """Return how often each unit was drawn, (resamples, units)."""
        return draw_group_counts(self.clusters, self.resamples, self.rng)

    def summarize(self, name: str, sums: FloatArray, reduce: Reduce, count: int) -> Statistic:
        """Return a statistic of sums over units (units, k), with its interval."""
        value = float(reduce(sums.sum(axis=0)))
        if math.isnan(value) or len(np.unique(self.clusters)) < 2:
            return Statistic(name=name, value=value, count=count)
        samples = reduce(self.weights() @ sums)
        low, high = quantiles(samples)
        return Statistic(name=name, value=value, low=low, high=high, count=count)


def quantiles(samples: FloatArray) -> tuple[float, float]:
    """Return the bounds of a 95 % interval; NaN without samples."""
    defined = samples[~np.isnan(samples)]
    if not len(defined):
        return math.nan, math.nan
    low, high = np.quantile(defined, [0.025, 0.975])
    return float(low), float(high)


def alpha_sums(ratings: FloatArray, *, ordinal: bool = False) -> FloatArray:
    """Return the sums of Krippendorff's alpha for each unit, (units, 4)."""
    is_pairable = (~np.isnan(ratings)).sum(axis=0) >= 2
    values = np.where(is_pairable, ratings, np.nan)
    if ordinal:
        values = ranks(values.reshape(-1)).reshape(values.shape)
    present = ~np.isnan(values)
    center = float(values[present].mean()) if present.any() else 0.0
    filled = np.where(present, values - center, 0.0)  # centering keeps the sums exact
    counts = present.sum(axis=0).astype(np.float64)
    sums, squares = filled.sum(axis=0), (filled**2).sum(axis=0)
    differences = 2 * (counts * squares - sums**2)
    within = np.where(counts >= 2, differences / np.maximum(1, counts - 1), 0.0)
    return np.stack([counts, sums, squares, within], axis=1)


def alpha_from_sums(totals: FloatArray) -> FloatArray:
    """Compute alpha from the sums of units, (..., 4) -> (...); NaN if all values are equal."""
    counts, sums, squares, within = np.moveaxis(np.asarray(totals), -1, 0)
    observed = divide(within, counts)
    expected = divide(2 * (counts * squares - sums**2), counts * (counts - 1))
    is_flat = expected <= 1e-12 * np.maximum(1.0, divide(squares, counts))
    return 1 - divide(observed, np.where(is_flat, 0.0, expected))


def krippendorff_alpha(ratings: FloatArray, *, ordinal: bool = False) -> float:
    """Compute Krippendorff's alpha of interval or ordinal ratings (raters, units).

    >>> round(krippendorff_alpha(np.array([[1.0, 2, 3, 4], [1, 2, 3, 5]])), 3)
    0.937
    """
    return float(alpha_from_sums(alpha_sums(ratings, ordinal=ordinal).sum(axis=0)))


def icc_sums(ratings: FloatArray) -> FloatArray:
    """Return the sums of the one-way ICC for each unit with two or more ratings, (units, 6)."""
    is_shared = (~np.isnan(ratings)).sum(axis=0) >= 2
    values = np.where(is_shared, ratings, np.nan)
    present = ~np.isnan(values)
    center = float(values[present].mean()) if present.any() else 0.0
    filled = np.where(present, values - center, 0.0)
    counts = present.sum(axis=0).astype(np.float64)
    sums, squares = filled.sum(axis=0), (filled**2).sum(axis=0)
    parts = [is_shared, counts, counts**2, sums, squares, sums**2 / np.maximum(1, counts)]
    return np.stack([np.asarray(part, dtype=np.float64) for part in parts], axis=1)


def icc_from_sums(totals: FloatArray) -> FloatArray:
    """Compute ICC(1), the reliability of one rater, (..., 6) -> (...)."""
    units, counts, counts_squared, sums, squares, unit_squares = np.moveaxis(
        np.asarray(totals), -1, 0
    )
    between = divide(unit_squares - divide(sums**2, counts), units - 1)
    within = divide(squares - unit_squares, counts - units)
    size = divide(counts - divide(counts_squared, counts), units - 1)
    return divide(between - within, between + (size - 1) * within)


def spearman_brown(reliability: float, raters: float) -> float:
    """Compute the reliability of the mean of several raters from that of one.

    >>> round(spearman_brown(0.5, 2), 3)
    0.667
    """
    return raters * reliability / (1 + (raters - 1) * reliability)


def rater_pairs(ratings: FloatArray) -> Iterator[tuple[int, int, IntArray]]:
    """Yield pairs of raters with the units that both judged."""
    for a, b in combinations(range(len(ratings)), 2):
        shared = np.flatnonzero(~np.isnan(ratings[a]) & ~np.isnan(ratings[b]))
        if len(shared) >= MIN_SHARED:
            yield a, b, shared


def pearson_statistic(ratings: FloatArray, resampler: Resampler) -> Statistic:
    """Compute Pearson's r of two raters, averaged over pairs."""
    blocks = []
    for a, b, shared in rater_pairs(ratings):
        sums = np.zeros((ratings.shape[1], 6))
        x, y = (ratings[r, shared] - ratings[r, shared].mean() for r in (a, b))
        sums[shared] = np.stack([np.ones(len(x)), x, y, x * x, y * y, x * y], axis=1)
        blocks.append(sums)
    if not blocks:
        return Statistic(name="Pearson", value=math.nan)
    count = int(sum(block[:, 0].sum() for block in blocks))
    return resampler.summarize("Pearson", np.concatenate(blocks, axis=1), _mean_pearson, count)


def _mean_pearson(totals: FloatArray) -> FloatArray:
    parts = totals.reshape(*totals.shape[:-1], -1, 6)
    n, x, y, xx, yy, xy = np.moveaxis(parts, -1, 0)
    spread = (n * xx - x * x) * (n * yy - y * y)
    r = divide(n * xy - x * y, np.sqrt(np.maximum(spread, 0.0)))
    return _weighted_average(r, n)


def _weighted_average(values: FloatArray, weights: FloatArray) -> FloatArray:
    is_defined = ~np.isnan(values)
    total = (np.where(is_defined, values, 0.0) * weights).sum(axis=-1)
    return divide(total, np.where(is_defined, weights, 0.0).sum(axis=-1))


def kendall_statistic(ratings: FloatArray, resampler: Resampler) -> Statistic:
    """Compute Kendall's tau-b of two raters, averaged over pairs."""
    pairs = [*rater_pairs(ratings)]
    if not pairs:
        return Statistic(name="Kendall", value=math.nan)
    sizes = np.array([len(shared) for _, _, shared in pairs], dtype=np.float64)
    values = np.array([float(kendall_b(ratings[a, s], ratings[b, s])) for a, b, s in pairs])
    value, count = float(_weighted_average(values, sizes)), int(sizes.sum())
    is_small = len(pairs) <= MAX_KENDALL_PAIRS and sizes.max() <= MAX_KENDALL_UNITS
    if not is_small or math.isnan(value):
        return Statistic(name="Kendall", value=value, count=count)
    weights = resampler.weights()
    samples = np.stack(
        [
            kendall_b_replicate(ratings[a, s][None], ratings[b, s][None, None])(weights[:, s])[:, 0]
            for a, b, s in pairs
        ],
        axis=-1,
    )
    averages = _weighted_average(samples, np.broadcast_to(sizes, samples.shape))
    low, high = quantiles(averages)
    return Statistic(name="Kendall", value=value, low=low, high=high, count=count)


def worst_severities(annotations: Sequence[ErrorAnnotations | None]) -> IntArray:
    """Return the level of the worst error of each translation, 0 without errors, -1 if unknown."""
    levels = []
    for marks in annotations:
        if marks is None:
            levels.append(-1)
            continue
        errors: list[Span | UnlocatedError] = [*marks.spans, *marks.missing]
        levels.append(max((SEVERITY_LEVELS[error.severity] for error in errors), default=0))
    return np.array(levels, dtype=np.int64)


def kappa_statistic(levels: FloatArray, resampler: Resampler) -> Statistic:
    """Compute Cohen's kappa of two raters, averaged over pairs.

    `levels` are severity levels (raters, units), NaN where a rater did not judge.
    """
    name = "kappa of worst severity"
    pairs = [*rater_pairs(levels)]
    if not pairs:
        return Statistic(name=name, value=math.nan)
    value = float(_mean_kappa(levels, pairs, np.ones((1, levels.shape[1])))[0])
    count = sum(len(shared) for _, _, shared in pairs)
    if math.isnan(value) or len(np.unique(resampler.clusters)) < 2:
        return Statistic(name=name, value=value, count=count)
    low, high = quantiles(_mean_kappa(levels, pairs, resampler.weights()))
    return Statistic(name=name, value=value, low=low, high=high, count=count)


def _mean_kappa(
    levels: FloatArray, pairs: Sequence[tuple[int, int, IntArray]], weights: FloatArray
) -> FloatArray:
    """Return the mean of kappa over pairs of raters for each sample of units, (samples,)."""
    size = len(set(SEVERITY_LEVELS.values()))
    kappas, counts = [], []
    for a, b, shared in pairs:
        first, second = (levels[rater, shared].astype(np.int64) for rater in (a, b))
        cells = np.eye(size * size)[first * size + second]
        tables = (weights[:, shared] @ cells).reshape(-1, size, size)
        kappas.append(cohen_kappa(tables))
        counts.append(tables.sum(axis=(-1, -2)))
    return _weighted_average(np.stack(kappas, axis=-1), np.stack(counts, axis=-1))


def cohen_kappa(tables: FloatArray) -> FloatArray:
    """Compute Cohen's kappa, (..., levels, levels) -> (...); NaN if agreement by chance is certain.

    A table counts translations by the level of the first rater and that of the second.

    >>> round(float(cohen_kappa(np.array([[20.0, 5.0], [10.0, 15.0]]))), 3)
    0.4
    """
    count = tables.sum(axis=(-1, -2))
    observed = divide(np.trace(tables, axis1=-2, axis2=-1), count)
    first, second = tables.sum(axis=-1), tables.sum(axis=-2)
    expected = divide((first * second).sum(axis=-1), count**2)
    return divide(observed - expected, np.where(expected > 1 - 1e-12, 0.0, 1 - expected))


def span_sums(
    marks: Sequence[Sequence[ErrorAnnotations | None]], lengths: Sequence[int], *, by_spans: bool
) -> FloatArray:
    """Return credit and sizes of pairs of raters for each unit, (units, 3).

    `marks` are the annotations of each rater and unit, None where a rater did not judge.
    """
    sums = np.zeros((len(lengths), 3))
    count = match_spans if by_spans else count_characters
    for a, b in combinations(range(len(marks)), 2):
        shared = [
            n
            for n, (left, right) in enumerate(zip(marks[a], marks[b], strict=True))
            if left is not None and right is not None
        ]
        if shared:
            sides = [[_spans(marks[rater][n]) for n in shared] for rater in (a, b)]
            sums[shared] += count(sides[0], sides[1], [lengths[n] for n in shared])
    return sums


def _spans(marks: ErrorAnnotations | None) -> tuple[Span, ...]:
    return () if marks is None else marks.spans


def span_statistics(
    marks: Sequence[Sequence[ErrorAnnotations | None]],
    lengths: Sequence[int],
    resampler: Resampler,
) -> list[Statistic]:
    """Compute F1 between raters, by characters and by spans."""
    statistics = []
    for name, by_spans in (("F1 of characters", False), ("F1 of spans, partial credit", True)):
        sums = span_sums(marks, lengths, by_spans=by_spans)
        count = sum(any(m[n] is not None for m in marks) for n in range(len(lengths)))
        statistics.append(resampler.summarize(name, sums, f1_from_totals, count))
    return statistics
