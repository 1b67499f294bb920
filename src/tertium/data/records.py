"""Read texts, names and scores from records under any of their usual column names.

The names of systems, documents and items are always texts, however a file stores them, so that
different files match.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

from tertium.core.arrays import MAX_ABS_SCORE
from tertium.core.errors import DataError, short_repr
from tertium.core.result import format_name
from tertium.core.segment import Segment, checked_segment
from tertium.text.language_codes import normalize_language_pair

SOURCE_NAMES = ("src", "source", "original")
HYPOTHESIS_NAMES = ("mt", "hyp", "hypothesis", "translation", "candidate", "prediction")
REFERENCE_NAMES = ("ref", "refs", "reference", "references")
SYSTEM_NAMES = ("system", "model")
ITEM_NAMES = ("item", "segment", "seg_id", "segment_id", "segmentid", "line_id", "sid", "id")
ANNOTATOR_NAMES = ("annotator", "rater", "judge", "user", "worker", "workerid", "judgeid")
LP_NAMES = ("lp", "langpair", "language_pair")
TEXT_NAMES = frozenset({*SOURCE_NAMES, *HYPOTHESIS_NAMES, *REFERENCE_NAMES})
DOCUMENT_NAMES = ("document", "doc", "docid", "doc_id")

Record = Mapping[str, Any]  # one row of a file by column
LocatedRecords = Iterator[tuple[str, dict[str, Any]]]  # with their places in a file

MAX_NAME_LENGTH = 40  # characters; a longer column name is probably a text
WARNINGS_SUFFIX = ".warnings"  # METRIC.warnings is the column of a metric's warnings
SPANS_SUFFIX = ".spans"  # METRIC.spans is the column of the errors that a metric marks, as JSON
MISSING_SCORE_MARKS = frozenset({"", "none", "nan", "na", "n/a", "null", "-"})

_INTEGER = re.compile(r"-?[0-9]{1,18}")  # longer numbers are never offsets or counts
_NUMBERED = re.compile(rf"(?:{'|'.join(REFERENCE_NAMES)})[_-]?(\d+)")
_STANDARD_COLUMNS = TEXT_NAMES | {*SYSTEM_NAMES, *ITEM_NAMES, *DOCUMENT_NAMES}


def lowercase_known_columns(record: Record) -> Record:
    """Lowercase the column names that this module knows; other names are unchanged.

    >>> lowercase_known_columns({"System": "A", "mt": "hello", "Ref2": "hi", "Domain": "news"})
    {'system': 'A', 'mt': 'hello', 'ref2': 'hi', 'Domain': 'news'}
    """
    return dict(zip(_lowercase_header(tuple(record), True), record.values(), strict=True))


def lowercase_columns(record: Record) -> dict[str, Any]:
    """Lowercase all column names, except one whose lowercase form also exists.

    >>> lowercase_columns({"Score": 1, "Domain": "news"})
    {'score': 1, 'domain': 'news'}
    >>> lowercase_columns({"score": 1, "Score": 2})
    {'score': 1, 'Score': 2}
    """
    return dict(zip(_lowercase_header(tuple(record), False), record.values(), strict=True))


@lru_cache(maxsize=256)
def _lowercase_header(header: tuple[str, ...], is_known_only: bool) -> list[str]:
    names = []
    for name in header:
        lowered = name.lower()
        is_renamed = lowered not in header and (not is_known_only or _is_standard_column(lowered))
        names.append(lowered if is_renamed else name)
    return names


def _is_standard_column(name: str) -> bool:
    return name in _STANDARD_COLUMNS or is_numbered_reference(name)


def get_unique_alias(record: Record, names: Sequence[str], where: str) -> Any:
    """Return the value of the only alias that has one, or None; two values are an error."""
    present = [name for name in names if record.get(name) is not None]
    if len(present) > 1:
        raise DataError(f"{where}: both {present[0]!r} and {present[1]!r} are given; keep one")
    return record[present[0]] if present else None


def read_name(record: Record, names: Sequence[str], where: str) -> str:
    """Return the name of a system or document, or an empty string; a number is a name.

    >>> read_name({"system": 0}, SYSTEM_NAMES, "line 1")
    '0'
    """
    value = get_unique_alias(record, names, where)
    if value is None:
        return ""
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise DataError(f"{where}: {names[0]} is {value!r}; expected a name or a number")
    return format_name(value)


def read_score(value: Any, where: str) -> float:
    """Parse a score; a missing one (absent, empty, `None`, `nan`, `NA`) is NaN.

    >>> read_score("72.5", "line 2"), read_score("None", "line 3")
    (72.5, nan)
    """
    if value is None or (isinstance(value, str) and value.strip().lower() in MISSING_SCORE_MARKS):
        return math.nan
    try:
        score = float(value)
    except (TypeError, ValueError):
        raise DataError(f"{where}: the score {value!r} is not a number") from None
    except OverflowError:  # an integer of more than 308 digits
        score = math.inf
    if abs(score) > MAX_ABS_SCORE:
        raise DataError(
            f"{where}: the score {str(value)[:40]!r} is too large; expected at most "
            f"{MAX_ABS_SCORE:g}"
        )
    return score


def read_metric_scores(record: Record, where: str) -> dict[str, float]:
    """Return the metric scores in the field `scores` of a record, by metric; omit missing ones.

    >>> read_metric_scores({"scores": {"chrf": 61.2, "judge": None}}, "line 1")
    {'chrf': 61.2}
    """
    scores = record.get("scores")
    if not isinstance(scores, Mapping):  # a list has another meaning, such as several ratings
        return {}
    values = {str(n): read_score(v, f"{where}, scores of {n}") for n, v in scores.items()}
    return {name: value for name, value in values.items() if not math.isnan(value)}


def read_integer(value: Any, name: str, where: str) -> int:
    """Parse a whole number, which a table contains as text.

    >>> read_integer("-1", "start", "line 2")
    -1
    """
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    if isinstance(value, str) and _INTEGER.fullmatch(value.strip()):
        return int(value)
    raise DataError(f"{where}: {name} is {short_repr(value)}; expected a whole number")


def read_object(value: Any, name: str, where: str) -> Record:
    """Return a JSON object, or raise an error."""
    if not isinstance(value, Mapping):
        raise DataError(f"{where}: {name} is {short_repr(value)}; expected an object")
    return value


def read_object_list(value: Any, name: str, where: str) -> list[Record]:
    """Return a list of JSON objects, or raise an error."""
    if not isinstance(value, list | tuple) or not all(isinstance(v, Mapping) for v in value):
        raise DataError(f"{where}: {name} is {short_repr(value)}; expected a list of objects")
    return list(value)


def read_language_pair(record: Record) -> str:
    """Return the language pair of a record with ISO 639-1 codes, or an empty string.

    >>> read_language_pair({"lp": "eng-deu"})
    'en-de'
    """
    name = get_text(record, LP_NAMES)
    return normalize_language_pair(name) if name else ""


def get_first_alias(record: Record, names: Sequence[str]) -> Any:
    """Return the value of the first alias that has one, or None."""
    for name in names:
        value = record.get(name)
        if value is not None:
            return value
    return None


def get_text(record: Record, names: Sequence[str]) -> str:
    """Return the value of the first alias that has one as text, or an empty string.

    >>> get_text({"segment": 12}, ITEM_NAMES), get_text({}, ITEM_NAMES)
    ('12', '')
    """
    value = get_first_alias(record, names)
    return "" if value is None else format_name(value)


def segment_from_record(record: Record, where: str, *, is_checked: bool = False) -> Segment:
    """Create a segment from a record with any of the usual column names.

    The texts of records from `record_files.read_records` are checked when they are read.

    >>> segment_from_record({"mt": "hello", "ref": ["hi", "hello"]}, "line 1")
    Segment(hypothesis='hello', source=None, references=('hi', 'hello'))
    """
    hypothesis = get_unique_alias(record, HYPOTHESIS_NAMES, where)
    if hypothesis is None:
        for name in HYPOTHESIS_NAMES:
            if name in record:
                raise DataError(
                    f'{where}: no translation ({name} is null; an empty translation is "")'
                )
        cut = MAX_NAME_LENGTH
        columns = [name if len(name) <= cut else f"{name[:cut]}..." for name in record]
        hint = "; if the first line is not a header, name the columns with --fields"
        raise DataError(
            f"{where}: no translation (looked for {', '.join(HYPOTHESIS_NAMES)}; found "
            f"{', '.join(columns) or 'nothing'}{hint if columns != [*record] else ''})"
        )
    if not isinstance(hypothesis, str):
        raise DataError(f"{where}: expected text, got {hypothesis!r}")
    make_segment = checked_segment if is_checked else Segment
    return make_segment(hypothesis, read_source(record, where), read_references(record, where))


def read_source(record: Record, where: str) -> str | None:
    """Return the source of a record, or None."""
    source: Any = get_unique_alias(record, SOURCE_NAMES, where)
    if source is not None and not isinstance(source, str):
        raise DataError(f"{where}: expected text, got {source!r}")
    return source


def read_references(record: Record, where: str) -> tuple[str, ...]:
    """Return the references: a text, a list, numbered columns (`ref1`, `ref2`, ...), or both.

    Numbered columns are sorted by number, and blank ones are absent, because a table cannot express
    absence otherwise. A blank text in a list is an empty reference, as in sacrebleu; metrics warn
    about it.

    >>> read_references({"ref": "a", "ref10": "c", "ref2": "b", "ref3": ""}, "line 1")
    ('a', 'b', 'c')
    >>> read_references({"ref": ["a", ""]}, "line 1")
    ('a', '')
    """
    value = get_unique_alias(record, REFERENCE_NAMES, where)
    columns = _numbered_references(tuple(record))
    if value is not None and not isinstance(value, str | Sequence):
        raise DataError(f"{where}: references must be a text or a list of texts, got {value!r}")
    if isinstance(value, str) and is_json_list(value):
        raise DataError(
            f"{where}: the reference is a list written as text, {value[:30]}...; give each "
            "reference a column (ref1, ref2, ...), or use JSONL or Parquet with lists"
        )
    texts = [] if value is None else [value] if isinstance(value, str) else list(value)
    present: dict[tuple[int, str], str] = {}
    for number, column in columns:
        if record[column] is None:
            continue
        if number in present:
            raise DataError(f"{where}: both {present[number]!r} and {column!r} are given; keep one")
        present[number] = column
        texts.append(record[column])
    for text in texts:
        if not isinstance(text, str):
            raise DataError(f"{where}: expected text, got {text!r}")
    return tuple(text for text in texts if text.strip() or not columns)


def is_json_list(text: str) -> bool:
    """Return whether a text is a JSON list of texts.

    >>> is_json_list('["a", "b"]'), is_json_list('["Go!", he said]')
    (True, False)
    """
    if not (text.startswith('["') and text.endswith('"]')):
        return False
    try:
        return all(isinstance(part, str) for part in json.loads(text))
    except (ValueError, RecursionError):
        return False


def is_numbered_reference(name: str) -> bool:
    """Return whether a column is one of several references, such as `ref2`."""
    return _NUMBERED.fullmatch(name) is not None


@lru_cache(maxsize=256)
def _numbered_references(header: tuple[str, ...]) -> list[tuple[tuple[int, str], str]]:
    """Return the columns `ref1`, `ref_2`, ... of a header, sorted by number; cached per header.

    A number is represented by its length and its digits, because Python does not parse integers of
    thousands of digits.
    """
    matches = [(_NUMBERED.fullmatch(name), name) for name in header]
    numbers = [(match[1].lstrip("0"), name) for match, name in matches if match]
    return sorted(((len(digits), digits), name) for digits, name in numbers)


def read_labels(record: Record, excluded: Sequence[str] = ()) -> dict[str, str]:
    """Return the values that are not texts, systems, documents or in `excluded`, as labels.

    >>> read_labels({"mt": "hello", "domain": "news", "year": 2024, "spans": [], "ref2": "hi"})
    {'domain': 'news', 'year': '2024'}
    """
    labels = {}
    for name in _label_columns(tuple(record), tuple(excluded)):
        value = record[name]
        if isinstance(value, str | int | float):
            labels[name] = format_name(value)
    return labels


@lru_cache(maxsize=256)
def _label_columns(header: tuple[str, ...], excluded: tuple[str, ...]) -> list[str]:
    other_columns = {*TEXT_NAMES, *SYSTEM_NAMES, *DOCUMENT_NAMES, *excluded}
    names = (name for name in header if name not in other_columns)
    return [name for name in names if not is_numbered_reference(name)]


def record_from_segment(segment: Segment) -> dict[str, Any]:
    """Return the record that `segment_from_record` reads."""
    record: dict[str, Any] = {"mt": segment.hypothesis}
    if segment.source is not None:
        record["src"] = segment.source
    if segment.references:
        record["ref"] = list(segment.references)
    return record


def shared_columns(systems: Sequence[Sequence[Mapping[str, str]]]) -> dict[str, tuple[str, ...]]:
    """Return the labels of segments, by column, that are equal in all systems."""
    names = dict.fromkeys(name for row in systems[0] for name in row)
    columns = {}
    for name in names:
        values = {tuple(row.get(name, "") for row in rows) for rows in systems}
        if len(values) == 1:
            columns[name] = values.pop()
    return columns
