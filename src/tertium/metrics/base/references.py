"""A hypothesis meets its references, its source or both: which texts are compared."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np

from tertium.arrays import IntArray
from tertium.segment import Segment

Side = Literal["reference", "source"]


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
