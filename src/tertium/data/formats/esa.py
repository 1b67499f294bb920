"""Read annotation campaigns with errors and scores: ESA and Appraise.

ESA (Kocmi et al. 2024) and Appraise: raters mark errors, then give a score from 0 to 100. Layouts,
with a row for each rater:

JSONL of `langs line_id src tgt doc_id esa_spans esa_score system annotator`
JSONL of `doc_id src_text tgt_text scores`      all systems of a segment in one line; `scores` has
                                                a list of ratings for each system or, in WMT25,
                                                an object of `human1 errors1 annotator1 human2 ...`
Appraise CSV without header                     user, system, item, type, languages, score,
                                                document, complete, spans, times
WMT25 span task TSV                             `hypothesis_segment start_indices end_indices
                                                error_types`, without scores
WMT23 span task TSV                             `lp gold sid mt start_id end_id error` (gold) or
                                                `mt_system doc_id seg_id annotator_id source target
                                                start_ids end_ids errors` (training), both with or
                                                without header; submissions start with three lines
                                                of numbers and no header

Rows that cannot be read are excluded and counted, unless they are more than half of a file.
"""

from __future__ import annotations

import ast
import csv
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from tertium.atomic import PathLike
from tertium.data.delimited_tables import parse_rows, read_table
from tertium.data.human_data import QUALITY_CONTROL
from tertium.data.judgments import JudgmentCollector, JudgmentSet
from tertium.data.record_files import read_jsonl
from tertium.data.records import get_text, read_object, read_object_list
from tertium.data.text_files import LANGUAGE_PAIR, read_first_lines, read_lines, read_text
from tertium.errors import DataError, TertiumError, short_repr

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
_APPRAISE_REQUIRED = 7  # campaigns without documents end after the score
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
_TRAINING_COLUMNS = tuple(
    "mt_system doc_id seg_id annotator_id source target start_ids end_ids errors".split()
)
SCORE_LABELS = ("lp", "gold", "sid", "score")  # of WMT23, by sentences
TAG_LABELS = ("lp", "gold", "sid", "mt", "mttok", "tags")  # of WMT23, by words
# lowercase columns that identify the layout of a campaign file
WMT23_LAYOUTS = ({"mt", "start_id", "end_id"}, {"target", "start_ids", "end_ids"})
ESA_LAYOUTS = (
    {"esa_spans", "tgt"},
    {"scores", "tgt_text"},
    {"hypothesis_segment", "error_types"},
    *WMT23_LAYOUTS,
)

Rows = Iterator[tuple[str, Mapping[str, Any]]]


def is_span_task_submission(path: PathLike) -> bool:
    """Return whether a file is a WMT23 span submission: three sizes, then seven columns."""
    *sizes, row = (read_first_lines(path, 4) if Path(path).suffix == ".txt" else []) or [""]
    has_columns = len(row.split("\t")) == len(_GOLD_COLUMNS)
    return has_columns and len(sizes) == 3 and all(size.strip().isdecimal() for size in sizes)


def find_omitted_header(path: PathLike) -> tuple[str, ...] | None:
    """Return the columns of a WMT23 quality estimation file without a header, or None."""
    cells = next(iter(read_first_lines(path, 1)), "").split("\t")
    for columns in (SCORE_LABELS, TAG_LABELS, _GOLD_COLUMNS):
        is_first_row = LANGUAGE_PAIR.fullmatch(cells[0]) and cells[2:3] and cells[2].isdecimal()
        if len(cells) == len(columns) and is_first_row:
            return columns
    has_offsets = all(re.fullmatch(r"-1|[0-9 ]+", cell) for cell in cells[6:8])
    is_training = len(cells) == len(_TRAINING_COLUMNS) and cells[2].isdecimal() and has_offsets
    return _TRAINING_COLUMNS if is_training else None


def read_esa(path: PathLike) -> JudgmentSet:
    """Read a JSONL or TSV campaign file into a judgment for each rater and translation.

    If there are spans and no score, the score is minus the weight of the spans.
    """
    collector = JudgmentCollector()
    for where, record in _read_rows(path):
        try:
            rows = [*_unfold(record, where)] if "tgt_text" in record else [(where, record)]
            renamed = [(place, _rename(row, place)) for place, row in rows]
        except TertiumError as error:
            collector.exclude_unreadable(error)
            continue
        for place, row in renamed:
            collector.add_published(row, place)
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
    if ".tsv" in Path(path).suffixes:
        yield from read_table(path, find_omitted_header(path))
    else:
        yield from read_jsonl(path)


