"""A minimal metric that predicts error spans."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from tertium.core.arrays import FloatArray
from tertium.core.segment import Segment
from tertium.core.spans import Span
from tertium.metrics.base.metric import NOTHING, SegmentMetric


@dataclass(frozen=True, kw_only=True)
class Suspicious(SegmentMetric):
    """Marks the first `cat` of a translation as a major error."""

    name: ClassVar[str] = "suspicious"
    title: ClassVar[str] = "Suspicious"

    @property
    def required_inputs(self) -> frozenset[str]:
        return NOTHING

    def segment_scores(self, segments: Sequence[Segment]) -> FloatArray:
        return np.array([-float("cat" in s.hypothesis) for s in segments])

    def spans(self, segments: Sequence[Segment]) -> list[tuple[Span, ...]]:
        places = [s.hypothesis.find("cat") for s in segments]
        return [(Span(n, n + 3, severity="major"),) if n >= 0 else () for n in places]
