"""`tertium data`: what human judgments there are, and what is in each set."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from tertium.cli.output import FORMATS, print_table, to_json
from tertium.cli.runtime import bars
from tertium.data.collection import VARIABLE, Collection
from tertium.errors import DataError, UsageError
from tertium.reporting.tables.table import Cell, Table, number
from tertium.runtime import track

HELP = "list human judgments, or describe one set"
DESCRIPTION = "List the sets of human judgments in a folder, or describe one."
EPILOG = f"""\
The folder is --data or, by default, what {VARIABLE} names. Sets are found by their layout.

examples:
  tertium data --data judgments/
  tertium data rankings/wmt12
  tertium data da/wmt17 -f json
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("set", nargs="?", help="a set to describe")
    parser.add_argument("--data", metavar="DIR", help=f"the folder (default: {VARIABLE})")
    parser.add_argument("-f", "--format", choices=FORMATS, default="text")
    parser.add_argument("-q", "--quiet", action="store_true", help="no progress")


def run(args: argparse.Namespace) -> int:
    from tertium.data.overview import describe, summarize

    collection = Collection.at(args.data)
    if not collection.sets:
        raise DataError(
            f"{collection.root}: no sets of human judgments; "
            "docs/human-judgments.md shows how they lie"
        )
    with bars(args.quiet):
        if args.set:
            entry = collection.find(_name_in(collection, args.set))
            records = describe(collection, entry)
            title = f"{entry.name} ({entry.kind})"
            notes = [entry.purpose] if entry.purpose else []
        else:
            records = [summarize(collection, s) for s in track(collection.sets, "reading")]
            count = f"{len(records)} set{'s' * (len(records) != 1)}"
            title, notes = f"{count} in {collection.root}", []
    if args.format == "json":  # a list however many there are
        sys.stdout.write(to_json(records))
    else:
        print_table(as_table(records, title, notes), args.format)
    return 0


def _name_in(collection: Collection, given: str) -> str:
    """The name of a set; of a path that lies in the collection, what follows its folder."""
    name, path, root = given.rstrip("/"), Path(given).resolve(), collection.root.resolve()
    known = [entry.name for entry in collection.sets]
    if name in known or not path.exists():
        return name
    if path.is_relative_to(root):
        inside = path.relative_to(root).as_posix()
        holders = [one for one in known if inside.startswith(f"{one}/")]
        if holders and inside not in known:
            raise UsageError(f"{given} is a part of a set: `tertium data {max(holders, key=len)}`")
        return inside
    raise UsageError(
        f"{given} is no part of {collection.root}, of which sets are described: `tertium meta "
        "--human` and `tertium train --train` read it as it is, --data names another folder"
    )


def as_table(records: list[dict[str, Any]], title: str, notes: list[str]) -> Table:
    """Records as a table: texts to the left, numbers to the right, a dash for what is unknown."""
    header = list(records[0]) if records else []
    left = frozenset(
        n for n, key in enumerate(header) if not isinstance(records[0][key], int | float)
    )
    rows = [[_cell(record[key]) for key in header] for record in records]
    return Table(header, rows, title=title, notes=notes, left=left)


def _cell(value: Any) -> Cell:
    if isinstance(value, float):
        return number(value, 3)
    if isinstance(value, list | tuple):
        return Cell(" ".join(value), " ".join(value))
    if isinstance(value, int):
        return Cell(f"{value:,}", value)
    return Cell(str(value), value)
