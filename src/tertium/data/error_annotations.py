"""Read marked errors from the fields of a record, in our format and those of annotation campaigns.

spans, missing, raters                      our format: exclusive ends; `missing`: unlocated errors
esa_spans, errors                           ESA and Appraise: `start_i`, inclusive `end_i` or
                                            "missing", `error_type`; mt-metrics-eval: `start`,
                                            `end`, `is_source_error`
start_indices, end_indices, error_types     WMT span tasks: space-separated offsets and severities;
                                            -1 and `no-error` for no error
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tertium.data.formats import parse_json
from tertium.errors import DataError, LengthError, TertiumError, UnknownNameError
from tertium.segment import Segment
from tertium.spans import (
    SEVERITIES,
    ErrorAnnotations,
    Severity,
    Span,
    UnlocatedError,
    check_span_bounds,
)

SPAN_LIST_NAMES = ("spans", "esa_spans", "errors")
ANNOTATION_NAMES = (*SPAN_LIST_NAMES, "start_indices")  # one of them: the row was annotated
NO_ERROR = frozenset({"no-error", "no error", "none", ""})
# Names of other scales. The five grades of IndicMT-Eval have weights 1 to 5: each is mapped to the
# nearer of minor (1) and major (5), and the middle one to major.
SEVERITY_NAMES: Mapping[str, Severity] = {
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
) -> ErrorAnnotations | None:
    """Return the errors marked in a record's translation, or None if it was not annotated.

    Offsets are checked against the texts if these are known.
    """
    if all(record.get(name) is None for name in ANNOTATION_NAMES):
        return None
    name = next((name for name in SPAN_LIST_NAMES if record.get(name) is not None), "")
    length = len(segment.hypothesis)
    errors = _entries(record, name, where) if name else [*_from_columns(record, length, where)]
    errors += _entries(record, "missing", where) if record.get("missing") is not None else []
    marked = [_read_error(entry, where) for entry in errors if not _is_no_error(entry)]
    annotations = ErrorAnnotations.of(marked, _read_rater_count(record.get("raters"), where))
    if segment.hypothesis:
        check_span_bounds(annotations.spans, segment.hypothesis, "hypothesis", where)
    if segment.source is not None:
        check_span_bounds(annotations.spans, segment.source, "source", where)
    return annotations


def read_severity(value: Any, where: str) -> Severity:
    """Return the severity that a name stands for.

    >>> read_severity("Major", "line 1"), read_severity("undecided", "line 2")
    ('major', 'bad')
    """
    name = str(value).strip().lower()
    if name in SEVERITIES:
        return name
    if name not in SEVERITY_NAMES:
        error = UnknownNameError("severity", name, [*SEVERITIES, *SEVERITY_NAMES])
        raise DataError(f"{where}: {error}")
    return SEVERITY_NAMES[name]


def _entries(record: Mapping[str, Any], name: str, where: str) -> list[Mapping[str, Any]]:
    """Return a list of objects, which a table may contain as JSON text."""
    value = record[name]
    if isinstance(value, str):
        value = parse_json(value, f"{where}, {name}") if value.strip() else []
    if not isinstance(value, Sequence) or not all(isinstance(entry, Mapping) for entry in value):
        raise DataError(f"{where}: {name} is {str(value)[:40]!r}; expected a list of objects")
    return list(value)


def _from_columns(
    record: Mapping[str, Any], length: int, where: str
) -> Iterator[Mapping[str, Any]]:
    """Yield the errors of a WMT span task.

    In WMT23, a span with equal start and end marks one character. At the end of the text there is
    no character, so such an error is unlocated.
    """
    names = ("start_indices", "end_indices", "error_types")
    cells = [str(record.get(name) or "").split() for name in names]
    if len({len(cell) for cell in cells}) > 1:
        counts = ", ".join(f"{len(c)} {name}" for c, name in zip(cells, names, strict=True))
        raise LengthError(f"{where}: {counts}; expected the same number of each")
    for start, end, severity in zip(*cells, strict=True):
        if severity.lower() in NO_ERROR or start == "-1":
            continue
        if start == end and start.isdecimal():
            start, end = ("missing", "") if length <= int(start) else (start, str(int(end) + 1))
        yield {"start": start, "end": end, "severity": severity}


def _is_no_error(entry: Mapping[str, Any]) -> bool:
    return str(entry.get("severity", "")).strip().lower() in NO_ERROR


def _read_error(entry: Mapping[str, Any], where: str) -> Span | UnlocatedError:
    severity = read_severity(entry["severity"], where)
    category = str(entry.get("category") or entry.get("error_type") or "")
    rater = "" if entry.get("rater") is None else str(entry["rater"])
    start = entry.get("start", entry.get("start_i"))
    if start is None or start == "missing":
        return UnlocatedError(severity, category, rater)
    last = entry.get("end")
    end = _read_offset(entry.get("end_i"), where) + 1 if last is None else _read_offset(last, where)
    try:
        side: Any = "source" if entry.get("is_source_error") else entry.get("side", "hypothesis")
        chance = entry.get("chance")
        return Span(_read_offset(start, where), end, side, severity, category, rater, chance)
    except TertiumError as error:
        raise DataError(f"{where}: {error}") from None


def _read_offset(value: Any, where: str) -> int:
    """Parse an offset, which a table may contain as text."""
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    if isinstance(value, str) and value.lstrip("-").isdecimal():
        return int(value)
    raise DataError(f"{where}: the span offset {value!r} is not a whole number")


def _read_rater_count(value: Any, where: str) -> int:
    count = 1 if value is None or value == "" else _read_offset(value, where)
    if count < 1:
        raise DataError(f"{where}: {count} raters; expected one or more")
    return count
