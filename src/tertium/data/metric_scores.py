"""Read metric scores: mt-metrics-eval and WMT score files, tables, JSON of `tertium score`.

NAME.seg.score, NAME.sys.score    SYSTEM SCORE, or METRIC LP TESTSET SYSTEM [SEGMENT] SCORE
.tsv .csv .jsonl .parquet         system and score; item for segment scores; metric and lp if there
                                  are several; higher_is_better if it is false; or a column for
                                  each metric, such as `chrF ↑` and `TER ↓`
.json                             the output of `tertium score -f json` and `-o FILE.json`
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from tertium.atomic import PathLike
from tertium.data.formats.metrics_task import read_metric_submission
from tertium.data.formats.mt_metrics_eval import metric_name_from_path, read_score_file
from tertium.data.record_files import parse_json, read_records
from tertium.data.records import (
    ITEM_NAMES,
    SYSTEM_NAMES,
    WARNINGS_SUFFIX,
    get_text,
    lowercase_columns,
    read_language_pair,
    read_score,
)
from tertium.data.text_files import language_pair_in_path, read_lines, read_text
from tertium.errors import DataError
from tertium.frames import format_name
from tertium.scores import ScoreMatrix

METRIC_NAMES = ("metric", "spec", "name")
TABLE_SUFFIXES = frozenset({".tsv", ".csv", ".jsonl", ".ndjson", ".parquet"})

ARROWS = {"↑": "true", "↓": "false"}  # suffixes of metric columns: higher is better or not
DIRECTIONS = {"": True, "true": True, "1": True, "false": False, "0": False}

LAYOUT = "expected columns system, segment and score, as written by `tertium score -o`"


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
    suffixes = set(Path(path).suffixes)
    if ".json" in suffixes:
        return _from_json(path)
    if TABLE_SUFFIXES & suffixes:
        return _from_table(path)
    fields = next((len(line.split()) for line in read_lines(path) if line.strip()), 0)
    if fields <= 2:
        return [
            _from_matrix(
                read_score_file(path), metric_name_from_path(path), language_pair_in_path(path)
            )
        ]
    submission = read_metric_submission(path)
    return [_from_matrix(matrix, metric, lp) for (metric, lp), matrix in submission.items()]


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
            raise DataError(f"scores of {entry.metric}{where} are in two files; keep one file")
        merged[key] = replace(
            before,
            segments=before.segments or entry.segments,
            systems=before.systems or entry.systems,
        )
    return list(merged.values())


def _from_matrix(matrix: ScoreMatrix, metric: str, lp: str) -> MetricScores:
    if matrix.values.shape[1] > 1:
        return MetricScores(metric=metric, lp=lp, segments=replace(matrix, name=metric))
    pairs = zip(matrix.systems, matrix.values[:, 0].tolist(), strict=True)
    return MetricScores(metric=metric, lp=lp, systems={s: v for s, v in pairs if v == v})


def _from_table(path: PathLike) -> list[MetricScores]:
    cells: dict[tuple[str, str], dict[tuple[str, str], float]] = {}
    directions: dict[tuple[str, str], bool] = {}
    records = [(where, part) for where, record in read_records(path) for part in _parts(record)]
    rows = [(where, lowercase_columns(record)) for where, record in records]
    has_scores = any("score" in row for _, row in rows)  # a JSON record may omit a missing value
    for where, row in rows:
        system, item = get_text(row, SYSTEM_NAMES), get_text(row, ITEM_NAMES)
        if columns := [name for name in row if f"{name}{WARNINGS_SUFFIX}" in row]:
            raise DataError(
                f"{where}: the metrics are columns ({', '.join(columns)}), as in the output of "
                f"`tertium corpus`, and `score` is another column; {LAYOUT}"
            )
        if not system or not has_scores:
            raise DataError(
                f"{where}: system or score is missing, found {', '.join(row)}; {LAYOUT}"
            )
        metric = get_text(row, METRIC_NAMES) or metric_name_from_path(path)
        key = metric, read_language_pair(row) or language_pair_in_path(path)
        is_higher_better = _read_direction(row.get("higher_is_better"), where)
        if directions.setdefault(key, is_higher_better) != is_higher_better:
            raise DataError(f"{where}: higher_is_better differs from earlier scores of {metric}")
        group = cells.setdefault(key, {})
        if (system, item) in group:
            raise DataError(f"{where}: a second score of {system} {item} by {metric}".rstrip())
        group[system, item] = read_score(row.get("score"), where)
    if not cells:
        raise DataError(f"{path} contains no scores")
    return [
        replace(_from_cells(*key, group, path), higher_is_better=directions[key])
        for key, group in cells.items()
    ]


def _parts(record: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Yield a record for each column that is a metric, or the record itself."""
    columns = [name for name in record if name[-2:-1] == " " and name[-1:] in ARROWS]
    if not columns:
        yield record
    shared = {name: value for name, value in record.items() if name not in columns}
    for name in columns:
        direction = ARROWS[name[-1]]
        yield shared | {"metric": name[:-2], "score": record[name], "higher_is_better": direction}


