"""The data inside a page: columns of whole numbers and texts item by item, deflated, in base64.

All translations of a segment stand beside each other, which deflate rewards: a test set of eleven
systems takes little more room than one of four. A score is written as the whole number that its
table would show without the point, so a page says exactly what the tables say.
"""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Sequence
from typing import Any

import numpy as np

from tertium.arrays import FloatArray
from tertium.reporting.page.explained import Explained
from tertium.reporting.page.grid import Column, TranslationGrid

PER_MILLE = 3  # decimals of ranks and their differences


def encode(grid: TranslationGrid, explained: Sequence[Explained] = ()) -> str:
    """Everything the segment browser reads, as base64 text."""
    text = json.dumps(contents(grid, explained), ensure_ascii=True, separators=(",", ":"))
    return base64.b64encode(zlib.compress(text.encode("ascii"), 9)).decode("ascii")


def contents(grid: TranslationGrid, explained: Sequence[Explained]) -> dict[str, Any]:
    """The same as plain values; see `script/data.js`, which reads them."""
    documents = list(dict.fromkeys(item.document for item in grid.items))
    number = {name: n for n, name in enumerate(documents)}
    by_item: list[list[str]] = [[] for _ in grid.items]
    for item, text in zip(grid.item_of.tolist(), grid.texts, strict=True):
        by_item[item].append(text)
    return {
        "systems": list(grid.systems),
        "documents": documents,
        "items": [
            [item.label, number[item.document], item.source, list(item.references), texts]
            for item, texts in zip(grid.items, by_item, strict=True)
        ],
        "systemOf": grid.system_of.tolist(),
        "columns": [_column(column) for column in grid.columns],
        "human": None if grid.human is None else _human(grid.human),
        "spread": whole(grid.spread, PER_MILLE),
        "misfit": whole(grid.misfit, PER_MILLE),
        "warnings": list(grid.warnings),
        "warned": _bits(grid),
        "explained": [[e.item, e.system, e.title, str(e.html)] for e in explained],
    }


def whole(values: FloatArray, decimals: int) -> list[int | None]:
    """Numbers without their point, None where there is none.

    >>> whole(np.array([0.5, np.nan]), 2)
    [50, None]
    """
    scaled = np.round(values * 10**decimals)
    return [None if v != v else int(v) for v in scaled.tolist()]


def _column(column: Column) -> dict[str, Any]:
    return {
        "name": column.name,
        "spec": column.spec,
        "up": column.higher_is_better,
        "decimals": column.decimals,
        "values": whole(
            np.where(np.isfinite(column.values), column.values, np.nan), column.decimals
        ),
    }


def _human(values: FloatArray) -> dict[str, Any]:
    """People's scores with as many decimals as tell them apart: none for 0 to 100."""
    known = values[np.isfinite(values)]
    wide = known.size > 0 and float(np.ptp(known)) > 20
    decimals = 1 if wide else 3
    return {"decimals": decimals, "values": whole(values, decimals)}


def _bits(grid: TranslationGrid) -> list[int]:
    """For each row the sum of 2^k over its kinds of warnings; empty where there are none at all."""
    if not grid.warnings:
        return []
    total = np.zeros(len(grid), dtype=np.int64)
    for place, mask in enumerate(grid.warnings.values()):
        total += mask.astype(np.int64) << place
    result: list[int] = total.tolist()
    return result
