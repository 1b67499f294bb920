"""What a page shows of segments: one row for each translation, a column for each metric.

Rows go item by item, so that a test set with every output and a sparse set of judgments have the
same shape. Two columns are derived: how far the metrics part on a translation, and how far they
are from people. Both compare ranks, since scores of different metrics share no scale.
Segments worth an explanation are those where metrics, people or systems differ most.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import NamedTuple
from urllib.parse import quote

import numpy as np

from tertium.arrays import BoolArray, FloatArray, IntArray, mean_known
from tertium.data.slices import LengthUnit, length_unit
from tertium.evaluation.scoring import Evaluation
from tertium.meta.correlation import ranks
from tertium.meta.judged import JudgedSet
from tertium.reporting.charts.clouds import Axis
from tertium.scores import ScoreMatrix
from tertium.segment import Segment

SHORT, LONG = 0.5, 2.0  # times the length of the reference that are worth a warning
MARGIN: Mapping[LengthUnit, int] = {"word": 3, "character": 8}  # it may differ without one


@dataclass(frozen=True, kw_only=True)
class Item:
    """What was translated; `label` is its name or number, `document` what it belongs to."""

    label: str
    document: str = ""
    source: str = ""
    references: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True, eq=False)
class Column(Axis):
    """One metric's own scores of all rows, NaN where there are none."""

    spec: str
    higher_is_better: bool = True
    decimals: int = 4

    @property
    def upward(self) -> FloatArray:
        """The scores with higher always better."""
        return self.values if self.higher_is_better else -self.values


@dataclass(frozen=True, kw_only=True, eq=False)
class TranslationGrid:
    """Translations in rows: which system, which item, the text, its scores and warnings."""

    systems: tuple[str, ...]
    items: tuple[Item, ...]
    system_of: IntArray  # (rows,)
    item_of: IntArray  # (rows,)
    texts: tuple[str, ...]
    columns: tuple[Column, ...]
    human: FloatArray | None = None  # (rows,)
    warnings: Mapping[str, BoolArray] = field(default_factory=dict)  # (rows,) each

    def __len__(self) -> int:
        return len(self.texts)

    @cached_property
    def unit(self) -> LengthUnit:
        """What the page counts lengths in."""
        return length_unit(self.texts)

    @cached_property
    def lengths(self) -> FloatArray:
        """The words or characters of each translation, (rows,)."""
        return np.array([self.measure(text) for text in self.texts], dtype=np.float64)

    def measure(self, text: str) -> int:
        """The length of a text; `script/data.js` counts likewise."""
        return len(text.split() if self.unit == "word" else text)

    @cached_property
    def ranks(self) -> FloatArray:
        """The rank of each row under each metric from 0, the worst, to 1, (metrics, rows)."""
        own = [shares(column.upward) for column in self.columns]
        return np.array(own).reshape(len(own), len(self))

    @cached_property
    def spread(self) -> FloatArray:
        """How far the metrics part on each row: highest less lowest rank, (rows,)."""
        if len(self.columns) < 2:
            return np.full(len(self), np.nan)
        result: FloatArray = self.ranks.max(axis=0) - self.ranks.min(axis=0)
        return result

    @cached_property
    def misfit(self) -> FloatArray:
        """The metrics' mean rank less people's, (rows,): above 0 where metrics are too kind."""
        if self.human is None or not self.columns:
            return np.full(len(self), np.nan)
        judged = np.isfinite(self.human)
        ours = np.mean([shares(np.where(judged, c.upward, np.nan)) for c in self.columns], axis=0)
        difference: FloatArray = ours - shares(self.human)
        return difference

    def label(self, row: int) -> str:
        """Which translation a row is, in words; the document too where sets share numbers."""
        item, system = self.items[self.item_of[row]], self.systems[self.system_of[row]]
        where = f" of {item.document}" if item.label in self._repeated else ""
        return f"segment {item.label}{where}, {system}"

    def anchor(self, row: int) -> str:
        """Where its page shows a row's segment: by its name, else by its place."""
        item = int(self.item_of[row])
        label = self.items[item].label
        return f"#segment-{item + 1 if label in self._repeated else quote(label, safe='')}"

    @cached_property
    def _repeated(self) -> set[str]:
        """Labels that more than one item has."""
        counts = Counter(item.label for item in self.items)
        return {label for label, count in counts.items() if count > 1}

    def with_human(self, human: ScoreMatrix) -> TranslationGrid:
        """The same with what people said, matched by the names of systems and items."""
        known, places = human.cells(), zip(self.system_of, self.item_of, strict=True)
        cells = ((self.systems[s], self.items[i].label) for s, i in places)
        return replace(self, human=np.array([known.get(cell, np.nan) for cell in cells]))


def shares(values: FloatArray) -> FloatArray:
    """Ranks as shares from 0 to 1, equals in the middle, NaN kept.

    >>> shares(np.array([3.0, 1.0, np.nan, 3.0]))
    array([0.75, 0.  ,  nan, 0.75])
    """
    result = np.full(len(values), np.nan)
    known = np.isfinite(values)
    result[known] = (ranks(values[known]) - 1) / max(known.sum() - 1, 1)
    return result


