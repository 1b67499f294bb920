"""What raw scores mean to people: their place from 0 to 1, people's spread, how errors add up.

A model's config.json holds a monotone map from its raw scores to 0..1 (the range that people use in
direct assessment), how far people's scores lay from it, and where the outputs of WMT's systems
stand on it. Crowds say how good a text is; experts under MQM add up its errors, so that of two
texts of the same quality the longer one loses more. For them there is a second scale of the same
kind, from sums that follow from raw scores and lengths.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import log
from typing import Annotated

import numpy as np

from tertium.arrays import BoolArray, FloatArray
from tertium.errors import ModelError
from tertium.schema import NOT_NEGATIVE, POSITIVE, Rule

Increasing = Annotated[
    tuple[float, ...],
    Rule(lambda v: len(v) > 1 and all(a < b for a, b in pairwise(v)), "numbers that increase"),
]
INSIDE = Rule(lambda v: all(0 < x < 1 for x in v), "numbers between 0 and 1")
ALL = 8.0  # a sum of errors of which hardly anything is left
BEND = 0.2  # of raw score, around the best, where the rate of errors turns towards none


@dataclass(frozen=True, kw_only=True)
class Calibration:
    """The monotone map from raw scores to 0..1, by its knots."""

    raw: Increasing
    score: Annotated[Increasing, INSIDE]

    def __post_init__(self) -> None:
        _check_lengths(self.raw, self.score)


@dataclass(frozen=True, kw_only=True)
class Uncertainty:
    """The standard deviation of people's scores around a score."""

    score: Increasing
    deviation: tuple[Annotated[float, POSITIVE], ...]

    def __post_init__(self) -> None:
        _check_lengths(self.score, self.deviation)


@dataclass(frozen=True, kw_only=True)
class Percentiles:
    """The scores below which so many percent of `segments` system outputs lie."""

    score: Increasing
    percent: Increasing
    segments: int

    def __post_init__(self) -> None:
        _check_lengths(self.score, self.percent)


@dataclass(frozen=True, kw_only=True)
class LengthCost:
    """What longer references cost: experts add up a segment's errors, and networks do not know it.

    `cost` of raw score for each time a reference is e times as long, from `least` to `most` words:
    shorter and longer ones are taken as these.
    """

    cost: Annotated[float, NOT_NEGATIVE]
    least: Annotated[int, POSITIVE]
    most: Annotated[int, POSITIVE]

    def shift(self, references: Sequence[str]) -> FloatArray:
        """What to add to the raw score beside each reference.

        >>> LengthCost(cost=0.5, least=2, most=8).shift(["a b c d", "b " * 8, "c " * 99]).round(3)
        array([-0.693, -1.04 , -1.04 ])
        """
        words = [min(max(len(text.split()), self.least), self.most) for text in references]
        return np.array([-self.cost * log(count) for count in words])

    def __str__(self) -> str:
        return f"length{self.cost:g}"


@dataclass(frozen=True, kw_only=True)
class ErrorSum:
    """How errors add up: the worse a text is, the more there are on its way, and the longer, too.

        sum = rate (length / whole)^power      rate = (d + sqrt(d^2 + .04)) / 2      d = best - raw

    The rate falls along a line, and near the `best` raw score it turns towards none. The sum is
    about the share of what experts count at most; where the rate is one, a text of the length
    `whole` has no more to lose.
    """

    best: float
    power: Annotated[float, POSITIVE]
    whole: Annotated[float, POSITIVE]

    def __call__(self, raw: FloatArray, lengths: FloatArray, lost: BoolArray) -> FloatArray:
        """Less the sum, so that higher is better, of raw scores and of lengths, (n,) each.

        What is `lost`, because it is no translation at all, has all errors it can have.

        >>> add_up = ErrorSum(best=1.0, power=0.5, whole=40)
        >>> lost = np.array([False, False, False, True])
        >>> add_up(np.array([0.0, 0.0, -1.0, 0.0]), np.array([40, 160, 40, 40]), lost).round(2)
        array([-1.01, -2.02, -2.  , -8.  ])
        """
        short = self.best - raw
        rate = (short + np.hypot(short, BEND)) / 2
        total: FloatArray = -rate * (lengths / self.whole) ** self.power
        return np.where(lost, np.minimum(total, -ALL), total)


@dataclass(frozen=True, kw_only=True)
class HumanScale:
    """What raw scores mean: their place on people's scale, people's spread, what others score."""

    calibration: Calibration
    uncertainty: Uncertainty
    percentiles: Percentiles

    def calibrate(self, raw: FloatArray) -> FloatArray:
        """Raw scores on the scale of human scores, strictly increasing, inside 0 to 1."""
        knots = self.calibration
        inner = np.interp(raw, knots.raw, knots.score)
        low, high = knots.raw[0], knots.raw[-1]
        below = knots.score[0] * np.exp(np.minimum(raw - low, 0.0))
        above = 1 - (1 - knots.score[-1]) * np.exp(-np.maximum(raw - high, 0.0))
        mapped: FloatArray = np.where(raw < low, below, np.where(raw > high, above, inner))
        return mapped

    def deviation(self, scores: FloatArray) -> FloatArray:
        """The standard deviation of people's scores around a score, on held-out judgments."""
        found: FloatArray = np.interp(scores, self.uncertainty.score, self.uncertainty.deviation)
        return found

    def percent(self, scores: FloatArray) -> FloatArray:
        """The share, in percent, of system outputs that score lower; its card says of which."""
        found: FloatArray = np.interp(scores, self.percentiles.score, self.percentiles.percent)
        return found


@dataclass(frozen=True, kw_only=True)
class ExpertScale(HumanScale):
    """What sums of errors mean to experts: 1 is none of them, 0 as many as they count."""

    errors: ErrorSum


@dataclass(frozen=True, kw_only=True)
class ViewScales:
    """What raw scores mean in each view: with less to go by, they stay nearer to the middle."""

    source: HumanScale
    reference: HumanScale
    both: HumanScale


@dataclass(frozen=True, kw_only=True)
class ViewExperts:
    """The same of experts, who add up errors."""

    source: ExpertScale
    reference: ExpertScale
    both: ExpertScale


@dataclass(frozen=True, kw_only=True)
class NoErrors:
    """The chance that there is no error, 1 / (1 + (sum / half)^slope), one half at the sum `half`.

    >>> even = NoErrors(half=0.1, slope=2.0)
    >>> even(np.array([-0.05, -0.1, -0.2])).round(2).tolist()
    [0.8, 0.5, 0.2]
    """

    half: Annotated[float, POSITIVE]
    slope: Annotated[float, POSITIVE]

    def __call__(self, sums: FloatArray) -> FloatArray:
        """Of what experts add up, less than zero as `ErrorSum` gives it, (n,)."""
        chances: FloatArray = 1 / (1 + (-sums / self.half) ** self.slope)
        return chances


@dataclass(frozen=True, kw_only=True)
class ViewChances:
    """The same in each view: the better a view knows, the smaller are sums without an error."""

    source: NoErrors
    reference: NoErrors
    both: NoErrors


def _check_lengths(left: tuple[float, ...], right: tuple[float, ...]) -> None:
    if len(left) != len(right):
        raise ModelError(f"{len(left)} and {len(right)} numbers that should be side by side")
