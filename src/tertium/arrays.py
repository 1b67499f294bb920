"""The kinds of arrays that numbers travel in, named once; dividing them, and drawing at random."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tertium.errors import UsageError

FloatArray = NDArray[np.float64]
Float32Array = NDArray[np.float32]
IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]


def divide(numerator: ArrayLike, denominator: ArrayLike) -> FloatArray:
    """The quotient, NaN where the denominator is zero.

    >>> divide([1.0, 2.0], [2, 0])
    array([0.5, nan])
    """
    top, bottom = np.broadcast_arrays(
        np.asarray(numerator, dtype=np.float64), np.asarray(denominator, dtype=np.float64)
    )
    quotient = np.full(top.shape, np.nan)
    np.divide(top, bottom, out=quotient, where=bottom != 0)
    return quotient


def mean_known(values: FloatArray) -> FloatArray:
    """The mean over the last axis of what is known, NaN where nothing is.

    >>> mean_known(np.array([[1.0, np.nan, 2.0], [np.nan, np.nan, np.nan]]))
    array([1.5, nan])
    """
    known = ~np.isnan(values)
    return divide(np.where(known, values, 0.0).sum(axis=-1), known.sum(axis=-1))


def generator(seed: int, *parts: int) -> np.random.Generator:
    """The generator of a seed; `parts` tell apart what draws under the same seed.

    >>> generator(12345).integers(10, size=3).tolist()
    [6, 2, 7]
    """
    if seed < 0:
        raise UsageError(f"a seed is a whole number from 0 on, not {seed}")
    return np.random.default_rng([seed, *parts] if parts else seed)
