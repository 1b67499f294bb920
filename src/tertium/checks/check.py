"""A check: a function from two texts to findings, with its id, description and examples.

A check returns findings `(side, start, end, message)`; `run_checks` turns them into `Span`s whose
category is the id of the check. Most translations have no finding, so a check tests first whether
the texts contain anything that it reads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from tertium.errors import UnknownNameError
from tertium.spans import Severity, Side, Span

Finding = tuple[Side, int, int, str]
NO_FINDINGS: tuple[Finding, ...] = ()
EMPTY = "empty"  # id of the check of empty translations
MAX_FINDINGS = 20  # per check and segment; a broken file repeats the same error


@dataclass(frozen=True, slots=True)
class Term:
    """A source term with its translations; `forbidden` translations are errors."""

    source: str
    targets: tuple[str, ...] = ()
    forbidden: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class PairSettings:
    """Settings that some checks read."""

    terms: tuple[Term, ...] = ()
    do_not_translate: tuple[str, ...] = ()
    max_length: int = 0


NO_SETTINGS = PairSettings()


class TranslationPair:
    """The texts that a check reads, with their languages (empty if unknown) and settings.

    Checks test the sets of characters first: most texts have nothing that they read.
    """

    __slots__ = (
        "all_characters",
        "characters",
        "hypothesis",
        "settings",
        "source",
        "source_characters",
        "source_language",
        "source_words",
        "target_language",
        "words",
    )

    def __init__(
        self,
        source: str,
        hypothesis: str,
        source_language: str = "",
        target_language: str = "",
        settings: PairSettings = NO_SETTINGS,
    ) -> None:
        self.source, self.hypothesis = source, hypothesis
        self.source_language, self.target_language = source_language, target_language
        self.settings = settings
        self.source_characters, self.characters = {*source}, {*hypothesis}
        self.all_characters = self.source_characters | self.characters
        self.source_words, self.words = source.split(), hypothesis.split()


@dataclass(frozen=True, slots=True)
class Example:
    """A pair of texts and the languages that a check needs to read them."""

    source: str
    hypothesis: str
    languages: str = "en-de"
    settings: PairSettings = NO_SETTINGS

    @property
    def pair(self) -> TranslationPair:
        """The example as the input of a check."""
        source, _, target = self.languages.partition("-")
        return TranslationPair(self.source, self.hypothesis, source, target, self.settings)


@dataclass(frozen=True, slots=True)
class Check:
    """One kind of error that can be found without a model."""

    id: str
    sentence: str
    severity: Severity
    right: Example
    wrong: Example
    find: Callable[[TranslationPair], Iterable[Finding]]
    languages: str = "all"
    reads_source: bool = True


def mark_all(side: Side, text: str, message: str) -> tuple[Finding, ...]:
    """Return a finding that covers a text, or nothing if the text is empty."""
    return ((side, 0, len(text), message),) if text else NO_FINDINGS


def select_checks(
    checks: Sequence[Check], select: Sequence[str] = (), ignore: Sequence[str] = ()
) -> tuple[Check, ...]:
    """Return the selected checks (default: all) without the ignored ones.

    Raises `UnknownNameError` for an unknown id.
    """
    ids = [check.id for check in checks]
    for name in (*select, *ignore):
        if name not in ids:
            raise UnknownNameError("check", name, ids)
    chosen = {*(select or ids)} - {*ignore}
    return tuple(check for check in checks if check.id in chosen)


def run_checks(
    pair: TranslationPair,
    checks: Iterable[Check],
    *,
    has_source: bool = True,
    severities: Mapping[str, Severity] | None = None,
) -> tuple[Span, ...]:
    """Return the findings of some checks in the order of the checks.

    In an empty translation, everything is missing: only the check `empty` is run.
    """
    spans: list[Span] = []
    for check in checks:
        if (not has_source and check.reads_source) or (not pair.words and check.id != EMPTY):
            continue
        if findings := check.find(pair):
            severity = (severities or {}).get(check.id, check.severity)
            spans += [
                Span(start, end, side, severity, check.id, message=message)
                for side, start, end, message in [*findings][:MAX_FINDINGS]
            ]
    return tuple(spans)
