"""`tertium check`: errors that can be found without a model, such as lost placeholders."""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace
from typing import TYPE_CHECKING

from tertium.cli import inputs, output
from tertium.cli.localization import add_write_back, check_write_back_option, write_back_result
from tertium.cli.parser import CommandParser, add_list
from tertium.cli.runtime import progress_bars
from tertium.core.result import Column, Table
from tertium.errors import UsageError

if TYPE_CHECKING:
    from tertium.checks.configuration import CheckSettings
    from tertium.evaluation.checking import CheckReport

FAIL_ON = ("minor", "major", "critical")
FINDINGS_EXIT_CODE = 3
SETTINGS_FILE = "tertium.toml"
CHECK_OPTIONS = "source_language target_language select ignore terms max_length".split()

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
    from tertium.evaluation.checking import CheckReport, check

    if args.list_checks:
        is_table = args.format not in ("json", "sarif")
        output.print_contents([_list_checks()], args.format if is_table else "tsv")
        return 0
    if not args.translations:
        raise UsageError("-t is missing: give system outputs, or --list-checks")
    CheckReport.check_paths(*args.output)
    output.check_outputs(args)
    check_write_back_option(args)
    testset = inputs.read_inputs(args, keep_untranslated=True)
    settings = read_check_settings(args)
    with progress_bars(args.quiet):
        report = check(testset, settings=settings)
    report = replace(report, locate=inputs.locate_segments(args, testset))
    report.write(*args.output)
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
    if args.format == "sarif":
        from tertium.data.record_files import to_json
        from tertium.output.sarif import make_log

        sys.stdout.write(to_json(make_log(report)))
        return
    tables = report.tables()
    if not args.summary:
        table = report.finding_table(shorten=args.format == "text")
        tables = [table] if args.format == "tsv" or table.rows else []
    output.show(args, *tables, records=[report.records(with_findings=not args.summary)])


def _print_notes(args: argparse.Namespace, report: CheckReport) -> None:
    settings = report.settings
    notes = []
    for side in ("source", "target"):
        if not getattr(args, f"{side}_language") and getattr(settings, f"{side}_language"):
            notes.append(f"{side} language: {getattr(settings, f'{side}_language')}")
    if not report.testset.sources:
        notes.append("no sources (-s): only checks of the translation alone were run")
    for system in report.spans if not args.summary and args.format == "text" else ():
        share = f"{100 * report.clean_share(system):.1f} %"
        count = sum(map(len, report.spans[system]))
        notes.append(f"{system}: {count} findings, {share} of segments are clean")
    output.print_warnings(notes, args.quiet)


def _list_checks() -> Table:
    from tertium.checks.catalog import RULES

    columns = [
        Column("check", "id"),
        Column("severity"),
        Column("languages"),
        Column("description", "sentence"),
    ]
    return Table(columns, RULES)
