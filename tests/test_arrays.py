"""Exact products: what is rounded, to what, and that nothing is lost behind it."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from numpy.typing import NDArray

from tertium.arrays import (
    BLOCK_NUMBERS,
    FloatArray,
    exact_dot_products,
    exact_squared_norms,
    round_to_grid,
)


def by_definition(rows: NDArray[np.floating]) -> FloatArray:
    """The nearest whole number of steps, ties to even, one row at a time."""
    bits = (53 - math.ceil(math.log2(rows.shape[1] + 1))) // 2
    result = np.zeros(rows.shape)
    for row, into in zip(rows.astype(np.float64), result, strict=True):
        step = math.ldexp(1.0, math.frexp(float(np.abs(row).max()))[1] - bits)
        into[:] = [round(Fraction(value) / Fraction(step)) * step for value in row.tolist()]
    return result


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_rows_are_rounded_to_the_nearest_step(kind: type[np.floating]) -> None:
    draw = np.random.default_rng(7)
    rows = draw.normal(size=(60, 24)).astype(kind) * 10.0 ** draw.integers(-20, 20, size=(60, 1))
    rows[3] = 0
    ties = (np.arange(24) - 12 + 0.5) * 2.0**-24
    ties[0] = 0.75
    rows[4] = ties
    np.testing.assert_array_equal(
        round_to_grid(rows.astype(kind)), by_definition(rows.astype(kind))
    )


def test_rows_of_any_number_are_rounded_as_one_alone() -> None:
    """Where blocks meet, too."""
    rows = (
        np.random.default_rng(8).normal(size=(2 * BLOCK_NUMBERS // 64 + 3, 64)).astype(np.float32)
    )
    alone = np.concatenate([round_to_grid(row[None]) for row in rows])
    np.testing.assert_array_equal(round_to_grid(rows), alone)
    np.testing.assert_array_equal(
        round_to_grid(rows[:12].reshape(3, 4, 64)), alone[:12].reshape(3, 4, 64)
    )
    np.testing.assert_array_equal(exact_squared_norms(rows), (alone * alone).sum(axis=1))


def test_products_lose_nothing() -> None:
    left, right = np.random.default_rng(9).normal(size=(2, 3, 384)).astype(np.float32)
    found = exact_dot_products(left, right)
    for i, one in enumerate(round_to_grid(left).tolist()):
        for j, other in enumerate(round_to_grid(right).tolist()):
            exact = sum(Fraction(a) * Fraction(b) for a, b in zip(one, other, strict=True))
            assert Fraction(float(found[i, j])) == exact


def test_nothing_has_no_products() -> None:
    nothing = np.zeros((0, 5), dtype=np.float32)
    assert round_to_grid(nothing).shape == (0, 5)
    assert exact_squared_norms(nothing).shape == (0,)
    assert exact_dot_products(nothing, np.ones((2, 5))).shape == (0, 2)


def test_what_is_no_number_stays_none() -> None:
    rows = np.array([[np.nan, 1.0], [2.0, 1.0]])
    assert np.isnan(exact_squared_norms(rows)).tolist() == [True, False]
