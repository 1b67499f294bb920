"""The laws every encoder keeps, whichever way it makes its vectors."""

from __future__ import annotations

import numpy as np
import pytest

from tertium.cache.vector_cache import MAX_STORED_WIDTH, clear_memory
from tertium.encoders import Encoder, embed_texts, load_encoder
from tertium.errors import MissingResourceError
from tertium.execution import runtime

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
# What floating-point arithmetic in another order may change, on vectors of length about 1 to 10.
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


def test_it_is_what_it_says(encoder: Encoder) -> None:
    assert isinstance(encoder, Encoder)
    assert load_encoder(encoder.name).name == encoder.name
    assert len(encoder.weights_hash) == 64
    for key, value in encoder.signature_fields().items():
        assert not set("|:") & set(key + value)
    assert encoder.signature_fields()["model"].endswith(encoder.weights_hash[:8])


def test_shapes_fit_together(encoder: Encoder) -> None:
    found = encoder.encode(TEXTS)
    assert found.vectors.shape == (int(found.offsets[-1]), encoder.dim)
    assert found.sentences.shape == (len(TEXTS), encoder.sentence_dim)
    assert found.vectors.dtype == found.sentences.dtype == np.float32
    assert [len(p) for p in found.tokens] == found.lengths.tolist()
    assert list(found.tokens) == encoder.tokenize(TEXTS)
    assert encoder.dim % encoder.layers == 0
    assert np.isfinite(found.vectors).all()
    assert np.isfinite(found.sentences).all()


def test_an_empty_text_has_no_token(encoder: Encoder) -> None:
    assert encoder.encode(TEXTS).lengths[[2, 5]].tolist() == [0, 0]
    assert len(encoder.encode([""])) == 1
    assert len(encoder.encode([])) == 0


def test_what_is_not_asked_for_is_empty(encoder: Encoder) -> None:
    tokens = encoder.encode(TEXTS, sentences=False)
    sentences = encoder.encode(TEXTS, tokens=False)
    both = encoder.encode(TEXTS)
    assert tokens.sentences.shape == (len(TEXTS), 0)
    assert len(sentences.vectors) == 0
    np.testing.assert_allclose(tokens.vectors, both.vectors, atol=TOLERANCE)
    np.testing.assert_allclose(sentences.sentences, both.sentences, atol=TOLERANCE)


def test_equal_texts_have_equal_vectors(encoder: Encoder) -> None:
    found = encoder.encode(TEXTS)
    assert np.array_equal(found.token_vectors(1), found.token_vectors(4))
    assert np.array_equal(found.sentences[1], found.sentences[4])


def test_order_neighbors_and_batches_change_nothing(encoder: Encoder) -> None:
    together = encoder.encode(TEXTS)
    order = np.random.default_rng(2).permutation(len(TEXTS))
    with runtime(batch_size=2, token_budget=16):
        shuffled = encoder.encode([TEXTS[i] for i in order])
    for place, i in enumerate(order):
        alone = encoder.encode([TEXTS[i]])
        for other, row in ((shuffled, place), (alone, 0)):
            assert other.tokens[row] == together.tokens[i]
            np.testing.assert_allclose(
                other.token_vectors(row), together.token_vectors(i), atol=TOLERANCE
            )
            np.testing.assert_allclose(other.sentences[row], together.sentences[i], atol=TOLERANCE)


def test_the_cache_changes_nothing(
    encoder: Encoder, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tertium.execution import resolve_device

    if encoder.dim > MAX_STORED_WIDTH and resolve_device("auto") != "cpu":
        pytest.skip("too wide to be stored: what a GPU computes again may differ in last bits")
    monkeypatch.setenv("TERTIUM_CACHE", str(tmp_path_factory.mktemp("cache")))
    cold = embed_texts(encoder, TEXTS)
    clear_memory()
    warm = embed_texts(encoder, TEXTS)
    assert cold.tokens == warm.tokens
    assert np.array_equal(cold.vectors, warm.vectors)
    assert np.array_equal(cold.sentences, warm.sentences)
    assert np.array_equal(cold.truncated, warm.truncated)


def test_long_texts_are_counted(encoder: Encoder) -> None:
    long = "word and " * 2000
    found = encoder.encode([long, "short"])
    assert found.truncated.sum() == encoder.count_truncated([long, "short"])
    if encoder.max_length is not None:
        assert found.truncated.tolist() == [True, False]
        assert found.lengths[0] <= encoder.max_length
