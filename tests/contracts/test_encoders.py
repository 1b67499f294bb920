"""Contracts of every encoder."""

from __future__ import annotations

import numpy as np
import pytest

from tertium.core.errors import MissingResourceError
from tertium.core.runtime import runtime
from tertium.encoders import Encoder, embed_texts, load_encoder
from tertium.encoders.vector_cache import MAX_STORED_WIDTH, clear_memory

NAMES = [
    "toy",
    "minilm",
    "minilm@2",
    "minilm@all",
    "e5",
    "use",
    "glove",
    pytest.param("mpnet", marks=pytest.mark.slow),
]
TEXTS = [
    "The cat sat on the mat .",
    "a dog",
    "",
    "It costs 3.5 million euros, they said; nobody believed them.",
    "a dog",
    "   ",
    "Zürich – naïve café",
]
# rounding differences of vectors of norm 1 to 10 if sums are in another order
TOLERANCE = 2e-5


@pytest.fixture(params=NAMES)
def encoder(request: pytest.FixtureRequest) -> Encoder:
    clear_memory()
    try:
        loaded = load_encoder(request.param)
        loaded.encode(["try"])
    except (MissingResourceError, ImportError) as error:
        pytest.skip(str(error))
    return loaded


def test_name_hash_and_signature(encoder: Encoder) -> None:
    assert isinstance(encoder, Encoder)
    assert load_encoder(encoder.name).name == encoder.name
    assert len(encoder.weights_hash) == 64
    for key, value in encoder.signature_fields().items():
        assert not set("|:") & set(key + value)
    assert encoder.signature_fields()["model"].endswith(encoder.weights_hash[:8])


def test_shapes_are_consistent(encoder: Encoder) -> None:
    encoded = encoder.encode(TEXTS)
    assert encoded.vectors.shape == (int(encoded.offsets[-1]), encoder.dim)
    assert encoded.sentences.shape == (len(TEXTS), encoder.sentence_dim)
    assert encoded.vectors.dtype == encoded.sentences.dtype == np.float32
    assert [len(p) for p in encoded.tokens] == encoded.lengths.tolist()
    assert list(encoded.tokens) == encoder.tokenize(TEXTS)
    assert encoder.dim % encoder.layers == 0
    assert np.isfinite(encoded.vectors).all()
    assert np.isfinite(encoded.sentences).all()


def test_empty_text_has_no_tokens(encoder: Encoder) -> None:
    assert encoder.encode(TEXTS).lengths[[2, 5]].tolist() == [0, 0]
    assert len(encoder.encode([""])) == 1
    assert len(encoder.encode([])) == 0


def test_outputs_not_requested_are_empty(encoder: Encoder) -> None:
    tokens = encoder.encode(TEXTS, sentences=False)
    sentences = encoder.encode(TEXTS, tokens=False)
    both = encoder.encode(TEXTS)
    assert tokens.sentences.shape == (len(TEXTS), 0)
    assert len(sentences.vectors) == 0
    np.testing.assert_allclose(tokens.vectors, both.vectors, atol=TOLERANCE)
    np.testing.assert_allclose(sentences.sentences, both.sentences, atol=TOLERANCE)


def test_equal_texts_have_equal_vectors(encoder: Encoder) -> None:
    encoded = encoder.encode(TEXTS)
    assert np.array_equal(encoded.token_vectors(1), encoded.token_vectors(4))
    assert np.array_equal(encoded.sentences[1], encoded.sentences[4])


def test_vectors_do_not_depend_on_order_or_batches(encoder: Encoder) -> None:
    together = encoder.encode(TEXTS)
    order = np.random.default_rng(2).permutation(len(TEXTS))
    with runtime(batch_size=2, token_budget=16):
        shuffled = encoder.encode([TEXTS[i] for i in order])
    for position, i in enumerate(order):
        single = encoder.encode([TEXTS[i]])
        for other, row in ((shuffled, position), (single, 0)):
            assert other.tokens[row] == together.tokens[i]
            np.testing.assert_allclose(
                other.token_vectors(row), together.token_vectors(i), atol=TOLERANCE
            )
            np.testing.assert_allclose(other.sentences[row], together.sentences[i], atol=TOLERANCE)


def test_vectors_do_not_depend_on_the_cache(
    encoder: Encoder, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tertium.core.runtime import resolve_device

    if encoder.dim > MAX_STORED_WIDTH and resolve_device("auto") != "cpu":
        pytest.skip("vectors are too wide for the cache, and a GPU may round differently")
    monkeypatch.setenv("TERTIUM_CACHE", str(tmp_path_factory.mktemp("cache")))
    cold = embed_texts(encoder, TEXTS)
    clear_memory()
    warm = embed_texts(encoder, TEXTS)
    assert cold.tokens == warm.tokens
    assert np.array_equal(cold.vectors, warm.vectors)
    assert np.array_equal(cold.sentences, warm.sentences)
    assert np.array_equal(cold.truncated, warm.truncated)


def test_truncated_texts_are_counted(encoder: Encoder) -> None:
    long = "word and " * 2000
    encoded = encoder.encode([long, "short"])
    assert encoded.truncated.sum() == len(encoder.find_truncated([long, "short"]))
    if encoder.max_length is not None:
        assert encoded.truncated.tolist() == [True, False]
        assert encoded.lengths[0] <= encoder.max_length
