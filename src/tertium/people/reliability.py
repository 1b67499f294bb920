"""Reliability of raters: Krippendorff's alpha, ICC, correlation, kappa and span agreement.

Each statistic is a function of weights: how often each translation counts, (samples, units). With
weights of 1 it gives the value, with those of bootstrap samples the interval. Ratings are
(raters, units), NaN where a rater did not judge.

    alpha     1 - observed / expected disagreement; squared differences (interval) or squared
              differences of mid-ranks (ordinal)
    ICC       (MSB - MSW) / (MSB + (k0 - 1) MSW): one rater, one-way random effects, ICC(1)
    Pearson   Pearson's r of two raters, averaged over pairs of raters with the number of shared
              translations as weights
    kappa     Cohen's kappa of two raters for the worst severity in a translation, averaged over
              pairs of raters like the correlation
    spans     F1 of two raters, by characters and by spans with partial credit, micro-averaged

How each rater judges: bias, spread, drift over time, agreement with the others, checks.

    bias         mean difference to the mean of other raters on the same translations
    agreement    Pearson's r with the mean of other raters
    drift        change of the bias over 100 judgments, by least squares, in order of time
    alpha        Krippendorff's alpha of all raters without this one

A rater is a candidate for leaving out if agreement is low and alpha is higher without the rater, or
if too few attention checks were passed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import combinations

import numpy as np
from numpy.typing import ArrayLike

from tertium.core.arrays import FloatArray, IntArray, divide, nan_mean
from tertium.core.errors import DataError
from tertium.core.resampling import draw_group_counts, percentile_interval
from tertium.core.segment import Judgment
from tertium.core.spans import ErrorAnnotations
from tertium.data.judgments import JudgmentSet
from tertium.meta.agreement import correlate, ranks
from tertium.meta.replicates import pearson_replicate
from tertium.meta.span_scores import Count, count_characters, f1_from_totals, match_spans

Measure = Callable[
    [FloatArray], FloatArray
]  # weights (samples, units) -> (samples,) or (samples, 1)
PairMeasure = Callable[[FloatArray, FloatArray], Measure]  # of two raters
MIN_SHARED = 3  # translations for a correlation of two raters
SEVERITY_LEVELS = {"neutral": 0, "bad": 1, "minor": 1, "major": 2, "critical": 3}
CEILING = "ceiling of metrics"
SPAN_STATISTICS: Mapping[str, Count] = {
    "F1 of characters": count_characters,
    "F1 of spans, partial credit": match_spans,
}


@dataclass(frozen=True, kw_only=True, eq=False)
class Ratings:
    """Scores of translations by named raters, in the order in which they were given.

    `unit` is the number of the translation (system and item), `cluster` that of its document, or
    of its item if documents are unknown. All arrays are (judgments,). `seconds` are the
    working times, NaN if unknown.
    """

    name: str
    raters: tuple[str, ...]
    systems: tuple[str, ...]
    judgments: tuple[Judgment, ...] = field(repr=False)
    rater: IntArray = field(repr=False)
    system: IntArray = field(repr=False)
    unit: IntArray = field(repr=False)
    cluster: IntArray = field(repr=False)
    scores: FloatArray = field(repr=False)
    seconds: FloatArray = field(repr=False)

    @classmethod
    def from_judgments(
        cls,
        judgments: JudgmentSet,
        *,
        seconds: Mapping[tuple[str, str, str], float | None] | None = None,
        exclude: Sequence[str] = (),
    ) -> Ratings:
        """Arrange judgments; `seconds` are working times by rater, item and system.

        Raters of `exclude` keep their numbers, but have no judgments.
        """
        entries = [entry for entry in judgments.judgments if entry.annotator]
        rows = [n for n, entry in enumerate(entries) if entry.annotator not in exclude]
        if not rows:
            raise DataError(
                f"{judgments.title}: no judgments of raters; agreement needs a column rater or "
                "annotator"
            )
        raters, rater = _number([entry.annotator for entry in entries])
        systems, system = _number([entry.system for entry in entries])
        items, item = _number([entry.item for entry in entries])
        clusters = _number([_cluster_name(entry) for entry in entries])[1]
        units = (system * len(items) + item)[rows]
        chosen = tuple(entries[row] for row in rows)
        times = [(seconds or {}).get((e.annotator, e.item, e.system)) for e in chosen]
        return cls(
            name=judgments.title,
            raters=raters,
            systems=systems,
            judgments=chosen,
            rater=rater[rows],
            system=system[rows],
            unit=np.unique(units, return_inverse=True)[1],
            cluster=clusters[rows],
            scores=np.array([entry.score for entry in chosen], dtype=np.float64),
            seconds=np.array(times, dtype=np.float64),
        )

    def __len__(self) -> int:
        return len(self.scores)

    @property
    def unit_count(self) -> int:
        return int(self.unit.max()) + 1

    def arrange(self, values: ArrayLike) -> FloatArray:
        """Return values of judgments as (raters, translations), NaN where a rater did not judge.

        The last judgment of a rater about a translation counts.
        """
        matrix = np.full((len(self.raters), self.unit_count), np.nan)
        matrix[self.rater, self.unit] = values
        return matrix

    @cached_property
    def matrix(self) -> FloatArray:
        """Scores (raters, translations), NaN where a rater did not judge; repeats are averaged."""
        shape = len(self.raters), self.unit_count
        cells = np.ravel_multi_index((self.rater, self.unit), shape)
        size = shape[0] * shape[1]
        means = divide(np.bincount(cells, self.scores, size), np.bincount(cells, minlength=size))
        return means.reshape(shape)

    @cached_property
    def unit_clusters(self) -> IntArray:
        """The cluster of each translation."""
        clusters = np.zeros(self.unit_count, dtype=np.int64)
        clusters[self.unit] = self.cluster
        return clusters

    @cached_property
    def standardized(self) -> FloatArray:
        """Scores as z per rater; raters who gave one value get NaN."""
        values = np.full(len(self), np.nan)
        for number in range(len(self.raters)):
            is_rater = self.rater == number
            scores = self.scores[is_rater]
            if len(scores) > 1 and scores.min() < scores.max():
                values[is_rater] = (scores - scores.mean()) / scores.std(ddof=1)
        return values


def _cluster_name(judgment: Judgment) -> str:
    """Return the document of a judgment, without the system that Appraise appends to it."""
    document, hash_sign, suffix = judgment.document.rpartition("#")
    if hash_sign and judgment.system.endswith(suffix):
        return document
    return judgment.document or judgment.item


def _number(names: Sequence[str]) -> tuple[tuple[str, ...], IntArray]:
    """Number names in order of first appearance."""
    places = {name: n for n, name in enumerate(dict.fromkeys(names))}
    return tuple(places), np.array([places[name] for name in names], dtype=np.int64)


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

    def summarize(self, name: str, measure: Measure, count: int) -> Statistic:
        """Return the value of a statistic, with its interval if there are several documents."""
        low = high = math.nan
        value = float(measure(np.ones((1, len(self.clusters))))[0])
        if not math.isnan(value) and len(np.unique(self.clusters)) > 1:
            weights = draw_group_counts(self.clusters, self.resamples, self.rng)
            low, high = np.squeeze(percentile_interval(measure(weights)[:, None]))
        return Statistic(name=name, value=value, low=float(low), high=float(high), count=count)

    def average_pairs(self, name: str, ratings: FloatArray, measure: PairMeasure) -> Statistic:
        """Return the mean of a statistic over pairs of raters, by their shared translations."""
        pairs = [*rater_pairs(ratings)]
        if not pairs:
            return Statistic(name=name, value=math.nan)
        measures = [measure(ratings[a, units], ratings[b, units]) for a, b, units in pairs]

        def average(weights: FloatArray) -> FloatArray:
            totals, counts = np.zeros((2, len(weights)))
            for (_, _, units), get in zip(pairs, measures, strict=True):
                drawn = weights[:, units]
                values = get(drawn).reshape(-1)
                sizes = np.where(np.isnan(values), 0.0, drawn.sum(axis=1))
                totals += np.nan_to_num(values) * sizes
                counts += sizes
            return divide(totals, counts)

        count = sum(len(units) for _, _, units in pairs)
        return self.summarize(name, average, count)


def measure_agreement(
    ratings: Ratings, resamples: int, rng: np.random.Generator
) -> list[Statistic]:
    """Return all agreement statistics that the judgments allow."""
    matrix = ratings.matrix
    counts = (~np.isnan(matrix)).sum(axis=0)
    shared = int((counts >= 2).sum())
    if not shared:
        return []
    resampler = Resampler(clusters=ratings.unit_clusters, resamples=resamples, rng=rng)
    sums = rating_sums(matrix)
    rank_sums = rating_sums(matrix, ordinal=True)
    statistics = [
        resampler.summarize("alpha, interval", lambda w: alpha_from_sums(w @ sums), shared),
        resampler.summarize("alpha, ordinal", lambda w: alpha_from_sums(w @ rank_sums), shared),
        resampler.summarize("ICC(1)", lambda w: icc_from_sums(w @ sums), shared),
        resampler.average_pairs("Pearson", matrix, measure_pearson),
        *error_statistics(ratings, resampler),
    ]
    icc = statistics[2]
    raters = float(counts[counts > 0].mean())
    value, low, high = (_ceiling(bound, raters) for bound in (icc.value, icc.low, icc.high))
    return [*statistics, Statistic(name=CEILING, value=value, low=low, high=high, count=shared)]


def _ceiling(reliability: float, raters: float) -> float:
    """Return the highest correlation that a metric can expect with the mean of the raters."""
    if not 0 < reliability <= 1:
        return math.nan
    return math.sqrt(spearman_brown(reliability, raters))


def rating_sums(ratings: FloatArray, *, ordinal: bool = False) -> FloatArray:
    """Return sums over the ratings of each unit with two or more ratings, (units, 7).

    They are 1, n, n^2, sum, sum of squares, sum^2 / n, and the mean squared difference times n.
    """
    is_shared = (~np.isnan(ratings)).sum(axis=0) >= 2
    values = np.where(is_shared, ratings, np.nan)
    if ordinal:
        values = ranks(values.reshape(-1)).reshape(values.shape)
    present = ~np.isnan(values)
    center = float(values[present].mean()) if present.any() else 0.0
    filled = np.where(present, values - center, 0.0)  # centering keeps the sums exact
    counts = present.sum(axis=0).astype(np.float64)
    sums = filled.sum(axis=0)
    squares = (filled**2).sum(axis=0)
    within = 2 * (counts * squares - sums**2) / np.maximum(1, counts - 1)
    unit_squares = sums**2 / np.maximum(1, counts)
    return np.stack([is_shared, counts, counts**2, sums, squares, unit_squares, within], axis=1)


def alpha_from_sums(totals: FloatArray) -> FloatArray:
    """Compute alpha from the sums of units, (..., 7) -> (...); NaN if all values are equal."""
    _, counts, _, sums, squares, _, within = np.moveaxis(np.asarray(totals), -1, 0)
    observed = divide(within, counts)
    expected = divide(2 * (counts * squares - sums**2), counts * (counts - 1))
    is_flat = expected <= 1e-12 * np.maximum(1.0, divide(squares, counts))
    return 1 - divide(observed, np.where(is_flat, 0.0, expected))


def krippendorff_alpha(ratings: FloatArray, *, ordinal: bool = False) -> float:
    """Compute Krippendorff's alpha of interval or ordinal ratings (raters, units).

    >>> round(krippendorff_alpha(np.array([[1.0, 2, 3, 4], [1, 2, 3, 5]])), 3)
    0.937
    """
    return float(alpha_from_sums(rating_sums(ratings, ordinal=ordinal).sum(axis=0)))


def icc_from_sums(totals: FloatArray) -> FloatArray:
    """Compute ICC(1), the reliability of one rater, (..., 7) -> (...)."""
    units, counts, counts_squared, sums, squares, unit_squares, _ = np.moveaxis(
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


def rater_pairs(
    ratings: FloatArray, minimum: int = MIN_SHARED
) -> Iterator[tuple[int, int, IntArray]]:
    """Yield pairs of raters with the units that both judged."""
    present = ~np.isnan(ratings)
    for a, b in combinations(range(len(ratings)), 2):
        shared = np.flatnonzero(present[a] & present[b])
        if len(shared) >= minimum:
            yield a, b, shared


def measure_pearson(left: FloatArray, right: FloatArray) -> Measure:
    return pearson_replicate(left[None], right[None, None])


def measure_kappa(left: FloatArray, right: FloatArray) -> Measure:
    """Return Cohen's kappa of the severity levels of two raters."""
    size = len(set(SEVERITY_LEVELS.values()))
    cells = np.eye(size * size)[(left * size + right).astype(np.int64)]
    return lambda weights: cohen_kappa((weights @ cells).reshape(-1, size, size))


