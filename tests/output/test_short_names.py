"""Shortened names stay distinct."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from tertium.output.charts.draw import shorten_names


@pytest.mark.parametrize(
    ("names", "max_length", "expected"),
    [
        (["a", "b"], 5, ["a", "b"]),
        (["run-2024-big-de", "run-2024-small-de"], 8, ["…big…", "…small…"]),
        (["run-2024-big-de", "run-2024-small-de"], 9, ["…big-de", "…small-de"]),
        (["only-one-of-them-here"], 11, ["only-…-here"]),
        (["nothing-in-common-here", "x"], 11, ["nothi…-here", "x"]),
        (["prefix-a", "prefix-"], 5, ["pr…-a", "pr…x-"]),  # the second would be empty
    ],
)
def test_common_parts_are_removed_first(
    names: list[str], max_length: int, expected: list[str]
) -> None:
    assert shorten_names(names, max_length) == expected


def test_names_that_differ_inside_only_are_numbered() -> None:
    actual = shorten_names(["a" * 20 + "x" + "b" * 20, "a" * 20 + "y" + "b" * 20], 11)
    assert actual == ["1 aaaa…bbbb", "2 aaaa…bbbb"]


@given(st.lists(st.text(max_size=30), max_size=8), st.integers(8, 20))
def test_any_names_fit_and_stay_distinct(names: list[str], max_length: int) -> None:
    actual = shorten_names(names, max_length)
    assert max(map(cell_len, actual), default=0) <= max_length
    assert len(set(zip(names, actual, strict=True))) == len(set(names)) == len(set(actual))
