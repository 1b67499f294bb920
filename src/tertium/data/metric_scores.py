"""Read metric scores: score files of mt-metrics-eval and WMT, and tables.

NAME.seg.score, NAME.sys.score    SYSTEM SCORE, or METRIC LP TESTSET SYSTEM [SEGMENT] SCORE
.tsv .csv .jsonl .parquet         system and score; item for segment scores; metric and lp if there
                                  are several; higher_is_better if it is false; or a column for
                                  each metric, such as `chrF ↑` and `TER ↓`
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from tertium.core.atomic import PathLike
from tertium.core.errors import DataError
from tertium.core.scores import ScoreMatrix
from tertium.data.formats.mt_metrics_eval import metric_name_from_path, read_score_file
from tertium.data.record_files import read_records
from tertium.data.records import (
    ITEM_NAMES,
    SYSTEM_NAMES,
    Record,
    get_text,
    lowercase_columns,
    read_language_pair,
    read_score,
)
from tertium.data.text_files import RECORD_SUFFIXES, language_pair_in_path, read_lines

METRIC_NAMES = ("metric", "spec", "name")

ARROWS = {"↑": "true", "↓": "false"}  # suffixes of metric columns: higher is better or not
DIRECTIONS = {"": True, "true": True, "1": True, "false": False, "0": False}


@dataclass(frozen=True, kw_only=True, eq=False)
class MetricScores:
    """Segment scores, system scores or both of one metric; `lp` is empty if it is unknown."""

    metric: str
    lp: str = ""
    segments: ScoreMatrix | None = None
    systems: Mapping[str, float] = field(default_factory=dict)
    higher_is_better: bool = True


def read_metric_scores(path: PathLike) -> list[MetricScores]:
    """Read the scores of all metrics and language pairs in a file."""
    file_metric = metric_name_from_path(path)
    file_lp = language_pair_in_path(path)
    scores: dict[tuple[str, str], dict[tuple[str, str], float]] = {}  # "" is the item of a system
    directions: dict[tuple[str, str], bool] = {}
    has_scores = False  # a JSON record may omit a missing value
    for where, row in _read_rows(path):
        metric = get_text(row, METRIC_NAMES) or file_metric
        key = metric, read_language_pair(row) or file_lp
        direction = get_text(row, ("higher_is_better",)).lower()
        if direction not in DIRECTIONS:
            raise DataError(f"{where}: higher_is_better is {direction!r}; expected true or false")
        if directions.setdefault(key, DIRECTIONS[direction]) != DIRECTIONS[direction]:
            raise DataError(f"{where}: higher_is_better differs from earlier scores of {metric}")
        system = get_text(row, SYSTEM_NAMES)
        item = get_text(row, ITEM_NAMES)
        has_scores |= "score" in row
        if not system or not has_scores:
            raise DataError(
                f"{where}: system or score is missing, found {', '.join(row)}; expected columns "
                "system, segment and score, as written by `tertium score -o`"
            )
        cells = scores.setdefault(key, {})
        if (system, item) in cells:
            raise DataError(f"{where}: a second score of {system} {item}".rstrip())
        cells[system, item] = read_score(row.get("score"), where)
    if not scores:
        raise DataError(f"{path} contains no scores")
    results = []
    for (metric, lp), cells in scores.items():
        segments = {cell: score for cell, score in cells.items() if cell[1]}
        totals = {s: score for (s, item), score in cells.items() if not item and score == score}
        entry = MetricScores(
            metric=metric,
            lp=lp,
            segments=ScoreMatrix.from_cells(metric, segments) if segments else None,
            systems=totals,
            higher_is_better=directions[metric, lp],
        )
        results.append(entry)
    return results


def _read_rows(path: PathLike) -> Iterator[tuple[str, Record]]:
    """Yield a record for each score; scores of systems have no item."""
    suffixes = {*Path(path).suffixes}
    if RECORD_SUFFIXES & suffixes:
        for where, record in read_records(path):
            yield from ((where, row) for row in _split_columns(record))
    else:
        lines = [*filter(None, map(str.split, read_lines(path)))]
        yield from _from_submission(path) if len(lines[0]) > 2 else _from_score_file(path)


def merge_levels(scores: Iterable[MetricScores]) -> list[MetricScores]:
    """Merge segment and system scores of the same metric from different files."""
    merged: dict[tuple[str, str], MetricScores] = {}
    for entry in scores:
        key = (entry.metric, entry.lp)
        if key not in merged:
            merged[key] = entry
            continue
        before = merged[key]
        if (before.segments and entry.segments) or (before.systems and entry.systems):
            where = f" on {entry.lp}" if entry.lp else ""
            raise DataError(f"scores of {entry.metric}{where} are given twice: keep one of them")
        merged[key] = replace(
            before,
            segments=before.segments or entry.segments,
            systems=before.systems or entry.systems,
        )
    return list(merged.values())


def _from_score_file(path: PathLike) -> Iterator[tuple[str, Record]]:
    matrix = read_score_file(path)
    has_items = len(matrix.items) > 1
    for (system, item), score in matrix.cells().items():
        yield str(path), {"system": system, "item": item if has_items else "", "score": score}


def _from_submission(path: PathLike) -> Iterator[tuple[str, Record]]:
    """Yield the scores that a metric submitted to a WMT metrics task.

    The file has tab-separated `METRIC LP TESTSET SYSTEM [SEGMENT] SCORE`; later columns are
    ignored. The file name contains the level, `seg` or `sys`.
    """
    columns = ["metric", "lp", "testset", "system", "item", "score"]
    levels = {"seg", "sys"} & {*Path(path).name.split(".")}
    if not levels:
        raise DataError(
            f"{path}: the file name must contain the level, seg or sys: rename it to "
            "METRIC.seg.score or METRIC.sys.score"
        )
    if "seg" not in levels:
        columns.remove("item")
    for number, line in enumerate(read_lines(path), start=1):
        cells = line.split("\t")
        where = f"{path}, line {number}"
        if len(cells) < len(columns):
            raise DataError(f"{where}: {len(cells)} fields, expected at least {len(columns)}")
        yield where, dict(zip(columns, cells, strict=False))


def _split_columns(record: Record) -> Iterator[Record]:
    """Yield a lowercase record for each column that is a metric, or the record itself."""
    columns = [name for name in record if name[-2:-1] == " " and name[-1:] in ARROWS]
    shared = {name: value for name, value in record.items() if name not in columns}
    for name in columns:
        direction = ARROWS[name[-1]]
        scores = {"metric": name[:-2], "score": record[name], "higher_is_better": direction}
        yield lowercase_columns(shared | scores)
    if not columns:
        yield lowercase_columns(record)
