"""Language identification from text alone.

The script decides first, then the character n-grams of the words (`language_profiles`). Sentences
are identified well, a few words less well, and close languages (Bosnian and Croatian, Indonesian
and Malay) poorly. In short texts, the most frequent words of each language count as well: on the
first five words of FLORES lines they raise the accuracy from 89.0 to 91.3 %. For English, function
words are an additional sign.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import cache, lru_cache
from itertools import repeat

import numpy as np

from tertium.core.arrays import BoolArray
from tertium.text.language_codes import macrolanguage
from tertium.text.language_profiles import (
    MIN_LETTERS,
    WORD_PATTERN,
    add_word_weights,
    mean_ngram_weights,
    profiles,
    word_margins,
    word_profiles,
)
from tertium.text.scripts import BLOCKS, language_scripts, main_script, script_share

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
MIN_ENGLISH_SHARE = 0.15  # of function words in texts that may be English
MIN_ENGLISH_WORDS = 40  # with fewer words the share is not reliable
CLEAR_ENGLISH_SHARE = 0.3  # of function words, from which a text is English without further checks

# Scripts of one language. Kana means Japanese; Han without Kana means Chinese.
LANGUAGE_BY_SCRIPT: Mapping[str, str] = {
    "Greek": "el", "Armenian": "hy", "Bengali": "bn", "Gurmukhi": "pa", "Gujarati": "gu",
    "Odia": "or", "Tamil": "ta", "Telugu": "te", "Kannada": "kn", "Malayalam": "ml",
    "Sinhala": "si", "Thai": "th", "Lao": "lo", "Tibetan": "bo", "Burmese": "my",
    "Georgian": "ka", "Hangul": "ko", "Ethiopic": "am", "Khmer": "km", "Kana": "ja", "Han": "zh",
}  # fmt: skip

# Tags, addresses and placeholders do not belong to a language.
MARKUP = re.compile(
    r"</?[A-Za-z][^<>]*>|(?:https?://|www\.)\S+|(?<![\w.+-])[\w.+-]+@[\w.-]+"
    r"|\{[^{}]*\}|%\(\w+\)\w"
)
MARKUP_CHARACTER = re.compile("[<@{%]")  # one of them, or an address, is in all markup
MAX_CHARACTERS = 2000  # of a text that are read
MIN_PROOF_LETTERS = 40  # with fewer letters n-grams may suggest another language, not prove it
MAX_OTHER_LANGUAGE_SHARE = 0.1  # of texts in another language, for a set of texts to be English
MIN_MARGIN = 1.0  # mean n-gram weight by which another language must win
MIN_PART_MARGIN = 8.0  # the same for a part of a text, which may be a name or a title
MIN_MARGIN_LETTERS = 150  # margin times letters; below it, human raters scored texts like any other
MIN_OWN_SCRIPT_SHARE = 0.2  # of letters in a script of the language: the others are names
# The same for a text with capitalized names: share of letters with the names, and without them.
MIN_SHARE_WITH_NAMES, MIN_SHARE_WITHOUT_NAMES = 0.05, 0.5
HAN_SCRIPTS = ("Han", "Kana", "Hangul")  # of three languages, so Han alone decides nothing
WRONG_LANGUAGE_WARNING = "translation in another language than most"  # no language was requested
MIN_AGREEING_TEXTS, MIN_AGREEING_SHARE = 5, 0.8  # to infer the requested language from the texts
MAX_SAMPLED_TEXTS = 200  # to find the language of many texts
SIMILAR_LANGUAGES = {"sr": "hr", "bs": "sr", "az": "kk"}  # for a script without own n-grams
MIN_WORD_WEIGHT = 20  # of all frequent words of a text, to decide by them alone
MIN_WORD_LEAD = 0.95  # of the weight of any other language


@lru_cache(maxsize=65536)
def identify_language(text: str) -> str:
    """Return the language code of a text, empty if it cannot be identified.

    >>> identify_language("Der Zug fährt um sieben Uhr ab.")
    'de'
    >>> identify_language("Das blaue Auto hielt an."), identify_language("The blue car stopped.")
    ('de', 'en')
    >>> identify_language("ok"), identify_language("12:30")
    ('', '')
    """
    text = _remove_markup(text[:MAX_CHARACTERS])
    script = main_script(text)
    if script in LANGUAGE_BY_SCRIPT:
        return LANGUAGE_BY_SCRIPT[script]
    weights = mean_ngram_weights(text, script)
    if weights and is_too_short(text):
        weights = add_word_weights(weights, text, script)
    return max(weights, key=weights.__getitem__) if weights else ""


def is_in_other_language(text: str, language: str, min_margin: float = MIN_MARGIN) -> bool:
    """Tell whether a text is clearly not written in `language`.

    A few words in the same script are not enough (4 to 24 % of Ukrainian texts below 40 letters
    look like another language); up to 150 letters, shorter texts need a larger margin. Languages
    that can hardly be distinguished count as the same. Names are ignored if the other words are in
    the language; so are handles, tags and formulas in another script. On FLORES in 59 languages, 1
    in 350 system outputs is flagged, most of them correctly, and 98.9 % of lines in a random other
    language.

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
    text = _remove_markup(text[:MAX_CHARACTERS])
    script = main_script(text)
    if not script or language not in supported_languages():
        return False
    own_scripts, letters = language_scripts([language]), sum(map(str.isalpha, text))
    if script not in own_scripts or LANGUAGE_BY_SCRIPT.get(script, language) != language:
        is_enough = letters >= MIN_LETTERS or script not in ("Latin", "Han")
        decisive = own_scripts - {"Han"} if script in HAN_SCRIPTS else own_scripts
        is_other = script_share(text, decisive) < MIN_OWN_SCRIPT_SHARE
        return is_enough and is_other and not _is_own_except_names(text, decisive)
    if is_too_short(text):
        return False
    weights = mean_ngram_weights(text, script)
    requested = language if language in weights else SIMILAR_LANGUAGES.get(language, "")
    if requested not in weights:
        return False
    margin = max(weights.values()) - weights[requested]
    if margin < max(min_margin, MIN_MARGIN_LETTERS / letters):
        return False
    without_names = " ".join(w for w in WORD_PATTERN.findall(text) if not _is_name(w))
    weights = mean_ngram_weights(without_names, script)
    return not weights or max(weights, key=weights.__getitem__) != requested


