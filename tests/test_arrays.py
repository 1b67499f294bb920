"""Exact dot products: rows are rounded to a grid, then nothing is lost."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from numpy.typing import NDArray

from tertium.core.arrays import (
    CACHED_NUMBERS,
    FloatArray,
    exact_dot_products,
    exact_squared_norms,
    round_to_grid,
)


def round_by_definition(rows: NDArray[np.floating]) -> FloatArray:
    """Round each value to the nearest multiple of the step, ties to even, row by row."""
    bits = (53 - math.ceil(math.log2(rows.shape[1] + 1))) // 2
    result = np.zeros(rows.shape)
    for row, into in zip(rows.astype(np.float64), result, strict=True):
        step = math.ldexp(1.0, math.frexp(float(np.abs(row).max()))[1] - bits)
        into[:] = [round(Fraction(value) / Fraction(step)) * step for value in row.tolist()]
    return result


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_rows_are_rounded_to_the_nearest_step(kind):
    draw = np.random.default_rng(7)
    rows = draw.normal(size=(60, 24)).astype(kind) * 10.0 ** draw.integers(-20, 20, size=(60, 1))
    rows[3] = 0
    ties = (np.arange(24) - 12 + 0.5) * 2.0**-24
    ties[0] = 0.75
    rows[4] = ties
    np.testing.assert_array_equal(
        round_to_grid(rows.astype(kind)), round_by_definition(rows.astype(kind))
    )


def test_rounding_does_not_depend_on_other_rows():
    """Also at block boundaries."""
    rows = (
        np.random.default_rng(8).normal(size=(2 * CACHED_NUMBERS // 64 + 3, 64)).astype(np.float32)
    )
    separate = np.concatenate([round_to_grid(row[None]) for row in rows])
    np.testing.assert_array_equal(round_to_grid(rows), separate)
    np.testing.assert_array_equal(
        round_to_grid(rows[:12].reshape(3, 4, 64)), separate[:12].reshape(3, 4, 64)
    )
    np.testing.assert_array_equal(exact_squared_norms(rows), (separate * separate).sum(axis=1))


def test_dot_products_are_exact():
    left, right = np.random.default_rng(9).normal(size=(2, 3, 384)).astype(np.float32)
    products = exact_dot_products(left, right)
    for i, row in enumerate(round_to_grid(left).tolist()):
        for j, column in enumerate(round_to_grid(right).tolist()):
            exact = sum(Fraction(a) * Fraction(b) for a, b in zip(row, column, strict=True))
            assert Fraction(float(products[i, j])) == exact


def test_empty_and_undefined_rows():
    empty = np.zeros((0, 5), dtype=np.float32)
    assert round_to_grid(empty).shape == (0, 5)
    assert exact_squared_norms(empty).shape == (0,)
    assert exact_dot_products(empty, np.ones((2, 5))).shape == (0, 2)
    rows = np.array([[np.nan, 1.0], [2.0, 1.0]])
    assert np.isnan(exact_squared_norms(rows)).tolist() == [True, False]
