"""Checks of terms, of names that stay as they are, and of consistency over segments."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from itertools import islice

from tertium.checks.check import (
    Findings,
    PairSettings,
    Term,
    TranslationPair,
    declare_check,
)
from tertium.core.findings import FindingRule
from tertium.core.segment import Segment
from tertium.core.spans import Severity, Span
from tertium.text.scripts import is_unspaced_script, language_scripts

MIN_STEM = 4  # letters of a term that an inflected form keeps
MAX_ENDING = 4  # letters that an inflected form may add
IDENTIFIER = re.compile(
    r"\b(?:[A-Z]+[0-9]+[A-Z0-9]*|[a-z]+[A-Z]\w*[a-z]|[A-Za-z]+_\w+[a-z0-9]|[A-Z]{2,}(?:_[A-Z]+)+)\b"
)
TWO_CAPITALS = re.compile("[A-Z](?<=[A-Z][A-Z])")
CAPITALS = re.compile(r"(?<![^\W_])[A-Z]{2,5}(?![^\W_])")
# acronyms that all languages copy; names of organizations and of people are often translated
ACRONYMS = frozenset(
    "PDF HTML XML CSV JSON YAML USB CPU GPU RAM SSD HDD BIOS UEFI API SDK URL HTTP HTTPS FTP SFTP "
    "SSH SSL TLS DNS TCP UDP DHCP VPN WLAN SQL PHP CSS SVG JPEG GIF GPS GSM LTE NFC RFID LED LCD "
    "OLED HDMI VGA DVD IMEI SMTP IMAP RGB CMYK EXIF UTF ASCII".split()
)
COPYING_SCRIPTS = frozenset({"Latin", "Cyrillic", "Greek", "Han", "Kana", "Hangul"})
STRETCHED = re.compile(r"([^\W\d_])\1\1")
LETTERS_AND_NUMBER = re.compile(r"[a-z]{1,2}(\d{2,})")
# what every identifier has: _, a digit after a capital letter or a capital after a small one
IDENTIFIER_HINT = re.compile(r"[_A-Z0-9](?:(?<=_)|(?<=[a-z][A-Z])|(?<=[A-Z][0-9]))")
TERMS = PairSettings(terms=(Term("account", ("Konto",), ("Rechnung",)),))
NAMES = PairSettings(do_not_translate=("Apple",))


@lru_cache(maxsize=4096)
def term_pattern(term: str) -> re.Pattern[str]:
    """Return a pattern for a term and its inflected forms; capital letters have to match.

    >>> bool(term_pattern("Haus").search("des Hauses")), bool(term_pattern("Haus").search("aus"))
    (True, False)
    """
    if is_unspaced_script(term):
        return re.compile(re.escape(term))
    words = []
    for word in term.split():
        stem = word[: max(MIN_STEM, len(word) - 2)] if word.isalpha() and len(word) > 4 else word
        ending = rf"\w{{0,{MAX_ENDING + len(word) - len(stem)}}}" if word.isalpha() else ""
        first = f"[{stem[0].upper()}{stem[0].lower()}]" if stem[0].islower() else re.escape(stem[0])
        words.append(first + re.escape(stem[1:]) + ending)
    phrase = r"\s+".join(words)
    return re.compile(rf"(?<!\w){phrase}(?!\w)")


@declare_check(
    "terms",
    "major",
    "Close your accounts.",
    "Schließen Sie Ihre Konten.",
    "Schließen Sie Ihre Rechnung.",
    settings=TERMS,
)
def find_term_errors(pair: TranslationPair) -> Findings:
    """Terms of the glossary have an expected translation, also inflected, no forbidden one."""
    for term in pair.settings.terms:
        match = term_pattern(term.source).search(pair.source)
        if match is None:
            continue
        for forbidden in term.forbidden:
            if wrong := term_pattern(forbidden).search(pair.hypothesis):
                text = f"{forbidden!r} is a forbidden translation of {term.source!r}"
                yield "hypothesis", *wrong.span(), text
        if term.targets and not any(term_pattern(t).search(pair.hypothesis) for t in term.targets):
            expected = " or ".join(map(repr, term.targets))
            yield "source", *match.span(), f"term {term.source!r}: expected {expected}"


@declare_check(
    "do-not-translate",
    "major",
    "Buy Apple.",
    "Kauf Apple.",
    "Kauf Apfel.",
    settings=NAMES,
)
def find_translated_names(pair: TranslationPair) -> Findings:
    """Names of the list are copied."""
    for name in pair.settings.do_not_translate:
        if name in pair.source:
            pattern = rf"(?<!\w){re.escape(name)}(?!\w)"
            match = re.search(pattern, pair.source)
            if match is not None and name not in pair.hypothesis:
                text = f"{name!r} has to be copied to the translation"
                yield "source", *match.span(), text


@declare_check(
    "identifiers",
    "minor",
    "Set max_size on the iPhone.",
    "Setzen Sie max_size auf dem iPhone.",
    "Setzen Sie max_größe auf dem iPhone.",
)
def find_identifier_errors(pair: TranslationPair) -> Findings:
    """Identifiers such as H5N1, iPhone or max_size are copied."""
    if IDENTIFIER_HINT.search(pair.source) is None:
        return
    target = pair.hypothesis.casefold()
    for match in IDENTIFIER.finditer(pair.source):
        if not any(form in target for form in _written_forms(match[0].casefold())):
            yield "source", *match.span(), f"{match[0]} is not in the translation"


@declare_check(
    "acronyms",
    "minor",
    "Save as PDF.",
    "Als PDF speichern.",
    "Als PFD speichern.",
    languages="those in Latin, Cyrillic, Greek, Chinese, Japanese and Korean letters",
)
def find_acronym_errors(pair: TranslationPair) -> Findings:
    """Technical acronyms such as PDF, USB or HTTP are copied."""
    if TWO_CAPITALS.search(pair.source) is None:
        return
    if COPYING_SCRIPTS.isdisjoint(language_scripts([pair.target_language])):
        return  # others transliterate acronyms
    target = pair.hypothesis.upper()
    for match in CAPITALS.finditer(pair.source):
        if match[0] in ACRONYMS and match[0] not in target:
            yield "source", *match.span(), f"{match[0]} is not in the translation"


def _written_forms(name: str) -> tuple[str, ...]:
    """Return texts of which a translation has one, if it has the identifier (in lower case).

    An inflected name loses its ending (Finnish iPadille), a code of a letter and digits may have
    the letter in another script (A310), and stretched words (nOOOOo) are not identifiers.

    >>> _written_forms("ipadille"), _written_forms("a310"), _written_forms("h5n1")
    (('ipadille', 'ipad'), ('a310', '310'), ('h5n1',))
    """
    if STRETCHED.search(name):
        return ("",)
    if name.isalpha():
        return name, name[: max(MIN_STEM, len(name) - MAX_ENDING)]
    code = LETTERS_AND_NUMBER.fullmatch(name)
    return (name, code[1]) if code else (name,)


CONSISTENCY = "consistency"
CONSISTENCY_RULE = FindingRule(
    id=CONSISTENCY,
    sentence="The same source has the same translation, and different sources differ.",
    severity="minor",
)
MIN_CONSISTENT_LETTERS = 3  # of a source that is compared with other segments


def find_inconsistencies(
    segments: Sequence[Segment], severity: Severity = CONSISTENCY_RULE.severity
) -> list[tuple[Span, ...]]:
    """Report segments whose source was translated differently before, and the reverse.

    >>> rows = [Segment("Öffnen", "Open"), Segment("Aufmachen", "Open")]
    >>> [[span.message for span in spans] for spans in find_inconsistencies(rows)]
    [[], ["segment 1 translates the same source as 'Öffnen'"]]
    """
    by_source: dict[str, tuple[int, str]] = {}
    by_target: dict[str, tuple[int, str]] = {}
    findings: list[tuple[Span, ...]] = []
    for number, segment in enumerate(segments, start=1):
        source = (segment.source or "").strip()
        target = segment.hypothesis.strip()
        own: tuple[Span, ...] = ()
        letters = [*islice(filter(str.isalpha, source), MIN_CONSISTENT_LETTERS)]
        if len(letters) == MIN_CONSISTENT_LETTERS and target:
            first, other = by_source.setdefault(source, (number, target))
            origin, original = by_target.setdefault(target, (number, source))
            message = ""
            if other != target:
                message = f"segment {first} translates the same source as {other!r}"
            elif original.casefold() != source.casefold():
                message = f"segment {origin} has the same translation of {original!r}"
            if message:
                end = len(segment.hypothesis)
                own = (Span(0, end, "hypothesis", severity, CONSISTENCY, message=message),)
        findings.append(own)
    return findings
