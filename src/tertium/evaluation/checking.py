"""Check translations for errors that can be found without a model."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain
from operator import itemgetter
from typing import Annotated, Any, ClassVar, Literal

from tertium.checks.check import CheckRunner, TranslationPair
from tertium.checks.check_settings import CHECKS, RULES, CheckSettings, read_names, read_settings
from tertium.checks.terminology import CONSISTENCY, find_inconsistencies
from tertium.core.errors import UnknownNameError, UsageError
from tertium.core.findings import Finding, Locate, locate_nothing
from tertium.core.options import Display, InFile, InFiles, Names, Option, Output
from tertium.core.result import (
    Column,
    Listing,
    MarkedLine,
    Result,
    Section,
    Table,
    View,
    field_values,
    mark_texts,
)
from tertium.core.runtime import track_progress
from tertium.core.segment import Segment
from tertium.core.spans import MQM_WEIGHTS, SEVERITIES, Severity, Side, Span, score_spans
from tertium.data.tables import HighlightedText
from tertium.data.testset import TestSet
from tertium.data.text_files import find_configuration
from tertium.evaluation.error_marking import write_back
from tertium.evaluation.rows import Row, group_by_pair, split_pair
from tertium.evaluation.scoring import Translations, as_testset
from tertium.evaluation.system_scores import as_numbers
from tertium.files.text_inputs import InputTexts, TextFiles, WriteBack
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
MAX_PRINTED = 32  # characters of the marked text in a table


@dataclass(frozen=True, kw_only=True, eq=False)
class CheckReport(Result):
    """The findings in all translations of a test set: `spans[system][segment]`.

    The category of a span is the id of its check. `locate` finds the texts in their files.
    """

    testset: TestSet
    settings: CheckSettings
    spans: dict[str, list[tuple[Span, ...]]]
    locate: Locate = field(default=locate_nothing, repr=False)

    @classmethod
    def file_kind(cls, suffix: str) -> str:
        """Return what a file holds: always findings."""
        return "findings"

    def counts(self, system: str) -> dict[str, int]:
        """Count the segments with a finding of each check, in the order of the checks."""
        kinds = [{span.category for span in spans} for spans in self.spans[system]]
        counts = Counter(chain.from_iterable(kinds))
        return {name: counts[name] for name in self.settings.ids if counts[name]}

    def clean_share(self, system: str) -> float:
        """Return the share of segments without a finding."""
        rows = self.spans[system]
        return sum(not spans for spans in rows) / len(rows)

    def penalty(self, system: str) -> float:
        """Return the mean MQM weight of the findings per segment; 0 is best."""
        rows = self.spans[system]
        return -sum(score_spans(spans, weights=MQM_WEIGHTS) for spans in rows) / len(rows)

    def findings(self) -> Iterator[Finding]:
        """Yield all findings, system by system."""
        items = as_numbers(self.testset.items)
        for system, rows in self.spans.items():
            segments = zip(items, self.testset.segments(system), rows, strict=True)
            for number, (item, texts, spans) in enumerate(segments):
                for span in spans:
                    yield Finding(
                        system=system,
                        segment=item,
                        number=number,
                        texts=texts,
                        span=span,
                        locate=self.locate,
                    )

    def tables(self) -> list[Table]:
        """Return the number of segments with a finding of each check, by system."""
        systems = [*self.spans]
        counts = [self.counts(system) for system in systems]
        rows = [
            (name, 0, *(own.get(name, 0) for own in counts))
            for name in self.settings.ids
            if any(name in own for own in counts)
        ]
        clean_shares = [100 * self.clean_share(system) for system in systems]
        rows += [
            ("clean segments (%)", 2, *clean_shares),
            ("penalty per segment", 4, *map(self.penalty, systems)),
        ]
        columns = [Column("segments with findings", itemgetter(0))]
        for place, system in enumerate(systems, start=2):
            columns.append(Column(system, itemgetter(place), decimals=itemgetter(1)))
        return [Table(columns, rows)]

    def finding_table(self) -> Table:
        """Return one row per finding; offsets are only in files."""
        columns = [
            Column("system", show=len(self.spans) > 1),
            Column("segment"),
            Column("check", "span.category"),
            Column("severity", "span.severity"),
            Column("side", "span.side", show=False),
            Column("start", "span.start", show=False),
            Column("end", "span.end", show=False),
            Column("text", max_length=MAX_PRINTED),
            Column("message", "span.message"),
        ]
        return Table(columns, [*self.findings()])

    def file_table(self, suffix: str = "") -> Table:
        """Return one row per finding, with both texts, and its place in the files."""
        table = self.finding_table()
        texts = [
            Column("file", partial(_locate, part="file")),
            Column("line", partial(_locate, part="line")),
            Column("source", partial(_highlight, side="source")),
            Column("translation", partial(_highlight, side="hypothesis")),
        ]
        return replace(table, columns=[*table.columns, *texts])

    @property
    def page_title(self) -> str:
        """The systems that were checked."""
        return f"Findings in {', '.join(self.spans)}"

    @property
    def page_subtitle(self) -> str:
        """The number of findings and translations, and the languages."""
        count = sum(1 for _ in self.findings())
        languages = self.settings.source_language, self.settings.target_language
        pair = f", {languages[0]} to {languages[1]}" if all(languages) else ""
        return f"{count:,} findings in {len(self.testset) * len(self.spans):,} translations{pair}"

    def sections(self) -> list[Section]:
        """Return the counts of each check, and all findings with their texts."""
        return [Section("Checks", self.tables()), Section("Findings", [self.marked_table()])]

    def marked_table(self, title: str = "Findings") -> Table:
        """Return one row per finding with its texts, the most severe first."""
        table = self.finding_table()
        columns = [column for column in table.visible if column.name != "text"]
        rows = sorted(table.rows, key=lambda row: -MQM_WEIGHTS.get(row.span.severity, 0.0))
        filters = ["check", "severity", "system"]
        return Table([*columns, Column("texts", _mark)], rows, title, filters=filters)

    def records(self, *, with_findings: bool = True) -> dict[str, Any]:
        """Return languages, counts and findings as plain values, for JSON."""
        systems = {
            system: {
                "clean": self.clean_share(system),
                "penalty": self.penalty(system),
                "counts": self.counts(system),
            }
            for system in self.spans
        }
        return {
            "source_language": self.settings.source_language,
            "target_language": self.settings.target_language,
            "systems": systems,
            **({"findings": self.finding_table().records()} if with_findings else {}),
        }

    def has_severity(self, severity: Severity) -> bool:
        """Tell whether a finding is at least as severe as `severity`."""
        severe = {*SEVERITIES[SEVERITIES.index(severity) :]} - {"bad"}
        return any(finding.span.severity in severe for finding in self.findings())


def _mark(finding: Finding) -> list[MarkedLine]:
    return mark_texts(finding.texts, [finding.span])


def _locate(finding: Finding, part: str) -> Any:
    """Return the file or the line of the marked text, if they are known."""
    return getattr(finding.location(finding.span.side), part, None)


def _highlight(finding: Finding, side: Side) -> str:
    """Return a text of a finding, in which a workbook highlights the marked part."""
    text = finding.texts.text_of(side)
    span = finding.span
    return HighlightedText(text, span.start, span.end) if side == span.side else text


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
    >>> [span.message for span in report.spans["system"][0]][0]
    'placeholder {count} is missing in the translation'
    """
    if settings is not None and fields:
        raise UsageError("give settings= or its fields, not both")
    names = CheckSettings.__dataclass_fields__
    for name in fields:
        if name not in names:
            raise UnknownNameError("setting", name, names)
    texts = as_testset(testset, sources)
    outputs = [*chain.from_iterable(texts.systems.values())]
    chosen = _detect_languages(settings or CheckSettings(**fields), texts.sources, outputs)
    spans = {system: _check_system(texts, system, chosen) for system in texts.systems}
    return CheckReport(testset=texts, settings=chosen, spans=spans)


