"""Measured figures on disk, one JSON file per table, so that an interrupted run can continue.

A figure is identified by paper, table, row and column. It is used only while the row is measured by
the same method: the same model, data and statistic. Each figure stores the version of the code that
measured it.
"""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from papers.experiments import Archived
from papers.provenance import code_version
from papers.table import Figure, PaperTable, Row, RowResult, TableResult
from tertium.core.atomic import write_text
from tertium.core.errors import DataError

MISSING = Figure(value=math.nan, count=0)


@dataclass(frozen=True)
class Ledger:
    """A folder of stored figures; `get_figure` is an argument of `measure`."""

    folder: Path
    remeasure: bool = False  # ignore stored figures

    def get_figure(
        self, table: PaperTable, row: Row, column: str, compute: Callable[[], Figure]
    ) -> Figure:
        """Return the stored figure, or compute and store it."""
        stored = _figures(self._rows(table).get(row.label), table, row)
        if column in stored and not self.remeasure:
            return stored[column]
        figure = replace(compute(), code=code_version())
        self._store(table, row, column, figure)
        return figure

    def load_table(self, table: PaperTable) -> TableResult:
        """Return a table with its stored figures; missing columns of a row are NaN."""
        entries = self._rows(table)
        rows = tuple(_row_result(entries.get(row.label), table, row) for row in table.rows)
        return TableResult(table=table, rows=rows)

    def record_unavailable(self, result: TableResult) -> None:
        """Store why rows could not be measured; their stored figures stay."""
        rows = self._rows(result.table)
        for row in result.rows:
            if row.unavailable:
                rows.setdefault(row.label, {})["unavailable"] = row.unavailable
        if any(row.unavailable for row in result.rows):
            self._write(result.table, rows)

    def mark_best(self, table: PaperTable, column: str, best: Mapping[str, bool]) -> None:
        """Store for the figures of a column whether another row is significantly better."""
        for row in table.rows:
            stored = _figures(self._rows(table).get(row.label), table, row)
            if row.label in best and column in stored:
                self._store(table, row, column, replace(stored[column], best=best[row.label]))

    def path(self, table: PaperTable) -> Path:
        """Return the file of a table."""
        return self.folder / f"{file_stem(table)}.json"

    def _rows(self, table: PaperTable) -> dict[str, Any]:
        try:
            rows: dict[str, Any] = json.loads(self.path(table).read_text(encoding="utf-8"))["rows"]
        except FileNotFoundError:
            return {}
        except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
            where = self.path(table)
            raise DataError(f"{where}: not a file of figures ({error}); delete it") from None
        return rows

    def _store(self, table: PaperTable, row: Row, column: str, figure: Figure) -> None:
        rows = self._rows(table)  # read again: another process may have added to the file
        entry = rows.get(row.label, {})
        method = describe_method(table, row)
        if entry.get("method") != method:
            entry = {"method": method, "figures": {}}
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


def file_stem(table: PaperTable) -> str:
    """Return the name of a table as part of a file name."""
    return f"{table.paper}-{table.number}".replace("/", "-").replace(" ", "-")


def describe_method(table: PaperTable, row: Row) -> str:
    """Describe model, data and statistic of a row; figures of another method are not used."""
    experiment, model = table.experiment_of(row), row.model
    if not isinstance(model, str) and not dataclasses.is_dataclass(model):
        model = "trained for the row"
    specs = f", {dict(row.column_specs)}" if row.column_specs else ""
    return f"{model}{specs}; {experiment.data}; {experiment.statistic}"


def is_measured_by(entry: Mapping[str, Any], table: PaperTable, row: Row) -> bool:
    """Return whether a stored row has the method of its table; archived ones have an older one."""
    is_archived = isinstance(table.experiment_of(row), Archived)
    return is_archived or entry.get("method") == describe_method(table, row)


def _figures(entry: Any, table: PaperTable, row: Row) -> dict[str, Figure]:
    if not entry or not is_measured_by(entry, table, row):
        return {}
    figures: dict[str, Figure] = {}
    for column, record in entry["figures"].items():
        value = math.nan if record["value"] is None else float(record["value"])
        figures[column] = Figure(**{**record, "value": value})
    return figures


def _row_result(entry: Any, table: PaperTable, row: Row) -> RowResult:
    if stored := _figures(entry, table, row):
        columns = table.experiment_of(row).columns
        return RowResult(row=row, figures=tuple(stored.get(c, MISSING) for c in columns))
    return RowResult(row=row, unavailable=(entry or {}).get("unavailable", ""))
