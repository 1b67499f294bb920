"""The data of the segment browser: one row per translation, one column per metric.

Rows are ordered by item, so that complete test sets and sparse human judgments have the same
shape. Two columns are derived from ranks, since metrics have different scales: the disagreement
between metrics, and the disagreement between metrics and human scores.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from tertium.core.arrays import BoolArray, FloatArray, IntArray, nan_mean
from tertium.core.charts import Axis
from tertium.core.scores import ScoreMatrix
from tertium.core.segment import Segment
from tertium.data.slices import LengthUnit, detect_length_unit
from tertium.evaluation.system_scores import Evaluation
from tertium.meta.agreement import ranks
from tertium.meta.aligned_scores import AlignedScores

MAX_EXPLAINED_SYSTEMS = 3  # per item


@dataclass(frozen=True, kw_only=True)
class Item:
    """A source segment with its references; `label` is its name or number."""

    label: str
    document: str = ""
    source: str = ""
    references: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True, eq=False)
class MetricColumn(Axis):
    """The raw scores of one metric for all rows, NaN if missing."""

    spec: str
    higher_is_better: bool = True
    decimals: int = 4

    @property
    def oriented_values(self) -> FloatArray:
        """The scores, negated if lower is better."""
        return self.values if self.higher_is_better else -self.values


@dataclass(frozen=True, kw_only=True, eq=False)
class TranslationGrid:
    """Translations in rows, with their system, item, text, scores and warnings."""

    systems: tuple[str, ...]
    items: tuple[Item, ...]
    system_indices: IntArray  # (rows,)
    item_indices: IntArray  # (rows,)
    texts: tuple[str, ...]
    columns: tuple[MetricColumn, ...]
    human: FloatArray | None = None  # (rows,)
    warnings: Mapping[str, BoolArray] = field(default_factory=dict)  # (rows,) each

    def __len__(self) -> int:
        return len(self.texts)

    @cached_property
    def unit(self) -> LengthUnit:
        """The unit of text lengths."""
        return detect_length_unit(self.texts)

    @cached_property
    def ranks(self) -> FloatArray:
        """Rank of each row under each metric, from 0 (worst) to 1 (best), (metrics, rows)."""
        fractions = [rank_fractions(column.oriented_values) for column in self.columns]
        return np.array(fractions).reshape(len(fractions), len(self))

    @cached_property
    def metric_disagreement(self) -> FloatArray:
        """Highest minus lowest rank of the metrics for each row, (rows,)."""
        if len(self.columns) < 2:
            return np.full(len(self), np.nan)
        result: FloatArray = self.ranks.max(axis=0) - self.ranks.min(axis=0)
        return result

    @cached_property
    def human_disagreement(self) -> FloatArray:
        """Mean rank of the metrics minus the human rank, (rows,): above 0 if they overrate."""
        if self.human is None or not self.columns:
            return np.full(len(self), np.nan)
        has_score = np.isfinite(self.human)
        metric_ranks = np.mean(
            [rank_fractions(np.where(has_score, c.oriented_values, np.nan)) for c in self.columns],
            axis=0,
        )
        difference: FloatArray = metric_ranks - rank_fractions(self.human)
        return difference

    def label(self, row: int) -> str:
        """Return the segment and system of a row; with the document if labels repeat."""
        item = self.items[self.item_indices[row]]
        system = self.systems[self.system_indices[row]]
        document = f" of {item.document}" if item.label in self._repeated_labels else ""
        return f"segment {item.label}{document}, {system}"

    @cached_property
    def _repeated_labels(self) -> set[str]:
        counts = Counter(item.label for item in self.items)
        return {label for label, count in counts.items() if count > 1}

    def with_human(self, human: ScoreMatrix) -> TranslationGrid:
        """Return a copy with human scores, matched by system and item names."""
        scores = human.cells()
        indices = zip(self.system_indices, self.item_indices, strict=True)
        cells = ((self.systems[s], self.items[i].label) for s, i in indices)
        return replace(self, human=np.array([scores.get(cell, np.nan) for cell in cells]))


def rank_fractions(values: FloatArray) -> FloatArray:
    """Return ranks scaled to 0..1; ties share their mean rank, NaN stays NaN.

    >>> rank_fractions(np.array([3.0, 1.0, np.nan, 3.0]))
    array([0.75, 0.  ,  nan, 0.75])
    """
    result = np.full(len(values), np.nan)
    is_finite = np.isfinite(values)
    result[is_finite] = (ranks(values[is_finite]) - 1) / max(is_finite.sum() - 1, 1)
    return result


def grid_from_evaluation(evaluation: Evaluation) -> TranslationGrid:
    """Return a grid of all systems on all segments."""
    testset = evaluation.testset
    systems = evaluation.systems
    items = []
    texts = []
    for n, label in enumerate(testset.items):
        item = Item(
            label=label,
            document=testset.documents[n] if testset.documents else "",
            source=testset.sources[n] if testset.sources else "",
            references=tuple(testset.references[n]) if testset.references else (),
        )
        items.append(item)
        texts += [testset.systems[system][n] for system in systems]
    masks: dict[str, BoolArray] = {}
    for place, system in enumerate(systems):
        for scores in evaluation.scores[system].values():
            for kind, flags in scores.flags.items():
                mask = masks.setdefault(kind, np.zeros(len(texts), dtype=bool))
                mask[place :: len(systems)] |= flags
    return TranslationGrid(
        systems=systems,
        items=tuple(items),
        system_indices=np.tile(np.arange(len(systems)), len(items)),
        item_indices=np.repeat(np.arange(len(items)), len(systems)),
        texts=tuple(texts),
        columns=tuple(_column(evaluation, metric) for metric in evaluation.metrics),
        warnings=masks,
    )


def _column(evaluation: Evaluation, metric: str) -> MetricColumn:
    scores = evaluation.metric_scores(metric)
    return MetricColumn(
        spec=metric,
        name=evaluation.names[metric],
        values=np.stack([s.segments for s in scores], axis=1).ravel(),
        higher_is_better=scores[0].higher_is_better,
        decimals=scores[0].decimals,
    )


def grid_from_aligned_scores(
    sets: Sequence[AlignedScores],
    texts: Mapping[str, Mapping[tuple[str, str], Segment]],
    *,
    decimals: Mapping[str, int] | None = None,
    negated: Collection[str] = (),
) -> TranslationGrid:
    """Return a grid of datasets with human scores; each dataset becomes a document.

    It has the translations with any score. `texts` are keyed by dataset, then by system and item.
    Aligned scores are oriented (higher is better); scores of `negated` metrics are restored to
    their original sign.
    """
    systems = tuple(dict.fromkeys(s for dataset in sets for s in dataset.systems))
    metrics = tuple(dict.fromkeys(m for dataset in sets for m in dataset.metrics))
    items: list[Item] = []
    system_indices: list[int] = []
    item_indices: list[int] = []
    outputs: list[str] = []
    human: list[float] = []
    scores: list[FloatArray] = []
    for dataset in sets:
        aligned = dataset.with_metrics(metrics)
        segments = texts.get(dataset.name, {})
        has_score = ~np.isnan(aligned.human) | ~np.isnan(aligned.scores).all(axis=0)
        for place in np.flatnonzero(has_score.any(axis=0)):
            label = aligned.items[place]
            first = None
            for row in np.flatnonzero(has_score[:, place]):
                system = aligned.systems[row]
                segment = segments.get((system, label))
                first = first or segment
                system_indices.append(systems.index(system))
                item_indices.append(len(items))
                outputs.append("" if segment is None else segment.hypothesis)
                human.append(aligned.human[row, place])
                scores.append(aligned.scores[:, row, place])
            first = first or Segment("")
            item = Item(
                label=label,
                document=dataset.name,
                source=first.source or "",
                references=first.references,
            )
            items.append(item)
    values = np.array(scores).reshape(len(scores), len(metrics))
    columns = []
    for metric, column in zip(metrics, values.T, strict=True):
        is_negated = metric in negated
        columns.append(
            MetricColumn(
                spec=metric,
                name=metric,
                values=-column if is_negated else column,
                higher_is_better=not is_negated,
                decimals=(decimals or {}).get(metric, MetricColumn.decimals),
            )
        )
    return TranslationGrid(
        systems=tuple(name or "all" for name in systems),
        items=tuple(items),
        system_indices=np.array(system_indices, dtype=np.int64),
        item_indices=np.array(item_indices, dtype=np.int64),
        texts=tuple(outputs),
        columns=tuple(columns),
        human=np.array(human),
    )


def select_items_to_explain(grid: TranslationGrid, count: int) -> list[int]:
    """Select the items with the largest disagreement of metrics, with humans, or of systems."""
    mean = nan_mean(grid.ranks.T)
    measures = [
        _by_item(grid, grid.metric_disagreement),
        _by_item(grid, np.abs(grid.human_disagreement)),
        _by_item(grid, mean) + _by_item(grid, -mean),
    ]
    largest = np.fmax.reduce([rank_fractions(values) for values in measures])
    order = np.argsort(-largest, kind="stable")[:count]
    return sorted(int(n) for n in order if np.isfinite(largest[n]))


def select_systems_to_explain(grid: TranslationGrid, item: int) -> list[int]:
    """Select all systems of an item if few, else the most disputed, the best and the worst."""
    rows = np.flatnonzero(grid.item_indices == item)
    if len(rows) > MAX_EXPLAINED_SYSTEMS:
        mean = np.nan_to_num(grid.ranks[:, rows].mean(axis=0), nan=0.5)
        disagreement = np.nan_to_num(grid.metric_disagreement[rows])
        picked = dict.fromkeys([int(disagreement.argmax()), int(mean.argmax()), int(mean.argmin())])
        rows = rows[list(picked)]
    systems: list[int] = grid.system_indices[rows].tolist()
    return systems


def _by_item(grid: TranslationGrid, values: FloatArray) -> FloatArray:
    """Return the maximum over the rows of each item, (items,); -inf if all are NaN."""
    result = np.full(len(grid.items), -np.inf)
    is_finite = np.isfinite(values)
    np.maximum.at(result, grid.item_indices[is_finite], values[is_finite])
    return result