def _detect_languages(
    settings: CheckSettings, sources: Sequence[str], outputs: Sequence[str]
) -> CheckSettings:
    """Return settings with both languages; those that are not given are detected."""
    source = settings.source_language or main_language(sources)
    target = settings.target_language
    if not target:
        target = main_language(outputs)
        target = "" if target == source else target  # untranslated, or unknown
    return replace(settings, source_language=source, target_language=target)


def _check_system(testset: TestSet, system: str, settings: CheckSettings) -> list[tuple[Span, ...]]:
    segments = testset.segments(system)
    limits = testset.columns.get(MAX_LENGTH_COLUMN, ())
    findings = _check_segments(segments, settings, limits)
    if CONSISTENCY in settings.ids and testset.sources:
        severity = settings.severity.get(CONSISTENCY, "minor")
        forms = testset.columns.get(PLURAL_COLUMN) or [""] * len(segments)
        inconsistencies = find_inconsistencies(segments, severity)
        for number, (added, form) in enumerate(zip(inconsistencies, forms, strict=True)):
            findings[number] += () if form else added
    for name, items in settings.suppress.items():
        rows = {*map(str, items)}
        for number, item in enumerate(testset.items):
            if not rows.isdisjoint((str(item), str(number + 1))):
                findings[number] = tuple(s for s in findings[number] if s.category != name)
    return findings


