"""Judgments of several raters as arrays, the input of agreement statistics."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from tertium.core.arrays import FloatArray, IntArray, divide
from tertium.core.errors import DataError
from tertium.core.segment import Judgment
from tertium.data.judgments import JudgmentSet


@dataclass(frozen=True, kw_only=True, eq=False)
class Ratings:
    """Scores of translations by named raters, in the order in which they were given.

    `unit` is the number of the translation (system and item), `cluster` that of its document, or
    of its item if documents are unknown. All arrays are (judgments,). `seconds` are the
    working times, NaN if unknown.
    """

    name: str
    raters: tuple[str, ...]
    systems: tuple[str, ...]
    judgments: tuple[Judgment, ...] = field(repr=False)
    rater: IntArray = field(repr=False)
    system: IntArray = field(repr=False)
    unit: IntArray = field(repr=False)
    cluster: IntArray = field(repr=False)
    scores: FloatArray = field(repr=False)
    seconds: FloatArray = field(repr=False)

    @classmethod
    def from_judgments(
        cls,
        judgments: JudgmentSet,
        *,
        seconds: Mapping[tuple[str, str, str], float | None] | None = None,
        exclude: Sequence[str] = (),
    ) -> Ratings:
        """Arrange judgments; `seconds` are working times by rater, item and system.

        Raters of `exclude` keep their numbers, but have no judgments.
        """
        entries = [entry for entry in judgments.judgments if entry.annotator]
        rows = [n for n, entry in enumerate(entries) if entry.annotator not in exclude]
        if not rows:
            raise DataError(
                f"{judgments.title}: no judgments of raters; agreement needs a column rater or "
                "annotator"
            )
        raters, rater = _number([entry.annotator for entry in entries])
        systems, system = _number([entry.system for entry in entries])
        items, item = _number([entry.item for entry in entries])
        clusters = _number([_cluster_name(entry) for entry in entries])[1]
        units = (system * len(items) + item)[rows]
        chosen = tuple(entries[row] for row in rows)
        times = [(seconds or {}).get((e.annotator, e.item, e.system)) for e in chosen]
        return cls(
            name=judgments.title,
            raters=raters,
            systems=systems,
            judgments=chosen,
            rater=rater[rows],
            system=system[rows],
            unit=np.unique(units, return_inverse=True)[1],
            cluster=clusters[rows],
            scores=np.array([entry.score for entry in chosen], dtype=np.float64),
            seconds=np.array(times, dtype=np.float64),
        )

    def __len__(self) -> int:
        return len(self.scores)

    def arrange(self, values: ArrayLike) -> FloatArray:
        """Return values of judgments as (raters, translations), NaN where a rater did not judge.

        The last judgment of a rater about a translation counts.
        """
        matrix = np.full((len(self.raters), int(self.unit.max()) + 1), np.nan)
        matrix[self.rater, self.unit] = values
        return matrix

    @cached_property
    def matrix(self) -> FloatArray:
        """Scores (raters, translations), NaN where a rater did not judge; repeats are averaged."""
        totals, counts = np.zeros((2, len(self.raters), int(self.unit.max()) + 1))
        np.add.at(totals, (self.rater, self.unit), self.scores)
        np.add.at(counts, (self.rater, self.unit), 1.0)
        return divide(totals, counts)

    @cached_property
    def unit_clusters(self) -> IntArray:
        """The cluster of each translation."""
        clusters = np.zeros(int(self.unit.max()) + 1, dtype=np.int64)
        clusters[self.unit] = self.cluster
        return clusters

    @cached_property
    def standardized(self) -> FloatArray:
        """Scores as z per rater; raters who gave one value get NaN."""
        values = np.full(len(self), np.nan)
        for number in range(len(self.raters)):
            is_rater = self.rater == number
            scores = self.scores[is_rater]
            if len(scores) > 1 and scores.min() < scores.max():
                values[is_rater] = (scores - scores.mean()) / scores.std(ddof=1)
        return values


def _cluster_name(judgment: Judgment) -> str:
    """Return the document of a judgment, without the system that Appraise appends to it."""
    document, hash_sign, suffix = judgment.document.rpartition("#")
    if hash_sign and judgment.system.endswith(suffix):
        return document
    return judgment.document or judgment.item


def _number(names: Sequence[str]) -> tuple[tuple[str, ...], IntArray]:
    """Number names in order of first appearance."""
    places = {name: n for n, name in enumerate(dict.fromkeys(names))}
    return tuple(places), np.array([places[name] for name in names], dtype=np.int64)
