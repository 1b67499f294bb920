"""Character n-grams and frequent words that distinguish languages with the same script.

`language_profiles.json` holds, for each script shared by several languages, the n-grams that
distinguish them and their most frequent words, with one weight per language: 16 times the logarithm
of how much more often an n-gram or word occurs in that language than in others. The file is made by
`python -m recipes.languages.profiles`.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tertium.text.language_codes import macrolanguage

WORD_PATTERN = re.compile(r"[^\W\d_]+")
MAX_NGRAM = 4  # characters
MIN_LETTERS = 8  # with fewer letters n-grams are not reliable
WORD_SHARE = 0.3  # weight of frequent words relative to that of n-grams, in short texts
UNKNOWN_CHARACTER = 255  # number of characters that are in no n-gram of a script


@dataclass(frozen=True, eq=False)
class Profile:
    """The n-grams and frequent words of a script and their weights, (rows, languages) each.

    An n-gram has a key: the numbers of its characters in base 256. `alphabet` maps code points to
    these numbers, `keys` are sorted, and `weights` are in their order. Weights are whole numbers.
    """

    languages: tuple[str, ...]
    alphabet: NDArray[np.uint32]
    keys: NDArray[np.uint32]
    weights: NDArray[np.float32]
    words: Mapping[str, int]
    word_weights: NDArray[np.int8]


def mean_ngram_weights(text: str, script: str) -> dict[str, float]:
    """Average the n-gram weights of a text for each language of its script; empty if too short."""
    profile = profiles().get(script)
    if profile is None or sum(map(str.isalpha, text)) < MIN_LETTERS:
        return {}
    keys = _ngram_keys(join_words(text), profile.alphabet)
    places = np.searchsorted(profile.keys, keys)
    matches = places[profile.keys.take(places, mode="clip") == keys]
    if not matches.size:
        return {}
    counts = np.bincount(matches, minlength=len(profile.keys)).astype(np.float32)
    totals = (counts @ profile.weights).astype(np.int64)  # exact: sums are far below 2**24
    return dict(zip(profile.languages, (totals / matches.size).tolist(), strict=True))


def _ngram_keys(line: str, alphabet: NDArray[np.uint32]) -> NDArray[np.uint32]:
    """Return the keys of all n-grams of one to four characters."""
    codes = np.frombuffer(line.encode("utf-32-le", "surrogatepass"), dtype=np.uint32)
    numbers = alphabet.take(codes, mode="clip")
    keys = [numbers]
    for length in range(2, MAX_NGRAM + 1):
        keys.append((keys[-1][:-1] << np.uint32(8)) | numbers[length - 1 :])
    return np.concatenate(keys)


def add_word_weights(weights: Mapping[str, float], text: str, script: str) -> dict[str, float]:
    """Add the weights of frequent words, averaged over all words of a text."""
    profile, words = profiles()[script], WORD_PATTERN.findall(text.lower())
    rows = [profile.words[word] for word in words if word in profile.words]
    added = WORD_SHARE * profile.word_weights[rows].sum(axis=0, dtype=np.int64) / len(words)
    return {language: weights[language] + float(added[n]) for n, language in enumerate(weights)}


@cache
def word_margins(language: str) -> Mapping[str, int]:
    """Return the weight of each word less its largest weight in another language.

    Where the margins of a text are large enough, its weights are larger than in any language.
    Words are in lower case and capitalized.
    """
    margins: dict[str, int] = {}
    for words, column in reversed(word_profiles(language)):
        for word, weights in words.items():
            margin = weights[column] - max(0, *weights[:column], *weights[column + 1 :])
            margins[word] = margins[word.capitalize()] = margin
    return margins


@cache
def word_profiles(language: str) -> list[tuple[Mapping[str, tuple[int, ...]], int]]:
    """Return for each script of a language the weights of its words and the language's column."""
    code = macrolanguage(language)
    return [
        (_word_weights(script), profile.languages.index(code))
        for script, profile in profiles().items()
        if code in profile.languages
    ]


@cache
def _word_weights(script: str) -> Mapping[str, tuple[int, ...]]:
    """Return the weights of each frequent word of a script by language.

    For the few words of a text, tuples are faster than arrays.
    """
    profile = profiles()[script]
    rows = map(tuple, profile.word_weights.tolist())
    return dict(zip(profile.words, rows, strict=True))


def character_ngrams(text: str) -> Iterator[str]:
    """Yield the n-grams of one to four characters in the words of a text, with word boundaries.

    >>> list(character_ngrams("Ab 1"))
    ['a', 'b', ' a', 'ab', 'b ', ' ab', 'ab ', ' ab ']
    """
    line = join_words(text)
    for length in range(1, MAX_NGRAM + 1):
        for start in range(len(line) - length + 1):
            if (gram := line[start : start + length]) != " ":
                yield gram


def join_words(text: str) -> str:
    """Return the words of a text in lower case, each between blanks."""
    return f" {' '.join(WORD_PATTERN.findall(text.lower()))} "


@cache
def profiles() -> Mapping[str, Profile]:
    """Return the profile of each script that several languages share."""
    stored = json.loads(files("tertium.text").joinpath("language_profiles.json").read_text("utf-8"))
    return {script: _read_profile(entry) for script, entry in stored.items()}


def _read_profile(entry: Mapping[str, Any]) -> Profile:
    grams, count = entry["ngrams"], len(entry["languages"])
    alphabet = np.full(0x10000, UNKNOWN_CHARACTER, dtype=np.uint32)
    numbers = {c: n for n, c in enumerate(sorted({c for gram in grams for c in gram}), start=1)}
    alphabet[[*map(ord, numbers)]] = [*numbers.values()]
    keys = np.array([int.from_bytes([numbers[c] for c in gram]) for gram in grams], dtype=np.uint32)
    order = np.argsort(keys)
    return Profile(
        languages=tuple(entry["languages"]),
        alphabet=alphabet,
        keys=keys[order],
        weights=_decode_weights(entry["weights"], count)[order].astype(np.float32),
        words={word: row for row, word in enumerate(entry["words"])},
        word_weights=_decode_weights(entry["word_weights"], count),
    )


def _decode_weights(text: str, languages: int) -> NDArray[np.int8]:
    return np.frombuffer(base64.b64decode(text), dtype=np.int8).reshape(-1, languages)
