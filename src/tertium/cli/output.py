"""Options for output, and printing: tables in the requested format, JSON, warnings, files."""

from __future__ import annotations

import argparse
import os
import shutil
import stat
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tertium.atomic import check_writable, write_text
from tertium.cli.parser import CommandParser
from tertium.core.result import Result, Table
from tertium.data.record_files import to_json as to_json
from tertium.errors import UsageError
from tertium.output.render import TableFormat, render_contents
from tertium.text.control_characters import replace_control_characters

if TYPE_CHECKING:
    from tertium.output.page.report import Report

FORMATS = ("text", "json", "tsv", "md", "latex")
FORMATS_WITH_NOTES = ("text", "md", "latex")  # warnings are printed below the table
WRITE_BACK = "--write-back"  # the only one that may name a folder
# Options of all commands that name files to write, by destination.
OUTPUT_OPTIONS = {
    "output": "-o",
    "to_json": "--to-json",
    "to_spans": "--to-spans",
    "to_xlsx": "--to-xlsx",
    "report": "--report",
    "plot": "--plot",
    "write_back": WRITE_BACK,
    "junit": "--junit",
    "sarif": "--sarif",
    "markdown": "--markdown",
    "links": "--links",
}
# Destinations of options that may name files to read.
INPUT_OPTIONS = (
    "translations sources references documents human scores spans human_baseline challenge "
    "sets terms do_not_translate config baseline candidate pilot campaign answers "
    "instructions database"
).split()
MAX_DECIMALS = 17  # the precision of a double


def add_format(
    parser: CommandParser, formats: Sequence[str] = FORMATS, about: str = "output format"
) -> None:
    """Add -f."""
    parser.groups["Output"].add_argument(
        "-f", "--format", choices=formats, default="text", help=f"{about} (default: text)"
    )


def add_quiet(parser: CommandParser) -> None:
    """Add -q."""
    parser.groups["Output"].add_argument(
        "-q", "--quiet", action="store_true", help="no progress bars, no warnings"
    )


def add_width(parser: CommandParser, default: int | None = None) -> None:
    """Add -w; without a default, each metric has its own number of decimals."""
    default_text = "by metric" if default is None else default
    parser.groups["Output"].add_argument(
        "-w",
        "--width",
        type=parse_decimals,
        default=default,
        metavar="N",
        help=f"number of decimals in tables (default: {default_text})",
    )


def add_output(
    parser: CommandParser,
    decimals: int | None = None,
    formats: Sequence[str] = FORMATS,
    report: bool = True,
) -> None:
    """Add -f, -w, -q, --to-json and, unless it is excluded, --report."""
    add_format(parser, formats)
    add_width(parser, decimals)
    group = parser.groups["Output"]
    group.add_argument("--to-json", metavar="FILE", help="also write all results as JSON")
    if report:
        group.add_argument("--report", metavar="FILE", help="also write an HTML report")
    add_quiet(parser)


def check_outputs(args: argparse.Namespace) -> None:
    """Check before the work that output files can be written and replace no input."""
    values = {option: getattr(args, name, None) or [] for name, option in OUTPUT_OPTIONS.items()}
    outputs = [
        (option, path)
        for option, paths in values.items()
        for path in ([paths] if isinstance(paths, str) else paths)
    ]
    for n, (option, path) in enumerate(outputs):
        if path == "-":
            raise UsageError(f"{option} -: expected a file name; use /dev/stdout for stdout")
        if option != WRITE_BACK or not Path(path).is_dir():
            check_writable(path)
        for other_option, other_path in outputs[n + 1 :]:
            if _is_same_file(path, other_path):
                raise UsageError(f"{option} and {other_option} both write {path}: give two files")
        if any(_is_same_file(path, name) for name in _input_files(args)):
            raise UsageError(f"{option} {path} is also an input file: give another name")


def _input_files(args: argparse.Namespace) -> list[str]:
    files: list[str] = []
    for name in INPUT_OPTIONS:
        value = getattr(args, name, None) or []
        files += [value] if isinstance(value, str) else value
    labels = [column.partition("=")[2] for column in getattr(args, "by", ())]  # --by NAME=FILE
    return files + [file for file in labels if file]


def _is_same_file(first: str, second: str) -> bool:
    """Whether two paths are the same regular file, existing or not; devices do not count."""
    with suppress(OSError):
        stats = [Path(name).stat() for name in (first, second)]
        return os.path.samestat(*stats) and stat.S_ISREG(stats[0].st_mode)
    return os.path.realpath(first) == os.path.realpath(second)


def parse_decimals(text: str) -> int:
    """Parse the value of -w."""
    if not text.isdecimal() or int(text) > MAX_DECIMALS:
        raise argparse.ArgumentTypeError(
            f"{text!r} is not a number of decimals, expected 0 to {MAX_DECIMALS}"
        )
    return int(text)


def show(args: argparse.Namespace, *parts: Any, records: Sequence[Any] | None = None) -> None:
    """Print results, tables and texts in the format of -f, with the decimals of -w.

    JSON has `records`, by default those of the results. TSV has the table of each result's files.
    """
    if args.format == "json":
        print_records(_join_records(parts) if records is None else records)
        return
    contents: list[Any] = []
    for part in parts:
        if not isinstance(part, Result):
            contents.append(part)
        elif args.format == "tsv":
            contents.append(part.file_table(".tsv"))
        else:
            contents += part.contents()
    print_contents(contents, args.format, decimals=getattr(args, "width", None))


def _join_records(results: Sequence[Result]) -> list[Any]:
    joined: list[Any] = []
    for result in results:
        records = result.records()
        joined += records if isinstance(records, list) else [records]
    return joined


def print_contents(
    contents: Sequence[Any], style: TableFormat, *, decimals: int | None = None
) -> None:
    """Print tables and texts, on a terminal in its width and with color."""
    terminal = sys.stdout.isatty()
    width = shutil.get_terminal_size().columns if terminal else None
    color = terminal and style == "text" and os.environ.get("TERM") != "dumb"
    parts = [p.with_decimals(decimals) if isinstance(p, Table) else p for p in contents]
    sys.stdout.write(render_contents(parts, style, width=width, color=color))


def print_warnings(lines: Sequence[str], quiet: bool) -> None:
    """Print warnings to stderr."""
    for line in () if quiet else lines:
        print(replace_control_characters(f"tertium: {line}"), file=sys.stderr)


def print_records(records: Sequence[Any]) -> None:
    """Print records as JSON: a single one as an object, as sacrebleu does, several as a list."""
    sys.stdout.write(to_json(records[0] if len(records) == 1 else records))


def write_json(path: str, value: Any) -> None:
    """Write JSON to a file, atomically."""
    write_text(path, to_json(value))


def write_report(path: str, report: Report, quiet: bool) -> None:
    """Write an HTML report, whatever the name, and print its path to stderr."""
    from tertium.output import html

    html.write(report, path)
    if not quiet:
        size = Path(path).stat().st_size / 1e6
        print(f"tertium: wrote {path} ({size:.1f} MB)", file=sys.stderr)
