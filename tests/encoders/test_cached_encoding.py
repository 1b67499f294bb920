"""Pairs are compared in order, in bounded chunks, and each distinct text is encoded once."""

from __future__ import annotations

import importlib
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tertium.core.runtime import runtime
from tertium.encoders import (
    Chunk,
    Embeddings,
    compare_pairs,
    embed_texts,
    iter_chunks,
    load_encoder,
    share_encoding,
)
from tertium.encoders.cached_encoding import stream_embeddings
from tertium.encoders.toy_encoder import ToyEncoder
from tertium.encoders.vector_cache import clear_memory

cached_encoding = importlib.import_module("tertium.encoders.cached_encoding")


@dataclass(frozen=True, kw_only=True)
class CountingEncoder(ToyEncoder):
    """The toy encoder with a fingerprint (so it is cached) and a counter of its calls."""

    label: str = "counting"
    seen: Counter[tuple[str, bool, bool]] = field(default_factory=Counter)

    def encode(
        self, texts: Sequence[str], *, tokens: bool = True, sentences: bool = True
    ) -> Embeddings:
        self.seen.update((text, tokens, sentences) for text in texts)
        return super().encode(texts, tokens=tokens, sentences=sentences)

    def fingerprint(self, part: str) -> str:
        return f"{self.label}:{part}"


@pytest.fixture(autouse=True)
def empty_memory() -> None:
    clear_memory()


def overlap(chunk: Chunk) -> np.ndarray:
    """Return the largest dot product between two texts' tokens, and the number of left tokens."""
    rows = []
    for a, b in zip(chunk.left, chunk.right, strict=True):
        products = chunk.embeddings.token_vectors(int(a)) @ chunk.embeddings.token_vectors(int(b)).T
        rows.append([products.max(initial=0.0), len(products)])
    return np.array(rows)


WORDS = st.sampled_from(["the cat", "a dog sat", "", "on a mat", "the cat sat"])


@given(st.lists(st.tuples(WORDS, WORDS), max_size=30), st.integers(1, 3000))
def test_results_are_in_the_order_of_the_pairs(
    pairs: list[tuple[str, str]], chunk_bytes: int
) -> None:
    left, right = [a for a, _ in pairs], [b for _, b in pairs]
    encoder = ToyEncoder()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cached_encoding, "CHUNK_BYTES", chunk_bytes)
        found = compare_pairs(encoder, left, right, overlap)
    for place, (a, b) in enumerate(pairs):
        alone = encoder.encode([a, b])
        products = alone.token_vectors(0) @ alone.token_vectors(1).T
        np.testing.assert_allclose(
            found[place], [products.max(initial=0.0), len(alone.token_vectors(0))]
        )


def many_systems() -> tuple[list[str], list[str]]:
    references = [f"reference number {i} of many" for i in range(40)]
    systems = [[f"system {s} says {i}" if i % 4 else "yes" for i in range(40)] for s in range(5)]
    return [h for system in systems for h in system], references * 5


def test_each_distinct_text_is_encoded_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cached_encoding, "CHUNK_BYTES", 4000)
    left, right = many_systems()
    encoder = CountingEncoder()
    with runtime(cache=False):
        assert len(list(iter_chunks(encoder, left, right))) > 5
        assert set(encoder.seen) == {(text, True, False) for text in {*left, *right}}
        assert set(encoder.seen.values()) == {1}
        compare_pairs(encoder, left[:40], right[:40], overlap)
    assert set(encoder.seen.values()) == {1}  # a second metric finds them in memory


