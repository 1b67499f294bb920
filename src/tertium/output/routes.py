"""Write routed translations as records or spreadsheets, by file suffix."""

from __future__ import annotations

from pathlib import Path

from tertium.data.formats import write_jsonl
from tertium.decisions.routing import RoutedTranslations
from tertium.output.tables.spreadsheet import Value, write_csv, write_xlsx


def write_routed(routed: RoutedTranslations, path: str) -> None:
    """Write each translation with its outcome: .jsonl, .xlsx, or .csv for Excel."""
    if Path(path).suffix == ".jsonl":
        write_jsonl(path, (row.record() for row in routed.rows))
        return
    specs = [stage.metric for stage in routed.route.stages]
    columns = ["system", "segment", "lp", "document", "source", "translation", "outcome", "reason"]
    rows: list[list[Value]] = [
        [
            *(row.row.system, row.row.item, row.row.lp, row.row.document),
            *(row.row.segment.source, row.row.segment.hypothesis, row.outcome, row.reason),
            *(row.scores.get(spec) for spec in specs),
        ]
        for row in routed.rows
    ]
    if Path(path).suffix == ".xlsx":
        write_xlsx(rows, [*columns, *specs], path)
    else:
        write_csv(rows, [*columns, *specs], path, excel=True)
