"""How commands print: tables on stdout in the format asked for, JSON with full numbers."""

from __future__ import annotations

import argparse
import json
import shutil
import sys
from collections.abc import Sequence
from typing import Any

from tertium.data.formats import without_nan, write_atomically
from tertium.report.tables import Format, Table, render

FORMATS = ("text", "json", "tsv", "md", "latex")
NOTED = ("text", "md", "latex")  # formats with notes below a table, warnings among them
MOST_DECIMALS = 17  # all that a double holds


def add_output(parser: argparse.ArgumentParser) -> argparse._ArgumentGroup:
    """Add -f, -w, -q and --to-json."""
    group = parser.add_argument_group("output")
    group.add_argument("-f", "--format", choices=FORMATS, default="text", help="default: text")
    group.add_argument(
        "-w", "--width", type=_decimals, metavar="N",
        help="decimals in tables (default: by metric)",
    )  # fmt: skip
    group.add_argument("--to-json", metavar="FILE", help="also write everything as JSON")
    group.add_argument("--report", metavar="FILE", help="also write a report, one HTML page")
    group.add_argument("-q", "--quiet", action="store_true", help="no progress, no warnings")
    return group


def _decimals(text: str) -> int:
    if not text.isdecimal() or int(text) > MOST_DECIMALS:
        raise argparse.ArgumentTypeError(f"{text!r} is no number of decimals, 0 to {MOST_DECIMALS}")
    return int(text)


def print_table(table: Table, style: Format, *, first: bool = True) -> None:
    """Print a table, the first or one more; on a terminal in its width and with colour."""
    terminal = sys.stdout.isatty()
    width = shutil.get_terminal_size().columns if terminal else None
    if style == "md" and not first:
        sys.stdout.write("\n")
    sys.stdout.write(render(table, style, width=width, color=terminal and style == "text"))


def print_warnings(lines: Sequence[str], quiet: bool) -> None:
    """Print warnings to stderr, where a format has no place for them."""
    for line in () if quiet else lines:
        print(f"tertium: {line}", file=sys.stderr)


def to_json(value: Any) -> str:
    """JSON with full numbers; a missing number is null, since JSON has no NaN."""
    return json.dumps(without_nan(value), ensure_ascii=False, indent=1, allow_nan=False) + "\n"


def print_records(records: Sequence[dict[str, Any]]) -> None:
    """Print records as JSON: a lone one as an object, as sacrebleu does, several as a list."""
    sys.stdout.write(to_json(records[0] if len(records) == 1 else list(records)))


def write_json(path: str, value: Any) -> None:
    """Write JSON to a file, whole or not at all."""
    write_atomically(path, [to_json(value)])
