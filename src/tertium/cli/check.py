"""`tertium check`: errors that can be found without a model, such as lost placeholders."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING, Any

from tertium.cli import inputs, output
from tertium.cli.localization import add_write_back, check_write_back_option, write_back_result
from tertium.cli.parser import CommandParser, add_list
from tertium.cli.runtime import progress_bars
from tertium.core.result import Table
from tertium.errors import UsageError
from tertium.output.tables.table import Cell, cell_table

if TYPE_CHECKING:
    from tertium.checks.configuration import CheckSettings
    from tertium.evaluation.checking import CheckReport

FAIL_ON = ("minor", "major", "critical")
FINDINGS_EXIT_CODE = 3
SETTINGS_FILE = "tertium.toml"
CHECK_OPTIONS = "source_language target_language select ignore terms max_length".split()
MAX_SHOWN = 32  # characters of the marked text in a table

DESCRIPTION = "Find errors in translations without a model: placeholders, tags, numbers and more."
EPILOG = f"""\
examples:
  tertium check -s source.txt -t ours.txt
  tertium check -s source.txt -t ours.txt --select placeholders tags numbers --fail-on major
  tertium check -s source.txt -t ours.txt -f sarif > findings.sarif
  tertium check --list-checks

Settings are read from the table [check] of {SETTINGS_FILE} in the current folder (or from
[tool.tertium.check] of pyproject.toml), or of --config FILE. Options take precedence. The exit
code is {FINDINGS_EXIT_CODE} if a finding is as severe as --fail-on.
"""


def add_arguments(parser: CommandParser) -> None:
    inputs.add_translations(parser, required=False)
    parser.set_defaults(references=[], documents=None)
    inputs.add_languages(parser)
    group = parser.groups["Metrics"]
    add_list(group, "--select", metavar="ID", help="run only these checks (default: all)")
    add_list(group, "--ignore", metavar="ID", help="do not run these checks")
    group.add_argument(
        "--config",
        metavar="FILE",
        help=f"settings in the table [check] (default: {SETTINGS_FILE}, if it exists)",
    )
    group.add_argument(
        "--terms",
        metavar="FILE",
        help="glossary: .csv or .tsv with the columns source, target and forbidden, or .tbx",
    )
    group.add_argument(
        "--do-not-translate", metavar="FILE", help="names that are copied, one per line"
    )
    group.add_argument(
        "--max-length", type=int, metavar="N", help="characters of a translation (default: any)"
    )
    output.add_format(parser, (*output.FORMATS, "sarif"))
    group = parser.groups["Output"]
    group.add_argument(
        "--summary", action="store_true", help="print the number of findings of each check"
    )
    add_list(
        group,
        "-o",
        "--output",
        metavar="FILE",
        help="also write findings: .xlsx, .html, .sarif, .tsv, .csv, .jsonl, .parquet",
    )
    group.add_argument(
        "--fail-on",
        choices=FAIL_ON,
        help=f"exit with {FINDINGS_EXIT_CODE} if a finding is as severe as this (default: never)",
    )
    add_write_back(parser)
    group.add_argument("--list-checks", action="store_true", help="list all checks and exit")
    output.add_quiet(parser)


def run(args: argparse.Namespace) -> int:
    from tertium.evaluation.checking import check
    from tertium.output.findings import check_findings_file, write_findings

    if args.list_checks:
        is_table = args.format not in ("json", "sarif")
        output.print_table(_list_checks(), args.format if is_table else "tsv")
        return 0
    if not args.translations:
        raise UsageError("-t is missing: give system outputs, or --list-checks")
    output.check_outputs(args)
    for path in args.output:
        check_findings_file(path)
    check_write_back_option(args)
    testset = inputs.read_inputs(args, keep_untranslated=True)
    settings = read_check_settings(args)
    with progress_bars(args.quiet):
        report = check(testset, settings=settings)
    for path in args.output:
        write_findings(report, path, inputs.locate_segments(args, testset))
    write_back_result(args, report)
    _print_report(args, report)
    _print_notes(args, report)
    is_failed = args.fail_on is not None and report.has_severity(args.fail_on)
    return FINDINGS_EXIT_CODE if is_failed else 0


def read_check_settings(args: argparse.Namespace) -> CheckSettings:
    """Read the settings of checks: those options that a command has, and `tertium.toml`."""
    from tertium.checks.configuration import CheckSettings, read_names, read_settings
    from tertium.data.configuration import find_configuration

    path = getattr(args, "config", None) or find_configuration("check")
    fields = read_settings(path) if path else {}
    for name in CHECK_OPTIONS:
        if value := getattr(args, name, None):
            fields[name] = tuple(value) if isinstance(value, list) else value
    if getattr(args, "do_not_translate", None):
        fields["do_not_translate"] = read_names(args.do_not_translate)
    return CheckSettings(**fields)


def _print_report(args: argparse.Namespace, report: CheckReport) -> None:
    from tertium.evaluation.checking import FINDING_COLUMNS
    from tertium.output.tables.findings import finding_counts

    rows = [*report.rows()]

    if args.format == "sarif":
        from tertium.output.sarif import check_results, check_rules, sarif_log

        locate = inputs.locate_segments(args, report.testset)
        sys.stdout.write(output.to_json(sarif_log(check_results(report, locate), check_rules())))
    elif args.format == "json":
        systems = {
            system: {
                "clean": report.clean_share(system),
                "penalty": report.penalty(system),
                "counts": report.counts(system),
            }
            for system in report.findings
        }
        settings = report.settings
        record: dict[str, Any] = {
            "source_language": settings.source_language,
            "target_language": settings.target_language,
            "systems": systems,
        }
        if not args.summary:
            record["findings"] = [dict(zip(FINDING_COLUMNS, row, strict=True)) for row in rows]
        output.print_records([record])
    elif args.summary:
        output.print_table(finding_counts(report), args.format)
    elif args.format == "tsv" or rows:
        output.print_table(_list_findings(report, rows, args.format), args.format)


def _list_findings(report: CheckReport, rows: list[tuple[Any, ...]], style: str) -> Table:
    from tertium.evaluation.checking import FINDING_COLUMNS

    if style == "tsv":
        columns = [*range(len(FINDING_COLUMNS))]
    else:
        columns = [1, 2, 3, 7, 8] if len(report.findings) == 1 else [0, 1, 2, 3, 7, 8]
    cells: list[list[Cell | str]] = [
        [_make_cell(row[n], shorten=n == 7 and style == "text") for n in columns] for row in rows
    ]
    header = [FINDING_COLUMNS[n] for n in columns]
    return cell_table(header, cells, text_columns=frozenset(range(len(columns))))


def _make_cell(value: str | int, *, shorten: bool) -> Cell | str:
    if not isinstance(value, str):
        return Cell(str(value), value)
    return value if not shorten or len(value) <= MAX_SHOWN else f"{value[: MAX_SHOWN - 1]}…"


def _print_notes(args: argparse.Namespace, report: CheckReport) -> None:
    settings = report.settings
    notes = []
    for side in ("source", "target"):
        if not getattr(args, f"{side}_language") and getattr(settings, f"{side}_language"):
            notes.append(f"{side} language: {getattr(settings, f'{side}_language')}")
    if not report.testset.sources:
        notes.append("no sources (-s): only checks of the translation alone were run")
    for system in report.findings if not args.summary and args.format == "text" else ():
        share = f"{100 * report.clean_share(system):.1f} %"
        count = sum(map(len, report.findings[system]))
        notes.append(f"{system}: {count} findings, {share} of segments are clean")
    output.print_warnings(notes, args.quiet)


def _list_checks() -> Table:
    from tertium.checks.catalog import CHECKS
    from tertium.checks.terminology import (
        CONSISTENCY,
        CONSISTENCY_SENTENCE,
        CONSISTENCY_SEVERITY,
    )

    rows: list[list[Cell | str]] = [
        [check.id, check.severity, check.languages, check.sentence] for check in CHECKS
    ]
    rows.append([CONSISTENCY, CONSISTENCY_SEVERITY, "all", CONSISTENCY_SENTENCE])
    header = ["check", "severity", "languages", "description"]
    return cell_table(header, rows, text_columns=frozenset(range(4)))