def cohen_kappa(tables: FloatArray) -> FloatArray:
    """Compute Cohen's kappa, (..., levels, levels) -> (...); NaN if agreement by chance is certain.

    A table counts translations by the level of the first rater and that of the second.

    >>> round(float(cohen_kappa(np.array([[20.0, 5.0], [10.0, 15.0]]))), 3)
    0.4
    """
    count = tables.sum(axis=(-1, -2))
    observed = divide(np.trace(tables, axis1=-2, axis2=-1), count)
    first = tables.sum(axis=-1)
    second = tables.sum(axis=-2)
    expected = divide((first * second).sum(axis=-1), count**2)
    return divide(observed - expected, np.where(expected > 1 - 1e-12, 0.0, 1 - expected))


def worst_severity(annotations: ErrorAnnotations | None) -> float:
    """Return the level of the worst error, 0 without errors, NaN if errors were not marked."""
    if annotations is None:
        return math.nan
    return max((SEVERITY_LEVELS[error.severity] for error in annotations.errors), default=0)


def error_statistics(ratings: Ratings, resampler: Resampler) -> list[Statistic]:
    """Return the agreement of marked errors; empty if no errors are marked."""
    levels = ratings.arrange([worst_severity(j.error_annotations) for j in ratings.judgments])
    pairs = [*rater_pairs(levels, minimum=1)]
    if not pairs:
        return []
    kappa = resampler.average_pairs("kappa of worst severity", levels, measure_kappa)
    spans = [j.error_annotations.spans if j.error_annotations else () for j in ratings.judgments]
    lengths = np.array([len(j.segment.hypothesis) for j in ratings.judgments])
    if not lengths.any():
        return [kappa]
    rows = ratings.arrange(np.arange(len(ratings)))
    count = int((~np.isnan(levels)).any(axis=0).sum())
    statistics = []
    for name, count_credit in SPAN_STATISTICS.items():
        sums = np.zeros((levels.shape[1], 3))
        for a, b, shared in pairs:
            left, right = rows[[a, b]][:, shared].astype(int)
            sums[shared] += count_credit(
                [spans[n] for n in left],
                [spans[n] for n in right],
                np.maximum(lengths[left], lengths[right]).tolist(),
            )
        statistics.append(resampler.summarize(name, _measure_f1(sums), count))
    return [*statistics, kappa]


