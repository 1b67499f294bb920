"""How each rater judges: bias, spread, drift over time, agreement with the others, checks.

    bias         mean difference to the mean of other raters on the same translations
    agreement    Pearson's r with the mean of other raters
    drift        change of the bias over 100 judgments, by least squares, in order of time
    alpha        Krippendorff's alpha of all raters without this one

A rater is a candidate for leaving out if agreement is low and alpha is higher without the rater, or
if too few attention checks were passed.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from tertium.core.arrays import FloatArray, nan_mean
from tertium.meta.correlation import correlate
from tertium.people.reliability import MIN_SHARED, Ratings, krippendorff_alpha

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
        scores, seconds = ratings.scores[is_rater], ratings.seconds[is_rater]
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
    if checks and passed / checks < MIN_CHECKS_PASSED:
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
