"""How commands print: tables on stdout in the format asked for, JSON with full numbers."""

from __future__ import annotations

import argparse
import json
import os
import shutil
import stat
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tertium.atomic import check_writable, write_text
from tertium.data.formats import null_missing
from tertium.errors import UsageError
from tertium.reporting.tables.table import Format, Table, render, show_controls

if TYPE_CHECKING:
    from tertium.reporting.page.page import Report

FORMATS = ("text", "json", "tsv", "md", "latex")
NOTED = ("text", "md", "latex")  # formats with notes below a table, warnings among them
# the options, of all commands, that name files to write and to read
OUTPUTS = {"output": "-o", "to_json": "--to-json", "report": "--report", "plot": "--plot"}
OUTPUTS |= {"spans": "--spans"}  # a file to write under `score`; `meta` reads a list of such
INPUTS = "translations sources references documents human scores curves ceiling".split()
INPUTS += ["challenge", "sets"]  # which may be files
MOST_DECIMALS = 17  # all that a double holds


def add_output(
    parser: argparse.ArgumentParser, places: int | None = None
) -> argparse._ArgumentGroup:
    """Add -f, -w, -q and --to-json; tables show so many places, or as many as a metric says."""
    group = parser.add_argument_group("output")
    group.add_argument("-f", "--format", choices=FORMATS, default="text", help="default: text")
    group.add_argument(
        "-w",
        "--width",
        type=decimals,
        default=places,
        metavar="N",
        help=f"decimals in tables (default: {'by metric' if places is None else places})",
    )
    group.add_argument("--to-json", metavar="FILE", help="also write everything as JSON")
    group.add_argument("--report", metavar="FILE", help="also write a report, one HTML page")
    group.add_argument("-q", "--quiet", action="store_true", help="no progress, no warnings")
    return group


def check_outputs(args: argparse.Namespace) -> None:
    """Refuse, before the work, files that cannot be written or that would replace another's."""
    given = {option: getattr(args, name, None) for name, option in OUTPUTS.items()}
    outputs = {option: path for option, path in given.items() if path and isinstance(path, str)}
    for option, path in outputs.items():
        if path == "-":
            raise UsageError(
                f"{option} -: no file; give its name, or /dev/stdout where any ending will do"
            )
        check_writable(path)
        for other, name in outputs.items():
            if other != option and _are_one_file(path, name):
                raise UsageError(f"{option} and {other} both name {path}: give two files")
        if any(_are_one_file(path, name) for name in _inputs(args)):
            raise UsageError(f"{option} {path}: this file is read here; give another one")


def _inputs(args: argparse.Namespace) -> list[str]:
    found: list[str] = []
    for name in INPUTS:
        value = getattr(args, name, None) or []
        found += [value] if isinstance(value, str) else value
    labels = [given.partition("=")[2] for given in getattr(args, "by", ())]  # of --by NAME=FILE
    return found + [file for file in labels if file]


def _are_one_file(one: str, other: str) -> bool:
    """Whether two names lead to one regular file, there or to be made; devices have no content."""
    with suppress(OSError):
        there = [Path(name).stat() for name in (one, other)]
        return os.path.samestat(*there) and stat.S_ISREG(there[0].st_mode)
    return os.path.realpath(one) == os.path.realpath(other)


def decimals(text: str) -> int:
    """How many places -w asks for."""
    if not text.isdecimal() or int(text) > MOST_DECIMALS:
        raise argparse.ArgumentTypeError(f"{text!r} is no number of decimals, 0 to {MOST_DECIMALS}")
    return int(text)


def print_table(table: Table, style: Format, *, first: bool = True) -> None:
    """Print a table, the first or one more; on a terminal in its width and with colour.

    A blank line parts a further one from the notes of the last, where it does not begin with one.
    """
    terminal = sys.stdout.isatty()
    width = shutil.get_terminal_size().columns if terminal else None
    if not first and (style == "md" or (style == "text" and table.title)):
        sys.stdout.write("\n")
    color = terminal and style == "text" and os.environ.get("TERM") != "dumb"
    sys.stdout.write(render(table, style, width=width, color=color))


def print_warnings(lines: Sequence[str], quiet: bool) -> None:
    """Print warnings to stderr, where a format has no place for them."""
    for line in () if quiet else lines:
        print(show_controls(f"tertium: {line}"), file=sys.stderr)


def to_json(value: Any) -> str:
    """JSON with full numbers; a missing number is null, since JSON has no NaN."""
    return json.dumps(null_missing(value), ensure_ascii=False, indent=1, allow_nan=False) + "\n"


def print_records(records: Sequence[dict[str, Any]]) -> None:
    """Print records as JSON: a lone one as an object, as sacrebleu does, several as a list."""
    sys.stdout.write(to_json(records[0] if len(records) == 1 else list(records)))


def print_result(records: Sequence[dict[str, Any]], table: Table, style: str) -> None:
    """Print records where JSON was asked for, else the table."""
    if style == "json":
        print_records(records)
    else:
        print_table(table, style)  # type: ignore[arg-type]


def write_json(path: str, value: Any) -> None:
    """Write JSON to a file, whole or not at all."""
    write_text(path, to_json(value))


def write_report(path: str, report: Report, quiet: bool) -> None:
    """Write a page and say where it is."""
    report.write(path)
    if not quiet:
        size = Path(path).stat().st_size / 1e6
        print(f"tertium: wrote {path} ({size:.1f} MB)", file=sys.stderr)
