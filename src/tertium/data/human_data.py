"""The interface of all human data: scores of translations, comparisons, and scores of systems.

`excluded_counts` counts by reason every row that was read but not used.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from tertium.core.arrays import FloatArray, divide
from tertium.core.atomic import PathLike
from tertium.core.errors import DataError
from tertium.core.scores import ScoreMatrix
from tertium.core.segment import Segment
from tertium.core.spans import ErrorAnnotations
from tertium.data.record_files import default_name, read_records
from tertium.data.records import (
    SYSTEM_NAMES,
    get_text,
    lowercase_columns,
    read_language_pair,
    read_score,
)
from tertium.data.testset import TestSet
from tertium.data.text_files import language_pair_in_path

NO_SEGMENT = "no matching segment"
UNKNOWN_SYSTEM = "unknown system"

Translation = tuple[str, str, Segment]  # system, item, segment
Cell = tuple[str, str]  # system and item
Texts = dict[Cell, Segment]


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class HumanData:
    """Human judgments of one test set; this class itself has scores of systems only.

    `JudgmentSet` adds scores of single translations, and `RankingSet` pairwise comparisons.
    `system_scores` are published scores of systems. `testset` has the complete outputs of all
    systems, judged or not, if they are known. `excluded_counts` counts unused rows by reason.
    `files` are files of metric scores that were published with the data. `level` is "segment" or
    "system": at system level, a judgment of two systems with the same text counts for both.
    """

    name: str
    lp: str = ""
    excluded_counts: Mapping[str, int] = field(default_factory=dict)
    files: tuple[Path, ...] = ()
    testset: TestSet | None = None
    system_scores: Mapping[str, float] = field(default_factory=dict)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.title}>"

    @property
    def title(self) -> str:
        """The name with the language pair."""
        return f"{self.name} {self.lp}".strip()

    def rows(self, level: str = "segment") -> list[Translation]:
        """Return system, item and segment of each translation to score at a level.

        These are all outputs of a test set, because some metrics read complete outputs.
        """
        if self.testset is None:
            return []
        return [
            (system, str(number), segment)
            for system in self.testset.systems
            for number, segment in enumerate(self.testset.segments(system), start=1)
        ]

    @property
    def has_texts(self) -> bool:
        """Whether the translations are known, so that a metric can score them."""
        return bool(self.texts())

    def texts(self) -> Texts:
        """Return the judged translations by system and item, as far as their texts are known."""
        rows = self.rows("system")
        return {(system, item): segment for system, item, segment in rows if segment.hypothesis}

    def split_system(self, system: str) -> tuple[str, ...]:
        """Return the systems that a judgment counts for at system level."""
        return (system,)

    def to_score_matrix(self, values: FloatArray, name: str, level: str = "segment") -> ScoreMatrix:
        """Arrange one value for each row as systems x items; values of a cell are averaged."""
        rows = self.rows(level)
        is_split = level == "system"
        systems: dict[str, int] = {}
        items: dict[str, int] = {}
        for system, item, _ in rows if is_split else self.rows("system"):  # with unused systems
            for part in self.split_system(system) if is_split else (system,):
                systems.setdefault(part, len(systems))
            items.setdefault(item, len(items))
        totals, counts = np.zeros((2, len(systems), len(items)))
        for (system, item, _), value in zip(rows, values, strict=True):
            for part in self.split_system(system) if is_split else (system,):
                totals[systems[part], items[item]] += value
                counts[systems[part], items[item]] += 1
        return ScoreMatrix(name, tuple(systems), divide(totals, counts), tuple(items))

    def labels(self) -> Mapping[str, Mapping[str, str]]:
        """Return other labels of the items, such as their domain, by column and item."""
        if self.testset is None:
            return {}
        documents = {"document": self.testset.documents} if self.testset.documents else {}
        return {
            name: {str(number): label for number, label in enumerate(labels, start=1)}
            for name, labels in {**self.testset.columns, **documents}.items()
        }

    def metric_scores(self) -> Mapping[str, FloatArray]:
        """Return published scores of metrics by name: one value for each judgment, or NaN."""
        return {}

    def matrix(self, level: str = "segment") -> ScoreMatrix | None:
        """Return the human scores of segments, or None without such scores."""
        return None

    def segment_scores(self) -> ScoreMatrix:
        """Return a score for each judged translation, for every form of human data."""
        matrix = self.matrix()
        if matrix is None:
            raise DataError(
                f"{self.name}: only system scores; a report needs human scores of segments"
            )
        return matrix

    def error_annotations(self) -> Mapping[Cell, ErrorAnnotations]:
        """Return the errors marked by human raters, by system and item."""
        return {}


def reasons(excluded_counts: Mapping[str, int]) -> str:
    """Format the excluded counts for the end of an error message.

    >>> reasons({"no score": 2})
    ' (2 excluded; no score: 2)'
    """
    if not excluded_counts:
        return ""
    counts = ", ".join(f"{reason}: {count}" for reason, count in excluded_counts.items())
    return f" ({sum(excluded_counts.values())} excluded; {counts})"


def read_system_scores(path: PathLike) -> list[HumanData]:
    """Read scores of systems by language pair, from columns `system`, `score` and `lp`."""
    pairs: dict[str, dict[str, float]] = {}
    for where, record in read_records(path):
        row = lowercase_columns(record)
        system = get_text(row, SYSTEM_NAMES)
        score = read_score(row.get("score"), where)
        if not system:
            raise DataError(f"{where}: expected a system and its score, got {row}")
        scores = pairs.setdefault(read_language_pair(row) or language_pair_in_path(path), {})
        if system in scores:
            raise DataError(f"{where}: a second score of system {system!r}")
        scores[system] = score
    return [
        HumanData(
            name=default_name(path),
            lp=lp,
            system_scores={system: score for system, score in scores.items() if score == score},
        )
        for lp, scores in pairs.items()
    ]
