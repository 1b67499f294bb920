"""Checks of language and characters: chatter, copies, wrong language, scripts, encoding."""

from __future__ import annotations

import re
from functools import cache

from tertium.checks.check import (
    EMPTY,
    Findings,
    TranslationPair,
    declare_check,
    find_new_matches,
)
from tertium.text.language_codes import language_family
from tertium.text.language_identification import (
    LANGUAGE_BY_SCRIPT,
    has_frequent_words,
    has_translatable_words,
    is_in_other_language,
    supported_languages,
)
from tertium.text.scripts import BLOCKS, is_blank, language_scripts, script_of

_TRANSLATION = (
    r"(?:translat(?:ion|ed)|übersetzung|traducción|traduction|traduzione|tradução|vertaling"
    r"|перевод|tłumaczenie|překlad)"
)
# parts of words; a source that has one may be about translation itself
CHATTER_WORDS = (
    *"translat übersetz tradu vertal перев tłumacz překl 翻".split(),
    *("an ai", "artificial intelligence", "language model", "sorry", "assist", "```", "<think"),
    *("let me know", "désolé", "lo siento", "tut mir leid", "抱歉", "申し訳"),
)
CHATTER = re.compile(
    r"(?:^|\n)\W{0,4}(?:(?:sure|certainly|of course|okay|ok)[,!.]|here(?:'s| is| are)|hier ist"
    r"|voici|aquí (?:está|tienes)|ecco|aqui está|вот)"
    rf"[^\n:]{{0,60}}{_TRANSLATION}[^\n:]{{0,60}}:?"
    rf"|(?:^|\n)\W{{0,4}}{_TRANSLATION}(?: \w+){{0,4}}\s?:"
    rf"|(?:^|\n|\()\W{{0,4}}(?:note|hinweis|anmerkung|remarque|nota)s?\s?:[^\n]{{0,80}}{_TRANSLATION}"
    r"|translate the following|the following (?:text|sentence) (?:from|to|into)"
    r"|以下是[^\n]{0,12}翻[译譯]|(?:^|\n)\W{0,4}翻[译譯訳]文?\s?[:：]|以下[^\n]{0,12}翻訳"
    r"|\bas an? (?:ai|artificial intelligence|language model)\b"
    r"|\bi(?:'m| am) sorry,? (?:but )?i (?:can't|cannot|can not|am unable|am not able)"
    r"|\bi (?:can't|cannot|am unable to) (?:assist|help with|translate|fulfill|provide a trans)"
    r"|\bje suis désolée?,? (?:mais )?je ne (?:peux|suis)|\blo siento,? (?:pero )?no puedo"
    r"|\bes tut mir leid,? (?:aber )?(?:ich kann|das kann ich|dabei kann ich)"
    r"|抱歉，?我(?:无法|不能)|申し訳(?:ありません|ございません)が、[^\n]{0,20}でき"
    r"|```|</?think(?:ing)?>|let me know if you (?:need|have|would)",
    re.IGNORECASE,
)
MOJIBAKE = re.compile(
    "\ufffd|Ã[\u0080-\u00bf€‚ƒ„…†‡ˆ‰Š‹ŒŽ‘’“”•–—˜™š›œžŸ]|Â[\u00a1-\u00bf]|â€[\u0080-\u00bf™œž“”˜¦¢]"
    "|ï¿½|ï»¿|(?:[ÐÑ][\u0080-\u00bf°±²³´µ¶·¸¹º»¼½¾¿]){2}|(?:[ØÙ][\u0080-\u00bf§¨©ª]){2}"
    "|(?:ã[\u0080-\u0083€‚ƒ]){1}[\u0080-\u00bf]"
)
CONTROL = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x84\x86-\x9f\ufeff\ufff0-\ufffb\u202d\u202e\ue000-\uf8ff]"
)
# a word with letters of Latin and Cyrillic, as in mistyped or spoofed words
MIXED_WORD = re.compile(
    f"[^\\W\\d_]*(?:[A-Za-z][{BLOCKS['Cyrillic']}]|[{BLOCKS['Cyrillic']}][A-Za-z])[^\\W\\d_]*"
)
CYRILLIC_LETTER = re.compile(f"[{BLOCKS['Cyrillic']}]")
LATIN_LETTER = re.compile("[A-Za-z]")
# letters of these scripts occur in texts of any language: names, units, formulas
COMMON_SCRIPTS = frozenset({"Latin", "Greek"})
WORD = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)*")
KANA = re.compile(f"[{BLOCKS['Kana']}{BLOCKS['Hangul']}]")
MIN_COPIED_WORDS = 6
MIN_LOWER_WORDS = 4  # of a copied run; names and titles are often copied
MIN_WORDS_TO_COMPARE = 3


