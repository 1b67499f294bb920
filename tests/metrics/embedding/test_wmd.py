"""WMD, WMDO and SMD: hand-computed distances; transport equals POT, on any number of threads."""

from __future__ import annotations

import os

import numpy as np
import ot
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tertium.core.runtime import runtime, usable_cores
from tertium.core.segment import Segment
from tertium.encoders import load_encoder
from tertium.encoders.cached_encoding import Chunk
from tertium.encoders.encoder import make_embeddings
from tertium.metrics.base.greedy_matching import normalize_rows, piece_ranges
from tertium.metrics.embedding.optimal_transport import (
    SMD,
    WMD,
    WMDO,
    fragmentation,
    map_distances,
    solve_exact,
    unit_distances,
)

TEXTS = [
    ("the cat sat on the mat", "the cat sat on a mat"),
    ("Parliament rejected the budget.", "The new budget was voted down by parliament on Tuesday."),
    ("It costs 3.5 million euros.", "The price is 3.5 million euros."),
    ("ok", "Everything is in order now, thank you very much!"),
    ("He went home.", "He went home."),
]
SEGMENTS = [Segment(left, None, (right,)) for left, right in TEXTS]


def cost_matrix(left: str, right: str, encoder: str = "minilm@4") -> np.ndarray:
    result = load_encoder(encoder).encode([left, right], sentences=False)
    x, y = (result.token_vectors(i).astype(np.float64) for i in (0, 1))
    x, y = (v / np.linalg.norm(v, axis=1, keepdims=True) for v in (x, y))
    return np.linalg.norm(x[:, None] - y, axis=2)


def test_exact_distances_equal_pot() -> None:
    expected = [ot.emd2([], [], cost_matrix(*pair)) for pair in TEXTS]
    result = WMD(encoder="minilm@4").score(SEGMENTS).segments
    np.testing.assert_allclose(result, expected, atol=1e-6)


def test_equal_tokens_are_weighted_by_frequency() -> None:
    # Mass 2/3 of "a" and 1/3 of "b" against 1/2 and 1/2: a sixth moves from a to b.
    result = WMD(encoder="toy").sentence_score("a a b", ["a b"])
    gap = cost_matrix("a", "b", encoder="toy")[0, 0]
    assert result == pytest.approx(gap / 6)


@pytest.mark.parametrize("metric", [WMD(encoder="toy"), SMD(encoder="toy"), WMDO(encoder="toy")])
def test_distances_have_defined_limits(metric: WMD) -> None:
    far = metric.score([Segment("", None, ("a b",)), Segment("a b", None, (" ",))]).segments
    assert (far >= 2.0).all()
    assert metric.sentence_score("", [" "]) == metric.identical
    assert not metric.higher_is_better
    assert far.max() > metric.sentence_score("c d", ["a b"])


@pytest.mark.parametrize("pieces", [1, 2, 4, 50])
def test_copy_is_one_chunk_in_wmdo(pieces: int) -> None:
    # WMD is 0, one chunk of n pieces: -gamma (1/2 - 1/n); -0.1 is never reached
    text = " ".join(f"w{n}" for n in range(pieces))
    result = WMDO(encoder="toy").sentence_score(text, [text])
    assert result == pytest.approx(0.2 / pieces - 0.1)
    assert result > -0.1


def test_smd_equals_the_distance_of_means() -> None:
    vectors = load_encoder("toy").encode(["a b", "c"])
    expected = np.linalg.norm(vectors.token_vectors(0).mean(axis=0) - vectors.token_vectors(1)[0])
    assert SMD(encoder="toy").sentence_score("a b", ["c"]) == pytest.approx(float(expected))


@pytest.mark.parametrize(
    ("order", "expected"),
    [([0, 1, 2, 3], 1 / 4), ([2, 3, 0, 1], 2 / 4), ([3, 2, 1, 0], 1.0), ([0, 1, 3, 2], 3 / 4)],
)
def test_fragmentation_counts_chunks(order: list[int], expected: float) -> None:
    assert fragmentation(np.eye(4)[order]) == expected


def test_wmdo_penalizes_broken_order() -> None:
    metric, plain = WMDO(encoder="toy"), WMD(encoder="toy")
    words = "a b c d"
    straight, reversed_order = (metric.sentence_score(h, [words]) for h in (words, "d c b a"))
    assert straight == pytest.approx(plain.sentence_score(words, [words]) - 0.2 * (0.5 - 0.25))
    assert reversed_order == pytest.approx(0.2 * 0.5)
    assert WMDO(encoder="toy", gamma=0.0).sentence_score("d c", ["c d"]) == pytest.approx(0.0)


def test_plan_explains_the_distance() -> None:
    metric = WMD(encoder="minilm@4")
    explained = metric.explain(SEGMENTS[1])
    (comparison,) = explained.comparisons
    assert sum(link.weight for link in comparison.links) == pytest.approx(1.0)
    total = sum(link.weight * link.similarity for link in comparison.links)
    assert total == pytest.approx(explained.score, abs=1e-6)


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
