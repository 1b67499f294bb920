"""Which segments are worth an explanation: where metrics, people or systems differ most."""

from __future__ import annotations

import numpy as np

from tertium.arrays import FloatArray
from tertium.reporting.page.grid import TranslationGrid

MOST_SYSTEMS = 3  # that are explained on one item


def interesting_items(grid: TranslationGrid, count: int) -> list[int]:
    """Up to `count` items, taken in turn from three lists, each with the largest first.

    The lists: how far metrics part on a translation, how far they are from people, and how far
    systems lie apart by the metrics' mean rank.
    """
    mean = np.nanmean(grid.ranks, axis=0) if len(grid.columns) else np.full(len(grid), np.nan)
    lists = [
        _largest(_by_item(grid, grid.spread)),
        _largest(_by_item(grid, np.abs(grid.misfit))),
        _largest(_by_item(grid, mean) + _by_item(grid, -mean)),
    ]
    chosen: dict[int, None] = {}
    for place in range(max(map(len, lists), default=0)):
        for ordered in lists:
            if place < len(ordered) and len(chosen) < count:
                chosen[ordered[place]] = None
    return sorted(chosen)


def systems_to_explain(grid: TranslationGrid, item: int) -> list[int]:
    """All systems of an item where they are few, else the most disputed, the best, the worst."""
    rows = np.flatnonzero(grid.item_of == item)
    if len(rows) > MOST_SYSTEMS:
        mean = np.nan_to_num(grid.ranks[:, rows].mean(axis=0), nan=0.5)
        spread = np.nan_to_num(grid.spread[rows])
        picked = dict.fromkeys([int(spread.argmax()), int(mean.argmax()), int(mean.argmin())])
        rows = rows[list(picked)]
    systems: list[int] = grid.system_of[rows].tolist()
    return systems


def _by_item(grid: TranslationGrid, values: FloatArray) -> FloatArray:
    """The highest value among an item's rows, (items,); -inf where none is known."""
    result = np.full(len(grid.items), -np.inf)
    known = np.isfinite(values)
    np.maximum.at(result, grid.item_of[known], values[known])
    return result


def _largest(values: FloatArray) -> list[int]:
    order = np.argsort(-values, kind="stable")
    return [int(n) for n in order if np.isfinite(values[n])]
