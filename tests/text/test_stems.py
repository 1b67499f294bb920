"""Stems by language, and METEOR's word lists."""

from __future__ import annotations

import pytest

from tertium.text.meteor_tokens import (
    ABBREVIATIONS,
    NUMERIC_ABBREVIATIONS,
    SNOWBALL,
    function_words,
    has_stemmer,
    stemmer,
)


@pytest.mark.parametrize(
    ("language", "word", "expected"),
    [  # snowballstem.org, vocabularies with stems
        ("en", "consistently", "consist"),
        ("de", "aufeinanderfolgenden", "aufeinanderfolg"),
        ("fr", "continuellement", "continuel"),
        ("es", "chicharrones", "chicharron"),
    ],
)
def test_stems_are_those_of_snowball(language: str, word: str, expected: str) -> None:
    assert stemmer(language)(word) == expected


@pytest.mark.parametrize("language", SNOWBALL)
def test_every_listed_language_has_its_stemmer(language: str) -> None:
    assert has_stemmer(language)
    assert stemmer(language)("x1") == "x1"
    assert stemmer(language)("") == ""


def test_unsupported_languages_are_not_stemmed() -> None:
    assert not has_stemmer("zh")
    assert stemmer("zh")("words") == "words"


def test_function_words_are_frequent_words_in_lower_case() -> None:
    for language in ("en", "cs", "de", "es", "fr", "ru"):
        words = function_words(language)
        assert 60 < len(words) < 130
        assert all(word == word.lower() for word in words)
    assert {"the", ",", "'s"} <= function_words("en")
    assert "cat" not in function_words("en")


def test_abbreviations_are_listed_without_full_stop() -> None:
    assert {"Mr", "vs", "i.e"} <= ABBREVIATIONS["en"]
    assert "No" in NUMERIC_ABBREVIATIONS["en"] - ABBREVIATIONS["en"]
    assert not any(word.endswith(".") for words in ABBREVIATIONS.values() for word in words)
