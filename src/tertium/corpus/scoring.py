"""Score a batch of rows: scores and warnings per row, and rows that cannot be scored.

Scores do not depend on other rows, so every score is identical to that of `tertium score`.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tertium.arrays import BoolArray, FloatArray
from tertium.corpus.batches import BadRow
from tertium.corpus.readers import ROW_PLACEHOLDER, ReadBatch, row_error_text
from tertium.data.records import (
    SPANS_SUFFIX,
    WARNINGS_SUFFIX,
    lowercase_known_columns,
    segment_from_record,
)
from tertium.errors import (
    DataError,
    MissingInputError,
    TertiumError,
    UnsupportedLanguageError,
    UsageError,
)
from tertium.evaluation.rows import Row, score_rows
from tertium.metrics.base.metric import Metric
from tertium.models.trained_model import TrainedModel
from tertium.registry import METRICS
from tertium.segment import Segment
from tertium.spans import Span

WARNING_SEPARATOR = "; "


@dataclass(frozen=True)
class ScoredBatch:
    """Scores, warnings, usage and marked errors (JSON) of rows, by metric spec."""

    segments: Sequence[Segment]
    scores: Mapping[str, FloatArray]
    warnings: Mapping[str, Sequence[str]]
    usage: Mapping[str, Mapping[str, float]] = field(default_factory=dict)  # of judges
    spans: Mapping[str, Sequence[str]] = field(default_factory=dict)
    errors: Mapping[str, Counter[str]] = field(default_factory=dict)  # rows by kind of error

    def columns(self) -> dict[str, Any]:
        """Return the new columns of the batch as pyarrow arrays; NaN becomes null."""
        import pyarrow as pa

        columns: dict[str, Any] = {}
        for spec, scores in self.scores.items():
            columns[spec] = pa.array(scores, pa.float64(), from_pandas=True)
            columns[spec + WARNINGS_SUFFIX] = pa.array(self.warnings[spec], pa.string())
        for spec, spans in self.spans.items():
            columns[spec + SPANS_SUFFIX] = pa.array(spans, pa.string())
        return columns


def score_segments(
    metrics: Sequence[Metric], segments: Sequence[Segment], *, with_spans: bool = False
) -> ScoredBatch:
    """Score segments with all metrics; metrics with the same encoder share its embeddings.

    `with_spans` also marks errors, with the metrics that can.
    """
    rows = [Row(segment=segment) for segment in segments]
    scored = score_rows(rows, metrics, incomplete="checked", with_spans=with_spans)
    marking = [s for s in scored if with_spans and s.metric.can_mark_errors]
    return ScoredBatch(
        segments=segments,
        scores={s.metric.spec: s.values for s in scored},
        warnings={s.metric.spec: [*map(WARNING_SEPARATOR.join, s.warnings)] for s in scored},
        usage={s.metric.spec: s.usage for s in scored},
        spans={s.metric.spec: [*map(format_spans, s.spans)] for s in marking},
        errors={s.metric.spec: count_error_kinds(s.spans) for s in marking},
    )


def marking_metrics(metrics: Sequence[Metric]) -> list[Metric]:
    """Return the metrics that mark error spans."""
    return [metric for metric in metrics if metric.can_mark_errors]


def count_error_kinds(marked: Iterable[Sequence[Span]]) -> Counter[str]:
    """Count the rows with each kind of error: its category, or its severity without one.

    >>> count_error_kinds([(Span(0, 1, category="tags"), Span(2, 3, category="tags")), ()])
    Counter({'tags': 1})
    """
    return Counter(kind for row in marked for kind in {s.category or s.severity for s in row})


def format_spans(spans: Sequence[Span]) -> str:
    """Return error spans as a JSON list, in the layout that readers of judgments accept.

    >>> format_spans([Span(0, 2, severity="minor")])
    '[{"start": 0, "end": 2, "side": "hypothesis", "severity": "minor"}]'
    """
    return json.dumps([span.as_dict() for span in spans], ensure_ascii=False)


def select_segments(
    reading: ReadBatch, metrics: Sequence[Metric], example: Segment, longest: int
) -> tuple[BoolArray, list[Segment], list[BadRow]]:
    """Return a mask of the rows that can be scored, their segments, and the bad rows."""
    mask = np.ones(len(reading.batch), dtype=bool)
    bad = list(reading.bad)
    plain = reading.batch.plain_segments(longest)
    if plain is not None and _have_required_inputs(metrics, [example, *plain]):
        return mask, plain, bad
    segments: list[Segment] = []
    for n, (number, record) in enumerate(zip(reading.numbers, reading.batch.texts(), strict=True)):
        try:
            segments.append(record_to_segment(record, longest))
        except TertiumError as error:
            mask[n] = False
            bad.append(BadRow(number, row_error_text(error)))
    if segments and not _have_required_inputs(metrics, [example, *segments]):
        segments, incomplete = _drop_incomplete(reading, mask, segments, metrics, example)
        bad += incomplete
    return mask, segments, sorted(bad, key=lambda row: row.row)


def record_to_segment(record: Mapping[str, Any], longest: int) -> Segment:
    """Convert a record to a segment; refuse texts that are too long."""
    segment = segment_from_record(lowercase_known_columns(record), ROW_PLACEHOLDER)
    for text in (segment.hypothesis, segment.source or "", *segment.references):
        if len(text) > longest:
            raise DataError(
                f"{ROW_PLACEHOLDER}: too long ({len(text):,} characters, at most {longest:,})"
            )
    return segment


def _check_each(metrics: Sequence[Metric], segments: Sequence[Segment]) -> None:
    """Refuse segments that lack a required input, each on its own."""
    for metric in metrics:
        with suppress(UnsupportedLanguageError):  # checked on the first rows; later a warning
            metric.check(segments)


def _have_required_inputs(metrics: Sequence[Metric], segments: Sequence[Segment]) -> bool:
    try:
        _check_each(metrics, segments)
    except MissingInputError:
        return False
    return True


def _drop_incomplete(
    reading: ReadBatch,
    mask: BoolArray,
    segments: Sequence[Segment],
    metrics: Sequence[Metric],
    example: Segment,
) -> tuple[list[Segment], list[BadRow]]:
    """Drop segments that lack an input which the metrics require and the example has."""
    complete, bad = [], []
    for index, segment in zip(np.flatnonzero(mask).tolist(), segments, strict=True):
        try:
            _check_each(metrics, [segment])
            _check_each(metrics, [example, segment])
            complete.append(segment)
        except MissingInputError as error:
            mask[index] = False
            reason = str(error)
            for name in ("segment 1", "segment 2"):
                reason = reason.replace(name, ROW_PLACEHOLDER)
            bad.append(BadRow(reading.numbers[index], f"missing field: {reason}"))
    return complete, bad


def check_metrics(metrics: Sequence[Metric]) -> None:
    """Refuse metrics that read the whole corpus, and metrics that workers cannot load."""
    for metric in metrics:
        if metric.name not in METRICS:
            raise UsageError(
                f"{metric.name} is not a registered metric, and workers load metrics by name: "
                "register it as a plugin (docs/extending.md), or call metric.score yourself"
            )
        if isinstance(metric, TrainedModel) and not metric.is_saved:
            raise UsageError(
                f"{metric.name} was trained in this process and not saved, and workers load "
                "metrics from files: call metric.save(FOLDER) and use what it returns"
            )
        if metric.reads_corpus:
            raise UsageError(
                f"{metric.spec} needs the whole corpus to score a row, which is not possible in a "
                "stream: read weights from a file (bertscore:idf=true,idf_texts=FILE), use another "
                "metric (bleu for nist, bertscore, sss), or use `tertium score` for one test set"
            )


def find_example(
    records: Sequence[Mapping[str, Any]], metrics: Sequence[Metric], longest: int, where: str
) -> Segment:
    """Return the first row that every metric can score; other rows need the same inputs."""
    reason: TertiumError = DataError(f"{ROW_PLACEHOLDER}: there are no rows")
    for record in records:
        try:
            segment = record_to_segment(record, longest)
            _check_each(metrics, [segment])
            return segment
        except TertiumError as error:
            reason = error
    message = row_error_text(reason).replace("segment 1", "the last row tried")
    raise type(reason)(f"{where}: none of the first rows can be scored: {message}")


def reference_texts(records: Iterable[Mapping[str, Any]], longest: int) -> list[str]:
    """Return the first reference of each valid row."""
    texts: list[str] = []
    for record in records:
        with suppress(TertiumError):
            texts += record_to_segment(record, longest).references[:1]
    return texts


def check_languages(
    records: Sequence[Mapping[str, Any]], metrics: Sequence[Metric], example: Segment, longest: int
) -> None:
    """Refuse a corpus whose first rows are in a language that a metric does not support."""
    segments = [example]
    for record in records:
        with suppress(TertiumError):
            segments.append(record_to_segment(record, longest))
    for metric in metrics:
        metric.check([s for s in segments if _have_required_inputs([metric], [example, s])])
