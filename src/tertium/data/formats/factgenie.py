"""factgenie: JSONL exports, `annotator_id dataset setup example_idx annotations`.

Errors have no severities. Texts are known only if the lines have an `output`, and an error without
a text has no position.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from tertium.core.errors import DataError, short_repr
from tertium.data.formats import Source
from tertium.data.judgments import JudgmentSet, Row, collect_published
from tertium.data.record_files import read_jsonl
from tertium.data.records import (
    Record,
    get_text,
    read_integer,
    read_object_list,
)


def matches(source: Source) -> bool:
    return {"annotations", "annotator_id", "example_idx"} <= {*source.first_object}


def read(source: Source) -> Iterator[JudgmentSet]:
    yield collect_published(source.path, read_jsonl(source.path), _convert)


def _convert(record: Record, where: str) -> Iterator[Row]:
    setup, metadata = record.get("setup"), record.get("metadata")
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
