"""A check: a function from two texts to findings, with its id, description and examples.

A check yields findings `(side, start, end, message)`; a `CheckRunner` turns them into `Span`s whose
category is the id of the check. Most translations have no finding. A check with `characters` runs
only if one of them is in one of the texts; others test first if there is anything to read.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice

from tertium.core.errors import UnknownNameError
from tertium.core.findings import FindingRule
from tertium.core.spans import Severity, Side, Span

Finding = tuple[Side, int, int, str]
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


@dataclass(eq=False)
class TranslationPair:
    """The texts that a check reads, with their languages (empty if unknown) and settings."""

    source: str
    hypothesis: str
    source_language: str = ""
    target_language: str = ""
    settings: PairSettings = NO_SETTINGS

    @cached_property
    def source_words(self) -> list[str]:
        """The words of the source."""
        return self.source.split()

    @cached_property
    def words(self) -> list[str]:
        """The words of the translation."""
        return self.hypothesis.split()

    @cached_property
    def repeated_words(self) -> int:
        """The number of words of the translation that it has before."""
        return len(self.words) - len({*self.words})


@dataclass(frozen=True, slots=True)
class Check:
    """One kind of error that can be found without a model.

    `@partial(Check, id, severity, source, right, wrong)` makes a check of a function. The first
    line of its docstring says what is right; `right` and `wrong` are translations of `source`, as
    examples in the languages of `pair`.
    """

    id: str
    severity: Severity
    source: str
    right: str
    wrong: str
    find: Callable[[TranslationPair], Iterable[Finding]]
    pair: str = "en-de"
    settings: PairSettings = NO_SETTINGS
    languages: str = "all"
    reads_source: bool = True
    characters: str = ""  # a finding needs one of them in one of the texts; empty if it does not

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
        self._needed = [frozenset(check.characters) for check in self._checks]
        self._severities = severities or {}
        characters = "".join(frozenset().union(*self._needed))
        self._characters = re.compile(rf"[\0{re.escape(characters)}]")

    def __call__(self, pair: TranslationPair) -> tuple[Span, ...]:
        """Return the findings in one pair."""
        return tuple(self._run(pair))

    def _run(self, pair: TranslationPair) -> Iterator[Span]:
        characters = {*self._characters.findall(pair.source + pair.hypothesis)}
        has_words = bool(pair.words)
        for check, needed in zip(self._checks, self._needed, strict=True):
            if needed and needed.isdisjoint(characters):
                continue
            if has_words or check.id == EMPTY:
                for side, start, end, message in islice(check.find(pair), MAX_FINDINGS):
                    severity = self._severities.get(check.id, check.severity)
                    yield Span(start, end, side, severity, check.id, message=message)
