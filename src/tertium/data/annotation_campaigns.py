"""Read annotation campaigns: MQM (error weights), ESA and Appraise (errors and scores).

MQM (Freitag et al. 2021): tab-separated with a row for each error, `system doc doc_id seg_id rater
source target category severity`. A translation without errors has one row with severity `no-error`.
The weights are `spans.MQM_WEIGHTS`.

ESA (Kocmi et al. 2024) and Appraise: raters mark errors, then give a score from 0 to 100. Layouts,
with a row for each rater:

JSONL of `langs line_id src tgt doc_id esa_spans esa_score system annotator`
JSONL of `doc_id src_text tgt_text scores`      all systems of a segment in one line
Appraise CSV without header                     user, system, item, type, languages, score,
                                                document, complete, spans, times
WMT25 span task TSV                             `hypothesis_segment start_indices end_indices
                                                error_types`, without scores
WMT23 span task TSV                             `lp gold sid mt start_id end_id error` (gold) or
                                                `mt_system doc_id seg_id annotator_id source target
                                                start_ids end_ids errors` (training); submissions
                                                start with three lines of numbers and no header
"""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from tertium.data.error_annotations import NO_ERROR, read_severity
from tertium.data.formats import PathLike, parse_rows, read_jsonl, read_lines, read_table, read_text
from tertium.data.judgments import JudgmentCollector, JudgmentSet
from tertium.data.records import ANNOTATOR_NAMES, DOCUMENT_NAMES, get_text, lowercase_columns
from tertium.errors import DataError
from tertium.segment import Judgment, Segment
from tertium.spans import (
    MQM_WEIGHTS,
    ErrorAnnotations,
    Span,
    UnlocatedError,
    check_span_bounds,
    error_weight,
    parse_markup,
)

SEGMENT_NAMES = ("seg_id", "globalsegid", "global_seg_id", "segment", "segment_id", "item")
QUALITY_CONTROL = "quality-control row"
# columns of Appraise before the spans, which only some campaigns have
_APPRAISE_COLUMNS = (
    "annotator",
    "system",
    "item",
    "type",
    "from",
    "to",
    "score",
    "doc",
    "complete",
)
_APPRAISE_TYPES = frozenset({"TGT", "BAD", "CHK", "REF", "SRC"})
_CONTROL_SUFFIXES = ("#bad", "#dup", "#incomplete")
_COLUMN_ALIASES = {
    "langs": "lp",
    "line_id": "item",
    "tgt": "mt",
    "esa_score": "score",
    "hypothesis_segment": "mt",
    "source_segment": "src",
    "reference_segment": "ref",
    "system_id": "system",
    "segment_id": "item",
}
_WMT23_COLUMNS = {
    "sid": "item",
    "seg_id": "item",
    "mt_system": "system",
    "annotator_id": "annotator",
    "source": "src",
    "target": "mt",
    "doc_id": "doc",
    **dict.fromkeys(("start_id", "start_ids"), "start_indices"),
    **dict.fromkeys(("end_id", "end_ids"), "end_indices"),
    **dict.fromkeys(("error", "errors"), "error_types"),
}
_GOLD_COLUMNS = ("lp", "gold", "sid", "mt", "start_id", "end_id", "error")
# lowercase columns that identify the layout of a campaign file
WMT23_LAYOUTS = ({"mt", "start_id", "end_id"}, {"target", "start_ids", "end_ids"})
ESA_LAYOUTS = (
    {"esa_spans", "tgt"},
    {"scores", "tgt_text"},
    {"hypothesis_segment", "error_types"},
    *WMT23_LAYOUTS,
)

Rows = Iterator[tuple[str, Mapping[str, Any]]]


def read_mqm(
    path: PathLike,
    *,
    references: Mapping[str, str] | None = None,
    weights: Mapping[str, float] = MQM_WEIGHTS,
    lp: str = "",
) -> JudgmentSet:
    """Read an MQM file into a judgment for each rater and translation.

    Average the raters with `ratings.average_ratings`. `references` maps segment ids to references,
    because the file has none. Quality-control rows (severity `HOTW-test`) are excluded and counted.
    """
    marks: dict[tuple[str, str, str], list[_Mark]] = {}
    texts: dict[tuple[str, str], tuple[Segment, str]] = {}  # segment and document
    collector = JudgmentCollector()
    for where, row in read_table(path):
        record = lowercase_columns(row)
        system, item, rater = _read_names(record, where)
        if "hotw" in record.get("severity", "").lower():
            collector.excluded_counts[QUALITY_CONTROL] += 1
            continue
        segment, mark = _read_mark(record, (references or {}).get(item), weights, where)
        marks.setdefault((system, item, rater), []).append(mark)
        texts.setdefault((system, item), (segment, get_text(record, DOCUMENT_NAMES)))
    for (system, item, rater), rows in marks.items():
        segment, document = texts[system, item]
        score = 0.0 - sum(mark.weight for mark in rows)
        annotations = ErrorAnnotations.of([error for mark in rows for error in mark.errors])
        where = f"{path}, {system}, segment {item}"
        check_span_bounds(annotations.spans, segment.hypothesis, "hypothesis", where)
        judgment = Judgment(segment, score, item, system, rater, lp, document, annotations)
        collector.add_judgment(judgment)
    return collector.build(Path(path).name.split(".")[0], lp)


class _Mark(NamedTuple):
    """One row: its weight, and its errors, two if both source and translation are marked."""

    weight: float
    errors: tuple[Span | UnlocatedError, ...]


