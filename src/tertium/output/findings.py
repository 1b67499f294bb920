"""Write the findings of `tertium check`: tables, workbooks, pages and SARIF, by file suffix."""

from __future__ import annotations

import json
from pathlib import Path

from tertium.atomic import write_text
from tertium.data.locations import Locate
from tertium.data.tables import write_xlsx
from tertium.errors import UsageError
from tertium.evaluation.checking import FINDING_COLUMNS, CheckReport
from tertium.extras import require_modules
from tertium.frames import write_frame
from tertium.output.page.findings_page import findings_page
from tertium.output.sarif import check_results, check_rules, sarif_log
from tertium.output.tables.findings import WORKBOOK_COLUMNS, workbook_rows

FINDING_SUFFIXES = (".xlsx", ".html", ".sarif", ".tsv", ".csv", ".jsonl", ".parquet")


def check_findings_file(path: str) -> None:
    """Raise `UsageError` if findings cannot be written to a file of this name."""
    suffix = Path(path).suffix
    if suffix not in FINDING_SUFFIXES:
        suffixes = ", ".join(FINDING_SUFFIXES[:-1]) + f" or {FINDING_SUFFIXES[-1]}"
        raise UsageError(f"-o {path}: findings are written to a file that ends in {suffixes}")
    modules = {".parquet": ("pandas", "pyarrow"), ".xlsx": ("openpyxl",)}.get(suffix, ())
    require_modules(*modules, purpose=path, hint="or write .tsv, .csv or .jsonl")


def write_findings(report: CheckReport, path: str, locate: Locate) -> None:
    """Write findings in the format of the suffix; `locate` finds texts for SARIF."""
    suffix = Path(path).suffix
    if suffix == ".xlsx":
        rows = [*workbook_rows(report)]
        write_xlsx(
            {name: [row[n] for row in rows] for n, name in enumerate(WORKBOOK_COLUMNS)}, path
        )
    elif suffix == ".html":
        write_text(path, findings_page(report))
    elif suffix == ".sarif":
        log = sarif_log(check_results(report, locate), check_rules())
        write_text(path, json.dumps(log, ensure_ascii=False, indent=1) + "\n")
    else:
        rows = [
            tuple(" ".join(v.split()) if isinstance(v, str) else v for v in row)
            for row in report.rows()
        ]
        columns = {name: [row[n] for row in rows] for n, name in enumerate(FINDING_COLUMNS)}
        write_frame(columns, path)
