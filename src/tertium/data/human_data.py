"""The interface of all human data: scores, comparisons and score tables.

`excluded_counts` counts by reason every row that was read but not used.
"""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from tertium.core.arrays import FloatArray, divide
from tertium.core.errors import DataError, LengthError, TertiumError
from tertium.core.scores import ScoreMatrix
from tertium.core.segment import Segment
from tertium.core.spans import ErrorAnnotations

logger = logging.getLogger(__name__)

UNREADABLE_ROW = "unreadable row"
QUALITY_CONTROL = "quality-control row"
Texts = dict[tuple[str, str], Segment]  # by system and item
Translation = tuple[str, str, Segment]  # system, item, segment


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class HumanData(ABC):
    """Human judgments of translations in one of three forms.

    `JudgmentSet` contains scores of single translations, `RankingSet` pairwise comparisons, and
    `HumanScoreTable` a table of scores. `excluded_counts` counts unused rows by reason. `files` are
    files of metric scores that were published with the data. `level` is "segment" or "system": at
    system level, a judgment of two systems with the same text counts for both.
    """

    name: str
    lp: str = ""
    excluded_counts: Mapping[str, int] = field(default_factory=dict)
    files: tuple[Path, ...] = ()

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.title}>"

    @property
    def title(self) -> str:
        """The name with the language pair."""
        return f"{self.name} {self.lp}".strip()

    @abstractmethod
    def rows(self, level: str = "segment") -> list[Translation]:
        """Return system, item and segment of each translation that was judged at a level."""

    @property
    def has_texts(self) -> bool:
        """Whether the translations are known, so that a metric can score them."""
        return any(segment.hypothesis for _, _, segment in self.rows())

    def texts(self) -> Texts:
        """Return the judged translations by system and item, as far as their texts are known."""
        rows = self.rows("system")
        return {(system, item): segment for system, item, segment in rows if segment.hypothesis}

    def translations(self, level: str = "segment") -> list[tuple[str, Segment]]:
        """Return (system, segment) for each translation to score; empty without texts."""
        rows = [(system, segment) for system, _, segment in self.rows(level)]
        return rows if any(segment.hypothesis for _, segment in rows) else []

    def split_system(self, system: str) -> tuple[str, ...]:
        """Return the systems that a judgment counts for at system level."""
        return (system,)

    def to_score_matrix(self, values: FloatArray, name: str, level: str = "segment") -> ScoreMatrix:
        """Arrange one value for each row as systems x items; values of a cell are averaged."""
        rows = self.rows(level)
        if len(values) != len(rows):
            raise LengthError(f"{self.name}: {len(values)} values for {len(rows)} translations")
        split = self.split_system if level == "system" else lambda name: (name,)
        grid = rows if level == "system" else self.rows("system")  # with unused systems
        systems = {part: 0 for name, _, _ in grid for part in split(name)}
        items = {item: 0 for _, item, _ in grid}
        for names in (systems, items):
            names.update({name: n for n, name in enumerate(names)})
        cells = [
            (n, systems[part], items[item])
            for n, (name, item, _) in enumerate(rows)
            for part in split(name)
        ]
        row, *where = np.array(cells, dtype=np.int64).reshape(-1, 3).T
        totals, counts = np.zeros((2, len(systems), len(items)))
        np.add.at(totals, tuple(where), np.asarray(values, np.float64)[row])
        np.add.at(counts, tuple(where), 1.0)
        return ScoreMatrix(name, tuple(systems), divide(totals, counts), tuple(items))

    def labels(self) -> Mapping[str, Mapping[str, str]]:
        """Return other labels of the items, such as their domain, by column and item."""
        return {}

    def metric_scores(self) -> Mapping[str, FloatArray]:
        """Return published scores of metrics by name: one value for each judgment, or NaN."""
        return {}

    def matrix(self, level: str = "segment") -> ScoreMatrix | None:
        """Return the human scores of segments, or None without such scores."""
        return None

    def system_scores(self) -> Mapping[str, float]:
        """Return the human scores of systems; empty if they have to be computed from segments."""
        return {}

    def segment_scores(self) -> ScoreMatrix:
        """Return a score for each judged translation, for every form of human data."""
        matrix = self.matrix()
        if matrix is None:
            raise DataError(
                f"{self.name}: only system scores; a report needs human scores of segments"
            )
        return matrix

    def error_annotations(self) -> Mapping[tuple[str, str], ErrorAnnotations]:
        """Return the errors marked by human raters, by system and item."""
        return {}


class UnreadableRows:
    """Counts rows of published data that cannot be read, and keeps the first error.

    Published files contain a few such rows. If more than half of the rows are unreadable, the
    layout is not the expected one, and `report` raises the first error.
    """

    def __init__(self) -> None:
        self.count = 0
        self.first: TertiumError | None = None

    def add(self, error: TertiumError) -> None:
        self.count += 1
        self.first = self.first or error

    def report(self, name: str, rows: int) -> None:
        """Warn about unreadable rows among `rows`, or raise the first error."""
        if self.first is None:
            return
        if 2 * self.count > rows:
            raise DataError(str(self.first)) from None
        logger.warning(
            "warning: %s: unreadable rows left out: %d of %d; first: %s",
            name, self.count, rows, self.first,
        )  # fmt: skip


def reasons(excluded_counts: Mapping[str, int]) -> str:
    """Format the excluded counts for the end of an error message.

    >>> reasons({"no score": 2})
    ' (2 excluded; no score: 2)'
    """
    if not excluded_counts:
        return ""
    counts = ", ".join(f"{reason}: {count}" for reason, count in excluded_counts.items())
    return f" ({sum(excluded_counts.values())} excluded; {counts})"
