"""Human and metric scores aligned on the same cells, systems x segments.

Metric scores are matched to the judged cells by the names of systems and items, never by position
alone. Unmatched systems are counted by reason; a metric that matches nothing is an error.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from tertium.core.arrays import BoolArray, FloatArray, nan_mean
from tertium.core.errors import DataError, LengthError, UnknownNameError
from tertium.core.scores import ScoreMatrix
from tertium.data.item_names import check_numbering_base
from tertium.data.rankings import RankingSet
from tertium.data.win_rates import ComparisonIndex
from tertium.meta.agreement import select_judged_columns

UNJUDGED_SYSTEM = "scored system without human judgments"
NO_SYSTEM_SCORE = "judged system without a metric score"


@dataclass(frozen=True, kw_only=True, eq=False)
class AlignedScores:
    """Human and metric scores of one language pair of one test set.

    `human` holds segment scores and `human_systems` system scores; `scores` and `system_scores` are
    those of the metrics. Missing scores are NaN. `comparisons` is set if humans compared
    translations instead of scoring them; `human_systems_from_wins` is true if their system scores
    are expected wins. `excluded_counts` counts unmatched systems for each metric.
    """

    name: str
    systems: tuple[str, ...]
    items: tuple[str, ...] = field(repr=False)
    metrics: tuple[str, ...]
    human: FloatArray = field(repr=False)  # (systems, items)
    scores: FloatArray = field(repr=False)  # (metrics, systems, items)
    human_systems: FloatArray = field(repr=False)  # (systems,)
    system_scores: FloatArray = field(repr=False)  # (metrics, systems)
    comparisons: ComparisonIndex | None = field(default=None, repr=False)
    human_systems_from_wins: bool = field(default=False, repr=False)
    excluded_counts: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    unscored_systems: Mapping[str, tuple[str, ...]] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        cells = (len(self.systems), len(self.items))
        shapes = {
            "human scores": (self.human.shape, cells),
            "metric scores": (self.scores.shape, (len(self.metrics), *cells)),
            "human system scores": (self.human_systems.shape, cells[:1]),
            "metric system scores": (self.system_scores.shape, (len(self.metrics), *cells[:1])),
        }
        for name, (shape, expected) in shapes.items():
            if shape != expected:
                raise LengthError(f"{self.name}: {name} have shape {shape}, expected {expected}")

    def drop_systems(self, systems: Sequence[str]) -> AlignedScores:
        """Remove the human judgments of some systems; an unknown name is an error."""
        dropped = np.isin(self.systems, list(systems))
        if len(set(systems)) > dropped.sum():
            unknown = next(name for name in systems if name not in self.systems)
            raise UnknownNameError(f"system of {self.name}", unknown, self.systems)
        human_systems, compared = self.human_systems, self.comparisons
        if compared is not None:
            compared = compared.select(~(dropped[compared.left] | dropped[compared.right]))
            if self.human_systems_from_wins:
                human_systems = compared.expected_wins(len(self.systems))
        unscored = {
            metric: tuple(name for name in names if name not in systems)
            for metric, names in self.unscored_systems.items()
        }
        return replace(
            self,
            excluded_counts=_count_exclusions(self.excluded_counts, unscored),
            unscored_systems=unscored,
            human=np.where(dropped[:, None], np.nan, self.human),
            human_systems=np.where(dropped, np.nan, human_systems),
            comparisons=compared,
        )

    def with_metrics(self, metrics: tuple[str, ...]) -> AlignedScores:
        """Return the set with these metrics in this order; a metric that it lacks is NaN."""
        if self.metrics == metrics:
            return self
        columns = [metrics.index(metric) for metric in self.metrics]
        scores = np.full((len(metrics), *self.human.shape), np.nan)
        totals = np.full((len(metrics), len(self.systems)), np.nan)
        scores[columns], totals[columns] = self.scores, self.system_scores
        return replace(self, metrics=metrics, scores=scores, system_scores=totals)

    def system_columns(self) -> tuple[FloatArray, FloatArray]:
        """Return system scores as one row: (1, systems) and (metrics, 1, systems)."""
        human, scores = self.human_systems[None], self.system_scores[:, None]
        return select_judged_columns(self.name, human, scores)

    def keep_items(self, item_mask: BoolArray, name: str) -> AlignedScores:
        """Keep some of the items, under another name; system scores are computed again."""
        scores, compared = self.scores[:, :, item_mask], self.comparisons
        human = self.human[:, item_mask]
        human_systems = nan_mean(human)
        if compared is not None:
            chosen = compared.select(item_mask[compared.item])
            compared = replace(chosen, item=(np.cumsum(item_mask) - 1)[chosen.item])
            human_systems = compared.expected_wins(len(self.systems))
        return replace(
            self,
            name=name,
            items=tuple(item for item, keep in zip(self.items, item_mask, strict=True) if keep),
            human=human,
            scores=scores,
            human_systems=human_systems,
            system_scores=nan_mean(scores),
            comparisons=compared,
            human_systems_from_wins=compared is not None,
        )

    @classmethod
    def align(
        cls,
        name: str,
        metrics: Sequence[ScoreMatrix],
        *,
        human: ScoreMatrix | None = None,
        comparisons: RankingSet | None = None,
        human_systems: Mapping[str, float] | None = None,
        system_scores: Mapping[str, Mapping[str, float]] | None = None,
    ) -> AlignedScores:
        """Align metric scores with human judgments.

        Human judgments are `human` segment scores, `comparisons`, or only `human_systems`. Missing
        system scores are means of segment scores, or expected wins of comparisons. A metric without
        `items` has one score per line: its items are 1, 2, ...

        >>> human = ScoreMatrix("da", ("A", "B"), np.array([[80.0, 90], [40, 50]]), ("1", "2"))
        >>> chrf = ScoreMatrix("chrf", ("B", "A"), np.array([[0.2, 0.1], [0.7, 0.8]]))
        >>> AlignedScores.align("de-en", [chrf], human=human).scores[0]
        array([[0.7, 0.8],
               [0.2, 0.1]])
        """
        systems, items = _grid(name, human, comparisons, human_systems)
        if human is None:
            values = np.full((len(systems), len(items)), np.nan)
            human = ScoreMatrix("human", systems, values, items)
        given_scores = dict(system_scores or {})
        by_name = _by_name(name, metrics)
        names = list(dict.fromkeys([*by_name, *given_scores]))
        rows = [_fit_to_grid(name, by_name.get(m), m, systems, items) for m in names]
        # means over all segments that the metric scored, judged or not
        means = {
            m.name: dict(zip(m.systems, m.system_scores.tolist(), strict=True)) for m in metrics
        }
        totals = [_to_vector({**means, **given_scores}[m], systems) for m in names]
        human_totals, compared = human.system_scores, None
        if comparisons is not None:
            compared = ComparisonIndex.of(comparisons)
            human_totals = compared.expected_wins(len(systems))
        if human_systems:
            human_totals = _to_vector(human_systems, systems)
        shape = (len(names), len(systems))
        scored = {**given_scores, **{m: matrix.systems for m, matrix in by_name.items()}}
        unscored = {m: tuple(s for s in systems if s not in scored[m]) for m in names}
        return cls(
            name=name,
            systems=systems,
            items=items,
            metrics=tuple(names),
            human=human.values,
            scores=np.array([r for r, _ in rows]).reshape((*shape, len(items))),
            human_systems=human_totals,
            system_scores=np.array(totals).reshape(shape),
            comparisons=compared,
            human_systems_from_wins=compared is not None and not human_systems,
            excluded_counts=_count_exclusions(
                {m: counts for m, (_, counts) in zip(names, rows, strict=True)}, unscored
            ),
            unscored_systems=unscored,
        )


def _grid(
    name: str,
    human: ScoreMatrix | None,
    comparisons: RankingSet | None,
    human_systems: Mapping[str, float] | None,
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the judged systems and items, in the order of the input."""
    if human is not None and comparisons is not None:
        raise DataError(f"{name}: both human scores and comparisons were given: give one of them")
    if human is not None:
        return human.systems, human.labels
    if comparisons is not None:
        return comparisons.systems, comparisons.items
    if human_systems:
        return tuple(human_systems), ()
    raise DataError(f"{name}: no human judgments: give scores or comparisons")


