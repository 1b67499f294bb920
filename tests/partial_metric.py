"""A metric that has no score for some translation, as one of another package may."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest

from tertium.arrays import FloatArray
from tertium.metrics.base.metric import SegmentMetric
from tertium.metrics.lexical.chrf import ChrF
from tertium.registry import METRICS
from tertium.segment import Segment

UNSCORED = "unscored"


@dataclass(frozen=True, kw_only=True)
class Partial(SegmentMetric):
    """chrF of each segment; none for a translation that says `lost`."""

    name: ClassVar[str] = "partial"
    title: ClassVar[str] = "Partial"

    lost: str = UNSCORED

    def segment_scores(self, segments: Sequence[Segment]) -> FloatArray:
        lost = [segment.hypothesis == self.lost for segment in segments]
        return np.where(lost, np.nan, ChrF().score(segments).segments)


@pytest.fixture
def partial(monkeypatch: pytest.MonkeyPatch) -> str:
    """The name of that metric, which commands know for a test."""
    monkeypatch.setitem(METRICS.builtin, Partial.name, f"{__name__}:Partial")  # type: ignore[arg-type]
    return Partial.name
