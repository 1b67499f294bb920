"""How well held-out people are agreed with: the statistic an epoch is chosen by.

Scores by Pearson's r, averaged over language pairs; comparisons by the strict tau.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tertium.arrays import FloatArray, IntArray


def pearson(x: FloatArray, y: FloatArray) -> float:
    """Pearson's r of two columns; 0 where one is constant."""
    x, y = x - x.mean(), y - y.mean()
    size = float(np.sqrt((x @ x) * (y @ y)))
    return float(x @ y) / size if size > 0 else 0.0


def average_pearson(scores: FloatArray, human: FloatArray, groups: Sequence[str]) -> float:
    """The mean of Pearson's r over groups; a group with constant scores counts as 0.

    >>> average_pearson(np.array([1.0, 2, 1, 2]), np.array([1.0, 2, 2, 1]), ["a", "a", "b", "b"])
    0.0
    """
    names = np.asarray(groups)
    values = [pearson(scores[names == g], human[names == g]) for g in dict.fromkeys(groups)]
    return float(np.mean(values))


def strict_tau(
    scores: FloatArray, better: IntArray, worse: IntArray, weights: FloatArray | None = None
) -> float:
    """(concordant - discordant - ties) / all, over comparisons without human ties.

    `weights` (comparisons,) says how often each was made.

    >>> strict_tau(np.array([1.0, 2.0, 2.0]), np.array([1, 1]), np.array([0, 2]))
    0.0
    """
    margins = scores[better] - scores[worse]
    return float(np.average(np.where(margins > 0, 1.0, -1.0), weights=weights))
