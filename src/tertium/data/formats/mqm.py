"""MQM (Freitag et al. 2021): tables with a row for each error.

Tab-separated, `system doc doc_id seg_id rater source target category
severity`. A translation without errors has one row with severity `no-error`. The weights are
`spans.MQM_WEIGHTS`. Rows that cannot be read are excluded and counted, unless they are more than
half of a file.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from tertium.core.atomic import PathLike
from tertium.core.errors import DataError
from tertium.core.segment import Judgment, Segment
from tertium.core.spans import (
    MQM_WEIGHTS,
    ErrorAnnotations,
    Span,
    UnlocatedError,
    check_span_bounds,
    error_weight,
    parse_markup,
)
from tertium.data.error_annotations import NO_ERROR, read_severity
from tertium.data.formats import Source
from tertium.data.human_data import QUALITY_CONTROL
from tertium.data.judgments import JudgmentCollector, JudgmentSet
from tertium.data.records import (
    ANNOTATOR_NAMES,
    DOCUMENT_NAMES,
    get_text,
    lowercase_columns,
)
from tertium.data.tables import read_table
from tertium.data.text_files import LANGUAGE_PAIR

logger = logging.getLogger(__name__)

SEGMENT_NAMES = ("seg_id", "globalsegid", "global_seg_id", "segment", "segment_id", "item")
INCOMPLETE_RATING = "row of a rating with an unreadable row"
# newstest2020 zh-en has a file of source errors whose rows lack two columns of the header
_MQM_WITHOUT_RATER = ("system", "doc", "seg_id", "source", "target", "category", "severity", "")
_MQM_LANGUAGES = frozenset("cs de en es he ja ko ru uk zh".split())  # in names such as mqm_ted_ende


def matches(source: Source) -> bool:
    return {"severity", "category"} <= source.columns


def read(source: Source) -> Iterator[JudgmentSet]:
    yield read_mqm(source.path, lp=source.lp or mqm_language_pair(source.path))


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
    marks: dict[_RatingKey, list[_Mark]] = {}
    texts: dict[tuple[str, str, str], tuple[Segment, str]] = {}  # segment and document
    collector = JudgmentCollector()
    incomplete: set[_RatingKey] = set()
    short_rows = 0

    def read_short_row(cells: list[str], error: DataError) -> dict[str, str] | None:
        nonlocal short_rows
        if len(cells) == len(_MQM_WITHOUT_RATER) and not cells[-1]:
            short_rows += 1
            return dict(zip(_MQM_WITHOUT_RATER, cells, strict=True))
        collector.exclude_unreadable(error)
        collector.row_count += 1
        return None

    for where, row in read_table(path, fallback=read_short_row):
        collector.row_count += 1
        record = lowercase_columns(row)
        try:
            key = _read_rating_key(record, where)
        except DataError as error:
            collector.exclude_unreadable(error)
            continue
        if "hotw" in record.get("severity", "").lower():
            collector.excluded_counts[QUALITY_CONTROL] += 1
            continue
        weight = error_weight(record["severity"], record.get("category", ""), weights, where)
        try:
            segment, errors = _read_mark(record, (references or {}).get(key.item), where)
            first, _ = texts.setdefault(key[:3], (segment, key.document))
            check_span_bounds(
                ErrorAnnotations.of(errors).spans, first.hypothesis, "hypothesis", where
            )
        except DataError as error:
            collector.exclude_unreadable(error)
            incomplete.add(key)
            continue
        marks.setdefault(key, []).append(_Mark(weight, errors))
    if short_rows:
        columns = ", ".join(filter(None, _MQM_WITHOUT_RATER))
        message = "warning: %s: rows without a rater: %d; read as %s"
        logger.warning(message, path, short_rows, columns)
    for key, rows in marks.items():
        if key in incomplete:  # its score would be too high
            collector.excluded_counts[INCOMPLETE_RATING] += len(rows)
            continue
        segment, document = texts[key[:3]]
        score = 0.0 - sum(mark.weight for mark in rows)
        annotations = ErrorAnnotations.of([error for mark in rows for error in mark.errors])
        collector.add_judgment(
            Judgment(segment, score, key.item, key.system, key.rater, lp, document, annotations)
        )
    return collector.build(Path(path).name.split(".")[0], lp)


def mqm_language_pair(path: PathLike) -> str:
    """Return the language pair in the name of a published MQM file, or an empty string.

    >>> mqm_language_pair("mqm_newstest2020_ende.avg_seg_scores.tsv"), mqm_language_pair("test.tsv")
    ('en-de', '')
    """
    words = re.split(r"[_.]", Path(path).name)
    pairs = [word for word in words if LANGUAGE_PAIR.fullmatch(word)]  # 2021_TED_en-de_processed
    joined = [word for word in words if {word[:2], word[2:]} <= _MQM_LANGUAGES]
    return next(iter([*pairs, *(f"{word[:2]}-{word[2:]}" for word in joined)]), "")


class _RatingKey(NamedTuple):
    """Identifies the rating of a translation by one rater."""

    system: str
    item: str
    document: str
    rater: str


class _Mark(NamedTuple):
    """One row: its weight, and its errors, two if both source and translation are marked."""

    weight: float
    errors: tuple[Span | UnlocatedError, ...]


def _read_mark(
    record: Mapping[str, str], reference: str | None, where: str
) -> tuple[Segment, tuple[Span | UnlocatedError, ...]]:
    """Return the texts without error markup, and the marked errors."""
    severity, category = record["severity"], record.get("category", "")
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
    return segment, errors if is_error else ()


def _read_rating_key(record: Mapping[str, Any], where: str) -> _RatingKey:
    system, item = get_text(record, ("system",)), get_text(record, SEGMENT_NAMES)
    rater, is_short_row = get_text(record, ANNOTATOR_NAMES), "" in record
    if not (system and item and (rater or is_short_row) and "severity" in record):
        columns = ", ".join(record)
        raise DataError(f"{where}: expected system, seg_id, rater and severity; found {columns}")
    return _RatingKey(system, item, get_text(record, DOCUMENT_NAMES), rater)
