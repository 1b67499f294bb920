"""Metrics that read document context, and metrics that mark errors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest

import tertium
from tertium.core.arrays import FloatArray
from tertium.core.errors import DataError, MissingInputError, UsageError
from tertium.core.segment import Segment, attach_context
from tertium.core.spans import Span
from tertium.metrics.base.capabilities import can_mark_errors
from tertium.metrics.base.metric import NOTHING, SegmentMetric, distinct_segments
from tertium.testing import check_context_independence, check_error_spans


@dataclass(frozen=True, kw_only=True)
class Counting(SegmentMetric):
    """Scores a segment by the number of segments before it in its document."""

    name: ClassVar[str] = "counting"
    title: ClassVar[str] = "Counting"

    @property
    def required_inputs(self) -> frozenset[str]:
        return NOTHING

    def segment_scores(self, segments: Sequence[Segment]) -> FloatArray:
        before = [len(s.context.before(9)) if s.context else 0 for s in segments]
        return np.array([len(s.hypothesis) for s in segments]) + 100.0 * np.array(before)


class Reading(Counting):
    """The same with `reads_context` declared."""

    reads_context = True

    @property
    def required_inputs(self) -> frozenset[str]:
        return frozenset({"context"})


class Marking(Counting):
    """Marks each `x`."""

    calls: ClassVar[list[int]] = []

    def spans(self, segments: Sequence[Segment]) -> list[tuple[Span, ...]]:
        self.calls.append(len(segments))
        return [
            tuple(Span(n, n + 1, severity="major") for n, c in enumerate(s.hypothesis) if c == "x")
            for s in segments
        ]


TEXTS = [Segment("ab"), Segment("ab"), Segment("abc")]
PLACED = attach_context(TEXTS, ["talk"] * 3)


def test_a_metric_that_does_not_read_context_scores_equal_texts_equally() -> None:
    assert Counting().score(PLACED).segments[:2].tolist() == [2.0, 2.0]
    assert len(distinct_segments(PLACED)[0]) == 2


def test_metric_that_reads_context_scores_each_position() -> None:
    assert Reading().score(PLACED).segments.tolist() == [2.0, 102.0, 203.0]
    twice = [*PLACED, *attach_context(TEXTS, ["talk"] * 3)]
    distinct, rows = distinct_segments(twice, with_context=True)
    assert (len(distinct), rows) == (3, [0, 1, 2, 0, 1, 2])
    with pytest.raises(MissingInputError, match="needs the document, and segment 1 has none"):
        Reading().score(TEXTS)


def test_test_sets_with_documents_give_context() -> None:
    testset = tertium.TestSet(systems={"A": ("x", "y", "z")}, documents=("1", "2", "2"))
    places = [s.context.position for s in testset.segments("A") if s.context]
    assert places == [0, 0, 1]
    assert tertium.TestSet(systems={"A": ("x",)}).segments("A")[0].context is None


def test_equal_segments_are_marked_once() -> None:
    Marking.calls.clear()
    marked = Marking().mark_errors([Segment("axb"), Segment("ok"), Segment("axb")])
    assert marked == [(Span(1, 2, severity="major"),), (), (Span(1, 2, severity="major"),)]
    assert Marking.calls == [2]
    assert can_mark_errors(Marking())
    assert not can_mark_errors(Counting())


def test_metrics_without_error_spans_raise() -> None:
    with pytest.raises(UsageError, match="chrf does not predict error spans"):
        tertium.load_metric("chrf").mark_errors([Segment("a", None, ("b",))])


def test_span_beyond_the_text_is_an_error_that_names_the_metric() -> None:
    class Beyond(Counting):
        def spans(self, segments: Sequence[Segment]) -> list[tuple[Span, ...]]:
            return [(Span(0, 99),) for _ in segments]

    with pytest.raises(DataError, match="counting: a span ends at 99"):
        Beyond().mark_errors([Segment("a")])


def test_conformance_check_detects_undeclared_context() -> None:
    with pytest.raises(AssertionError):
        check_context_independence(Counting(), TEXTS)
    check_context_independence(Reading(), PLACED)
    check_error_spans(Marking(), [Segment("axb"), Segment("ok")])
    check_error_spans(Counting(), TEXTS)