def grid_of_evaluation(evaluation: Evaluation) -> TranslationGrid:
    """All systems on all segments, item by item."""
    testset, systems = evaluation.testset, evaluation.systems
    size, several = len(testset), len(systems)
    sources = testset.sources or [""] * size
    references = testset.references or [()] * size
    documents = testset.documents or [""] * size
    about = zip(testset.items, documents, sources, references, strict=True)
    grid = TranslationGrid(
        systems=systems,
        items=tuple(
            Item(label=item, document=document, source=source, references=tuple(refs))
            for item, document, source, refs in about
        ),
        system_of=np.tile(np.arange(several), size),
        item_of=np.repeat(np.arange(size), several),
        texts=tuple(testset.systems[s][n] for n in range(size) for s in systems),
        columns=tuple(_column(evaluation, metric) for metric in evaluation.metrics),
    )
    return replace(grid, warnings=row_warnings(grid))


def _column(evaluation: Evaluation, metric: str) -> Column:
    scores = evaluation.of_metric(metric)
    return Column(
        spec=metric,
        name=evaluation.names[metric],
        values=np.stack([s.segments for s in scores], axis=1).ravel(),
        higher_is_better=scores[0].higher_is_better,
        decimals=scores[0].decimals,
    )


def grid_of_judged(
    sets: Sequence[JudgedSet],
    texts: Mapping[str, Mapping[tuple[str, str], Segment]],
    *,
    names: Mapping[str, str] | None = None,
    decimals: Mapping[str, int] | None = None,
    turned: Collection[str] = (),
) -> TranslationGrid:
    """What people judged, of several sets, each a document; `texts` by set, system and item.

    `names` and `decimals` say how metrics are shown, where that is known. Judged sets hold scores
    of which higher is better: those of metrics that were `turned` over are turned back here.
    """
    systems = tuple(dict.fromkeys(s for judged in sets for s in judged.systems))
    metrics = tuple(dict.fromkeys(m for judged in sets for m in judged.metrics))
    judged_items = [
        entry
        for judged in sets
        for entry in _judged_items(judged.with_metrics(metrics), texts.get(judged.name, {}))
    ]
    rows = [(n, row) for n, (_, own) in enumerate(judged_items) for row in own]
    values = np.array([row.scores for _, row in rows]).reshape(len(rows), len(metrics))
    grid = TranslationGrid(
        systems=tuple(name or "all" for name in systems),
        items=tuple(item for item, _ in judged_items),
        system_of=np.array([systems.index(row.system) for _, row in rows], dtype=np.int64),
        item_of=np.array([n for n, _ in rows], dtype=np.int64),
        texts=tuple(row.text for _, row in rows),
        columns=tuple(
            Column(
                spec=metric,
                name=(names or {}).get(metric, metric),
                values=-own if metric in turned else own,
                higher_is_better=metric not in turned,
                decimals=(decimals or {}).get(metric, Column.decimals),
            )
            for metric, own in zip(metrics, values.T, strict=True)
        ),
        human=np.array([row.human for _, row in rows]),
    )
    return replace(grid, warnings=row_warnings(grid) if any(grid.texts) else {})


class _JudgedRow(NamedTuple):
    """One translation that people or metrics scored; its text is empty where it is not known."""

    system: str
    text: str
    human: float
    scores: FloatArray  # (metrics,)


def _judged_items(
    judged: JudgedSet, texts: Mapping[tuple[str, str], Segment]
) -> Iterator[tuple[Item, list[_JudgedRow]]]:
    """The items of a set of which anything is known, each with its translations."""
    known = ~np.isnan(judged.human) | ~np.isnan(judged.scores).all(axis=0)  # (systems, items)
    for place in np.flatnonzero(known.any(axis=0)).tolist():
        label, scored = judged.items[place], np.flatnonzero(known[:, place]).tolist()
        segments = [texts.get((judged.systems[n], label)) for n in scored]
        some = next((segment for segment in segments if segment is not None), Segment(""))
        item = Item(
            label=label,
            document=judged.name,
            source=some.source or "",
            references=some.references,
        )
        yield (
            item,
            [
                _JudgedRow(
                    system=judged.systems[n],
                    text="" if segment is None else segment.hypothesis,
                    human=judged.human[n, place],
                    scores=judged.scores[:, n, place],
                )
                for n, segment in zip(scored, segments, strict=True)
            ],
        )


def row_warnings(grid: TranslationGrid) -> dict[str, BoolArray]:
    """What a reader should know of single translations, by kind; only kinds that occur."""
    items = [grid.items[i] for i in grid.item_of]
    pairs = list(zip(grid.texts, items, strict=True))
    lengths = [[grid.measure(text) for text in item.references] for item in grid.items]
    counts = np.array([sum(own) / len(own) if own else np.nan for own in lengths])
    expected = counts[grid.item_of] if len(grid) else np.zeros(0)
    apart = np.abs(grid.lengths - expected) > MARGIN[grid.unit]
    filled = np.array([bool(text.strip()) for text in grid.texts], dtype=bool)
    found = {
        "empty hypothesis": ~filled,
        "empty reference": np.array([any(not r.strip() for r in i.references) for _, i in pairs]),
        "hypothesis equals source": np.array(
            [bool(item.source.strip()) and text == item.source for text, item in pairs]
        ),
        "much shorter than the reference": filled & apart & (grid.lengths < SHORT * expected),
        "much longer than the reference": apart & (grid.lengths > LONG * expected),
    }
    return {kind: mask for kind, mask in found.items() if mask.any()}


MOST_SYSTEMS = 3  # that are explained on one item


def interesting_items(grid: TranslationGrid, count: int) -> list[int]:
    """Up to `count` items, taken in turn from three lists, each with the largest first.

    The lists: how far metrics part on a translation, how far they are from people, and how far
    systems lie apart by the metrics' mean rank.
    """
    mean = mean_known(grid.ranks.T)
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
