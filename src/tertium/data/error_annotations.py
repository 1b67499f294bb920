"""Read marked errors from the fields of a record, in our format and those of annotation campaigns.

spans, missing, raters                      our format: exclusive ends; `missing`: unlocated errors
esa_spans, errors                           ESA and Appraise: `start_i`, inclusive `end_i` or
                                            "missing", `error_type`; mt-metrics-eval: `start`,
                                            `end`, `is_source_error`
start_indices, end_indices, error_types     WMT span tasks: space-separated offsets and severities;
                                            -1 and `no-error` for no error

An error without a severity has the severity `bad`, which means unknown. An error that ends where
it starts has no position.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from tertium.core import spans
from tertium.core.errors import DataError, LengthError, TertiumError, UnknownNameError
from tertium.core.segment import Segment
from tertium.data.record_files import parse_json
from tertium.data.records import get_text, read_integer, read_object_list, read_probability

SPAN_LIST_NAMES = ("spans", "esa_spans", "errors", "missing")
ANNOTATION_NAMES = (*SPAN_LIST_NAMES[:-1], "start_indices")  # one of them: the row was annotated
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


def is_annotated(record: Mapping[str, Any]) -> bool:
    """Return whether somebody was asked to mark errors in the translation of a record."""
    return any(record.get(name) is not None for name in ANNOTATION_NAMES)


def read_error_annotations(
    record: Mapping[str, Any], segment: Segment, where: str
) -> spans.ErrorAnnotations:
    """Return the errors marked in a record's translation; `spans` may have been read before."""
    annotations = record.get("spans")
    if not isinstance(annotations, spans.ErrorAnnotations):
        annotations = _read_annotations(record, len(segment.hypothesis), where)
    for side in spans.SIDES:
        if text := segment.text_of(side):
            spans.check_span_bounds(annotations.spans, text, side, where)
    return annotations


def _read_annotations(record: Mapping[str, Any], length: int, where: str) -> spans.ErrorAnnotations:
    entries = list(_from_columns(record, length, where))
    for name in SPAN_LIST_NAMES:
        value = record.get(name)
        if isinstance(value, str):  # a table contains the list as JSON text
            value = parse_json(value or "[]", f"{where}, {name}")
        entries += [] if value is None else read_object_list(value, name, where)
    errors = [_read_error(entry, where) for entry in entries if not is_no_error(entry)]
    raters = record.get("raters")
    count = 1 if raters in (None, "") else read_integer(raters, "raters", where)
    if count < 1:
        raise DataError(f"{where}: {count} raters; expected one or more")
    return spans.ErrorAnnotations.of(errors, count)


def is_severity(name: str) -> bool:
    """Return whether a name is a severity."""
    return name.strip().lower() in {*spans.SEVERITIES, *SEVERITY_NAMES}


def read_severity(value: Any, where: str) -> spans.Severity:
    """Return the severity that a name stands for; a missing one is unknown (`bad`).

    >>> read_severity("Major", "line 1"), read_severity("undecided", "line 2")
    ('major', 'bad')
    """
    name = str(value or "bad").strip().lower() or "bad"
    if name in spans.SEVERITIES:
        return name
    if name not in SEVERITY_NAMES:
        error = UnknownNameError("severity", name, [*spans.SEVERITIES, *SEVERITY_NAMES])
        raise DataError(f"{where}: {error}")
    return SEVERITY_NAMES[name]


def is_no_error(entry: Mapping[str, Any]) -> bool:
    """Return whether an entry says that there is no error."""
    return str(entry.get("severity") or "").strip().lower() in NO_ERROR


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
        if start == end != "missing" and start != "-1":
            position = read_integer(start, "start", where)
            start, end = ("missing", "") if length <= position else (start, position + 1)
        yield {"start": start, "end": end, "severity": "none" if start == "-1" else severity}


def _read_error(entry: Mapping[str, Any], where: str) -> spans.Span | spans.UnlocatedError:
    severity = read_severity(entry.get("severity"), where)
    name = entry.get("category") or entry.get("error_type") or ""
    category = "/".join(map(str, name)) if isinstance(name, list) else str(name)
    rater, message = (get_text(entry, (key,)) for key in ("rater", "message"))
    start, end = entry.get("start", entry.get("start_i")), entry.get("end")
    if start is None and not category and entry.get("severity") is None:
        raise DataError(f"{where}: an error without start, severity and category: {entry}")
    if start in (None, "missing", end):
        return spans.UnlocatedError(severity, category, rater)
    first = read_integer(start, "start", where)
    if end is None:
        end = read_integer(entry.get("end_i"), "end_i", where) + 1
    last = read_integer(end, "end", where)
    chance = read_probability(entry.get("chance"), "chance", where)
    side: Any = "source" if entry.get("is_source_error") else entry.get("side", "hypothesis")
    try:
        return spans.Span(first, last, side, severity, category, rater, chance, message)
    except TertiumError as error:
        raise DataError(f"{where}: {error}") from None
