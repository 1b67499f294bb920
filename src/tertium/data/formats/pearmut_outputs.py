"""Pearmut: JSONL outputs, `user_id item_i annotation item`, with all systems of an item in a line.

The score of several sliders is their mean. A span behind the end of the text marks a special token
such as "[missing]": an error without a position.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

from tertium.core.errors import DataError, short_repr
from tertium.data.formats import Source
from tertium.data.judgments import QUALITY_CONTROL, JudgmentSet, Row, collect_published
from tertium.data.record_files import read_jsonl
from tertium.data.records import (
    SYSTEM_NAMES,
    Record,
    get_text,
    read_object,
    read_object_list,
    read_score,
)

REPLACED = "rating replaced by a later one"
EXTRA_ITEMS = ("welcome_", "random_", "goodbye_")


def matches(source: Source) -> bool:
    names = {*source.first_object}
    if {"campaign_id", "data"} <= names:
        raise DataError(
            f"{source.path} is a campaign of Pearmut without ratings: give its outputs/NAME.jsonl"
        )
    return {"annotation", "user_id", "item_i"} <= names


def read(source: Source) -> Iterator[JudgmentSet]:
    """Read an output file; of two ratings of an item by one rater, the later counts."""
    records = [*read_jsonl(source.path)]
    last = {_key(record): where for where, record in records}

    def convert(record: Record, where: str) -> Iterator[Row]:
        user, number = _key(record)
        if last[user, number] != where:
            yield REPLACED
        elif number.startswith(EXTRA_ITEMS):
            yield QUALITY_CONTROL
        else:
            yield from _rows(record, where)

    yield collect_published(source.path, records, convert)


def _key(record: Record) -> tuple[str, str]:
    return get_text(record, ("user_id",)), get_text(record, ("item_i",))


def _rows(record: Record, where: str) -> Iterator[Row]:
    """Yield a row for each item and system that was rated; skipped items have no rating."""
    ratings = record["annotation"]
    ratings = [ratings] if isinstance(ratings, Mapping) else ratings
    if not isinstance(ratings, list):
        raise DataError(f"{where}: annotation is {short_repr(ratings)}; expected a list or object")
    items = record.get("item") or [{}] * len(ratings)
    items = read_object_list([items] if isinstance(items, Mapping) else items, "item", where)
    if len(items) != len(ratings):
        raise DataError(f"{where}: {len(ratings)} ratings for {len(items)} items")
    for place, (item, rating) in enumerate(zip(items, ratings, strict=True)):
        name = get_text(item, ("item_id",)) or "/".join(filter(None, (*_key(record), str(place))))
        systems = read_object(rating or {}, "annotation", where)
        if not all(isinstance(answer, Mapping) for answer in systems.values()):
            systems = {get_text(item, SYSTEM_NAMES): systems}  # one translation per item
        for system, answer in systems.items():
            texts = item.get("tgt")
            text = texts.get(system) if isinstance(texts, Mapping) else texts
            row = {
                "annotator": _key(record)[0],
                "item": name,
                "system": system,
                "score": _read_score(answer, where),
                "errors": locate_errors(answer.get("error_spans"), text),
                "mt": text,
                "src": item.get("src"),
                "ref": item.get("ref"),
            }
            yield QUALITY_CONTROL if "validation" in item else row  # an attention check


def _read_score(answer: Record, where: str) -> Any:
    """Return the score, or the mean of all sliders on their scales, as in Pearmut."""
    sliders = read_object(answer.get("sliders") or {}, "sliders", where)
    if answer.get("score") is not None or not sliders:
        return answer.get("score")
    values = [read_score(value, f"{where}, slider {name!r}") for name, value in sliders.items()]
    if any(map(math.isnan, values)):
        raise DataError(f"{where}: a slider has no value ({', '.join(sliders)})")
    return sum(values) / len(values)


def locate_errors(errors: Any, text: Any) -> Any:
    """Return errors; those on special tokens, which follow the text, have no position."""
    if not isinstance(errors, list) or not isinstance(text, str) or not text:
        return errors
    located = []
    for error in errors:
        start = error.get("start_i") if isinstance(error, Mapping) else None
        is_token = isinstance(start, int) and start >= len(text)
        located.append({**error, "start_i": "missing"} if is_token else error)
    return located
