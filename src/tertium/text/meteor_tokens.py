"""METEOR's tokens: punctuation apart, quotes and dashes made one, lower case.

What `-norm` does in METEOR 1.5, whose rules go back to the tokeniser of Moses: full stops leave a
word unless it is an abbreviation, dots leave U.S., hyphenated words come apart, English clitics
('s, 't) and French articles (l') stand alone, two and more dots stay together.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import pairwise

from tertium.text.abbreviations import ALWAYS, BEFORE_NUMBER

# The languages METEOR normalises and their letters; characters of other scripts stand alone there.
_KNOWN = frozenset({"en", "cs", "de", "es", "fr", "ru"})
_LETTERS = "A-Za-zŠŽšžŸÀ-ÖØ-öø-žЀ-ӿԀ-ԧꙀ-ꙮ꙾-ꚗᴀ-ᵿ"
_IDEOGRAPH = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
_DOT = "\ue000"  # stands for each dot of an ellipsis until the end; private use, in no text

_ELLIPSIS = re.compile(r"\.{2,}")
# A comma between figures belongs to the number.
_COMMAS = tuple(
    re.compile(f"({left}),({right})")
    for left, right in (("[^0-9]", "[^0-9]"), ("[0-9]", "[^0-9]"), ("[^0-9]", "[0-9]"))
)
_SINGLE_QUOTE = re.compile("[`‘’]")
_DOUBLE_QUOTE = re.compile("[“”]|''")
_LOWER = re.compile("[a-z]")
_FIGURE = re.compile("[0-9]")

Substitution = tuple[re.Pattern[str], str]


@dataclass(frozen=True)
class _Rules:
    """What is done to the texts of a language."""

    letter: re.Pattern[str]
    apart: re.Pattern[str]  # a character that is a token of its own
    hyphen: re.Pattern[str]
    apostrophes: tuple[Substitution, ...]


@cache
def _rules(language: str) -> _Rules:
    if language in _KNOWN:
        inside, letter, alone = f"0-9{_LETTERS}", f"[{_LETTERS}]", ""
    else:
        # Any run of letters and their marks is a word; ideographs and kana stand alone.
        inside, letter, alone = rf"\w{_marks()}", r"[^\W\d_]", f"|[{_IDEOGRAPH}]"
    return _Rules(
        letter=re.compile(letter),
        apart=re.compile(rf"([^{inside} \t\n\v\f\r.'`,\-‘’]{alone})"),
        hyphen=re.compile(f"([{inside}.])-([{inside}])"),
        apostrophes=_apostrophes(language),
    )


def _apostrophes(language: str) -> tuple[Substitution, ...]:
    """How apostrophes leave words: English takes the right part along, French the left."""
    if language not in ("en", "fr"):
        return ((re.compile("'"), " ' "),)
    a, z, digits = f"[{_LETTERS}]", f"[^{_LETTERS}]", "0-9" if language == "en" else ""
    rules = [
        (f"({z})'({z})", r"\1 ' \2"),
        (f"([^{_LETTERS}{digits}])'({a})", r"\1 ' \2"),
        (f"({a})'({z})", r"\1 ' \2"),
        (f"({a})'({a})", r"\1 '\2" if language == "en" else r"\1' \2"),
    ]
    if language == "en":
        rules.append(("([0-9])'(s)", r"\1 '\2"))
    return tuple((re.compile(pattern), replacement) for pattern, replacement in rules)


def _marks() -> str:
    """Every combining mark, as the inside of a character class: they are part of their letter."""
    marks = (chr(code) for code in range(0x300, 0x20000))
    return "".join(mark for mark in marks if unicodedata.category(mark).startswith("M"))


@lru_cache(maxsize=1 << 16)
def meteor_tokens(text: str, language: str = "en") -> tuple[str, ...]:
    """The tokens of a text.

    >>> " ".join(meteor_tokens("Mr. Smith's U.S.-based co-owners didn't pay 1,500 euros..."))
    "mr. smith 's us based co owners didn 't pay 1,500 euros ..."
    """
    rules = _rules(language)
    text = rules.apart.sub(r" \1 ", f" {text} ")
    text = _ELLIPSIS.sub(lambda dots: f" {_DOT * len(dots.group())} ", text)
    for comma in _COMMAS:
        text = comma.sub(r"\1 , \2", text)
    text = _DOUBLE_QUOTE.sub(' " ', _SINGLE_QUOTE.sub("'", text))
    text = rules.hyphen.sub(r"\1 \2", text.replace("–", "-").replace("--", "-"))
    for apostrophe, replacement in rules.apostrophes:
        text = apostrophe.sub(replacement, text)
    text = " ".join(_full_stops(text.split(), language, rules))
    return tuple(text.replace(_DOT, ".").lower().split())


def _full_stops(words: list[str], language: str, rules: _Rules) -> Iterator[str]:
    """Take the full stop off each word that does not own it."""
    always = ALWAYS.get(language, frozenset[str]())
    before_number = BEFORE_NUMBER.get(language, frozenset[str]())
    for word, following in pairwise((*words, "")):
        stem = word[:-1]
        if not stem or word[-1] != ".":
            yield word
        elif "." in stem and rules.letter.search(stem):
            yield word.replace(".", "")
        elif (
            stem in always
            or _LOWER.match(following)
            or (stem in before_number and _FIGURE.match(following))
        ):
            yield word
        else:
            yield f"{stem} ."
