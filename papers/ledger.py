"""Measured figures kept on disk, one file a table, so that an interrupted run goes on.

A figure is known by its paper, table, row and column, and counts only as long as the row is
measured in the same way: with the same model, on the same data, under the same statistic. Each has
the code that made it beside it.
"""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from papers.provenance import code_version
from papers.table import Figure, MeasuredRow, Outcome, PaperTable, Row
from tertium.atomic import write_text
from tertium.errors import DataError

MISSING = Figure(value=math.nan, count=0)


@dataclass(frozen=True)
class Ledger:
    """A folder of kept figures; `recall` is what `measure` asks for each of them."""

    folder: Path
    again: bool = False  # measure anew what is known

    def recall(
        self, table: PaperTable, row: Row, column: str, compute: Callable[[], Figure]
    ) -> Figure:
        """The kept figure, or the one that is computed and kept now."""
        known = _figures(self._rows(table).get(row.label), table, row)
        if column in known and not self.again:
            return known[column]
        figure = replace(compute(), code=code_version())
        self._put(table, row, column, figure)
        return figure

    def outcome(self, table: PaperTable) -> Outcome:
        """A table as far as it is known; a row with some columns has NaN in the others."""
        kept = self._rows(table)
        rows = tuple(_row(kept.get(row.label), table, row) for row in table.rows)
        return Outcome(table=table, rows=rows)

    def note_missing(self, outcome: Outcome) -> None:
        """Keep the reasons why rows could not be measured, beside what is known of them."""
        rows = self._rows(outcome.table)
        for row in outcome.rows:
            if row.unavailable:
                rows.setdefault(row.row.label, {})["unavailable"] = row.unavailable
        if any(row.unavailable for row in outcome.rows):
            self._write(outcome.table, rows)

    def mark(self, table: PaperTable, column: str, best: Mapping[str, bool]) -> None:
        """Keep beside the figures of a column whether any other row outperforms them."""
        for row in table.rows:
            known = _figures(self._rows(table).get(row.label), table, row)
            if row.label in best and column in known:
                self._put(table, row, column, replace(known[column], best=best[row.label]))

    def path(self, table: PaperTable) -> Path:
        """The file of a table."""
        name = f"{table.paper}-{table.number}".replace("/", "-").replace(" ", "-")
        return self.folder / f"{name}.json"

    def _rows(self, table: PaperTable) -> dict[str, Any]:
        try:
            rows: dict[str, Any] = json.loads(self.path(table).read_text(encoding="utf-8"))["rows"]
        except FileNotFoundError:
            return {}
        except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
            raise DataError(f"{self.path(table)}: not kept figures ({error}); delete it") from None
        return rows

    def _put(self, table: PaperTable, row: Row, column: str, figure: Figure) -> None:
        rows = self._rows(table)  # read again: another process may have added to the file
        entry = rows.get(row.label, {})
        if entry.get("way") != way_of(table, row):
            entry = {"way": way_of(table, row), "figures": {}}
        record = dataclasses.asdict(figure)
        record["value"] = None if math.isnan(figure.value) else figure.value
        entry["figures"][column] = record
        entry.pop("unavailable", None)
        rows[row.label] = entry
        self._write(table, rows)

    def _write(self, table: PaperTable, rows: Mapping[str, Any]) -> None:
        content = {"paper": table.paper, "table": table.number, "rows": rows}
        text = json.dumps(content, ensure_ascii=False, indent=1, allow_nan=False) + "\n"
        write_text(self.path(table), text, make_folder=True)


def way_of(table: PaperTable, row: Row) -> str:
    """How a row is measured, in words; a kept figure of another way does not count."""
    experiment = row.experiment or table.experiment
    model = row.model
    if not isinstance(model, str) and not dataclasses.is_dataclass(model):
        model = "trained for the row"
    specs = f", {dict(row.specs)}" if row.specs else ""
    return f"{model}{specs}; {experiment.data}; {experiment.statistic}"


def _figures(entry: Any, table: PaperTable, row: Row) -> dict[str, Figure]:
    if not entry or entry.get("way") != way_of(table, row):
        return {}
    found: dict[str, Figure] = {}
    for column, record in entry["figures"].items():
        value = math.nan if record["value"] is None else float(record["value"])
        found[column] = Figure(**{**record, "value": value})
    return found


def _row(entry: Any, table: PaperTable, row: Row) -> MeasuredRow:
    known = _figures(entry, table, row)
    if known:
        columns = (row.experiment or table.experiment).columns
        return MeasuredRow(row=row, figures=tuple(known.get(c, MISSING) for c in columns))
    return MeasuredRow(row=row, unavailable=(entry or {}).get("unavailable", ""))
