"""Languages: their codes in ISO 639-1 and pairs of them, scripts of texts, and: is it English?"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import cache

from tertium.errors import UsageError

CODES = frozenset(
    """
    aa ab ae af ak am an ar as av ay az ba be bg bh bi bm bn bo br bs ca ce ch co cr cs cu cv cy
    da de dv dz ee el en eo es et eu fa ff fi fj fo fr fy ga gd gl gn gu gv ha he hi ho hr ht hu hy
    hz ia id ie ig ii ik io is it iu ja jv ka kg ki kj kk kl km kn ko kr ks ku kv kw ky la lb lg li
    ln lo lt lu lv mg mh mi mk ml mn mr ms mt my na nb nd ne ng nl nn no nr nv ny oc oj om or os pa
    pi pl ps pt qu rm rn ro ru rw sa sc sd se sg si sk sl sm sn so sq sr ss st su sv sw ta te tg th
    ti tk tl tn to tr ts tt tw ty ug uk ur uz ve vi vo wa wo xh yi yo za zh zu
    """.split()
)


def parse_pair(lp: str) -> tuple[str, ...]:
    """The source and the target language of a pair such as de-en; none of an empty one.

    >>> parse_pair("de-en"), parse_pair("")
    (('de', 'en'), ())
    """
    codes = tuple(part for part in lp.split("-") if part)
    if lp and len(codes) != 2:
        raise UsageError(f"lp={lp}: expected a language pair such as de-en")
    for code in codes:
        if code not in CODES:
            raise UsageError(f"lp={lp}: {code!r} is no language code of ISO 639-1 such as de")
    return codes


_WORD = re.compile(r"[^\W\d_]+")
SMALL_WORDS = frozenset(
    "the of and to a in that is was he for it with as his on be at by i this had not are but from "
    "or have an they which one you were her all she there would their we him been has when who "
    "will more no if out so said what up its about into than them can only other new some could "
    "time these two may then do first any my now such like our over man me even most made after "
    "also did many before must through years where much your way well down should because each "
    "just those people mr how too little good very make world still own see men work long get "
    "here between both life being under never day same another know while last might us great "
    "old year off come since against go came right used take three".split()
)
ENGLISH_SHARE = 0.15
ENOUGH_WORDS = 40


def small_word_share(texts: Iterable[str]) -> tuple[float, int]:
    """The share of English small words among the words of distinct texts, and their number.

    >>> small_word_share(["the cat sat on the mat"])
    (0.5, 6)
    """
    words = [word.lower() for text in dict.fromkeys(texts) for word in _WORD.findall(text)]
    return (sum(word in SMALL_WORDS for word in words) / max(len(words), 1), len(words))


def are_few_words(texts: Iterable[str]) -> bool:
    """Whether distinct texts have too few words to look English or not; reads no more of them.

    >>> are_few_words(["one two three"] * 20), are_few_words("one two three".split() * 20)
    (True, True)
    >>> are_few_words(f"word {n}" for n in "abcdefghijklmnopqrstuvwxyz")
    False
    """
    seen, count = set(), 0
    for text in texts:
        if text not in seen:
            seen.add(text)
            count += len(_WORD.findall(text))
        if count >= ENOUGH_WORDS:
            return False
    return True


def looks_english(texts: Iterable[str]) -> bool:
    """Whether texts may be English; too few words to tell are given the benefit of the doubt.

    >>> looks_english([f"Die Katze sitzt auf der Matte, der Hund daneben: {n}" for n in "abcdef"])
    False
    """
    share, count = small_word_share(texts)
    return count < ENOUGH_WORDS or share >= ENGLISH_SHARE


# Blocks of letters; marks, digits and punctuation belong to no script.
_BLOCKS: Mapping[str, str] = {
    "Latin": "A-Za-z\u00aa\u00ba\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u024f\u1e00-\u1eff",
    "Greek": "\u0370-\u03ff\u1f00-\u1fff",
    "Cyrillic": "\u0400-\u052f",
    "Armenian": "\u0531-\u0587",
    "Hebrew": "\u05d0-\u05ea",
    "Arabic": "\u0620-\u064a\u066e-\u06d3\u0750-\u077f",
    "Devanagari": "\u0900-\u097f",
    "Bengali": "\u0980-\u09ff",
    "Gurmukhi": "\u0a00-\u0a7f",
    "Gujarati": "\u0a80-\u0aff",
    "Odia": "\u0b00-\u0b7f",
    "Tamil": "\u0b80-\u0bff",
    "Telugu": "\u0c00-\u0c7f",
    "Kannada": "\u0c80-\u0cff",
    "Malayalam": "\u0d00-\u0d7f",
    "Sinhala": "\u0d80-\u0dff",
    "Thai": "\u0e00-\u0e7f",
    "Lao": "\u0e80-\u0eff",
    "Tibetan": "\u0f00-\u0fff",
    "Burmese": "\u1000-\u109f",
    "Georgian": "\u10a0-\u10ff",
    "Hangul": "\u1100-\u11ff\u3130-\u318f\uac00-\ud7af",
    "Ethiopic": "\u1200-\u137f",
    "Khmer": "\u1780-\u17ff",
    "Kana": "\u3040-\u30ff",
    "Han": "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff",
}
_OTHER_THAN_LATIN: Mapping[str, tuple[str, ...]] = {
    "am": ("Ethiopic",), "ar": ("Arabic",), "as": ("Bengali",),
    "az": ("Latin", "Cyrillic", "Arabic"), "be": ("Cyrillic",), "bg": ("Cyrillic",),
    "bn": ("Bengali",), "bo": ("Tibetan",), "bs": ("Latin", "Cyrillic"), "el": ("Greek",),
    "fa": ("Arabic",), "gu": ("Gujarati",), "he": ("Hebrew",), "hi": ("Devanagari",),
    "hy": ("Armenian",), "ja": ("Kana", "Han"), "ka": ("Georgian",), "kk": ("Cyrillic",),
    "km": ("Khmer",), "kn": ("Kannada",), "ko": ("Hangul", "Han"), "ku": ("Latin", "Arabic"),
    "ky": ("Cyrillic",), "lo": ("Lao",), "mk": ("Cyrillic",), "ml": ("Malayalam",),
    "mn": ("Cyrillic",), "mr": ("Devanagari",), "my": ("Burmese",), "ne": ("Devanagari",),
    "or": ("Odia",), "pa": ("Gurmukhi",), "ps": ("Arabic",), "ru": ("Cyrillic",),
    "sa": ("Devanagari",), "sd": ("Arabic", "Devanagari"), "si": ("Sinhala",),
    "sr": ("Cyrillic", "Latin"), "ta": ("Tamil",), "te": ("Telugu",), "tg": ("Cyrillic",),
    "th": ("Thai",), "ug": ("Arabic",), "uk": ("Cyrillic",), "ur": ("Arabic",),
    "uz": ("Latin", "Cyrillic"), "yi": ("Hebrew",), "zh": ("Han",),
}  # fmt: skip


# Scripts that tell the language; Japanese is told by its Kana, what has none beside Han is Chinese.
ALONE: Mapping[str, str] = {
    "Greek": "el", "Armenian": "hy", "Bengali": "bn", "Gurmukhi": "pa", "Gujarati": "gu",
    "Odia": "or", "Tamil": "ta", "Telugu": "te", "Kannada": "kn", "Malayalam": "ml",
    "Sinhala": "si", "Thai": "th", "Lao": "lo", "Tibetan": "bo", "Burmese": "my",
    "Georgian": "ka", "Hangul": "ko", "Ethiopic": "am", "Khmer": "km", "Kana": "ja", "Han": "zh",
}  # fmt: skip


def main_script(text: str) -> str:
    """The script of most letters of a text, empty where it has none that is known.

    >>> main_script("Привет, Bob!"), main_script("東京は大きい都市"), main_script("...")
    ('Cyrillic', 'Kana', '')
    """
    if text.isascii():
        return "Latin" if any(map(str.isalpha, text)) else ""
    counts = {script: len(_pattern(frozenset({script})).findall(text)) for script in _BLOCKS}
    # Japanese writes Han among its Kana, Korean among its Hangul; a stray Kana makes no Japanese.
    if counts["Kana"] and counts["Kana"] * 10 >= counts["Han"]:
        counts["Kana"] += counts["Han"]
    if counts["Hangul"] > counts["Han"] // 4:
        counts["Hangul"] += counts["Han"]
    best = max(counts, key=lambda script: counts[script])
    return best if counts[best] else ""


def scripts_of(languages: Iterable[str]) -> frozenset[str]:
    """The scripts that some languages (ISO 639-1 codes) are written in.

    >>> sorted(scripts_of(["de", "ja"]))
    ['Han', 'Kana', 'Latin']
    """
    return frozenset(
        script for language in languages for script in _OTHER_THAN_LATIN.get(language, ("Latin",))
    )


def share_in(text: str, scripts: frozenset[str]) -> float:
    """The share of a text's letters that belong to these scripts, 0 where there are none.

    >>> share_in("Bob привет", frozenset({"Latin"}))
    0.3333333333333333
    """
    letters = len(_pattern(frozenset(_BLOCKS)).findall(text))
    return len(_pattern(scripts).findall(text)) / letters if letters and scripts else 0.0


def is_foreign(text: str, scripts: frozenset[str]) -> bool:
    """Whether most letters of a text belong to other scripts than these.

    >>> latin = frozenset({"Latin"})
    >>> is_foreign("Привет, Bob!", latin), is_foreign("Hello Мир!", latin)
    (True, False)
    """
    if "Latin" in scripts and text.isascii():
        return False
    letters = sum(map(str.isalpha, text))
    return 2 * len(_pattern(scripts).findall(text)) < letters


@cache
def _pattern(scripts: frozenset[str]) -> re.Pattern[str]:
    return re.compile(f"[{''.join(_BLOCKS[script] for script in sorted(scripts))}]")
