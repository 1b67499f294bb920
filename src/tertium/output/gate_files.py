"""Write the result of a gate for other programs: JUnit XML, Markdown, SARIF and an HTML page."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from xml.etree import ElementTree

from tertium.atomic import write_text
from tertium.data.locations import Locate
from tertium.decisions.gate_result import Condition, GateResult, MetricTest
from tertium.evaluation.checking import CheckReport
from tertium.output.error_span_markup import error_span_paragraph
from tertium.output.html_table import render_table as render_html_table
from tertium.output.markdown import escape_markdown
from tertium.output.markup import Markup, element, join
from tertium.output.page.template import render_page, section
from tertium.output.render import render_table
from tertium.output.sarif import SarifResult, check_results, check_rules, sarif_log
from tertium.output.tables.gate import gate_tables
from tertium.text.control_characters import FORBIDDEN_IN_XML, replace_control_characters

MARKS = {"pass": "✅", "better": "✅", "worse": "❌", "fail": "❌", "undecided": "⚠️"}
MAX_PAGE_FINDINGS = 200
DEFAULT_SUITE = "gate"


def write_gate_files(
    result: GateResult,
    locations: Mapping[str, Locate],
    *,
    undecided: str = "",
    junit: str | None = None,
    sarif: str | None = None,
    summary: str | None = None,
    page: str | None = None,
) -> None:
    """Write the requested files; the Markdown summary is appended to its file."""
    if junit:
        write_text(junit, junit_xml(result, undecided))
    if sarif:
        write_text(sarif, json.dumps(gate_sarif(result, locations), ensure_ascii=False, indent=1))
    if page:
        write_text(page, gate_page(result))
    if summary:
        earlier = Path(summary).read_text(encoding="utf-8") if Path(summary).exists() else ""
        write_text(summary, earlier + markdown_summary(result))


def junit_xml(result: GateResult, undecided: str = "") -> str:
    """Return JUnit XML: a suite for each language pair, a case for each test and condition.

    An undecided test is a failure, or skipped if `undecided` is "pass". Undecided slices are
    skipped, because they do not decide the gate.
    """
    suites = ElementTree.Element("testsuites", name=f"tertium gate: {result.verdict}")
    pairs = dict.fromkeys(
        [test.pair for test in result.tests] + [own.pair for own in result.conditions]
    )
    for number, pair in enumerate(pairs):
        suite = ElementTree.SubElement(suites, "testsuite")
        ElementTree.SubElement(suite, "properties")
        for test in (test for test in result.tests if test.pair == pair):
            _add_test(suite, test, undecided)
        for condition in (own for own in result.conditions if own.pair == pair):
            _add_condition(suite, condition)
        ElementTree.SubElement(suite, "system-out").text = _xml_text(result.sentence)
        ElementTree.SubElement(suite, "system-err").text = _xml_text("\n".join(result.cautions))
        _describe_suite(suite, pair or DEFAULT_SUITE, number)
    ElementTree.indent(suites)
    return ElementTree.tostring(suites, encoding="unicode", xml_declaration=True) + "\n"


def _describe_suite(suite: ElementTree.Element, name: str, number: int) -> None:
    counts = {"tests": "testcase", "failures": "testcase/failure", "skipped": "testcase/skipped"}
    attributes = {
        "name": _xml_text(name),
        "package": "tertium",
        "id": str(number),
        "timestamp": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S"),
        "hostname": "localhost",
        "errors": "0",
        "time": "0",
        **{key: str(len(suite.findall(path))) for key, path in counts.items()},
    }
    for key, value in attributes.items():
        suite.set(key, value)


def _add_test(suite: ElementTree.Element, test: MetricTest, undecided: str) -> None:
    where = f" in {test.by} {test.slice}" if test.is_slice else ""
    case = _add_case(suite, test.pair, f"{test.name}{where}")
    if test.verdict == "worse":
        _add_failure(case, "worse", f"worse by more than the margin: {test.describe()}")
    elif test.verdict == "undecided":
        more = f"; about {test.more_segments:,} more segments" if test.more_segments else ""
        message = f"undecided: {test.describe()}{more}"
        if test.is_slice or undecided == "pass":
            ElementTree.SubElement(case, "skipped", message=_xml_text(message))
        else:
            _add_failure(case, "undecided", message)


def _add_condition(suite: ElementTree.Element, condition: Condition) -> None:
    case = _add_case(suite, condition.pair, f"{condition.rule} {condition.name}")
    if not condition.is_met:
        _add_failure(case, "condition", condition.describe())


def _add_case(suite: ElementTree.Element, pair: str, name: str) -> ElementTree.Element:
    classname = _xml_text(f"tertium.{pair or DEFAULT_SUITE}")
    return ElementTree.SubElement(
        suite, "testcase", name=_xml_text(name), classname=classname, time="0"
    )


def _add_failure(case: ElementTree.Element, kind: str, message: str) -> None:
    text = _xml_text(message)
    ElementTree.SubElement(case, "failure", type=kind, message=text).text = text


def _xml_text(text: str) -> str:
    """Replace characters that XML does not allow."""
    return FORBIDDEN_IN_XML.sub("\ufffd", replace_control_characters(text))


def markdown_summary(result: GateResult) -> str:
    """Return the verdict and the tables as Markdown, for a step summary or a comment."""
    parts = [f"### {MARKS[result.verdict]} tertium gate: {result.verdict}\n"]
    parts += [f"{escape_markdown(text)}\n" for text in (*result.cautions, result.sentence)]
    parts += [render_table(table, "md") for table in gate_tables(result)]
    return "\n".join(parts) + "\n"


def gate_sarif(result: GateResult, locations: Mapping[str, Locate]) -> dict[str, object]:
    """Return the findings of checks in the candidate as a SARIF log."""
    return sarif_log(_segment_results(result, locations), check_rules())


def _segment_results(result: GateResult, locations: Mapping[str, Locate]) -> Iterator[SarifResult]:
    for pair, report in result.findings.items():
        yield from check_results(report, locations[pair])


def gate_page(result: GateResult) -> str:
    """Return a self-contained page that opens with the verdict."""
    sections = [section("verdict", "Verdict", _verdict(result))]
    titles = ["Metrics"] * bool(result.tests) + ["Conditions"]
    tables = zip(titles, gate_tables(result), strict=False)
    sections += [
        section(title.lower(), title, render_html_table(table, sortable=True))
        for title, table in tables
    ]
    findings = [row for pair, own in result.findings.items() for row in _list_findings(pair, own)]
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
    (system,) = report.findings
    rows = zip(
        report.testset.items, report.testset.segments(system), report.findings[system], strict=True
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
