"""Tables of the findings of `tertium check`: counts of each check, and rows for workbooks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tertium.core.result import Table, Value
from tertium.data.tables import HighlightedText
from tertium.evaluation.checking import CheckReport
from tertium.evaluation.evaluation import as_numbers
from tertium.output.tables.table import Cell, cell_table, number_cell
from tertium.segment import Segment
from tertium.spans import Span

WORKBOOK_COLUMNS = tuple("segment system severity check message source translation text".split())


def finding_counts(report: CheckReport) -> Table:
    """Return the number of segments with a finding of each check, by system."""
    systems = [*report.findings]
    counts = {system: report.counts(system) for system in systems}
    names = [name for name in report.settings.ids if any(name in c for c in counts.values())]
    rows: list[list[Cell | str]] = [
        [name, *(Cell(str(n := counts[system].get(name, 0)), n) for system in systems)]
        for name in names
    ]
    rows += [
        ["clean segments (%)", *(number_cell(100 * report.clean_share(s), 2) for s in systems)],
        ["penalty per segment", *(number_cell(report.penalty(s), 4) for s in systems)],
    ]
    return cell_table(["segments with findings", *systems], rows)


def list_findings(report: CheckReport) -> Iterator[tuple[str, Any, Segment, Span]]:
    """Yield system, name of the segment, segment and span of each finding."""
    items = as_numbers(report.testset.items)
    for system, findings in report.findings.items():
        segments = report.testset.segments(system)
        for item, segment, spans in zip(items, segments, findings, strict=True):
            for span in spans:
                yield system, item, segment, span


def workbook_rows(report: CheckReport) -> Iterator[tuple[Value, ...]]:
    """Yield a row of `WORKBOOK_COLUMNS` for each finding, with the marked place in its text."""
    for system, item, segment, span in list_findings(report):
        source, translation = segment.source or "", segment.hypothesis
        text = translation if span.side == "hypothesis" else source
        marked = HighlightedText(text, span.start, span.end)
        texts = (source, marked) if span.side == "hypothesis" else (marked, translation)
        yield (item, system, span.severity, span.category, span.message, *texts, span.of(text))
