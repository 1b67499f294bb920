"""What a featurizer is: segments to named columns.

A featurizer compares a hypothesis with one reference. A metric with several references compares it
with each (`split_references`) and decides afterwards.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Protocol

import numpy as np

from tertium.arrays import FloatArray, IntArray
from tertium.errors import UsageError
from tertium.segment import Segment


class Featurizer(Protocol):
    """Turns segments into rows of numbers; two that are equal make equal rows."""

    @property
    def forks(self) -> bool:
        """Whether processes may share its rows: Python makes them one by one, no network runs."""

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the columns."""

    def __call__(self, segments: Sequence[Segment]) -> FloatArray:
        """One row for each segment, (n, len(names))."""

    def __hash__(self) -> int: ...


def split_references(segments: Sequence[Segment]) -> tuple[list[Segment], IntArray]:
    """One segment for each reference, and the number of the segment each came from.

    >>> parts, owner = split_references([Segment("h", references=("a", "b"))])
    >>> [p.references for p in parts], owner
    ([('a',), ('b',)], array([0, 0]))
    """
    parts = [replace(s, references=(r,)) for s in segments for r in s.references]
    counts = [len(s.references) for s in segments]
    return parts, np.repeat(np.arange(len(segments)), counts)


def reference_of(segment: Segment) -> str:
    """The one reference of a segment."""
    if len(segment.references) != 1:
        raise UsageError(
            f"features compare with one reference, and this segment has {len(segment.references)}: "
            "take it apart with tertium.metrics.base.featurizer.split_references"
        )
    return segment.references[0]
