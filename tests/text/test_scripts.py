"""Scripts of texts and languages."""

from __future__ import annotations

import pytest

from tertium.text.scripts import is_other_script, language_scripts

TEXTS = {
    "en": "The cat sat.",
    "de": "Schöne Grüße",
    "ru": "Привет, мир",
    "zh": "你好，世界。",
    "ja": "こんにちは世界",
    "ko": "안녕하세요",
    "ar": "مرحبا بالعالم",
    "th": "สวัสดีชาวโลก",
    "he": "שלום עולם",
    "el": "Γειά σου",
    "hi": "नमस्ते दुनिया",
    "si": "ආයුබෝවන්",
    "ka": "გამარჯობა",
    "vi": "Xin chào thế giới",
}


@pytest.mark.parametrize("language", TEXTS)
def test_a_text_matches_the_script_of_its_language(language: str) -> None:
    assert not is_other_script(TEXTS[language], language_scripts([language]))


@pytest.mark.parametrize("language", [k for k in TEXTS if k not in ("en", "de", "vi")])
def test_latin_and_other_scripts_differ(language: str) -> None:
    assert is_other_script(TEXTS[language], language_scripts(["en"]))
    assert is_other_script(TEXTS["en"], language_scripts([language]))


def test_a_name_in_another_script_does_not_change_the_script() -> None:
    assert not is_other_script("He lives in Москва today.", language_scripts(["en"]))
    assert not is_other_script("Компания Google", language_scripts(["ru"]))


@pytest.mark.parametrize("text", ["", "123, 456!", "😀 …"])
def test_a_text_without_letters_matches_every_script(text: str) -> None:
    assert not is_other_script(text, language_scripts(["zh"]))
