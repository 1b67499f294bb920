"""Which language a text is written in, told from the text alone.

A text is told by its script, then by the character n-grams of its words. `profiles.json` holds, for
each script that several languages share, the n-grams that tell them apart with a weight for each
language: 16 times the logarithm of how much more often it occurs there than elsewhere. Made by
`python -m recipes.languages.profiles`; sentences are told apart well, a few words less well, and
close relatives (Bosnian and Croatian, Indonesian and Malay) hardly. Of English, small words
are a sign of their own.
"""

from __future__ import annotations

import base64
import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib.resources import files

import numpy as np
from numpy.typing import NDArray

from tertium.arrays import BoolArray
from tertium.text.language_codes import macrolanguage
from tertium.text.scripts import BLOCKS, language_scripts, main_script, script_share

WORD_PATTERN = re.compile(r"[^\W\d_]+")
ENGLISH_FUNCTION_WORDS = frozenset(
    "the of and to a in that is was he for it with as his on be at by i this had not are but from "
    "or have an they which one you were her all she there would their we him been has when who "
    "will more no if out so said what up its about into than them can only other new some could "
    "time these two may then do first any my now such like our over man me even most made after "
    "also did many before must through years where much your way well down should because each "
    "just those people mr how too little good very make world still own see men work long get "
    "here between both life being under never day same another know while last might us great "
    "old year off come since against go came right used take three".split()
)
ENGLISH_SHARE = 0.15  # of small words, from which texts may be English
ENOUGH_WORDS = 40  # below which that share says too little

# Scripts that tell the language; Japanese is told by its Kana, what has none beside Han is Chinese.
LANGUAGE_BY_SCRIPT: Mapping[str, str] = {
    "Greek": "el", "Armenian": "hy", "Bengali": "bn", "Gurmukhi": "pa", "Gujarati": "gu",
    "Odia": "or", "Tamil": "ta", "Telugu": "te", "Kannada": "kn", "Malayalam": "ml",
    "Sinhala": "si", "Thai": "th", "Lao": "lo", "Tibetan": "bo", "Burmese": "my",
    "Georgian": "ka", "Hangul": "ko", "Ethiopic": "am", "Khmer": "km", "Kana": "ja", "Han": "zh",
}  # fmt: skip

# Tags, addresses and placeholders are in no language, whatever stands around them.
MARKUP = re.compile(
    r"</?[A-Za-z][^<>]*>|(?:https?://|www\.)\S+|(?<![\w.+-])[\w.+-]+@[\w.-]+"
    r"|\{[^{}]*\}|%\(\w+\)\w"
)
LONGEST = 4  # characters of an n-gram
FEWEST = 8  # letters below which n-grams say too little
MOST = 2000  # characters that are looked at
ENOUGH = 40  # letters below which n-grams may suggest another language, but do not prove it
SURELY_ENGLISH = 0.3  # of small words, from which a text is not asked for its language
STRANGERS = 0.1  # of texts in another language, from which English is not what all are in
CLEAR = 1.0  # how much more an n-gram must say for another language, in parts of a logarithm
CLEAR_OF_A_PART = 8.0  # the same of a part of a text, which a name or a title may make up
SURE = 150  # that difference times letters: judged texts that had less were scored like any other
AMONG = 0.2  # of letters in a language's own script: the others are names
# the same of a text whose names have capitals, with these and without them
AMONG_NAMES, BESIDE_NAMES = 0.05, 0.5
HAN_AMONG = ("Han", "Kana", "Hangul")  # what three languages write tells none of them
WRONG_LANGUAGE_WARNING = (
    "translation in another language than most"  # a warning where none is named
)
COMPANY, AGREED = 5, 0.8  # texts, and the share of them, that tell which language was asked for
STAND_INS = {"sr": "hr", "bs": "sr", "az": "kk"}  # for a script with no n-grams of theirs
WEIGHT_SCALE = 16  # weights are whole numbers of this part of a logarithm


@dataclass(frozen=True, eq=False)
class Profile:
    """The n-grams of a script and their weights, (n-grams, languages)."""

    languages: tuple[str, ...]
    places: Mapping[str, int]
    weights: NDArray[np.int8]


@lru_cache(maxsize=65536)
def identify_language(text: str) -> str:
    """The code of a text's language, empty where it cannot be told.

    >>> identify("Der Zug fährt um sieben Uhr ab."), identify("列車は七時に出発します。")
    ('de', 'ja')
    >>> identify("ok"), identify("12:30")
    ('', '')
    """
    text = MARKUP.sub(" ", text[:MOST])
    script = main_script(text)
    if script in LANGUAGE_BY_SCRIPT:
        return LANGUAGE_BY_SCRIPT[script]
    weights = _weigh(text, script)
    return max(weights, key=weights.__getitem__) if weights else ""


