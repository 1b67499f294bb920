"""Agreement of error spans marked by metrics with human annotations.

A metric marks the judged translations, or its spans come in files of any layout of human
annotations. If several raters annotated a translation, it is compared with each.
"""

from __future__ import annotations

import itertools
import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import compress
from pathlib import Path
from typing import Any

import numpy as np

from tertium.core.arrays import FloatArray
from tertium.core.atomic import PathLike
from tertium.core.errors import DataError, UsageError
from tertium.core.resampling import check_resamples
from tertium.core.result import Column, Result, Table, bound_columns
from tertium.core.runtime import track_progress
from tertium.core.scores import Scores
from tertium.core.segment import Segment
from tertium.core.spans import ErrorAnnotations
from tertium.data.human_data import HumanData
from tertium.data.human_data_files import read_human_data
from tertium.data.record_files import RECORD_SUFFIXES, read_records
from tertium.evaluation.error_marking import ERROR_COLUMNS
from tertium.evaluation.judged_inputs import Files, Sources, as_list, check_excluded, read_sets
from tertium.evaluation.paired_tests import Interval, bootstrap, interval, paired_randomization
from tertium.evaluation.rows import find_scorable_by_all
from tertium.meta.span_scores import (
    COLUMNS,
    COUNTING_METHODS,
    PrecisionRecall,
    Spans,
    count_by_category,
    count_by_severity,
    count_characters,
    f1_from_totals,
    macro,
    micro,
    split_by_rater,
)
from tertium.metrics.base.capabilities import can_mark_errors, span_note
from tertium.metrics.base.loading import load_metrics
from tertium.metrics.base.metric import Metric

logger = logging.getLogger(__name__)

Key = tuple[str, str]  # system and item
MAX_CATEGORIES = 12  # in tables


@dataclass(frozen=True, kw_only=True, eq=False)
class SpanResult:
    """One metric on one set: rows (credit, human, metric) of each method, severity and category."""

    metric: str
    set: str
    rows: Mapping[str, FloatArray]
    severities: Mapping[str, FloatArray]
    categories: Mapping[str, FloatArray]
    interval: Interval | None = None

    @property
    def overall(self) -> PrecisionRecall:
        """Precision, recall and F1 of all characters."""
        return micro(self.rows["characters"])

    def records(self) -> dict[str, Any]:
        """Return all values as plain values."""
        counted = {
            name: {"micro": vars(micro(rows)), "macro": vars(macro(rows))}
            for name, rows in self.rows.items()
        }
        own = self.interval
        bounds = {} if own is None else {"f1_interval": [own.low, own.high]}
        return {
            "metric": self.metric,
            "set": self.set,
            "rows": len(self.rows["characters"]),
            **counted,
            **bounds,
            "severities": {name: vars(micro(rows)) for name, rows in self.severities.items()},
            "categories": {
                name: {"recall": micro(rows).recall, "characters": float(rows[:, 1].sum())}
                for name, rows in self.categories.items()
            },
        }


