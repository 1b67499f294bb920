"""Differences of metrics beside what chance would make of them, kept draw by draw.

A p-value of one task is a share of draws; since draws of different tasks are independent, their
weighted sum is a draw of the average over tasks, by which mt-metrics-eval tests a final ranking.

    soft pairwise accuracy    PERM-BOTH (Deutsch et al. 2021): both metrics are standardised, and
                              each judged translation swaps them with probability 1/2
    acc_eq                    each pair of translations that one metric alone gets right goes to
                              either metric with probability 1/2
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Self

import numpy as np
from numpy.typing import ArrayLike

from tertium.arrays import BoolArray, Float32Array, FloatArray
from tertium.errors import DataError, UsageError
from tertium.meta.accuracy import count_wins
from tertium.meta.agreement import Layout, lay_out

BLOCK = 1 << 23  # numbers in memory at a time
CACHED = 1 << 16  # numbers that a processor keeps at hand
# The eight bits of each byte as 1 and -1, so that a byte drawn is eight coins.
_SIGNS = 2 * np.unpackbits(np.arange(256, dtype=np.uint8)[:, None], axis=1).astype(np.float32) - 1


@dataclass(frozen=True, eq=False)
class Contest:
    """How much better metric i is than j, (metrics, metrics), and in draws under no difference.

    `draws` is (samples, metrics, metrics); a metric that could not take part has NaN in both.
    """

    observed: FloatArray
    draws: Float32Array

    @property
    def p_values(self) -> FloatArray:
        """The share of draws with at least the difference seen, as mt-metrics-eval counts it."""
        slack = 1e-6 * (1.0 + np.abs(self.observed))  # draws are of single precision
        share: FloatArray = np.mean(self.draws >= self.observed - slack, axis=0)
        return np.where(np.isnan(self.observed), np.nan, share)


def average_contest(contests: Sequence[Contest], weights: Sequence[float]) -> Contest:
    """The contest of a weighted mean over tasks."""
    parts = list(zip(contests, weights, strict=True))
    observed: FloatArray = np.sum([w * contest.observed for contest, w in parts], axis=0)
    draws: Float32Array = np.sum([np.float32(w) * contest.draws for contest, w in parts], axis=0)
    return Contest(observed, draws)


def accuracy_contest(
    layout: Layout, epsilon: ArrayLike, *, samples: int, rng: np.random.Generator
) -> Contest:
    """The contest of acc_eq under one epsilon for each metric (as `pair_test`, with its draws)."""
    wins, weights = count_wins(layout, epsilon)  # (weights, metrics, metrics), (weights,)
    if not len(weights):
        raise DataError("no group has two judged points, so there is no pair to test")
    size = (~np.isnan(layout.human)).sum(axis=-1)
    weights = weights / (size > 1).sum()
    metrics = wins.shape[1]
    left, right = np.triu_indices(metrics, k=1)
    decided = (wins + np.swapaxes(wins, 1, 2))[:, left, right].astype(np.int64)
    draws = np.zeros((samples, metrics, metrics), dtype=np.float32)
    for n, weight in zip(decided, weights, strict=True):
        lots = weight * (2.0 * rng.binomial(n, 0.5, size=(samples, len(n))) - n)
        draws[:, left, right] += lots.astype(np.float32)
    draws -= np.swapaxes(draws, 1, 2)
    observed = np.tensordot(weights, wins - np.swapaxes(wins, 1, 2), axes=1)
    absent = np.isnan(layout.metrics).all(axis=(1, 2))
    observed[absent] = observed[:, absent] = np.nan
    return Contest(observed, draws)


def soft_accuracy_contest(
    human: ArrayLike, metrics: ArrayLike, *, samples: int, rng: np.random.Generator
) -> Contest:
    """PERM-BOTH of soft pairwise accuracy, on the translations that all metrics scored.

    A mixture of two metrics takes each translation's score from one or the other. Its soft accuracy
    asks for the p-value of every pair of systems, the share of sign flips with at least the summed
    difference T; the flips have mean 0 and variance s^2, the sum of squared differences, and p is
    the normal tail at T / s, which a thousand flips would only estimate. T is exact for each
    mixture, as are the squares in s^2; the products of two systems' scores are taken at their mean
    over mixtures, an error of p far below that of a thousand flips. All pairs of metrics then need
    just the products of swaps with scores and with squares.
    """
    if samples < 1:
        raise UsageError(f"at least one permutation is needed, got {samples}")
    layout = lay_out(human, metrics, "system")
    count = len(layout.metrics)
    taking_part = ~np.isnan(layout.metrics).all(axis=(1, 2))
    scores = layout.metrics[taking_part]
    present = ~np.isnan(layout.human) & ~np.isnan(scores).any(axis=0)  # (systems, segments)
    errors = _Mixtures(layout.human, scores, present).errors(samples, rng)
    observed = np.full((count, count), np.nan)
    draws = np.full((samples, count, count), np.nan, dtype=np.float32)
    own = np.diagonal(errors[0])
    at = np.flatnonzero(taking_part)
    observed[np.ix_(at, at)] = own[None, :] - own[:, None]
    draws[np.ix_(np.arange(samples), at, at)] = np.swapaxes(errors, 1, 2) - errors
    return Contest(observed, draws)


class _System:
    """One system's standardised scores (metrics, segments) with their sums, (metrics,)."""

    def __init__(self, scores: Float32Array) -> None:
        self.scores: FloatArray = scores.astype(np.float64)
        self.sums: FloatArray = self.scores.sum(axis=1)
        self.squares: FloatArray = (self.scores * self.scores).sum(axis=1)
        self.powers = np.concatenate([scores, scores * scores])  # (2 x metrics, segments)


