"""Checks of blanks, punctuation, brackets and quotes by language, and of double words."""

from __future__ import annotations

import re
from itertools import pairwise
from operator import eq

from tertium.checks.check import Findings, TranslationPair, declare_check
from tertium.checks.length import UNMARKED_LANGUAGES

END_MARKS = {  # the last character of a text: the kind of its sentence
    **dict.fromkeys(".。।॥።។။۔։｡", "."),
    **dict.fromkeys("?？؟፧", "?"),
    **dict.fromkeys("!！", "!"),
    **dict.fromkeys(":：", ":"),
}
CLOSING = "\"'”’»“›)]）】」』*_ \u00a0\u200e\u200f"
TRAILING = CLOSING + "".join(END_MARKS)
ABBREVIATION = re.compile(r"(?:\b(?:etc|inc|ltd|corp|jr|sr|co)|[.\s][^\W\d_])\.$", re.IGNORECASE)
PLAIN_BRACKETS = str.maketrans("（［｛【〔）］｝】〕", "([{[[)]}]]")
DOUBLE_QUOTES = re.compile("[\"“”„‟«»＂]|''")
CJK = "\u3040-\u30ff\u3400-\u9fff"
CJK_ASCII_MARK = re.compile(f"(?<=[{CJK}])[,.;?!](?=$|[\\s{CJK}])")
FRENCH_MARK = re.compile(r"(?<=[^\W\d_]{2})(?:[?!;](?=\s|$)|:(?=\s))|(?<=[^\W\d_])»|«(?=[^\W\d_])")
CJK_QUOTES = ("」", "』", "”", "）")
SENTENCE_END = re.compile(r"[.!?。！？]\W*\s")
QUESTION_MARK = re.compile("[?？؟፧]")
MAX_LABEL = 60  # characters of a text without a mark, such as a button or a title
WIDE_MARKS = dict(zip(",.;?!", "，。；？！", strict=True))
SPANISH_END = {"?": "¿", "!": "¡"}
# languages, and the words that may stand twice in a row
_REPEATABLE = """
en that had is her so very no yes bye ha knock who what it you do in on
de die der das sie den dass wo zu bei ein ihr was wer sehr ab an in im mit auf so ja nein
fr nous vous que en très faire la le les ha de si
es que no si sí muy se te la lo
it che si via piano man pian così molto la lo
pt que se não muito a o e
nl die dat ze zij had heel dan er het van is in op aan
sv som det den de att är på i för en
da som det der den at er på i for en de
no som det den de at er på i for en
pl się to jest i
cs se si to je a
fi on ja
ru что да нет и
ro se ce a și
"""
REPEATABLE_WORDS = {
    language: words for language, *words in map(str.split, _REPEATABLE.strip().splitlines())
}
# languages whose human translations have double blanks in 2 of 100 lines or more (FLORES dev)
DOUBLE_BLANK_LANGUAGES = frozenset("bn gu he hu kn ml mr my ru ta te".split())


@declare_check(
    "blanks",
    "minor",
    "Name: ",
    "Name: ",
    "Name:",
    languages=f"all; double blanks not in {', '.join(sorted(DOUBLE_BLANK_LANGUAGES))}",
)
def find_blank_errors(pair: TranslationPair) -> Findings:
    """Blanks at both ends are those of the source, and no blank is doubled."""
    source = pair.source
    target = pair.hypothesis
    if not target.strip():
        return
    start = len(target) - len(target.lstrip())
    end = len(target.rstrip())
    source_start = len(source) - len(source.lstrip())
    source_end = len(source.rstrip())
    if start and not source_start:
        yield "hypothesis", 0, start, "the source does not start with a blank"
    elif source_start and not start:
        yield "source", 0, source_start, "the source starts with a blank"
    if end < len(target) and source_end == len(source):
        yield "hypothesis", end, len(target), "the source does not end with a blank"
    elif end == len(target) and source_end < len(source):
        yield "source", source_end, len(source), "the source ends with a blank"
    double = target.find("  ", start, end)
    if double >= 0 and "  " not in source.strip():
        if pair.target_language in UNMARKED_LANGUAGES | DOUBLE_BLANK_LANGUAGES:
            return
        yield "hypothesis", double, double + 2, "two blanks in a row"


@declare_check(
    "end-mark",
    "minor",
    "Is it open?",
    "开着吗？",
    "开着。",
    pair="en-zh",
    languages="all but Burmese, Khmer, Lao, Thai and Tibetan",
)
def find_end_mark_error(pair: TranslationPair) -> Findings:
    """The translation ends with the kind of punctuation mark of the source."""
    source = pair.source.rstrip(CLOSING)
    target = pair.hypothesis.rstrip(CLOSING)
    if not source or not target:
        return
    marks = END_MARKS.get(source[-1], ""), END_MARKS.get(target[-1], "")
    if "hy" in (pair.source_language, pair.target_language):
        marks = marks[0].replace(":", "."), marks[1].replace(":", ".")  # : is the full stop
    if marks[0] == marks[1] or UNMARKED_LANGUAGES & {pair.source_language, pair.target_language}:
        return
    if "el" in (pair.source_language, pair.target_language) and ";" in (source[-1], target[-1]):
        return  # the Greek question mark
    if not _is_clear_difference(marks, source, target):
        return
    if marks == (".", "") and (pair.target_language in ("ja", "zh") or source[0].islower()):
        return  # quotations and titles have none, nor have informal texts
    if pair.target_language in ("ja", "zh") and pair.hypothesis.rstrip().endswith(CJK_QUOTES):
        return  # no mark at the end of a quotation
    end = len(target)
    ours, theirs = (f"with {mark}" if mark else "without a mark" for mark in marks)
    yield "hypothesis", end - 1, end, f"the source ends {ours}, the translation {theirs}"


