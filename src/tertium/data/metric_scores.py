"""Read metric scores: mt-metrics-eval and WMT score files, tables, JSON of `tertium score`.

NAME.seg.score, NAME.sys.score    SYSTEM SCORE, or METRIC LP TESTSET SYSTEM [SEGMENT] SCORE
.tsv .csv .jsonl .parquet         system and score; item for segment scores; metric and lp if there
                                  are several; higher_is_better if it is false; or a column for
                                  each metric, such as `chrF ↑` and `TER ↓`
.json                             the output of `tertium score -f json` and `-o FILE.json`
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from tertium.core.atomic import PathLike
from tertium.core.errors import DataError
from tertium.core.frames import format_name
from tertium.core.scores import ScoreMatrix
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
    if fields > 2:
        submission = read_metric_submission(path)
        return [_from_matrix(matrix, metric, lp) for (metric, lp), matrix in submission.items()]
    name, lp = metric_name_from_path(path), language_pair_in_path(path)
    return [_from_matrix(read_score_file(path), name, lp)]


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


def _from_matrix(matrix: ScoreMatrix, metric: str, lp: str) -> MetricScores:
    if matrix.values.shape[1] > 1:
        return MetricScores(metric=metric, lp=lp, segments=replace(matrix, name=metric))
    pairs = zip(matrix.systems, matrix.values[:, 0].tolist(), strict=True)
    return MetricScores(metric=metric, lp=lp, systems={s: v for s, v in pairs if v == v})


class _Collector:
    """Collects the scores of all metrics of a file by system and item; "" is the whole system."""

    def __init__(self, path: PathLike) -> None:
        self.path, self.lp = path, language_pair_in_path(path)
        self.cells: dict[tuple[str, str], dict[tuple[str, str], float]] = {}
        self.directions: dict[tuple[str, str], bool] = {}

    def find_cells(self, row: Mapping[str, Any], where: str) -> dict[tuple[str, str], float]:
        """Return the scores so far of the metric and language pair of a row."""
        metric = get_text(row, METRIC_NAMES) or metric_name_from_path(self.path)
        key = metric, read_language_pair(row) or self.lp
        value = row.get("higher_is_better")
        text = "" if value is None else format_name(value).lower()
        if text not in DIRECTIONS:
            raise DataError(f"{where}: higher_is_better is {value!r}; expected true or false")
        if self.directions.setdefault(key, DIRECTIONS[text]) != DIRECTIONS[text]:
            raise DataError(f"{where}: higher_is_better differs from earlier scores of {metric}")
        return self.cells.setdefault(key, {})

    def results(self) -> list[MetricScores]:
        results = []
        for (metric, lp), cells in self.cells.items():
            segments = {key: score for key, score in cells.items() if key[1]}
            results.append(
                MetricScores(
                    metric=metric,
                    lp=lp,
                    segments=ScoreMatrix.from_cells(metric, segments) if segments else None,
                    systems={system: score for (system, item), score in cells.items() if not item},
                    higher_is_better=self.directions[metric, lp],
                )
            )
        return results


def _from_table(path: PathLike) -> list[MetricScores]:
    collector = _Collector(path)
    rows = [(where, row) for where, record in read_records(path) for row in _split_columns(record)]
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
        cells = collector.find_cells(row, where)
        if (system, item) in cells:
            raise DataError(f"{where}: a second score of {system} {item}".rstrip())
        cells[system, item] = read_score(row.get("score"), where)
    results = collector.results()
    if not results:
        raise DataError(f"{path} contains no scores")
    if mixed := next((entry for entry in results if entry.systems and entry.segments), None):
        count = len(mixed.systems)
        raise DataError(f"{path}: {count} scores of {mixed.metric} have no item, others do")
    return results


def _split_columns(record: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Yield a lowercase record for each column that is a metric, or the record itself."""
    columns = [name for name in record if name[-2:-1] == " " and name[-1:] in ARROWS]
    shared = {name: value for name, value in record.items() if name not in columns}
    for name in columns:
        direction = ARROWS[name[-1]]
        scores = {"metric": name[:-2], "score": record[name], "higher_is_better": direction}
        yield lowercase_columns(shared | scores)
    if not columns:
        yield lowercase_columns(record)


def _from_json(path: PathLike) -> list[MetricScores]:
    content = parse_json(read_text(path), str(path))
    collector = _Collector(path)
    for number, record in enumerate(content if isinstance(content, list) else [content], start=1):
        where = f"{path}, record {number}"
        if not isinstance(record, dict) or not {"system", "score"} <= {*record}:
            raise DataError(f"{where}: expected the output of `tertium score -f json`")
        system, segments = format_name(record["system"]), record.get("segments") or []
        if not isinstance(segments, list):
            raise DataError(f"{where}: segments: expected a list of scores")
        items = record.get("items") or [*range(1, len(segments) + 1)]
        names = [format_name(item) for item in items] if isinstance(items, list) else []
        if not len({*names}) == len(names) == len(segments):
            raise DataError(f"{where}: expected {len(segments)} distinct segment names (items)")
        cells = collector.find_cells(record, where)
        if (system, "") in cells:
            raise DataError(f"{where}: a second score of {system}")
        cells[system, ""] = read_score(record["score"], where)
        for name, score in zip(names, segments, strict=True):
            cells[system, name] = read_score(score, where)
    return collector.results()
