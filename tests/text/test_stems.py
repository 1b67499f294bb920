"""Stems by language, and METEOR's word lists."""

from __future__ import annotations

import pytest

from tertium.text.meteor_tokens import (
    STEMMED_LANGUAGES,
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


@pytest.mark.parametrize("language", sorted(STEMMED_LANGUAGES))
def test_every_listed_language_has_its_stemmer(language: str) -> None:
    assert has_stemmer(language)
    assert stemmer(language)("x1") == "x1"
    assert stemmer(language)("") == ""


def test_unsupported_languages_are_not_stemmed() -> None:
    assert not has_stemmer("zh")
    assert stemmer("zh")("words") == "words"
