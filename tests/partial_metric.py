"""A metric without a score for some translations, as a plugin may have."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest

from tertium.core.arrays import FloatArray
from tertium.core.registry import METRICS
from tertium.core.segment import Segment
from tertium.metrics.base.metric import SegmentMetric
from tertium.metrics.lexical.chrf_metric import CHRF

UNSCORED = "unscored"


@dataclass(frozen=True, kw_only=True)
class Partial(SegmentMetric):
    """chrF of each segment; NaN for the hypothesis `unscored`."""

    name: ClassVar[str] = "partial"
    title: ClassVar[str] = "Partial"

    unscored: str = UNSCORED

    def segment_scores(self, segments: Sequence[Segment]) -> FloatArray:
        is_unscored = [segment.hypothesis == self.unscored for segment in segments]
        return np.where(is_unscored, np.nan, CHRF().score(segments).segments)


@pytest.fixture
def partial(monkeypatch: pytest.MonkeyPatch) -> str:
    """Register the metric for one test; return its name."""
    monkeypatch.setitem(METRICS.builtin, Partial.name, f"{__name__}:Partial")
    return Partial.name
