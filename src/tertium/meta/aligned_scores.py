"""Human and metric scores aligned on the same cells, systems x segments.

Metric scores are matched to the judged cells by the names of systems and items, never by position
alone. Unmatched systems are counted by reason; a metric that matches nothing is an error.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import compress

import numpy as np

from tertium.core.arrays import BoolArray, FloatArray, nan_mean
from tertium.core.errors import DataError, UnknownNameError
from tertium.core.scores import ScoreMatrix
from tertium.data.item_names import check_numbering_base
from tertium.data.rankings import ComparisonIndex, RankingSet
from tertium.meta.agreement import select_judged_columns

UNJUDGED_SYSTEM = "scored system without human judgments"
NO_SYSTEM_SCORE = "judged system without a metric score"


@dataclass(frozen=True, kw_only=True, eq=False)
class AlignedScores:
    """Human and metric scores of one language pair of one test set.

    `human` holds segment scores and `human_systems` system scores; `scores` and `system_scores` are
    those of the metrics. Missing scores are NaN. `comparisons` is set if humans compared
    translations instead of scoring them; `human_systems_from_wins` is true if their system scores
    are expected wins. For each metric, `unjudged_counts` is the number of systems without human
    judgments, and `unscored_systems` are the judged systems without a score.
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
    unjudged_counts: Mapping[str, int] = field(default_factory=dict)
    unscored_systems: Mapping[str, tuple[str, ...]] = field(default_factory=dict, repr=False)

    @property
    def excluded_counts(self) -> dict[str, dict[str, int]]:
        """The number of unmatched systems of each metric by reason; without zeros."""
        excluded = {}
        for metric, names in self.unscored_systems.items():
            counts = {UNJUDGED_SYSTEM: self.unjudged_counts.get(metric, 0)}
            counts[NO_SYSTEM_SCORE] = len(names)
            if any(counts.values()):
                excluded[metric] = {reason: count for reason, count in counts.items() if count}
        return excluded

    def drop_systems(self, systems: Sequence[str]) -> AlignedScores:
        """Remove the human judgments of some systems; an unknown name is an error."""
        if unknown := [name for name in systems if name not in self.systems]:
            raise UnknownNameError(f"system of {self.name}", unknown[0], self.systems)
        dropped = np.isin(self.systems, list(systems))
        human_systems = self.human_systems
        compared = self.comparisons
        if compared is not None:
            compared = compared.select(~(dropped[compared.left] | dropped[compared.right]))
            if self.human_systems_from_wins:
                human_systems = compared.expected_wins(len(self.systems))
        unscored_systems = {}
        for metric, names in self.unscored_systems.items():
            unscored_systems[metric] = tuple(name for name in names if name not in systems)
        return replace(
            self,
            unscored_systems=unscored_systems,
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
        human = self.human_systems[None]
        scores = self.system_scores[:, None]
        return select_judged_columns(self.name, human, scores)

    def keep_items(self, item_mask: BoolArray, name: str) -> AlignedScores:
        """Keep some of the items, under another name; system scores are computed again."""
        scores = self.scores[:, :, item_mask]
        compared = self.comparisons
        human = self.human[:, item_mask]
        human_systems = nan_mean(human)
        if compared is not None:
            chosen = compared.select(item_mask[compared.item])
            compared = replace(chosen, item=(np.cumsum(item_mask) - 1)[chosen.item])
            human_systems = compared.expected_wins(len(self.systems))
        return replace(
            self,
            name=name,
            items=tuple(compress(self.items, item_mask.tolist())),
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
        if human is None:
            if comparisons is None and not human_systems:
                raise DataError(f"{name}: no human judgments: give scores or comparisons")
            systems = tuple(human_systems or ()) if comparisons is None else comparisons.systems
            items = () if comparisons is None else comparisons.items
            human = ScoreMatrix(
                "human", systems, np.full((len(systems), len(items)), np.nan), items
            )
        systems = human.systems
        items = human.labels
        scored_systems: dict[str, Collection[str]] = {}
        totals: dict[str, Mapping[str, float]] = {}
        for metric in metrics:  # means over all segments that the metric scored, judged or not
            scored_systems[metric.name] = metric.systems
            totals[metric.name] = dict(zip(metric.systems, metric.system_scores, strict=True))
        if len(totals) < len(metrics):
            raise DataError(f"{name}: two metrics have one name: {', '.join(totals)}")
        for system_metric, own in (system_scores or {}).items():
            scored_systems.setdefault(system_metric, own)
            totals[system_metric] = own
        scores = np.full((len(totals), len(systems), len(items)), np.nan)
        for place, metric in enumerate(metrics):
            scores[place] = _fit_to_grid(name, metric, systems, items)
        human_totals = human.system_scores
        compared = None
        if comparisons is not None:
            compared = ComparisonIndex.of(comparisons)
            human_totals = compared.expected_wins(len(systems))
        if human_systems:
            human_totals = _to_vector(human_systems, systems)
        totals_by_system = np.array([_to_vector(own, systems) for own in totals.values()])
        unscored_systems = {}
        for scored_metric, scored in scored_systems.items():
            unscored_systems[scored_metric] = tuple(s for s in systems if s not in scored)
        return cls(
            name=name,
            systems=systems,
            items=items,
            metrics=tuple(totals),
            human=human.values,
            scores=scores,
            human_systems=human_totals,
            system_scores=totals_by_system.reshape(len(totals), len(systems)),
            comparisons=compared,
            human_systems_from_wins=compared is not None and not human_systems,
            unjudged_counts={m.name: len({*m.systems} - {*systems}) for m in metrics},
            unscored_systems=unscored_systems,
        )


def _fit_to_grid(
    name: str, matrix: ScoreMatrix, systems: Sequence[str], items: Sequence[str]
) -> FloatArray:
    """Return a metric's scores on the judged grid, (systems, items)."""
    check_numbering_base(matrix.labels, items, f"segments that {matrix.name} scored")
    sides = (("systems", matrix.systems, systems), ("segments", matrix.labels, items))
    places = []
    for kind, scored, expected in sides:
        place_of = {label: place for place, label in enumerate(scored)}
        if len(place_of) < len(scored):
            raise DataError(f"{name}: {matrix.name} scores some of its {kind} more than once")
        if items and place_of.keys().isdisjoint(expected):
            raise DataError(
                f"{name}: none of the {kind} scored by {matrix.name} ({_first_names(scored)}) has "
                f"human judgments ({_first_names(expected)})"
            )
        places.append([place_of.get(label, -1) for label in expected])
    # a row and a column of NaN at -1, for what is missing
    padded = np.pad(matrix.values, (0, 1), constant_values=np.nan)
    values: FloatArray = padded[np.ix_(*places)]
    return values


def _to_vector(scores: Mapping[str, float], systems: tuple[str, ...]) -> FloatArray:
    return np.array([scores.get(system, np.nan) for system in systems], dtype=np.float64)


def _first_names(names: Sequence[str]) -> str:
    return ", ".join(names[:3]) + (", ..." if len(names) > 3 else "")
