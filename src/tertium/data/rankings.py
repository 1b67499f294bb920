"""Human comparisons of two translations, stored as index arrays over shared segments.

Every translation is one `Segment`. A comparison is a pair of row numbers with a verdict, so a
statistic is one vector expression, for example of `scores[left] - scores[right]` and `verdicts`.

System scores are computed from two tables, the wins and ties between each pair of systems, so the
order of the comparisons does not matter.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple, Self

import numpy as np

from tertium.core.arrays import BoolArray, FloatArray, IntArray, divide, nan_mean
from tertium.core.errors import DataError, UsageError
from tertium.core.scores import ScoreMatrix
from tertium.core.segment import Preference, Segment
from tertium.data.human_data import NO_SEGMENT, UNKNOWN_SYSTEM, HumanData, Translation, reasons

SAME_SYSTEM = "a system compared with itself"

ItemTexts = Mapping[str, Mapping[str, Segment]]  # by item and system


class PairwiseJudgment(NamedTuple):
    """One human comparison by name; `verdict` as in `Preference`."""

    item: str
    left: str
    right: str
    verdict: float


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class RankingSet(HumanData):
    """Comparisons of one language pair, and the translations that were compared.

    `left` and `right` are rows of `segments`. `item_indices` and `system_indices` give the item and
    the system of each segment. `verdicts` are 1 (left is better), 0 (right) or 0.5 (tie).
    Repeated comparisons are kept, as WMT counts them. `documents` are those of the items, if known.
    """

    segments: tuple[Segment, ...]
    items: tuple[str, ...]
    systems: tuple[str, ...]
    item_indices: IntArray  # (segments,)
    system_indices: IntArray  # (segments,)
    left: IntArray  # (comparisons,)
    right: IntArray  # (comparisons,)
    verdicts: FloatArray  # (comparisons,)
    documents: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not len(self.verdicts):
            raise DataError(f"{self.name}: no usable comparison{reasons(self.excluded_counts)}")
        check_verdicts(self.verdicts, self.name)

    def __len__(self) -> int:
        return len(self.verdicts)

    def __iter__(self) -> Iterator[Preference]:
        """Iterate over the comparisons as `Preference` objects with shared segments."""
        items = [self.items[n] for n in self.item_indices]
        systems = [self.systems[n] for n in self.system_indices]
        columns = (self.left, self.right, self.verdicts.tolist())
        for left, right, verdict in zip(*columns, strict=True):
            pair = (self.segments[left], self.segments[right])
            names = (items[left], systems[left], systems[right])
            yield Preference(*pair, verdict, *names, lp=self.lp)

    @property
    def ties(self) -> int:
        """The number of ties."""
        return int((self.verdicts == 0.5).sum())

    @property
    def compared_mask(self) -> BoolArray:
        """Which segments occur in a comparison, (segments,)."""
        mask = np.zeros(len(self.segments), dtype=bool)
        mask[self.left] = mask[self.right] = True
        return mask

    def select(self, rows: BoolArray | IntArray) -> RankingSet:
        """Return the comparisons of a mask or indices, over the same segments."""
        return replace(
            self, left=self.left[rows], right=self.right[rows], verdicts=self.verdicts[rows]
        )

    def exclude(self, reason: str, rows: BoolArray) -> RankingSet:
        """Return the set without some comparisons, which are counted with a reason."""
        counts = Counter(self.excluded_counts)
        counts[reason] += int(rows.sum())
        return replace(self, excluded_counts=dict(+counts)).select(~rows)

    def without_ties(self) -> RankingSet:
        """Return the comparisons that are not ties; ties are added to `excluded_counts`."""
        return self.exclude("tie", self.verdicts == 0.5)

    def rows(self, level: str = "segment") -> list[Translation]:
        """Return all translations at system level, otherwise those that were compared."""
        rows = np.flatnonzero(self.compared_mask | (level == "system"))
        systems = [self.systems[n] for n in self.system_indices[rows]]
        items = [self.items[n] for n in self.item_indices[rows]]
        return list(zip(systems, items, (self.segments[n] for n in rows), strict=True))

    def labels(self) -> Mapping[str, Mapping[str, str]]:
        return {"document": self.documents} if self.documents else {}

    def segment_scores(self) -> ScoreMatrix:
        """Return the proportion of comparisons that each translation won; a tie is half a win."""
        won, counted = np.zeros((2, len(self.segments)))
        for side, verdicts in ((self.left, self.verdicts), (self.right, 1 - self.verdicts)):
            np.add.at(won, side, verdicts)
            np.add.at(counted, side, 1.0)
        return self.to_score_matrix(divide(won, counted), "human", "system")


def check_verdicts(verdicts: FloatArray, label: str) -> None:
    """Raise an error for numbers that are not verdicts as in `Preference`."""
    invalid = verdicts[~np.isin(verdicts, (0.0, 0.5, 1.0))]
    if len(invalid):
        raise DataError(
            f"{label}: {len(invalid)} verdicts are not 1 (left is better), 0 (right) or "
            f"0.5 (a tie); the first is {invalid[0]:g}"
        )


def build_ranking_set(
    comparisons: Sequence[PairwiseJudgment],
    texts: ItemTexts | None = None,
    *,
    name: str,
    lp: str = "",
    excluded_counts: Mapping[str, int] | None = None,
    documents: Mapping[str, str] | None = None,
) -> RankingSet:
    """Build a set from comparisons by name.

    With `texts`, every output of every item becomes a segment; comparisons of unknown items or
    systems are excluded and counted. Without `texts`, the segments are empty, which is sufficient
    for system scores.
    """
    if texts is None:
        compared = [c for c in comparisons if c.left != c.right]
        cells = {(c.item, side): Segment("") for c in compared for side in (c.left, c.right)}
    else:
        cells = {(item, s): segment for item, own in texts.items() for s, segment in own.items()}
    rows = {cell: row for row, cell in enumerate(cells)}
    items = _number_names(item for item, _ in cells)
    systems = _number_names(system for _, system in cells)
    counts: Counter[str] = Counter(excluded_counts or {})
    index: list[tuple[int, int]] = []
    verdicts: list[float] = []
    for item, left, right, verdict in comparisons:
        a = rows.get((item, left))
        b = rows.get((item, right))
        if left == right:
            counts[SAME_SYSTEM] += 1
        elif a is None or b is None:
            counts[UNKNOWN_SYSTEM if item in items else NO_SEGMENT] += 1
        else:
            index.append((a, b))
            verdicts.append(verdict)
    left_rows, right_rows = np.array(index, dtype=np.int64).reshape(-1, 2).T
    return RankingSet(
        name=name,
        lp=lp,
        segments=tuple(cells.values()),
        items=tuple(items),
        systems=tuple(systems),
        item_indices=np.array([items[item] for item, _ in cells], np.int64),
        system_indices=np.array([systems[system] for _, system in cells], np.int64),
        left=left_rows,
        right=right_rows,
        verdicts=np.array(verdicts),
        excluded_counts=dict(counts),
        documents=documents or {},
    )


def _number_names(names: Iterable[str]) -> dict[str, int]:
    return {name: number for number, name in enumerate(dict.fromkeys(names))}


def sample_comparisons(
    sets: Sequence[RankingSet], count: int, generator: np.random.Generator
) -> list[RankingSet]:
    """Sample `count` comparisons from all sets together; sets without any are omitted."""
    ends = np.cumsum([len(rankings) for rankings in sets])
    if not 0 < count <= ends[-1]:
        raise UsageError(f"cannot sample {count} of {ends[-1]} comparisons")
    sampled = np.sort(generator.choice(int(ends[-1]), count, replace=False))
    parts = np.split(sampled, np.searchsorted(sampled, ends[:-1]))
    starts = (0, *ends[:-1])
    return [
        rankings.select(rows - start)
        for rankings, rows, start in zip(sets, parts, starts, strict=True)
        if len(rows)
    ]


@dataclass(frozen=True, kw_only=True, eq=False)
class ComparisonIndex:
    """Human comparisons as indices of systems and items; verdicts as in `Preference`."""

    item: IntArray  # (comparisons,)
    left: IntArray
    right: IntArray
    verdicts: FloatArray

    @classmethod
    def of(cls, rankings: RankingSet) -> Self:
        left = rankings.left
        right = rankings.right
        systems = rankings.system_indices
        item = rankings.item_indices[left]
        return cls(item=item, left=systems[left], right=systems[right], verdicts=rankings.verdicts)

    def __len__(self) -> int:
        return len(self.verdicts)

    def select(self, rows: BoolArray) -> ComparisonIndex:
        """Return the comparisons of a mask, (comparisons,)."""
        return ComparisonIndex(**{name: values[rows] for name, values in vars(self).items()})

    def counts(self, systems: int) -> tuple[FloatArray, FloatArray]:
        """Return wins and ties, both (systems, systems): `wins[i, j]` counts i preferred to j."""
        wins, ties = np.zeros((2, systems, systems))
        np.add.at(wins, (self.left, self.right), self.verdicts == 1.0)
        np.add.at(wins, (self.right, self.left), self.verdicts == 0.0)
        np.add.at(ties, (self.left, self.right), self.verdicts == 0.5)
        return wins, ties + ties.T

    def expected_wins(self, systems: int) -> FloatArray:
        """Return the probability to beat a random opponent, without ties, (systems,).

        mean over j of wins(i, j) / (wins(i, j) + wins(j, i)) (Koehn 2012; official in WMT13).
        """
        wins, _ = self.counts(systems)
        return nan_mean(divide(wins, wins + wins.T))