def test_vectors_missing_in_memory_are_read_from_disk(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("TERTIUM_CACHE", str(tmp_path))
    left, right = many_systems()
    first, second = CountingEncoder(), CountingEncoder()
    cold = compare_pairs(first, left, right, overlap)
    clear_memory()
    warm = compare_pairs(second, left, right, overlap)
    assert not second.seen
    assert np.array_equal(cold, warm)


def test_only_the_missing_part_is_computed() -> None:
    encoder = CountingEncoder()
    with runtime(cache=False):
        embed_texts(encoder, ["a cat"], sentences=False)
        embed_texts(encoder, ["a cat"])
    assert dict(encoder.seen) == {
        ("a cat", True, False): 1,
        ("a cat", False, True): 1,
    }


def test_chunks_have_bounded_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cached_encoding, "CHUNK_BYTES", 20_000)
    left, right = many_systems()
    seen = []
    for chunk in iter_chunks(ToyEncoder(), left, right):
        seen += chunk.pairs.tolist()
        assert chunk.embeddings.vectors.nbytes <= 20_000
    assert sorted(seen) == list(range(len(left)))


def test_texts_are_encoded_in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cached_encoding, "CHUNK_BYTES", 500)
    texts = ["a cat", "a dog sat", "a cat", "", "on a mat", "a cat"]
    distinct = list(dict.fromkeys(texts))
    parts = list(stream_embeddings(ToyEncoder(), distinct))
    assert len(parts) > 1
    assert [" ".join(p) for part in parts for p in part.tokens] == distinct
    whole = embed_texts(ToyEncoder(), texts)
    assert np.array_equal(whole.vectors, ToyEncoder().encode(texts).vectors)
    assert np.array_equal(whole.sentences, ToyEncoder().encode(texts).sentences)


@pytest.fixture
def passes(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The number of texts in each pass of a network."""
    pytest.importorskip("torch")
    from tertium.encoders.encoder_network import EncoderNetwork

    sizes: list[int] = []
    run = EncoderNetwork.__call__

    def count(self: EncoderNetwork, rows: Sequence[Sequence[int]], *rest: Any) -> Any:
        sizes.append(len(rows))
        return run(self, rows, *rest)

    monkeypatch.setattr(EncoderNetwork, "__call__", count)
    return sizes


def test_encoders_with_and_without_special_tokens_have_separate_entries(
    tiny_model: Callable[[str], Path],
) -> None:
    name = f"dir/{tiny_model('bert')}@2"
    texts = ["the cat sat", "", "a dog"]
    with runtime(cache=False):
        special = embed_texts(load_encoder(name, special=True), texts, sentences=False)
        plain = embed_texts(load_encoder(name), texts, sentences=False)
    assert special.tokens == (("", "the", "cat", "sat", ""), (), ("", "a", "dog", ""))
    assert plain.tokens == (("the", "cat", "sat"), (), ("a", "dog"))
    assert np.allclose(plain.token_vectors(0), special.token_vectors(0)[1:-1], atol=1e-6)


def test_shared_requests_are_computed_in_one_pass(
    tiny_model: Callable[[str], Path], passes: list[int]
) -> None:
    folder = tiny_model("bert")
    texts = ["the cat sat", "", "a dog", "the dog"]
    requests = [(load_encoder(f"dir/{folder}@{layer}"), "tokens") for layer in ("1", "2", "1+3")]
    requests.append((load_encoder(f"dir/{folder}@3"), "sentences"))
    with runtime(cache=False):
        separate = [
            e.encode(texts, tokens=p == "tokens", sentences=p != "tokens") for e, p in requests
        ]
        passes.clear()
        with share_encoding(requests):
            together = [
                embed_texts(encoder, texts, tokens=part == "tokens", sentences=part != "tokens")
                for encoder, part in requests
            ]
    assert sum(passes) == len(texts)
    for expected, found in zip(separate, together, strict=True):
        assert expected.tokens == found.tokens
        np.testing.assert_allclose(expected.vectors, found.vectors, atol=1e-6)
        np.testing.assert_allclose(expected.sentences, found.sentences, atol=1e-6)


def test_cached_shared_requests_are_not_computed_again() -> None:
    encoder, other = CountingEncoder(), CountingEncoder(label="other")
    with runtime(cache=False), share_encoding([(other, "tokens")]):
        embed_texts(encoder, ["a cat"], sentences=False)
        embed_texts(other, ["a cat"], sentences=False)
    assert encoder.seen["a cat", True, False] == other.seen["a cat", True, False] == 1
