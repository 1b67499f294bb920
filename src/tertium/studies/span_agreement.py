"""Agreement of error spans marked by metrics with human annotations.

A metric marks the judged translations, or its spans come in files of any layout of human
annotations. If several raters annotated a translation, it is compared with each.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import compress
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from tertium.core.arrays import FloatArray
from tertium.core.atomic import PathLike
from tertium.core.errors import DataError, UsageError
from tertium.core.resampling import check_resamples
from tertium.core.result import Column, Result, Table, count_column, interval_columns
from tertium.core.runtime import track_progress
from tertium.core.scores import Scores
from tertium.core.segment import Segment
from tertium.data.human_data import HumanData
from tertium.data.human_data_files import read_human_data
from tertium.data.record_files import read_records
from tertium.data.text_files import RECORD_SUFFIXES
from tertium.evaluation.error_marking import ERROR_COLUMNS
from tertium.evaluation.judged import HumanInputs, Metrics, as_list
from tertium.evaluation.paired_tests import bootstrap, interval, paired_randomization
from tertium.evaluation.rows import find_scorable_by_all
from tertium.meta.span_scores import (
    COUNTING_METHODS,
    PrecisionRecall,
    Spans,
    count_by_category,
    count_by_severity,
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
SEVERITY = "severity "
CATEGORY = "category "  # kinds of rows
NOTES = (
    "character level as in WMT25, half credit for a wrong severity; WMT23 F1: as in WMT23",
    "span F1: one-to-one matches by overlap, half credit for a wrong severity; "
    "macro: mean over texts",
)


class SpanResult(NamedTuple):
    """One metric on one set: rows (credit, human, metric), a row for each translation and rater.

    `rows` are by counting method, and characters by severity ("severity major") and category.
    `bounds` are those of the F1 of all characters, NaN without resamples.
    """

    metric: str
    set: str
    rows: Mapping[str, FloatArray]
    bounds: tuple[float, float] = (np.nan, np.nan)

    @property
    def overall(self) -> PrecisionRecall:
        """Precision, recall and F1 of all characters."""
        return micro(self.rows["characters"])

    @property
    def scores(self) -> Scores:
        """F1 of characters as summable scores, so that it can be resampled."""
        return Scores(metric=self.metric, statistics=self.rows["characters"], reduce=f1_from_totals)

    def kinds(self, prefix: str) -> list[str]:
        """Return the severities or categories that human raters marked, most frequent first."""
        names = [name for name in self.rows if name.startswith(prefix)]
        return sorted(names, key=lambda name: -self.rows[name][:, 1].sum())

    def records(self) -> dict[str, Any]:
        """Return all values as plain values."""
        record: dict[str, Any] = {
            "metric": self.metric,
            "set": self.set,
            "f1_interval": self.bounds,
        }
        for name, rows in self.rows.items():
            record[name] = {"micro": vars(micro(rows)), "macro": vars(macro(rows))}
        return record


@dataclass(frozen=True, kw_only=True, eq=False)
class SpanStudy(Result):
    """The metrics on each set by F1, p-values (metrics, metrics) in the order of `metrics`."""

    metrics: tuple[str, ...]
    by_set: Mapping[str, Sequence[SpanResult]]
    p_values: Mapping[str, FloatArray]
    excluded_counts: Mapping[str, int]

    @property
    def results(self) -> list[SpanResult]:
        """The results of all metrics on all sets."""
        return [result for results in self.by_set.values() for result in results]

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
        for name, results in self.by_set.items():
            first = results[0]
            count = f"{len(first.rows['characters']):,} human annotations"
            notes = [*NOTES, *self._notes(name, results)]
            tables.append(Table(overall_columns(), results, f"Error spans, {name}: {count}", notes))
            columns = [Column("metric")]
            for kind in first.kinds(SEVERITY):
                severity = kind.removeprefix(SEVERITY)
                for head, figure in (("P", "precision"), ("R", "recall"), ("F1", "f1")):
                    columns.append(figure_column(f"{severity} {head}", kind, figure))
            if columns[1:]:
                tables.append(Table(columns, results, f"By severity, {name}"))
            if categories := first.kinds(CATEGORY):
                tables.append(_category_table(name, categories, results))
        return tables

    def file_table(self, suffix: str = "") -> Table:
        """Return the overall results on all sets."""
        return Table([Column("set"), *overall_columns()], self.results)

    def _notes(self, name: str, results: Sequence[SpanResult]) -> list[str]:
        notes = []
        if name in self.p_values:
            best, *lower = (self.metrics.index(own.metric) for own in results)
            texts = []
            for n, p in zip(lower, self.p_values[name][best, lower].tolist(), strict=True):
                if np.isfinite(p):
                    texts.append(f"{self.metrics[n]} {p:.3f}")
            against = f"p-values of {self.metrics[best]} against: {', '.join(texts)}"
            notes.append(f"{against} (paired randomization)")
        if excluded := self.excluded_counts.get(name):
            notes.append(
                f"excluded: {excluded:,} translations without the texts that a metric needs"
            )
        return notes


def figure_column(name: str, kind: str, figure: str, *, is_mean: bool = False) -> Column:
    """Return precision, recall or F1 of a kind of rows: of their sum, or their mean."""
    average = macro if is_mean else micro
    return Column(name, lambda row: getattr(average(row.rows[kind]), figure), 3, adjustable=True)


def overall_columns() -> list[Column]:
    """Return columns of overall results; rows are results of one metric on one set."""
    return [
        Column("metric"),
        figure_column("precision", "characters", "precision"),
        figure_column("recall", "characters", "recall"),
        *interval_columns("F1", lambda row: (row.overall.f1, *row.bounds), mark=lambda _: "best"),
        figure_column("macro F1", "characters", "f1", is_mean=True),
        figure_column("WMT23 F1", "characters-once", "f1"),
        figure_column("span F1", "spans", "f1"),
        figure_column("span macro F1", "spans", "f1", is_mean=True),
    ]


def _category_table(name: str, categories: Sequence[str], results: Sequence[SpanResult]) -> Table:
    """Return the recall of each category's characters."""
    sizes = {category: int(results[0].rows[category][:, 1].sum()) for category in categories}
    columns = [
        Column("category", lambda category: category.removeprefix(CATEGORY)),
        count_column("characters", sizes.__getitem__),
    ]
    for result in results:
        recalls = {category: micro(result.rows[category]).recall for category in categories}
        columns.append(Column(result.metric, recalls.__getitem__, 3, adjustable=True))
    hidden = len(categories) - MAX_CATEGORIES
    notes = [f"{hidden} rarer categories are in the JSON output (-f json)"] if hidden > 0 else []
    return Table(columns, categories[:MAX_CATEGORIES], f"Recall by category, {name}", notes)


