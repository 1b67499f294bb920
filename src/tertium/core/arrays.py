"""Array types, safe division, and exact dot products.

BLAS sums the products of a row in an order that depends on the processor, the number of rows and
threads, and the position of the row; every order rounds differently. There is no rounding in any
order if all products and sums fit into the 53 bits of a double:

    x = g 2^(e - b) + remainder,  |g| <= 2^b an integer,  2^e the power of two above the row maximum
    g . g'  <=  d 2^(2b)  <=  2^53        for      b = (53 - log2 d) / 2,  d the row width

Rows are therefore rounded to b bits below their largest value (22 bits for a width of 384, close
to the 24 bits of single precision). The rule depends on the row alone. Products are computed in
double precision.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tertium.core.errors import DataError

FloatArray = NDArray[np.float64]
Float32Array = NDArray[np.float32]
IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]
DOUBLE_BITS = 53
BLOCK_NUMBERS = 1 << 22  # array elements in memory at a time
CACHED_NUMBERS = 1 << 16  # half a megabyte of doubles, which fits into the processor cache
MAX_ABS_SCORE = 1e100  # statistics square differences, which must stay finite


def divide(numerator: ArrayLike, denominator: ArrayLike) -> FloatArray:
    """Divide element by element; the result is NaN where the denominator is zero.

    >>> divide([1.0, 2.0], [2, 0])
    array([0.5, nan])
    """
    top, bottom = np.broadcast_arrays(
        np.asarray(numerator, dtype=np.float64), np.asarray(denominator, dtype=np.float64)
    )
    quotient = np.full(top.shape, np.nan)
    np.divide(top, bottom, out=quotient, where=bottom != 0)
    return quotient


def nan_mean(values: FloatArray) -> FloatArray:
    """Average over the last axis, ignoring NaN; the result is NaN where all values are NaN.

    >>> nan_mean(np.array([[1.0, np.nan, 2.0], [np.nan, np.nan, np.nan]]))
    array([1.5, nan])
    """
    is_present = ~np.isnan(values)
    return divide(np.where(is_present, values, 0.0).sum(axis=-1), is_present.sum(axis=-1))


def resolve_row_indices(rows: Any, count: int) -> IntArray:
    """Turn a slice, a boolean mask or a list of indices into indices among `count` rows.

    >>> resolve_row_indices([True, False, True], 3), resolve_row_indices(slice(1, None), 3)
    (array([0, 2]), array([1, 2]))
    >>> resolve_row_indices([-1], 3)
    array([2])
    """
    indices: IntArray = np.arange(count)
    if not isinstance(rows, slice):
        rows = np.asarray(rows) if np.size(rows) else slice(0)
    try:
        selected: IntArray = indices[rows]
    except IndexError as error:
        raise DataError(f"rows of {count} segments: {error}") from None
    return selected


def is_integer_at_least(value: object, least: int) -> bool:
    """Tell whether a value is an integer of at least `least`; booleans do not count.

    >>> is_integer_at_least(1000, 1), is_integer_at_least(True, 1), is_integer_at_least(2.5, 1)
    (True, False, False)
    """
    if isinstance(value, bool) or not isinstance(value, int | np.integer):
        return False
    return int(value) >= least


def in_open_unit_interval(value: object) -> bool:
    """Tell whether a value is a float with 0 < value < 1.

    >>> in_open_unit_interval(0.05), in_open_unit_interval(1), in_open_unit_interval(np.nan)
    (True, False, False)
    """
    return isinstance(value, float | np.floating) and 0 < float(value) < 1


def iterate_blocks(count: int, width: int, numbers: int = 0) -> Iterator[slice]:
    """Yield slices of `count` rows of a width, each with about `numbers` (BLOCK_NUMBERS) elements.

    >>> [*iterate_blocks(5, width=3, numbers=6)]
    [slice(0, 2, None), slice(2, 4, None), slice(4, 5, None)]
    """
    rows = max(1, (numbers or BLOCK_NUMBERS) // max(1, width))
    for start in range(0, count, rows):
        yield slice(start, min(start + rows, count))


def round_to_grid(rows: NDArray[Any]) -> FloatArray:
    """Round rows (..., d) so that dot products of such rows are exact in double precision.

    Adding and subtracting 3 * 2^51 grid steps rounds a number to a multiple of the step.

    >>> round_to_grid(np.array([[1.0, 1e-9]]))
    array([[1., 0.]])
    """
    values = np.asarray(rows)
    result: FloatArray = np.empty(values.shape)
    if not values.size:
        return result
    width = values.shape[-1]
    bits = (DOUBLE_BITS - math.ceil(math.log2(width + 1))) // 2
    flat = values.reshape(-1, width)
    rounded = result.reshape(-1, width)
    for block in iterate_blocks(*flat.shape, CACHED_NUMBERS):
        largest = np.abs(flat[block]).max(axis=-1, keepdims=True)
        _, exponents = np.frexp(largest.astype(np.float64))
        offset = np.ldexp(1.5, exponents - bits + DOUBLE_BITS - 1)
        rounded[block] = flat[block]
        rounded[block] += offset
        rounded[block] -= offset
    return result


def exact_dot_products(left: NDArray[Any], right: NDArray[Any]) -> FloatArray:
    """Compute l_i . r_j of rows (n, d) and (m, d); every bit is independent of the other rows.

    >>> exact_dot_products(np.array([[3.0, 4.0]]), np.array([[1.0, 0.0], [0.0, 0.5]]))
    array([[3., 2.]])
    """
    return round_to_grid(left) @ round_to_grid(right).T


def exact_squared_norms(rows: NDArray[Any]) -> FloatArray:
    """Compute x . x of each row, (n, d) -> (n,)."""
    result: FloatArray = np.zeros(len(rows))
    for block in iterate_blocks(len(rows), rows.shape[1], CACHED_NUMBERS):
        rounded = round_to_grid(rows[block])
        result[block] = np.einsum("nd,nd->n", rounded, rounded)
    return result