@dataclass(frozen=True, kw_only=True, eq=False)
class SpanStudy(Result):
    """All metrics on all sets, p-values (metrics, metrics), and excluded translations by set."""

    results: tuple[SpanResult, ...]
    human_data: Mapping[str, HumanData]
    p_values: Mapping[str, FloatArray] = field(default_factory=dict)
    excluded_counts: Mapping[str, int] = field(default_factory=dict)

    @property
    def metrics(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(result.metric for result in self.results))

    def of_set(self, name: str) -> list[SpanResult]:
        """Return the results of the metrics on one set."""
        return [result for result in self.results if result.set == name]

    def records(self) -> dict[str, Any]:
        """Return all results as plain values, for JSON."""
        return {
            "metrics": list(self.metrics),
            "results": [result.records() for result in self.results],
            "p_values": {name: p.tolist() for name, p in self.p_values.items()},
            "left_out": dict(self.excluded_counts),
        }

    def tables(self) -> list[Table]:
        """Return tables of each set: overall, and by severity and category if annotated."""
        tables = []
        for name in self.human_data:
            results = self.of_set(name)
            count = f"{len(results[0].rows['characters']):,} human annotations"
            title, notes = f"Error spans, {name}: {count}", self._notes(name, results)
            tables.append(Table(self._columns, _order_by_f1(results), title, notes))
            if severities := results[0].severities:
                columns = [Column("metric"), *itertools.chain(*map(_severity_columns, severities))]
                tables.append(Table(columns, results, f"By severity, {name}"))
            if results[0].categories:
                tables.append(_category_table(name, results))
        return tables

    def file_table(self, suffix: str = "") -> Table:
        """Return the overall results; of several sets, with their names."""
        rows = [own for name in self.human_data for own in _order_by_f1(self.of_set(name))]
        sets = [Column("set")] if len(self.human_data) > 1 else []
        return Table([*sets, *self._columns], rows)

    @property
    def _columns(self) -> list[Column]:
        """Columns of overall results; rows are results of one metric on one set."""

        def interval_text(row: SpanResult, decimals: int) -> str:
            own = row.interval
            return f"[{own.low:z.{decimals}f}, {own.high:z.{decimals}f}]" if own else ""

        bounds: list[Column] = []
        if all(result.interval for result in self.results):
            bounds = bound_columns("F1", lambda row: (row.interval.low, row.interval.high))
        return [
            Column("metric"),
            _figure_column("precision", lambda row: row.overall.precision),
            _figure_column("recall", lambda row: row.overall.recall),
            _figure_column("F1", lambda row: row.overall.f1, mark=lambda _: "best"),
            _figure_column("", lambda _: "", text=interval_text, mark=lambda _: "dim"),
            *bounds,
            _figure_column("macro F1", lambda row: macro(row.rows["characters"]).f1),
            _figure_column("WMT23 F1", lambda row: micro(row.rows["characters-once"]).f1),
            _figure_column("span F1", lambda row: micro(row.rows["spans"]).f1),
            _figure_column("span macro F1", lambda row: macro(row.rows["spans"]).f1),
        ]

    def _notes(self, name: str, results: Sequence[SpanResult]) -> list[str]:
        notes = [
            "character level as in WMT25, half credit for a wrong severity; WMT23 F1: as in WMT23",
            "span F1: one-to-one matches by overlap, half credit for a wrong severity; "
            "macro: mean over texts",
        ]
        if name in self.p_values:
            best, *lower = (self.metrics.index(own.metric) for own in _order_by_f1(results))
            p_values = {self.metrics[n]: self.p_values[name][best, n] for n in lower}
            texts = [f"{metric} {p:.3f}" for metric, p in p_values.items() if np.isfinite(p)]
            against = f"p-values of {self.metrics[best]} against: {', '.join(texts)}"
            notes.append(f"{against} (paired randomization)")
        if excluded := self.excluded_counts.get(name):
            notes.append(
                f"excluded: {excluded:,} translations without the texts that a metric needs"
            )
        return notes


def _order_by_f1(results: Sequence[SpanResult]) -> list[SpanResult]:
    return sorted(results, key=lambda result: -result.overall.f1)


def _figure_column(name: str, get: Callable[[Any], Any], **more: Any) -> Column:
    return Column(name, get, 3, adjustable=True, **more)


def _severity_columns(severity: str) -> list[Column]:
    def figures(row: SpanResult) -> PrecisionRecall:
        return micro(row.severities[severity])

    return [
        _figure_column(f"{severity} P", lambda row: figures(row).precision, group=severity),
        _figure_column(f"{severity} R", lambda row: figures(row).recall, group=severity),
        _figure_column(f"{severity} F1", lambda row: figures(row).f1, group=severity),
    ]


def _category_table(name: str, results: Sequence[SpanResult]) -> Table:
    """Return the recall of each category's characters, most frequent first."""
    sizes = {c: float(rows[:, 1].sum()) for c, rows in results[0].categories.items()}
    frequent = sorted(sizes, key=lambda category: -sizes[category])
    columns = [
        Column("category", str),
        Column(
            "characters", sizes.__getitem__, 0, text=lambda category, _: f"{sizes[category]:,.0f}"
        ),
    ]
    for result in results:
        recalls = {c: micro(rows).recall for c, rows in result.categories.items()}
        columns.append(_figure_column(result.metric, recalls.__getitem__))
    hidden = len(frequent) - MAX_CATEGORIES
    notes = [f"{hidden} rarer categories are in the JSON output (-f json)"] if hidden > 0 else []
    return Table(columns, frequent[:MAX_CATEGORIES], f"Recall by category, {name}", notes)


