"""A non-inferiority test of two systems under any metric with additive statistics.

The difference of two system scores is studentized with the jackknife: the pseudo-value of segment i
is n D - (n - 1) D(-i), where D(-i) is the difference without that segment (Tukey 1958). For a mean
of segment scores, this is the paired t-test. If a few segments lose much and the others nothing,
the t-test finds too often that nothing is lost; the cubic transformation of Hall (1992, "On the
removal of skewness by transformation") corrects for that. A claim needs both: its p-value is the
larger of the two. There is no resampling: the same texts always get the same verdict, and p-values
have no smallest value, so that many can be adjusted. `benchmarks/gate.py` measures the level.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from tertium.core.arrays import FloatArray
from tertium.core.errors import LengthError
from tertium.core.scores import Scores

POWER = 0.8  # chance of a decision with the planned number of segments
MIN_SEGMENTS_TO_TEST = 10  # with fewer, variance and skewness cannot be estimated


@dataclass(frozen=True)
class Difference:
    """How much better a candidate is than a baseline (positive), with its sampling distribution.

    `value` is the observed difference, `center` is without the bias of small samples,
    `standard_error` and `skewness` (of the mean) are estimated from `segments` segments.
    """

    value: float
    center: float
    standard_error: float
    skewness: float
    segments: int

    @property
    def is_testable(self) -> bool:
        """Whether the difference and its standard error are known."""
        return self.segments >= MIN_SEGMENTS_TO_TEST and math.isfinite(self.standard_error)

    def p_greater(self, bound: float) -> float:
        """Return the p-value of the claim that the true difference is greater than `bound`.

        If no segment differs, the difference is certain: p is 0 or 1.
        """
        return self._p_less(-bound, -1.0)

    def p_less(self, bound: float) -> float:
        """Return the p-value of the claim that the true difference is less than `bound`."""
        return self._p_less(bound, 1.0)

    def _p_less(self, bound: float, sign: float) -> float:
        if not self.is_testable:
            return math.nan
        center = sign * self.center
        if self.standard_error == 0:
            return 0.0 if center < bound else 1.0
        ratio = (center - bound) / self.standard_error
        corrected = remove_skewness(ratio, sign * self.skewness)
        from scipy.special import stdtr

        return float(stdtr(self.segments - 1, max(ratio, corrected)))

    def interval(self, alpha: float) -> tuple[float, float]:
        """Return the bounds that the true difference exceeds, or stays below, at level `alpha`."""
        if not self.is_testable:
            return math.nan, math.nan
        from scipy.special import stdtrit

        quantile = float(stdtrit(self.segments - 1, 1 - alpha))
        low = max(quantile, add_skewness(quantile, self.skewness))
        high = min(-quantile, add_skewness(-quantile, self.skewness))
        return self.center - low * self.standard_error, self.center - high * self.standard_error

    def segments_to_decide(self, bound: float, alpha: float) -> float:
        """Return how many segments in all would show on which side of `bound` the difference is.

        The chance is `POWER`, if the true difference and the variance are the observed ones;
        infinite for a difference at the bound.
        """
        distance = abs(self.center - bound)
        if not self.is_testable or distance == 0:
            return math.inf
        from scipy.special import ndtri

        quantiles = float(ndtri(1 - alpha) + ndtri(POWER))
        return self.segments * (quantiles * self.standard_error / distance) ** 2


def measure_difference(candidate: Scores, baseline: Scores) -> Difference:
    """Return the difference of two systems on the same segments, positive if `candidate` is better.

    >>> mean = lambda totals: totals[..., 0] / totals[..., 1]
    >>> rows = np.column_stack([np.arange(12.0), np.ones(12)])
    >>> new, old = (Scores("demo", rows * [k, 1], mean) for k in (1.1, 1))
    >>> difference = measure_difference(new, old)
    >>> round(difference.value, 2), round(difference.standard_error, 3)
    (0.55, 0.104)
    """
    if len(candidate) != len(baseline):
        raise LengthError(f"{len(candidate)} and {len(baseline)} segments: expected the same")
    count = len(candidate)
    value = candidate.sign * (candidate.system - baseline.system)
    if count < 2:
        return Difference(value, value, math.nan, math.nan, count)
    with np.errstate(invalid="ignore", divide="ignore"):
        without = candidate.sign * (_leave_one_out(candidate) - _leave_one_out(baseline))
        pseudo_values = count * value - (count - 1) * without
        center, deviation = float(pseudo_values.mean()), float(pseudo_values.std(ddof=1))
    if not deviation > 1e-9 * max(1.0, abs(value)) * math.sqrt(count):  # rounding, or NaN
        deviation = 0.0 if deviation == deviation else math.nan
        return Difference(value, value, deviation, 0.0, count)
    third_moment = float(np.mean(((pseudo_values - center) / deviation) ** 3))
    return Difference(
        value, center, deviation / math.sqrt(count), third_moment / math.sqrt(count), count
    )


def _leave_one_out(scores: Scores) -> FloatArray:
    totals = scores.statistics.sum(axis=0) - scores.statistics
    return scores.scores_from_totals(totals)


def remove_skewness(ratio: float, skewness: float) -> float:
    """Transform a studentized mean with this skewness so that it is nearly normal; increasing.

    The formula is x + s (2 x^2 + 1) / 6 + s^2 x^3 / 27 for a mean of skewness s.
    """
    return ratio + skewness * (2 * ratio**2 + 1) / 6 + skewness**2 * ratio**3 / 27


def add_skewness(quantile: float, skewness: float) -> float:
    """Invert `remove_skewness`.

    >>> round(add_skewness(remove_skewness(1.5, -0.3), -0.3), 9)
    1.5
    """
    if abs(skewness) < 1e-6:
        return quantile
    cube = 1 + skewness * (quantile - skewness / 6)
    return 3 / skewness * (math.copysign(abs(cube) ** (1 / 3), cube) - 1)


def round_up(value: float) -> float:
    """Round up to two significant digits; 0 for negative values.

    >>> round_up(0.4123), round_up(12.01), round_up(1234), round_up(0.0)
    (0.42, 13.0, 1300.0, 0.0)
    """
    if not 0 < value < math.inf:
        return max(value, 0.0)
    places = 1 - math.floor(math.log10(value))
    return float(math.ceil(round(value * 10.0**places, 9)) / 10.0**places)
