"""Languages are identified by script and n-grams; codes are ISO 639-1."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.builders import TITLES

from tertium.core.errors import UsageError
from tertium.text.language_codes import (
    CODE_ALIASES,
    LANGUAGE_CODES,
    check_language_code,
    parse_language_pair,
)
from tertium.text.language_identification import (
    MIN_LETTERS,
    are_english,
    flag_wrong_language,
    identify_language,
    is_in_other_language,
    is_mixed_language,
    is_plausibly_english,
    main_language,
    seem_english,
)
from tertium.text.scripts import is_other_script, language_scripts, main_script

SENTENCES: dict[str, list[str]] = json.loads(
    (Path(__file__).parents[1] / "golden" / "e5_sentences.json").read_text()
)


@pytest.mark.parametrize("language", SENTENCES)
def test_paragraphs_are_identified(language: str) -> None:
    assert identify_language(" ".join(SENTENCES[language])) == language


def test_most_short_sentences_are_identified() -> None:
    is_correct = [
        identify_language(text) == code for code, texts in SENTENCES.items() for text in texts
    ]
    assert sum(is_correct) / len(is_correct) > 0.85


@pytest.mark.parametrize("text", ["", "  ", "12:30", "!?", "ok", "a b c", "\u0301", "😀😀😀"])
def test_short_texts_are_not_identified(text: str) -> None:
    assert len([c for c in text if c.isalpha()]) < MIN_LETTERS
    assert identify_language(text) == ""


def test_names_in_another_script_do_not_count() -> None:
    assert (
        identify_language("Компания Microsoft купила Activision Blizzard за миллиарды долларов")
        == "ru"
    )
    assert identify_language("東京タワーはどこですか") == "ja"
    assert identify_language("大統領が昨日発表した政策") == "ja"
    assert main_script("서울 大學") == "Hangul"


@settings(max_examples=200, deadline=None)
@given(st.text(max_size=300))
def test_any_text_gives_a_valid_code_or_an_empty_one(text: str) -> None:
    code = identify_language(text)
    assert code == "" or code in LANGUAGE_CODES
    assert identify_language(text) == code


@pytest.mark.parametrize(
    ("text", "language", "other"),
    [
        ("Le train pour Hambourg ne part pas aujourd'hui à quatorze heures.", "en", True),
        ("Поезд в Гамбург сегодня не отправляется в два часа дня.", "uk", False),  # too few letters
        ("Поезд в Гамбург сегодня не отправляется в два часа дня из-за бури.", "uk", True),
        ("зверху донизу", "uk", False),
        ("Le train ne part pas.", "en", False),  # too short to be sure
        ("Потяг сьогодні не відправляється.", "uk", False),
        ("列車は今日出発しません。", "zh", True),
        ("1951년 Zhabdrung Ngawang Namgyal의 이미지와 같이", "ko", False),  # names in Latin letters
        ("Voz danas ne polazi u dva sata.", "sr", False),  # Serbian in Latin letters
        ("Putnici za Hamburg danas moraju da pređu na drugi voz u Berlinu.", "sr", False),
        ("Podróżni do Hamburga muszą dziś przesiąść się w Berlinie.", "sr", True),
        ("Пасажири до Гамбурга сьогодні мають пересісти на інший потяг.", "bs", True),
        ("Бүтүн инсанлар ләјагәт вә һүгугларына ҝөрә азад вә бәрабәр доғулурлар.", "az", False),
        ("Пътниците за Хамбург днес трябва да сменят влака в Берлин.", "az", True),
        ("Toget går ikke i dag klokken to.", "nb", False),
        ("Hamburg", "en", False),
        ("", "en", False),
        ("Le train ne part pas.", "yo", False),  # an unsupported language
        ("https://example.org/news/today", "ja", False),  # addresses and tags have no language
        ("Frá honum: https://example.org/the-last-newsletter-of-this-year", "is", False),
        ('<a href="https://example.org" class="button">ヘルプ</a>', "ja", False),
        ("<b>Click here</b> to {action} the message.", "ja", True),
        ("Microsoft Azure DevOpsを使う", "ja", False),  # names among other words
        ("Anna Larsson、New YorkのJohn Baker、Maria Rossiによる", "ja", False),
        ("由 Anna Larsson 和 Johannes Bergmann 编辑。", "zh", False),
        ("A train of the Hamburg company is late 遅延", "ja", True),
        ("Two Men Arrested After The Fire In A Hotel Of Hamburg - ハンブルク", "ja", True),
        ("Two Men Arrested After Fire in Hamburg Hotel, Police Says", "cs", True),
        (
            "Microsoft Azure DevOps",
            "ja",
            True,
        ),  # names alone; human raters give such outputs low scores
        ("Microsoft Azure DevOps", "uk", True),
        ("IBM", "ja", False),
        ("CH3COOCH2CH3", "uk", False),  # formulas, tags and handles have no language
        ("#Hamburg #TrainsAndTracks", "zh", False),
        ("@user44, @user45: 哇！", "zh", False),
        ("@user44 that is a shout", "zh", True),
        ("Galerie Las Palmas del Norte se nachází v ulici San Fernando.", "cs", False),
        ("Известное озеро Балатон загрязнено из-за наводнения", "ru", False),  # close to Bulgarian
    ],
)
def test_clearly_wrong_languages_are_detected(text: str, language: str, other: bool) -> None:
    assert is_in_other_language(text, language) is other


def test_a_refusal_among_translations_counts_as_wrong_language() -> None:
    icelandic = "Veðrið verður gott á morgun, en á föstudag rignir um allt land og hvessir."
    refusal = "I apologize, but I cannot translate that whole passage into Icelandic."
    flags = flag_wrong_language([icelandic] * 8 + [refusal, "Ok.", ""])
    assert flags.tolist() == [False] * 8 + [True, False, False]
    assert not flag_wrong_language([icelandic] * 4 + [refusal]).any()  # too few for a language
    assert not flag_wrong_language([icelandic, refusal] * 8).any()  # no majority language
    assert not flag_wrong_language(["..."] * 9).any()
    assert not flag_wrong_language([]).any()


@pytest.mark.parametrize("language", SENTENCES)
def test_a_paragraph_of_one_language_is_not_mixed(language: str) -> None:
    assert not is_mixed_language(" ".join(SENTENCES[language]))


def test_two_paragraphs_in_two_languages_are_mixed() -> None:
    paragraphs = {code: " ".join(texts) for code, texts in SENTENCES.items()}
    mixed = [is_mixed_language(f"{paragraphs['de']} {paragraphs[code]}") for code in paragraphs]
    assert sum(mixed) >= len(mixed) - 3
    assert not is_mixed_language(paragraphs["de"])
    assert not is_mixed_language("")


def test_titles_without_function_words_may_be_english() -> None:
    for texts in (TITLES, [title.title() for title in TITLES], [t.upper() for t in TITLES]):
        assert is_plausibly_english(texts)
        assert are_english(texts)
    assert seem_english(TITLES)
    german = ["Wasserdichte Regenjacke für Kinder, dunkelgrün", "Schmale Ledergeldbörse in Braun"]
    assert is_plausibly_english(german * 10)  # too short to refuse
    assert not are_english(german)


def test_main_language_of_a_set() -> None:
    japanese = ["東京", "これは保存したファイルです。", "電車は七時に出発します。", "OK"]
    assert main_language(japanese) == "ja"
    assert main_language(["火车七点出发。"] * 1000) == "zh"
    assert main_language(["기차는 일곱 시에 출발합니다.", "Hamburg"]) == "ko"
    assert main_language([]) == main_language(["12:30"]) == ""


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


@pytest.mark.parametrize("text", ["", "123, 456!", "😀 …"])
def test_a_text_without_letters_matches_every_script(text: str) -> None:
    assert not is_other_script(text, language_scripts(["zh"]))


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
