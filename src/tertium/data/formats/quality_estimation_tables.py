"""Tables of the WMT quality estimation tasks: scores, tags of words, and error spans.

WMT25 spans     `hypothesis_segment start_indices end_indices error_types`
WMT23 spans     `lp gold sid mt start_id end_id error` (gold labels), or `mt_system doc_id seg_id
                annotator_id source target start_ids end_ids errors` (training data)
WMT23 scores    `lp gold sid score`
WMT23 tags      `lp gold sid mt mttok tags`

The tables of WMT23 have a header or not. Submissions (.txt) start with three lines of numbers, then
have rows like the gold labels. The score of spans is minus their weight, that of tags minus the
share of words tagged BAD.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from tertium.core.atomic import PathLike
from tertium.core.errors import DataError, TertiumError
from tertium.core.spans import BAD, tags_to_spans
from tertium.data.formats import Source
from tertium.data.formats.mqm import mqm_language_pair
from tertium.data.judgments import JudgmentSet, Row, collect_published
from tertium.data.records import get_text
from tertium.data.tables import read_table
from tertium.data.text_files import LANGUAGE_PAIR, read_first_lines, read_lines

SCORES = ("lp", "gold", "sid", "score")
TAGS = ("lp", "gold", "sid", "mt", "mttok", "tags")
SPANS = ("lp", "gold", "sid", "mt", "start_id", "end_id", "error")
TRAINING = tuple(
    "mt_system doc_id seg_id annotator_id source target start_ids end_ids errors".split()
)
SPAN_LAYOUTS = (
    {"hypothesis_segment", "error_types"},
    {"mt", "start_id", "end_id"},
    {"target", "start_ids", "end_ids"},
)
ALIASES = {
    "gold": "system", "mt_system": "system", "system_id": "system", "annotator_id": "annotator",
    "source_segment": "src", "hypothesis_segment": "mt", "target": "mt", "reference_segment": "ref",
    "start_id": "start_indices", "start_ids": "start_indices", "end_id": "end_indices",
    "end_ids": "end_indices", "error": "error_types", "errors": "error_types",
}  # fmt: skip


def matches(source: Source) -> bool:
    if ".txt" in source.path.suffixes:
        return _is_submission(source.lines)
    if source.gold:
        return False
    if _find_omitted_header(source.lines):
        return True
    columns = source.columns
    is_labels = columns in ({*SCORES}, {*TAGS})
    return is_labels or any(layout <= columns for layout in SPAN_LAYOUTS)


def read(source: Source) -> Iterator[JudgmentSet]:
    source.refuse_gold()
    yield read_quality_estimation_table(source.path)


def read_quality_estimation_table(path: PathLike) -> JudgmentSet:
    """Read a table or a submission into a judgment for each row."""
    lines = read_first_lines(path, 4)
    is_submission = ".txt" in Path(path).suffixes and _is_submission(lines)
    table = read_table(path, _find_omitted_header(lines)) if not is_submission else None
    rows = _read_submission(path) if table is None else table
    return collect_published(path, rows, _convert, mqm_language_pair(path))


def _is_submission(lines: Sequence[str]) -> bool:
    *sizes, row = lines
    has_columns = len(row.split("\t")) == len(SPANS)
    return has_columns and len(sizes) == 3 and all(size.strip().isdecimal() for size in sizes)


def _read_submission(path: PathLike) -> Iterator[tuple[str, dict[str, str]]]:
    for number, line in enumerate(read_lines(path)[3:], start=4):
        cells, where = line.split("\t"), f"{path}, line {number}"
        if len(cells) != len(SPANS):
            expected = f"expected {len(SPANS)}: {', '.join(SPANS)}"
            raise DataError(f"{where}: {len(cells)} fields; {expected}")
        yield where, dict(zip(SPANS, cells, strict=True))


def _find_omitted_header(lines: Sequence[str]) -> Sequence[str] | None:
    """Return the columns of a file of WMT23 without a header, or None."""
    cells = lines[0].split("\t")
    is_label = LANGUAGE_PAIR.fullmatch(cells[0]) and cells[2:3] and cells[2].isdecimal()
    for columns in (SCORES, TAGS, SPANS):
        if is_label and len(cells) == len(columns):
            return columns
    has_offsets = all(re.fullmatch(r"-1|[0-9 ]+", cell) for cell in cells[6:8])
    is_training = len(cells) == len(TRAINING) and cells[2].isdecimal() and has_offsets
    return TRAINING if is_training else None


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
        record |= {"mt": text, "score": score, "spans": [span.as_dict() for span in spans]}
    yield record