def _remove_markup(text: str) -> str:
    has_markup = MARKUP_CHARACTER.search(text) is not None or "://" in text or "www." in text
    return MARKUP.sub(" ", text) if has_markup else text


def _is_own_except_names(text: str, scripts: frozenset[str]) -> bool:
    """Tell whether the Latin words of a text are names among words in these scripts, or no words.

    >>> texts = "Visual Studio コード", "visual studio コード", "Visual Studio", "CH3OH, @user4"
    >>> [_is_own_except_names(text, frozenset({"Kana"})) for text in texts]
    [True, False, False, True]
    """
    if not has_translatable_words(text):
        return True
    words = _remove_handles(text)
    nameless = _latin_word().sub(lambda word: " " if _is_name(word[0]) else word[0], words)
    return (
        script_share(words, scripts) >= MIN_SHARE_WITH_NAMES
        and script_share(nameless, scripts) >= MIN_SHARE_WITHOUT_NAMES
    )


@cache
def _latin_word() -> re.Pattern[str]:
    letters = f"{BLOCKS['Latin']}0-9"
    return re.compile(f"[@#]?[{letters}][{letters}'’]*")


def _remove_handles(text: str) -> str:
    """Remove handles, hashtags and formulas, which are never translated."""
    return _latin_word().sub(
        lambda word: " " if word[0][0] in "@#" or any(map(str.isdecimal, word[0])) else word[0],
        text,
    )


def _is_name(word: str) -> bool:
    """Tell whether a word is capitalized; English function words in titles do not count."""
    return any(map(str.isupper, word)) and word.lower() not in ENGLISH_FUNCTION_WORDS


