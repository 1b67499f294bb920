"""NIST equals mteval-v13a, NLTK and hand-computed values."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from nltk.translate.nist_score import corpus_nist, sentence_nist

from tertium.core.errors import UnknownNameError, UsageError
from tertium.core.segment import Segment
from tertium.metrics.lexical.nist_metric import (
    NIST,
    nist_statistics,
)

GOLDEN = json.loads((Path(__file__).parents[2] / "golden/nist_mteval.json").read_text("utf-8"))


@pytest.mark.parametrize(("key", "count"), [("one_reference", 1), ("two_references", 2)])
@pytest.mark.parametrize("order", range(1, 10))
def test_scores_equal_mteval(key: str, count: int, order: int) -> None:
    rows = zip(*GOLDEN["references"][:count], strict=True)
    segments = [Segment(h, None, r) for h, r in zip(GOLDEN["hypotheses"], rows, strict=True)]
    scores = NIST(order=order).score(segments)
    expected = GOLDEN[key]
    assert scores.system == pytest.approx(expected["system"][order - 1], abs=1e-11)
    column = [row[order - 1] for row in expected["segments"]]
    assert scores.segments == pytest.approx(column, abs=1e-11)


long_texts = st.lists(st.sampled_from("abcde"), min_size=5, max_size=9)
corpora = st.lists(st.tuples(long_texts, long_texts), min_size=1, max_size=4)


@settings(deadline=None)
@given(corpora)
def test_scores_equal_nltk_for_one_reference(pairs: list[tuple[list[str], list[str]]]) -> None:
    # With at least five words each NLTK never divides by zero.
    hypotheses, references = zip(*pairs, strict=True)
    segments = [Segment(" ".join(h), references=(" ".join(r),)) for h, r in pairs]
    expected = corpus_nist([[r] for r in references], hypotheses, n=5)
    assert NIST().score(segments).system == pytest.approx(expected, rel=1e-12, abs=1e-12)
    single = NIST().score(segments[:1]).segments[0]
    assert single == pytest.approx(sentence_nist([references[0]], hypotheses[0]), abs=1e-12)


def test_several_references_clip_by_the_maximum_and_use_the_mean_length() -> None:
    rows = nist_statistics([list("aab")], [[list("bcde"), list("aa")]])
    columns = dict(zip(NIST().columns, rows[0].tolist(), strict=True))
    assert (columns["matches_1"], columns["reference_length"]) == (3, 3)
    # a: 2 of 6 words, b: 1 of 6. NLTK takes the better reference, here "a a", for the match.
    bits = 2 * math.log2(6 / 2) + math.log2(6 / 1)
    assert NIST(order=1).sentence_score("a a b", ["b c d e", "a a"]) == pytest.approx(bits / 3)
    nltk = sentence_nist([list("bcde"), list("aa")], list("aab"), n=1)
    assert nltk == pytest.approx(2 * math.log2(6 / 2) / 3)


def test_invalid_settings_raise_an_error() -> None:
    with pytest.raises(UsageError, match="from 1 to 10"):
        NIST(order=11)
    with pytest.raises(UnknownNameError, match="did you mean '13a'"):
        NIST(tokenize="13b")
