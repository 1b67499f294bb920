"""A hypothesis meets its references or its source: which texts are compared, and what counts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np

from tertium.arrays import FloatArray, IntArray
from tertium.models.examples import sides_of
from tertium.segment import Segment

Side = Literal["reference", "source"]
Over = Literal["best", "mean"]  # what counts of several references


def comparisons(segments: Sequence[Segment], side: Side) -> tuple[IntArray, list[str], list[str]]:
    """Which segment each comparison belongs to, its hypothesis and the text it is compared with.

    >>> comparisons([Segment("a", "A", ("x", "y"))], "reference")
    (array([0, 0]), ['a', 'a'], ['x', 'y'])
    """
    owners, (left, right) = compared_columns(segments, side)
    return owners, left, right


def compared_columns(segments: Sequence[Segment], against: str) -> tuple[IntArray, list[list[str]]]:
    """The same for any number of sides: a column of hypotheses, and one of texts for each side.

    >>> compared_columns([Segment("a", "A", ("x", "y"))], "both")
    (array([0, 0]), [['a', 'a'], ['x', 'y'], ['A', 'A']])
    """
    sides = sides_of(against)
    rows = [
        (number, (segment.hypothesis, *texts))
        for number, segment in enumerate(segments)
        for texts in sides(segment)
    ]
    width = 3 if against == "both" else 2  # also where there is no segment
    owners: IntArray = np.array([number for number, _ in rows], dtype=np.int64)
    return owners, [[texts[column] for _, texts in rows] for column in range(width)]


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
