"""The command `check`: errors that can be found without a model, such as lost placeholders."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar, Literal

from tertium.checks.catalog import RULES
from tertium.checks.check_settings import CheckSettings, read_names, read_settings
from tertium.core.options import Display, InFile, InFiles, Names, Option, Output
from tertium.core.result import Column, Listing, Table, View
from tertium.data.toml_tables import find_configuration
from tertium.evaluation.checking import CheckReport, check
from tertium.evaluation.writing_back import write_back
from tertium.files.text_inputs import InputTexts, TextFiles, WriteBack


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
        options = {
            "source_language": texts.source_language,
            "target_language": texts.target_language,
            "select": self.select,
            "ignore": self.ignore,
            "terms": self.terms,
            "max_length": self.max_length,
            "do_not_translate": read_names(self.do_not_translate) if self.do_not_translate else (),
        }
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
