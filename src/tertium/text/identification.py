"""Which language a text is written in: by its script, then by the character n-grams of its words.

`profiles.json` holds, for each script that several languages share, the n-grams that tell them
apart with a weight for each language: 16 times the logarithm of how much more often it occurs there
than elsewhere. Made by `python -m recipes.languages.profiles`; sentences are told apart well, a few
words less well, and close relatives (Bosnian and Croatian, Indonesian and Malay) hardly.
"""

from __future__ import annotations

import base64
import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib.resources import files

import numpy as np
from numpy.typing import NDArray

from tertium.arrays import BoolArray
from tertium.text.languages import (
    ALONE,
    ENGLISH_SHARE,
    ENOUGH_WORDS,
    main_script,
    scripts_of,
    share_in,
    small_word_share,
)

WORD = re.compile(r"[^\W\d_]+")
LONGEST = 4  # characters of an n-gram
FEWEST = 8  # letters below which n-grams say too little
MOST = 2000  # characters that are looked at
ENOUGH = 40  # letters below which n-grams may suggest another language, but do not prove it
SURELY_ENGLISH = 0.3  # small words among few that are not asked for their language
CLEAR = 1.0  # how much more an n-gram must say for another language, in parts of a logarithm
CLEAR_OF_A_PART = 8.0  # the same of a part of a text, which a name or a title may make up
AMONG = 0.2  # of letters in a language's own script: the others are names
HAN_AMONG = ("Han", "Kana", "Hangul")  # what three languages write tells none of them
STRAYS = "translation in another language than most"  # a warning where none is named
ALIASES = {"nb": "no", "nn": "no"}
COMPANY, AGREED = 5, 0.8  # texts, and the share of them, that tell which language was asked for
STAND_INS = {"sr": "hr", "bs": "sr", "az": "kk"}  # for a script with no n-grams of theirs
SCALE = 16  # weights are whole numbers of this part of a logarithm


@dataclass(frozen=True, eq=False)
class Profile:
    """The n-grams of a script and their weights, (n-grams, languages)."""

    languages: tuple[str, ...]
    places: Mapping[str, int]
    weights: NDArray[np.int8]


@lru_cache(maxsize=65536)
def identify(text: str) -> str:
    """The code of a text's language, empty where it cannot be told.

    >>> identify("Der Zug fährt um sieben Uhr ab."), identify("列車は七時に出発します。")
    ('de', 'ja')
    >>> identify("ok"), identify("12:30")
    ('', '')
    """
    script = main_script(text[:MOST])
    if script in ALONE:
        return ALONE[script]
    weights = _weigh(text[:MOST], script)
    return max(weights, key=weights.__getitem__) if weights else ""


def is_in_other_language(text: str, language: str, clear: float = CLEAR) -> bool:
    """Whether a text is clearly written in another language than this one.

    A few words in the same script say nothing (of Ukrainian ones below 40 letters 4 to 24 % are
    taken for another language), and relatives that can hardly be told apart are the same.
    Of outputs of systems on FLORES in 59 languages 1 in 250 is called so, most of them rightly; of
    lines in a language at random instead 98.9 %.

    >>> is_in_other_language("Der Zug nach Hamburg fährt heute erst um sieben Uhr ab.", "en")
    True
    >>> is_in_other_language("Der Zug fährt ab.", "en"), is_in_other_language("поезд ушёл", "en")
    (False, True)
    """
    language = ALIASES.get(language, language)
    script = main_script(text[:MOST])
    if not script or language not in languages_told_apart():
        return False
    own = scripts_of([language])
    if script not in own or ALONE.get(script, language) != language:
        enough = sum(map(str.isalpha, text)) >= FEWEST or script not in ("Latin", "Han")
        told = own - {"Han"} if script in HAN_AMONG else own
        return enough and share_in(text[:MOST], told) < AMONG
    if is_short(text):
        return False
    weights = _weigh(text[:MOST], script)
    own_weight = weights.get(language, weights.get(STAND_INS.get(language, "")))
    return own_weight is not None and max(weights.values()) - own_weight >= clear


def is_short(text: str) -> bool:
    """Whether a text has too few letters to prove a language."""
    return sum(map(str.isalpha, text)) < ENOUGH


def are_in_other_language(texts: Sequence[str], language: str = "") -> BoolArray:
    """Which texts are clearly in another language than was asked for, (texts,); none was: none."""
    found = [bool(language) and is_in_other_language(text, language) for text in texts]
    return np.array(found, dtype=np.bool_)


