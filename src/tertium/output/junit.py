"""Write suites of cases as JUnit XML."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any
from xml.etree import ElementTree

from tertium.core.atomic import PathLike, write_text
from tertium.core.findings import Case, Suite
from tertium.text.printable import FORBIDDEN_IN_XML, replace_control_characters


def write(result: Any, path: PathLike) -> None:
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
    name, class_name = _xml_text(case.name), _xml_text(f"tertium.{suite_name}")
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
