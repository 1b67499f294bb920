"""Turn pairwise comparisons into system scores.

All statistics are computed from two tables, the wins and ties between each pair of systems, so the
order of the comparisons does not matter.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Self

import numpy as np

from tertium.core.arrays import BoolArray, FloatArray, IntArray, divide, nan_mean
from tertium.data.rankings import RankingSet


@dataclass(frozen=True, kw_only=True, eq=False)
class ComparisonIndex:
    """Human comparisons as indices of systems and items; verdicts as in `Preference`."""

    item: IntArray  # (comparisons,)
    left: IntArray
    right: IntArray
    verdicts: FloatArray

    @classmethod
    def of(cls, rankings: RankingSet) -> Self:
        left, right = rankings.left, rankings.right
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
        """Return the expected wins of each system, (systems,); see the function of this name."""
        wins, _ = self.counts(systems)
        return nan_mean(divide(wins, wins + wins.T))


def win_ratio(
    rankings: RankingSet, ties: Literal["excluded", "won", "half"] = "excluded"
) -> FloatArray:
    """Return the proportion of its comparisons that each system wins, (systems,).

    `excluded`: wins / (wins + losses), official in WMT12. `won`: (wins + ties) / all, "better than
    or equal to others", official until WMT11. `half`: a tie is half a win. NaN for a system without
    comparisons.
    """
    wins, tied = ComparisonIndex.of(rankings).counts(len(rankings.systems))
    won, lost, even = wins.sum(axis=1), wins.sum(axis=0), tied.sum(axis=1)
    credit = {"excluded": 0.0, "won": 1.0, "half": 0.5}[ties]
    played = won + lost + (even if ties != "excluded" else 0.0)
    return divide(won + credit * even, played)


def expected_wins(rankings: RankingSet) -> FloatArray:
    """Return the probability to beat a random opponent, without ties, (systems,).

    mean over j of wins(i, j) / (wins(i, j) + wins(j, i)) (Koehn 2012; official in WMT13).
    """
    return ComparisonIndex.of(rankings).expected_wins(len(rankings.systems))
