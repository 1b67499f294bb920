"""Permutation tests between metrics that keep every draw, so that tests can be averaged.

Draws of different tasks are independent, so their weighted sum is a draw of the average over tasks.
mt-metrics-eval tests its final ranking this way.

    soft pairwise accuracy    PERM-BOTH (Deutsch et al. 2021): both metrics are standardized, and
                              each judged translation swaps them with probability 1/2
    acc_eq                    each pair of translations that only one metric gets right goes to
                              either metric with probability 1/2
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Self

import numpy as np
from numpy.typing import ArrayLike

from tertium.core.arrays import BoolArray, Float32Array, FloatArray
from tertium.core.errors import DataError
from tertium.core.resampling import check_resamples, draw_heads, draw_sign_block
from tertium.meta.accuracy import count_wins
from tertium.meta.agreement import Layout, make_layout

BLOCK = 1 << 23  # array elements in memory at a time
CACHE_BLOCK = 1 << 16  # array elements that fit the processor cache


@dataclass(frozen=True, eq=False)
class PermutationTest:
    """Observed differences between metrics and their draws under the null hypothesis."""

    observed: FloatArray
    draws: Float32Array

    @property
    def p_values(self) -> FloatArray:
        """The share of draws with at least the observed difference, as in mt-metrics-eval."""
        slack = 1e-6 * (1.0 + np.abs(self.observed))  # draws have single precision
        share: FloatArray = np.mean(self.draws >= self.observed - slack, axis=0)
        return np.where(np.isnan(self.observed), np.nan, share)


def average_tests(tests: Sequence[PermutationTest], weights: Sequence[float]) -> PermutationTest:
    """Return the test of a weighted mean over tasks."""
    parts = list(zip(tests, weights, strict=True))
    observed: FloatArray = np.sum([w * test.observed for test, w in parts], axis=0)
    draws: Float32Array = np.sum([np.float32(w) * test.draws for test, w in parts], axis=0)
    return PermutationTest(observed, draws)


def permute_accuracy(
    layout: Layout, epsilon: ArrayLike, *, resamples: int, rng: np.random.Generator
) -> PermutationTest:
    """Test acc_eq with one epsilon per metric; like `accuracy_pair_test`, but keeps the draws."""
    wins, weights = count_wins(layout, epsilon)  # (weights, metrics, metrics), (weights,)
    if not len(weights):
        raise DataError("no pair to test: no group has two judged points")
    size = (~np.isnan(layout.human)).sum(axis=-1)
    weights = weights / (size > 1).sum()
    metrics = wins.shape[1]
    left, right = np.triu_indices(metrics, k=1)
    decided = (wins + np.swapaxes(wins, 1, 2))[:, left, right].astype(np.int64)
    draws = np.zeros((resamples, metrics, metrics), dtype=np.float32)
    for n, weight in zip(decided, weights, strict=True):
        flips = weight * (2.0 * draw_heads(n, resamples, rng) - n)
        draws[:, left, right] += flips.astype(np.float32)
    draws -= np.swapaxes(draws, 1, 2)
    observed = np.tensordot(weights, wins - np.swapaxes(wins, 1, 2), axes=1)
    absent = np.isnan(layout.metrics).all(axis=(1, 2))
    observed[absent] = observed[:, absent] = np.nan
    return PermutationTest(observed, draws)


def permute_soft_accuracy(
    human: ArrayLike, metrics: ArrayLike, *, resamples: int, rng: np.random.Generator
) -> PermutationTest:
    """Run PERM-BOTH for soft pairwise accuracy on the translations that all metrics scored.

    A mixture of two metrics takes each translation's score from one or the other. Its soft accuracy
    needs a p-value for every pair of systems: the share of sign flips with at least the summed
    difference T. The flips have mean 0 and variance s^2, the sum of squared differences, so p is
    the normal tail at T / s. T and the squares in s^2 are exact for each mixture. The products of
    two systems' scores are replaced by their mean over mixtures, an error of p far below that of a
    thousand flips. All pairs of metrics then need only the products of swaps with scores and
    squares.
    """
    check_resamples(resamples)
    layout = make_layout(human, metrics, "system")
    count = len(layout.metrics)
    has_scores = ~np.isnan(layout.metrics).all(axis=(1, 2))
    scores = layout.metrics[has_scores]
    present = ~np.isnan(layout.human) & ~np.isnan(scores).any(axis=0)  # (systems, segments)
    errors = _Mixtures(layout.human, scores, present).errors(resamples, rng)
    observed = np.full((count, count), np.nan)
    draws = np.full((resamples, count, count), np.nan, dtype=np.float32)
    own = np.diagonal(errors[0])
    at = np.flatnonzero(has_scores)
    observed[np.ix_(at, at)] = own[None, :] - own[:, None]
    draws[np.ix_(np.arange(resamples), at, at)] = np.swapaxes(errors, 1, 2) - errors
    return PermutationTest(observed, draws)


class _System:
    """Standardized scores of one system (metrics, segments) with their sums, (metrics,)."""

    def __init__(self, scores: Float32Array) -> None:
        self.scores: FloatArray = scores.astype(np.float64)
        self.sums: FloatArray = self.scores.sum(axis=1)
        self.squares: FloatArray = (self.scores * self.scores).sum(axis=1)
        self.powers = np.concatenate([scores, scores * scores])  # (2 x metrics, segments)


@dataclass(frozen=True, eq=False)
class _SystemPair:
    """Two systems on their shared segments, prepared for mixtures of metrics.

    `p` is the human p-value, NaN if all segments tie. `sums` and `power` (metrics,) are a metric's
    summed and squared differences. `variance` (metrics, metrics) is the constant part of the
    variance of a mixture.
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
        cls, i: int, j: int, both: BoolArray, human_difference: FloatArray, x: _System, y: _System
    ) -> Self:
        """Prepare systems x and y at indices i and j, with the human differences between them."""
        p = _tail(
            np.array([human_difference.sum()], np.float32),
            np.array([human_difference @ human_difference], np.float32),
        )
        squares, cross = x.squares + y.squares, x.scores @ y.scores.T
        own = np.diagonal(cross)
        product = 0.25 * (own[:, None] + own + cross + cross.T)  # mean over mixtures
        variance = 0.5 * (squares[:, None] + squares) - 2.0 * product
        power = ((x.scores - y.scores) ** 2).sum(axis=1)  # exactly 0 for equal scores
        return cls(i, j, both, p, x.sums - y.sums, power, variance)

    def gaps(self, swapped: Float32Array, squares: Float32Array) -> Float32Array:
        """Return the mean |p_human - p| of all mixtures over directions, (metrics, metrics, draws).

        The directions differ only if there is nothing to flip: p is then 1 either way, and the mean
        gap to p and to 1 - p is 1/2.
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
        """Return p-values of "i is better than j" of all mixtures; NaN if they tie throughout."""
        difference = _spread(swapped)
        difference += (0.5 * (self.sums[:, None] + self.sums)).astype(np.float32)[..., None]
        variance = _spread(squares)
        variance += self.variance.astype(np.float32)[..., None]
        np.einsum("mmd->md", variance)[:] = self.power[
            :, None
        ]  # a metric mixed with itself is unchanged
        return _tail(difference, variance)


class _Mixtures:
    """Mixtures of standardized metrics, and the gaps between their and the human p-values."""

    def __init__(self, human: FloatArray, scores: FloatArray, present: BoolArray) -> None:
        self.z = np.where(present, _standardize(scores, present), 0.0).astype(np.float32)
        self._systems: dict[tuple[int, bytes], _System] = {}
        self.pairs = []
        for i, j in combinations(range(len(human)), 2):
            both = present[i] & present[j]
            if both.any():
                x, y = self._system(i, both), self._system(j, both)
                human_difference = human[i, both] - human[j, both]
                self.pairs.append(_SystemPair.of(i, j, both, human_difference, x, y))
        if not self.pairs:
            raise DataError(
                "no two systems share a segment with human scores and all metric scores"
            )

    def _system(self, place: int, mask: BoolArray) -> _System:
        """Return a system on the masked segments; without missing scores, all pairs share one."""
        key = place, np.packbits(mask).tobytes()
        if key not in self._systems:
            own = self.z[:, place] if mask.all() else self.z[:, place, mask]
            self._systems[key] = _System(own)
        return self._systems[key]

    def errors(self, resamples: int, rng: np.random.Generator) -> Float32Array:
        """Return mean |p_human - p| of mixtures of metric i with scores from j, by draw."""
        metrics, systems, segments = self.z.shape
        step = max(1, min(BLOCK // (systems * segments), CACHE_BLOCK // metrics**2))
        blocks = []
        for start in range(0, resamples, step):
            shape = (systems, min(step, resamples - start), segments)
            blocks.append(self._block(draw_sign_block(shape, rng)))
        return np.moveaxis(np.concatenate(blocks, axis=-1), -1, 0)

    def _block(self, swaps: Float32Array) -> Float32Array:
        """Return `errors` for swaps (systems, draws, segments) of 1 and -1."""
        metrics = len(self.z)
        products: dict[tuple[int, bytes], Float32Array] = {}
        total = np.zeros((metrics, metrics, swaps.shape[1]), dtype=np.float32)
        for pair in self.pairs:
            mask = np.packbits(pair.both).tobytes()
            for system in (pair.i, pair.j):
                if (system, mask) not in products:
                    flips = swaps[system] if pair.both.all() else swaps[system][:, pair.both]
                    products[system, mask] = self._systems[system, mask].powers @ flips.T
            a, b = products[pair.i, mask], products[pair.j, mask]  # (2 x metrics, draws)
            total += pair.gaps(a[:metrics] - b[:metrics], a[metrics:] + b[metrics:])
        total /= np.float32(len(self.pairs))
        return total


def _spread(swapped: Float32Array) -> Float32Array:
    """Return what swaps add to sums of mixtures: (metrics, draws) -> (metrics, metrics, draws)."""
    half = np.float32(0.5) * swapped
    return half[:, None] - half


def _tail(total: Float32Array, variance: Float32Array) -> Float32Array:
    """Return P(flips sum to at least `total`), normal, by Abramowitz and Stegun 7.1.26."""
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


def _standardize(scores: FloatArray, present: BoolArray) -> FloatArray:
    """Mean 0 and variance 1 over the present cells of each metric; a constant becomes 0."""
    cells = scores[:, present]
    mean, spread = cells.mean(axis=1)[:, None, None], cells.std(axis=1)[:, None, None]
    return np.where(spread > 0, (scores - mean) / np.where(spread > 0, spread, 1.0), 0.0)
