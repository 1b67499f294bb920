"""A check: a function from two texts to findings, with its id, description and examples.

A check returns findings `(side, start, end, message)`; a `CheckRunner` turns them into `Span`s
whose category is the id of the check. Most translations have no finding. A check with `characters`
runs only if one of them is in one of the texts; others test first if there is anything to read.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

from tertium.core.errors import UnknownNameError
from tertium.core.findings import FindingRule
from tertium.core.spans import Severity, Side, Span

Finding = tuple[Side, int, int, str]
NO_FINDINGS: tuple[Finding, ...] = ()
EMPTY = "empty"  # id of the check of empty translations
BATCH_SIZE = 256  # pairs that one check reads before the next
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

    `words`, `lowercase` and `repeated_words` (their number) are of the translation.
    """

    __slots__ = (
        "hypothesis",
        "lowercase",
        "repeated_words",
        "settings",
        "source",
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
        self.source_words, self.words = source.split(), hypothesis.split()
        self.lowercase = hypothesis.lower()
        self.repeated_words = len(self.words) - len({*self.words})


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
    """One kind of error that can be found without a model.

    `characters`: a finding needs one of them in one of the texts; empty if it does not.
    `phrases`: a finding needs one of them in the translation in lower case; empty if it does not.
    """

    id: str
    sentence: str
    severity: Severity
    right: Example
    wrong: Example
    find: Callable[[TranslationPair], Iterable[Finding]]
    languages: str = "all"
    reads_source: bool = True
    characters: str = ""
    phrases: tuple[str, ...] = ()

    @property
    def rule(self) -> FindingRule:
        """The check without its function, with both examples as help."""
        right, wrong = self.right, self.wrong
        return FindingRule(
            id=self.id,
            sentence=self.sentence,
            severity=self.severity,
            languages=self.languages,
            help=f"Right: {right.source!r} as {right.hypothesis!r}. "
            f"Wrong: {wrong.source!r} as {wrong.hypothesis!r}.",
        )


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


class CheckRunner:
    """Runs some checks on pairs of texts; prepare it once for many pairs.

    Findings are in the order of the checks. In an empty translation, everything is missing: only
    the check `empty` is run. Without sources, only checks of the translation alone are run.
    """

    def __init__(
        self,
        checks: Iterable[Check],
        *,
        has_source: bool = True,
        severities: Mapping[str, Severity] | None = None,
    ) -> None:
        self._checks = [check for check in checks if has_source or not check.reads_source]
        self._severities = severities or {}
        characters = "".join(sorted({c for check in self._checks for c in check.characters}))
        self._find_characters = re.compile(f"[{re.escape(characters)}]" if characters else "(?!)")

    def __call__(self, pair: TranslationPair) -> tuple[Span, ...]:
        """Return the findings in one pair."""
        return next(self.run([pair]))

    def run(self, pairs: Iterable[TranslationPair]) -> Iterator[tuple[Span, ...]]:
        """Yield the findings in each pair.

        One check after the other reads a batch of pairs, which is faster than all checks per pair.
        """
        rest = iter(pairs)
        while batch := [*islice(rest, BATCH_SIZE)]:
            yield from self._run_batch(batch)

    def _run_batch(self, pairs: Sequence[TranslationPair]) -> Iterator[tuple[Span, ...]]:
        findall = self._find_characters.findall
        everything = range(len(pairs))
        texts = [n for n in everything if pairs[n].words]
        triggers = [{*findall(pair.source), *findall(pair.hypothesis)} for pair in pairs]
        marked = [n for n in texts if triggers[n]]
        spans: dict[int, list[Span]] = {}
        for check in self._checks:
            chosen: Sequence[int] = everything if check.id == EMPTY else texts
            if check.characters:
                own = frozenset(check.characters)
                chosen = [n for n in marked if not own.isdisjoint(triggers[n])]
            elif check.phrases:
                chosen = _find_phrases(check.phrases, pairs, texts)
            severity = self._severities.get(check.id, check.severity)
            results = map(check.find, map(pairs.__getitem__, chosen))
            for n, findings in zip(chosen, results, strict=True):
                if findings:
                    spans.setdefault(n, []).extend(
                        Span(start, end, side, severity, check.id, message=message)
                        for side, start, end, message in [*findings][:MAX_FINDINGS]
                    )
        return (tuple(spans.get(n, ())) for n in everything)


def _find_phrases(
    phrases: Sequence[str], pairs: Sequence[TranslationPair], chosen: Sequence[int]
) -> list[int]:
    """Return the numbers of the pairs whose translation has one of the phrases.

    Most phrases are in no text of a batch, which one search in all of them tells.
    """
    everything = "\n".join(pairs[n].lowercase for n in chosen)
    if not (present := [phrase for phrase in phrases if phrase in everything]):
        return []
    return [n for n in chosen if any(map(pairs[n].lowercase.__contains__, present))]
