"""Write results as JSON and as tables of full values."""

from __future__ import annotations

from tertium.core.atomic import PathLike, write_text
from tertium.core.result import Result
from tertium.data import record_files, tables
from tertium.data.record_files import to_json


def write_json(result: Result, path: PathLike) -> None:
    """Write all results as JSON."""
    write_text(path, to_json(result.records()))


def write_jsonl(result: Result, path: PathLike) -> None:
    """Write one JSON object per line."""
    record_files.write_jsonl(path, result.lines())


def write_tsv(result: Result, path: PathLike) -> None:
    """Write a TSV file."""
    write_text(path, tables.tsv_lines(result.file_table(".tsv").values()))


def write_csv(result: Result, path: PathLike) -> None:
    """Write a CSV file, for Excel if the result is for people to edit."""
    values = result.file_table(".csv").values()
    write_text(path, tables.csv_lines(values, excel=result.is_spreadsheet))


def write_parquet(result: Result, path: PathLike) -> None:
    """Write a Parquet file."""
    tables.write_parquet(result.file_table(".parquet").values(), path)


def write_xlsx(result: Result, path: PathLike) -> None:
    """Write an Excel workbook."""
    tables.write_xlsx(result.file_table(".xlsx").values(), path)
