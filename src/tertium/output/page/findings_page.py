"""An HTML page of the findings of `tertium check`, with filters by check, severity and system."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import islice

from tertium.core.findings import Finding
from tertium.evaluation.checking import CheckReport
from tertium.output.error_span_markup import error_span_paragraph
from tertium.output.html_table import render_table as render_html_table
from tertium.output.html_table import sort_button
from tertium.output.markup import Markup, element, join, scrollable
from tertium.output.page.template import fill_template, render_page
from tertium.spans import MQM_WEIGHTS, SEVERITIES

MAX_LISTED_FINDINGS = 10_000  # browsers get slow with more rows
MAX_IN_REPORT = 100
SCRIPTS = ("elements", "tables", "findings")
FILTER_TITLES = {"lp": "Languages"}
HEADER = ("segment", "system", "severity", "check", "finding")


def findings_page(report: CheckReport) -> str:
    """Return a self-contained page that lists each finding with its marked texts."""
    total = count_findings(report)
    more = f"The page lists the first {MAX_LISTED_FINDINGS:,}: write .xlsx or .tsv for all."
    segments = len(report.testset) * len(report.spans)
    values = {
        "counts_title": "Checks",
        "rows_title": "Findings",
        "unit": "findings",
        "counts": render_html_table(report.tables()[0]),
        "filters": _make_filters(report),
        "findings": list_rows(report.findings(), len(report.spans) > 1),
        "note": element("p", more, class_="note") if total > MAX_LISTED_FINDINGS else "",
    }
    return render_page(
        fill_template("findings.html", values),
        SCRIPTS,
        title=f"Findings in {', '.join(report.spans)}",
        subtitle=f"{total:,} findings in {segments:,} translations{_languages(report)}",
        unit="findings",
    )


def findings_section(report: CheckReport) -> Markup:
    """Return a section of a report: counts of each check, and the most severe findings."""
    rows = sorted(report.findings(), key=lambda row: -MQM_WEIGHTS.get(row.span.severity, 0.0))
    more = f"The {MAX_IN_REPORT} most severe of {len(rows):,} findings. "
    hint = element("code", "tertium check -o findings.html")
    note = element("p", more, hint, " lists all.", class_="note")
    return join(
        [
            render_html_table(report.tables()[0]),
            list_rows(rows[:MAX_IN_REPORT], len(report.spans) > 1),
            note if len(rows) > MAX_IN_REPORT else "",
        ]
    )


def count_findings(report: CheckReport) -> int:
    """Return the number of all findings."""
    return sum(len(spans) for rows in report.spans.values() for spans in rows)


def list_rows(rows: Iterable[Finding], has_systems: bool) -> Markup:
    """Return a sortable table of findings."""
    listed = [_describe_row(row, has_systems) for row in islice(rows, MAX_LISTED_FINDINGS)]
    header = [name for name in HEADER if has_systems or name != "system"]
    return sortable_rows(header, listed, "findings")


def sortable_rows(header: Iterable[str], rows: Sequence[Markup], unit: str) -> Markup:
    """Return a table of rows that the reader can sort and filter."""
    heads = (element("th", sort_button(name), scope="col", aria_sort="none") for name in header)
    parts = element("thead", element("tr", *heads)), element("tbody", *rows)
    table = element("table", *parts, class_="sortable found", id="findings")
    return scrollable(table, unit.capitalize()) if rows else element("p", f"No {unit}.")


def _languages(report: CheckReport) -> str:
    codes = report.settings.source_language, report.settings.target_language
    return f", {codes[0]} to {codes[1]}" if all(codes) else ""


def _make_filters(report: CheckReport) -> Markup:
    spans = [span for rows in report.spans.values() for spans in rows for span in spans]
    checks, severities = {s.category for s in spans}, {s.severity for s in spans}
    choices: dict[str, Iterable[str]] = {
        "check": [name for name in report.settings.ids if name in checks],
        "severity": [name for name in reversed(SEVERITIES) if name in severities],
    }
    if len(report.spans) > 1:
        choices["system"] = report.spans
    return filter_fields(choices)


def filter_fields(choices: Mapping[str, Iterable[str]]) -> Markup:
    """Return a selection list for each label of rows, whose first option selects all."""
    return join(
        element(
            "label",
            FILTER_TITLES.get(name, name.capitalize()),
            element(
                "select",
                element("option", "all", value=""),
                *(element("option", value, value=value) for value in values),
                id=name,
            ),
        )
        for name, values in choices.items()
    )


def _describe_row(row: Finding, has_systems: bool) -> Markup:
    system, item, segment, span = row.system, row.segment, row.texts, row.span
    texts = [element("p", span.message)]
    if segment.source is not None:
        texts.append(error_span_paragraph(segment.source, [span], "source"))
    texts.append(error_span_paragraph(segment.hypothesis, [span]))
    cells = (
        element("th", str(item), scope="row", data_value=item if isinstance(item, int) else None),
        *([element("td", element("bdi", system))] if has_systems else []),
        element("td", span.severity, data_value=-MQM_WEIGHTS.get(span.severity, 0.0)),
        element("td", span.category),
        element("td", *texts),
    )
    data = {"check": span.category, "severity": span.severity, "system": system}
    return element("tr", *cells, **{f"data_{name}": value for name, value in data.items()})
