"""Campaigns in which people mark errors: MQM, where errors weigh, and ESA, where raters score, too.

Freitag et al. 2021 (Experts, Errors, and Context) weigh errors as `spans.MQM_WEIGHTS` says. Files
are tab-separated with a row for each error: `system doc doc_id seg_id rater source target category
severity`; a translation without error has one row that says so.

ESA and Appraise: raters mark errors, then score the translation from 0 to 100.

Kocmi et al. 2024 (Error Span Annotation). Campaigns publish, each row by one rater:

JSONL of `langs line_id src tgt doc_id esa_spans esa_score system annotator`
JSONL of `doc_id src_text tgt_text scores`      all systems of a segment in one line
CSV of Appraise without header                  user, system, item, type, languages, score,
                                                document, complete, spans, times
TSV of WMT25's span task                        `hypothesis_segment start_indices end_indices
                                                error_types`, and no score
TSV of WMT23's span task                        `lp gold sid mt start_id end_id error` (gold) or
                                                `mt_system doc_id seg_id annotator_id source target
                                                start_ids end_ids errors` (training); submissions
                                                have no header, but three lines of numbers first
"""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from tertium.data.formats import PathLike, read_jsonl, read_lines, read_rows, read_table
from tertium.data.judgments import Collector, JudgmentSet
from tertium.data.markings import NO_ERROR, read_severity
from tertium.data.records import ANNOTATOR_NAMES, DOCUMENT_NAMES, lower_names, text_of
from tertium.errors import DataError
from tertium.segment import Judgment, Segment
from tertium.spans import MQM_WEIGHTS, Markings, Span, Unplaced, check_places, read_markup, weigh

