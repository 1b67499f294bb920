"""What people said of translations, whatever its form.

A set never forgets what it did not use: `left_out` counts every row that was read and dropped, by
reason.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tertium.arrays import FloatArray
from tertium.errors import DataError
from tertium.scores import ScoreMatrix
from tertium.segment import Segment
from tertium.spans import Markings

Texts = dict[tuple[str, str], Segment]  # by system and item


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Evidence(ABC):
    """What people said of translations, in one of three forms that answer the same questions.

    They scored them one by one (`JudgmentSet`), compared them (`RankingSet`), or are known by a
    table of scores (`ScoreTable`). `left_out` counts by reason what was read in vain, `files` are
    metrics' scores that lie beside. `level` is "segment" or "system": at the latter, a judgment
    of two systems that gave the same text counts for both of them.
    """

    name: str
    lp: str = ""
    left_out: Mapping[str, int] = field(default_factory=dict)
    files: tuple[Path, ...] = ()

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.title}>"

    @property
    def title(self) -> str:
        """The set with its language pair."""
        return f"{self.name} {self.lp}".strip()

    @abstractmethod
    def texts(self) -> Texts:
        """The judged translations, as far as they are known."""

    @abstractmethod
    def translations(self, level: str = "segment") -> list[tuple[str, Segment]]:
        """System and translation of whatever a metric is to score; none where texts are missing."""

    @abstractmethod
    def arrange(self, values: FloatArray, name: str, level: str = "segment") -> ScoreMatrix:
        """One value for each of `translations` as systems x items."""

    def labels(self) -> Mapping[str, Mapping[str, str]]:
        """What else is known of items, such as their domain, by column and item."""
        return {}

    def matrix(self, level: str = "segment") -> ScoreMatrix | None:
        """The scores people gave to segments; None where they gave none."""
        return None

    def system_scores(self) -> Mapping[str, float]:
        """The scores people gave to whole systems; none where they are to be had from segments."""
        return {}

    def segment_scores(self) -> ScoreMatrix:
        """A number for each judged translation, however people judged."""
        matrix = self.matrix()
        if matrix is None:
            raise DataError(
                f"{self.name}: scores of whole systems only; a report needs those of segments"
            )
        return matrix

    def markings(self) -> Mapping[tuple[str, str], Markings]:
        """The errors people marked, by system and item; none where nobody looked for any."""
        return {}


def reasons(left_out: Mapping[str, int]) -> str:
    """What was left out and why, for the end of an error.

    >>> reasons({"no score": 2})
    ' (2 left out; no score: 2)'
    """
    if not left_out:
        return ""
    counts = ", ".join(f"{reason}: {count}" for reason, count in left_out.items())
    return f" ({sum(left_out.values())} left out; {counts})"
