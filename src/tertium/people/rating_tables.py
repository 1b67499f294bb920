"""Judgments of several raters as arrays, the input of agreement statistics."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import compress

import numpy as np

from tertium.core.arrays import BoolArray, FloatArray, IntArray, divide
from tertium.core.errors import DataError, UnknownNameError
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
    items: tuple[str, ...]
    judgments: tuple[Judgment, ...] = field(repr=False)
    rater: IntArray = field(repr=False)
    system: IntArray = field(repr=False)
    item: IntArray = field(repr=False)
    cluster: IntArray = field(repr=False)
    scores: FloatArray = field(repr=False)
    seconds: FloatArray = field(repr=False)

    @classmethod
    def from_judgments(
        cls,
        judgments: JudgmentSet,
        *,
        seconds: Mapping[tuple[str, str, str], float] | None = None,
    ) -> Ratings:
        """Arrange judgments; `seconds` are working times by rater, system and item."""
        entries = [entry for entry in judgments.judgments if entry.annotator]
        if not entries:
            raise DataError(
                f"{judgments.title}: no rater names; agreement needs a column rater or annotator"
            )
        raters, rater = _number([entry.annotator for entry in entries])
        systems, system = _number([entry.system for entry in entries])
        items, item = _number([entry.item for entry in entries])
        _, cluster = _number([_cluster_name(entry) for entry in entries])
        times = seconds or {}
        return cls(
            name=judgments.title,
            raters=raters,
            systems=systems,
            items=items,
            judgments=tuple(entries),
            rater=rater,
            system=system,
            item=item,
            cluster=cluster,
            scores=np.array([entry.score for entry in entries], dtype=np.float64),
            seconds=np.array([times.get((e.annotator, e.system, e.item), np.nan) for e in entries]),
        )

    def __len__(self) -> int:
        return len(self.scores)

    @cached_property
    def unit(self) -> IntArray:
        """The number of the translation of each judgment."""
        units: IntArray = np.unique(self.system * len(self.items) + self.item, return_inverse=True)[
            1
        ].reshape(-1)
        return units

    @cached_property
    def matrix(self) -> FloatArray:
        """Scores (raters, translations), NaN where a rater did not judge; repeats are averaged."""
        shape = (len(self.raters), int(self.unit.max()) + 1)
        totals, counts = np.zeros((2, *shape))
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
            own = self.rater == number
            scores = self.scores[own]
            if len(scores) > 1 and scores.min() < scores.max():
                values[own] = (scores - scores.mean()) / scores.std(ddof=1)
        return values

    def select(self, mask: BoolArray) -> Ratings:
        """Keep some judgments; the numbers of raters, systems and items stay."""
        if not mask.any():
            raise DataError(f"{self.name}: no judgments are left")
        return replace(
            self,
            judgments=tuple(compress(self.judgments, mask)),
            **{
                name: getattr(self, name)[mask]
                for name in ("rater", "system", "item", "cluster", "scores", "seconds")
            },
        )

    def without_raters(self, names: Sequence[str]) -> Ratings:
        """Leave out the judgments of some raters."""
        for name in names:
            if name not in self.raters:
                raise UnknownNameError("rater", name, self.raters)
        numbers = [self.raters.index(name) for name in names]
        return self.select(~np.isin(self.rater, numbers))


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
