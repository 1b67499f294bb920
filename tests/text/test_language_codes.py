"""Codes are those of ISO 639-1; of any other the one that is meant is said."""

from __future__ import annotations

import pytest

from tertium.errors import UsageError
from tertium.text.language_codes import (
    CODE_ALIASES,
    LANGUAGE_CODES,
    check_language_code,
    parse_language_pair,
)


def test_other_codes_mean_one_of_two_letters_and_are_none() -> None:
    assert set(CODE_ALIASES.values()) <= LANGUAGE_CODES
    assert not LANGUAGE_CODES & CODE_ALIASES.keys()


@pytest.mark.parametrize(
    ("code", "meant"),
    [("deu", "de"), ("DE", "de"), ("pt-BR", "pt"), ("zh_Hans", "zh"), ("jp", "ja"), ("xx", "")],
)
def test_a_code_that_is_none_is_refused_with_the_one_it_means(code: str, meant: str) -> None:
    with pytest.raises(UsageError) as caught:
        check_language_code(code)
    said = f"{code!r} is no language code of ISO 639-1 such as de"
    assert str(caught.value) == said + (f"; write {meant}" if meant else "")


@pytest.mark.parametrize("pair", ["de", "de-", "-", "de-en-fr", "zh-CN-en"])
def test_a_pair_has_two_codes(pair: str) -> None:
    with pytest.raises(UsageError, match=f"^lp={pair}: expected a language pair such as de-en"):
        parse_language_pair(pair)


def test_a_pair_names_the_code_that_is_wrong() -> None:
    with pytest.raises(UsageError, match=r"^lp=ger-en: 'ger' is no language code.*write de$"):
        parse_language_pair("ger-en")
