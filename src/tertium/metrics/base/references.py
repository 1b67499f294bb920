"""A hypothesis meets its references or its source: which texts are compared, and what counts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np

from tertium.arrays import FloatArray, IntArray
from tertium.segment import Segment

Side = Literal["reference", "source"]
Over = Literal["best", "mean"]  # what counts of several references


def comparisons(
    segments: Sequence[Segment], side: Side
) -> tuple[IntArray, list[str], list[str]]:
    """Which segment each comparison belongs to, its hypothesis and the text it is compared with.

    >>> comparisons([Segment("a", "A", ("x", "y"))], "reference")
    (array([0, 0]), ['a', 'a'], ['x', 'y'])
    """
    rows = [
        (number, segment.hypothesis, text)
        for number, segment in enumerate(segments)
        for text in (segment.references if side == "reference" else (segment.source or "",))
    ]
    return np.array([row[0] for row in rows]), [row[1] for row in rows], [row[2] for row in rows]


def over_references(
    values: FloatArray, owners: IntArray, how: Over, *, higher_is_better: bool = True
) -> FloatArray:
    """What each segment has, (n, ...), from what its comparisons have, (c, ...), `owners` rising.

    >>> over_references(np.array([1.0, 3, 2]), np.array([0, 0, 1]), "mean")
    array([2., 2.])
    """
    starts = np.flatnonzero(np.diff(owners, prepend=-1))
    if how == "best":
        choose = np.maximum if higher_is_better else np.minimum
        best: FloatArray = choose.reduceat(values.astype(np.float64), starts, axis=0)
        return best
    totals = np.zeros((len(starts), *values.shape[1:]))
    np.add.at(totals, owners, values)
    counts = np.bincount(owners).reshape(-1, *[1] * (values.ndim - 1))
    mean: FloatArray = totals / counts
    return mean
