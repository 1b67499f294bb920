"""SSS and SentSim: sentence-transformers' cosines, published formula, examples, settings."""

from __future__ import annotations

import itertools
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tertium.core.errors import UsageError
from tertium.core.segment import Segment
from tertium.encoders.weight_files import find_installed_weights
from tertium.metrics.base.scorer import format_signature
from tertium.metrics.embedding.bertscore import BERTScore
from tertium.metrics.embedding.optimal_transport import SMD, WMD
from tertium.metrics.embedding.sentsim import SSS, SentSim

GOLDEN = json.loads(
    (Path(__file__).parents[2] / "golden" / "embedding_metrics.json").read_text(encoding="utf-8")
)
PAIRS = [Segment(hypothesis, None, (reference,)) for hypothesis, reference in GOLDEN["pairs"]]


def test_sss_equals_sentence_transformers() -> None:
    cosines = SSS(encoder="minilm").score(PAIRS).segments
    np.testing.assert_allclose(cosines, GOLDEN["sss"], atol=1e-5)


def test_corpus_normalization_equals_the_published_formula() -> None:
    a = SSS(encoder="minilm@4").score(PAIRS).segments
    b = BERTScore(encoder="minilm@4").score(PAIRS).segments
    a, b = ((x - x.min()) / (x.max() - x.min()) for x in (a, b))
    expected = 0.5 * np.exp(a) + 0.5 * np.exp(b)
    metric = SentSim(encoder="minilm@4", normalise="corpus")
    np.testing.assert_allclose(metric.score(PAIRS).segments, expected, atol=1e-6)
    assert metric.reads_corpus
    assert not SentSim().reads_corpus


def test_distances_are_inverted() -> None:
    a = SMD(encoder="minilm@4").score(PAIRS).segments
    b = WMD(encoder="minilm@4").score(PAIRS).segments
    a, b = (1 - (x - x.min()) / (x.max() - x.min()) for x in (a, b))
    metric = SentSim(encoder="minilm@4", sentence="smd", token="wmd", normalise="corpus")
    np.testing.assert_allclose(
        metric.score(PAIRS).segments, 0.5 * np.exp(a) + 0.5 * np.exp(b), atol=1e-6
    )


@pytest.mark.parametrize(
    ("sentence", "token"), list(itertools.product(("sss", "smd"), ("bertscore", "wmd")))
)
def test_equal_texts_score_e_and_nothing_scores_higher(sentence: str, token: str) -> None:
    metric = SentSim(encoder="minilm@4", sentence=sentence, token=token)  # type: ignore[arg-type]
    scores = metric.score(PAIRS)
    assert scores.segments[4] == pytest.approx(math.e, abs=1e-4)  # "He went home."
    assert scores.segments.max() == scores.segments[4]
    assert scores.columns == ("score", "sentence", "token", "segments")


def test_weights_and_plain_combination() -> None:
    metric = SentSim(encoder="toy", combine="plain", sentence_weight=0.25, token_weight=0.75)
    row = metric.score([Segment("a b", None, ("a c",))]).statistics[0]
    assert row[0] == pytest.approx(0.25 * row[1] + 0.75 * row[2])
    with pytest.raises(UsageError, match="sentence_weight must be"):
        SentSim(sentence_weight=-1.0)
    with pytest.raises(UsageError, match="both 0"):
        SentSim(sentence_weight=0.0, token_weight=0.0)


def test_weights_are_the_published_ones_unless_others_are_stored() -> None:
    assert SentSim().weights("minilm@3", "reference") == (0.5, 0.5)
    assert SentSim().weights("use@3", "source") == (0.5, 0.5)
    assert SentSim().weights("e5@8", "source") == (0.2, 0.8)
    assert SentSim(normalise="corpus").weights("e5@8", "source") == (0.5, 0.5)
    assert SentSim(token_weight=0.3).weights("e5@8", "source") == (0.2, 0.3)
    segment = [Segment("a b", "a c", ("a c",))]
    assert "weights" not in SentSim(encoder="toy").score(segment).signature
    both = SentSim(encoder="toy", against="both", sentence_weight=0.4).score(segment)
    assert "|weights:0.4+0.5/0.4+0.5|" in both.signature


def test_signature_shows_the_bounds() -> None:
    segment = Segment("the cat", "die Katze", ("the cat sat",))

    def norm(**fields: Any) -> str:
        signature = format_signature(SentSim(**fields), [segment])
        return next(part for part in signature.split("|") if part.startswith("norm:"))

    assert norm() == "norm:fixed"
    assert norm(encoder="toy") == "norm:generic"
    assert norm(encoder="toy", normalise="corpus") == "norm:corpus"
    assert norm(encoder="minilm@3", against="both") == "norm:fixed/generic"


def test_blank_texts_do_not_change_the_corpus_bounds() -> None:
    metric = SentSim(encoder="minilm@4", normalise="corpus", token="wmd")
    plain = metric.score(PAIRS).segments
    with_blank = metric.score([*PAIRS, Segment("", None, ("a cat",))]).segments
    np.testing.assert_allclose(with_blank[:-1], plain, atol=1e-9)
    assert with_blank[-1] < plain.min()


# Table 6: reference, the better and the worse translation (negated, shuffled or reversed).
EXAMPLES = [
    ("The food tastes good.", "The food tastes not bad.", "The food tastes not good."),
    (
        "President Barack Obama also backs the proposal.",
        "President Obama also supported this proposal.",
        "Supported President Obama also this proposal.",
    ),
    (
        "She is recovering, and police are still searching for a suspect.",
        "She is recovering, and police are searching for a suspect.",
        "Police searched for a suspect, and she recovered.",
    ),
]


def example_scores(encoder: str, reference: str, hypotheses: list[str]) -> list[float]:
    segments = [Segment(hypothesis, None, (reference,)) for hypothesis in hypotheses]
    return SentSim(encoder=encoder).score(segments).segments.tolist()


@pytest.mark.parametrize("encoder", ["minilm@3", "mpnet"])
@pytest.mark.parametrize(("reference", "better", "worse"), EXAMPLES)
def test_damaged_sentences_score_lower(
    encoder: str, reference: str, better: str, worse: str
) -> None:
    if encoder == "mpnet" and find_installed_weights("mpnet") is None:
        pytest.skip("the weights of mpnet are not installed")
    high, low = example_scores(encoder, reference, [better, worse])
    assert high > low
