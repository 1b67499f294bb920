"""Scores that metrics gave: mt-metrics-eval and WMT score files, tables, JSON of `tertium score`.

NAME.seg.score, NAME.sys.score    SYSTEM SCORE, or METRIC LP TESTSET SYSTEM [SEGMENT] SCORE
.tsv .csv .jsonl .parquet         system, score, and item for segment scores; metric and lp
                                  where a file holds several; higher_is_better where it is not;
                                  or a column for each metric, as `chrF ↑` and `TER ↓`
.json                             what `tertium score -f json` and `--to-json` write
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from tertium.data.formats import PathLike, pair_in, parse_json, read_lines, read_records, read_text
from tertium.data.mtme import metric_of, read_score_file
from tertium.data.records import (
    ITEM_NAMES,
    LP_NAMES,
    SYSTEM_NAMES,
    WARNINGS,
    lower_names,
    read_score,
    text_of,
)
from tertium.data.wmt import read_submission
from tertium.errors import DataError
from tertium.frames import printed
from tertium.scores import ScoreMatrix

METRIC_NAMES = ("metric", "spec", "name")
TABLES = frozenset({".tsv", ".csv", ".jsonl", ".ndjson", ".parquet"})

ARROWS = {"↑": "true", "↓": "false"}  # behind a metric's name where it is a column of ours
DIRECTIONS = {"": True, "true": True, "1": True, "false": False, "0": False}

LAYOUT = (
    "give a table of system, segment and score for each metric, as `tertium score -o` writes it"
)


@dataclass(frozen=True, kw_only=True, eq=False)
class MetricScores:
    """One metric on one language pair: scores of segments, of systems, or both.

    `lp` is empty where neither the file nor its path says; `higher_is_better` is False only where
    the file says so.
    """

    metric: str
    lp: str = ""
    segments: ScoreMatrix | None = None
    systems: Mapping[str, float] = field(default_factory=dict)
    higher_is_better: bool = True


def read_metric_scores(path: PathLike) -> list[MetricScores]:
    """All metrics and language pairs of one file."""
    suffixes = set(Path(path).suffixes)
    if ".json" in suffixes:
        return _from_json(path)
    if TABLES & suffixes:
        return _from_table(path)
    fields = next((len(line.split()) for line in read_lines(path) if line.strip()), 0)
    if fields <= 2:
        return [_from_matrix(read_score_file(path), metric_of(path), pair_in(path))]
    found = read_submission(path)
    return [_from_matrix(matrix, metric, lp) for (metric, lp), matrix in found.items()]


def merge_levels(scores: Iterable[MetricScores]) -> list[MetricScores]:
    """Segment and system scores of one metric that lie in different files, put together."""
    merged: dict[tuple[str, str], MetricScores] = {}
    for entry in scores:
        key = (entry.metric, entry.lp)
        if key not in merged:
            merged[key] = entry
            continue
        before = merged[key]
        if (before.segments and entry.segments) or (before.systems and entry.systems):
            where = f" on {entry.lp}" if entry.lp else ""
            raise DataError(f"scores of {entry.metric}{where} are given twice; keep one file")
        merged[key] = replace(
            before,
            segments=before.segments or entry.segments,
            systems=before.systems or entry.systems,
        )
    return list(merged.values())


def _from_matrix(matrix: ScoreMatrix, metric: str, lp: str) -> MetricScores:
    named = replace(matrix, name=metric)
    if matrix.values.shape[1] > 1:
        return MetricScores(metric=metric, lp=lp, segments=named)
    pairs = zip(matrix.systems, matrix.values[:, 0].tolist(), strict=True)
    return MetricScores(metric=metric, lp=lp, systems={s: v for s, v in pairs if v == v})


def _from_table(path: PathLike) -> list[MetricScores]:
    cells: dict[tuple[str, str], dict[tuple[str, str], float]] = {}
    directions: dict[tuple[str, str], bool] = {}
    records = [(where, part) for where, record in read_records(path) for part in _parts(record)]
    rows = [(where, lower_names(record)) for where, record in records]
    scored = any("score" in row for _, row in rows)  # JSON may leave out what is missing in one
    for where, row in rows:
        system, item = text_of(row, SYSTEM_NAMES), text_of(row, ITEM_NAMES)
        if columns := [name for name in row if f"{name}{WARNINGS}" in row]:
            raise DataError(
                f"{where}: metrics are columns here ({', '.join(columns)}), as `tertium corpus` "
                f"writes them, and `score` is what came with the rows; {LAYOUT}"
            )
        if not system or not scored:
            raise DataError(
                f"{where}: system and score are needed, found {', '.join(row)}; {LAYOUT}"
            )
        metric = text_of(row, METRIC_NAMES) or metric_of(path)
        key = metric, text_of(row, LP_NAMES) or pair_in(path)
        up = _read_direction(row.get("higher_is_better"), where)
        if directions.setdefault(key, up) != up:
            raise DataError(f"{where}: higher_is_better differs from earlier scores of {metric}")
        group = cells.setdefault(key, {})
        if (system, item) in group:
            raise DataError(f"{where}: a second score of {system} {item} by {metric}".rstrip())
        group[system, item] = read_score(row.get("score"), where)
    if not cells:
        raise DataError(f"{path} holds no scores")
    return [
        replace(_from_cells(*key, group, path), higher_is_better=directions[key])
        for key, group in cells.items()
    ]


def _parts(record: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """A record for each metric that is a column of it, else the record itself."""
    columns = [name for name in record if name[-2:-1] == " " and name[-1:] in ARROWS]
    if not columns:
        yield record
    shared = {name: value for name, value in record.items() if name not in columns}
    for name in columns:
        own = {"metric": name[:-2], "score": record[name], "higher_is_better": ARROWS[name[-1]]}
        yield shared | own


def _read_direction(value: Any, where: str) -> bool:
    """Whether higher is better; True where a file does not say."""
    said = "" if value is None else printed(value).lower()
    if said not in DIRECTIONS:
        raise DataError(f"{where}: higher_is_better is {value!r}; expected true or false")
    return DIRECTIONS[said]


def _from_cells(
    metric: str, lp: str, cells: Mapping[tuple[str, str], float], path: PathLike
) -> MetricScores:
    whole = {system: score for (system, item), score in cells.items() if not item}
    if len(whole) == len(cells):
        return MetricScores(metric=metric, lp=lp, systems=whole)
    if whole:
        raise DataError(f"{path}: {len(whole)} of {metric}'s scores name no item, others do")
    return MetricScores(metric=metric, lp=lp, segments=ScoreMatrix.of_cells(metric, cells))


def _from_json(path: PathLike) -> list[MetricScores]:
    content = parse_json(read_text(path), str(path))
    records = content if isinstance(content, list) else [content]
    groups: dict[str, list[dict[str, Any]]] = {}
    for number, record in enumerate(records, start=1):
        if not isinstance(record, dict) or not {"system", "score"} <= set(record):
            raise DataError(f"{path}, record {number}: not what `tertium score -f json` writes")
        groups.setdefault(text_of(record, ("spec", "name")), []).append(record)
    return [_from_records(metric, group, path) for metric, group in groups.items()]


def _from_records(metric: str, records: list[dict[str, Any]], path: PathLike) -> MetricScores:
    systems = tuple(printed(record["system"]) for record in records)
    where = f"{path}, {metric}"
    if len(set(systems)) != len(systems):
        raise DataError(f"{where}: a system occurs twice")
    rows = [record.get("segments") or [] for record in records]
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
        lp=pair_in(path),
        segments=segments,
        systems={s: read_score(r["score"], where) for s, r in zip(systems, records, strict=True)},
        higher_is_better=directions.pop(),
    )


def _items_of(records: Sequence[Mapping[str, Any]], count: int, where: str) -> tuple[str, ...]:
    """What segments are called: as all records say, or else 1, 2, ..."""
    given = records[0].get("items")
    if any(record.get("items") != given for record in records):
        raise DataError(f"{where}: systems have different segments (items)")
    items = [*range(1, count + 1)] if given is None else given
    names = tuple(printed(item) for item in items) if isinstance(items, list) else ()
    if len(names) != count or len(set(names)) != count:
        raise DataError(f"{where}: expected a name of its own for each of {count} segments (items)")
    return names
