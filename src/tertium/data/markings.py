"""Marked errors of a record, under the names that campaigns publish.

spans, missing, raters                      our own: places exclusive, `missing` without a place
esa_spans, errors                           ESA and Appraise: `start_i`, `end_i` (the last code
                                            point itself) or "missing", `error_type`;
                                            mt-metrics-eval: `start`, `end`, `is_source_error`
start_indices, end_indices, error_types     WMT's span tasks: numbers and severities in one text
                                            each, separated by blanks; -1 and `no-error` for none
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tertium.data.formats import parse_json
from tertium.errors import DataError, LengthError, TertiumError, UnknownNameError
from tertium.segment import Segment
from tertium.spans import SEVERITIES, Markings, Severity, Span, Unplaced, check_places

LISTS = ("spans", "esa_spans", "errors")
MARKED = (*LISTS, "start_indices")  # where someone looked for errors, be it in vain
NO_ERROR = frozenset({"no-error", "no error", "none", ""})
# What other scales call theirs. Five grades, as of IndicMT-Eval, weigh 1 to 5 there: the nearer of
# minor (1) and major (5), and the graver of the two in the middle.
SEVERITY_NAMES: Mapping[str, Severity] = {
    "undecided": "bad",
    "default": "bad",
    "very low": "minor",
    "low": "minor",
    "medium": "major",
    "high": "major",
    "very high": "major",
}


def markings_from(record: Mapping[str, Any], segment: Segment, where: str) -> Markings | None:
    """What was marked in a record's translation, None where nobody looked for errors.

    Places are checked against the texts, where these are known.
    """
    if all(record.get(name) is None for name in MARKED):
        return None
    name = next((name for name in LISTS if record.get(name) is not None), "")
    length = len(segment.hypothesis)
    errors = _entries(record, name, where) if name else [*_from_columns(record, length, where)]
    errors += _entries(record, "missing", where) if record.get("missing") is not None else []
    marked = [_error(entry, where) for entry in errors if not _is_none(entry)]
    markings = Markings.of(marked, _raters(record.get("raters"), where))
    if segment.hypothesis:
        check_places(markings.spans, segment.hypothesis, "hypothesis", where)
    if segment.source is not None:
        check_places(markings.spans, segment.source, "source", where)
    return markings


def read_severity(value: Any, where: str) -> Severity:
    """A severity under any of its names.

    >>> read_severity("Major", "line 1"), read_severity("undecided", "line 2")
    ('major', 'bad')
    """
    name = str(value).strip().lower()
    if name in SEVERITIES:
        return name
    if name not in SEVERITY_NAMES:
        known = UnknownNameError("severity", name, [*SEVERITIES, *SEVERITY_NAMES])
        raise DataError(f"{where}: {known}")
    return SEVERITY_NAMES[name]


def _entries(record: Mapping[str, Any], name: str, where: str) -> list[Mapping[str, Any]]:
    """A list of objects, or the JSON text of one, as cells of tables have it."""
    value = record[name]
    if isinstance(value, str):
        value = parse_json(value, f"{where}, {name}") if value.strip() else []
    if not isinstance(value, Sequence) or not all(isinstance(entry, Mapping) for entry in value):
        raise DataError(f"{where}: {name} is {str(value)[:40]!r}; expected a list of objects")
    return list(value)


def _from_columns(
    record: Mapping[str, Any], length: int, where: str
) -> Iterator[Mapping[str, Any]]:
    """Errors of one cell each; a span that ends where it starts marks a character, as WMT23 counts.

    Behind the last character there is none to mark: such an error has no place.
    """
    names = ("start_indices", "end_indices", "error_types")
    cells = [str(record.get(name) or "").split() for name in names]
    if len({len(cell) for cell in cells}) > 1:
        counts = ", ".join(f"{len(c)} {name}" for c, name in zip(cells, names, strict=True))
        raise LengthError(f"{where}: {counts}; expected as many of each")
    for start, end, severity in zip(*cells, strict=True):
        if severity.lower() in NO_ERROR or start == "-1":
            continue
        if start == end and start.isdecimal():
            start, end = ("missing", "") if length <= int(start) else (start, str(int(end) + 1))
        yield {"start": start, "end": end, "severity": severity}


def _is_none(entry: Mapping[str, Any]) -> bool:
    return str(entry.get("severity", "")).strip().lower() in NO_ERROR


def _error(entry: Mapping[str, Any], where: str) -> Span | Unplaced:
    severity = read_severity(entry["severity"], where)
    category = str(entry.get("category") or entry.get("error_type") or "")
    rater = "" if entry.get("rater") is None else str(entry["rater"])
    start = entry.get("start", entry.get("start_i"))
    if start is None or start == "missing":
        return Unplaced(severity, category, rater)
    last = entry.get("end")
    end = _whole(entry.get("end_i"), where) + 1 if last is None else _whole(last, where)
    try:
        side: Any = "source" if entry.get("is_source_error") else entry.get("side", "hypothesis")
        chance = entry.get("chance")
        return Span(_whole(start, where), end, side, severity, category, rater, chance)
    except TertiumError as error:
        raise DataError(f"{where}: {error}") from None


def _whole(value: Any, where: str) -> int:
    """A place as a number, also where a table has it as text."""
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    if isinstance(value, str) and value.lstrip("-").isdecimal():
        return int(value)
    raise DataError(f"{where}: the place {value!r} of a span is not a whole number")


def _raters(value: Any, where: str) -> int:
    count = 1 if value is None or value == "" else _whole(value, where)
    if count < 1:
        raise DataError(f"{where}: {count} raters; expected one or more")
    return count
