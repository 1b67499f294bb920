"""Language codes are ISO 639-1; errors suggest the code that was probably meant."""

from __future__ import annotations

import pytest

from tertium.core.errors import UsageError
from tertium.text.language_codes import (
    CODE_ALIASES,
    LANGUAGE_CODES,
    check_language_code,
    parse_language_pair,
)


def test_aliases_map_to_valid_codes_and_are_not_codes() -> None:
    assert set(CODE_ALIASES.values()) <= LANGUAGE_CODES
    assert not LANGUAGE_CODES & CODE_ALIASES.keys()


@pytest.mark.parametrize(
    ("code", "suggestion"),
    [("deu", "de"), ("DE", "de"), ("pt-BR", "pt"), ("zh_Hans", "zh"), ("jp", "ja"), ("xx", "")],
)
def test_an_invalid_code_raises_an_error_with_a_suggestion(code: str, suggestion: str) -> None:
    with pytest.raises(UsageError) as caught:
        check_language_code(code)
    message = f"{code!r} is not an ISO 639-1 language code such as de"
    assert str(caught.value) == message + (f"; write {suggestion}" if suggestion else "")


@pytest.mark.parametrize("pair", ["de", "de-", "-", "de-en-fr", "zh-CN-en"])
def test_a_pair_has_two_codes(pair: str) -> None:
    with pytest.raises(UsageError, match=f"^lp={pair}: expected a language pair such as de-en"):
        parse_language_pair(pair)


def test_an_invalid_code_in_a_pair_is_named() -> None:
    with pytest.raises(UsageError, match=r"^lp=ger-en: 'ger' is not an ISO 639-1 .*write de$"):
        parse_language_pair("ger-en")
