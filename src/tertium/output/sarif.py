"""Findings as SARIF 2.1.0 (OASIS), which code hosts and editors show next to lines of files.

A `SarifResult` is one finding with the place of the translation. `sarif_log` makes a log of any
results; `check_results` and `check_rules` convert findings of `tertium check`.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote

from tertium.checks.catalog import CHECKS
from tertium.checks.terminology import CONSISTENCY, CONSISTENCY_SENTENCE, CONSISTENCY_SEVERITY
from tertium.data.locations import FileLocation, Locate
from tertium.evaluation.checking import CheckReport
from tertium.segment import Segment
from tertium.spans import Severity, Span
from tertium.version import __version__

SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
LEVELS: Mapping[Severity, str] = {
    "critical": "error",
    "major": "error",
    "minor": "warning",
    "bad": "warning",
    "neutral": "note",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class SarifRule:
    """A kind of finding: what is expected, how severe it is by default, and how to fix it."""

    id: str
    sentence: str
    severity: Severity = "major"
    help: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class SarifResult:
    """A finding of a rule at a place of a file.

    `start` and `end` are offsets in the text at `location`, in code points; without them the
    finding is about the whole line. `related` are further places with their offsets.
    `identity` are the texts that make the finding the same in a later run.
    """

    rule: str
    message: str
    severity: Severity = "major"
    location: FileLocation | None = None
    start: int | None = None
    end: int | None = None
    snippet: str = ""
    segment: str = ""
    related: tuple[tuple[FileLocation, int, int], ...] = ()
    identity: tuple[str, ...] = ()
    properties: Mapping[str, Any] = field(default_factory=dict)


def sarif_log(results: Iterable[SarifResult], rules: Iterable[SarifRule]) -> dict[str, Any]:
    """Return a SARIF log with one run; every result names one of the rules."""
    listed = [*rules]
    places = {rule.id: n for n, rule in enumerate(listed)}
    driver = {
        "name": "tertium",
        "semanticVersion": __version__,
        "rules": [_describe_rule(rule) for rule in listed],
    }
    return {
        "$schema": SCHEMA,
        "version": "2.1.0",
        "runs": [
            {
                "tool": {"driver": driver},
                "columnKind": "unicodeCodePoints",
                "results": [_describe_result(result, places[result.rule]) for result in results],
            }
        ],
    }


def check_rules() -> Iterator[SarifRule]:
    """Yield the rules of all checks, with an example of right and wrong."""
    for check in CHECKS:
        right, wrong = check.right, check.wrong
        yield SarifRule(
            id=check.id,
            sentence=check.sentence,
            severity=check.severity,
            help=f"Right: {right.source!r} as {right.hypothesis!r}. "
            f"Wrong: {wrong.source!r} as {wrong.hypothesis!r}.",
        )
    yield SarifRule(id=CONSISTENCY, sentence=CONSISTENCY_SENTENCE, severity=CONSISTENCY_SEVERITY)


def check_results(report: CheckReport, locate: Locate) -> Iterator[SarifResult]:
    """Yield a result for each finding, at the translation.

    What is missing in the translation is marked in the source, as a related place.
    """
    items = report.testset.items
    for system, findings in report.findings.items():
        for n, segment in enumerate(report.testset.segments(system)):
            for span in findings[n]:
                yield _convert_finding(span, segment, locate, system, n, items[n])


def _convert_finding(
    span: Span, segment: Segment, locate: Locate, system: str, number: int, item: str
) -> SarifResult:
    in_translation = span.side == "hypothesis"
    source = None if in_translation else locate(system, number, "source")
    text = segment.hypothesis if in_translation else segment.source or ""
    return SarifResult(
        rule=span.category,
        message=span.message,
        severity=span.severity,
        location=locate(system, number, "hypothesis"),
        start=span.start if in_translation else None,
        end=span.end if in_translation else None,
        snippet=span.of(text) if in_translation else "",
        segment=item,
        related=() if source is None else ((source, span.start, span.end),),
        identity=(segment.source or segment.hypothesis, span.side, span.of(text)),
        properties={"system": system, "side": span.side, "start": span.start, "end": span.end},
    )


def _describe_rule(rule: SarifRule) -> dict[str, Any]:
    described: dict[str, Any] = {
        "id": rule.id,
        "shortDescription": {"text": rule.sentence},
        "defaultConfiguration": {"level": LEVELS[rule.severity]},
        "properties": {"severity": rule.severity, "tags": ["translation"]},
    }
    return described | ({"help": {"text": rule.help}} if rule.help else {})


def _describe_result(result: SarifResult, rule: int) -> dict[str, Any]:
    location: dict[str, Any] = {}
    if result.location is not None:
        place = result.location, result.start, result.end
        location["physicalLocation"] = _describe_place(*place, result.snippet)
    if result.segment:
        location["logicalLocations"] = [{"name": result.segment, "kind": "segment"}]
    described: dict[str, Any] = {
        "ruleId": result.rule,
        "ruleIndex": rule,
        "level": LEVELS[result.severity],
        "message": {"text": result.message},
        "locations": [location] if location else [],
        "properties": {"severity": result.severity, **result.properties},
    }
    if result.related:
        described["relatedLocations"] = [
            {"id": n, "physicalLocation": _describe_place(*place)}
            for n, place in enumerate(result.related, start=1)
        ]
    if result.identity:
        digest = hashlib.sha256("\0".join((result.rule, *result.identity)).encode()).hexdigest()
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