def _is_clear_difference(marks: tuple[str, str], source: str, target: str) -> bool:
    if marks[0] and not marks[1]:
        return target[-1].isalpha() and ABBREVIATION.search(source) is None
    if marks[1] == "?":
        return False  # many sources lack the mark of a question
    if marks[0] in _read_end_marks(target) or marks[1] in _read_end_marks(source):
        return False  # several marks, as in ?! and ?".
    if {*marks} == {".", ":"} and len(source) > MAX_LABEL:
        return False
    is_lost_question = marks[0] == "?" and QUESTION_MARK.search(target) is None
    if SENTENCE_END.search(source) is not None and not is_lost_question:
        return False  # of several sentences, the last one may be split or joined
    if marks[1] and not marks[0]:
        is_label = 4 <= len(source) <= MAX_LABEL
        return source[-1].isalpha() and is_label and marks[1] != "."
    return "?" in marks or ":" in marks


def _read_end_marks(text: str) -> set[str]:
    """Return the kinds of all marks at the end of a text, also before and after quotes."""
    tail = text[len(text.rstrip(TRAILING)) :]
    return {END_MARKS[mark] for mark in tail if mark in END_MARKS}


@declare_check(
    "brackets",
    "minor",
    "Size (in MB)",
    "Größe (in MB)",
    "Größe (in MB",
    reads_source=False,
    characters="()[]{}（）［］｛｝【】〔〕",
)
def find_bracket_errors(pair: TranslationPair) -> Findings:
    """Every bracket has a partner."""
    text = pair.hypothesis
    broken = _find_unpaired(text)
    if broken is None or _find_unpaired(pair.source) is not None:
        return
    yield "hypothesis", broken, broken + 1, f"bracket {text[broken]} has no partner"


def _find_unpaired(text: str) -> int | None:
    """Return the place of the first bracket without a partner.

    >>> _find_unpaired("a (b] c"), _find_unpaired("（a)")
    (2, None)
    """
    plain = text if text.isascii() else text.translate(PLAIN_BRACKETS)
    for opening, closing in ("()", "[]", "{}"):
        if plain.count(opening) != plain.count(closing):
            more = opening if plain.count(opening) > plain.count(closing) else closing
            return plain.index(more)
    return None


@declare_check(
    "quotes",
    "minor",
    'He said "no".',
    "Er sagte „nein“.",
    "Er sagte „nein.",
    reads_source=False,
    characters="\"“”„‟«»＂'",
)
def find_quote_errors(pair: TranslationPair) -> Findings:
    """Every double quote has a partner."""
    places = [match.span() for match in DOUBLE_QUOTES.finditer(pair.hypothesis)]
    if len(places) % 2 == 0 or len(DOUBLE_QUOTES.findall(pair.source)) % 2:
        return
    yield "hypothesis", *places[-1], "a quote has no partner"


@declare_check(
    "punctuation-style",
    "minor",
    "Where is the station?",
    "¿Dónde está la estación?",
    "Dónde está la estación?",
    pair="en-es",
    languages="es, ja, zh",
    reads_source=False,
)
def find_style_errors(pair: TranslationPair) -> Findings:
    """Chinese and Japanese use full-width marks; Spanish questions start with ¿."""
    language = pair.target_language
    text = pair.hypothesis
    if language in ("zh", "ja"):
        for match in CJK_ASCII_MARK.finditer(text):
            mark = "、" if match[0] + language == ",ja" else WIDE_MARKS[match[0]]
            message = f"{match[0]} after a character of {language}: use {mark}"
            yield "hypothesis", *match.span(), message
    elif language == "es":
        for mark, opening in SPANISH_END.items():
            sentence_end = rf"[^\W\d_]\{mark}[\"'”»)]*(?:\s|$)"
            if mark in text and opening not in text and re.search(sentence_end, text):
                start = text.rindex(mark)
                yield "hypothesis", start, start + 1, f"{opening} is missing"


@declare_check(
    "french-spacing",
    "minor",
    "Really?",
    "Vraiment ?",
    "Vraiment?",
    pair="en-fr",
    languages="fr",
    reads_source=False,
)
def find_french_spacing_errors(pair: TranslationPair) -> Findings:
    """French has a blank before ; : ! ? and inside « »."""
    if pair.target_language != "fr":
        return
    match = FRENCH_MARK.search(pair.hypothesis)
    if match is None or (match[0] in ("?", "!") and "://" in pair.hypothesis):
        return
    yield "hypothesis", *match.span(), f"a blank is missing at {match[0]}"


@declare_check(
    "double-words",
    "minor",
    "He comes tomorrow.",
    "Er kommt morgen.",
    "Er kommt kommt morgen.",
    languages=", ".join(sorted(REPEATABLE_WORDS)),
    reads_source=False,
)
def find_double_words(pair: TranslationPair) -> Findings:
    """No word stands twice in a row by mistake."""
    allowed = REPEATABLE_WORDS.get(pair.target_language)
    if allowed is None:
        return
    words = pair.words
    if not pair.repeated_words or not any(map(eq, words, words[1:])):
        return
    source = pair.source.lower().split()
    for word, after in pairwise(words):
        if word != after or not word.isalpha() or word[0].isupper():
            continue
        if word in allowed or any(map(eq, source, source[1:])):
            continue
        match = re.search(rf"(?<!\S){word}\s+{word}(?!\S)", pair.hypothesis)
        if match is not None:
            yield "hypothesis", *match.span(), f"the word {word} stands twice"
            return
    return
