"""Scales that turn raw network scores into human scores: direct assessment (DA) and MQM.

The `config.json` of a model stores, for each scale, a monotone map from raw scores to 0..1, the
spread of human scores around it, and percentiles of WMT system outputs. DA raters grade a text as a
whole. MQM annotators add up errors, so of two texts of equal quality the longer one loses more. The
MQM scale therefore maps an error sum, computed from raw scores and lengths.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import log
from typing import Annotated

import numpy as np

from tertium.core.arrays import BoolArray, FloatArray
from tertium.core.fields import NON_NEGATIVE, POSITIVE, Rule
from tertium.metrics.bundled.input_rows import INPUT_MODES

Increasing = Annotated[
    tuple[float, ...],
    Rule(lambda v: len(v) > 1 and all(a < b for a, b in pairwise(v)), "increasing numbers"),
]
IN_OPEN_UNIT_INTERVAL = Rule(lambda v: all(0 < x < 1 for x in v), "numbers between 0 and 1")
ALL_MODES = Rule(lambda scales: set(scales) == {*INPUT_MODES}, f"the keys {', '.join(INPUT_MODES)}")
MAX_ERROR_SUM = 8.0  # the calibrated score is close to 0 here
RATE_SMOOTHING = 0.2  # width, in raw score, of the bend in the error rate near the best score


@dataclass(frozen=True, kw_only=True)
class Calibration:
    """Knots of the monotone map from raw scores to 0..1."""

    raw: Increasing
    score: Annotated[Increasing, IN_OPEN_UNIT_INTERVAL]


@dataclass(frozen=True, kw_only=True)
class Uncertainty:
    """Standard deviation of human scores around a calibrated score."""

    score: Increasing
    deviation: tuple[Annotated[float, POSITIVE], ...]


@dataclass(frozen=True, kw_only=True)
class Percentiles:
    """Percentiles of the scores of `segments` WMT system outputs."""

    score: Increasing
    percent: Increasing
    segments: int


@dataclass(frozen=True, kw_only=True)
class LengthPenalty:
    """Penalty `cost` log(words) on raw scores, with `least` to `most` words."""

    cost: Annotated[float, NON_NEGATIVE]
    least: Annotated[int, POSITIVE]
    most: Annotated[int, POSITIVE]

    def shift(self, references: Sequence[str]) -> FloatArray:
        """Return the value to add to the raw score of each reference.

        >>> penalty = LengthPenalty(cost=0.5, least=2, most=8)
        >>> penalty.shift(["a b c d", "b " * 8, "c " * 99]).round(3)
        array([-0.693, -1.04 , -1.04 ])
        """
        words = [min(max(len(text.split()), self.least), self.most) for text in references]
        return np.array([-self.cost * log(count) for count in words])

    def __str__(self) -> str:
        return f"length{self.cost:g}"


@dataclass(frozen=True, kw_only=True)
class ErrorPenalty:
    """Negative expected error sum of a text, from its raw score and its length.

        sum = rate (length / whole)^power      rate = (d + sqrt(d^2 + .04)) / 2      d = best - raw

    The rate falls linearly with the raw score and bends towards 0 near the `best` one. A text of
    the length `whole` at a rate of 1 has about as many errors as MQM counts at most.
    """

    best: float
    power: Annotated[float, POSITIVE]
    whole: Annotated[float, POSITIVE]

    def __call__(
        self, raw: FloatArray, lengths: FloatArray, failed: BoolArray | None = None
    ) -> FloatArray:
        """Return minus the error sum, so that higher is better, (n,).

        `failed` marks texts that are not a translation at all: they get at least `MAX_ERROR_SUM`.

        >>> penalty = ErrorPenalty(best=1.0, power=0.5, whole=40)
        >>> failed = np.array([False, False, False, True])
        >>> penalty(np.array([0.0, 0.0, -1.0, 0.0]), np.array([40, 160, 40, 40]), failed).round(2)
        array([-1.01, -2.02, -2.  , -8.  ])
        """
        distance = self.best - raw
        rate = (distance + np.hypot(distance, RATE_SMOOTHING)) / 2
        total: FloatArray = -rate * (lengths / self.whole) ** self.power
        if failed is None:
            return total
        return np.where(failed, np.minimum(total, -MAX_ERROR_SUM), total)


@dataclass(frozen=True, kw_only=True)
class HumanScale:
    """A scale of human scores: calibration, uncertainty and percentiles."""

    calibration: Calibration
    uncertainty: Uncertainty
    percentiles: Percentiles

    def calibrate(self, raw: FloatArray) -> FloatArray:
        """Map raw scores into (0, 1), strictly increasing."""
        knots = self.calibration
        inner = np.interp(raw, knots.raw, knots.score)
        low, high = knots.raw[0], knots.raw[-1]
        below = knots.score[0] * np.exp(np.minimum(raw - low, 0.0))
        above = 1 - (1 - knots.score[-1]) * np.exp(-np.maximum(raw - high, 0.0))
        mapped: FloatArray = np.where(raw < low, below, np.where(raw > high, above, inner))
        return mapped

    def deviation(self, scores: FloatArray) -> FloatArray:
        """Return the standard deviation of held-out human scores around each score."""
        values: FloatArray = np.interp(scores, self.uncertainty.score, self.uncertainty.deviation)
        return values

    def percentile(self, scores: FloatArray) -> FloatArray:
        """Return the percentage of WMT system outputs that score lower."""
        values: FloatArray = np.interp(scores, self.percentiles.score, self.percentiles.percent)
        return values


@dataclass(frozen=True, kw_only=True)
class MqmScale(HumanScale):
    """MQM (expert) scale over error sums: 1 means no error, 0 the maximum MQM penalty."""

    errors: ErrorPenalty


@dataclass(frozen=True, kw_only=True)
class NoErrorProbability:
    """Probability that a text has no error: 1 / (1 + (sum / half)^slope).

    >>> probability = NoErrorProbability(half=0.1, slope=2.0)
    >>> probability(np.array([-0.05, -0.1, -0.2])).round(2).tolist()
    [0.8, 0.5, 0.2]
    """

    half: Annotated[float, POSITIVE]
    slope: Annotated[float, POSITIVE]

    def __call__(self, negative_sums: FloatArray) -> FloatArray:
        """Map the output of `ErrorPenalty`, (n,), to probabilities."""
        probabilities: FloatArray = 1 / (1 + (-negative_sums / self.half) ** self.slope)
        return probabilities
