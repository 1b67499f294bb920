"""Errors that metrics mark beside those that people marked, set by set.

A metric marks the judged translations now (`Metric.mark`), or its markings come in files of any
layout that human ones come in. What several raters marked in one translation is compared with each.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import compress
from pathlib import Path
from typing import Any

from tertium.arrays import FloatArray
from tertium.data.evidence import read_evidence
from tertium.data.formats import RECORD_SUFFIXES, PathLike, read_records
from tertium.data.human import Evidence
from tertium.display import Displayed
from tertium.errors import DataError, UsageError
from tertium.evaluation.gathering import Files, Sources, check_excluded, read_sets, several
from tertium.evaluation.marking import ERROR_COLUMNS
from tertium.evaluation.resampling import Interval, bootstrap, interval, paired_randomization
from tertium.evaluation.scoring import served_by_all
from tertium.meta.error_spans import (
    COLUMNS,
    COUNTS,
    Spans,
    by_category,
    by_severity,
    count_characters,
    f1_of,
    macro,
    micro,
    split_raters,
)
from tertium.metrics.base.loading import load_metrics
from tertium.metrics.base.metric import Metric
from tertium.runtime import track
from tertium.scores import Scores
from tertium.segment import Segment
from tertium.spans import Markings

Key = tuple[str, str]  # system and item


@dataclass(frozen=True, kw_only=True, eq=False)
class SpanResult:
    """One metric on one set: rows of each way to count, of severities and of categories.

    Rows are (credit, human, metric) of each translation and rater, see `meta.error_spans`.
    """

    metric: str
    set: str
    rows: Mapping[str, FloatArray]
    severities: Mapping[str, FloatArray]
    categories: Mapping[str, FloatArray]
    interval: Interval | None = None

    def records(self) -> dict[str, Any]:
        """Every figure as plain values."""
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
class SpanStudy(Displayed):
    """All metrics on all sets, and p-values of pairs of metrics in each set, (metrics, metrics).

    `left_out` counts the translations of a set that lack what one of the metrics reads: all are
    compared on the others.
    """

    results: tuple[SpanResult, ...]
    people: Mapping[str, Evidence]
    p_values: Mapping[str, FloatArray] = field(default_factory=dict)
    left_out: Mapping[str, int] = field(default_factory=dict)

    @property
    def metrics(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(result.metric for result in self.results))

    def of_set(self, name: str) -> list[SpanResult]:
        """What came of the metrics on one set."""
        return [result for result in self.results if result.set == name]

    def records(self) -> dict[str, Any]:
        """Everything as plain values, for JSON."""
        return {
            "metrics": list(self.metrics),
            "results": [result.records() for result in self.results],
            "p_values": {name: p.tolist() for name, p in self.p_values.items()},
            "left_out": dict(self.left_out),
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
    samples: int = 1000,
    seed: int = 12345,
) -> SpanStudy:
    """Measure how well the errors that metrics mark agree with those that people marked.

    `spans` are files of what metrics marked, METRIC.jsonl or METRIC.LP.jsonl, of which a column
    `metric` may name the metric; intervals and p-values (paired randomization of the micro F1 of
    characters) come from `samples`, or are left out with 0.
    """
    people = read_sets(several(human), "segment", lps=lps, gold=gold, data=data)
    check_excluded(exclude, {n: {key[0] for key in e.markings()} for n, e in people.items()})
    now = load_metrics(metrics) if metrics else []
    files = _by_metric(several(spans), [metric.spec for metric in now])
    if not now and not files:
        raise UsageError("nothing to compare with people: give --spans FILES or -m METRICS")
    for metric in now:
        if not metric.gives_spans:
            raise UsageError(f"{metric.spec} does not say where a translation is wrong")
    results: list[SpanResult] = []
    p_values: dict[str, FloatArray] = {}
    left_out: dict[str, int] = {}
    for name, entry in track(list(people.items()), "comparing"):
        marked_by_people = _Judged.of(entry, exclude)
        judged = marked_by_people.served_by(now)
        left_out[name] = len(marked_by_people.segments) - len(judged.segments)
        marked = [(m.spec, judged.mark(m)) for m in now]
        marked += [(metric, judged.find(own)) for metric, own in files.items()]
        counted = [_count(metric, name, judged, found) for metric, found in marked]
        results += _with_intervals(counted, samples, seed)
        if samples and len(counted) > 1:
            scores = [_as_scores(result) for result in counted]
            p_values[name] = paired_randomization(scores, trials=samples, seed=seed)
    return SpanStudy(results=tuple(results), people=people, p_values=p_values, left_out=left_out)


def _by_metric(spans: Sequence[PathLike], taken: Sequence[str]) -> dict[str, list[PathLike]]:
    """Files by what they say is their metric, or by their names where that tells them not apart."""
    files: dict[str, list[PathLike]] = {}
    for file in spans:
        files.setdefault(Path(file).name.split(".")[0], []).append(file)
    said = {stem: {_metric_of(file) for file in own} - {""} for stem, own in files.items()}
    metrics = [*taken, *(metric for named in said.values() for metric in named)]
    named = {}
    for stem, own in files.items():
        metric = "".join(said[stem]) if len(said[stem]) == 1 else ""
        clear = metrics.count(metric) == 1 and metric not in {*files} - {stem}
        named[metric if clear else stem] = own
    return named


def _metric_of(file: PathLike) -> str:
    """The metric that a file says its rows are of, empty where it says none.

    What `tertium score --spans` wrote for other programs is refused: it cannot be read back, for a
    translation without errors is not in it. So is what several metrics marked: errors of two would
    be taken for those of one.
    """
    if not RECORD_SUFFIXES & {*Path(file).suffixes} or not Path(file).is_file():
        return ""
    metrics: dict[str, None] = {}
    for _, record in read_records(file):
        if "spans" not in record and {"metric", *ERROR_COLUMNS} <= {*record}:
            raise DataError(
                f"{file} has a row for each error, and no translations without any: give the "
                ".jsonl that `tertium score --spans` writes"
            )
        metrics[str(record.get("metric") or "")] = None
    if len(metrics) > 1:
        raise DataError(
            f"{file} holds what several metrics marked ({', '.join(metrics)}): give a file for each"
        )
    return next(iter(metrics), "")


@dataclass(frozen=True)
class _Judged:
    """The translations of a set in which people looked for errors."""

    title: str
    lp: str
    segments: Mapping[Key, Segment]
    human: Mapping[Key, list[tuple[Any, ...]]]  # what each rater marked

    @classmethod
    def of(cls, entry: Evidence, exclude: Sequence[str]) -> _Judged:
        texts = entry.texts()
        marked = {k: m for k, m in entry.markings().items() if k[0] not in exclude and k in texts}
        if not marked:
            raise DataError(
                f"{entry.title}: nobody marked errors in texts that are known; give judgments "
                "with spans (see docs/human-judgments.md)"
            )
        return cls(
            entry.title,
            entry.lp,
            {key: texts[key] for key in marked},
            {key: split_raters(found) for key, found in marked.items()},
        )

    def served_by(self, metrics: Sequence[Metric]) -> _Judged:
        """Those that have what all metrics read; where none has, all, and the metric says why."""
        mask = served_by_all([*self.segments.values()], metrics)
        segments = dict(compress(self.segments.items(), mask)) or self.segments
        return replace(self, segments=segments, human={key: self.human[key] for key in segments})

    def mark(self, metric: Metric) -> list[Spans]:
        """What a metric marks now."""
        return [*metric.mark(list(self.segments.values()))]

    def find(self, files: Sequence[PathLike]) -> list[Spans]:
        """What a metric marked, as files of any language pairs say."""
        every = [entry for file in files for entry in read_evidence(file)]
        entries = [e for e in every if not (e.lp and self.lp) or e.lp == self.lp]
        file = ", ".join(str(f) for f in files)
        marked: dict[Key, Markings] = {}
        for entry in entries:
            own = entry.markings()
            if twice := next((key for key in own if key in marked), None):
                raise DataError(
                    f"{file}: item {twice[1]} of system {twice[0]!r} is marked twice; where these "
                    "are two metrics, name the files apart"
                )
            marked |= own
        texts = {key: s for entry in entries for key, s in entry.texts().items()}
        lacking = [key for key in self.segments if key not in marked]
        if lacking:
            system, item = lacking[0]
            raise DataError(
                f"{file}: no spans of {len(lacking)} of {len(self.segments)} translations "
                f"that people judged in {self.title}, first item {item} of system {system!r}"
            )
        for key, segment in self.segments.items():
            if key in texts and texts[key].hypothesis != segment.hypothesis:
                raise DataError(
                    f"{file}: item {key[1]} of system {key[0]!r} is not the text that was judged"
                )
        return [marked[key].spans for key in self.segments]

    def pairs(self, found: Sequence[Spans]) -> Iterator[tuple[Spans, Spans, int]]:
        """What a rater marked, what the metric marked, and the length of the text."""
        for key, spans in zip(self.segments, found, strict=True):
            for people in self.human[key]:
                yield people, spans, len(self.segments[key].hypothesis)


def _count(metric: str, name: str, judged: _Judged, found: Sequence[Spans]) -> SpanResult:
    people, marked, lengths = (list(part) for part in zip(*judged.pairs(found), strict=True))
    return SpanResult(
        metric=metric,
        set=name,
        rows={way: count(people, marked, lengths) for way, count in COUNTS.items()},
        severities=by_severity(people, marked, lengths, count_characters),
        categories=by_category(people, marked, lengths, count_characters),
    )


def _as_scores(result: SpanResult) -> Scores:
    """F1 of characters as a score that is a formula of sums, so that it can be resampled."""
    return Scores(
        metric=result.metric,
        name=result.metric,
        statistics=result.rows["characters"],
        reduce=f1_of,
        reduce_segments=f1_of,
        signature="",
        columns=COLUMNS,
    )


def _with_intervals(results: Sequence[SpanResult], samples: int, seed: int) -> list[SpanResult]:
    if not samples:
        return list(results)
    drawn = bootstrap([_as_scores(r) for r in results], resamples=samples, seed=seed)
    return [replace(r, interval=interval(rows)) for r, rows in zip(results, drawn, strict=True)]