def _rename(row: Mapping[str, Any], where: str) -> dict[str, Any]:
    columns = {key.lower() for key in row}
    names = (
        _WMT23_COLUMNS if any(layout <= columns for layout in WMT23_LAYOUTS) else _COLUMN_ALIASES
    )
    renamed = {names.get(key.lower(), key.lower()): value for key, value in row.items()}
    if "source_lang" in renamed:
        codes = [get_text(renamed, (name,)) for name in ("source_lang", "target_lang")]
        if not all(codes):
            raise DataError(f"{where}: expected source_lang and target_lang, got {codes}")
        renamed["lp"] = "-".join(codes)
    return renamed


def _unfold(record: Mapping[str, Any], where: str) -> Rows:
    """Yield a row for each system and rater.

    `doc_id` is DOCUMENT_#_LINE, or LANGUAGES_#_DOMAIN_#_DOCUMENT_#_LINE.
    """
    document, _, line = str(record.get("doc_id", "")).rpartition("_#_")
    shared = {"item": line, "doc": document, "src": record.get("src_text")}
    if document.count("_#_") == 2:
        shared |= dict(zip(("lp", "domain", "doc"), document.split("_#_"), strict=True))
    scores = read_object(record.get("scores"), "scores", where)
    texts = read_object(record["tgt_text"], "tgt_text", where)
    for system, ratings in scores.items():
        place = f"{where}, {system}"
        references = [t for name, t in texts.items() if _is_reference(name) and name != system]
        names = {"system": system, "mt": texts.get(system), "ref": references}
        if isinstance(ratings, Mapping):
            fields = [*_numbered_ratings(ratings, place)]
        else:
            fields = [
                {key: rating.get(key) for key in ("score", "annotator", "errors")}
                for rating in read_object_list(ratings, "scores", place)
            ]
        for rating in fields:
            yield place, rating | shared | names


def _is_reference(name: str) -> bool:
    return re.fullmatch(r"ref[A-Z]?", name) is not None


def _numbered_ratings(ratings: Mapping[str, Any], where: str) -> Iterator[dict[str, Any]]:
    """Yield the ratings of `human1 errors1 annotator1 human2 ...`, an object of WMT25."""
    names = {"human": "score", "errors": "errors", "annotator": "annotator"}
    numbered: dict[str, dict[str, Any]] = {}
    for key, value in ratings.items():
        match = re.fullmatch(rf"({'|'.join(names)})([0-9]+)", key)
        if match is None:
            raise DataError(f"{where}: {key!r}: expected human1, errors1, annotator1, ...")
        numbered.setdefault(match[2], {})[names[match[1]]] = value
    yield from numbered.values()


def is_appraise(path: PathLike) -> bool:
    """Return whether a CSV file is an Appraise export, which has no header."""
    try:
        first = next(csv.reader(read_first_lines(path, 1)), [])
    except csv.Error:  # reading the file as a table explains it
        return False
    return len(first) >= _APPRAISE_REQUIRED and first[3] in _APPRAISE_TYPES


def read_appraise(path: PathLike) -> JudgmentSet:
    """Read scores and spans of an Appraise export, without texts; quality control is excluded."""
    collector = JudgmentCollector()
    for line, cells in parse_rows(read_text(path), ",", str(path)):
        where = f"{path}, line {line}"
        if len(cells) < _APPRAISE_REQUIRED or cells[3] not in _APPRAISE_TYPES:
            columns = ", ".join(_APPRAISE_COLUMNS)
            error = f"{where}: expected {columns}, ...; got {short_repr(cells[:9], 80)}"
            collector.exclude_unreadable(DataError(error))
            continue
        record: dict[str, Any] = dict(zip(_APPRAISE_COLUMNS, cells, strict=False))
        document = record.get("doc", "")
        is_control = document.endswith(_CONTROL_SUFFIXES) or "tutorial" in document
        if record["type"] != "TGT" or is_control:
            collector.excluded_counts[QUALITY_CONTROL] += 1
            continue
        if cells[9:] and cells[9][:1] in ("[", "{"):
            record["errors"] = _read_appraise_errors(cells[9])
        collector.add_published(record | {"lp": f"{record['from']}-{record['to']}"}, where)
    return collector.build(Path(path).name.split(".")[0])


def _read_appraise_errors(cell: str) -> Any:
    """Return the errors in a cell: JSON, or a Python literal as some versions of Appraise write it.

    >>> _read_appraise_errors("{'start_i': 0, 'end_i': 4, 'severity': 'major'}")
    [{'start_i': 0, 'end_i': 4, 'severity': 'major'}]
    """
    try:
        errors = ast.literal_eval(cell) if "'" in cell else cell
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return cell  # the error names JSON
    return [errors] if isinstance(errors, dict) else errors
