"""A random part of several sets of comparisons, and the rest without what the part is about."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tertium.data.preferences import RankingSet
from tertium.errors import UsageError


def sample_comparisons(
    sets: Sequence[RankingSet], count: int, generator: np.random.Generator
) -> tuple[list[RankingSet], list[RankingSet]]:
    """`count` comparisons drawn from all sets together, and those on items not drawn.

    Sets of which nothing is left are not returned.
    """
    sizes = [len(rankings) for rankings in sets]
    if not 0 < count <= sum(sizes):
        raise UsageError(f"{count} comparisons cannot be drawn from {sum(sizes)}")
    chosen = np.sort(generator.choice(sum(sizes), count, replace=False))
    drawn, rest, start = [], [], 0
    for rankings, size in zip(sets, sizes, strict=True):
        rows = chosen[(chosen >= start) & (chosen < start + size)] - start
        items = rankings.item_of[rankings.left]
        other = np.flatnonzero(~np.isin(items, items[rows]))
        drawn += [rankings.select(rows)] if len(rows) else []
        rest += [rankings.select(other)] if len(other) else []
        start += size
    return drawn, rest
