"""Outputs of annotation tools: Appraise, Pearmut, Label Studio and factgenie.

Appraise        CSV exports without a header and without texts, a row for each rating: user, system,
                item, type, languages, score, document, complete, spans, times. Raters mark errors
                in some campaigns only.
Pearmut         JSONL outputs, `user_id item_i annotation item`, with all systems of an item in a
                line. The score of several sliders is their mean. A span behind the end of the text
                marks a special token such as "[missing]": an error without a position.
Label Studio    JSON exports, a list of tasks with `data` and `annotations`. The texts are found in
                `data` by their usual names (`mt`, `src`, ...). Regions of a text are errors: a
                label or choice that names a severity sets it, others are the category. A rating or
                number is the score.
factgenie       JSONL exports, `annotator_id dataset setup example_idx annotations`. Errors have no
                severities. Texts are known only if the lines have an `output`, and an error without
                a text has no position.

Rows of quality control, cancelled annotations and replaced ratings are excluded and counted.
"""

from __future__ import annotations

import ast
import csv
import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

from tertium.core.errors import DataError, short_repr
from tertium.data.formats import Source
from tertium.data.judgments import QUALITY_CONTROL, JudgmentSet, Row, collect_published, is_severity
from tertium.data.record_files import parse_json, read_jsonl
from tertium.data.records import (
    HYPOTHESIS_NAMES,
    ITEM_NAMES,
    SOURCE_NAMES,
    SYSTEM_NAMES,
    Record,
    get_text,
    lowercase_columns,
    read_integer,
    read_object,
    read_object_list,
    read_score,
)
from tertium.data.tables import parse_rows
from tertium.data.text_files import check_record, read_text

# columns before the spans, which only some campaigns have
APPRAISE_COLUMNS = ("annotator", "system", "item", "type", "from", "to", "score", "doc", "complete")
REQUIRED = 7  # campaigns without documents end after the score
TYPES = frozenset({"TGT", "BAD", "CHK", "REF", "SRC"})
CONTROL_SUFFIXES = ("#bad", "#dup", "#incomplete")


def is_appraise(source: Source) -> bool:
    return _is_row(next(csv.reader(source.lines[:1]), []))


def read_appraise(source: Source) -> Iterator[JudgmentSet]:
    rows = parse_rows(read_text(source.path), ",", str(source.path))
    records = ((f"{source.path}, line {line}", cells) for line, cells in rows)
    yield collect_published(source.path, records, _convert_rating)


def _is_row(cells: Sequence[str]) -> bool:
    return len(cells) >= REQUIRED and cells[3] in TYPES


def _convert_rating(cells: Sequence[str], where: str) -> Iterator[Row]:
    if not _is_row(cells):
        columns = ", ".join(APPRAISE_COLUMNS)
        raise DataError(f"{where}: expected {columns}, ...; got {short_repr(cells[:9], 80)}")
    record: dict[str, Any] = dict(zip(APPRAISE_COLUMNS, cells, strict=False))
    document = record.get("doc", "")
    is_control = document.endswith(CONTROL_SUFFIXES) or "tutorial" in document
    if record["type"] != "TGT" or is_control:
        yield QUALITY_CONTROL
        return
    if cells[9:] and cells[9][:1] in ("[", "{"):  # JSON, or in some versions Python literals
        record["errors"] = cells[9]
        with suppress(ValueError, SyntaxError, MemoryError, RecursionError):
            errors = ast.literal_eval(cells[9])
            record["errors"] = [errors] if isinstance(errors, dict) else errors
    yield record | {"lp": f"{record['from']}-{record['to']}"}


REPLACED = "rating replaced by a later one"
EXTRA_ITEMS = ("welcome_", "random_", "goodbye_")


def is_pearmut(source: Source) -> bool:
    names = {*source.first_object}
    if {"campaign_id", "data"} <= names:
        raise DataError(
            f"{source.path} is a campaign of Pearmut without ratings: give its outputs/NAME.jsonl"
        )
    return {"annotation", "user_id", "item_i"} <= names


def read_pearmut(source: Source) -> Iterator[JudgmentSet]:
    """Read an output file; of two ratings of an item by one rater, the later counts."""
    records = [*read_jsonl(source.path)]
    last = {_rating_key(record): where for where, record in records}

    def convert(record: Record, where: str) -> Iterator[Row]:
        user, number = _rating_key(record)
        if last[user, number] != where:
            yield REPLACED
        elif number.startswith(EXTRA_ITEMS):
            yield QUALITY_CONTROL
        else:
            yield from _convert_outputs(record, where)

    yield collect_published(source.path, records, convert)