def has_translatable_words(text: str) -> bool:
    """Tell whether a text has words other than addresses, handles and formulas.

    >>> has_translatable_words("Yes, 3!")
    True
    >>> has_translatable_words("@user4 https://example.org/yes CH3OH 3 😀")
    False
    """
    return any(map(str.isalpha, _remove_handles(MARKUP.sub(" ", text))))


def is_too_short(text: str) -> bool:
    """Tell whether a text has too few letters to prove a language."""
    return sum(map(str.isalpha, text)) < MIN_PROOF_LETTERS


def flag_other_language(texts: Sequence[str], language: str = "") -> BoolArray:
    """Flag texts that are clearly not in the requested language, (texts,); none without one."""
    flags = [bool(language) and is_in_other_language(text, language) for text in texts]
    return np.array(flags, dtype=np.bool_)


def flag_wrong_language(texts: Sequence[str]) -> BoolArray:
    """Flag texts that are clearly in another language than most, if most agree, (texts,).

    >>> line = "The train to Hamburg does not leave before seven o'clock."
    >>> flag_wrong_language([line] * 5 + ["да"]).tolist()
    [False, False, False, False, False, True]
    """
    languages = Counter(identify_language(text) for text in texts if not is_too_short(text))
    del languages[""]
    main, count = max(languages.items(), key=lambda entry: entry[1], default=("", 0))
    if count < MIN_AGREEING_TEXTS or count < MIN_AGREEING_SHARE * languages.total():
        main = ""
    flags = [
        bool(main) and identify_language(t) != main and is_in_other_language(t, main) for t in texts
    ]
    return np.array(flags, dtype=np.bool_)