def compare_spans(
    human: Sources,
    metrics: str | Metric | Sequence[str | Metric] = (),
    *,
    spans: Files = (),
    lps: Sequence[str] = (),
    exclude: Sequence[str] = (),
    gold: str = "",
    data: PathLike | None = None,
    resamples: int = 1000,
    seed: int = 12345,
) -> SpanStudy:
    """Measure how well error spans marked by metrics agree with human annotations.

    `spans` are files of marked errors, METRIC.jsonl or METRIC.LP.jsonl; a column `metric` may name
    the metric. Intervals and p-values (paired randomization of the micro F1 of characters) use
    `resamples` resamples; 0 leaves them out.
    """
    check_resamples(resamples, least=0)
    human_data = read_sets(as_list(human), "segment", lps=lps, gold=gold, data=data)
    check_excluded(
        exclude, {n: {key[0] for key in e.error_annotations()} for n, e in human_data.items()}
    )
    loaded = load_metrics(metrics) if metrics else []
    files = _files_by_metric(as_list(spans), [metric.spec for metric in loaded])
    if not loaded and not files:
        raise UsageError("no metric to evaluate: give files of error spans or -m METRICS")
    for metric in loaded:
        if not can_mark_errors(metric):
            raise UsageError(f"{metric.spec} does not mark error spans: choose a metric that does")
    results: list[SpanResult] = []
    p_values: dict[str, FloatArray] = {}
    excluded_counts: dict[str, int] = {}
    for name, entry in track_progress(list(human_data.items()), "comparing"):
        annotated = _AnnotatedSet.of(entry, exclude)
        scorable = annotated.keep_scorable(loaded)
        excluded_counts[name] = len(annotated.segments) - len(scorable.segments)
        marked = [(m.spec, scorable.mark(m)) for m in loaded]
        _warn_without_spans(name, loaded, [spans for _, spans in marked])
        marked += [(metric, scorable.find(own)) for metric, own in files.items()]
        counted = [_count(metric, name, scorable, spans) for metric, spans in marked]
        if resamples:
            scores = [_as_scores(result) for result in counted]
            drawn = bootstrap(scores, resamples=resamples, seed=seed)
            pairs = zip(counted, drawn, strict=True)
            counted = [replace(own, interval=interval(values)) for own, values in pairs]
            if len(counted) > 1:
                p_values[name] = paired_randomization(scores, resamples=resamples, seed=seed)
        results += counted
    return SpanStudy(
        results=tuple(results),
        human_data=human_data,
        p_values=p_values,
        excluded_counts=excluded_counts,
    )


def _warn_without_spans(
    name: str, metrics: Sequence[Metric], marked: Sequence[Sequence[Spans]]
) -> None:
    """Warn about metrics that marked nothing and could mark more."""
    for metric, spans in zip(metrics, marked, strict=True):
        if (note := span_note(metric)) and not any(spans):
            logger.warning("warning: %s: %s: no spans; %s", name, metric.spec, note)


def _files_by_metric(spans: Sequence[PathLike], loaded: Sequence[str]) -> dict[str, list[PathLike]]:
    """Group files by the metric they name, or by file name if that is not unique."""
    files: dict[str, list[PathLike]] = {}
    for file in spans:
        files.setdefault(Path(file).name.split(".")[0], []).append(file)
    named_metrics = {
        stem: {_named_metric(file) for file in own} - {""} for stem, own in files.items()
    }
    metrics = [*loaded, *(metric for names in named_metrics.values() for metric in names)]
    by_metric = {}
    for stem, own in files.items():
        metric = "".join(named_metrics[stem]) if len(named_metrics[stem]) == 1 else ""
        is_unique = metrics.count(metric) == 1 and metric not in {*files} - {stem}
        by_metric[metric if is_unique else stem] = own
    return by_metric


def _named_metric(file: PathLike) -> str:
    """Return the metric that a file names, or an empty text.

    The table of errors that `tertium score -o spans:FILE.tsv` writes for other programs is rejected
    because it lacks translations without errors. A file of several metrics is rejected because
    their errors would be mixed.
    """
    if not RECORD_SUFFIXES & {*Path(file).suffixes} or not Path(file).is_file():
        return ""
    metrics: dict[str, None] = {}
    for _, record in read_records(file):
        if "spans" not in record and {"metric", *ERROR_COLUMNS} <= {*record}:
            raise DataError(
                f"{file} has one row per error and lacks translations without errors: give the "
                ".jsonl that `tertium score -o spans:FILE.jsonl` writes"
            )
        metrics[str(record.get("metric") or "")] = None
    if len(metrics) > 1:
        raise DataError(
            f"{file} has spans of several metrics ({', '.join(metrics)}): give one file per metric"
        )
    return next(iter(metrics), "")