def _rating_key(record: Record) -> tuple[str, str]:
    return get_text(record, ("user_id",)), get_text(record, ("item_i",))


def _convert_outputs(record: Record, where: str) -> Iterator[Row]:
    """Yield a row for each item and system that was rated; skipped items have no rating."""
    user, number = _rating_key(record)
    ratings = record["annotation"]
    ratings = [ratings] if isinstance(ratings, Mapping) else ratings
    if not isinstance(ratings, list):
        raise DataError(f"{where}: annotation is {short_repr(ratings)}; expected a list or object")
    items = record.get("item") or [{}] * len(ratings)
    items = read_object_list([items] if isinstance(items, Mapping) else items, "item", where)
    if len(items) != len(ratings):
        raise DataError(f"{where}: {len(ratings)} ratings for {len(items)} items")
    for place, (item, rating) in enumerate(zip(items, ratings, strict=True)):
        names = filter(None, (user, number, str(place)))
        name = get_text(item, ("item_id",)) or "/".join(names)
        systems = read_object(rating or {}, "annotation", where)
        if not all(isinstance(answer, Mapping) for answer in systems.values()):
            systems = {get_text(item, SYSTEM_NAMES): systems}  # one translation per item
        for system, answer in systems.items():
            texts = item.get("tgt")
            text = texts.get(system) if isinstance(texts, Mapping) else texts
            row = {
                "annotator": user,
                "item": name,
                "system": system,
                "score": _mean_slider(answer, where),
                "errors": locate_errors(answer.get("error_spans"), text),
                "mt": text,
                "src": item.get("src"),
                "ref": item.get("ref"),
            }
            yield QUALITY_CONTROL if "validation" in item else row  # an attention check


def _mean_slider(answer: Record, where: str) -> Any:
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


SKIPPED = "task skipped by the rater"


def is_label_studio(source: Source) -> bool:
    return {"annotations", "data"} <= {*source.first_object}


def read_label_studio(source: Source) -> Iterator[JudgmentSet]:
    path = str(source.path)
    tasks = read_object_list(parse_json(read_text(path), path), "the export", path)
    records = ((f"{path}, task {n}", {"id": n, **task}) for n, task in enumerate(tasks, start=1))
    yield collect_published(path, records, _convert_task)


def _convert_task(task: Record, where: str) -> Iterator[Row]:
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
        value = read_object(entry.get("value"), "value", where)
        region = get_text(entry, ("id",))
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
        if isinstance(entries, list) and key.endswith(("labels", "choices", "taxonomy")):
            paths = (entry if isinstance(entry, list) else [entry] for entry in entries)
            labels += ["/".join(map(str, path)) for path in paths]
    return labels


def is_factgenie(source: Source) -> bool:
    return {"annotations", "annotator_id", "example_idx"} <= {*source.first_object}


def read_factgenie(source: Source) -> Iterator[JudgmentSet]:
    yield collect_published(source.path, read_jsonl(source.path), _convert_example)


def _convert_example(record: Record, where: str) -> Iterator[Row]:
    setup = record.get("setup")
    metadata = record.get("metadata")
    config = metadata.get("config", metadata) if isinstance(metadata, Mapping) else {}
    kinds = config.get("annotation_span_categories") if isinstance(config, Mapping) else None
    errors = []
    for entry in read_object_list(record.get("annotations"), "annotations", where):
        text = entry.get("text")
        if not isinstance(text, str):
            raise DataError(f"{where}: text is {short_repr(text)}; expected the marked text")
        error: dict[str, Any] = {"category": _category(entry.get("type"), kinds)}
        if text:
            start = read_integer(entry.get("start"), "start", where)
            error |= {"start": start, "end": start + len(text)}
        errors.append(error)
    yield {
        "system": get_text(setup if isinstance(setup, Mapping) else record, ("id", "setup_id")),
        "doc": record.get("dataset"),
        "item": record.get("example_idx"),
        "annotator": record["annotator_id"],
        "mt": record.get("output"),
        "spans": errors,
    }


def _category(kind: Any, kinds: Any) -> str:
    """Return the name of an error type: its number, if the categories are not in the file."""
    try:
        return get_text(kinds[kind], ("name",))
    except (TypeError, LookupError, AttributeError):
        return f"type {kind}"