def _by_name(name: str, metrics: Sequence[ScoreMatrix]) -> dict[str, ScoreMatrix]:
    counts = Counter(metric.name for metric in metrics)
    if repeated := [metric for metric, count in counts.items() if count > 1]:
        raise DataError(f"{name}: more than one metric is named {', '.join(repeated)}")
    return {metric.name: metric for metric in metrics}


def _fit_to_grid(
    name: str,
    matrix: ScoreMatrix | None,
    metric: str,
    systems: tuple[str, ...],
    items: tuple[str, ...],
) -> tuple[FloatArray, dict[str, int]]:
    """Return a metric's scores on the judged grid, and the counts of unmatched systems."""
    values = np.full((len(systems), len(items)), np.nan)
    if matrix is None:
        return values, {}
    labels = matrix.labels
    check_numbering_base(labels, items, f"segments that {metric} scored")
    row, column = _index_by_name(matrix.systems), _index_by_name(labels)
    matched_rows = [(n, row[s]) for n, s in enumerate(systems) if s in row]
    matched_columns = [(n, column[i]) for n, i in enumerate(items) if i in column]
    if items and not (matched_rows and matched_columns):
        scored, judged_names = (matrix.systems, systems) if not matched_rows else (labels, items)
        raise DataError(
            f"{name}: none of the {'segments' if matched_rows else 'systems'} scored by {metric} "
            f"({_first_names(scored)}) has human judgments ({_first_names(judged_names)})"
        )
    if matched_rows and matched_columns:
        to_row, from_row = np.array(matched_rows).T
        to_column, from_column = np.array(matched_columns).T
        values[np.ix_(to_row, to_column)] = matrix.values[np.ix_(from_row, from_column)]
    return values, {UNJUDGED_SYSTEM: len(set(matrix.systems) - set(systems))}


def _count_exclusions(
    counts: Mapping[str, Mapping[str, int]], unscored: Mapping[str, tuple[str, ...]]
) -> dict[str, dict[str, int]]:
    """Add the number of judged systems without a score to the counts of each metric; omit zeros."""
    by_metric = {
        metric: {**counts.get(metric, {}), NO_SYSTEM_SCORE: len(names)}
        for metric, names in unscored.items()
    }
    nonzero = {m: {why: n for why, n in own.items() if n} for m, own in by_metric.items()}
    return {metric: own for metric, own in nonzero.items() if own}


def _to_vector(scores: Mapping[str, float], systems: tuple[str, ...]) -> FloatArray:
    return np.array([scores.get(system, np.nan) for system in systems], dtype=np.float64)


def _index_by_name(names: Sequence[str]) -> dict[str, int]:
    repeated = [n for n, count in Counter(names).items() if count > 1]
    if repeated:
        raise DataError(f"{repeated[0]!r} occurs {names.count(repeated[0])} times: expected once")
    return {name: n for n, name in enumerate(names)}


def _first_names(names: Sequence[str]) -> str:
    return ", ".join(names[:3]) + (", ..." if len(names) > 3 else "")