def _check_segments(
    segments: Sequence[Segment], settings: CheckSettings, limits: Sequence[str] = ()
) -> list[tuple[Span, ...]]:
    """Return the findings of each segment; all of them have a source, or none has.

    Consistency is not checked. `limits` are the most characters of each translation, as texts;
    other texts are no limits.
    """
    checks = [check for check in CHECKS if check.id in settings.ids]
    has_source = any(segment.source is not None for segment in segments)
    runner = CheckRunner(checks, has_source=has_source, severities=settings.severity)
    languages = settings.source_language, settings.target_language
    limit_of = dict(enumerate(limits))
    usual = settings.pair_settings

    def make_pair(number: int) -> TranslationPair:
        segment = segments[number]
        limit = limit_of.get(number, "")
        chosen = usual._replace(max_length=int(limit)) if limit.isdecimal() else usual
        return TranslationPair(segment.source or "", segment.hypothesis, *languages, chosen)

    # Pairs keep what checks compute of their texts: they are made one at a time.
    numbers = track_progress(range(len(segments)), "checks")
    return [*runner.run(make_pair(number) for number in numbers)]


def find_errors(rows: Sequence[Row]) -> list[tuple[Span, ...]]:
    """Return the findings of checks in each row; unknown languages are detected from the texts."""
    findings: list[tuple[Span, ...]] = [()] * len(rows)
    for lp, indices in group_by_pair(rows).items():
        segments = [rows[n].segment for n in indices]
        source, target = split_pair(lp)
        settings = CheckSettings(source_language=source, target_language=target)
        if not target:
            sources = [segment.source for segment in segments if segment.source]
            outputs = [segment.hypothesis for segment in segments]
            settings = _detect_languages(settings, sources, outputs)
        for n, spans in zip(indices, _check_segments(segments, settings), strict=True):
            findings[n] = spans
    return findings


def finding_kinds(spans: Sequence[Span], kinds: Sequence[str]) -> Iterator[str]:
    """Yield the ids of checks among `kinds` that have a finding, in the order of `kinds`."""
    present = {span.category for span in spans}
    return (kind for kind in kinds if kind in present)