def compare_spans(
    inputs: HumanInputs,
    metrics: Metrics = (),
    *,
    spans: PathLike | Sequence[PathLike] = (),
    resamples: int = 1000,
    seed: int = 12345,
) -> SpanStudy:
    """Measure how well error spans marked by metrics agree with human annotations.

    `spans` are files of marked errors, METRIC.jsonl or METRIC.LP.jsonl. Intervals and p-values
    (paired randomization of the micro F1 of characters) use `resamples` resamples; 0 leaves them
    out.
    """
    check_resamples(resamples, least=0)
    human_data = inputs.read()
    annotated = {name: find_annotated(own) for name, own in human_data.items()}
    inputs.check_excluded({name: [s for s, _ in own] for name, own in annotated.items()})
    loaded = load_metrics(metrics) if metrics else []
    files: dict[str, list[HumanData]] = {}
    for file in as_list(spans):
        files.setdefault(Path(file).name.split(".")[0], []).extend(read_spans(file))
    if not loaded and not files:
        raise UsageError("no metric to evaluate: give files of error spans or -m METRICS")
    if unable := next((metric.spec for metric in loaded if not can_mark_errors(metric)), ""):
        raise UsageError(f"{unable} does not mark error spans: choose a metric that does")
    by_set: dict[str, list[SpanResult]] = {}
    p_values: dict[str, FloatArray] = {}
    excluded_counts: dict[str, int] = {}
    for name, entry in track_progress(list(human_data.items()), "comparing"):
        texts = {key: s for key, s in annotated[name].items() if key[0] not in inputs.exclude}
        scorable = compress(texts.items(), find_scorable_by_all([*texts.values()], loaded))
        segments = dict(scorable) or texts
        excluded_counts[name] = len(texts) - len(segments)
        marked = {metric.spec: mark_spans(metric, name, segments) for metric in loaded}
        for metric, entries in files.items():
            matching = [own for own in entries if not (own.lp and entry.lp) or own.lp == entry.lp]
            marked[metric] = find_spans(metric, matching, segments)
        results = [count_spans(metric, name, entry, own) for metric, own in marked.items()]
        scores = [result.scores for result in results]
        if resamples:
            drawn = bootstrap(scores, resamples=resamples, seed=seed)
            for n, values in enumerate(drawn):
                own_interval = interval(values)
                bounds = (own_interval.low, own_interval.high)
                results[n] = results[n]._replace(bounds=bounds)
        if resamples and len(results) > 1:
            p_values[name] = paired_randomization(scores, resamples=resamples, seed=seed)
        by_set[name] = sorted(results, key=lambda result: -result.overall.f1)
    return SpanStudy(
        metrics=(*(metric.spec for metric in loaded), *files),
        by_set=by_set,
        p_values=p_values,
        excluded_counts=excluded_counts,
    )