def _read_mark(
    record: Mapping[str, str], reference: str | None, weights: Mapping[str, float], where: str
) -> tuple[Segment, _Mark]:
    """Return the texts without error markup, and the marked errors."""
    severity, category = record.get("severity", ""), record.get("category", "")
    weight = error_weight(severity, category, weights, where)
    is_error = severity.strip().lower() not in NO_ERROR
    grade = read_severity(severity, where) if is_error else "neutral"
    try:
        target, spans = parse_markup(record.get("target") or "", "hypothesis", grade, category)
        source, omissions = parse_markup(record.get("source") or "", "source", grade, category)
    except DataError as error:
        raise DataError(f"{where}: {error}") from None
    segment = Segment(target, source or None, (reference,) if reference is not None else ())
    errors: tuple[Span | UnlocatedError, ...] = (*spans, *omissions) or (
        UnlocatedError(grade, category),
    )
    return segment, _Mark(weight, errors if is_error else ())


def _read_names(record: Mapping[str, Any], where: str) -> tuple[str, str, str]:
    system, item = get_text(record, ("system",)), get_text(record, SEGMENT_NAMES)
    rater = get_text(record, ANNOTATOR_NAMES)
    if not (system and item and rater and "severity" in record):
        columns = ", ".join(record)
        raise DataError(f"{where}: expected system, seg_id, rater and severity; found {columns}")
    return system, item, rater


def is_span_task_submission(path: PathLike) -> bool:
    """Return whether a file is a WMT23 span submission: three sizes, then seven columns."""
    *sizes, row = (read_lines(path) if Path(path).suffix == ".txt" else [])[:4] or [""]
    has_columns = len(row.split("\t")) == len(_GOLD_COLUMNS)
    return has_columns and len(sizes) == 3 and all(size.strip().isdecimal() for size in sizes)


def read_esa(path: PathLike) -> JudgmentSet:
    """Read a JSONL or TSV campaign file into a judgment for each rater and translation.

    Average the raters with `ratings.average_ratings`. If there are spans and no score, the score is
    minus the weight of the spans.
    """
    collector = JudgmentCollector()
    for where, record in _read_rows(path):
        rows = _unfold(record, where) if "tgt_text" in record else iter([(where, record)])
        for place, row in rows:
            collector.add(_rename(row), place)
    return collector.build(Path(path).name.split(".")[0])


def _read_rows(path: PathLike) -> Rows:
    """Yield the records of a file in any layout, with their locations."""
    if is_span_task_submission(path):
        for number, line in enumerate(read_lines(path)[3:], start=4):
            cells, where = line.split("\t"), f"{path}, line {number}"
            if len(cells) != len(_GOLD_COLUMNS):
                expected = f"expected {len(_GOLD_COLUMNS)}: {', '.join(_GOLD_COLUMNS)}"
                raise DataError(f"{where}: {len(cells)} fields; {expected}")
            yield where, dict(zip(_GOLD_COLUMNS, cells, strict=True))
        return
    yield from read_table(path) if ".tsv" in Path(path).suffixes else read_jsonl(path)


def _rename(row: Mapping[str, Any]) -> dict[str, Any]:
    columns = {key.lower() for key in row}
    names = (
        _WMT23_COLUMNS if any(layout <= columns for layout in WMT23_LAYOUTS) else _COLUMN_ALIASES
    )
    renamed = {names.get(key.lower(), key.lower()): value for key, value in row.items()}
    if "source_lang" in renamed:
        renamed["lp"] = f"{renamed['source_lang']}-{renamed['target_lang']}"
    return renamed


def _unfold(record: Mapping[str, Any], where: str) -> Rows:
    """Yield a row for each system and rater; `doc_id` is DOCUMENT_#_LINE."""
    document, _, line = str(record.get("doc_id", "")).rpartition("_#_")
    scores, texts = record["scores"], record["tgt_text"]
    if not isinstance(scores, Mapping) or not isinstance(texts, Mapping):
        raise DataError(f"{where}: expected objects scores and tgt_text, both by system")
    for system, ratings in scores.items():
        shared = {"item": line, "doc": document, "system": system}
        shared |= {"src": record.get("src_text"), "mt": texts.get(system)}
        for rating in ratings:
            fields = {key: rating.get(key) for key in ("score", "annotator", "errors")}
            yield f"{where}, {system}", fields | shared


def is_appraise(path: PathLike) -> bool:
    """Return whether a CSV file is an Appraise export, which has no header."""
    first = next(csv.reader(read_lines(path)[:1]), [])
    return len(first) >= len(_APPRAISE_COLUMNS) and first[3] in _APPRAISE_TYPES


def read_appraise(path: PathLike) -> JudgmentSet:
    """Read an Appraise export: scores and spans of items, without texts.

    Tutorials and quality-control items are excluded and counted.
    """
    collector = JudgmentCollector()
    for line, cells in parse_rows(read_text(path), ",", str(path)):
        where = f"{path}, line {line}"
        if len(cells) < len(_APPRAISE_COLUMNS) or cells[3] not in _APPRAISE_TYPES:
            raise DataError(
                f"{where}: expected {', '.join(_APPRAISE_COLUMNS)}, ...; got {cells[:9]}"
            )
        record: dict[str, Any] = dict(zip(_APPRAISE_COLUMNS, cells, strict=False))
        is_control = record["doc"].endswith(_CONTROL_SUFFIXES) or "tutorial" in record["doc"]
        if record["type"] != "TGT" or is_control:
            collector.excluded_counts[QUALITY_CONTROL] += 1
            continue
        if cells[9:] and cells[9].startswith("["):
            record["errors"] = cells[9]
        collector.add(record | {"lp": f"{record['from']}-{record['to']}"}, where)
    return collector.build(Path(path).name.split(".")[0])
