"""Label Studio: JSON exports, a list of tasks with `data` and `annotations`.

The texts are found in `data` by their usual names (`mt`, `src`, ...). Regions of a text are errors:
a label or choice that names a severity sets it, others are the category. A rating or number is the
score. Annotations that raters cancelled are excluded and counted.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from tertium.core.errors import DataError, short_repr
from tertium.data.formats import Source
from tertium.data.judgments import JudgmentSet, Row, collect_published, is_severity
from tertium.data.record_files import parse_json
from tertium.data.records import (
    HYPOTHESIS_NAMES,
    ITEM_NAMES,
    SOURCE_NAMES,
    Record,
    get_text,
    lowercase_columns,
    read_integer,
    read_object,
    read_object_list,
)
from tertium.data.text_files import check_record, read_text

SKIPPED = "task skipped by the rater"


def matches(source: Source) -> bool:
    return {"annotations", "data"} <= {*source.first_object}


def read(source: Source) -> Iterator[JudgmentSet]:
    path = str(source.path)
    tasks = read_object_list(parse_json(read_text(path), path), "the export", path)
    records = ((f"{path}, task {n}", {"id": n, **task}) for n, task in enumerate(tasks, start=1))
    yield collect_published(path, records, _convert)


def _convert(task: Record, where: str) -> Iterator[Row]:
    check_record(task, where)
    data = lowercase_columns(read_object(task.get("data"), "data", where))
    item = get_text(data, ITEM_NAMES) or get_text(task, ("id",))
    for annotation in read_object_list(task.get("annotations"), "annotations", where):
        if annotation.get("was_cancelled"):
            yield SKIPPED
        else:
            yield {**_read_annotation(data, annotation, where), "item": item}


def _read_annotation(data: Record, annotation: Record, where: str) -> dict[str, Any]:
    if not any(isinstance(data.get(name), str) for name in HYPOTHESIS_NAMES):
        raise DataError(
            f"{where}: no translation (looked for {', '.join(HYPOTHESIS_NAMES)} in data; found "
            f"{', '.join(data)})"
        )
    scores: list[Any] = []
    regions: dict[str, dict[str, Any]] = {}
    labels: dict[str, list[str]] = {}
    for entry in read_object_list(annotation.get("result"), "result", where):
        value, region = read_object(entry.get("value"), "value", where), get_text(entry, ("id",))
        scores += [value[name] for name in ("rating", "number") if name in value]
        if "start" in value and "end" in value:
            regions[region] = _read_region(data, entry, value, where)
        labels.setdefault(region, []).extend(_read_labels(value))
    if labels and not regions and not scores:
        raise DataError(f"{where}: no rating, number or marked text")
    for region, span in regions.items():
        span["severity"] = next(filter(is_severity, labels[region]), None)
        categories = [name for name in dict.fromkeys(labels[region]) if not is_severity(name)]
        span["category"] = "/".join(categories)
    rater = annotation.get("completed_by")
    rater = get_text(rater, ("id", "email")) if isinstance(rater, Mapping) else rater
    score = {"score": scores[0]} if scores else {}
    return {**data, **score, "annotator": rater, "spans": [*regions.values()]}


def _read_region(data: Record, entry: Record, value: Record, where: str) -> dict[str, Any]:
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


def _read_labels(value: Record) -> list[str]:
    """Return the labels, choices and taxonomy paths of a result."""
    labels: list[str] = []
    for key, entries in value.items():
        if key.endswith(("labels", "choices")) and isinstance(entries, list):
            labels += map(str, entries)
        elif key == "taxonomy" and isinstance(entries, list):
            labels += ["/".join(map(str, path)) for path in entries if isinstance(path, list)]
    return labels
