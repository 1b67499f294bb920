"""Tables of the WMT quality estimation tasks: scores, tags of words, and error spans.

WMT25 spans     `hypothesis_segment start_indices end_indices error_types`
WMT23 spans     `lp gold sid mt start_id end_id error` (gold labels), or `mt_system doc_id seg_id
                annotator_id source target start_ids end_ids errors` (training data)
WMT23 scores    `lp gold sid score`
WMT23 tags      `lp gold sid mt mttok tags`

The tables of WMT23 have a header or not. The score of spans is minus their weight, that of tags
minus the share of words tagged BAD.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tertium.core.errors import DataError, TertiumError
from tertium.core.spans import BAD, ErrorAnnotations, tags_to_spans
from tertium.data.formats import Source
from tertium.data.formats.mqm import mqm_language_pair
from tertium.data.judgments import JudgmentSet, Row, collect_published
from tertium.data.records import get_text
from tertium.data.tables import read_table

SCORES = ("lp", "gold", "sid", "score")
TAGS = ("lp", "gold", "sid", "mt", "mttok", "tags")
SPANS = ("lp", "gold", "sid", "mt", "start_id", "end_id", "error")
TRAINING = tuple(
    "mt_system doc_id seg_id annotator_id source target start_ids end_ids errors".split()
)
HEADERS = {len(header): header for header in (SCORES, TAGS, SPANS, TRAINING)}
SPAN_LAYOUTS = (
    {"hypothesis_segment", "error_types"},
    {"mt", "start_id", "end_id"},
    {"target", "start_ids", "end_ids"},
)
ALIASES = {
    "gold": "system",
    "mt_system": "system",
    "system_id": "system",
    "annotator_id": "annotator",
    "source_segment": "src",
    "hypothesis_segment": "mt",
    "target": "mt",
    "reference_segment": "ref",
    "start_id": "start_indices",
    "start_ids": "start_indices",
    "end_id": "end_indices",
    "end_ids": "end_indices",
    "error": "error_types",
    "errors": "error_types",
}


def matches(source: Source) -> bool:
    if source.gold:
        return False
    if _omitted_header(source.lines[0]) is not None:
        return True
    layouts = ({*SCORES}, {*TAGS})
    return source.columns in layouts or any(layout <= source.columns for layout in SPAN_LAYOUTS)


def read(source: Source) -> Iterator[JudgmentSet]:
    rows = read_table(source.path, _omitted_header(source.lines[0]))
    yield collect_published(source.path, rows, _convert, mqm_language_pair(source.path))


def _omitted_header(line: str) -> Sequence[str] | None:
    """Return the columns of a file of WMT23 if its first line is a row, or None."""
    cells = line.split("\t")
    is_row = cells[2:3] and cells[2].isdecimal()  # the number of a segment
    return HEADERS.get(len(cells)) if is_row else None


def _convert(row: Mapping[str, str], where: str) -> Iterator[Row]:
    record: dict[str, Any] = {
        ALIASES.get(name.lower(), name.lower()): value for name, value in row.items()
    }
    if "source_lang" in record:
        codes = [get_text(record, (name,)) for name in ("source_lang", "target_lang")]
        if not all(codes):
            raise DataError(f"{where}: expected source_lang and target_lang, got {codes}")
        record["lp"] = "-".join(codes)
    if "tags" in record:
        text = record.pop("mttok").removesuffix("<EOS>").rstrip()  # its tag is that of the end
        tags = record.pop("tags").split()
        try:
            spans = tags_to_spans(text, tags)
        except TertiumError as error:
            raise DataError(f"{where}: {error}") from None
        score = -tags.count(BAD) / max(len(tags), 1)
        record |= {"mt": text, "score": score, "spans": ErrorAnnotations(tuple(spans))}
    yield record
