"""Files of errors that raters marked: ESA, MQM, and the tables of the WMT quality estimation tasks.

ESA (Kocmi et al. 2024): JSONL of raters who mark errors, then give a score from 0 to 100.

`langs line_id src tgt doc_id esa_spans esa_score system annotator`    a line for each rating
`doc_id src_text tgt_text scores`    all systems of a segment in one line; `scores` has a list of
                                     ratings for each system or, in WMT25, an object of `human1
                                     errors1 annotator1 human2 ...`

MQM (Freitag et al. 2021): tab-separated, `system doc doc_id seg_id rater source target category
severity`, with a row for each error. A translation without errors has one row with severity
`no-error`. The weights are `spans.MQM_WEIGHTS`. A rating with a row that cannot be read is
excluded, because its score would be too high. Files of average scores, `*.avg_seg_scores.tsv`, have
`system mqm_avg_score seg_id`, separated by blanks.

Tables of quality estimation: scores, tags of words, and error spans.

WMT25 spans     `hypothesis_segment start_indices end_indices error_types`
WMT23 spans     `lp gold sid mt start_id end_id error` (gold labels), or `mt_system doc_id seg_id
                annotator_id source target start_ids end_ids errors` (training data)
WMT23 scores    `lp gold sid score`
WMT23 tags      `lp gold sid mt mttok tags`

The tables of WMT23 have a header or not. The score of spans is minus their weight, that of tags
minus the share of words tagged BAD.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from tertium.core.atomic import PathLike
from tertium.core.errors import DataError, TertiumError
from tertium.core.segment import Segment
from tertium.core.spans import (
    BAD,
    MQM_WEIGHTS,
    ErrorAnnotations,
    Span,
    UnlocatedError,
    error_weight,
    parse_markup,
    tags_to_spans,
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
from tertium.data.record_files import read_jsonl
from tertium.data.records import (
    ANNOTATOR_NAMES,
    DOCUMENT_NAMES,
    SYSTEM_NAMES,
    Record,
    get_text,
    read_object,
    read_object_list,
)
from tertium.data.tables import read_table
from tertium.data.text_files import LANGUAGE_PAIR, read_lines

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
ALIASES = {  # of columns of ESA and of quality estimation
    "langs": "lp",
    "line_id": "item",
    "tgt": "mt",
    "esa_score": "score",
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


def _rename_columns(record: Record) -> dict[str, Any]:
    return {ALIASES.get(name.lower(), name.lower()): value for name, value in record.items()}


def is_quality_estimation(source: Source) -> bool:
    if source.gold:
        return False
    if _omitted_header(source.lines[0]) is not None:
        return True
    layouts = ({*SCORES}, {*TAGS})
    return source.columns in layouts or any(layout <= source.columns for layout in SPAN_LAYOUTS)


def read_quality_estimation(source: Source) -> Iterator[JudgmentSet]:
    rows = read_table(source.path, _omitted_header(source.lines[0]))
    yield collect_published(source.path, rows, _convert_tags, mqm_language_pair(source.path))


def _omitted_header(line: str) -> Sequence[str] | None:
    """Return the columns of a file of WMT23 if its first line is a row, or None."""
    cells = line.split("\t")
    is_row = cells[2:3] and cells[2].isdecimal()  # the number of a segment
    return HEADERS.get(len(cells)) if is_row else None


def _convert_tags(row: Mapping[str, str], where: str) -> Iterator[Row]:
    record = _rename_columns(row)
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


LAYOUTS = ({"esa_spans", "tgt"}, {"scores", "tgt_text"})
NUMBERED = {"human": "score", "errors": "errors", "annotator": "annotator"}


def is_esa(source: Source) -> bool:
    return any(layout <= source.columns for layout in LAYOUTS)


def read_esa(source: Source) -> Iterator[JudgmentSet]:
    """Yield a judgment for each rater and translation."""
    path = source.path
    yield collect_published(path, read_jsonl(path), _convert_ratings, mqm_language_pair(path))


def _convert_ratings(record: Record, where: str) -> Iterator[Row]:
    """Yield a row for each system and rater.

    `doc_id` is DOCUMENT_#_LINE, or LANGUAGES_#_DOMAIN_#_DOCUMENT_#_LINE.
    """
    if "tgt_text" not in record:
        yield _rename_columns(record)
        return
    document, _, line = str(record.get("doc_id", "")).rpartition("_#_")
    shared = {"item": line, "doc": document, "src": record.get("src_text")}
    if document.count("_#_") == 2:
        shared |= dict(zip(("lp", "domain", "doc"), document.split("_#_"), strict=True))
    texts = read_object(record["tgt_text"], "tgt_text", where)
    references = {name for name in texts if re.fullmatch(r"ref[A-Z]?", name)}
    for system, ratings in read_object(record.get("scores"), "scores", where).items():
        place = f"{where}, {system}"
        shared |= {
            "system": system,
            "mt": texts.get(system),
            "ref": [text for name, text in texts.items() if name in references - {system}],
        }
        if isinstance(ratings, Mapping):
            ratings = _numbered_ratings(ratings, place)
        for rating in read_object_list(ratings, "scores", place):
            yield {name: rating.get(name) for name in NUMBERED.values()} | shared


def _numbered_ratings(ratings: Record, where: str) -> list[dict[str, Any]]:
    """Return the ratings of `human1 errors1 annotator1 human2 ...`, an object of WMT25."""
    numbered: dict[str, dict[str, Any]] = {}
    for key, value in ratings.items():
        match = re.fullmatch(rf"({'|'.join(NUMBERED)})([0-9]+)", key)
        if match is None:
            raise DataError(f"{where}: {key!r}: expected human1, errors1, annotator1, ...")
        numbered.setdefault(match[2], {})[NUMBERED[match[1]]] = value
    return [*numbered.values()]


SEGMENT_NAMES = ("seg_id", "globalsegid", "global_seg_id", "segment", "segment_id", "item")
# newstest2020 zh-en has a file of source errors whose rows lack two columns of the header
WITHOUT_RATER = ("system", "doc", "seg_id", "source", "target", "category", "severity", "rater")
_LANGUAGES = frozenset("cs de en es he ja ko ru uk zh".split())  # in names such as mqm_ted_ende

NAME_COLUMNS = (SYSTEM_NAMES, SEGMENT_NAMES, ANNOTATOR_NAMES, DOCUMENT_NAMES)

Names = tuple[str, ...]  # of the system, segment, rater and document of a rating
Rows = list[tuple[str, Mapping[str, str]]]  # with their locations


def is_mqm(source: Source) -> bool:
    return _has_averages(source) or {"severity", "category"} <= source.columns


def read_mqm(source: Source) -> Iterator[JudgmentSet]:
    """Yield a judgment for each rater and translation; quality-control rows are counted."""
    path = source.path
    lp = source.lp or mqm_language_pair(source.path)
    header, *lines = read_lines(path)
    if _has_averages(source):
        rows = ((f"{path}, line {n}", line.split()) for n, line in enumerate(lines, start=2))
        yield collect_published(path, rows, _convert_average, lp)
        return
    columns = [name.strip().lower() for name in header.split("\t")]
    ratings: dict[Names, Rows] = {}
    for number, line in enumerate(lines, start=2):
        cells = line.split("\t")
        where = f"{path}, line {number}"
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
    severity = row["severity"]
    category = row.get("category", "")
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
