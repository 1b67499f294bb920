"""Distribute rows over cross-validation folds, whole groups (segments, documents) at a time."""

from __future__ import annotations

import numpy as np

from tertium.core.arrays import IntArray
from tertium.core.errors import UsageError

FOLDS = 5


def make_folds(groups: IntArray, folds: int) -> list[IntArray]:
    """List the rows of each of `number_folds`."""
    count = len(np.unique(groups))
    if not 2 <= folds <= count:
        expected = f"expected 2 to {count}" if count > 1 else "give more segments"
        raise UsageError(
            f"folds={folds} with {count} segments (judgments that share a source or a "
            f"reference count as one): {expected}"
        )
    fold_of_row = number_folds(groups, folds)
    return [np.flatnonzero(fold_of_row == fold) for fold in range(folds)]


def number_folds(groups: IntArray, folds: int) -> IntArray:
    """Distribute rows over folds of similar size, whole groups at a time, largest first.

    `groups` (n,) numbers the group of each row. Groups of equal size keep the order of the rows.
    Return the number of the fold of each row, (n,); fewer groups than folds have one each.
    """
    _, first_rows, members, sizes = np.unique(
        groups, return_index=True, return_inverse=True, return_counts=True
    )
    fold_of_group, fold_sizes = np.zeros(len(sizes), dtype=np.int64), np.zeros(folds)
    for group in np.lexsort((first_rows, -sizes)):
        fold_of_group[group] = fold = fold_sizes.argmin()
        fold_sizes[fold] += sizes[group]
    return fold_of_group[members]
