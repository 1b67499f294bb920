"""METEOR's tokens: punctuation apart, quotes and dashes made one, lower case.

What `-norm` does in METEOR 1.5, whose rules go back to the tokeniser of Moses: full stops leave a
word unless it is an abbreviation, dots leave U.S., hyphenated words come apart, English clitics
('s, 't) and French articles (l') stand alone, two and more dots stay together.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache

from tertium.text.abbreviations import ALWAYS, BEFORE_NUMBER

# Letters of the languages METEOR normalises; characters of any other script stand alone there.
_ALPHA = "A-Za-zŠŽšžŸÀ-ÖØ-öø-žЀ-ӿԀ-ԧꙀ-ꙮ꙾-ꚗᴀ-ᵿ"
_KNOWN = frozenset({"en", "cs", "de", "es", "fr", "ru"})
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


class _Rules:
    """The patterns of one set of letters."""

    def __init__(self, letters: str) -> None:
        self.letter = re.compile(f"[{letters}]")
        self.apart = re.compile(rf"([^0-9{letters}\s.'`,\-‘’])", re.ASCII)
        self.hyphen = re.compile(f"([0-9{letters}.])-([0-9{letters}])")
        outside = re.compile(f"([^{letters}])'([^{letters}])"), r"\1 ' \2"
        opening = re.compile(f"([^{letters}0-9])'([{letters}])"), r"\1 ' \2"
        closing = re.compile(f"([{letters}])'([^{letters}])"), r"\1 ' \2"
        french_opening = re.compile(f"([^{letters}])'([{letters}])"), r"\1 ' \2"
        inside = re.compile(f"([{letters}])'([{letters}])")
        self.apostrophes = {
            "en": (outside, opening, closing, (inside, r"\1 '\2"), (re.compile("([0-9])'(s)"), r"\1 '\2")),
            "fr": (outside, french_opening, closing, (inside, r"\1' \2")),
        }  # fmt: skip


_EUROPEAN = _Rules(_ALPHA)
# Elsewhere a word is any run of letters and their marks; ideographs and kana stand alone.
_ANY = _Rules(r"\w\u0300-\u036f\u0900-\u0dff\u0e00-\u0eff\u0600-\u06ff".replace(r"\w", "".join(
    f"{a}-{b}" for a, b in (("A", "Z"), ("a", "z"), ("ª", "\u02ff"), ("\u0370", "\u2fff"),
                            ("\uac00", "\ud7af"), ("\ufb00", "\ufdff"), ("\ufe70", "\ufefc"))
)))  # fmt: skip


@lru_cache(maxsize=1 << 16)
def meteor_tokens(text: str, language: str = "en") -> tuple[str, ...]:
    """The tokens of a text.

    >>> " ".join(meteor_tokens("Mr. Smith's U.S.-based co-owners didn't pay 1,500 euros..."))
    "mr. smith 's u.s. based co owners didn 't pay 1,500 euros ..."
    """
    rules = _EUROPEAN if language in _KNOWN else _ANY
    text = rules.apart.sub(r" \1 ", f" {text} ")
    text = _ELLIPSIS.sub(lambda dots: f" {_DOT * len(dots.group())} ", text)
    for comma in _COMMAS:
        text = comma.sub(r"\1 , \2", text)
    text = _DOUBLE_QUOTE.sub(' " ', _SINGLE_QUOTE.sub("'", text))
    text = rules.hyphen.sub(r"\1 \2", text.replace("–", "-").replace("--", "-"))
    if language in rules.apostrophes:
        for pattern, replacement in rules.apostrophes[language]:
            text = pattern.sub(replacement, text)
    else:
        text = text.replace("'", " ' ")
    text = " ".join(_full_stops(text.split(), language, rules))
    return tuple(text.replace(_DOT, ".").lower().split())


def _full_stops(words: list[str], language: str, rules: _Rules) -> Iterator[str]:
    """Take the full stop off each word that does not own it."""
    always = ALWAYS.get(language, frozenset[str]())
    before_number = BEFORE_NUMBER.get(language, frozenset[str]())
    for word, following in zip(words, [*words[1:], ""], strict=True):
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
