"""Read marked errors from the fields of a record, in our format and those of annotation campaigns.

spans, missing, raters                      our format: exclusive ends; `missing`: unlocated errors
esa_spans, errors                           ESA and Appraise: `start_i`, inclusive `end_i` or
                                            "missing", `error_type`; mt-metrics-eval: `start`,
                                            `end`, `is_source_error`
start_indices, end_indices, error_types     WMT span tasks: space-separated offsets and severities;
                                            -1 and `no-error` for no error

An error without a severity has the severity `bad`, which means unknown.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from tertium.core import spans
from tertium.core.errors import DataError, LengthError, TertiumError, UnknownNameError
from tertium.core.segment import Segment
from tertium.data.record_files import parse_json
from tertium.data.records import read_integer, read_object_list, read_probability

SPAN_LIST_NAMES = ("spans", "esa_spans", "errors")
ANNOTATION_NAMES = (*SPAN_LIST_NAMES, "start_indices")  # one of them: the row was annotated
NO_ERROR = frozenset({"no-error", "no error", "none"})
# Names of other scales. The five grades of IndicMT-Eval have weights 1 to 5: each is mapped to the
# nearer of minor (1) and major (5), and the middle one to major.
SEVERITY_NAMES: Mapping[str, spans.Severity] = {
    "undecided": "bad",
    "default": "bad",
    "very low": "minor",
    "low": "minor",
    "medium": "major",
    "high": "major",
    "very high": "major",
}


def read_error_annotations(
    record: Mapping[str, Any], segment: Segment, where: str
) -> spans.ErrorAnnotations | None:
    """Return the errors marked in a record's translation, or None if it was not annotated."""
    if all(record.get(name) is None for name in ANNOTATION_NAMES):
        return None
    name = next((name for name in SPAN_LIST_NAMES if record.get(name) is not None), "")
    length = len(segment.hypothesis)
    errors = _entries(record, name, where) if name else [*_from_columns(record, length, where)]
    errors += _entries(record, "missing", where) if record.get("missing") is not None else []
    marked = [_read_error(entry, where) for entry in errors if not _is_no_error(entry)]
    annotations = spans.ErrorAnnotations.of(marked, _read_rater_count(record.get("raters"), where))
    if segment.hypothesis:
        spans.check_span_bounds(annotations.spans, segment.hypothesis, "hypothesis", where)
    if segment.source is not None:
        spans.check_span_bounds(annotations.spans, segment.source, "source", where)
    return annotations


def is_severity(name: str) -> bool:
    """Return whether a name is a severity."""
    return name.strip().lower() in {*spans.SEVERITIES, *SEVERITY_NAMES}


def read_severity(value: Any, where: str) -> spans.Severity:
    """Return the severity that a name stands for; a missing one is unknown (`bad`).

    >>> read_severity("Major", "line 1"), read_severity("undecided", "line 2")
    ('major', 'bad')
    """
    name = "bad" if value is None else str(value).strip().lower() or "bad"
    if name in spans.SEVERITIES:
        return name
    if name not in SEVERITY_NAMES:
        error = UnknownNameError("severity", name, [*spans.SEVERITIES, *SEVERITY_NAMES])
        raise DataError(f"{where}: {error}")
    return SEVERITY_NAMES[name]


def _entries(record: Mapping[str, Any], name: str, where: str) -> list[Mapping[str, Any]]:
    """Return a list of objects, which a table may contain as JSON text."""
    value = record[name]
    if isinstance(value, str):
        value = parse_json(value, f"{where}, {name}") if value.strip() else []
    return read_object_list(value, name, where)


def _from_columns(
    record: Mapping[str, Any], length: int, where: str
) -> Iterator[Mapping[str, Any]]:
    """Yield the errors of a WMT span task; an empty span of WMT23 marks one character."""
    names = ("start_indices", "end_indices", "error_types")
    cells = [str(record.get(name) or "").split() for name in names]
    if len({len(cell) for cell in cells}) > 1:
        counts = ", ".join(f"{len(c)} {name}" for c, name in zip(cells, names, strict=True))
        raise LengthError(f"{where}: {counts}; expected the same number of each")
    for start, end, severity in zip(*cells, strict=True):
        if severity.lower() in NO_ERROR or start == "-1":
            continue
        if start == end != "missing":
            position = read_integer(start, "start", where)
            start, end = ("missing", "") if length <= position else (start, str(position + 1))
        yield {"start": start, "end": end, "severity": severity}


def _is_no_error(entry: Mapping[str, Any]) -> bool:
    return str(entry.get("severity") or "").strip().lower() in NO_ERROR


def _read_error(entry: Mapping[str, Any], where: str) -> spans.Span | spans.UnlocatedError:
    severity = read_severity(entry.get("severity"), where)
    name = entry.get("category") or entry.get("error_type") or ""
    category = "/".join(map(str, name)) if isinstance(name, list) else str(name)
    rater = "" if entry.get("rater") is None else str(entry["rater"])
    start = entry.get("start", entry.get("start_i"))
    if start is None and not category and entry.get("severity") is None:
        raise DataError(f"{where}: an error without start, severity and category: {entry}")
    if start is None or start == "missing":
        return spans.UnlocatedError(severity, category, rater)
    first = read_integer(start, "start", where)
    end = (
        read_integer(entry["end"], "end", where)
        if entry.get("end") is not None
        else read_integer(entry.get("end_i"), "end_i", where) + 1
    )
    chance = read_probability(entry.get("chance"), "chance", where)
    try:
        side: Any = "source" if entry.get("is_source_error") else entry.get("side", "hypothesis")
        message = "" if entry.get("message") is None else str(entry["message"])
        return spans.Span(first, end, side, severity, category, rater, chance, message)
    except TertiumError as error:
        raise DataError(f"{where}: {error}") from None


def _read_rater_count(value: Any, where: str) -> int:
    count = 1 if value is None or value == "" else read_integer(value, "raters", where)
    if count < 1:
        raise DataError(f"{where}: {count} raters; expected one or more")
    return count