@dataclass(frozen=True)
class _AnnotatedSet:
    title: str
    lp: str
    segments: Mapping[Key, Segment]
    human: Mapping[Key, list[tuple[Any, ...]]]  # the spans of each rater

    @classmethod
    def of(cls, entry: HumanData, exclude: Sequence[str]) -> _AnnotatedSet:
        texts = entry.texts()
        marked = {
            k: m for k, m in entry.error_annotations().items() if k[0] not in exclude and k in texts
        }
        if not marked:
            raise DataError(
                f"{entry.title}: no error annotations of known texts: give judgments "
                "with spans (see docs/meta-evaluation/human-judgments.md)"
            )
        return cls(
            entry.title,
            entry.lp,
            {key: texts[key] for key in marked},
            {key: split_by_rater(annotations) for key, annotations in marked.items()},
        )

    def keep_scorable(self, metrics: Sequence[Metric]) -> _AnnotatedSet:
        """Keep translations with the inputs of all metrics, or all if none has them."""
        mask = find_scorable_by_all([*self.segments.values()], metrics)
        segments = dict(compress(self.segments.items(), mask)) or self.segments
        return replace(self, segments=segments, human={key: self.human[key] for key in segments})

    def mark(self, metric: Metric) -> list[Spans]:
        return [*metric.mark_errors(list(self.segments.values()))]

    def find(self, files: Sequence[PathLike]) -> list[Spans]:
        """Return the spans that a metric marked, from files of any language pairs."""
        all_entries = [entry for file in files for entry in read_human_data(file)]
        entries = [e for e in all_entries if not (e.lp and self.lp) or e.lp == self.lp]
        file = ", ".join(str(f) for f in files)
        marked: dict[Key, ErrorAnnotations] = {}
        for entry in entries:
            own = entry.error_annotations()
            if repeated := next((key for key in own if key in marked), None):
                raise DataError(
                    f"{file}: item {repeated[1]} of system {repeated[0]!r} is marked twice: "
                    "if these are two metrics, give the files different names"
                )
            marked |= own
        texts = {key: s for entry in entries for key, s in entry.texts().items()}
        missing = [key for key in self.segments if key not in marked]
        if missing:
            system, item = missing[0]
            raise DataError(
                f"{file}: no spans for {len(missing)} of {len(self.segments)} translations "
                f"judged in {self.title}, first item {item} of system {system!r}"
            )
        for key, segment in self.segments.items():
            if key in texts and texts[key].hypothesis != segment.hypothesis:
                raise DataError(
                    f"{file}: item {key[1]} of system {key[0]!r} differs from the judged text"
                )
        return [marked[key].spans for key in self.segments]

    def pairs(self, marked: Sequence[Spans]) -> Iterator[tuple[Spans, Spans, int]]:
        """Yield the spans of a rater, those of the metric, and the length of the text."""
        for key, spans in zip(self.segments, marked, strict=True):
            for human_spans in self.human[key]:
                yield human_spans, spans, len(self.segments[key].hypothesis)


def _count(metric: str, name: str, texts: _AnnotatedSet, spans: Sequence[Spans]) -> SpanResult:
    human, marked, lengths = (list(part) for part in zip(*texts.pairs(spans), strict=True))
    return SpanResult(
        metric=metric,
        set=name,
        rows={method: count(human, marked, lengths) for method, count in COUNTING_METHODS.items()},
        severities=count_by_severity(human, marked, lengths, count_characters),
        categories=count_by_category(human, marked, lengths, count_characters),
    )


def _as_scores(result: SpanResult) -> Scores:
    """Return F1 of characters as summable scores, so that it can be resampled."""
    return Scores(
        metric=result.metric,
        name=result.metric,
        statistics=result.rows["characters"],
        reduce=f1_from_totals,
        reduce_segments=f1_from_totals,
        signature="",
        columns=COLUMNS,
    )