def _measure_f1(sums: FloatArray) -> Measure:
    return lambda weights: f1_from_totals(weights @ sums)


MIN_AGREEMENT = 0.2  # Pearson's r with the other raters
MIN_ALPHA_GAIN = 0.02
MIN_CHECKS_PASSED = 0.5
DRIFT_STEP = 100  # judgments


@dataclass(frozen=True, kw_only=True)
class RaterQuality:
    """One rater compared with the others; NaN where nothing is shared."""

    rater: str
    judgments: int
    mean: float
    deviation: float
    bias: float
    agreement: float
    drift: float
    drift_error: float
    alpha_without: float
    seconds: float
    checks: int = 0
    checks_passed: int = 0
    reasons: tuple[str, ...] = ()


def describe_raters(
    ratings: Ratings,
    checks: Mapping[str, tuple[int, int]] | None = None,
    *,
    min_shared: int = MIN_SHARED,
) -> list[RaterQuality]:
    """Return the quality of each rater; `checks` are passed and all checks by rater.

    Agreement needs `min_shared` translations that others judged, too.
    """
    matrix = ratings.matrix
    alpha = krippendorff_alpha(matrix)
    qualities = []
    for number, name in enumerate(ratings.raters):
        is_rater = ratings.rater == number
        if not is_rater.any():
            continue
        remaining = np.delete(matrix, number, axis=0)
        other_means = nan_mean(remaining.T)
        difference = matrix[number] - other_means
        shared = ~np.isnan(difference)
        scores = ratings.scores[is_rater]
        seconds = ratings.seconds[is_rater]
        drift, error = fit_drift(difference[ratings.unit[is_rater]])
        passed, count = (checks or {}).get(name, (0, 0))
        agreement = without = math.nan
        if shared.sum() >= min_shared:
            agreement = float(correlate(matrix[number], other_means, shared))
        if len(remaining) > 1:
            without = krippendorff_alpha(remaining)
        quality = RaterQuality(
            rater=name,
            judgments=len(scores),
            mean=float(scores.mean()),
            deviation=float(scores.std(ddof=1)) if len(scores) > 1 else math.nan,
            bias=float(nan_mean(difference)),
            agreement=agreement,
            drift=drift,
            drift_error=error,
            alpha_without=without,
            seconds=median(seconds),
            checks=count,
            checks_passed=passed,
            reasons=_reasons(agreement, without - alpha, passed, count),
        )
        qualities.append(quality)
    return qualities


def _reasons(agreement: float, gain: float, passed: int, checks: int) -> tuple[str, ...]:
    reasons = []
    if agreement < MIN_AGREEMENT and gain > MIN_ALPHA_GAIN:
        reasons.append(f"low agreement with others ({agreement:.2f})")
    if passed < MIN_CHECKS_PASSED * checks:
        reasons.append(f"{passed} of {checks} attention checks passed")
    return tuple(reasons)


def fit_drift(differences: FloatArray) -> tuple[float, float]:
    """Return the change of the bias over 100 judgments and its standard error."""
    places = np.flatnonzero(~np.isnan(differences)).astype(np.float64)
    values = differences[~np.isnan(differences)]
    if len(values) < MIN_SHARED + 1:
        return math.nan, math.nan
    (slope, _), covariance = np.polyfit(places, values, 1, cov=True)
    return DRIFT_STEP * float(slope), DRIFT_STEP * math.sqrt(covariance[0, 0])


def median(values: FloatArray) -> float:
    """Return the median of the defined values; NaN without values."""
    defined = values[~np.isnan(values)]
    return float(np.median(defined)) if len(defined) else math.nan