def count_strays(texts: Sequence[str]) -> int:
    """How many texts are clearly in another language than nearly all others, if these agree.

    >>> count_strays(["The train to Hamburg does not leave before seven o'clock."] * 9 + ["да"])
    1
    """
    told = Counter(identify(text) for text in texts if not is_short(text))
    del told[""]
    most, count = max(told.items(), key=lambda found: found[1], default=("", 0))
    if count < COMPANY or count < AGREED * told.total():
        return 0
    others = (text for text in texts if identify(text) != most)
    return sum(is_in_other_language(text, most) for text in others)


def are_english(texts: Sequence[str]) -> bool:
    """Whether texts are to be taken for English: few words that are clearly another's are not.

    >>> are_english(["Yes."]), are_english(["我喜欢在公园里散步，因为天气很好。"])
    (True, False)
    """
    share, count = small_word_share(texts)
    if count >= ENOUGH_WORDS:
        return share >= ENGLISH_SHARE
    return not is_in_other_language(" ".join(texts), "en")


def seem_english(texts: Sequence[str]) -> bool:
    """Whether a metric for English is the one to choose for texts, where one is to be chosen.

    As `are_english`, but a few words with few small ones of English must be told for English, too,
    though not clearly. Of lines below 60 characters in German, Czech, Polish, Spanish and Icelandic
    2 to 5 % seem English (58 to 86 % are not clearly something else), of English ones 97 %.

    >>> seem_english(["Hún fór heim í gær."]), seem_english(["She went home yesterday."])
    (False, True)
    """
    share, count = small_word_share(texts)
    if count >= ENOUGH_WORDS or share >= SURELY_ENGLISH:
        return are_english(texts)
    return are_english(texts) and identify(" ".join(texts)) in ("en", "")


def is_mixed(text: str) -> bool:
    """Whether the first and the last third of a text are clearly in two languages.

    Of lines of FLORES in 59 languages 1 in 400 is called so, most for titles of films in English;
    of two lines in two languages one behind the other 81 %.

    >>> is_mixed(
    ...     "The train to Hamburg does not leave before seven o'clock in the evening, and nobody "
    ...     "knows why that is so, denn die Strecke ist seit heute Morgen wegen eines Sturms "
    ...     "gesperrt, und niemand weiß, wann sie wieder frei sein wird."
    ... )
    True
    """
    text = text[:MOST]
    ends = text[: len(text) // 3], text[-(len(text) // 3) :]
    told = [identify(end) for end in ends]
    return all(told) and all(
        is_in_other_language(end, language, CLEAR_OF_A_PART)
        for end, language in zip(ends, reversed(told), strict=True)
    )


def _weigh(text: str, script: str) -> dict[str, float]:
    """What a text's n-grams say for each language of its script, on average; none if too few."""
    profile = _profiles().get(script)
    if profile is None or sum(map(str.isalpha, text)) < FEWEST:
        return {}
    known = [profile.places[gram] for gram in ngrams(text) if gram in profile.places]
    if not known:
        return {}
    totals = profile.weights[known].sum(axis=0, dtype=np.int64)
    return dict(zip(profile.languages, (totals / len(known)).tolist(), strict=True))


@cache
def languages_told_apart() -> frozenset[str]:
    """The languages that are known by their script or by their n-grams."""
    profiled = {language for one in _profiles().values() for language in one.languages}
    return frozenset(profiled | set(ALONE.values()))


def ngrams(text: str) -> Iterator[str]:
    """The runs of one to four characters in the words of a text, blanks around words among them.

    >>> list(ngrams("Ab 1"))
    ['a', 'b', ' a', 'ab', 'b ', ' ab', 'ab ', ' ab ']
    """
    line = f" {' '.join(WORD.findall(text.lower()))} "
    for length in range(1, LONGEST + 1):
        for start in range(len(line) - length + 1):
            if (gram := line[start : start + length]) != " ":
                yield gram


@cache
def _profiles() -> Mapping[str, Profile]:
    stored = json.loads(files("tertium.text").joinpath("profiles.json").read_text("utf-8"))
    return {
        script: Profile(
            languages=tuple(entry["languages"]),
            places={gram: place for place, gram in enumerate(entry["ngrams"])},
            weights=np.frombuffer(base64.b64decode(entry["weights"]), dtype=np.int8).reshape(
                len(entry["ngrams"]), len(entry["languages"])
            ),
        )
        for script, entry in stored.items()
    }
