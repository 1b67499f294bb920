"""Writing systems: the letters of each script, and the scripts of each language."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from functools import cache, lru_cache
from unicodedata import category

# Unicode ranges of letters; marks, digits and punctuation belong to no script.
BLOCKS: Mapping[str, str] = {
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
# scripts without spaces between words
UNSPACED_SCRIPTS = frozenset({"Burmese", "Han", "Kana", "Khmer", "Lao", "Thai", "Tibetan"})
# letters and marks that are never visible: fillers of Hangul and Braille, joiners, variants
INVISIBLE_CHARACTERS = frozenset(
    "\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0" + "".join(map(chr, range(0xFE00, 0xFE10)))
)
_SCRIPTS_BY_LANGUAGE = dict(  # languages not listed use Latin
    pair.split(":")
    for pair in """
    am:Ethiopic ar:Arabic as:Bengali az:Latin+Cyrillic+Arabic be:Cyrillic bg:Cyrillic bn:Bengali
    bo:Tibetan bs:Latin+Cyrillic el:Greek fa:Arabic gu:Gujarati he:Hebrew hi:Devanagari
    hy:Armenian ja:Kana+Han ka:Georgian kk:Cyrillic km:Khmer kn:Kannada ko:Hangul+Han
    ku:Latin+Arabic ky:Cyrillic lo:Lao mk:Cyrillic ml:Malayalam mn:Cyrillic mr:Devanagari
    my:Burmese ne:Devanagari or:Odia pa:Gurmukhi ps:Arabic ru:Cyrillic sa:Devanagari
    sd:Arabic+Devanagari si:Sinhala sr:Cyrillic+Latin ta:Tamil te:Telugu tg:Cyrillic th:Thai
    ug:Arabic uk:Cyrillic ur:Arabic uz:Latin+Cyrillic yi:Hebrew zh:Han
    """.split()
)


def main_script(text: str) -> str:
    """Return the script of most letters of a text, empty if it has no known letters.

    >>> main_script("Привет, Bob!"), main_script("東京は大きい都市"), main_script("...")
    ('Cyrillic', 'Kana', '')
    """
    if text.isascii():
        return "Latin" if any(map(str.isalpha, text)) else ""
    counts = dict.fromkeys(BLOCKS, 0)
    for character, count in Counter(text).items():
        if script := script_of(character):
            counts[script] += count
    # Japanese mixes Han with Kana, Korean mixes Han with Hangul; a single Kana is not Japanese.
    if counts["Kana"] and counts["Kana"] * 10 >= counts["Han"]:
        counts["Kana"] += counts["Han"]
    if counts["Hangul"] > counts["Han"] // 4:
        counts["Hangul"] += counts["Han"]
    best = max(counts, key=lambda script: counts[script])
    return best if counts[best] else ""


@lru_cache(maxsize=65536)
def script_of(character: str) -> str:
    """Return the script of a letter, empty for other characters.

    >>> script_of("ß"), script_of("ж"), script_of("1")
    ('Latin', 'Cyrillic', '')
    """
    matches = (script for script in BLOCKS if _pattern(frozenset({script})).match(character))
    return next(matches, "")


def is_blank(text: str) -> bool:
    """Tell whether a text has no visible character: it is empty or has only Unicode blanks.

    >>> [is_blank(text) for text in ("", " \\u3000\\n", "\\ufeff\\u200b", ".", "\\u0301")]
    [True, True, True, False, False]
    """
    return all(map(_is_invisible, text))


def _is_invisible(character: str) -> bool:
    if character.isascii():
        return not character.isprintable() or character == " "
    is_filler = character in INVISIBLE_CHARACTERS
    return is_filler or character.isspace() or category(character) in ("Cc", "Cf")


def language_scripts(languages: Iterable[str]) -> frozenset[str]:
    """Return the scripts of some languages (ISO 639-1 codes).

    >>> sorted(language_scripts(["de", "ja"]))
    ['Han', 'Kana', 'Latin']
    """
    return frozenset(
        script
        for language in languages
        for script in _SCRIPTS_BY_LANGUAGE.get(language, "Latin").split("+")
    )


def script_share(text: str, scripts: frozenset[str]) -> float:
    """Compute the share of letters that belong to these scripts, 0 for a text without letters.

    >>> script_share("Bob привет", frozenset({"Latin"}))
    0.3333333333333333
    """
    letters = len(_pattern(frozenset(BLOCKS)).findall(text))
    return len(_pattern(scripts).findall(text)) / letters if letters and scripts else 0.0


def is_unspaced_script(text: str) -> bool:
    """Tell whether the main script of a text has no spaces between words."""
    return main_script(text) in UNSPACED_SCRIPTS


def has_unspaced_run(text: str) -> bool:
    """Tell whether a text has a long run without spaces, as in Japanese or Thai.

    >>> has_unspaced_run("これは保存したファイルです。"), has_unspaced_run("in 東京 and")
    (True, False)
    """
    return not text.isascii() and _unspaced_run().search(text) is not None


def is_other_script(text: str, scripts: frozenset[str]) -> bool:
    """Tell whether most letters of a text belong to other scripts.

    >>> latin = frozenset({"Latin"})
    >>> is_other_script("Привет, Bob!", latin), is_other_script("Hello Мир!", latin)
    (True, False)
    """
    if "Latin" in scripts and text.isascii():
        return False
    letters = sum(map(str.isalpha, text))
    return 2 * len(_pattern(scripts).findall(text)) < letters


@cache
def _unspaced_run() -> re.Pattern[str]:
    scripts = sorted(UNSPACED_SCRIPTS - {"Tibetan"})  # Tibetan has marks between syllables
    letters = "".join(BLOCKS[script] for script in scripts)
    return re.compile(f"[{letters}]{{8}}")  # shorter runs may be names


@cache
def _pattern(scripts: frozenset[str]) -> re.Pattern[str]:
    return re.compile(f"[{''.join(BLOCKS[script] for script in sorted(scripts))}]")
