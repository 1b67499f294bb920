"""Pearmut: JSONL outputs, `user_id item_i annotation item`, with all systems of an item in a line.

Older files have no texts: they are read from the campaign (`tasks/NAME.json` next to
`outputs/NAME.jsonl`), if it is there. The score of several sliders is their mean. A span behind the
end of the text marks a special token such as "[missing]": an error without a position.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from tertium.core.atomic import PathLike
from tertium.core.errors import DataError, short_repr
from tertium.data.formats import Source
from tertium.data.human_data import QUALITY_CONTROL
from tertium.data.judgments import JudgmentSet, Row, collect_published
from tertium.data.record_files import default_name, parse_json, read_jsonl
from tertium.data.records import get_text, read_object, read_score
from tertium.data.text_files import read_text

logger = logging.getLogger(__name__)

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
    source.refuse_gold()
    yield read_pearmut(source.path)


def read_pearmut(path: PathLike) -> JudgmentSet:
    """Read an output file; of two ratings of an item by one rater, the later counts."""
    campaign = _read_campaign(Path(path))
    records = [*read_jsonl(path)]
    last = {_key(record): where for where, record in records}
    sliders: dict[str, None] = {}  # names in order

    def convert(record: Mapping[str, Any], where: str) -> Iterator[Row]:
        user, number = _key(record)
        if last[user, number] != where:
            yield REPLACED
        elif number.startswith(EXTRA_ITEMS):
            yield QUALITY_CONTROL
        else:
            for item, name, rating in _pair_items(record, campaign, where):
                for row in _read_ratings(item, rating, where):
                    sliders.update(dict.fromkeys(row.pop("sliders")))
                    is_control = "validation" in item  # tutorials and attention checks
                    row |= {"item": name, "annotator": user}
                    yield QUALITY_CONTROL if is_control else row

    judgments = collect_published(path, records, convert)
    if len(sliders) > 1:
        logger.warning(
            "%s: the score is the mean of the sliders %s, as Pearmut computes it; a slider with a "
            "larger range weighs more",
            path,
            ", ".join(sliders),
        )
    return judgments


def _key(record: Mapping[str, Any]) -> tuple[str, str]:
    return get_text(record, ("user_id",)), get_text(record, ("item_i",))


def _read_campaign(path: Path) -> Any:
    """Return the items of a campaign by rater, or for all raters, if its file can be found."""
    file = path.parent.parent / "tasks" / f"{default_name(path)}.json"
    if path.parent.name != "outputs" or not file.is_file():
        return {}
    return read_object(parse_json(read_text(file), str(file)), "the campaign", str(file))["data"]


def _pair_items(
    record: Mapping[str, Any], campaign: Any, where: str
) -> Iterator[tuple[Mapping[str, Any], str, Any]]:
    """Yield each item of a record with its name and its rating; skipped items have none."""
    user, number = _key(record)
    ratings = record["annotation"]
    ratings = [ratings] if isinstance(ratings, Mapping) else ratings
    if not isinstance(ratings, list):
        raise DataError(f"{where}: annotation is {short_repr(ratings)}; expected a list or object")
    items = record.get("item")
    if items is None:
        tasks = campaign.get(user) if isinstance(campaign, Mapping) else campaign
        if isinstance(tasks, list) and number.isdecimal():
            items = next(iter(tasks[int(number) :]), None)
    items = items if isinstance(items, list) and len(items) == len(ratings) else [{}] * len(ratings)
    for place, (item, rating) in enumerate(zip(items, ratings, strict=True)):
        texts = read_object(item, "item", where)
        name = get_text(texts, ("item_id",)) or "/".join(filter(None, (user, number, str(place))))
        if rating is not None:
            yield texts, name, rating


def _read_ratings(item: Mapping[str, Any], rating: Any, where: str) -> Iterator[dict[str, Any]]:
    """Yield a row for each system that was rated."""
    systems = read_object(rating, "annotation", where)
    if not all(isinstance(answer, Mapping) for answer in systems.values()):
        systems = {get_text(item, ("system", "model")): systems}  # one translation per item
    texts = item.get("tgt")
    for system, answer in systems.items():
        text = texts.get(system) if isinstance(texts, Mapping) else texts
        sliders = read_object(answer.get("sliders") or {}, "sliders", where)
        score = answer.get("score")
        if score is None and sliders:
            score = _mean_of_sliders(sliders, where)
        yield {
            "system": system,
            "score": score,
            "errors": _locate_errors(answer.get("error_spans"), text),
            "mt": text,
            "src": item.get("src"),
            "ref": item.get("ref"),
            "sliders": sliders,
        }


def _mean_of_sliders(sliders: Mapping[str, Any], where: str) -> float:
    """Return the mean of all sliders on their scales, which is the score in Pearmut."""
    total = 0.0
    for name, value in sliders.items():
        score = read_score(value, f"{where}, slider {name!r}")
        if math.isnan(score):
            raise DataError(f"{where}: the slider {name!r} has no value")
        total += score
    return total / len(sliders)


def _locate_errors(errors: Any, text: Any) -> Any:
    """Return errors; those on special tokens, which follow the text, have no position."""
    if not isinstance(errors, list) or not isinstance(text, str) or not text:
        return errors
    located = []
    for error in errors:
        start = error.get("start_i") if isinstance(error, Mapping) else None
        is_token = isinstance(start, int) and start >= len(text)
        located.append({**error, "start_i": "missing"} if is_token else error)
    return located
