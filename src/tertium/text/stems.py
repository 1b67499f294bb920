"""Snowball stems by language code, remembered, since stemming a word costs as much as scoring one.

The algorithms are those of snowballstemmer (Porter's Snowball); PyStemmer is used where installed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache, lru_cache

SNOWBALL: Mapping[str, str] = {
    "ar": "arabic", "hy": "armenian", "eu": "basque", "ca": "catalan", "da": "danish",
    "nl": "dutch", "en": "english", "fi": "finnish", "fr": "french", "de": "german",
    "el": "greek", "hi": "hindi", "hu": "hungarian", "id": "indonesian", "ga": "irish",
    "it": "italian", "lt": "lithuanian", "ne": "nepali", "no": "norwegian", "pt": "portuguese",
    "ro": "romanian", "ru": "russian", "sr": "serbian", "es": "spanish", "sv": "swedish",
    "ta": "tamil", "tr": "turkish", "yi": "yiddish",
}  # fmt: skip


def has_stemmer(language: str) -> bool:
    """Whether words of a language can be stemmed."""
    return language in SNOWBALL


@cache
def stemmer(language: str) -> Callable[[str], str]:
    """The function from a lower-case word to its stem; words of other languages stay as they are.

    >>> stem = stemmer("en")
    >>> stem("running"), stem("happily"), stemmer("cs")("slova")
    ('run', 'happili', 'slova')
    """
    if not has_stemmer(language):
        return str
    import snowballstemmer

    stem: Callable[[str], str] = snowballstemmer.stemmer(SNOWBALL[language]).stemWord
    return lru_cache(maxsize=1 << 17)(stem)
