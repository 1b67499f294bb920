"""Read the exports of annotation tools: Pearmut, Label Studio and factgenie.

Pearmut JSONL           `user_id item_i annotation item`: scores and error spans of all systems of
                        an item. Older files have no texts: they are read from the campaign
                        (`tasks/NAME.json` next to `outputs/NAME.jsonl`), if it is there. The score
                        of several sliders is their mean. A span behind the end of the text marks a
                        special token such as "[missing]": an error without a position.
Label Studio JSON       a list of tasks with `data` and `annotations`. The texts are found in `data`
                        by their usual names (`mt`, `src`, ...). Regions of a text are errors: a
                        label or choice that names a severity sets it, others are the category. A
                        rating or number is the score.
factgenie JSONL         `annotator_id dataset setup example_idx annotations`: errors without
                        severities, and the texts only if the lines have an `output`

A judgment for each rater and translation is returned. Without scores, the score is minus the weight
of the errors.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from tertium.atomic import PathLike
from tertium.data.error_annotations import is_severity
from tertium.data.human_data import QUALITY_CONTROL
from tertium.data.judgments import JudgmentCollector, JudgmentSet
from tertium.data.record_files import JSON_SUFFIXES, parse_json, read_jsonl
from tertium.data.records import (
    HYPOTHESIS_NAMES,
    ITEM_NAMES,
    SOURCE_NAMES,
    get_text,
    lowercase_columns,
    read_integer,
    read_object,
    read_object_list,
    read_score,
)
from tertium.data.text_files import check_record, read_text
from tertium.errors import DataError, TertiumError, short_repr

logger = logging.getLogger(__name__)

Reader = Callable[[PathLike], JudgmentSet]
Row = dict[str, Any]

REPLACED = "rating replaced by a later one"
SKIPPED = "task skipped by the rater"
_PEARMUT_EXTRA_ITEMS = ("welcome_", "random_", "goodbye_")


def find_reader(path: PathLike) -> Reader | None:
    """Return the reader of an export, recognized by its first object, or None."""
    if not JSON_SUFFIXES & {*Path(path).suffixes}:
        return None
    text = read_text(path).lstrip()
    first_line = text.partition("\n")[0]
    is_document = text[:1] == "[" or first_line.rstrip() == "{"
    try:
        content = parse_json(text if is_document else first_line, str(path))
    except DataError:  # explained by the reader of other layouts
        return None
    if isinstance(content, dict) and {"campaign_id", "data"} <= {*content}:
        raise DataError(
            f"{path} is a campaign of Pearmut without ratings: give its outputs/NAME.jsonl"
        )
    first = content[0] if isinstance(content, list) and content else content
    if not isinstance(first, dict):
        return None
    layouts: dict[Reader, set[str]] = {
        read_pearmut: {"annotation", "user_id", "item_i"},
        read_factgenie: {"annotations", "annotator_id", "example_idx"},
    }
    if isinstance(content, list):
        layouts = {read_label_studio: {"annotations", "data"}}
    return next((reader for reader, names in layouts.items() if names <= {*first}), None)


def read_pearmut(path: PathLike) -> JudgmentSet:
    """Read an output file of Pearmut; of two ratings of an item by one rater, the later counts."""
    campaign = _read_pearmut_campaign(Path(path))
    collector = JudgmentCollector()
    sliders: dict[str, None] = {}  # names in order
    last: dict[tuple[str, str], tuple[str, Row]] = {}
    for where, record in read_jsonl(path):
        key = (get_text(record, ("user_id",)), get_text(record, ("item_i",)))
        collector.excluded_counts[REPLACED] += key in last
        last[key] = where, record
    for (user, number), (where, record) in last.items():
        if number.startswith(_PEARMUT_EXTRA_ITEMS):
            collector.excluded_counts[QUALITY_CONTROL] += 1
            continue
        try:
            rows = [*_pearmut_rows(record, campaign, user, number, where)]
        except TertiumError as error:
            collector.exclude_unreadable(error)
            continue
        for row in rows:
            sliders |= dict.fromkeys(row.pop("sliders"))
            if row.pop("is_control"):
                collector.excluded_counts[QUALITY_CONTROL] += 1
            else:
                collector.add_published(row, where)
    collector.excluded_counts = +collector.excluded_counts  # without zeros
    if len(sliders) > 1:
        logger.warning(
            "%s: the score is the mean of the sliders %s, as Pearmut computes it; a slider with a "
            "larger range weighs more",
            path,
            ", ".join(sliders),
        )
    return collector.build(Path(path).name.split(".")[0])


def _read_pearmut_campaign(path: Path) -> Any:
    """Return the items of a campaign by rater, or for all raters, if its file can be found."""
    file = path.parent.parent / "tasks" / f"{path.name.split('.')[0]}.json"
    if path.parent.name != "outputs" or not file.is_file():
        return {}
    return read_object(parse_json(read_text(file), str(file)), "the campaign", str(file))["data"]


def _pearmut_rows(record: Row, campaign: Any, user: str, number: str, where: str) -> Iterator[Row]:
    ratings = record["annotation"]
    ratings = [ratings] if isinstance(ratings, Mapping) else ratings
    if not isinstance(ratings, list):
        raise DataError(f"{where}: annotation is {short_repr(ratings)}; expected a list or object")
    items = record.get("item")
    if items is None:
        items = _find_pearmut_items(campaign, user, number)
    items = items if isinstance(items, list) and len(items) == len(ratings) else [{}] * len(ratings)
    for place, (item, rating) in enumerate(zip(items, ratings, strict=True)):
        if rating is None:  # items that may be skipped
            continue
        item = read_object(item, "item", where)
        texts = item.get("tgt")
        systems = read_object(rating, "annotation", where)
        if not all(isinstance(own, Mapping) for own in systems.values()):
            systems = {get_text(item, ("system", "model")): systems}  # one translation per item
        name = get_text(item, ("item_id",)) or "/".join(filter(None, (user, number, str(place))))
        for system, own in systems.items():
            mt = texts.get(system) if isinstance(texts, Mapping) else texts
            sliders = read_object(own.get("sliders") or {}, "sliders", where)
            score = own.get("score")
            if score is None and sliders:
                score = _mean_of_sliders(sliders, where)
            yield {
                **{"item": name, "system": system, "annotator": user},
                **{"score": score, "errors": _pearmut_errors(own.get("error_spans"), mt)},
                **{"mt": mt, "src": item.get("src"), "ref": item.get("ref")},
                "sliders": [*sliders],
                "is_control": "validation" in item,  # tutorials and attention checks
            }


def _mean_of_sliders(sliders: Mapping[str, Any], where: str) -> float:
    """Return the mean of all sliders on their own scales, which is the score in Pearmut."""
    values = []
    for name, value in sliders.items():
        score = read_score(value, f"{where}, slider {name!r}")
        if math.isnan(score):
            raise DataError(f"{where}: the slider {name!r} has no value")
        values.append(score)
    return sum(values) / len(values)


def _pearmut_errors(errors: Any, mt: Any) -> Any:
    """Return errors; those on special tokens, which follow the text, have no position."""
    if not isinstance(errors, list) or not isinstance(mt, str) or not mt:
        return errors
    return [_without_special_token(error, len(mt)) for error in errors]


def _without_special_token(error: Any, length: int) -> Any:
    start = error.get("start_i") if isinstance(error, Mapping) else None
    if isinstance(start, int) and start >= length:
        return {**error, "start_i": "missing"}
    return error


def _find_pearmut_items(campaign: Any, user: str, number: str) -> Any:
    tasks = campaign.get(user) if isinstance(campaign, Mapping) else campaign
    if not isinstance(tasks, list) or not number.isdecimal():
        return None
    return tasks[int(number)] if int(number) < len(tasks) else None


def read_label_studio(path: PathLike) -> JudgmentSet:
    """Read a JSON export of Label Studio; annotations that raters cancelled are excluded."""
    collector = JudgmentCollector()
    tasks = read_object_list(parse_json(read_text(path), str(path)), "the export", str(path))
    for number, task in enumerate(tasks, start=1):
        where = f"{path}, task {number}"
        try:
            check_record(task, where)
            data = lowercase_columns(read_object(task.get("data"), "data", where))
            annotations = read_object_list(task.get("annotations"), "annotations", where)
        except TertiumError as error:
            collector.exclude_unreadable(error)
            continue
        for annotation in annotations:
            if annotation.get("was_cancelled"):
                collector.excluded_counts[SKIPPED] += 1
                continue
            try:
                row = _label_studio_row(data, annotation, where)
            except TertiumError as error:
                collector.exclude_unreadable(error)
                continue
            row["item"] = get_text(data, ITEM_NAMES) or get_text(task, ("id",)) or str(number)
            collector.add_published(row, where)
    return collector.build(Path(path).name.split(".")[0])


def _label_studio_row(data: Row, annotation: Mapping[str, Any], where: str) -> Row:
    if not any(isinstance(data.get(name), str) for name in HYPOTHESIS_NAMES):
        raise DataError(
            f"{where}: no translation (looked for {', '.join(HYPOTHESIS_NAMES)} in data; found "
            f"{', '.join(data)})"
        )
    results = read_object_list(annotation.get("result"), "result", where)
    values = [read_object(entry.get("value"), "value", where) for entry in results]
    scores = [v.get("rating", v.get("number")) for v in values if {"rating", "number"} & {*v}]
    regions: dict[str, Row] = {}
    names: dict[str, list[str]] = {}
    for entry, value in zip(results, values, strict=True):
        region = get_text(entry, ("id",))
        if "start" in value and "end" in value:
            regions[region] = _label_studio_span(data, entry, value, where)
        names.setdefault(region, []).extend(_label_studio_names(value))
    for region, span in regions.items():
        severities = [name for name in names[region] if is_severity(name)]
        span["severity"] = severities[0] if severities else None
        span["category"] = "/".join(n for n in dict.fromkeys(names[region]) if not is_severity(n))
    if results and not regions and not scores:
        kinds = ", ".join(dict.fromkeys(get_text(entry, ("type",)) for entry in results))
        raise DataError(f"{where}: no rating, number or marked text (found {kinds})")
    rater = annotation.get("completed_by")
    rater = get_text(rater, ("id", "email")) if isinstance(rater, Mapping) else rater
    score = {"score": scores[0]} if scores else {}
    return {**data, **score, "annotator": rater, "spans": [*regions.values()]}


def _label_studio_span(
    data: Row, entry: Mapping[str, Any], value: Mapping[str, Any], where: str
) -> Row:
    """Return a marked region; offsets of JavaScript count UTF-16 units."""
    name = get_text(entry, ("to_name",)).lower()
    text = data.get(name)
    if name not in (*HYPOTHESIS_NAMES, *SOURCE_NAMES) or not isinstance(text, str):
        names = ", ".join((*HYPOTHESIS_NAMES, *SOURCE_NAMES))
        raise DataError(f"{where}: a region of {name!r}; expected a text named one of {names}")
    offsets = value.get("globalOffsets") or value  # of regions in HTML
    start, end = (read_integer(offsets.get(key), key, where) for key in ("start", "end"))
    marked = value.get("text")
    if marked is not None and text[start:end] != marked:
        units = text.encode("utf-16-le")
        start, end = (len(units[: 2 * n].decode("utf-16-le", "ignore")) for n in (start, end))
        if text[start:end] != marked:
            raise DataError(f"{where}: the marked text is {short_repr(marked)}, not at its offsets")
    return {"start": start, "end": end, "side": "source" if name in SOURCE_NAMES else "hypothesis"}


def _label_studio_names(value: Mapping[str, Any]) -> list[str]:
    """Return the labels, choices and taxonomy paths of a result."""
    names: list[str] = []
    for key, entries in value.items():
        if key.endswith(("labels", "choices")) and isinstance(entries, list):
            names += map(str, entries)
        elif key == "taxonomy" and isinstance(entries, list):
            names += ["/".join(map(str, path)) for path in entries if isinstance(path, list)]
    return names


def read_factgenie(path: PathLike) -> JudgmentSet:
    """Read a file of factgenie annotations; an error without text has no position."""
    collector = JudgmentCollector()
    for where, record in read_jsonl(path):
        try:
            row = _factgenie_row(record, where)
        except TertiumError as error:
            collector.exclude_unreadable(error)
            continue
        collector.add_published(row, where)
    return collector.build(Path(path).name.split(".")[0])


def _factgenie_row(record: Row, where: str) -> Row:
    setup = record.get("setup")
    system = get_text(setup if isinstance(setup, Mapping) else record, ("id", "setup_id"))
    metadata = record.get("metadata")
    config = metadata.get("config", metadata) if isinstance(metadata, Mapping) else {}
    kinds = config.get("annotation_span_categories") if isinstance(config, Mapping) else None
    errors = []
    for entry in read_object_list(record.get("annotations"), "annotations", where):
        text, start = entry.get("text"), entry.get("start")
        if not isinstance(text, str):
            raise DataError(f"{where}: text is {short_repr(text)}; expected the marked text")
        error: Row = {"category": _factgenie_category(entry.get("type"), kinds), "severity": None}
        if text:
            first = read_integer(start, "start", where)
            error |= {"start": first, "end": first + len(text)}
        errors.append(error)
    names = {"system": system, "doc": record.get("dataset"), "item": record.get("example_idx")}
    rater, text = record["annotator_id"], record.get("output")
    return {**names, "annotator": rater, "mt": text, "spans": errors}


def _factgenie_category(kind: Any, kinds: Any) -> str:
    """Return the name of an error type: its number, if the categories are not in the file."""
    is_listed = isinstance(kind, int) and isinstance(kinds, list) and 0 <= kind < len(kinds)
    entry = kinds[kind] if is_listed else None
    return get_text(entry, ("name",)) if isinstance(entry, Mapping) else f"type {kind}"
