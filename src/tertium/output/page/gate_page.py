"""An HTML page of the result of a gate."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import islice

from tertium.decisions.gate_result import GateResult
from tertium.evaluation.checking import CheckReport
from tertium.output.error_span_markup import error_span_paragraph
from tertium.output.html_table import render_table as render_html_table
from tertium.output.markup import Markup, element, join
from tertium.output.page.template import render_page, section

MAX_PAGE_FINDINGS = 200


def gate_page(result: GateResult) -> str:
    """Return a self-contained page that opens with the verdict."""
    sections = [section("verdict", "Verdict", _verdict(result))]
    titles = ["Metrics"] * bool(result.tests) + ["Conditions"]
    for title, table in zip(titles, result.tables(), strict=False):
        html = render_html_table(replace(table, cautions=()), sortable=True)
        sections.append(section(title.lower(), title, html))
    findings = [row for pair, own in result.checks.items() for row in _list_findings(pair, own)]
    if findings:
        sections.append(section("findings", "Findings", join(findings)))
    counts = f"{len(result.tests)} tests, {len(result.conditions)} conditions"
    return render_page(
        join(sections),
        ("elements", "tables"),
        title=f"Gate: {result.candidate} against {result.baseline}",
        subtitle=f"{counts}, alpha = {result.alpha:g}",
    )


def _verdict(result: GateResult) -> Markup:
    cautions = [element("p", text, class_="note") for text in result.cautions]
    return join([*cautions, element("ul", element("li", result.sentence), class_="findings")])


def _list_findings(pair: str, report: CheckReport) -> Iterator[Markup]:
    (system,) = report.spans
    rows = zip(
        report.testset.items, report.testset.segments(system), report.spans[system], strict=True
    )
    with_findings = ((item, segment, spans) for item, segment, spans in rows if spans)
    for item, segment, spans in islice(with_findings, MAX_PAGE_FINDINGS):
        messages = "; ".join(span.message for span in spans)
        where = ", ".join(filter(None, (pair, f"segment {item}")))
        yield element("h3", where)
        yield element("p", messages)
        if segment.source is not None:
            yield error_span_paragraph(segment.source, spans, "source")
        yield error_span_paragraph(segment.hypothesis, spans)
