"""METEOR's tokens; expected values come from the normalizer of METEOR 1.5 unless noted."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tertium.text.meteor_tokens import (
    STEMMED_LANGUAGES,
    has_stemmer,
    stemmer,
    tokenize_meteor,
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Mr. Smith left.", "mr. smith left ."),
        ("the U.S. and the E.U.", "the us and the eu"),
        ("It isn't Anna's; it's the boys' house", "it isn 't anna 's ; it 's the boys ' house"),
        ("in the 1990's and '90s", "in the 1990 's and ' 90s"),
        ("1,500 or 3,x, y,4", "1,500 or 3 , x , y , 4"),
        ("a,b,c", "a , b,c"),
        ("No. 7, No. That", "no. 7 , no . that"),
        ("wait... what.. Ok.", "wait ... what .. ok ."),
        ("“quoted” ''twice'' `once’", '" quoted " " twice " \' once \''),
        ("well-known -- a–b — c", "well known - a - b — c"),
        ("approx. five etc. Then", "approx. five etc . then"),
        ("5% of $10 (x/y)", "5 % of $ 10 ( x / y )"),
    ],
)
def test_english(text: str, expected: str) -> None:
    assert tokenize_meteor(text) == tuple(expected.split())


@pytest.mark.parametrize(
    ("language", "text", "expected"),
    [
        ("de", "z.B. Dr. Maier bzw. Co. am 3. Mai", "zb dr. maier bzw. co. am 3. mai"),
        ("de", "Er hat's gewusst.", "er hat ' s gewusst ."),
        ("fr", "L'homme qu'il vit aujourd'hui.", "l' homme qu' il vit aujourd' hui ."),
        ("es", "El Sr. García vive aquí.", "el sr. garcía vive aquí ."),
        ("ru", "в 5кг. и т.д. Конец.", "в 5кг. и тд конец ."),
        ("cs", "Ano, prof. Novák.", "ano , prof . novák ."),
    ],
)
def test_other_languages(language: str, text: str, expected: str) -> None:
    assert tokenize_meteor(text, language) == tuple(expected.split())


@pytest.mark.parametrize(
    ("language", "text", "expected"),
    [
        ("zh", "这是，测试3次", "这 是 ， 测 试 3 次"),
        ("hi", "यह परीक्षा है।", "यह परीक्षा है ।"),
        ("el", "Αυτό είναι ένα τεστ.", "αυτό είναι ένα τεστ ."),
        ("ar", "هذا اختبار، نعم؟", "هذا اختبار ، نعم ؟"),
    ],
)
def test_languages_that_meteor_does_not_normalize(language: str, text: str, expected: str) -> None:
    """Our own rule: runs of letters are words, ideographs are single tokens."""
    assert tokenize_meteor(text, language) == tuple(expected.split())


def test_spaces_of_any_kind_separate() -> None:
    assert tokenize_meteor("a\u00a0b\u2009c\td\u3000e") == ("a", "b", "c", "d", "e")


@given(st.text(max_size=60), st.sampled_from(["en", "fr", "de", "zh", "ar"]))
def test_tokens_keep_every_letter_and_contain_no_space(text: str, language: str) -> None:
    tokens = tokenize_meteor(text, language)
    assert all(token and not any(c.isspace() for c in token) for token in tokens)
    letters = "".join(c for c in text.lower() if c.isascii() and c.isalnum())
    assert "".join(c for t in tokens for c in t if c.isascii() and c.isalnum()) == letters


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
