"""Rows: a translation with the texts that a network compares it with.

These are its source, its reference or both. A segment with several references has a row for each.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tertium.core.arrays import IntArray
from tertium.core.segment import Segment
from tertium.models.input_columns import Against

HYPOTHESIS, SOURCE, REFERENCE = range(3)  # roles of texts: their places in a row
Row = tuple[str, str | None, str | None]  # hypothesis, source, reference; None if not used
INPUT_MODES: tuple[Against, ...] = ("source", "reference", "both")


def build_rows(segments: Sequence[Segment], mode: Against) -> tuple[IntArray, list[Row]]:
    """Return the index of the segment of each row, and the rows.

    >>> build_rows([Segment("a", "A", ("x", "y"))], "both")
    (array([0, 0]), [('a', 'A', 'x'), ('a', 'A', 'y')])
    >>> build_rows([Segment("a", "A", ("x", "y"))], "source")[1]
    [('a', 'A', None)]
    """
    owners, rows = [], []
    for number, segment in enumerate(segments):
        source = None if mode == "reference" else segment.source or ""
        for reference in (None,) if mode == "source" else segment.references:
            owners.append(number)
            rows.append((segment.hypothesis, source, reference))
    return np.array(owners, dtype=np.int64), rows


def distinct_texts(rows: Sequence[Row]) -> list[str]:
    """List the distinct texts of rows, in order of first appearance."""
    return list(dict.fromkeys(text for row in rows for text in row if text is not None))


def reference_or_source(row: Row) -> str:
    """Return the reference of a row, or its source if there is no reference.

    >>> reference_or_source(("a", "A", "b")), reference_or_source(("a", "A", None))
    ('b', 'A')
    """
    return row[1] or "" if row[2] is None else row[2]


def row_key(row: Row) -> str:
    """Return a string that identifies the texts of a row.

    >>> row_key(("a", None, "bc"))
    '1 - 2abc'
    """
    lengths = " ".join("-" if text is None else str(len(text)) for text in row)
    return lengths + "".join(text or "" for text in row)
