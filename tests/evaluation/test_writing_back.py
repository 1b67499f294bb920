"""Scores and findings are written into copies of localization files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest
from tests.localization import examples
from tests.localization.examples import write

import tertium
from tertium.core.arrays import FloatArray
from tertium.core.errors import UsageError
from tertium.core.segment import Segment
from tertium.core.spans import Span
from tertium.metrics.base.metric import SegmentMetric


@dataclass(frozen=True, kw_only=True)
class Share(SegmentMetric):
    """A metric with scores from 0 to 1 that marks the first character; NaN for `Eins.`."""

    name: ClassVar[str] = "share"
    title: ClassVar[str] = "Share"

    @property
    def required_inputs(self) -> frozenset[str]:
        return frozenset({"source"})

    def segment_scores(self, segments: Sequence[Segment]) -> FloatArray:
        return np.array([np.nan if s.hypothesis == "Eins." else 0.25 for s in segments])

    def spans(self, segments: Sequence[Segment]) -> list[tuple[Span, ...]]:
        return [(Span(0, 1, severity="minor"),) for _ in segments]


def test_scores_and_marked_errors_are_written(tmp_path):
    project = tertium.read_project([write(tmp_path, "a.xlf", examples.XLIFF1)])
    metric = Share()
    evaluation = tertium.score(project.testset, [metric])
    copy = str(tmp_path / "b.xlf")
    assert tertium.write_back(project, evaluation, copy, metrics=[metric]) == [copy]
    text = Path(copy).read_text()
    assert text.count("share: 0.25</note>") == 3  # a missing score is not written
    assert text.count("error (minor) [translation: ") == 4


def test_findings_are_written(tmp_path):
    project = tertium.read_project([write(tmp_path, "a.xlf", examples.XLIFF1)])
    report = tertium.check(project.testset, target_language="de")
    tertium.write_back(project, report, str(tmp_path / "b.xlf"))
    assert '[source: &lt;ph id="a b"&gt;%d&lt;/ph&gt;]' in (tmp_path / "b.xlf").read_text()
    with pytest.raises(UsageError, match="write_back takes the result of score or check, not 3"):
        tertium.write_back(project, 3, "x.xlf")