@dataclass(frozen=True, kw_only=True)
class CheckOptions:
    """What to check.

    Attributes
    ----------
    select
        Run only these checks (default: all).
    ignore
        Do not run these checks.
    config
        Settings in the table [check] (default: tertium.toml, if it exists).
    terms
        Glossary: .csv or .tsv with the columns source, target and forbidden, or .tbx.
    do_not_translate
        Names that are copied, one per line.
    max_length
        Characters of a translation (default: any).
    """

    group: ClassVar[str] = "Metrics"
    select: Annotated[Names, Option(metavar="ID")] = ()
    ignore: Annotated[Names, Option(metavar="ID")] = ()
    config: InFile | None = None
    terms: InFile | None = None
    do_not_translate: InFile | None = None
    max_length: int | None = None

    def settings(self, texts: InputTexts) -> CheckSettings:
        """Return the settings of the file, those of options first."""
        path = self.config or find_configuration("check")
        fields: dict[str, Any] = read_settings(path) if path else {}
        options = field_values(self, "config")
        for name in ("source_language", "target_language"):
            options[name] = getattr(texts, name)
        if self.do_not_translate:
            options["do_not_translate"] = read_names(self.do_not_translate)
        fields |= {name: value for name, value in options.items() if value}
        return CheckSettings(**fields)


def check_files(
    files: InFiles = (),
    /,
    *,
    texts: TextFiles,
    checks: CheckOptions,
    output: Output,
    copies: WriteBack,
    display: Display,
    summary: Annotated[bool, Option(group="Output")] = False,
    fail_on: Annotated[Literal["minor", "major", "critical"] | None, Option(group="Output")] = None,
) -> View:
    """Find errors in translations without a model: placeholders, tags, numbers and more.

    Parameters
    ----------
    files
        Translations, as with -t.
    summary
        Print the number of findings of each check.
    fail_on
        Exit with 1 if a finding is as severe as this (default: never).

    Examples
    --------
    tertium check -s source.txt -t ours.txt
    tertium check -s source.txt -t ours.txt --select placeholders tags numbers --fail-on major
    tertium check app.xliff -o findings.sarif findings.xlsx
    tertium list checks

    Notes
    -----
    Settings are read from the table [check] of tertium.toml in the current folder (or from
    [tool.tertium.check] of pyproject.toml), or of --config FILE. Options take precedence.
    """
    paths = output.paths(CheckReport)
    texts = replace(texts, translations=(*files, *texts.translations))
    copies.check(texts.translations)
    checked = texts.read(keep_untranslated=True)
    report = check(checked.testset, settings=checks.settings(checked))
    report = replace(report, locate=checked.locate())
    if copies.write_back:
        write_back(checked.to_project(), report, copies.write_back)
    table = report.finding_table()
    is_blank = not (summary or table.rows) and display.format in ("text", "md", "latex")
    is_failed = fail_on is not None and report.has_severity(fail_on)
    return View(
        result=report,
        printed=report.tables() if summary else [table],
        table=report.tables()[0] if summary else table,
        json=report.records(with_findings=not summary),
        warnings=_notes(checked, report, shares=not summary and display.format == "text"),
        bare="" if is_blank else None,
        warns_aside=True,
        code=int(is_failed),
        files=[(report, path) for path in paths],
    )


def list_checks() -> Listing:
    """List all checks with their severity.

    Examples
    --------
    tertium list checks

    Notes
    -----
    `tertium check` runs them, and the metric checks counts what they find.
    """
    columns = [
        Column("check", "id"),
        Column("severity"),
        Column("languages"),
        Column("description", "sentence"),
    ]
    return Listing(table=Table(columns, RULES))


def _notes(texts: InputTexts, report: CheckReport, *, shares: bool) -> list[str]:
    """Return detected languages, what was not checked and the shares of clean segments."""
    notes: list[str] = []
    for side in ("source_language", "target_language"):
        language = getattr(report.settings, side)
        if language and not getattr(texts, side):
            notes.append(f"{side.replace('_', ' ')}: {language}")
    if not report.testset.sources:
        notes.append("no sources (-s): only checks of the translation alone were run")
    for system in report.spans if shares else ():
        share = f"{100 * report.clean_share(system):.1f} %"
        count = sum(map(len, report.spans[system]))
        notes.append(f"{system}: {count} findings, {share} of segments are clean")
    return notes
