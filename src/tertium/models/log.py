"""The learning log: one row for each epoch, as a table a person can read and a program can plot."""

from __future__ import annotations

import csv
import dataclasses
import io
from collections.abc import Sequence
from pathlib import Path

from tertium.atomic import write_text
from tertium.models.options import Epoch

COLUMNS = tuple(field.name for field in dataclasses.fields(Epoch))


def write_log(file: Path, epochs: Sequence[Epoch]) -> None:
    """Replace the log."""
    text = io.StringIO()
    writer = csv.writer(text, delimiter="\t", lineterminator="\n")
    writer.writerow(COLUMNS)
    for epoch in epochs:
        writer.writerow([getattr(epoch, column) for column in COLUMNS])
    write_text(file, text.getvalue(), make_folder=True)


def read_log(file: Path) -> list[Epoch]:
    """The epochs of a log; none where there is no file."""
    if not file.is_file():
        return []
    with file.open(encoding="utf-8", newline="") as stream:
        return [
            Epoch(
                stage=row["stage"],
                number=int(row["number"]),
                loss=float(row["loss"]),
                dev=float(row["dev"]),
                seconds=float(row["seconds"]),
                best=row["best"] == "True",
            )
            for row in csv.DictReader(stream, delimiter="\t")
        ]
