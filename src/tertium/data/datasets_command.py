"""The command `list data`: the sets of human judgments in a folder, or one of them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from tertium.core.errors import DataError, UsageError
from tertium.core.options import Option
from tertium.core.result import Column, Listing, Table, format_number
from tertium.core.runtime import track_progress
from tertium.data.dataset_folder import DatasetFolder
from tertium.data.dataset_summaries import describe_dataset, summarize_dataset


def list_datasets(
    name: Annotated[str | None, Option(metavar="SET")] = None,
    /,
    *,
    data: Annotated[str | None, Option(metavar="DIR", group="Input")] = None,
) -> Listing:
    """List the sets of human judgments in a folder, or describe one of them.

    Parameters
    ----------
    name
        Set to describe (default: list all).
    data
        Folder of human judgments (default: $TERTIUM_DATA).

    Examples
    --------
    tertium list data --data judgments/
    tertium list data rankings/wmt12
    tertium list data da/wmt17 -f json
    """
    folder = DatasetFolder.open(data)
    if not folder.sets:
        raise DataError(
            f"{folder.root}: no sets of human judgments found; see "
            "docs/meta-evaluation/human-judgments.md for the expected files"
        )
    if name:
        entry = folder.find(_set_name(folder, name))
        records = describe_dataset(folder, entry)
        title = f"{entry.name} ({entry.kind})"
    else:
        sets = track_progress(folder.sets, "reading")
        records = [summarize_dataset(folder, entry) for entry in sets]
        title = f"{len(records)} set{'s' * (len(records) != 1)} in {folder.root}"
    columns = [_make_column(*item) for item in records[0].items()] if records else []
    return Listing(table=Table(columns, records, title), json=records)


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
            parent = max(parents, key=len)
            raise UsageError(f"{name_or_path} is part of a set: use `tertium list data {parent}`")
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
