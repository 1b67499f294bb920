"""What a doubt is made of and what comes of it: people, metrics and texts of one judged set."""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import compress
from typing import Any

import numpy as np

from tertium.arrays import BoolArray, FloatArray, divide, generator, mean_known
from tertium.data.human import Evidence, Texts
from tertium.errors import DataError
from tertium.evaluation.scoring import served_by_all
from tertium.meta.evaluation import MetaEvaluation
from tertium.meta.judged import JudgedSet
from tertium.meta.results import TaskResult, interval
from tertium.meta.tasks import Task
from tertium.metrics.base.metric import Metric
from tertium.segment import Segment

SAMPLE = 200  # translations that are changed and scored again, of one set
MOST_POOLED = 1500  # cells of which all pairs are looked at, where no item has two translations
DRAWS = 1000  # bootstrap samples of items, for intervals


class NotAsked(DataError):
    """A doubt that this evidence cannot answer, and why."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Doubt:
    """One question with its answer: rows x series of numbers, and a sentence that reads them.

    `rule` is the value to compare with, `span` what a scale holds in any case. `draws` (samples,
    rows, series) are the values on bootstrap samples of items, none where nothing is left to
    chance.
    """

    name: str
    question: str
    rows: tuple[str, ...]
    series: tuple[str, ...]
    values: FloatArray  # (rows, series)
    label: str
    reading: str = ""
    rule: float | None = None
    span: tuple[float, float] = (np.nan, np.nan)
    notes: tuple[str, ...] = ()
    draws: FloatArray | None = None

    @cached_property
    def intervals(self) -> FloatArray:
        """95 % of the draws lie in it, (rows, series, 2); NaN where there are none."""
        if self.draws is None:
            return np.full((*self.values.shape, 2), np.nan)
        low, high = interval(self.draws.reshape(len(self.draws), -1), 0.95)
        return np.stack([low, high], axis=-1).reshape(*self.values.shape, 2)

    def records(self) -> dict[str, Any]:
        """Everything as plain values, for JSON."""
        return {
            "doubt": self.name,
            "question": self.question,
            "measure": self.label,
            "reading": self.reading,
            "rule": self.rule,
            "rows": [
                {
                    "row": row,
                    **dict(zip(self.series, own, strict=True)),
                    "intervals": dict(zip(self.series, bounds, strict=True)),
                }
                for row, own, bounds in zip(
                    self.rows, self.values.tolist(), self.intervals.tolist(), strict=True
                )
            ],
            "notes": list(self.notes),
        }

    def row(self, name: str) -> FloatArray:
        """The values of one row, (series,)."""
        own: FloatArray = self.values[self.rows.index(name)]
        return own


@dataclass(frozen=True, kw_only=True, eq=False)
class Case:
    """People and metrics on one set; `metrics` are those that can score texts now."""

    judged: JudgedSet
    people: Evidence
    metrics: tuple[Metric, ...]
    seed: int

    @cached_property
    def human(self) -> FloatArray:
        """What people say of each translation, (systems, items), also where they compared."""
        if self.judged.comparisons is None:
            return self.judged.human
        known, shares = self.judged.human, self.people.segment_scores().cells()
        values = [[shares[s, i] for i in self.judged.items] for s in self.judged.systems]
        return np.where(np.isnan(known), values, known)

    @property
    def names(self) -> tuple[str, ...]:
        """The metrics, as they are named in the set."""
        return self.judged.metrics

    @property
    def scorers(self) -> tuple[str, ...]:
        """The metrics that can score now."""
        return tuple(metric.spec for metric in self.metrics)

    @cached_property
    def several(self) -> BoolArray:
        """The items with two judged translations or more, (items,)."""
        mask: BoolArray = (~np.isnan(self.human)).sum(axis=0) > 1
        return mask

    @cached_property
    def places(self) -> dict[tuple[str, str], tuple[int, int]]:
        """The row and column of each translation that people judged, by system and item."""
        known = np.argwhere(~np.isnan(self.human)).tolist()
        return {(self.judged.systems[r], self.judged.items[c]): (r, c) for r, c in known}

    @cached_property
    def texts(self) -> Texts:
        """The translations that people judged and all metrics can score, by system and item."""
        known = {cell: s for cell, s in self.people.texts().items() if cell in self.places}
        return dict(compress(known.items(), served_by_all([*known.values()], self.metrics)))

    def sample(self, count: int = SAMPLE) -> list[tuple[tuple[str, str], Segment]]:
        """Some translations, chosen by a hash of their names, whatever the order of the file."""
        if not self.metrics:
            raise NotAsked("metrics have to score texts: name them with -m")
        if not self.texts:
            raise NotAsked("the judgments come without texts")
        return sorted(self.texts.items(), key=lambda entry: self.lot(*entry[0]))[:count]

    def lot(self, *names: str) -> int:
        """A number that a name draws under this seed."""
        return zlib.crc32("\t".join([str(self.seed), *names]).encode())

    def score(self, segments: Sequence[Segment]) -> FloatArray:
        """What each metric that can says of some segments, higher better, (metrics, segments)."""
        return np.stack([metric.score(segments).upward for metric in self.metrics])

    def agreement(
        self,
        scores: Mapping[str, FloatArray],
        statistic: str,
        *,
        by: str = "",
        human: FloatArray | None = None,
    ) -> TaskResult:
        """How well tables of scores, each (systems, items), agree with people, also in draws."""
        people = self.human if human is None else human
        values = np.stack([*scores.values()])
        judged = replace(
            self.judged,
            metrics=tuple(scores),
            human=people,
            human_systems=mean_known(people),
            scores=values,
            system_scores=mean_known(values),
            comparisons=None,
        )
        task = Task(
            sets=(judged.name,),
            statistic=statistic,
            by=by,  # type: ignore[arg-type]
            samples=DRAWS,
            test="none",
        )
        return MetaEvaluation([judged], seed=self.seed).run_task(task)

    def weights(self, items: Sequence[str]) -> FloatArray:
        """How often a bootstrap sample of items holds each of some units, (draws, units)."""
        names, owner = np.unique(np.array(items), return_inverse=True)
        rng = generator(self.seed, len(names))
        drawn = rng.multinomial(len(names), np.full(len(names), 1 / len(names)), size=DRAWS)
        return drawn[:, owner].astype(np.float64)

    @property
    def tables(self) -> dict[str, FloatArray]:
        """The scores of each metric, (systems, items)."""
        return dict(zip(self.names, self.judged.scores, strict=True))


def weighted_means(values: FloatArray, weights: FloatArray) -> FloatArray:
    """Means over what is known of (..., units), for each draw, (draws, ...)."""
    known = ~np.isnan(values)
    total = np.moveaxis(np.where(known, values, 0.0) @ weights.T, -1, 0)
    return divide(total, np.moveaxis(known @ weights.T, -1, 0))


def weighted_correlations(
    scores: FloatArray, people: FloatArray, weights: FloatArray
) -> FloatArray:
    """Pearson's r of scores (metrics, units) with people (units,), (draws, metrics)."""
    x, y = scores - scores.mean(axis=1, keepdims=True), people - people.mean()
    sums = weighted_means(np.stack([x, x * x, x * y]), weights)  # (draws, 3, metrics)
    mean, second = weighted_means(np.stack([y, y * y]), weights).T[..., None]  # (draws, 1)
    covariance = sums[:, 2] - sums[:, 0] * mean
    spread = (sums[:, 1] - sums[:, 0] ** 2) * (second - mean**2)
    return divide(covariance, np.sqrt(np.maximum(spread, 0.0)))


def merge(doubts: Sequence[tuple[str, Doubt]]) -> Doubt:
    """One doubt of several sets: the mean where rows are the same, else all rows by set."""
    first = doubts[0][1]
    if len(doubts) == 1:
        return first
    every = [doubt.values for _, doubt in doubts]
    parts = [doubt.draws for _, doubt in doubts if doubt.draws is not None]
    if any(doubt.rows != first.rows for _, doubt in doubts):
        rows = tuple(f"{name} {row}" for name, doubt in doubts for row in doubt.rows)
        draws = np.concatenate(parts, axis=1) if parts else None
        asked = " ".join(dict.fromkeys(doubt.question for _, doubt in doubts))
        values = np.concatenate(every)
        return replace(first, question=asked, rows=rows, values=values, draws=draws)
    stacked = np.stack(every, axis=-1)
    drawn = mean_known(np.stack(parts, axis=-1)) if parts else None  # sets are independent
    note = f"mean over {len(doubts)} sets: {', '.join(name for name, _ in doubts)}"
    return replace(first, values=mean_known(stacked), draws=drawn, notes=(*first.notes, note))