@dataclass(frozen=True, eq=False)
class _SystemPair:
    """Two systems on the segments that both have: what mixtures of metrics are made of.

    `p` is people's p-value, NaN where they tie throughout; `sums` and `power` (metrics,) are a
    metric's summed and squared differences, `variance` (metrics, metrics) what is left of the
    latter for the mean mixture.
    """

    i: int
    j: int
    both: BoolArray
    p: Float32Array
    sums: FloatArray
    power: FloatArray
    variance: FloatArray

    @classmethod
    def of(
        cls, i: int, j: int, both: BoolArray, people: FloatArray, x: _System, y: _System
    ) -> Self:
        """Systems x and y, the i-th and j-th, whose scores people's differences are about."""
        p = _tail(np.array([people.sum()], np.float32), np.array([people @ people], np.float32))
        squares, cross = x.squares + y.squares, x.scores @ y.scores.T
        own = np.diagonal(cross)
        product = 0.25 * (own[:, None] + own + cross + cross.T)  # mean over mixtures
        variance = 0.5 * (squares[:, None] + squares) - 2.0 * product
        power = ((x.scores - y.scores) ** 2).sum(axis=1)  # 0 to the last bit for equal scores
        return cls(i, j, both, p, x.sums - y.sums, power, variance)

    def gaps(self, swapped: Float32Array, squares: Float32Array) -> Float32Array:
        """|p_human - p| of all mixtures, (metrics, metrics, draws), the mean of both directions.

        These differ only where nothing is left to flip: p is then 1 either way, and the gap to a p
        and to 1 - p is 1/2 in the mean.
        """
        p = self._p_values(swapped, squares)
        gap = p - self.p
        np.abs(gap, out=gap)
        unknown = np.isnan(gap)
        if unknown.any():
            gap[unknown] = 0.5
            gap[np.isnan(p) & np.isnan(self.p)] = 0.0
        return gap

    def _p_values(self, swapped: Float32Array, squares: Float32Array) -> Float32Array:
        """P-values of "i is better than j" of all mixtures; NaN where they tie throughout."""
        difference = _spread(swapped)
        difference += (0.5 * (self.sums[:, None] + self.sums)).astype(np.float32)[..., None]
        variance = _spread(squares)
        variance += self.variance.astype(np.float32)[..., None]
        np.einsum("mmd->md", variance)[:] = self.power[:, None]  # one mixed with itself is itself
        return _tail(difference, variance)


