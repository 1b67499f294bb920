"""Findings as SARIF 2.1.0 (OASIS), which code hosts and editors show next to lines of files."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote

from tertium.atomic import PathLike, write_text
from tertium.checks.catalog import RULES
from tertium.core.findings import FileLocation, Finding, FindingRule
from tertium.output.files import to_json
from tertium.spans import Severity
from tertium.version import __version__

SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
LEVELS: Mapping[Severity, str] = {
    "critical": "error",
    "major": "error",
    "minor": "warning",
    "bad": "warning",
    "neutral": "note",
}


def write(result: Any, path: PathLike) -> None:
    """Write the findings of a result."""
    write_text(path, to_json(make_log(result)))


def make_log(result: Any) -> dict[str, Any]:
    """Return a SARIF log with one run: the rules of all checks, and the findings of a result."""
    places = {rule.id: n for n, rule in enumerate(RULES)}
    driver = {
        "name": "tertium",
        "semanticVersion": __version__,
        "rules": [_describe_rule(rule) for rule in RULES],
    }
    findings = [_describe_finding(finding, places[finding.rule]) for finding in result.findings()]
    run = {"tool": {"driver": driver}, "columnKind": "unicodeCodePoints", "results": findings}
    return {"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}


def _describe_rule(rule: FindingRule) -> dict[str, Any]:
    described: dict[str, Any] = {
        "id": rule.id,
        "shortDescription": {"text": rule.sentence},
        "defaultConfiguration": {"level": LEVELS[rule.severity]},
        "properties": {"severity": rule.severity, "tags": ["translation"]},
    }
    return described | ({"help": {"text": rule.help}} if rule.help else {})


def _describe_finding(finding: Finding, rule: int) -> dict[str, Any]:
    location: dict[str, Any] = {}
    if finding.location is not None:
        place = finding.location, finding.start, finding.end
        location["physicalLocation"] = _describe_place(*place, finding.snippet)
    if finding.segment:
        location["logicalLocations"] = [{"name": finding.segment, "kind": "segment"}]
    described: dict[str, Any] = {
        "ruleId": finding.rule,
        "ruleIndex": rule,
        "level": LEVELS[finding.severity],
        "message": {"text": finding.message},
        "locations": [location] if location else [],
        "properties": {"severity": finding.severity, **finding.properties},
    }
    if finding.related:
        described["relatedLocations"] = [
            {"id": n, "physicalLocation": _describe_place(*place)}
            for n, place in enumerate(finding.related, start=1)
        ]
    if finding.identity:
        digest = hashlib.sha256("\0".join((finding.rule, *finding.identity)).encode()).hexdigest()
        described["partialFingerprints"] = {"finding/v1": digest[:32]}
    return described


def _describe_place(
    location: FileLocation, start: int | None, end: int | None, snippet: str = ""
) -> dict[str, Any]:
    place: dict[str, Any] = {"artifactLocation": {"uri": file_uri(location.file)}}
    if location.line is not None:
        region: dict[str, Any] = {"startLine": location.line}
        if location.column is not None and start is not None and end is not None:
            region["startColumn"] = location.column + start
            region["endColumn"] = location.column + end
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