@declare_check(
    EMPTY,
    "critical",
    "Yes.",
    "Ja.",
    " ",
)
def find_empty(pair: TranslationPair) -> Findings:
    """The translation of a text is not empty."""
    if len(pair.hypothesis) <= 20 and is_blank(pair.hypothesis) and not is_blank(pair.source):
        yield "source", 0, len(pair.source), "the translation is empty"


@declare_check(
    "chatter",
    "critical",
    "Good morning!",
    "Guten Morgen!",
    "Here is the translation: Guten Morgen!",
    phrases=CHATTER_WORDS,
)
def find_chatter(pair: TranslationPair) -> Findings:
    """The translation has no phrases of a language model: introductions, notes, refusals."""
    if any(map(pair.source.lower().__contains__, CHATTER_WORDS)):
        return
    for match in CHATTER.finditer(pair.hypothesis):
        start = match.end() - len(match[0].lstrip())
        yield "hypothesis", start, match.end(), "a phrase of the model, not part of the translation"


@declare_check(
    "untranslated",
    "critical",
    "The train leaves at seven.",
    "Der Zug fährt um sieben ab.",
    "The train leaves at seven.",
)
def find_untranslated(pair: TranslationPair) -> Findings:
    """The translation does not repeat the source or a long run of its words."""
    source = pair.source
    target = pair.hypothesis
    if pair.source_language and pair.source_language == pair.target_language:
        return
    has_same_size = len(pair.source_words) == len(pair.words)
    if has_same_size and source.strip().casefold() == target.strip().casefold():
        words = WORD.findall(source) if has_translatable_words(source) else []
        lower = sum(word[0].islower() or not word[0].isupper() for word in words)
        if len(words) < MIN_WORDS_TO_COMPARE or lower < 2:
            return
        yield "hypothesis", 0, len(target), "the translation equals the source"
        return
    yield from _find_copied_run(pair)


def _find_copied_run(pair: TranslationPair) -> Findings:
    source_words = pair.source_words
    target_words = pair.words
    if len(source_words) < MIN_COPIED_WORDS or len(target_words) < MIN_COPIED_WORDS:
        return
    known_words = {*source_words}
    if known_words.isdisjoint(target_words[MIN_COPIED_WORDS - 1 :: MIN_COPIED_WORDS]):
        return  # a run has one of these words
    if len(known_words.intersection(target_words)) < MIN_COPIED_WORDS:
        return
    family = language_family(pair.source_language)
    if family and family == language_family(pair.target_language):
        return  # close languages share words and phrases
    runs = _find_runs(source_words, target_words)
    length, start = max(runs, default=(0, 0))
    run = target_words[start : start + length]
    if length < MIN_COPIED_WORDS or sum(w[0].islower() for w in run) < MIN_LOWER_WORDS:
        return
    words = [*re.finditer(r"\S+", pair.hypothesis)]
    place = words[start].start(), words[start + length - 1].end()
    marked = pair.hypothesis[place[0] - 2 : place[1] + 2]
    if re.search(r"[\"“”«»„‘`<>]", marked):
        return  # a quotation
    yield "hypothesis", *place, f"{length} words are copied from the source"


