"""Greedy matching compared with hand-computed values and a plain loop, on CPU and GPU paths."""

from __future__ import annotations

import numpy as np
import pytest

from tertium.core.runtime import resolve_device
from tertium.encoders.cached_encoding import Chunk
from tertium.encoders.encoder import Embeddings, make_embeddings
from tertium.metrics.base import gpu_matching, greedy_matching
from tertium.metrics.base.greedy_matching import (
    match_greedily,
)


@pytest.fixture(autouse=True, params=["exact", "padded"])
def matching_path(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """The CPU path, and the GPU path (on a CPU if there is no GPU)."""
    device = resolve_device("auto") if request.param == "padded" else None
    monkeypatch.setattr(greedy_matching, "active_gpu", lambda: device)


def make_chunk(
    matrices: list[np.ndarray], pieces: list[tuple[str, ...]], pairs: list[tuple[int, int]]
) -> Chunk:
    pairs = sorted(pairs, key=lambda pair: pair[1])
    texts = make_embeddings(
        [np.asarray(m, dtype=np.float32).reshape(-1, 2) for m in matrices],
        pieces,
        np.zeros((len(matrices), 0), dtype=np.float32),
        [False] * len(matrices),
        2,
    )
    return Chunk(
        pairs=np.arange(len(pairs)),
        left=np.array([p[0] for p in pairs]),
        right=np.array([p[1] for p in pairs]),
        embeddings=texts,
    )


def test_weights_of_zero_fall_back_to_equal_ones() -> None:
    chunk = make_chunk([[[2, 0]], [[1, 0], [0, 3]]], [("e",), ("e", "n")], [(0, 1)])
    assert match_greedily(chunk, weights=np.zeros(3, dtype=np.float32)).tolist() == [[1.0, 0.5]]


def test_special_tokens_match_but_do_not_count() -> None:
    left = [[0, 1], [1, 0], [0, 1]]  # special north, east, special north
    chunk = make_chunk([left, [[1, 0], [0, 3]]], [("", "e", ""), ("e", "n")], [(0, 1)])
    assert match_greedily(chunk, special=True).tolist() == [[1.0, 1.0]]
    assert match_greedily(chunk, special=False).tolist() == [[1.0, 0.5]]


def test_a_text_without_pieces_has_no_value() -> None:
    chunk = make_chunk([[[1, 0]], [], [[0, 1]]], [("a",), (), ("b",)], [(0, 1), (1, 2), (0, 2)])
    values = match_greedily(chunk)
    assert np.isnan(values[:2]).all()
    assert values[2].tolist() == [0.0, 0.0]


def slow(texts: Embeddings, i: int, j: int) -> tuple[float, float]:
    def cosine(x: np.ndarray, y: np.ndarray) -> float:
        return float(x @ y / np.linalg.norm(x) / np.linalg.norm(y))

    table = [[cosine(x, y) for y in texts.token_vectors(j)] for x in texts.token_vectors(i)]
    precision = np.mean([max(row) for row in table])
    recall = np.mean([max(row[k] for row in table) for k in range(len(table[0]))])
    return float(precision), float(recall)


@pytest.mark.parametrize("rows", [1, 12, 1 << 17])
def test_one_product_for_many_hypotheses_equals_a_loop(
    rows: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gpu_matching, "BATCH_ROWS", rows)
    rng = np.random.default_rng(3)
    matrices = [rng.normal(size=(n, 2)) for n in (3, 1, 5, 2, 4)]
    pieces = [tuple("abcdefgh"[: len(m)]) for m in matrices]
    pairs = [(0, 3), (1, 3), (2, 3), (2, 4), (4, 4)]
    chunk = make_chunk(matrices, pieces, pairs)
    expected = [slow(chunk.embeddings, i, j) for i, j in pairs]
    np.testing.assert_allclose(match_greedily(chunk), expected, atol=1e-6)
