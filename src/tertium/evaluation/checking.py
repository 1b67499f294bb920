"""Check translations for errors that can be found without a model."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from tertium.checks.catalog import CHECKS
from tertium.checks.check import CheckRunner, PairSettings, TranslationPair
from tertium.checks.configuration import CheckSettings
from tertium.checks.terminology import CONSISTENCY, find_inconsistencies
from tertium.data.testset import TestSet
from tertium.display import Displayable
from tertium.errors import UsageError
from tertium.evaluation.evaluation import as_numbers
from tertium.evaluation.rows import Row, group_by_pair, split_pair
from tertium.evaluation.scoring import Translations, as_testset
from tertium.execution import track_progress
from tertium.segment import Segment
from tertium.spans import MQM_WEIGHTS, SEVERITIES, Span, score_spans
from tertium.text.language_identification import main_language

# Checks whose findings mean that the output is not a translation. On WMT24, 61 % of 745
# translations with such a finding have a human score below 50, of all translations 7 %
# (`recipes.checks.bad_outputs`).
FAILED_OUTPUT = (
    *("empty", "wrong-language", "untranslated", "chatter"),
    *("truncation", "repetition", "length-ratio"),
)
PLURAL_COLUMN = "plural"  # of localization files: the plural forms of a string differ
MAX_LENGTH_COLUMN = "max_length"  # column of a test set: most characters of each translation
FINDING_COLUMNS = tuple("system segment check severity side start end text message".split())


@dataclass(frozen=True, kw_only=True, eq=False)
class CheckReport(Displayable):
    """The findings in all translations of a test set: `findings[system][segment]` are spans.

    The category of a span is the id of its check.
    """

    testset: TestSet
    settings: CheckSettings
    findings: dict[str, list[tuple[Span, ...]]]

    def counts(self, system: str) -> dict[str, int]:
        """Count the segments with a finding of each check, in the order of the checks."""
        counts = Counter(
            name for spans in self.findings[system] for name in {span.category for span in spans}
        )
        return {name: counts[name] for name in self.settings.ids if counts[name]}

    def clean_share(self, system: str) -> float:
        """Return the share of segments without a finding."""
        rows = self.findings[system]
        return sum(not spans for spans in rows) / len(rows)

    def penalty(self, system: str) -> float:
        """Return the mean MQM weight of the findings per segment; 0 is best."""
        rows = self.findings[system]
        return -sum(score_spans(spans, weights=MQM_WEIGHTS) for spans in rows) / len(rows)

    def rows(self) -> Iterator[tuple[Any, ...]]:
        """Yield a row of `FINDING_COLUMNS` for each finding."""
        items = as_numbers(self.testset.items)
        for system, findings in self.findings.items():
            segments = self.testset.segments(system)
            for item, segment, spans in zip(items, segments, findings, strict=True):
                for span in spans:
                    text = segment.hypothesis if span.side == "hypothesis" else segment.source or ""
                    place = (span.side, span.start, span.end)
                    kind = (span.category, span.severity)
                    yield (system, item, *kind, *place, span.of(text), span.message)

    def has_severity(self, severity: str) -> bool:
        """Tell whether a finding is at least as severe as `severity`."""
        order: list[str] = [name for name in SEVERITIES if name != "bad"]
        least = order.index(severity)
        return any(
            order.index(span.severity) >= least
            for rows in self.findings.values()
            for spans in rows
            for span in spans
            if span.severity in order
        )


def check(
    testset: Translations,
    *,
    sources: Sequence[str] | None = None,
    settings: CheckSettings | None = None,
    **fields: Any,
) -> CheckReport:
    """Check every translation of a test set for errors that can be found without a model.

    Parameters
    ----------
    testset
        A `TestSet`, a pandas or polars frame, a list of translations, or lists by system name.
    sources
        Texts for each segment, if `testset` is a list or a dictionary of lists. Without sources,
        only checks of the translation alone are run.
    settings
        What to check; by default all checks.
    fields
        Fields of `CheckSettings`, such as `target_language="de"` or `ignore=["quotes"]`, instead
        of `settings`. Languages that are not given are detected from all texts.

    Returns
    -------
    CheckReport
        The findings of each translation.

    >>> report = check(["Sie haben {n} Dateien."], sources=["You have {count} files."])
    >>> [span.message for span in report.findings["system"][0]][0]
    'placeholder {count} is missing in the translation'
    """
    if settings is not None and fields:
        raise UsageError("give settings= or its fields, not both")
    lists: dict[str, Any] = {n: tuple(v) if isinstance(v, list) else v for n, v in fields.items()}
    try:
        chosen = settings or CheckSettings(**lists)
    except TypeError:
        names = ", ".join(CheckSettings.__dataclass_fields__)
        raise UsageError(f"{', '.join(fields)}: expected settings of checks ({names})") from None
    texts = as_testset(testset, sources)
    chosen = _detect_languages(texts, chosen)
    own_settings = chosen.pair_settings()
    findings = {
        system: _check_system(texts, system, chosen, own_settings) for system in texts.systems
    }
    return CheckReport(testset=texts, settings=chosen, findings=findings)


def _detect_languages(testset: TestSet, settings: CheckSettings) -> CheckSettings:
    source, target = settings.source_language, settings.target_language
    if not source and testset.sources:
        source = main_language(testset.sources)
    if not target:
        target = main_language([text for texts in testset.systems.values() for text in texts])
        target = "" if target == source else target  # untranslated, or not known
    return replace(settings, source_language=source, target_language=target)


def _check_system(
    testset: TestSet, system: str, settings: CheckSettings, own_settings: PairSettings
) -> list[tuple[Span, ...]]:
    segments = testset.segments(system)
    languages = settings.source_language, settings.target_language
    limits = testset.columns.get(MAX_LENGTH_COLUMN, ())
    findings = check_segments(segments, languages, settings, own_settings, limits)
    if CONSISTENCY in settings.ids and testset.sources:
        severity = settings.severity.get(CONSISTENCY, "minor")
        forms = testset.columns.get(PLURAL_COLUMN) or [""] * len(segments)
        rows = zip(findings, find_inconsistencies(segments, severity), forms, strict=True)
        findings = [own if form else own + added for own, added, form in rows]
    if settings.suppress:
        findings = [*_drop_suppressed(testset, findings, settings)]
    return findings


def check_segments(
    segments: Sequence[Segment],
    languages: tuple[str, str],
    settings: CheckSettings,
    own_settings: PairSettings | None = None,
    limits: Sequence[str] = (),
) -> list[tuple[Span, ...]]:
    """Return the findings of each segment; all of them have a source, or none has.

    Consistency is not checked. `own_settings` are `settings.pair_settings()`, if they are read.
    `limits` are the most characters of each translation, as texts; other texts are no limits.
    """
    checks = [check for check in CHECKS if check.id in settings.ids]
    has_source = any(segment.source is not None for segment in segments)
    runner = CheckRunner(checks, has_source=has_source, severities=settings.severity)
    own = own_settings or settings.pair_settings()
    each = [
        replace(own, max_length=int(limit)) if limit.isdecimal() else own
        for limit in limits or [""] * len(segments)
    ]
    pairs = (
        TranslationPair(segment.source or "", segment.hypothesis, *languages, own)
        for segment, own in zip(track_progress(segments, "checks"), each, strict=True)
    )
    return [*runner.run(pairs)]


def _drop_suppressed(
    testset: TestSet, findings: Sequence[tuple[Span, ...]], settings: CheckSettings
) -> Iterator[tuple[Span, ...]]:
    suppressed = {name: {*map(str, rows)} for name, rows in settings.suppress.items()}
    for number, (item, spans) in enumerate(zip(testset.items, findings, strict=True), start=1):
        names = {str(item), str(number)}
        yield tuple(s for s in spans if not names & suppressed.get(s.category, set()))


def find_errors(rows: Sequence[Row]) -> list[tuple[Span, ...]]:
    """Return the findings of checks in each row; unknown languages are detected from the texts."""
    settings = CheckSettings()
    findings: list[tuple[Span, ...]] = [()] * len(rows)
    for lp, indices in group_by_pair(rows).items():
        languages = split_pair(lp)
        if not languages[1]:
            languages = _detect_pair([rows[n].segment for n in indices])
        segments = [rows[n].segment for n in indices]
        for n, spans in zip(indices, check_segments(segments, languages, settings), strict=True):
            findings[n] = spans
    return findings


def _detect_pair(segments: Sequence[Segment]) -> tuple[str, str]:
    source = main_language([s.source for s in segments if s.source])
    target = main_language([s.hypothesis for s in segments])
    return source, "" if target == source else target


def finding_kinds(spans: Sequence[Span], kinds: Sequence[str]) -> Iterator[str]:
    """Yield the ids of checks among `kinds` that have a finding, in the order of `kinds`."""
    present = {span.category for span in spans}
    return (kind for kind in kinds if kind in present)
