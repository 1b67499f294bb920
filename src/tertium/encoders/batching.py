"""Which texts share a forward pass: equal lengths together, under a budget of padded tokens.

A batch costs its padded size, (texts x longest text) tokens, plus a fixed overhead for having been
started. From the longest text down, a shorter length joins the current batch where the padding it
brings costs less than starting a new one (an overhead of 0 keeps lengths apart). On a CPU batches
change no vector (`apart`), on a GPU by no more than floating-point noise.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tertium.arrays import IntArray


def plan_batches(
    lengths: Sequence[int] | IntArray, *, budget: int, overhead: int, limit: int | None = None
) -> list[IntArray]:
    """Partition items into batches, longest first.

    `budget` bounds the padded tokens of a batch (a longer item goes alone), `limit` its items;
    `overhead` is what starting a batch costs, in tokens.

    >>> [batch.tolist() for batch in plan_batches([3, 9, 3, 8], budget=18, overhead=4)]
    [[1, 3], [0, 2]]
    >>> [batch.tolist() for batch in plan_batches([3, 9, 3, 8], budget=18, overhead=0)]
    [[1], [3], [0, 2]]
    """
    sizes = np.asarray(lengths, dtype=np.int64)
    order = np.argsort(-sizes, kind="stable")
    runs = np.split(order, np.flatnonzero(np.diff(sizes[order])) + 1) if len(order) else []
    batches: list[list[int]] = []
    current: list[int] = []
    longest = 0
    for run in runs:
        length, start = int(sizes[run[0]]), 0
        if current:
            room = _room(longest, budget, limit) - len(current)
            joining = min(room, len(run))
            if joining > 0 and joining * (longest - length) <= overhead:
                current += run[:joining].tolist()
                start = joining
        for item in run[start:].tolist():
            if not current or longest != length or len(current) >= _room(length, budget, limit):
                current, longest = [], length
                batches.append(current)
            current.append(item)
    return [np.array(batch, dtype=np.int64) for batch in batches]


def _room(longest: int, budget: int, limit: int | None) -> int:
    """How many items of this length fit into one batch, at least one."""
    room = max(1, budget // max(1, longest))
    return room if limit is None else min(room, limit)
