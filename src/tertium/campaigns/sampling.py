"""Choose the segments to judge, with known inclusion probabilities.

Every method is systematic sampling: the segments are put into an order, each occupies an interval
as long as its inclusion probability, and segments are taken at distance 1 from a random start.
Each segment is then chosen with exactly its probability, and the sample has the requested size.

    random        random order, equal probabilities
    stratified    ordered by stratum and length, equal probabilities: every stratum gets its share
    documents     whole documents in random order, equal probabilities
    informative   random order, probabilities proportional to a utility, mixed with equal ones

Means that weight each segment by 1 / probability are unbiased (Horvitz & Thompson 1952), or nearly
so in the form with a known sum of weights (Hájek 1971), which has less variance.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from numpy.typing import ArrayLike

from tertium.arrays import FloatArray, IntArray, divide
from tertium.errors import DataError, LengthError, UnknownNameError, UsageError

Method = Literal["random", "stratified", "documents", "informative"]
METHODS: tuple[Method, ...] = get_args(Method)
UNIFORM_SHARE = 0.3  # of informative sampling: bounds the weights of segments of low utility
LENGTH_BINS = 4


@dataclass(frozen=True, kw_only=True, eq=False)
class Sample:
    """Chosen segments in ascending order, and their inclusion probabilities, both (n,)."""

    indices: IntArray
    probabilities: FloatArray
    population: int

    def __len__(self) -> int:
        return len(self.indices)


def choose_segments(
    population: int,
    count: int,
    rng: np.random.Generator,
    *,
    method: Method = "random",
    documents: Sequence[str] = (),
    strata: Sequence[tuple[str, ...]] = (),
    utilities: ArrayLike = (),
) -> Sample:
    """Choose `count` of `population` segments; see the module docstring for the methods.

    `strata` has the labels of each segment; segments with the same labels are one stratum. With
    `documents` the number of segments is that of whole documents, close to `count`.
    """
    if method not in METHODS:
        raise UnknownNameError("way to choose segments", method, METHODS)
    if not 1 <= count <= population:
        raise UsageError(f"{count} segments cannot be chosen from {population}")
    order: IntArray = rng.permutation(population)
    probabilities = np.full(population, count / population)
    if method == "documents":
        return _choose_documents(documents, population, count, rng)
    if method == "stratified":
        if len(strata) != population:
            raise LengthError(f"{len(strata)} labels of strata for {population} segments")
        groups = np.unique(["\t".join(labels) for labels in strata], return_inverse=True)[1]
        order = order[np.argsort(groups[order], kind="stable")]
    elif method == "informative":
        probabilities = informative_probabilities(utilities, count, population)
    chosen = np.sort(draw_systematic(probabilities[order], rng.random()))
    indices = np.sort(order[chosen])
    return Sample(indices=indices, probabilities=probabilities[indices], population=population)


def draw_systematic(probabilities: FloatArray, start: float) -> IntArray:
    """Return the positions whose interval of cumulated probabilities contains start, start + 1, ...

    For a start that is uniform in [0, 1), a position is chosen with exactly its probability.

    >>> draw_systematic(np.array([0.5, 0.5, 1.0, 0.25, 0.75]), 0.6).tolist()
    [1, 2, 4]
    """
    ends = np.cumsum(probabilities)
    ends[-1] = round(ends[-1])  # the sum is a whole number up to rounding
    points = start + np.arange(int(ends[-1]))
    return np.searchsorted(ends, points, side="right")


def informative_probabilities(utilities: ArrayLike, count: int, population: int) -> FloatArray:
    """Return probabilities proportional to the utility, at most 1 and with the sum `count`.

    A share of `UNIFORM_SHARE` is equal for all segments, so that none is excluded.
    """
    values = np.asarray(utilities, dtype=np.float64)
    if len(values) != population:
        raise LengthError(f"{len(values)} utilities for {population} segments")
    if not np.isfinite(values).all() or (values < 0).any():
        raise DataError("utilities must be finite and at least 0")
    if not values.any():
        values = np.ones(population)
    values = UNIFORM_SHARE / population + (1 - UNIFORM_SHARE) * values / values.sum()
    result = np.zeros(population)
    is_certain = np.zeros(population, dtype=bool)
    while True:  # probabilities above 1 become 1, and the others share the rest
        remaining = count - is_certain.sum()
        result = np.where(is_certain, 1.0, remaining * values / values[~is_certain].sum())
        too_large = (result > 1) & ~is_certain
        if not too_large.any():
            return result
        is_certain |= too_large
        if is_certain.all():
            return np.ones(population)


def _choose_documents(
    documents: Sequence[str], population: int, count: int, rng: np.random.Generator
) -> Sample:
    if len(documents) != population:
        raise UsageError("whole documents need the document of each segment (--documents FILE)")
    names, numbers = np.unique(documents, return_inverse=True)
    wanted = min(len(names), max(1, round(count / population * len(names))))
    probability = wanted / len(names)
    order = rng.permutation(len(names))
    chosen = order[draw_systematic(np.full(len(names), probability), rng.random())]
    indices = np.flatnonzero(np.isin(numbers, chosen))
    return Sample(
        indices=indices,
        probabilities=np.full(len(indices), probability),
        population=population,
    )


def length_labels(texts: Sequence[str]) -> list[str]:
    """Return the quartile of each text's length, as labels of strata."""
    lengths = np.array([len(text) for text in texts], dtype=np.float64)
    edges = np.quantile(lengths, np.linspace(0, 1, LENGTH_BINS + 1)[1:-1])
    return [str(number) for number in np.searchsorted(edges, lengths)]


def weighted_mean(values: ArrayLike, probabilities: ArrayLike) -> FloatArray:
    """Estimate the mean with weights 1 / probability that sum to 1 (Hájek), (..., n) -> (...).

    NaN values are left out.
    """
    scores = np.asarray(values, dtype=np.float64)
    weights = np.where(np.isnan(scores), 0.0, 1.0 / np.asarray(probabilities))
    return divide((np.nan_to_num(scores) * weights).sum(axis=-1), weights.sum(axis=-1))
