"""Findings as SARIF 2.1.0 (OASIS), which code hosts and editors show next to lines of files."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote

from tertium.checks.catalog import RULES
from tertium.core.atomic import PathLike, write_text
from tertium.core.findings import FileLocation, Finding, FindingRule
from tertium.core.spans import Severity, Span
from tertium.data.record_files import to_json
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
    span, texts = finding.span, finding.texts
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
