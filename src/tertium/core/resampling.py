"""Draws of random numbers for statistics, and what follows from them: p-values, clusters, folds.

Every test and interval draws here, so that equal seeds give equal resamples. A resample is a row of
numbers: how often each unit counts (bootstrap), whether it swaps sides, or the sign of its
difference. Rows come in blocks, so that memory grows with units plus resamples.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import ArrayLike

from tertium.core.arrays import (
    Float32Array,
    FloatArray,
    IntArray,
    is_integer_at_least,
    iterate_blocks,
)
from tertium.core.errors import UsageError, short_repr

MASK_BLOCK_NUMBERS = 2_000_000  # of masks and bootstrap weights of segments
MAX_RESAMPLES = 1_000_000  # p-values have steps of a millionth then
FOLDS = 5
# The eight bits of each byte as 1 and -1: one random byte is eight coin flips.
_SIGNS = 2 * np.unpackbits(np.arange(256, dtype=np.uint8)[:, None], axis=1).astype(np.float32) - 1


def check_resamples(count: object, least: int = 1) -> None:
    """Refuse a number of resamples that is not an integer, or more than can be drawn.

    >>> check_resamples(10**7)
    Traceback (most recent call last):
    tertium.core.errors.UsageError: resamples must be an integer from 1 to 1,000,000, got 10000000
    """
    if not is_integer_at_least(count, least) or int(count) > MAX_RESAMPLES:  # type: ignore[call-overload]
        raise UsageError(
            f"resamples must be an integer from {least} to {MAX_RESAMPLES:,}, "
            f"got {short_repr(count)}"
        )


def make_rng(seed: int, *stream: int) -> np.random.Generator:
    """Create a random generator; different `stream` numbers give independent generators.

    >>> make_rng(12345).integers(10, size=3).tolist()
    [6, 2, 7]
    """
    if not is_integer_at_least(seed, 0):
        raise UsageError(f"seed={seed!r}: expected a whole number of at least 0")
    return np.random.default_rng([seed, *stream] if stream else seed)


def draw_counts(units: Sequence[int], count: int, rng: np.random.Generator) -> FloatArray:
    """Draw units with replacement within strata; return how often each was drawn, (count, units).

    `units` are the sizes of the strata. The units of one stratum equal those of sacrebleu.
    """
    parts = []
    for size in units:
        drawn = rng.integers(0, size, size=(count, size)) + np.arange(count)[:, None] * size
        parts.append(np.bincount(drawn.ravel(), minlength=count * size).reshape(count, size))
    return np.concatenate(parts, axis=1).astype(np.float64)


def draw_group_counts(groups: ArrayLike, resamples: int, rng: np.random.Generator) -> FloatArray:
    """Draw groups with replacement; return how often each unit counts, (resamples, units).

    `groups` is the name or number of the group of each unit, (units,).
    """
    names, group_of_unit = np.unique(np.asarray(groups), return_inverse=True)
    return draw_counts([len(names)], resamples, rng)[:, group_of_unit.reshape(-1)]


def draw_bootstrap(size: int, resamples: int, seed: int) -> Iterator[FloatArray]:
    """Yield blocks of bootstrap weights of segments, (rows, size)."""
    rng = make_rng(seed)
    for block in iterate_blocks(resamples, size, MASK_BLOCK_NUMBERS):
        yield draw_counts([size], block.stop - block.start, rng)


def draw_masks(size: int, resamples: int, seed: int) -> Iterator[FloatArray]:
    """Yield blocks of masks of a random half of the segments, 1 or 0, (rows, size)."""
    rng = make_rng(seed)
    for block in iterate_blocks(resamples, size, MASK_BLOCK_NUMBERS):
        shape = (block.stop - block.start, size)
        yield rng.integers(0, 2, size=shape, dtype=np.int8).astype(np.float64)


def can_enumerate(points: int, resamples: int) -> bool:
    """Return whether all 2^points swaps are at most `resamples` (without computing 2^points)."""
    return points < int(resamples).bit_length()


def draw_swaps(points: int, resamples: int, rng: np.random.Generator) -> Iterator[FloatArray]:
    """Yield which points swap, 1 or 0, (rows, points): all swaps if few, else a sample."""
    if can_enumerate(points, resamples):
        ways = np.arange(2**points)[:, None] >> np.arange(points)
        yield (ways & 1).astype(np.float64)
        return
    width = -(-points // 8)
    for block in iterate_blocks(resamples, points):
        rows = block.stop - block.start
        bits = np.frombuffer(rng.bytes(rows * width), dtype=np.uint8).reshape(rows, width)
        yield np.unpackbits(bits, axis=1, count=points).astype(np.float64)


def draw_signs(resamples: int, points: int, rng: np.random.Generator) -> FloatArray:
    """Draw the sign of each point, 1 or -1, (resamples, points)."""
    signs: FloatArray = rng.choice([-1.0, 1.0], size=(resamples, points))
    return signs


def draw_sign_block(shape: tuple[int, ...], rng: np.random.Generator) -> Float32Array:
    """Draw signs of any shape in single precision, eight from each random byte."""
    size = int(np.prod(shape))
    drawn = np.frombuffer(rng.bytes(-(-size // 8)), np.uint8)
    signs: Float32Array = _SIGNS[drawn].reshape(-1)[:size].reshape(shape)
    return signs


def draw_heads(tosses: IntArray, resamples: int, rng: np.random.Generator) -> IntArray:
    """Toss fair coins; return the number of heads, (resamples, len(tosses))."""
    return rng.binomial(tosses, 0.5, size=(resamples, len(tosses)))


def p_value(extreme: int, resamples: int) -> float:
    """Return the p-value of `extreme` resamples at least as extreme as the observed data.

    The observed data count as one more resample, so it is never 0.

    >>> p_value(0, 999), p_value(999, 999)
    (0.001, 1.0)
    """
    return float((1 + extreme) / (1 + resamples))


def holm(p_values: ArrayLike) -> FloatArray:
    """Adjust p-values of any shape by Holm's (1979) method, which controls the family-wise error.

    The k-th smallest of m is multiplied by m - k + 1 and is at least as large as those before it.
    NaN stays NaN and is not counted.

    >>> holm([0.01, 0.04, 0.03, np.nan]).tolist()
    [0.03, 0.06, 0.06, nan]
    """
    adjusted = np.array(p_values, dtype=np.float64)
    is_known = ~np.isnan(adjusted)
    known_values = adjusted[is_known]
    order = np.argsort(known_values, kind="stable")
    steps = known_values[order] * np.arange(len(order), 0, -1)
    known_values[order] = np.minimum(np.maximum.accumulate(steps), 1.0)
    adjusted[is_known] = known_values
    return adjusted


def assign_clusters(p_values: FloatArray, alpha: float = 0.05) -> list[int]:
    """Assign systems, ordered from the best, to clusters: each beats all systems of later clusters.

    >>> assign_clusters(np.array([[1.0, 0.01, 0.01], [0.01, 1.0, 0.3], [0.01, 0.3, 1.0]]))
    [1, 2, 2]
    """
    labels: list[int] = []
    for place in range(len(p_values)):
        begins = place > 0 and bool((p_values[:place, place:] < alpha).all())
        labels.append((labels[-1] if labels else 1) + begins)
    return labels


def percentile_interval(
    samples: FloatArray, confidence_level: float = 0.95
) -> tuple[FloatArray, FloatArray]:
    """Return percentile bounds of the columns of samples (resamples, n), ignoring NaN.

    >>> bounds = percentile_interval(np.arange(101.0)[:, None], 0.9)
    >>> [bound.round(2).tolist() for bound in bounds]
    [[5.0], [95.0]]
    """
    if not 0.0 < confidence_level < 1.0:
        raise UsageError(f"confidence_level must be between 0 and 1, got {confidence_level}")
    bounds = np.full((2, samples.shape[1]), np.nan)
    tail = (1.0 - confidence_level) / 2
    for n, values in enumerate(samples.T):
        defined = values[~np.isnan(values)]
        if len(defined):
            bounds[:, n] = np.quantile(defined, [tail, 1.0 - tail])
    return bounds[0], bounds[1]


def make_folds(groups: IntArray, folds: int) -> list[IntArray]:
    """List the rows of each of `number_folds`."""
    count = len(np.unique(groups))
    if not 2 <= folds <= count:
        expected = f"expected 2 to {count}" if count > 1 else "give more segments"
        raise UsageError(
            f"folds={folds} with {count} segments (judgments that share a source or a "
            f"reference count as one): {expected}"
        )
    fold_of_row = number_folds(groups, folds)
    return [np.flatnonzero(fold_of_row == fold) for fold in range(folds)]


def number_folds(groups: IntArray, folds: int) -> IntArray:
    """Distribute rows over folds of similar size, whole groups at a time, largest first.

    `groups` (n,) numbers the group of each row. Groups of equal size keep the order of the rows.
    Return the number of the fold of each row, (n,); fewer groups than folds have one each.
    """
    _, first_rows, members, sizes = np.unique(
        groups, return_index=True, return_inverse=True, return_counts=True
    )
    fold_of_group = np.zeros(len(sizes), dtype=np.int64)
    fold_sizes = np.zeros(folds)
    for group in np.lexsort((first_rows, -sizes)):
        fold_of_group[group] = fold = fold_sizes.argmin()
        fold_sizes[fold] += sizes[group]
    return fold_of_group[members]


def resampling_warnings(tests: int, resamples: int, alpha: float) -> list[str]:
    """Warn if there are too few resamples for any of `tests` tests to be significant.

    >>> resampling_warnings(24, 1000, 0.05), resampling_warnings(60, 1000, 0.05)
    ([], ['warning: 60 tests with 1000 resamples: p cannot fall below 0.05; use 1200 or more'])
    >>> resampling_warnings(1, 9, 0.05)
    ['warning: 9 resamples: p cannot fall below 0.05; use 20 or more']
    """
    if tests / (resamples + 1) < alpha:
        return []
    needed = int(tests / alpha)
    setup = f"{tests} tests with {resamples} resamples" if tests > 1 else f"{resamples} resamples"
    return [f"warning: {setup}: p cannot fall below {alpha:g}; use {needed} or more"]
