"""A metric with scores that are easy to compute by hand."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from tertium.core.arrays import FloatArray
from tertium.core.segment import Segment
from tertium.metrics import SegmentMetric


@dataclass(frozen=True, kw_only=True)
class Length(SegmentMetric):
    """The length of the hypothesis."""

    name: ClassVar[str] = "length"
    title: ClassVar[str] = "Length"

    def segment_scores(self, segments: Sequence[Segment]) -> FloatArray:
        return np.array([float(len(s.hypothesis)) for s in segments])