def _read_direction(value: Any, where: str) -> bool:
    """Return whether higher is better; true if the value is missing."""
    text = "" if value is None else format_name(value).lower()
    if text not in DIRECTIONS:
        raise DataError(f"{where}: higher_is_better is {value!r}; expected true or false")
    return DIRECTIONS[text]


def _from_cells(
    metric: str, lp: str, cells: Mapping[tuple[str, str], float], path: PathLike
) -> MetricScores:
    systems = {system: score for (system, item), score in cells.items() if not item}
    if len(systems) == len(cells):
        return MetricScores(metric=metric, lp=lp, systems=systems)
    if systems:
        raise DataError(f"{path}: {len(systems)} scores of {metric} have no item, others do")
    return MetricScores(metric=metric, lp=lp, segments=ScoreMatrix.from_cells(metric, cells))


def _from_json(path: PathLike) -> list[MetricScores]:
    content = parse_json(read_text(path), str(path))
    records = content if isinstance(content, list) else [content]
    groups: dict[str, list[dict[str, Any]]] = {}
    for number, record in enumerate(records, start=1):
        if not isinstance(record, dict) or not {"system", "score"} <= set(record):
            raise DataError(
                f"{path}, record {number}: expected the output of `tertium score -f json`"
            )
        groups.setdefault(get_text(record, ("spec", "name")), []).append(record)
    return [_from_records(metric, group, path) for metric, group in groups.items()]


def _from_records(metric: str, records: list[dict[str, Any]], path: PathLike) -> MetricScores:
    systems = tuple(format_name(record["system"]) for record in records)
    where = f"{path}, {metric}"
    if len(set(systems)) != len(systems):
        raise DataError(f"{where}: a system occurs twice")
    rows = [record.get("segments") or [] for record in records]
    if not all(isinstance(row, list) for row in rows):
        raise DataError(f"{where}: segments: expected a list of scores for each system")
    if len({len(row) for row in rows}) != 1:
        raise DataError(f"{where}: systems have different numbers of segments")
    directions = {_read_direction(record.get("higher_is_better"), where) for record in records}
    if len(directions) > 1:
        raise DataError(f"{where}: higher_is_better differs from system to system")
    segments = None
    if rows[0]:
        values = np.array([[read_score(v, where) for v in row] for row in rows])
        items = _items_of(records, len(rows[0]), where)
        segments = ScoreMatrix(metric, systems, values, items)
    return MetricScores(
        metric=metric,
        lp=language_pair_in_path(path),
        segments=segments,
        systems={s: read_score(r["score"], where) for s, r in zip(systems, records, strict=True)},
        higher_is_better=directions.pop(),
    )


def _items_of(records: Sequence[Mapping[str, Any]], count: int, where: str) -> tuple[str, ...]:
    """Return the segment names, which all records must share; by default 1, 2, ..."""
    first = records[0].get("items")
    if any(record.get("items") != first for record in records):
        raise DataError(f"{where}: systems have different segments (items)")
    items = [*range(1, count + 1)] if first is None else first
    names = tuple(format_name(item) for item in items) if isinstance(items, list) else ()
    if len(names) != count or len(set(names)) != count:
        raise DataError(f"{where}: expected {count} distinct segment names (items)")
    return names
