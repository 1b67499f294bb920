"""Define feature extractors: callables from segments to a table of named columns.

A feature extractor compares a hypothesis with one reference. Metrics split segments with several
references (`split_references`) and reduce over the references afterwards.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Protocol

import numpy as np

from tertium.core.arrays import FloatArray, IntArray
from tertium.core.errors import UsageError
from tertium.core.segment import Segment


class FeatureExtractor(Protocol):
    """A callable from segments to rows of numbers; equal extractors give equal rows."""

    @property
    def can_fork(self) -> bool:
        """Whether rows may be computed in forked processes (pure Python, no neural network)."""

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the columns."""

    def __call__(self, segments: Sequence[Segment]) -> FloatArray:
        """Compute one row per segment, (n, len(names))."""

    def __hash__(self) -> int: ...


def split_references(segments: Sequence[Segment]) -> tuple[list[Segment], IntArray]:
    """Split segments into one segment per reference; also return the index of the original segment.

    >>> parts, owner = split_references([Segment("h", references=("a", "b"))])
    >>> [p.references for p in parts], owner
    ([('a',), ('b',)], array([0, 0]))
    """
    parts = [replace(s, references=(r,)) for s in segments for r in s.references]
    counts = [len(s.references) for s in segments]
    return parts, np.repeat(np.arange(len(segments)), counts)


def only_reference(segment: Segment) -> str:
    """Return the reference of a segment that has exactly one; raise otherwise."""
    if len(segment.references) != 1:
        raise UsageError(
            f"expected a segment with one reference, got {len(segment.references)}: split it with "
            "tertium.metrics.base.feature_extractor.split_references"
        )
    return segment.references[0]