def main_language(texts: Sequence[str]) -> str:
    """Return the language of most letters in a sample of texts, empty without a majority.

    >>> main_language(["今天公园里天气很好。", "我们去散步。", "OK"]), main_language(["ok"])
    ('zh', '')
    """
    letters: Counter[str] = Counter()
    for text in texts[:: -(-len(texts) // MAX_SAMPLED_TEXTS) or 1]:
        letters[identify_language(text)] += sum(map(str.isalpha, text))
    language = max(letters, key=lambda code: (letters[code], code), default="")
    return language if 2 * letters[language] > letters.total() else ""


def is_mixed_language(text: str) -> bool:
    """Tell whether the first and the last third of a text are clearly in different languages.

    On FLORES in 59 languages, 1 line in 400 is flagged, most for English film titles, and 81 % of
    concatenations of two lines in two languages.

    >>> is_mixed_language(
    ...     "The train to Hamburg does not leave before seven o'clock in the evening, and nobody "
    ...     "knows why that is so, denn die Strecke ist seit heute Morgen wegen eines Sturms "
    ...     "gesperrt, und niemand weiß, wann sie wieder frei sein wird."
    ... )
    True
    """
    text = text[:MAX_CHARACTERS]
    ends = text[: len(text) // 3], text[-(len(text) // 3) :]
    languages = [identify_language(end) for end in ends]
    return all(languages) and all(
        is_in_other_language(end, language, MIN_PART_MARGIN)
        for end, language in zip(ends, reversed(languages), strict=True)
    )


def function_word_share(texts: Iterable[str]) -> tuple[float, int]:
    """Return the share of English function words in distinct texts, and the number of words.

    >>> function_word_share(["the cat sat on the mat"])
    (0.5, 6)
    """
    counts = [_count_function_words(text) for text in dict.fromkeys(texts)]
    total = sum(words for _, words in counts)
    return sum(matches for matches, _ in counts) / max(total, 1), total


@lru_cache(maxsize=65536)
def _count_function_words(text: str) -> tuple[int, int]:
    """Count English function words and all words of a text."""
    words = WORD_PATTERN.findall(text)
    return sum(word.lower() in ENGLISH_FUNCTION_WORDS for word in words), len(words)


def is_plausibly_english(texts: Sequence[str]) -> bool:
    """Tell whether texts may be English; False only if most of them are clearly not.

    True if there are few words, or if there are enough function words. Titles have none, so most
    letters must also belong to texts that are clearly not English by themselves.

    >>> german = "Die Katze sitzt auf der Matte, und der Hund liegt seit gestern vor der Tür"
    >>> is_plausibly_english([f"{german}: {n}" for n in "abcdef"])
    False
    >>> is_plausibly_english([f"Blue cotton shirt large {n}" for n in "abcdefghijkl"])
    True
    """
    share, count = function_word_share(texts)
    if count < MIN_ENGLISH_WORDS or share >= MIN_ENGLISH_SHARE:
        return True
    letters = {text: sum(map(str.isalpha, text)) for text in dict.fromkeys(texts)}
    other = sum(n for text, n in letters.items() if is_clearly_not_english(text))
    return 2 * other < sum(letters.values())


def are_english(texts: Sequence[str]) -> bool:
    """Tell whether to treat texts as English.

    A few words, and texts without function words such as titles, are English unless they are
    clearly in another language.

    >>> are_english(["Yes."]), are_english(["我喜欢在公园里散步，因为天气很好。"])
    (True, False)
    """
    share, count = function_word_share(texts)
    if count >= MIN_ENGLISH_WORDS and share >= MIN_ENGLISH_SHARE:
        return True
    return not is_in_other_language(" ".join(dict.fromkeys(texts)), "en")


@lru_cache(maxsize=65536)
def is_clearly_not_english(text: str) -> bool:
    """Tell whether a text is clearly not English.

    This flags 1 of 11,115 English references of WMT. On FLORES it flags 90 % of Chinese lines
    (others contain many names) and at least 98.5 % in 20 other languages.

    >>> is_clearly_not_english("Der Zug nach Hamburg fährt heute erst um sieben Uhr ab.")
    True
    """
    return function_word_share([text])[0] < CLEAR_ENGLISH_SHARE and is_in_other_language(text, "en")


def seem_english(texts: Sequence[str]) -> bool:
    """Tell whether to choose a metric for English by default.

    Stricter than `are_english`: texts with few function words must be identified as English, and
    nearly all of many texts must be. Of lines below 60 characters in German, Czech, Polish,
    Spanish and Icelandic, 2 to 5 % are accepted (by `are_english` 58 to 86 %); of English lines
    97 %.

    >>> seem_english(["Hún fór heim í gær."]), seem_english(["She went home yesterday."])
    (False, True)
    """
    share, count = function_word_share(texts)
    not_english = sum(map(is_clearly_not_english, texts))
    if not are_english(texts) or not_english > MAX_OTHER_LANGUAGE_SHARE * len(texts):
        return False
    min_share = MIN_ENGLISH_SHARE if count >= MIN_ENGLISH_WORDS else CLEAR_ENGLISH_SHARE
    return share >= min_share or identify_language(" ".join(dict.fromkeys(texts))) in ("en", "")


@cache
def supported_languages() -> frozenset[str]:
    """Return the languages that are identified by script or n-grams."""
    profiled = {language for profile in profiles().values() for language in profile.languages}
    return frozenset(profiled | set(LANGUAGE_BY_SCRIPT.values()))


def has_frequent_words(words: Sequence[str], language: str) -> bool:
    """Tell whether the frequent words of a text are those of a language, as of no other.

    A close language may lead by 5 %.

    This is faster than identifying the language. On FLORES it holds for about 90 % of lines in
    their language, 1 % of those in others, and 10 % in close ones (Danish and Norwegian).

    >>> has_frequent_words("der zug fährt nicht ab und kommt auch nicht an.".split(), "de")
    True
    """
    if sum(map(word_margins(language).get, words, repeat(0))) >= MIN_WORD_WEIGHT:
        return True
    words = " ".join(words).lower().split()
    for weights_by_word, column in word_profiles(language):
        weights = [*filter(None, map(weights_by_word.get, words))]
        if weights:
            own = sum(row[column] for row in weights)
            if own < MIN_WORD_WEIGHT:
                return False
            return own >= MIN_WORD_LEAD * max(map(sum, zip(*weights, strict=True)))
    return False