def is_in_other_language(text: str, language: str, clear: float = CLEAR) -> bool:
    """Whether a text is clearly written in another language than this one.

    A few words in the same script say nothing (of Ukrainian ones below 40 letters 4 to 24 % are
    taken for another language), those of up to 150 letters must say it more clearly the fewer they
    are, and relatives that can hardly be told apart are the same. Names do not count where words
    beside them are the language's own, nor do handles, tags and formulas in another script.
    Of outputs of systems on FLORES in 59 languages 1 in 350 is called so, most of them rightly;
    of lines in a language at random instead 98.9 %.

    >>> is_in_other_language("Der Zug nach Hamburg fährt heute erst um sieben Uhr ab.", "en")
    True
    >>> is_in_other_language('<a href="https://example.org/help" class="button">助け</a>', "ja")
    False
    >>> is_in_other_language("Microsoft Azure DevOpsを使う", "ja")
    False
    >>> is_in_other_language("Der Zug fährt ab.", "en"), is_in_other_language("поезд ушёл", "en")
    (False, True)
    """
    language = macrolanguage(language)
    text = MARKUP.sub(" ", text[:MOST])
    script = main_script(text)
    if not script or language not in supported_languages():
        return False
    own, letters = language_scripts([language]), sum(map(str.isalpha, text))
    if script not in own or LANGUAGE_BY_SCRIPT.get(script, language) != language:
        enough = letters >= FEWEST or script not in ("Latin", "Han")
        told = own - {"Han"} if script in HAN_AMONG else own
        return enough and script_share(text, told) < AMONG and not _is_own_but_for_names(text, told)
    if is_too_short(text):
        return False
    weights = _weigh(text, script)
    asked = language if language in weights else STAND_INS.get(language, "")
    if asked not in weights:
        return False
    if max(weights.values()) - weights[asked] < max(clear, SURE / letters):
        return False
    weights = _weigh(" ".join(w for w in WORD_PATTERN.findall(text) if not _is_name(w)), script)
    return not weights or max(weights, key=weights.__getitem__) != asked


def _is_own_but_for_names(text: str, scripts: frozenset[str]) -> bool:
    """Whether the Latin words of a text are names among words in these scripts, or no words at all.

    >>> texts = "Visual Studio コード", "visual studio コード", "Visual Studio", "CH3OH, @user4"
    >>> [_is_own_but_for_names(text, frozenset({"Kana"})) for text in texts]
    [True, False, False, True]
    """
    if not has_translatable_words(text):
        return True
    words = _leave_words(text)
    rest = _latin_word().sub(lambda word: " " if _is_name(word[0]) else word[0], words)
    return (
        script_share(words, scripts) >= AMONG_NAMES and script_share(rest, scripts) >= BESIDE_NAMES
    )


@cache
def _latin_word() -> re.Pattern[str]:
    letters = f"{BLOCKS['Latin']}0-9"
    return re.compile(f"[@#]?[{letters}][{letters}'’]*")


def _leave_words(text: str) -> str:
    """A text without handles, tags and formulas: they are in no language, and never translated."""
    return _latin_word().sub(
        lambda word: " " if word[0][0] in "@#" or any(map(str.isdecimal, word[0])) else word[0],
        text,
    )


def _is_name(word: str) -> bool:
    """Whether it has a capital; small words of English have one in untranslated titles, too."""
    return any(map(str.isupper, word)) and word.lower() not in ENGLISH_FUNCTION_WORDS


def has_translatable_words(text: str) -> bool:
    """Whether there is anything to translate: addresses, handles, formulas and signs stay.

    >>> holds_words("Yes, 3!"), holds_words("@user4 https://example.org/yes CH3OH 3 😀")
    (True, False)
    """
    return any(map(str.isalpha, _leave_words(MARKUP.sub(" ", text))))


def is_too_short(text: str) -> bool:
    """Whether a text has too few letters to prove a language."""
    return sum(map(str.isalpha, text)) < ENOUGH


def flag_other_language(texts: Sequence[str], language: str = "") -> BoolArray:
    """Which texts are clearly in another language than was asked for, (texts,); none was: none."""
    found = [bool(language) and is_in_other_language(text, language) for text in texts]
    return np.array(found, dtype=np.bool_)


