"""`tertium data`: list sets of human judgments, or describe one."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from tertium.cli.output import add_format, add_quiet, show
from tertium.cli.parser import CommandParser
from tertium.cli.runtime import progress_bars
from tertium.core.result import Column, Table, format_number
from tertium.data.dataset_folder import DATA_VARIABLE, DatasetFolder
from tertium.errors import DataError, UsageError
from tertium.execution import track_progress

DESCRIPTION = "List the sets of human judgments in a folder, or describe one of them."
EPILOG = """\
examples:
  tertium data --data judgments/
  tertium data rankings/wmt12
  tertium data da/wmt17 -f json
"""


def add_arguments(parser: CommandParser) -> None:
    group = parser.groups["Input"]
    group.add_argument("set", nargs="?", metavar="SET", help="set to describe (default: list all)")
    group.add_argument(
        "--data", metavar="DIR", help=f"folder of human judgments (default: ${DATA_VARIABLE})"
    )
    add_format(parser)
    add_quiet(parser)


def run(args: argparse.Namespace) -> int:
    from tertium.data.dataset_summaries import describe_dataset, summarize_dataset

    folder = DatasetFolder.open(args.data)
    if not folder.sets:
        raise DataError(
            f"{folder.root}: no sets of human judgments found; see "
            "docs/meta-evaluation/human-judgments.md for the expected files"
        )
    with progress_bars(args.quiet):
        if args.set:
            entry = folder.find(_set_name(folder, args.set))
            records = describe_dataset(folder, entry)
            title = f"{entry.name} ({entry.kind})"
        else:
            sets = track_progress(folder.sets, "reading")
            records = [summarize_dataset(folder, entry) for entry in sets]
            count = f"{len(records)} set{'s' * (len(records) != 1)}"
            title = f"{count} in {folder.root}"
    columns = [_make_column(name, value) for name, value in records[0].items()] if records else []
    # JSON is always a list
    show(args, Table(columns, records, title), records=[records])
    return 0


def _set_name(folder: DatasetFolder, name_or_path: str) -> str:
    """Return the name of a set, given its name or its path."""
    name, path = name_or_path.rstrip("/"), Path(name_or_path).resolve()
    root = folder.root.resolve()
    names = [entry.name for entry in folder.sets]
    if name in names or not path.exists():
        return name
    if path.is_relative_to(root):
        relative = path.relative_to(root).as_posix()
        parents = [parent for parent in names if relative.startswith(f"{parent}/")]
        if parents and relative not in names:
            raise UsageError(
                f"{name_or_path} is part of a set: use `tertium data {max(parents, key=len)}`"
            )
        return relative
    raise UsageError(
        f"{name_or_path} is not in {folder.root}: choose another folder with --data; `tertium meta "
        "--human` and `tertium train --train` read such a file directly"
    )


def _make_column(name: str, example: Any) -> Column:
    """Return a column of records: text aligned left, numbers right."""

    def get(record: dict[str, Any]) -> Any:
        value = record[name]
        return " ".join(value) if isinstance(value, list | tuple) else value

    def text(record: dict[str, Any], _: int) -> str:
        value = get(record)
        if isinstance(value, float):
            return format_number(value, 3)
        return f"{value:,}" if isinstance(value, int) else str(value)

    return Column(name, get, 0 if isinstance(example, int | float) else None, text=text)
