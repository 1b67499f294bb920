"""Language identification from text alone.

The script decides first, then the character n-grams of the words. Sentences
are identified well, a few words less well, and close languages (Bosnian and Croatian, Indonesian
and Malay) poorly. In short texts, the most frequent words of each language count as well: on the
first five words of FLORES lines they raise the accuracy from 89.0 to 91.3 %. For English, function
words are an additional sign.

`language_profiles.json` holds, for each script shared by several languages, the n-grams that
distinguish them and their most frequent words, with one weight per language: 16 times the logarithm
of how much more often an n-gram or word occurs in that language than in others. The file is made by
`python -m recipes.languages.profiles`.
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
from itertools import repeat
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tertium.core.arrays import BoolArray
from tertium.text.language_codes import macrolanguage
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
    "Greek": "el",
    "Armenian": "hy",
    "Bengali": "bn",
    "Gurmukhi": "pa",
    "Gujarati": "gu",
    "Odia": "or",
    "Tamil": "ta",
    "Telugu": "te",
    "Kannada": "kn",
    "Malayalam": "ml",
    "Sinhala": "si",
    "Thai": "th",
    "Lao": "lo",
    "Tibetan": "bo",
    "Burmese": "my",
    "Georgian": "ka",
    "Hangul": "ko",
    "Ethiopic": "am",
    "Khmer": "km",
    "Kana": "ja",
    "Han": "zh",
}

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
MIN_SHARE_WITH_NAMES = 0.05
MIN_SHARE_WITHOUT_NAMES = 0.5
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
    own_scripts = language_scripts([language])
    letters = sum(map(str.isalpha, text))
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
    profile = profiles()[script]
    words = WORD_PATTERN.findall(text.lower())
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
    grams = entry["ngrams"]
    count = len(entry["languages"])
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
