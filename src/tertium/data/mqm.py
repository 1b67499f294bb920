"""MQM: experts mark errors, errors weigh, and a translation's score is minus their sum.

Freitag et al. 2021 (Experts, Errors, and Context) weigh errors as `spans.MQM_WEIGHTS` says. Files
are tab-separated with a row for each error: `system doc doc_id seg_id rater source target category
severity`; a translation without error has one row that says so.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from tertium.data.formats import DOCUMENT_NAMES, PathLike, read_table
from tertium.data.judgements import (
    ANNOTATOR_NAMES,
    JudgementSet,
    name_items,
    place_judgements,
    text_of,
)
from tertium.data.markings import NO_ERROR, read_severity
from tertium.errors import DataError
from tertium.segment import Judgement, Segment
from tertium.spans import (
    MQM_WEIGHTS,
    Markings,
    Span,
    Unplaced,
    check_places,
    read_markup,
    weigh,
)

SEGMENT_NAMES = ("seg_id", "globalsegid", "global_seg_id", "segment", "segment_id", "item")
QUALITY_CONTROL = "quality-control row"


def read_mqm(
    path: PathLike,
    *,
    references: Mapping[str, str] | None = None,
    weights: Mapping[str, float] = MQM_WEIGHTS,
    lp: str = "",
) -> JudgementSet:
    """Read an MQM file to one judgement for each rater of each translation.

    Average the raters with `ratings.average`. `references` gives a reference by segment id, for the
    file has none. Rows of planted errors (severity `HOTW-test`) are left out and counted.
    """
    marks: dict[tuple[str, str, str], list[_Mark]] = {}
    texts: dict[tuple[str, str], tuple[Segment, str]] = {}  # with the document
    left_out: Counter[str] = Counter()
    for number, row in read_table(path):
        record = {key.lower(): value for key, value in row.items()}
        where = f"{path}, line {number}"
        system, item, rater = _names(record, where)
        if "hotw" in record.get("severity", "").lower():
            left_out[QUALITY_CONTROL] += 1
            continue
        segment, mark = _read_mark(record, (references or {}).get(item), weights, where)
        marks.setdefault((system, item, rater), []).append(mark)
        texts.setdefault((system, item), (segment, text_of(record, DOCUMENT_NAMES)))
    judgements = []
    for (system, item, rater), own in marks.items():
        segment, document = texts[system, item]
        total, errors = sum(mark.weight for mark in own), [e for mark in own for e in mark.errors]
        spans = tuple(e for e in errors if isinstance(e, Span))
        check_places(spans, segment.hypothesis, "hypothesis", f"{path}, {system}, segment {item}")
        markings = Markings(spans, tuple(e for e in errors if isinstance(e, Unplaced)))
        judgements.append(
            Judgement(segment, 0.0 - total, item, system, rater, lp, document, markings)
        )
    name = Path(path).name.split(".")[0]
    placed = tuple(place_judgements(name_items(judgements)))
    return JudgementSet(name=name, lp=lp, judgements=placed, left_out=dict(left_out))


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
