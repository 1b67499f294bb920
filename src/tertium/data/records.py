"""What a record of any file says: the names people give to columns, and what stands under them.

One thing goes by several names (`src`, `source`, `original`); names of systems, documents and items
are texts, whichever file they are from and however it holds them, so that files meet.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from tertium.arrays import LARGEST
from tertium.errors import DataError
from tertium.frames import printed
from tertium.segment import Segment

SOURCE_NAMES = ("src", "source", "original")
HYPOTHESIS_NAMES = ("mt", "hyp", "hypothesis", "translation", "candidate", "prediction")
REFERENCE_NAMES = ("ref", "refs", "reference", "references")
SYSTEM_NAMES = ("system", "model")
ITEM_NAMES = ("item", "segment", "seg_id", "segment_id", "segmentid", "line_id", "sid", "id")
ANNOTATOR_NAMES = ("annotator", "rater", "judge", "user", "worker", "workerid", "judgeid")
LP_NAMES = ("lp", "langpair", "language_pair")
TEXT_NAMES = frozenset({*SOURCE_NAMES, *HYPOTHESIS_NAMES, *REFERENCE_NAMES})
DOCUMENT_NAMES = ("document", "doc", "docid", "doc_id")

LONG_NAME = 40  # characters of a field's name; what is longer is rather a text
WARNINGS = ".warnings"  # behind a metric's name where metrics are columns: that of its warnings
NOT_JUDGED = frozenset({"", "none", "nan", "na", "n/a", "null", "-"})

_NUMBERED = re.compile(rf"(?:{'|'.join(REFERENCE_NAMES)})[_-]?(\d+)")
_KNOWN = TEXT_NAMES | {*SYSTEM_NAMES, *ITEM_NAMES, *DOCUMENT_NAMES}


def fold_names(record: Mapping[str, Any]) -> Mapping[str, Any]:
    """A record whose names that we know are in lower case, as tables often capitalize them.

    >>> fold_names({"System": "A", "mt": "hello", "Ref2": "hi", "Domain": "news"})
    {'system': 'A', 'mt': 'hello', 'ref2': 'hi', 'Domain': 'news'}
    """
    if all(name == name.lower() or not _is_known(name.lower()) for name in record):
        return record
    folded: dict[str, Any] = {}
    for name, value in record.items():
        lowered = name.lower()
        known = _is_known(lowered) and (name == lowered or lowered not in record)
        folded[lowered if known else name] = value
    return folded


def lower_names(record: Mapping[str, Any]) -> dict[str, Any]:
    """A record whose names are all in lower case, but for one that another has already.

    >>> lower_names({"Score": 1, "Domain": "news"}), lower_names({"score": 1, "Score": 2})
    ({'score': 1, 'domain': 'news'}, {'score': 1, 'Score': 2})
    """
    lowered = {name.lower(): value for name, value in record.items()}
    if len(lowered) == len(record):
        return lowered
    return {n if n.lower() in record else n.lower(): value for n, value in record.items()}


def _is_known(name: str) -> bool:
    return name in _KNOWN or is_numbered_reference(name)


def pick(record: Mapping[str, Any], names: Sequence[str], where: str) -> Any:
    """The value under one of several aliases, None where none is there; two at once are refused."""
    present = [name for name in names if record.get(name) is not None]
    if len(present) > 1:
        raise DataError(f"{where}: both {present[0]!r} and {present[1]!r} are given; keep one")
    return record[present[0]] if present else None


def name_from(record: Mapping[str, Any], names: Sequence[str], where: str) -> str:
    """The name of a system or document, empty where there is none; a number is a name.

    >>> name_from({"system": 0}, SYSTEM_NAMES, "line 1")
    '0'
    """
    value = pick(record, names, where)
    if value is None:
        return ""
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise DataError(f"{where}: {names[0]} is {value!r}; expected a name or a number")
    return printed(value)


def read_score(value: Any, where: str) -> float:
    """A score as a number; NaN where it is absent or marked so (`None`, `nan`, `NA`, empty).

    >>> read_score("72.5", "line 2"), read_score("None", "line 3")
    (72.5, nan)
    """
    if value is None or (isinstance(value, str) and value.strip().lower() in NOT_JUDGED):
        return math.nan
    try:
        score = float(value)
    except (TypeError, ValueError):
        raise DataError(f"{where}: the score {value!r} is not a number") from None
    except OverflowError:  # a whole number of more than 308 digits
        score = math.inf
    if math.isinf(score):
        raise DataError(f"{where}: the score {str(value)[:40]!r} is not finite")
    if abs(score) > LARGEST:
        raise DataError(f"{where}: the score {value!r} is too large; expected at most {LARGEST:g}")
    return score


def first(record: Mapping[str, Any], names: Sequence[str]) -> Any:
    """The value under the first of several aliases that has one."""
    return next((record[name] for name in names if record.get(name) is not None), None)


def text_of(record: Mapping[str, Any], names: Sequence[str]) -> str:
    """The same as text, empty where there is none.

    >>> text_of({"segment": 12}, ITEM_NAMES), text_of({}, ITEM_NAMES)
    ('12', '')
    """
    value = first(record, names)
    return "" if value is None else printed(value)


def segment_from_record(record: Mapping[str, Any], where: str) -> Segment:
    """A segment from a record with any of the aliases people use.

    >>> segment_from_record({"mt": "hello", "ref": ["hi", "hello"]}, "line 1")
    Segment(hypothesis='hello', source=None, references=('hi', 'hello'))
    """
    hypothesis = pick(record, HYPOTHESIS_NAMES, where)
    if hypothesis is None:
        null = next((name for name in HYPOTHESIS_NAMES if name in record), "")
        shown = [name if len(name) <= LONG_NAME else f"{name[:LONG_NAME]}..." for name in record]
        why = f"looked for {', '.join(HYPOTHESIS_NAMES)}; found {', '.join(shown) or 'nothing'}"
        if shown != [*record]:
            why += "; where the first line is no header, name the columns with --fields"
        if null:
            why = f'{null} is null; an empty translation is ""'
        raise DataError(f"{where}: no translation ({why})")
    if not isinstance(hypothesis, str):
        raise DataError(f"{where}: expected text, got {hypothesis!r}")
    return Segment(hypothesis, source_from(record, where), references_from(record, where))


def source_from(record: Mapping[str, Any], where: str) -> str | None:
    """The source of a record, None where there is none."""
    source: Any = pick(record, SOURCE_NAMES, where)
    if source is not None and not isinstance(source, str):
        raise DataError(f"{where}: expected text, got {source!r}")
    return source


def references_from(record: Mapping[str, Any], where: str) -> tuple[str, ...]:
    """References given as one text, a list, numbered columns (`ref1`, `ref2`, ...), or both.

    Numbered ones follow in their order, and one that is blank is absent: a table has no other way
    to say so. A blank text in a list, as a blank line of a file, is a reference without words, as
    it is for sacrebleu; metrics count it among their warnings.

    >>> references_from({"ref": "a", "ref10": "c", "ref2": "b", "ref3": ""}, "line 1")
    ('a', 'b', 'c')
    >>> references_from({"ref": ["a", ""]}, "line 1")
    ('a', '')
    """
    value, columns = pick(record, REFERENCE_NAMES, where), _numbered_references(tuple(record))
    if value is not None and not isinstance(value, str | Sequence):
        raise DataError(f"{where}: references must be a text or a list of texts, got {value!r}")
    if isinstance(value, str) and is_listing(value):
        raise DataError(
            f"{where}: the reference is a list written as one text, {value[:30]}...; give each one "
            "a column (ref1, ref2, ...), or give JSONL or Parquet with lists"
        )
    found = [] if value is None else [value] if isinstance(value, str) else list(value)
    numbers: dict[tuple[int, str], str] = {}
    for number, column in columns:
        if record[column] is not None:
            if number in numbers:
                raise DataError(
                    f"{where}: both {numbers[number]!r} and {column!r} are given; keep one"
                )
            numbers[number] = column
            found.append(record[column])
    for text in found:
        if not isinstance(text, str):
            raise DataError(f"{where}: expected text, got {text!r}")
    return tuple(text for text in found if text.strip() or not columns)


def is_listing(text: str) -> bool:
    """Whether a text is a JSON list of texts, as tables of our own and of others hold it.

    >>> is_listing('["a", "b"]'), is_listing('["Go!", he said]')
    (True, False)
    """
    if not (text.startswith('["') and text.endswith('"]')):
        return False
    try:
        return all(isinstance(part, str) for part in json.loads(text))
    except (ValueError, RecursionError):
        return False


def is_numbered_reference(name: str) -> bool:
    """Whether a column is one of several references, such as `ref2`."""
    return _NUMBERED.fullmatch(name) is not None


@lru_cache(maxsize=256)
def _numbered_references(header: tuple[str, ...]) -> list[tuple[tuple[int, str], str]]:
    """The columns `ref1`, `ref_2`, ... of a header by number; found once a file, not once a row.

    A number is the count of its digits and the digits: Python reads no int of 5,000 of them.
    """
    matches = [(_NUMBERED.fullmatch(name), name) for name in header]
    numbers = [(match[1].lstrip("0"), name) for match, name in matches if match]
    return sorted(((len(digits), digits), name) for digits, name in numbers)


def labels_in(record: Mapping[str, Any], more: Sequence[str] = ()) -> dict[str, str]:
    """What a record says of a segment beside its texts, system and document; `more` are no labels.

    >>> labels_in({"mt": "hello", "domain": "news", "year": 2024, "spans": [], "ref2": "hi"})
    {'domain': 'news', 'year': '2024'}
    """
    known = {*TEXT_NAMES, *SYSTEM_NAMES, *DOCUMENT_NAMES, *more}
    return {
        name: printed(value)
        for name, value in record.items()
        if isinstance(value, str | int | float)
        and name not in known
        and not is_numbered_reference(name)
    }


def record_from_segment(segment: Segment) -> dict[str, Any]:
    """The record that `segment_from_record` reads back."""
    record: dict[str, Any] = {"mt": segment.hypothesis}
    if segment.source is not None:
        record["src"] = segment.source
    if segment.references:
        record["ref"] = list(segment.references)
    return record
