"""Agreement of error spans marked by metrics with human annotations.

A metric marks the judged translations, or its spans come in files of any layout of human
annotations. If several raters annotated a translation, it is compared with each.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import compress
from pathlib import Path
from typing import Any

from tertium.arrays import FloatArray, check_resamples
from tertium.data.formats import RECORD_SUFFIXES, PathLike, read_records
from tertium.data.human_data import HumanData
from tertium.data.human_data_files import read_human_data
from tertium.display import Displayable
from tertium.errors import DataError, UsageError
from tertium.evaluation.error_marking import ERROR_COLUMNS
from tertium.evaluation.meta_inputs import Files, Sources, as_list, check_excluded, read_sets
from tertium.evaluation.resampling import Interval, bootstrap, interval, paired_randomization
from tertium.evaluation.rows import find_scorable_by_all
from tertium.execution import track_progress
from tertium.meta.error_spans import (
    COLUMNS,
    COUNTING_METHODS,
    Spans,
    count_by_category,
    count_by_severity,
    count_characters,
    f1_from_totals,
    macro,
    micro,
    split_by_rater,
)
from tertium.metrics.base.loading import load_metrics
from tertium.metrics.base.metric import Metric
from tertium.scores import Scores
from tertium.segment import Segment
from tertium.spans import ErrorAnnotations

logger = logging.getLogger(__name__)

Key = tuple[str, str]  # system and item


@dataclass(frozen=True, kw_only=True, eq=False)
class SpanResult:
    """One metric on one set: rows (credit, human, metric) of each method, severity and category."""

    metric: str
    set: str
    rows: Mapping[str, FloatArray]
    severities: Mapping[str, FloatArray]
    categories: Mapping[str, FloatArray]
    interval: Interval | None = None

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
class SpanStudy(Displayable):
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
        raise UsageError("no metric to evaluate: give --spans FILES or -m METRICS")
    for metric in loaded:
        if not metric.can_mark_errors:
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
        results += _add_intervals(counted, resamples, seed)
        if resamples and len(counted) > 1:
            scores = [_as_scores(result) for result in counted]
            p_values[name] = paired_randomization(scores, resamples=resamples, seed=seed)
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
        if metric.span_note and not any(spans):
            logger.warning("warning: %s: %s: no spans; %s", name, metric.spec, metric.span_note)


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

    The table that `tertium score --spans` writes for other programs is rejected because it lacks
    translations without errors. A file of several metrics is rejected because their errors would be
    mixed.
    """
    if not RECORD_SUFFIXES & {*Path(file).suffixes} or not Path(file).is_file():
        return ""
    metrics: dict[str, None] = {}
    for _, record in read_records(file):
        if "spans" not in record and {"metric", *ERROR_COLUMNS} <= {*record}:
            raise DataError(
                f"{file} has one row per error and lacks translations without errors: give the "
                ".jsonl that `tertium score --to-spans` writes"
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


def _add_intervals(results: Sequence[SpanResult], resamples: int, seed: int) -> list[SpanResult]:
    if not resamples:
        return list(results)
    drawn = bootstrap([_as_scores(r) for r in results], resamples=resamples, seed=seed)
    return [replace(r, interval=interval(rows)) for r, rows in zip(results, drawn, strict=True)]
