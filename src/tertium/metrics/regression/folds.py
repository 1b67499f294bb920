"""Distribute rows over cross-validation folds, whole groups (segments, documents) at a time."""

from __future__ import annotations

import numpy as np

from tertium.arrays import IntArray
from tertium.errors import UsageError


def make_folds(groups: IntArray, folds: int) -> list[IntArray]:
    """Distribute rows over folds of similar size, whole groups at a time, largest first.

    `groups` (n,) numbers the group of each row. Groups of equal size keep the order of the rows.
    """
    _, first_rows, members, sizes = np.unique(
        groups, return_index=True, return_inverse=True, return_counts=True
    )
    if not 2 <= folds <= len(sizes):
        expected = f"expected 2 to {len(sizes)}" if len(sizes) > 1 else "give more segments"
        raise UsageError(
            f"folds={folds} with {len(sizes)} segments (judgments that share a source or a "
            f"reference count as one): {expected}"
        )
    fold_of_group, fold_sizes = np.zeros(len(sizes), dtype=np.int64), np.zeros(folds)
    for group in np.lexsort((first_rows, -sizes)):
        fold_of_group[group] = fold = fold_sizes.argmin()
        fold_sizes[fold] += sizes[group]
    return [np.flatnonzero(fold_of_group[members] == fold) for fold in range(folds)]
