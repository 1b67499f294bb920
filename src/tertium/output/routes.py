"""Write routed translations as records or spreadsheets, by file suffix."""

from __future__ import annotations

from pathlib import Path

from tertium.atomic import write_text
from tertium.core.result import Value
from tertium.data.formats import write_jsonl
from tertium.data.tables import csv_lines, write_xlsx
from tertium.decisions.routing import RoutedTranslations


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
    values = {name: [row[n] for row in rows] for n, name in enumerate([*columns, *specs])}
    if Path(path).suffix == ".xlsx":
        write_xlsx(values, path)
    else:
        write_text(path, csv_lines(values, excel=True))
