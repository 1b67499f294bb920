"""Files of results: JSON, tables of full values, SARIF for code hosts, JUnit XML for CI."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import quote
from xml.etree import ElementTree

from tertium.core.atomic import PathLike, write_text
from tertium.core.findings import Case, FileLocation, Finding, FindingRule, Suite
from tertium.core.result import Result
from tertium.core.spans import Severity, Span
from tertium.data import record_files, tables
from tertium.data.record_files import to_json
from tertium.text.printable import FORBIDDEN_IN_XML, replace_control_characters
from tertium.version import __version__


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


SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
LEVELS: Mapping[Severity, str] = {
    "critical": "error",
    "major": "error",
    "minor": "warning",
    "bad": "warning",
    "neutral": "note",
}


def write_sarif(result: Any, path: PathLike) -> None:
    """Write the findings of a result."""
    write_text(path, to_json(make_log(result)))


def make_log(result: Any) -> dict[str, Any]:
    """Return a SARIF log with one run: the rules of all checks, and the findings of a result."""
    from tertium.checks.check_settings import RULES

    places = {rule.id: n for n, rule in enumerate(RULES)}
    driver = {
        "name": "tertium",
        "semanticVersion": __version__,
        "rules": [_describe_rule(rule) for rule in RULES],
    }
    findings = []
    for finding in result.findings():
        rule = places[finding.span.category]
        findings.append(_describe_finding(finding, rule))
    run = {
        "tool": {"driver": driver},
        "columnKind": "unicodeCodePoints",
        "results": findings,
    }
    return {"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}


def _describe_rule(rule: FindingRule) -> dict[str, Any]:
    described: dict[str, Any] = {
        "id": rule.id,
        "shortDescription": {"text": rule.sentence},
        "defaultConfiguration": {"level": LEVELS[rule.severity]},
        "properties": {"severity": rule.severity, "tags": ["translation"]},
    }
    if rule.help:
        described["help"] = {"text": rule.help}
    return described


def _describe_finding(finding: Finding, rule: int) -> dict[str, Any]:
    """Return a finding at the translation; one in the source has the source as a related place."""
    span = finding.span
    texts = finding.texts
    in_translation = span.side == "hypothesis"
    location: dict[str, Any] = {}
    if place := finding.location("hypothesis"):
        marked = span if in_translation else None
        location["physicalLocation"] = _describe_place(place, marked, finding.text)
    location["logicalLocations"] = [{"name": str(finding.segment), "kind": "segment"}]
    source = None if in_translation else finding.location("source")
    related: dict[str, Any] = {}
    if source is not None:
        own = {"id": 1, "physicalLocation": _describe_place(source, span)}
        related["relatedLocations"] = [own]
    identity = (span.category, texts.source or texts.hypothesis, span.side, finding.text)
    digest = hashlib.sha256("\0".join(identity).encode()).hexdigest()
    return {
        "ruleId": span.category,
        "ruleIndex": rule,
        "level": LEVELS[span.severity],
        "message": {"text": span.message},
        "locations": [location],
        "properties": {
            "severity": span.severity,
            "system": finding.system,
            "side": span.side,
            "start": span.start,
            "end": span.end,
        },
        **related,
        "partialFingerprints": {"finding/v1": digest[:32]},
    }


def _describe_place(location: FileLocation, span: Span | None, snippet: str = "") -> dict[str, Any]:
    place: dict[str, Any] = {"artifactLocation": {"uri": file_uri(location.file)}}
    if location.line is not None:
        region: dict[str, Any] = {"startLine": location.line}
        if location.column is not None and span is not None:
            region["startColumn"] = location.column + span.start
            region["endColumn"] = location.column + span.end
            region |= {"snippet": {"text": snippet}} if snippet else {}
        place["region"] = region
    return place


def file_uri(path: str | os.PathLike[str]) -> str:
    """Return a URI reference: relative to the current folder if the file is inside it.

    >>> file_uri("./texts/ours 1.txt")
    'texts/ours%201.txt'
    """
    absolute = Path(os.path.abspath(path))  # noqa: PTH100 (links stay)
    if absolute.is_relative_to(Path.cwd()):
        return quote(absolute.relative_to(Path.cwd()).as_posix())
    return absolute.as_uri()


def write_junit(result: Any, path: PathLike) -> None:
    """Write the suites of a result."""
    suites = result.suites()
    root = ElementTree.Element("testsuites", name=_xml_text(suites.name))
    for number, suite in enumerate(suites.suites):
        _add_suite(root, suite, number)
    ElementTree.indent(root)
    write_text(path, ElementTree.tostring(root, encoding="unicode", xml_declaration=True) + "\n")


def _add_suite(root: ElementTree.Element, suite: Suite, number: int) -> None:
    failures = [case for case in suite.cases if case.failure and not case.is_skipped]
    attributes = {
        "name": _xml_text(suite.name),
        "package": "tertium",
        "id": str(number),
        "timestamp": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S"),
        "hostname": "localhost",
        "errors": "0",
        "time": "0",
        "tests": str(len(suite.cases)),
        "failures": str(len(failures)),
        "skipped": str(sum(case.is_skipped for case in suite.cases)),
    }
    element = ElementTree.SubElement(root, "testsuite", attributes)
    ElementTree.SubElement(element, "properties")
    for case in suite.cases:
        _add_case(element, case, suite.name)
    ElementTree.SubElement(element, "system-out").text = _xml_text(suite.output)
    ElementTree.SubElement(element, "system-err").text = _xml_text(suite.errors)


def _add_case(suite: ElementTree.Element, case: Case, suite_name: str) -> None:
    name = _xml_text(case.name)
    class_name = _xml_text(f"tertium.{suite_name}")
    element = ElementTree.SubElement(suite, "testcase", name=name, classname=class_name, time="0")
    message = _xml_text(case.message)
    if case.is_skipped:
        ElementTree.SubElement(element, "skipped", message=message)
    elif case.failure:
        failure = ElementTree.SubElement(element, "failure", type=case.failure, message=message)
        failure.text = message


def _xml_text(text: str) -> str:
    """Replace characters that XML does not allow."""
    return FORBIDDEN_IN_XML.sub("\ufffd", replace_control_characters(text))
