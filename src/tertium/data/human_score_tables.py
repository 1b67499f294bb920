"""Human scores as a table of systems and segments, with the system outputs if they are known."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from tertium.core.atomic import PathLike
from tertium.core.errors import DataError
from tertium.core.scores import ScoreMatrix
from tertium.core.spans import ErrorAnnotations
from tertium.data.human_data import HumanData, Translation
from tertium.data.record_files import default_name, read_records
from tertium.data.records import get_text, lowercase_columns, read_language_pair, read_score
from tertium.data.testset import TestSet
from tertium.data.text_files import language_pair_in_path


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class HumanScoreTable(HumanData):
    """Human scores, systems x segments or one column; `testset` has the outputs."""

    table: ScoreMatrix
    testset: TestSet | None = None
    read_annotations: Callable[[], Mapping[tuple[str, str], ErrorAnnotations]] = dict

    @classmethod
    def of_systems(
        cls,
        scores: Mapping[str, float],
        name: str,
        lp: str = "",
        excluded_counts: Mapping[str, int] | None = None,
    ) -> HumanScoreTable:
        """Create a table of one score for each system."""
        values = np.array([*scores.values()], dtype=np.float64)[:, None]
        table = ScoreMatrix("human", tuple(scores), values)
        return cls(name=name, lp=lp, table=table, excluded_counts=dict(excluded_counts or {}))

    def error_annotations(self) -> Mapping[tuple[str, str], ErrorAnnotations]:
        return self._annotations

    @cached_property
    def _annotations(self) -> Mapping[tuple[str, str], ErrorAnnotations]:
        return self.read_annotations()

    def matrix(self, level: str = "segment") -> ScoreMatrix | None:
        return self.table if self.table.values.shape[1] > 1 else None

    def system_scores(self) -> Mapping[str, float]:
        if self.matrix() is not None:
            return {}
        scores = zip(self.table.systems, self.table.values[:, 0].tolist(), strict=True)
        return {system: value for system, value in scores if value == value}

    def rows(self, level: str = "segment") -> list[Translation]:
        """Return all outputs, judged or not: some metrics read complete outputs."""
        if self.testset is None:
            return []
        return [
            (system, str(n), segment)
            for system in self.testset.systems
            for n, segment in enumerate(self.testset.segments(system), start=1)
        ]

    def labels(self) -> Mapping[str, Mapping[str, str]]:
        if self.testset is None:
            return {}
        documents = {"document": self.testset.documents} if self.testset.documents else {}
        return {
            name: {str(n): label for n, label in enumerate(labels, start=1)}
            for name, labels in {**self.testset.columns, **documents}.items()
        }


def read_system_scores(path: PathLike) -> list[HumanScoreTable]:
    """Read scores of systems by language pair, from columns `system`, `score` and `lp`."""
    pairs: dict[str, dict[str, float]] = {}
    rows = [(where, lowercase_columns(record)) for where, record in read_records(path)]
    has_scores = any("score" in row for _, row in rows)
    for where, row in rows:
        lp = read_language_pair(row) or language_pair_in_path(path)
        scores = pairs.setdefault(lp, {})
        system, score = get_text(row, ("system",)), read_score(row.get("score"), where)
        if not system or not has_scores:
            raise DataError(f"{where}: expected a system and its score, got {row}")
        if system in scores:
            raise DataError(f"{where}: a second score of system {system!r}")
        scores[system] = score
    name = default_name(path)
    return [HumanScoreTable.of_systems(scores, name, lp) for lp, scores in pairs.items()]