class _Mixtures:
    """Mixtures of standardised metrics, and the gaps between their p-values and people's."""

    def __init__(self, human: FloatArray, scores: FloatArray, present: BoolArray) -> None:
        self.z = np.where(present, _standardise(scores, present), 0.0).astype(np.float32)
        self._systems: dict[tuple[int, bytes], _System] = {}
        self.pairs = []
        for i, j in combinations(range(len(human)), 2):
            both = present[i] & present[j]
            if both.any():
                x, y = self._system(i, both), self._system(j, both)
                people = human[i, both] - human[j, both]
                self.pairs.append(_SystemPair.of(i, j, both, people, x, y))
        if not self.pairs:
            raise DataError("no two systems have a segment that people and all metrics scored")

    def _system(self, place: int, mask: BoolArray) -> _System:
        """A system on some segments; where nothing is missing, one serves all pairs."""
        key = place, np.packbits(mask).tobytes()
        if key not in self._systems:
            own = self.z[:, place] if mask.all() else self.z[:, place, mask]
            self._systems[key] = _System(own)
        return self._systems[key]

    def errors(self, samples: int, rng: np.random.Generator) -> Float32Array:
        """Mean |p_human - p| of mixtures that start from metric i and take from j, by draw."""
        metrics, systems, segments = self.z.shape
        step = max(1, min(BLOCK // (systems * segments), CACHED // metrics**2))
        blocks = []
        lots = np.empty((-(-systems * min(step, samples) * segments // 8), 8), dtype=np.float32)
        for start in range(0, samples, step):
            shape = (systems, min(step, samples - start), segments)
            size = int(np.prod(shape))
            drawn = np.frombuffer(rng.bytes(-(-size // 8)), np.uint8).astype(np.intp)
            np.take(_SIGNS, drawn, axis=0, out=lots[: len(drawn)], mode="clip")  # unbuffered
            blocks.append(self._block(lots.reshape(-1)[:size].reshape(shape)))
        return np.moveaxis(np.concatenate(blocks, axis=-1), -1, 0)

    def _block(self, swaps: Float32Array) -> Float32Array:
        """The same for swaps (systems, draws, segments) of 1 and -1."""
        metrics = len(self.z)
        kept: dict[tuple[int, bytes], Float32Array] = {}
        total = np.zeros((metrics, metrics, swaps.shape[1]), dtype=np.float32)
        for pair in self.pairs:
            mask = np.packbits(pair.both).tobytes()
            for system in (pair.i, pair.j):
                if (system, mask) not in kept:
                    lots = swaps[system] if pair.both.all() else swaps[system][:, pair.both]
                    kept[system, mask] = self._systems[system, mask].powers @ lots.T
            a, b = kept[pair.i, mask], kept[pair.j, mask]  # (2 x metrics, draws)
            total += pair.gaps(a[:metrics] - b[:metrics], a[metrics:] + b[metrics:])
        total /= np.float32(len(self.pairs))
        return total


def _spread(swapped: Float32Array) -> Float32Array:
    """What swaps add to the sums of mixtures, (metrics, draws) -> (metrics, metrics, draws)."""
    half = np.float32(0.5) * swapped
    return half[:, None] - half


def _tail(total: Float32Array, variance: Float32Array) -> Float32Array:
    """P(flips sum to `total` or more) of a normal law; NaN where no difference is left to flip.

    Abramowitz and Stegun 7.1.26, right to 1e-7 and twenty times as fast as a call of scipy's, for
    it works in place: memory would cost more than the formula.
    """
    z = np.maximum(variance, np.float32(0.0))
    z *= np.float32(2.0)
    np.sqrt(z, out=z)
    with np.errstate(divide="ignore", invalid="ignore"):
        np.divide(total, z, out=z)
    size = np.abs(z)
    t = size * np.float32(0.3275911)
    t += np.float32(1.0)
    np.reciprocal(t, out=t)
    p = np.full_like(t, 0.5 * _ERFC[0])
    for coefficient in _ERFC[1:]:
        p *= t
        p += np.float32(0.5 * coefficient)
    p *= t
    size *= -size
    p *= np.exp(size, out=size)
    np.subtract(np.float32(0.5), p, out=p)
    np.copysign(p, z, out=p)
    np.subtract(np.float32(0.5), p, out=p)
    return p


_ERFC = (1.061405429, -1.453152027, 1.421413741, -0.284496736, 0.254829592)


def _standardise(scores: FloatArray, present: BoolArray) -> FloatArray:
    """Mean 0 and variance 1 over the present cells of each metric; a constant becomes 0."""
    cells = scores[:, present]
    mean, spread = cells.mean(axis=1)[:, None, None], cells.std(axis=1)[:, None, None]
    return np.where(spread > 0, (scores - mean) / np.where(spread > 0, spread, 1.0), 0.0)
