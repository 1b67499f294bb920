"""Optimal transport equals POT, in any order and on any number of threads."""

from __future__ import annotations

import os

import numpy as np
import ot
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tertium.core.runtime import runtime, usable_cores
from tertium.encoders.cached_encoding import Chunk
from tertium.encoders.encoder import make_embeddings
from tertium.metrics.base.greedy_matching import normalize_rows, piece_ranges
from tertium.metrics.embedding.optimal_transport import (
    map_distances,
    solve_exact,
    unit_distances,
)


def random_problem(seed: int, rows: int, columns: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    left, right = rng.normal(size=(rows, 8)), rng.normal(size=(columns, 8))
    return np.linalg.norm(left[:, None] - right, axis=2)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10_000), st.integers(1, 20), st.integers(1, 20))
def test_exact_equals_pot(seed: int, rows: int, columns: int) -> None:
    costs = random_problem(seed, rows, columns)
    result = solve_exact(costs)
    assert result.cost == pytest.approx(ot.emd2([], [], costs), abs=1e-6)
    np.testing.assert_allclose(result.plan.sum(axis=1), 1 / rows, atol=1e-12)
    np.testing.assert_allclose(result.plan.sum(axis=0), 1 / columns, atol=1e-12)
    assert (result.plan * costs).sum() == pytest.approx(result.cost, abs=1e-9)


def random_chunk(seed: int, pairs: int) -> Chunk:
    rng = np.random.default_rng(seed)
    sizes = rng.integers(0, 9, size=2 * pairs).tolist()
    texts = make_embeddings(
        [rng.normal(size=(n, 6)).astype(np.float32) for n in sizes],
        [("",) * (n > 2) + ("x",) * (n - 2 * (n > 2)) + ("",) * (n > 2) for n in sizes],
        np.zeros((2 * pairs, 0), dtype=np.float32),
        [False] * (2 * pairs),
        6,
    )
    right = np.sort(rng.integers(0, 2 * pairs, size=pairs))
    left = rng.integers(0, 2 * pairs, size=pairs)
    return Chunk(pairs=np.arange(pairs), left=left, right=right, embeddings=texts)


def test_usable_cores_respect_the_cpu_affinity(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "cpu_count", lambda: 64)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {3, 5, 7}, raising=False)
    assert usable_cores() == 3
    with runtime(threads=2):
        assert usable_cores() == 2
    with runtime(threads=8):
        assert usable_cores() == 3


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_results_are_in_order_for_any_number_of_threads(threads: int) -> None:
    chunk = random_chunk(1, 300)
    with runtime(threads=threads):
        result = map_distances(chunk, lambda costs: costs)
    starts, stops = piece_ranges(chunk.embeddings)
    for costs, i, j in zip(result, chunk.left, chunk.right, strict=True):
        left, right = (chunk.embeddings.vectors[starts[k] : stops[k]] for k in (i, j))
        assert costs.shape == (len(left), len(right))
        np.testing.assert_allclose(costs, unit_distances(left, right), atol=1e-6)


def test_distances_of_nearly_equal_vectors_are_precise() -> None:
    rng = np.random.default_rng(0)
    left = rng.normal(size=(20, 384)).astype(np.float32)
    right = (left + rng.normal(size=left.shape) * 1e-4).astype(np.float32)
    a, b = normalize_rows(left.astype(np.float64)), normalize_rows(right.astype(np.float64))
    expected = np.linalg.norm(a[:, None] - b, axis=2)
    np.testing.assert_allclose(unit_distances(left, right), expected, atol=1e-6)
    assert (np.diag(unit_distances(left, left)) == 0).all()


def test_distances_of_empty_texts_and_zero_vectors() -> None:
    ones = np.ones((3, 4), dtype=np.float32)
    assert unit_distances(np.zeros((0, 4), dtype=np.float32), ones).shape == (0, 3)
    assert np.isfinite(unit_distances(np.zeros((1, 4), dtype=np.float32), ones)).all()
