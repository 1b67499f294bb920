"""A block of rows under some metrics: scores, warnings of each row, and rows that have no score.

A score does not depend on neighbors, so that blocks and parts leave every score as `tertium score`
gives it, to the last bit.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np

from tertium.arrays import BoolArray, FloatArray
from tertium.corpus.blocks import BadRow
from tertium.corpus.reading import HERE, Reading, explain_row
from tertium.data.records import WARNINGS, fold_names, segment_from_record
from tertium.errors import DataError, LanguageError, NeedsError, TertiumError, UsageError
from tertium.evaluation.scoring import locate_warnings
from tertium.extras import explain_missing
from tertium.metrics.base.metric import Metric, foresee
from tertium.registry import METRICS
from tertium.segment import Segment

JOINED = "; "


@dataclass(frozen=True)
class ScoredBlock:
    """The scores and warnings of rows, metrics by their specs."""

    segments: Sequence[Segment]
    scores: Mapping[str, FloatArray]
    warnings: Mapping[str, Sequence[str]]

    def columns(self) -> dict[str, Any]:
        """What a block is extended by, as arrays of pyarrow; NaN is what is missing there."""
        import pyarrow as pa

        found: dict[str, Any] = {}
        for spec, scores in self.scores.items():
            found[spec] = pa.array(scores, pa.float64(), from_pandas=True)
            found[spec + WARNINGS] = pa.array(self.warnings[spec], pa.string())
        return found


def score_segments(metrics: Sequence[Metric], segments: Sequence[Segment]) -> ScoredBlock:
    """Segments under metrics; metrics over one encoder share its work."""
    scores: dict[str, FloatArray] = {}
    warnings: dict[str, list[str]] = {}
    if not segments:
        empty = {metric.spec: np.zeros(0) for metric in metrics}
        return ScoredBlock((), empty, {spec: [] for spec in empty})
    with foresee(metrics, segments):
        for metric in metrics:
            with explain_missing(metric.name):
                scores[metric.spec] = metric.reduce_segments(metric.distinct_statistics(segments))
                said = locate_warnings(metric, segments)
                warnings[metric.spec] = [JOINED.join(own) for own in said]
    return ScoredBlock(segments, scores, warnings)


def take_segments(
    reading: Reading, metrics: Sequence[Metric], example: Segment, longest: int
) -> tuple[BoolArray, list[Segment], list[BadRow]]:
    """Which rows of a block can be scored, their segments, and why others cannot."""
    mask = np.ones(len(reading.block), dtype=bool)
    bad = list(reading.bad)
    plain = reading.block.plain_segments(longest)
    if plain is not None and _serve(metrics, [example, *plain]):
        return mask, plain, bad
    segments: list[Segment] = []
    for place, (number, record) in enumerate(
        zip(reading.numbers, reading.block.texts(), strict=True)
    ):
        try:
            segments.append(take_segment(record, longest))
        except TertiumError as error:
            mask[place] = False
            bad.append(BadRow(number, explain_row(error)))
    if segments and not _serve(metrics, [example, *segments]):
        segments, more = _take_served(reading, mask, segments, metrics, example)
        bad += more
    return mask, segments, sorted(bad, key=lambda row: row.row)


def take_segment(record: Mapping[str, Any], longest: int) -> Segment:
    """The segment of a record, of texts that are not too long."""
    segment = segment_from_record(fold_names(record), HERE)
    for text in (segment.hypothesis, segment.source or "", *segment.references):
        if len(text) > longest:
            raise DataError(f"{HERE}: too long ({len(text):,} characters, at most {longest:,})")
    return segment


def _check_each(metrics: Sequence[Metric], segments: Sequence[Segment]) -> None:
    """Refuse segments that lack something; what many say together would depend on neighbors."""
    for metric in metrics:
        with suppress(LanguageError):  # said of the first rows; of others warnings say it
            metric.check(segments)


def _serve(metrics: Sequence[Metric], segments: Sequence[Segment]) -> bool:
    try:
        _check_each(metrics, segments)
    except NeedsError:
        return False
    return True


def _take_served(
    reading: Reading,
    mask: BoolArray,
    segments: Sequence[Segment],
    metrics: Sequence[Metric],
    example: Segment,
) -> tuple[list[Segment], list[BadRow]]:
    """Those segments that have what the metrics need, as the example has; takes others off."""
    taken, bad = [], []
    for place, segment in zip(np.flatnonzero(mask).tolist(), segments, strict=True):
        try:
            _check_each(metrics, [segment])
            _check_each(metrics, [example, segment])
            taken.append(segment)
        except NeedsError as error:
            mask[place] = False
            reason = str(error).replace("segment 1", HERE).replace("segment 2", HERE)
            bad.append(BadRow(reading.numbers[place], f"missing field: {reason}"))
    return taken, bad


def check_metrics(metrics: Sequence[Metric]) -> None:
    """Refuse metrics whose scores depend on the whole corpus, or that workers cannot make."""
    for metric in metrics:
        if metric.name not in METRICS:
            raise UsageError(
                f"{metric.name} is no registered metric, and workers make metrics by their names: "
                "register it as a package does (docs/extend.md), or score segments with it"
            )
        if metric.reads_corpus:
            raise UsageError(
                f"{metric.spec} reads the whole corpus before it scores a row, which a stream "
                "cannot: take weights from a file (bertscore:idf=true,idf_texts=FILE), a metric "
                "without them (bleu for nist, bertscore, sss), or `tertium score` for one test set"
            )


def find_example(
    records: Sequence[Mapping[str, Any]], metrics: Sequence[Metric], longest: int, where: str
) -> Segment:
    """The first row that every metric can score: what all others are expected to be like."""
    reason: TertiumError = DataError(f"{HERE}: there are no rows")
    for record in records:
        try:
            segment = take_segment(record, longest)
            _check_each(metrics, [segment])
            return segment
        except TertiumError as error:
            reason = error
    said = explain_row(reason).replace("segment 1", "the last that was tried")
    raise type(reason)(f"{where}: none of the first rows can be scored: {said}")


def check_languages(
    records: Sequence[Mapping[str, Any]], metrics: Sequence[Metric], example: Segment, longest: int
) -> None:
    """Refuse first rows that are together in a language which a metric does not know."""
    segments = [example]
    for record in records:
        with suppress(TertiumError):
            segments.append(take_segment(record, longest))
    for metric in metrics:
        metric.check([s for s in segments if _serve([metric], [example, s])])
