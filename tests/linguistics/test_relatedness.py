"""How two words are related; values of NLTK 3.9 on the same files where it has them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tertium.errors import UnknownNameError
from tertium.linguistics.relatedness import (
    are_antonyms,
    are_derived,
    are_synonyms,
    entails,
    is_hypernym,
    similar,
    synset_similarity,
)
from tertium.linguistics.wordnet import load_wordnet

WORDS = st.sampled_from(
    ["dog", "cats", "entity", "ran", "walk", "hot", "cold", "slowly", "the", "qwertz", "Paris", ""]
)


def test_synonyms() -> None:
    assert are_synonyms("cars", "automobile", "n")
    assert are_synonyms("bought", "purchase")
    assert are_synonyms("qwertz", "QWERTZ")
    assert not are_synonyms("dog", "cat")
    assert not are_synonyms("the", "of")


def test_antonyms() -> None:
    assert are_antonyms("hot", "colder")
    assert are_antonyms("cold", "hot")
    assert are_antonyms("increase", "decreased", "v")
    assert not are_antonyms("hot", "warm")
    assert not are_antonyms("damp", "dry")
    assert are_antonyms("damp", "dry", indirect=True)
    assert not are_antonyms("damp", "wet", indirect=True)


def test_hypernyms() -> None:
    assert is_hypernym("animal", "poodles")
    assert is_hypernym("city", "Paris")
    assert not is_hypernym("poodle", "animal")
    assert not is_hypernym("car", "automobile")
    assert is_hypernym("move", "run", "v")
    assert not is_hypernym("move", "run", "a")


def test_derivation_and_entailment() -> None:
    assert are_derived("invaded", "invasion")
    assert are_derived("invasion", "invade")
    assert are_derived("quickly", "quick")
    assert not are_derived("dog", "cat")
    assert entails("snored", "sleeping")
    assert entails("kill", "died")
    assert not entails("sleep", "snore")


@pytest.mark.parametrize(
    ("measure", "value"),
    [  # NLTK: dog.n.01 and cat.n.01, ic-brown.dat
        ("path", 0.2),
        ("wu_palmer", 0.857142857),
        ("resnik", 7.911666509),
        ("lin", 0.876807140),
    ],
)
def test_measures_of_two_synsets(measure: str, value: float) -> None:
    dog, cat = (load_wordnet().synsets(word, "n")[0] for word in ("dog", "cat"))
    assert synset_similarity(dog, cat, measure) == pytest.approx(value, abs=1e-5)  # type: ignore[arg-type]


@pytest.mark.parametrize("measure", ["path", "wu_palmer", "resnik", "lin"])
@pytest.mark.parametrize(("a", "b"), [("dog", "cat"), ("run", "walk"), ("bank", "river")])
def test_words_have_the_best_of_their_senses(a: str, b: str, measure: str) -> None:
    wordnet = load_wordnet()
    best = max(
        synset_similarity(x, y, measure)  # type: ignore[arg-type]
        for x in wordnet.synsets(a)
        for y in wordnet.synsets(b)
    )
    assert similar(a, b, None, measure) == pytest.approx(best)  # type: ignore[arg-type]


def test_adjectives_are_similar_by_their_head() -> None:
    assert similar("damp", "wet", "a") == 0.5
    assert similar("damp", "soggy", "a") == pytest.approx(1 / 3)
    assert similar("damp", "quick", "a") == 0


def test_verbs_meet_at_the_top() -> None:
    sleep, sell = (load_wordnet().synsets(word, "v")[0] for word in ("sleep", "sell"))
    assert 0 < synset_similarity(sleep, sell, "path") < 0.3
    assert synset_similarity(sleep, sell, "resnik") == 0


def test_nothing_joins_unknown_words() -> None:
    assert similar("qwertz", "dog") == 0
    assert similar("dog", "quickly") == 0
    with pytest.raises(UnknownNameError, match="wu_palmer"):
        similar("dog", "cat", "n", "wup")  # type: ignore[arg-type]


@given(WORDS, WORDS, st.sampled_from(["path", "wu_palmer", "lin"]))
def test_similarity_is_symmetric_and_bounded(a: str, b: str, measure: str) -> None:
    value = similar(a, b, None, measure)  # type: ignore[arg-type]
    assert 0 <= value <= 1 + 1e-12
    assert value == pytest.approx(similar(b, a, None, measure))  # type: ignore[arg-type]
    if value == 1 and a != b:
        assert are_synonyms(a, b)
