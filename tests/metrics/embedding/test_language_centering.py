"""Against sources, vectors are centered by language."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tertium.core.errors import UsageError
from tertium.core.segment import Segment
from tertium.encoders import Encoder, iter_chunks, load_encoder
from tertium.metrics.base.loading import load_metric
from tertium.metrics.base.text_warnings import count_flags
from tertium.metrics.embedding.embedding_metric import LanguageCentering
from tertium.metrics.embedding.sentsim import SSS

GERMAN, ENGLISH = "Das ist ein gutes Haus am See", "This is a good house by the lake"


def centering(source: str = "", target: str = "", **changes: Any) -> LanguageCentering:
    """Means of two languages; the directions are those of the encoder unless others are given."""
    dim = load_encoder("toy").dim
    means = {"de": np.full(dim, 0.5, np.float32), "en": np.full(dim, -0.25, np.float32)}
    settings: dict[str, Any] = {"directions": np.eye(dim), "tokens": dim, **changes}
    return LanguageCentering(means=means, source=source, target=target, **settings)


def test_each_side_is_centered_by_its_own_mean() -> None:
    chunk = next(iter_chunks(load_encoder("toy"), [ENGLISH], [GERMAN]))
    for center in (centering(), centering("de", "en")):
        result = center(chunk)
        left, right = int(result.left[0]), int(result.right[0])
        before = (
            chunk.embeddings.token_vectors(int(chunk.left[0])),
            chunk.embeddings.token_vectors(int(chunk.right[0])),
        )
        assert np.allclose(result.embeddings.token_vectors(left), before[0] + 0.25, atol=1e-3)
        assert np.allclose(result.embeddings.token_vectors(right), before[1] - 0.5, atol=1e-3)
        assert np.allclose(
            result.embeddings.sentences[left], (before[0] + 0.25).mean(axis=0), atol=1e-3
        )


def test_text_on_both_sides_has_the_language_of_its_side() -> None:
    chunk = next(iter_chunks(load_encoder("toy"), [GERMAN], [GERMAN]))
    with_pair = centering("de", "en")(chunk)
    assert with_pair.left[0] != with_pair.right[0]
    identified = centering()(chunk)
    assert identified.left[0] == identified.right[0]


def test_unknown_languages_are_counted_and_get_the_mean_of_all() -> None:
    chunk = next(iter_chunks(load_encoder("toy"), ["xx"], ["xx"]))
    result = centering("xx", "xx")(chunk)
    assert np.allclose(result.embeddings.vectors, chunk.embeddings.vectors - 0.125, atol=1e-6)
    finnish = "Juna rannikolle lähtee aamulla seitsemältä"
    segments = [Segment(ENGLISH, GERMAN), Segment("ok", finnish)]
    flags = centering().flags(segments)
    assert {kind: mask.tolist() for kind, mask in flags.items()} == {
        "language not identified": [False, True],
        "language without a mean": [False, True],
    }
    known = [Segment(ENGLISH, GERMAN), Segment("ok", GERMAN)]
    assert not count_flags(centering("de", "en").flags(known))


def test_encoder_without_stored_means_raises_an_error() -> None:
    with pytest.raises(UsageError, match="no language means are stored for encoder toy"):
        SSS(encoder="toy", against="source", centre="aligned").score([Segment("a", "b")])


def test_directions_are_applied_after_centering() -> None:
    dim = load_encoder("toy").dim
    rows = np.random.default_rng(1).standard_normal((7, dim)).astype(np.float32)
    chunk = next(iter_chunks(load_encoder("toy"), [ENGLISH], [GERMAN]))
    plain = centering()(chunk).embeddings
    result = centering(directions=rows, tokens=3)(chunk)
    # single precision, summed over the dimensions of the encoder
    assert np.allclose(result.embeddings.vectors, plain.vectors @ rows[:3].T, atol=1e-4)
    assert np.allclose(result.embeddings.sentences, plain.sentences @ rows.T, atol=1e-4)
    assert result.embeddings.tokens == plain.tokens


def test_unrelated_texts_are_not_similar(e5: Encoder) -> None:
    segment, choices = [Segment("He sleeps.", GERMAN)], ("none", "aligned")
    metrics = [load_metric(f"sss:encoder=e5,against=source,centre={choice}") for choice in choices]
    plain, aligned = (metric.score(segment).system for metric in metrics)
    assert plain > aligned + 0.1


def test_centering_is_in_the_signature(e5: Encoder) -> None:
    segments = [Segment(ENGLISH, GERMAN)]
    result = SSS(encoder="e5", against="source").signature_fields(segments)
    assert result["means"] == "identified-identified"
    result = SSS(encoder="e5", against="source", lp="de-en").signature_fields(segments)
    assert (result["means"], result["dirs"]) == ("de-en", "64+256")
    assert "means" not in SSS(encoder="e5", against="source", centre="none").signature_fields(
        segments
    )