def _find_runs(source: list[str], target: list[str]) -> list[tuple[int, int]]:
    """Return length and start of the longest common run that ends at each word of the target."""
    before: dict[int, int] = {}
    places: dict[str, list[int]] = {}
    for n, word in enumerate(source):
        places.setdefault(word, []).append(n)
    runs = []
    for n, word in enumerate(target):
        now = {place: before.get(place - 1, 0) + 1 for place in places.get(word, ())}
        if now:
            length = max(now.values())
            runs.append((length, n - length + 1))
        before = now
    return runs


@declare_check(
    "wrong-language",
    "critical",
    "The train to Hamburg leaves at seven o'clock.",
    "Der Zug nach Hamburg fährt heute erst um sieben Uhr ab.",
    "Le train pour Hambourg ne part aujourd'hui qu'à sept heures.",
    languages="83 languages",
    reads_source=False,
)
def find_wrong_language(pair: TranslationPair) -> Findings:
    """The translation is in the target language."""
    language = pair.target_language
    text = pair.hypothesis
    if language not in supported_languages() or _has_own_words(pair):
        return
    if text == pair.source or not is_in_other_language(text, language):
        return  # copies are found by another check
    yield "hypothesis", 0, len(text), f"the translation is not in the language {language}"


def _has_own_words(pair: TranslationPair) -> bool:
    """Tell whether a translation has many words or letters that only its language has often."""
    text = pair.hypothesis
    language = pair.target_language
    own = _own_letters(language)
    if own is None:
        return has_frequent_words(pair.words, language)
    return own.search(text) is not None and (language != "zh" or KANA.search(text) is None)


@cache
def _own_letters(language: str) -> re.Pattern[str] | None:
    """A long run of letters of the only language with this script, if there is one."""
    scripts = [script for script, code in LANGUAGE_BY_SCRIPT.items() if code == language]
    if not scripts:
        return None
    letters = "".join(BLOCKS[script] for script in scripts)
    return re.compile(f"(?:[{letters}][^{letters}]{{0,6}}){{8}}")


@declare_check(
    "mixed-scripts",
    "major",
    "The code is open.",
    "Код открыт.",
    "Kод 打开.",
    pair="en-ru",
    reads_source=False,
)
def find_mixed_scripts(pair: TranslationPair) -> Findings:
    """Words do not mix alphabets, and all letters belong to the script of the language."""
    text = pair.hypothesis
    if text.isascii():
        return
    if CYRILLIC_LETTER.search(text) is not None and LATIN_LETTER.search(text) is not None:
        words = [*find_new_matches(pair, MIXED_WORD, "{} mixes Latin and Cyrillic letters")]
        yield from words
        if words:
            return
    if not pair.target_language:
        return
    foreign = _foreign_characters(pair.target_language).findall(text)
    if letters := {c for c in foreign if c.isalpha() and c not in pair.source}:
        for match in re.finditer(f"[{re.escape(''.join(sorted(letters)))}]+", text):
            script = script_of(match[0][0])
            yield "hypothesis", *match.span(), f"{script} letters in the translation"


@cache
def _foreign_characters(language: str) -> re.Pattern[str]:
    """Return a pattern for characters of scripts that texts of a language do not use."""
    expected = language_scripts([language]) | COMMON_SCRIPTS
    return re.compile(f"[{''.join(BLOCKS[script] for script in BLOCKS if script not in expected)}]")


@declare_check(
    "mojibake",
    "major",
    "coffee",
    "café",
    "cafÃ©",
    pair="en-fr",
    reads_source=False,
    characters="\ufffdÃÂâïÐÑØÙã",
)
def find_mojibake(pair: TranslationPair) -> Findings:
    """The text was decoded with the right encoding."""
    return find_new_matches(pair, MOJIBAKE, "{} is a sign of a wrong encoding")


@declare_check(
    "control-characters",
    "major",
    "one\ttwo",
    "eins\tzwei",
    "eins\x02zwei",
    reads_source=False,
)
def find_control_characters(pair: TranslationPair) -> Findings:
    """The translation has no control or private characters that the source lacks."""
    if pair.hypothesis.isprintable():
        return
    for match in CONTROL.finditer(pair.hypothesis):
        if match[0] not in pair.source:
            yield "hypothesis", *match.span(), f"control character U+{ord(match[0]):04X}"
