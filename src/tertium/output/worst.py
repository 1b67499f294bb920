"""Write the worst translations: spreadsheets, records or a page, by file suffix."""

from __future__ import annotations

from pathlib import Path

from tertium.atomic import write_text
from tertium.data.formats import write_jsonl
from tertium.data.tables import csv_lines, write_xlsx
from tertium.decisions.worst import WorstSegments
from tertium.errors import UsageError
from tertium.extras import require_modules
from tertium.output.page.worst_page import worst_page
from tertium.output.tables.worst import spreadsheet_rows

WORST_SUFFIXES = (".xlsx", ".csv", ".jsonl", ".html")


def check_worst_file(path: str) -> None:
    """Raise `UsageError` if the worst translations cannot be written to a file of this name."""
    if Path(path).suffix not in WORST_SUFFIXES:
        suffixes = ", ".join(WORST_SUFFIXES[:-1]) + f" or {WORST_SUFFIXES[-1]}"
        raise UsageError(f"-o {path}: expected a file that ends in {suffixes}")
    if Path(path).suffix == ".xlsx":
        require_modules("openpyxl", purpose=path, hint="or write .csv")


def write_worst(result: WorstSegments, path: str) -> None:
    """Write the translations in the format of the suffix; CSV is written for Excel."""
    suffix = Path(path).suffix
    if suffix == ".html":
        write_text(path, worst_page(result))
    elif suffix == ".jsonl":
        write_jsonl(path, result.records())
    elif suffix == ".xlsx":
        columns, rows = spreadsheet_rows(result)
        write_xlsx({name: [row[n] for row in rows] for n, name in enumerate(columns)}, path)
    else:
        columns, rows = spreadsheet_rows(result)
        values = {name: [row[n] for row in rows] for n, name in enumerate(columns)}
        write_text(path, csv_lines(values, excel=True))