def find_annotated(entry: HumanData) -> dict[Key, Segment]:
    """Return the translations whose errors human raters marked."""
    texts = entry.texts()
    annotated = {key: texts[key] for key in entry.error_annotations() if key in texts}
    if not annotated:
        raise DataError(
            f"{entry.title}: no error annotations of known texts: give judgments "
            "with spans (see docs/meta-evaluation/human-judgments.md)"
        )
    return annotated


def read_spans(file: PathLike) -> list[HumanData]:
    """Read the marked errors of one metric, in any layout of human annotations.

    A table with a row per error is rejected because it lacks translations without errors, and a
    file of several metrics because their errors would be mixed.
    """
    if RECORD_SUFFIXES & {*Path(file).suffixes} and Path(file).is_file():
        records = [record for _, record in read_records(file)]
        if any("spans" not in record and {*ERROR_COLUMNS} <= {*record} for record in records):
            raise DataError(
                f"{file} has one row per error and lacks translations without errors: give the "
                ".jsonl that `tertium score -o spans:FILE.jsonl` writes"
            )
        names = dict.fromkeys(str(record.get("metric") or "") for record in records)
        if len(names) > 1:
            raise DataError(
                f"{file} has spans of several metrics ({', '.join(names)}): give one per metric"
            )
    return read_human_data(file)


def mark_spans(metric: Metric, name: str, segments: Mapping[Key, Segment]) -> dict[Key, Spans]:
    """Return the spans that a metric marks; warn if it marks nothing and could mark more."""
    marked = metric.mark_errors([*segments.values()])
    if (note := span_note(metric)) and not any(marked):
        logger.warning("warning: %s: %s: no spans; %s", name, metric.spec, note)
    return dict(zip(segments, marked, strict=True))


def find_spans(
    metric: str, entries: Sequence[HumanData], segments: Mapping[Key, Segment]
) -> dict[Key, Spans]:
    """Return the spans of each translation in the files of a metric."""
    marked: dict[Key, Spans] = {}
    texts: dict[Key, Segment] = {}
    for entry in entries:
        annotations = entry.error_annotations()
        for system, item in (key for key in annotations if key in marked):
            raise DataError(
                f"{metric}: item {item} of system {system!r} is marked twice: "
                "if these are two metrics, give the files different names"
            )
        marked |= {key: own.spans for key, own in annotations.items()}
        texts |= entry.texts()
    missing = [key for key in segments if key not in marked]
    if missing:
        system, item = missing[0]
        raise DataError(
            f"{metric}: no spans for {len(missing)} of {len(segments)} judged translations, "
            f"first item {item} of system {system!r}"
        )
    for (system, item), segment in segments.items():
        if texts.get((system, item), segment).hypothesis != segment.hypothesis:
            raise DataError(
                f"{metric}: item {item} of system {system!r} differs from the judged text"
            )
    return {key: marked[key] for key in segments}


def count_spans(
    metric: str, name: str, entry: HumanData, marked: Mapping[Key, Spans]
) -> SpanResult:
    """Count agreeing errors: a row for each translation and rater."""
    annotations = entry.error_annotations()
    texts = entry.texts()
    human: list[Spans] = []
    own: list[Spans] = []
    lengths: list[int] = []
    for key, spans in marked.items():
        for rater_spans in split_by_rater(annotations[key]):
            human.append(rater_spans)
            own.append(spans)
            lengths.append(len(texts[key].hypothesis))
    rows = {kind: count(human, own, lengths) for kind, count in COUNTING_METHODS.items()}
    for severity, values in count_by_severity(human, own, lengths).items():
        rows[SEVERITY + severity] = values
    for category, values in count_by_category(human, own, lengths).items():
        rows[CATEGORY + category] = values
    return SpanResult(metric=metric, set=name, rows=rows)
