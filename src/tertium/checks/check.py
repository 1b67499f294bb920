"""A check: a function from two texts to findings, with its id, description and examples.

A check yields findings `(side, start, end, message)`; a `CheckRunner` turns them into `Span`s whose
category is the id of the check. Most translations have no finding. A check with `characters` runs
only if one of them is in one of the texts; others test first if there is anything to read.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from typing import Any, NamedTuple

from tertium.core.errors import UnknownNameError
from tertium.core.findings import FindingRule
from tertium.core.spans import Severity, Side, Span

Finding = tuple[Side, int, int, str]
Findings = Iterator[Finding]
EMPTY = "empty"  # id of the check of empty translations
BATCH_SIZE = 256  # pairs that one check reads before the next
MAX_FINDINGS = 20  # per check and segment; a broken file repeats the same error


class Term(NamedTuple):
    """A source term with its translations; `forbidden` translations are errors."""

    source: str
    targets: tuple[str, ...] = ()
    forbidden: tuple[str, ...] = ()


class PairSettings(NamedTuple):
    """Settings that some checks read."""

    terms: tuple[Term, ...] = ()
    do_not_translate: tuple[str, ...] = ()
    max_length: int = 0


NO_SETTINGS = PairSettings()


@dataclass(eq=False, slots=True)
class TranslationPair:
    """The texts that a check reads, with their languages (empty if unknown) and settings.

    `words` and `repeated_words` (their number) are of the translation.
    """

    source: str
    hypothesis: str
    source_language: str = ""
    target_language: str = ""
    settings: PairSettings = NO_SETTINGS
    source_words: list[str] = field(init=False)
    words: list[str] = field(init=False)
    repeated_words: int = field(init=False)

    def __post_init__(self) -> None:
        self.source_words = self.source.split()
        self.words = self.hypothesis.split()
        self.repeated_words = len(self.words) - len({*self.words})


Finder = Callable[[TranslationPair], Findings]


class Check(NamedTuple):
    """One kind of error that can be found without a model.

    `declare_check` makes a check of a function. The first line of its docstring says what is right;
    `right` and `wrong` are translations of `source`, as examples in the languages of `pair`.
    """

    id: str
    severity: Severity
    source: str
    right: str
    wrong: str
    find: Finder
    pair: str = "en-de"
    settings: PairSettings = NO_SETTINGS
    languages: str = "all"
    reads_source: bool = True
    characters: str = ""  # a finding needs one of them in one of the texts; empty if it does not
    phrases: Sequence[str] = ()  # the same in the translation in lower case

    def example(self, hypothesis: str) -> TranslationPair:
        """Return the right or wrong example as the input of the check."""
        source, _, target = self.pair.partition("-")
        return TranslationPair(self.source, hypothesis, source, target, self.settings)

    @property
    def rule(self) -> FindingRule:
        """The check without its function, with both examples as help."""
        return FindingRule(
            id=self.id,
            sentence=(self.find.__doc__ or "").partition("\n")[0],
            severity=self.severity,
            languages=self.languages,
            help=f"Right: {self.source!r} as {self.right!r}. Wrong: {self.source!r} as "
            f"{self.wrong!r}.",
        )


def declare_check(
    name: str, severity: Severity, source: str, right: str, wrong: str, **options: Any
) -> Callable[[Finder], Check]:
    """Return a decorator that makes a check of a function; options are fields of `Check`."""
    return partial(Check, name, severity, source, right, wrong, **options)


def find_new_matches(pair: TranslationPair, pattern: re.Pattern[str], message: str) -> Findings:
    """Yield matches in the translation that the source lacks; the message is a format of it."""
    for match in pattern.finditer(pair.hypothesis):
        if match[0] not in pair.source:
            yield "hypothesis", *match.span(), message.format(match[0])


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
        characters = "".join({c for check in self._checks for c in check.characters})
        self._characters = re.compile(rf"[\0{re.escape(characters)}]")

    def run(self, pairs: Iterable[TranslationPair]) -> Iterator[tuple[Span, ...]]:
        """Yield the findings in each pair.

        One check after the other reads a batch of pairs, which is faster than all checks per pair.
        """
        rest = iter(pairs)
        while batch := [*islice(rest, BATCH_SIZE)]:
            yield from self._run_batch(batch)

    def _run_batch(self, pairs: Sequence[TranslationPair]) -> Iterator[tuple[Span, ...]]:
        spans: list[list[Span]] = [[] for _ in pairs]
        everything = range(len(pairs))
        texts = [n for n in everything if pairs[n].words]
        characters = [{*self._characters.findall(p.source + p.hypothesis)} for p in pairs]
        marked = [n for n in texts if characters[n]]
        for check in self._checks:
            chosen: Sequence[int] = everything if check.id == EMPTY else texts
            if check.characters:
                needed = frozenset(check.characters)
                chosen = [n for n in marked if not needed.isdisjoint(characters[n])]
            elif check.phrases:
                chosen = _find_phrases(check.phrases, pairs, texts)
            severity = self._severities.get(check.id, check.severity)
            for n in chosen:
                for side, start, end, message in islice(check.find(pairs[n]), MAX_FINDINGS):
                    spans[n].append(Span(start, end, side, severity, check.id, message=message))
        return map(tuple, spans)


def _find_phrases(
    phrases: Sequence[str], pairs: Sequence[TranslationPair], chosen: Sequence[int]
) -> list[int]:
    """Return the numbers of the pairs whose translation has one of the phrases.

    Most phrases are in no text of a batch, which one search in all of them tells.
    """
    joined = "\n".join(pairs[n].hypothesis for n in chosen).lower()
    present = [phrase for phrase in phrases if phrase in joined]
    if not present:
        return []
    pattern = re.compile("|".join(map(re.escape, present)))
    return [n for n in chosen if pattern.search(pairs[n].hypothesis.lower())]
