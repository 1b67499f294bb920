"""Shared n-grams counted by sorting equal those counted with `Counter`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from unittest import mock

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from tertium.text import ngram_overlap
from tertium.text.ngram_overlap import ABSENT, count_shared

rows = st.lists(st.sampled_from([0, 1, 2, 3, 9, 70_000]), max_size=9)
pairs = st.lists(st.tuples(rows, rows), max_size=7)


def slow_counts(left: Sequence[int], right: Sequence[int], order: int) -> list[int]:
    def grams(row: Sequence[int], n: int) -> Counter[tuple[int, ...]]:
        return Counter(tuple(row[i : i + n]) for i in range(len(row) - n + 1))

    return [sum((grams(left, n) & grams(right, n)).values()) for n in range(1, order + 1)]


def make_layout(
    given_pairs: Sequence[tuple[list[int], list[int]]],
) -> tuple[np.ndarray, np.ndarray]:
    texts = [text for pair in given_pairs for text in pair]
    symbols = np.array([symbol for text in texts for symbol in text], dtype=np.int64)
    return symbols, np.array([len(text) for text in texts], dtype=np.int64)


@settings(max_examples=60, deadline=None)
@given(pairs, st.integers(0, 8), st.sampled_from([1 << 15, 5]), st.sampled_from([64, 30, 14]))
def test_counts_equal_those_of_counters(
    given_pairs: list[tuple[list[int], list[int]]], order: int, chunk: int, key: int
) -> None:
    with (
        mock.patch.object(ngram_overlap, "CHUNK_SYMBOLS", chunk),
        mock.patch.object(ngram_overlap, "KEY_BITS", key),
    ):
        counted = count_shared(*make_layout(given_pairs), order)
    assert counted.shape == (len(given_pairs), order)
    for row, (left, right) in zip(counted.tolist(), given_pairs, strict=True):
        assert row in (slow_counts(left, right, order), [ABSENT] * order)
        if key == 64:
            assert row == slow_counts(left, right, order)


def test_only_pairs_with_too_many_symbols_are_skipped() -> None:
    many = list(range(2000))
    counted = count_shared(*make_layout([([1, 2], [2, 1]), (many, many), ([5], [5])]), 6)
    assert counted.tolist() == [[2, 0, 0, 0, 0, 0], [ABSENT] * 6, [1, 0, 0, 0, 0, 0]]


def test_many_symbols_fit_where_each_pair_has_few() -> None:
    given_pairs = [([n, n + 1, n + 2], [n, n + 1, n]) for n in range(0, 9000, 3)]
    counted = count_shared(*make_layout(given_pairs), 6)
    assert counted.tolist() == [[2, 1, 0, 0, 0, 0]] * len(given_pairs)