def count_wrong_language(texts: Sequence[str]) -> int:
    """How many texts are clearly in another language than nearly all others, if these agree.

    >>> count_strays(["The train to Hamburg does not leave before seven o'clock."] * 9 + ["да"])
    1
    """
    told = Counter(identify_language(text) for text in texts if not is_too_short(text))
    del told[""]
    most, count = max(told.items(), key=lambda found: found[1], default=("", 0))
    if count < COMPANY or count < AGREED * told.total():
        return 0
    others = (text for text in texts if identify_language(text) != most)
    return sum(is_in_other_language(text, most) for text in others)


def is_mixed_language(text: str) -> bool:
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
    told = [identify_language(end) for end in ends]
    return all(told) and all(
        is_in_other_language(end, language, CLEAR_OF_A_PART)
        for end, language in zip(ends, reversed(told), strict=True)
    )


def small_word_share(texts: Iterable[str]) -> tuple[float, int]:
    """The share of English small words among the words of distinct texts, and their number.

    >>> small_word_share(["the cat sat on the mat"])
    (0.5, 6)
    """
    words = [word.lower() for text in dict.fromkeys(texts) for word in WORD_PATTERN.findall(text)]
    return (sum(word in ENGLISH_FUNCTION_WORDS for word in words) / max(len(words), 1), len(words))


def has_few_words(texts: Iterable[str]) -> bool:
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
            count += len(WORD_PATTERN.findall(text))
        if count >= ENOUGH_WORDS:
            return False
    return True


def may_be_english(texts: Iterable[str]) -> bool:
    """Whether texts may be English; too few words to tell are given the benefit of the doubt.

    >>> looks_english([f"Die Katze sitzt auf der Matte, der Hund daneben: {n}" for n in "abcdef"])
    False
    """
    share, count = small_word_share(texts)
    return count < ENOUGH_WORDS or share >= ENGLISH_SHARE


def are_english(texts: Sequence[str]) -> bool:
    """Whether texts are to be taken for English: few words that are clearly another's are not.

    >>> are_english(["Yes."]), are_english(["我喜欢在公园里散步，因为天气很好。"])
    (True, False)
    """
    share, count = small_word_share(texts)
    if count >= ENOUGH_WORDS:
        return share >= ENGLISH_SHARE
    return not is_in_other_language(" ".join(texts), "en")


@lru_cache(maxsize=65536)
def is_clearly_not_english(text: str) -> bool:
    """Whether a text is clearly in another language than English.

    Of 11,115 English references of WMT one is called so, of FLORES in Chinese 90 % (others have
    many names) and in 20 other languages 98.5 % or more.

    >>> is_not_english("Der Zug nach Hamburg fährt heute erst um sieben Uhr ab.")
    True
    """
    return small_word_share([text])[0] < SURELY_ENGLISH and is_in_other_language(text, "en")


def seem_english(texts: Sequence[str]) -> bool:
    """Whether a metric for English is the one to choose for texts, where one is to be chosen.

    As `are_english`, but a few words with few small ones of English must be told for English, too,
    though not clearly, and of many texts nearly all must be. Of lines below 60 characters in
    German, Czech, Polish, Spanish and Icelandic 2 to 5 % seem English (58 to 86 % are not clearly
    something else), of English ones 97 %.

    >>> seem_english(["Hún fór heim í gær."]), seem_english(["She went home yesterday."])
    (False, True)
    """
    share, count = small_word_share(texts)
    if not are_english(texts) or sum(map(is_clearly_not_english, texts)) > STRANGERS * len(texts):
        return False
    if count >= ENOUGH_WORDS or share >= SURELY_ENGLISH:
        return True
    return identify_language(" ".join(texts)) in ("en", "")


def _weigh(text: str, script: str) -> dict[str, float]:
    """What a text's n-grams say for each language of its script, on average; none if too few."""
    profile = _profiles().get(script)
    if profile is None or sum(map(str.isalpha, text)) < FEWEST:
        return {}
    known = [profile.places[gram] for gram in character_ngrams(text) if gram in profile.places]
    if not known:
        return {}
    totals = profile.weights[known].sum(axis=0, dtype=np.int64)
    return dict(zip(profile.languages, (totals / len(known)).tolist(), strict=True))


@cache
def supported_languages() -> frozenset[str]:
    """The languages that are known by their script or by their n-grams."""
    profiled = {language for one in _profiles().values() for language in one.languages}
    return frozenset(profiled | set(LANGUAGE_BY_SCRIPT.values()))


def character_ngrams(text: str) -> Iterator[str]:
    """The runs of one to four characters in the words of a text, blanks around words among them.

    >>> list(ngrams("Ab 1"))
    ['a', 'b', ' a', 'ab', 'b ', ' ab', 'ab ', ' ab ']
    """
    line = f" {' '.join(WORD_PATTERN.findall(text.lower()))} "
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