SEGMENT_NAMES = ("seg_id", "globalsegid", "global_seg_id", "segment", "segment_id", "item")
QUALITY_CONTROL = "quality-control row"
# columns of Appraise before and behind the spans, which only campaigns with spans have
_APPRAISE = ("annotator", "system", "item", "type", "from", "to", "score", "doc", "complete")
_TYPES = frozenset({"TGT", "BAD", "CHK", "REF", "SRC"})
_PLANTED = ("#bad", "#dup", "#incomplete")
_COLUMNS = {
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
_WMT23 = {
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
_GOLD = ("lp", "gold", "sid", "mt", "start_id", "end_id", "error")
# columns, in lower case, that tell the file of a campaign
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
    """Read an MQM file to one judgment for each rater of each translation.

    Average the raters with `ratings.average`. `references` gives a reference by segment id, for the
    file has none. Rows of planted errors (severity `HOTW-test`) are left out and counted.
    """
    marks: dict[tuple[str, str, str], list[_Mark]] = {}
    texts: dict[tuple[str, str], tuple[Segment, str]] = {}  # with the document
    collector = Collector()
    for where, row in read_table(path):
        record = lower_names(row)
        system, item, rater = _names(record, where)
        if "hotw" in record.get("severity", "").lower():
            collector.left_out[QUALITY_CONTROL] += 1
            continue
        segment, mark = _read_mark(record, (references or {}).get(item), weights, where)
        marks.setdefault((system, item, rater), []).append(mark)
        texts.setdefault((system, item), (segment, text_of(record, DOCUMENT_NAMES)))
    for (system, item, rater), own in marks.items():
        segment, document = texts[system, item]
        total, errors = sum(mark.weight for mark in own), [e for mark in own for e in mark.errors]
        markings, where = Markings.of(errors), f"{path}, {system}, segment {item}"
        check_places(markings.spans, segment.hypothesis, "hypothesis", where)
        collector.keep(Judgment(segment, 0.0 - total, item, system, rater, lp, document, markings))
    return collector.finish(Path(path).name.split(".")[0], lp)


class _Mark(NamedTuple):
    """One row: what it weighs, and its error, in two places where both texts are marked."""

    weight: float
    errors: tuple[Span | Unplaced, ...]


def _read_mark(
    record: Mapping[str, str], reference: str | None, weights: Mapping[str, float], where: str
) -> tuple[Segment, _Mark]:
    """The texts without the marks around errors, and what is marked."""
    severity, category = record.get("severity", ""), record.get("category", "")
    weight = weigh(severity, category, weights, where)
    is_error = severity.strip().lower() not in NO_ERROR
    grade = read_severity(severity, where) if is_error else "neutral"
    try:
        target, wrong = read_markup(record.get("target") or "", "hypothesis", grade, category)
        source, unseen = read_markup(record.get("source") or "", "source", grade, category)
    except DataError as error:
        raise DataError(f"{where}: {error}") from None
    segment = Segment(target, source or None, (reference,) if reference is not None else ())
    errors: tuple[Span | Unplaced, ...] = (*wrong, *unseen) or (Unplaced(grade, category),)
    return segment, _Mark(weight, errors if is_error else ())


def _names(record: Mapping[str, Any], where: str) -> tuple[str, str, str]:
    system, item = text_of(record, ("system",)), text_of(record, SEGMENT_NAMES)
    rater = text_of(record, ANNOTATOR_NAMES)
    if not (system and item and rater and "severity" in record):
        found = ", ".join(record)
        raise DataError(f"{where}: system, seg_id, rater and severity are needed; found {found}")
    return system, item, rater


def is_submission(path: PathLike) -> bool:
    """Whether a file is what was handed in to WMT23's span task: sizes, then rows of seven."""
    *sizes, row = (read_lines(path) if Path(path).suffix == ".txt" else [])[:4] or [""]
    wide = len(row.split("\t")) == len(_GOLD)
    return wide and len(sizes) == 3 and all(size.strip().isdecimal() for size in sizes)


def read_esa(path: PathLike) -> JudgmentSet:
    """Read the JSONL or TSV of a campaign to one judgment for each rater of each translation.

    Average the raters with `ratings.average`. The score of a translation with spans alone is
    minus their weight.
    """
    collector = Collector()
    for where, record in _read_rows(path):
        rows = _unfold(record, where) if "tgt_text" in record else iter([(where, record)])
        for place, row in rows:
            collector.add(_rename(row), place)
    return collector.finish(Path(path).name.split(".")[0])


def _read_rows(path: PathLike) -> Rows:
    """Records of a file of any of the layouts, each with where it stands."""
    if is_submission(path):
        for number, line in enumerate(read_lines(path)[3:], start=4):
            cells, where = line.split("\t"), f"{path}, line {number}"
            if len(cells) != len(_GOLD):
                expected = f"expected {len(_GOLD)}: {', '.join(_GOLD)}"
                raise DataError(f"{where}: {len(cells)} fields; {expected}")
            yield where, dict(zip(_GOLD, cells, strict=True))
        return
    yield from read_table(path) if ".tsv" in Path(path).suffixes else read_jsonl(path)


def _rename(row: Mapping[str, Any]) -> dict[str, Any]:
    columns = {key.lower() for key in row}
    names = _WMT23 if any(layout <= columns for layout in WMT23_LAYOUTS) else _COLUMNS
    renamed = {names.get(key.lower(), key.lower()): value for key, value in row.items()}
    if "source_lang" in renamed:
        renamed["lp"] = f"{renamed['source_lang']}-{renamed['target_lang']}"
    return renamed


def _unfold(record: Mapping[str, Any], where: str) -> Rows:
    """A row for each system and rater; `doc_id` is DOCUMENT_#_LINE."""
    document, _, line = str(record.get("doc_id", "")).rpartition("_#_")
    scores, texts = record["scores"], record["tgt_text"]
    if not isinstance(scores, Mapping) or not isinstance(texts, Mapping):
        raise DataError(f"{where}: scores and tgt_text are needed, both by system")
    for system, ratings in scores.items():
        shared = {"item": line, "doc": document, "system": system}
        shared |= {"src": record.get("src_text"), "mt": texts.get(system)}
        for rating in ratings:
            own = {key: rating.get(key) for key in ("score", "annotator", "errors")}
            yield f"{where}, {system}", own | shared


def is_appraise(path: PathLike) -> bool:
    """Whether a CSV file is an export of Appraise, which has no header."""
    first = next(csv.reader(read_lines(path)[:1]), [])
    return len(first) >= len(_APPRAISE) and first[3] in _TYPES


def read_appraise(path: PathLike) -> JudgmentSet:
    """Read an export of Appraise: scores and spans of items, without texts.

    Tutorials and what was planted to control raters are left out and counted.
    """
    collector = Collector()
    for line, cells in read_rows(path, ","):
        where = f"{path}, line {line}"
        if len(cells) < len(_APPRAISE) or cells[3] not in _TYPES:
            raise DataError(f"{where}: expected {', '.join(_APPRAISE)}, ...; got {cells[:9]}")
        record: dict[str, Any] = dict(zip(_APPRAISE, cells, strict=False))
        planted = record["doc"].endswith(_PLANTED) or "tutorial" in record["doc"]
        if record["type"] != "TGT" or planted:
            collector.left_out[QUALITY_CONTROL] += 1
            continue
        if cells[9:] and cells[9].startswith("["):
            record["errors"] = cells[9]
        collector.add(record | {"lp": f"{record['from']}-{record['to']}"}, where)
    return collector.finish(Path(path).name.split(".")[0])
