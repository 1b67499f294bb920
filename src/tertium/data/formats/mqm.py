"""MQM (Freitag et al. 2021): tables with a row for each error.

Tab-separated, `system doc doc_id seg_id rater source target category severity`. A translation
without errors has one row with severity `no-error`. The weights are `spans.MQM_WEIGHTS`. A rating
with a row that cannot be read is excluded, because its score would be too high. Files of average
scores, `*.avg_seg_scores.tsv`, have `system mqm_avg_score seg_id`, separated by blanks.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from tertium.core.atomic import PathLike
from tertium.core.errors import DataError
from tertium.core.segment import Segment
from tertium.core.spans import (
    MQM_WEIGHTS,
    ErrorAnnotations,
    Span,
    UnlocatedError,
    error_weight,
    parse_markup,
)
from tertium.data.formats import Source
from tertium.data.judgments import (
    QUALITY_CONTROL,
    JudgmentSet,
    Row,
    collect_published,
    is_no_error,
    read_severity,
)
from tertium.data.records import ANNOTATOR_NAMES, DOCUMENT_NAMES, SYSTEM_NAMES, get_text
from tertium.data.text_files import LANGUAGE_PAIR, read_lines

SEGMENT_NAMES = ("seg_id", "globalsegid", "global_seg_id", "segment", "segment_id", "item")
# newstest2020 zh-en has a file of source errors whose rows lack two columns of the header
WITHOUT_RATER = ("system", "doc", "seg_id", "source", "target", "category", "severity", "rater")
_LANGUAGES = frozenset("cs de en es he ja ko ru uk zh".split())  # in names such as mqm_ted_ende

NAME_COLUMNS = (SYSTEM_NAMES, SEGMENT_NAMES, ANNOTATOR_NAMES, DOCUMENT_NAMES)

Names = tuple[str, ...]  # of the system, segment, rater and document of a rating
Rows = list[tuple[str, Mapping[str, str]]]  # with their locations


def matches(source: Source) -> bool:
    return _has_averages(source) or {"severity", "category"} <= source.columns


def read(source: Source) -> Iterator[JudgmentSet]:
    """Yield a judgment for each rater and translation; quality-control rows are counted."""
    path, lp = source.path, source.lp or mqm_language_pair(source.path)
    header, *lines = read_lines(path)
    if _has_averages(source):
        rows = ((f"{path}, line {n}", line.split()) for n, line in enumerate(lines, start=2))
        yield collect_published(path, rows, _convert_average, lp)
        return
    columns = [name.strip().lower() for name in header.split("\t")]
    ratings: dict[Names, Rows] = {}
    for number, line in enumerate(lines, start=2):
        cells, where = line.split("\t"), f"{path}, line {number}"
        is_short = len(cells) == len(WITHOUT_RATER) and not cells[-1]
        row = dict(zip(WITHOUT_RATER if is_short else columns, cells, strict=False))
        names = tuple(get_text(row, group) for group in NAME_COLUMNS)
        is_usable = all(names[:2]) and (names[2] or is_short) and "severity" in row
        ratings.setdefault(names if is_usable else (where,), []).append((where, row))
    texts: dict[Names, Segment] = {}  # of the first rating of a translation

    def convert(rating: tuple[Names, Rows], where: str) -> Iterator[Row]:
        names, rows = rating
        if len(names) < len(NAME_COLUMNS):
            raise DataError(
                f"{where}: expected system, seg_id, rater and severity; found "
                f"{', '.join(rows[0][1])}"
            )
        errors: list[Span | UnlocatedError] = []
        score = 0.0
        text = None
        for place, row in rows:
            if "hotw" in row["severity"].lower():
                yield QUALITY_CONTROL
                continue
            score -= error_weight(row["severity"], row.get("category", ""), MQM_WEIGHTS, place)
            segment, marked = _read_mark(row, place)
            errors += marked
            text = texts.setdefault((*names[:2], names[3]), segment)
        if text is not None:
            record = dict(zip(("system", "item", "rater", "document"), names, strict=True))
            yield record | {
                "score": score,
                "mt": text.hypothesis,
                "src": text.source,
                "spans": ErrorAnnotations.of(errors),
            }

    groups = ((rows[0][0], (names, rows)) for names, rows in ratings.items())
    yield collect_published(path, groups, convert, lp)


def _has_averages(source: Source) -> bool:
    return source.lines[0].split() == ["system", "mqm_avg_score", "seg_id"]


def _convert_average(cells: Sequence[str], where: str) -> Iterator[Row]:
    if len(cells) != 3:
        raise DataError(f"{where}: {len(cells)} fields; expected system, mqm_avg_score and seg_id")
    yield dict(zip(("system", "score", "item"), cells, strict=True))


def mqm_language_pair(path: PathLike) -> str:
    """Return the language pair in the name of a published MQM file, or an empty string.

    >>> mqm_language_pair("mqm_newstest2020_ende.avg_seg_scores.tsv"), mqm_language_pair("test.tsv")
    ('en-de', '')
    """
    words = re.split(r"[_.]", Path(path).name)
    pairs = [word for word in words if LANGUAGE_PAIR.fullmatch(word)]  # 2021_TED_en-de_processed
    joined = [word for word in words if {word[:2], word[2:]} <= _LANGUAGES]
    return next(iter([*pairs, *(f"{word[:2]}-{word[2:]}" for word in joined)]), "")


def _read_mark(row: Mapping[str, str], where: str) -> tuple[Segment, list[Span | UnlocatedError]]:
    """Return the texts without error markup, and the errors, two if both texts are marked."""
    severity, category = row["severity"], row.get("category", "")
    is_error = not is_no_error(row)
    grade = read_severity(severity, where) if is_error else "neutral"
    try:
        target, spans = parse_markup(row.get("target", ""), "hypothesis", grade, category)
        source, omissions = parse_markup(row.get("source", ""), "source", grade, category)
    except DataError as error:
        raise DataError(f"{where}: {error}") from None
    errors: list[Span | UnlocatedError] = [*spans, *omissions]
    if is_error and not errors:
        errors.append(UnlocatedError(grade, category))
    return Segment(target, source or None), errors if is_error else []
