"""Choose the segments to judge, each with the same probability.

Every method is systematic sampling: the segments are put into an order and taken at equal distances
from a random start. The sample has the requested size, and means of its segments are unbiased.

    random        random order
    stratified    ordered by stratum: every stratum gets its share
    documents     whole documents in random order
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np

from tertium.core.arrays import IntArray
from tertium.core.errors import UnknownNameError, UsageError
from tertium.core.fields import choices

Method = Literal["random", "stratified", "documents"]
METHODS: tuple[Method, ...] = choices(Method)
LENGTH_BINS = 4


def choose_segments(
    population: int,
    count: int,
    rng: np.random.Generator,
    *,
    method: Method = "random",
    documents: Sequence[str] = (),
    strata: Sequence[tuple[str, ...]] = (),
) -> IntArray:
    """Return `count` of `population` segments in ascending order, by a method of this module.

    `strata` has the labels of each segment; segments with the same labels are one stratum. With
    `documents` the number of segments is that of whole documents, close to `count`.
    """
    if method not in METHODS:
        raise UnknownNameError("way to choose segments", method, METHODS)
    if not 1 <= count <= population:
        raise UsageError(f"{count} segments cannot be chosen from {population}")
    order: IntArray = rng.permutation(population)
    if method == "documents":
        if len(documents) != population:
            raise UsageError("whole documents need the document of each segment (--documents FILE)")
        names, numbers = np.unique(documents, return_inverse=True)
        size = min(len(names), max(1, round(count / population * len(names))))
        chosen = rng.permutation(len(names))[draw_systematic(len(names), size, rng)]
        return np.flatnonzero(np.isin(numbers, chosen))
    if method == "stratified":
        groups = np.unique(["\t".join(labels) for labels in strata], return_inverse=True)[1]
        order = order[np.argsort(groups[order], kind="stable")]
    return np.sort(order[draw_systematic(population, count, rng)])


def draw_systematic(population: int, count: int, rng: np.random.Generator) -> IntArray:
    """Return `count` positions at equal distances, from a random start."""
    positions = (rng.random() + np.arange(count)) * (population / count)
    return positions.astype(np.int64)


def length_labels(texts: Sequence[str]) -> list[str]:
    """Return the quartile of each text's length, as labels of strata."""
    lengths = np.array([len(text) for text in texts], dtype=np.float64)
    edges = np.quantile(lengths, np.linspace(0, 1, LENGTH_BINS + 1)[1:-1])
    return [str(number) for number in np.searchsorted(edges, lengths)]
