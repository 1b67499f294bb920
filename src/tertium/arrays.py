"""The kinds of arrays that numbers travel in, named once; quotients, draws, and exact products.

A library for matrices (BLAS) adds up the products of a row in an order that depends on the
processor, the number of rows and threads, and the row's place among them; each order rounds
differently. Nothing is rounded, in any order, where all products and sums can be written in the 53
bits of a double:

    x = g 2^(e - b) + rest,  |g| <= 2^b an integer,  2^e the power of two above the row's largest
    g . g'  <=  d 2^(2b)  <=  2^53        for      b = (53 - log2 d) / 2,  d the width of a row

So rows are rounded to b bits below their largest value (22 for a width of 384: nearly the 24 of
single precision), by a rule that looks at the row alone, and multiplied in double precision.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tertium.errors import DataError, LengthError, UsageError, one_line

FloatArray = NDArray[np.float64]
Float32Array = NDArray[np.float32]
IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]
DOUBLE_BITS = 53
CACHED = 1 << 16  # numbers: half a megabyte of doubles
LARGEST = 1e100  # of a score: statistics square differences, which must stay finite


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


def chosen_rows(rows: Any, count: int) -> IntArray:
    """The places, from 0, that a slice, a mask or a list of places chooses among `count` rows.

    >>> chosen_rows([True, False, True], 3), chosen_rows(slice(1, None), 3), chosen_rows([-1], 3)
    (array([0, 2]), array([1, 2]), array([2]))
    """
    places: IntArray = np.arange(count)
    if isinstance(rows, slice):
        return places[rows]
    given = np.asarray(rows)
    if given.shape == (0,):
        return places[:0]
    if given.ndim != 1 or given.dtype.kind not in "biu":
        raise UsageError(f"rows are a slice, a mask or a list of places, not {one_line(rows)}")
    if given.dtype.kind == "b" and len(given) != count:
        raise LengthError(f"a mask of {len(given)} rows for {count} segments")
    if given.dtype.kind != "b" and (bad := given[(given >= count) | (given < -count)]).size:
        raise DataError(f"there is no row {bad[0]}: {count} segments are counted from 0")
    chosen: IntArray = places[given]
    return chosen


def is_whole(value: object, least: int) -> bool:
    """Whether a value is a whole number from `least` on; True is none, though it counts as 1.

    >>> is_whole(1000, 1), is_whole(True, 1), is_whole(False, 0), is_whole(2.5, 1)
    (True, False, False, False)
    """
    if isinstance(value, bool) or not isinstance(value, int | np.integer):
        return False
    return int(value) >= least


def is_inner_share(value: object) -> bool:
    """Whether a value is a number between 0 and 1, which are none themselves.

    >>> is_inner_share(0.05), is_inner_share(1), is_inner_share("0.05"), is_inner_share(np.nan)
    (True, False, False, False)
    """
    return isinstance(value, float | np.floating) and 0 < float(value) < 1


def generator(seed: int, *parts: int) -> np.random.Generator:
    """The generator of a seed; `parts` tell apart what draws under the same seed.

    >>> generator(12345).integers(10, size=3).tolist()
    [6, 2, 7]
    """
    if not is_whole(seed, 0):
        raise UsageError(f"a seed is a whole number from 0 on, not {seed!r}")
    return np.random.default_rng([seed, *parts] if parts else seed)


def on_grid(rows: NDArray[Any]) -> FloatArray:
    """Rows (..., d) in double precision, rounded so that products of such rows are exact.

    A number is a whole number of steps once 3 * 2^51 of them were added and taken away again.

    >>> on_grid(np.array([[1.0, 1e-9]]))
    array([[1., 0.]])
    """
    given = np.asarray(rows)
    result: FloatArray = np.empty(given.shape)
    if not given.size:
        return result
    width = given.shape[-1]
    bits = (DOUBLE_BITS - math.ceil(math.log2(width + 1))) // 2
    every, rounded = given.reshape(-1, width), result.reshape(-1, width)
    for part in _blocks(every):
        largest = np.abs(every[part]).max(axis=-1, keepdims=True)
        _, exponents = np.frexp(largest.astype(np.float64))
        many_steps = np.ldexp(1.5, exponents - bits + DOUBLE_BITS - 1)
        rounded[part] = every[part]
        rounded[part] += many_steps
        rounded[part] -= many_steps
    return result


def _blocks(rows: NDArray[Any]) -> Iterator[slice]:
    """Cut rows (n, d) into as many at a time as stay in a processor's cache."""
    size = max(1, CACHED // max(1, rows.shape[1]))
    return (slice(start, start + size) for start in range(0, len(rows), size))


def products(left: NDArray[Any], right: NDArray[Any]) -> FloatArray:
    """l_i . r_j of rows (n, d) and (m, d), the same bits whatever their neighbors, (n, m).

    >>> products(np.array([[3.0, 4.0]]), np.array([[1.0, 0.0], [0.0, 0.5]]))
    array([[3., 2.]])
    """
    return on_grid(left) @ on_grid(right).T


def squares(rows: NDArray[Any]) -> FloatArray:
    """x . x of each row, (n, d) -> (n,)."""
    result: FloatArray = np.zeros(len(rows))
    for part in _blocks(rows):
        wide = on_grid(rows[part])
        result[part] = np.einsum("nd,nd->n", wide, wide)
    return result
