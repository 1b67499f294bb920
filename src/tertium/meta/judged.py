"""A judged set: people and metrics on the same cells, systems x segments.

Metrics are matched to the judged systems x segments by the names of systems and items, never by
position alone; what has no counterpart is counted by reason, and a metric that matches nothing is
an error.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from tertium.arrays import BoolArray, FloatArray, mean_known
from tertium.data.items import check_counting
from tertium.data.rankings import RankingSet
from tertium.data.win_rates import ComparisonIndex
from tertium.errors import DataError, LengthError, UnknownNameError
from tertium.meta.agreement import judged_columns
from tertium.scores import ScoreMatrix

UNJUDGED_SYSTEM = "scored system that nobody judged"
NO_SYSTEM_SCORE = "judged system without a metric score"


@dataclass(frozen=True, kw_only=True, eq=False)
class JudgedSet:
    """People and metrics on one language pair of one test set.

    `human` holds segment scores, `human_systems` scores of whole systems; `scores` and
    `system_scores` those of the metrics; all NaN where there is none. `comparisons` are there where
    people compared translations instead of scoring them, and `by_wins` says that the scores of
    systems came of them: their expected wins. `left_out` counts, for each metric, what did not
    match.
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
    by_wins: bool = field(default=False, repr=False)
    left_out: Mapping[str, Mapping[str, int]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        cells = (len(self.systems), len(self.items))
        shapes = {
            "human scores": (self.human.shape, cells),
            "metric scores": (self.scores.shape, (len(self.metrics), *cells)),
            "human system scores": (self.human_systems.shape, cells[:1]),
            "metric system scores": (self.system_scores.shape, (len(self.metrics), *cells[:1])),
        }
        for what, (found, wanted) in shapes.items():
            if found != wanted:
                raise LengthError(f"{self.name}: {what} are {found}, expected {wanted}")

    def drop_systems(self, systems: Sequence[str]) -> JudgedSet:
        """As if people had not judged some systems; a name that no system has is an error."""
        dropped = np.isin(self.systems, list(systems))
        if len(set(systems)) > dropped.sum():
            unknown = next(name for name in systems if name not in self.systems)
            raise UnknownNameError(f"system of {self.name}", unknown, self.systems)
        people, compared = self.human_systems, self.comparisons
        if compared is not None:
            compared = compared.select(~(dropped[compared.left] | dropped[compared.right]))
            if self.by_wins:
                people = compared.expected_wins(len(self.systems))
        return replace(
            self,
            human=np.where(dropped[:, None], np.nan, self.human),
            human_systems=np.where(dropped, np.nan, people),
            comparisons=compared,
        )

    def with_metrics(self, metrics: tuple[str, ...]) -> JudgedSet:
        """The set with these metrics in this order, its own among them; NaN where it lacks one."""
        if self.metrics == metrics:
            return self
        places = [metrics.index(metric) for metric in self.metrics]
        scores = np.full((len(metrics), *self.human.shape), np.nan)
        totals = np.full((len(metrics), len(self.systems)), np.nan)
        scores[places], totals[places] = self.scores, self.system_scores
        return replace(self, metrics=metrics, scores=scores, system_scores=totals)

    def system_columns(self) -> tuple[FloatArray, FloatArray]:
        """The scores of whole systems as one row, (1, systems), and (metrics, 1, systems)."""
        return judged_columns(self.name, self.human_systems[None], self.system_scores[:, None])

    def keep_items(self, kept: BoolArray, name: str) -> JudgedSet:
        """Some of the items under another name; scores of systems are means over these.

        Where people compared, the score of a system is its expected wins.
        """
        scores, compared = self.scores[:, :, kept], self.comparisons
        people = self.human[:, kept]
        totals = mean_known(people)
        if compared is not None:
            chosen = compared.select(kept[compared.item])
            compared = replace(chosen, item=(np.cumsum(kept) - 1)[chosen.item])
            totals = compared.expected_wins(len(self.systems))
        return replace(
            self,
            name=name,
            items=tuple(item for item, keep in zip(self.items, kept, strict=True) if keep),
            human=people,
            scores=scores,
            human_systems=totals,
            system_scores=mean_known(scores),
            comparisons=compared,
            by_wins=compared is not None,
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
    ) -> JudgedSet:
        """Put metrics beside what people said.

        People give `human` segment scores, `comparisons`, or only `human_systems`. System scores
        that are not given are means of segment scores, or expected wins where people compared. A
        metric without `items` has one score a line: its items are 1, 2, ...

        >>> people = ScoreMatrix("da", ("A", "B"), np.array([[80.0, 90], [40, 50]]), ("1", "2"))
        >>> chrf = ScoreMatrix("chrf", ("B", "A"), np.array([[0.2, 0.1], [0.7, 0.8]]))
        >>> JudgedSet.align("de-en", [chrf], human=people).scores[0]
        array([[0.7, 0.8],
               [0.2, 0.1]])
        """
        systems, items = _grid(name, human, comparisons, human_systems)
        if human is None:
            values = np.full((len(systems), len(items)), np.nan)
            human = ScoreMatrix("human", systems, values, items)
        given = dict(system_scores or {})
        by_name = _by_name(name, metrics)
        names = list(dict.fromkeys([*by_name, *given]))
        rows = [_fit(name, by_name.get(m), m, systems, items) for m in names]
        # means over all segments that a metric scored, judged or not
        means = {
            m.name: dict(zip(m.systems, m.system_scores.tolist(), strict=True)) for m in metrics
        }
        totals = [_vector({**means, **given}[m], systems) for m in names]
        people, compared = human.system_scores, None
        if comparisons is not None:
            compared = ComparisonIndex.of(comparisons)
            people = compared.expected_wins(len(systems))
        if human_systems:
            people = _vector(human_systems, systems)
        shape = (len(names), len(systems))
        return cls(
            name=name,
            systems=systems,
            items=items,
            metrics=tuple(names),
            human=human.values,
            scores=np.array([r for r, _ in rows]).reshape((*shape, len(items))),
            human_systems=people,
            system_scores=np.array(totals).reshape(shape),
            comparisons=compared,
            by_wins=compared is not None and not human_systems,
            left_out={m: counts for m, (_, counts) in zip(names, rows, strict=True) if counts},
        )


def _grid(
    name: str,
    human: ScoreMatrix | None,
    comparisons: RankingSet | None,
    human_systems: Mapping[str, float] | None,
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The systems and items that people judged, in the order of what they gave."""
    if human is not None and comparisons is not None:
        raise DataError(f"{name}: give human scores or human comparisons, not both")
    if human is not None:
        return human.systems, human.labels
    if comparisons is not None:
        return comparisons.systems, comparisons.items
    if human_systems:
        return tuple(human_systems), ()
    raise DataError(f"{name}: there are no human judgments")


def _by_name(name: str, metrics: Sequence[ScoreMatrix]) -> dict[str, ScoreMatrix]:
    counts = Counter(metric.name for metric in metrics)
    if repeated := [metric for metric, count in counts.items() if count > 1]:
        raise DataError(f"{name}: more than one metric is named {', '.join(repeated)}")
    return {metric.name: metric for metric in metrics}


def _fit(
    name: str,
    matrix: ScoreMatrix | None,
    metric: str,
    systems: tuple[str, ...],
    items: tuple[str, ...],
) -> tuple[FloatArray, dict[str, int]]:
    """A metric's scores on the judged grid, and what did not match."""
    values = np.full((len(systems), len(items)), np.nan)
    if matrix is None:
        return values, {}
    labels = matrix.labels
    check_counting(labels, items, f"segments that {metric} scored")
    row, column = _places(matrix.systems), _places(labels)
    here = [(n, row[s]) for n, s in enumerate(systems) if s in row]
    there = [(n, column[i]) for n, i in enumerate(items) if i in column]
    if items and not (here and there):
        ours, theirs = (matrix.systems, systems) if not here else (labels, items)
        raise DataError(
            f"{name}: none of the {'systems' if not here else 'segments'} that {metric} scored "
            f"({_first_names(ours)}) is among those judged ({_first_names(theirs)})"
        )
    if here and there:
        (to_row, from_row), (to_column, from_column) = np.array(here).T, np.array(there).T
        values[np.ix_(to_row, to_column)] = matrix.values[np.ix_(from_row, from_column)]
    counts = {
        UNJUDGED_SYSTEM: len(set(matrix.systems) - set(systems)),
        NO_SYSTEM_SCORE: len(set(systems) - set(matrix.systems)),
    }
    return values, {reason: count for reason, count in counts.items() if count}


def _vector(scores: Mapping[str, float], systems: tuple[str, ...]) -> FloatArray:
    return np.array([scores.get(system, np.nan) for system in systems], dtype=np.float64)


def _places(names: Sequence[str]) -> dict[str, int]:
    repeated = [n for n, count in Counter(names).items() if count > 1]
    if repeated:
        raise DataError(f"{repeated[0]!r} is there {names.count(repeated[0])} times, not once")
    return {name: n for n, name in enumerate(names)}


def _first_names(names: Sequence[str]) -> str:
    return ", ".join(names[:3]) + (", ..." if len(names) > 3 else "")
