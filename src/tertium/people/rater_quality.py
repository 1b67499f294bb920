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
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from tertium.core.arrays import FloatArray
from tertium.meta.correlation import correlate
from tertium.people.campaign import Campaign
from tertium.people.rater_answers import RaterAnswer, latest_answers, score_answer
from tertium.people.rating_tables import Ratings
from tertium.people.reliability import MIN_SHARED, krippendorff_alpha

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

    @property
    def should_leave_out(self) -> bool:
        return bool(self.reasons)


def describe_raters(
    ratings: Ratings, checks: Mapping[str, tuple[int, int]] | None = None
) -> list[RaterQuality]:
    """Return the quality of each rater; `checks` are passed and all checks by rater."""
    matrix = ratings.matrix
    alpha = krippendorff_alpha(matrix)
    present = ~np.isnan(matrix)
    totals, counts = np.nansum(matrix, axis=0), present.sum(axis=0)
    qualities = []
    for number, name in enumerate(ratings.raters):
        own = ratings.rater == number
        if not own.any():
            continue
        rest = counts - present[number]
        other_means = np.where(
            rest > 0, (totals - np.nan_to_num(matrix[number])) / np.maximum(1, rest), np.nan
        )
        difference = matrix[number] - other_means
        shared = ~np.isnan(difference)
        remaining = np.delete(matrix, number, axis=0)
        without = krippendorff_alpha(remaining) if len(remaining) > 1 else math.nan
        scores = ratings.scores[own]
        drift, error = fit_drift(difference[ratings.unit[own]])
        passed, count = (checks or {}).get(name, (0, 0))
        agreement = math.nan
        if shared.sum() >= MIN_SHARED:
            agreement = float(correlate(matrix[number], other_means, shared))
        qualities.append(
            RaterQuality(
                rater=name,
                judgments=int(own.sum()),
                mean=float(scores.mean()),
                deviation=float(scores.std(ddof=1)) if len(scores) > 1 else math.nan,
                bias=float(np.nanmean(difference)) if shared.any() else math.nan,
                agreement=agreement,
                drift=drift,
                drift_error=error,
                alpha_without=without,
                seconds=_median(ratings.seconds[own]),
                checks=count,
                checks_passed=passed,
                reasons=_reasons(agreement, without - alpha, passed, count),
            )
        )
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
    centered = places - places.mean()
    spread = float((centered**2).sum())
    slope = float((centered * (values - values.mean())).sum()) / spread
    residuals = values - values.mean() - slope * centered
    error = math.sqrt(float((residuals**2).sum()) / (len(values) - 2) / spread)
    return DRIFT_STEP * slope, DRIFT_STEP * error


def count_checks(campaign: Campaign, answers: Sequence[RaterAnswer]) -> dict[str, tuple[int, int]]:
    """Return passed and answered attention checks by rater.

    A check is passed if its score is lower than that of the original by the same rater, or within
    the expected range if there is no original answer.
    """
    scores: dict[tuple[str, str, str], float] = {}
    for answer in latest_answers(answers):
        if answer.is_complete(campaign.protocol) and campaign.protocol != "ranking":
            scores[answer.key] = score_answer(answer, campaign)
    counts: dict[str, tuple[int, int]] = {}
    for (rater, name, system), score in scores.items():
        item = campaign.items_by_id.get(name)
        if item is None or item.kind != "check":
            continue
        original = scores.get((rater, item.original, system))
        low, high = item.expected.get(system, (-math.inf, 60.0))
        is_passed = score < original if original is not None else low <= score <= high
        passed, total = counts.get(rater, (0, 0))
        counts[rater] = passed + is_passed, total + 1
    return counts


def _median(values: FloatArray) -> float:
    defined = values[~np.isnan(values)]
    return float(np.median(defined)) if len(defined) else math.nan
