"""Human scores as a table of systems and segments, with the system outputs if they are known."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property

from tertium.arrays import FloatArray
from tertium.data.human_data import HumanData, Texts
from tertium.data.testset import TestSet
from tertium.scores import ScoreMatrix
from tertium.segment import Segment
from tertium.spans import ErrorAnnotations


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class HumanScoreTable(HumanData):
    """Human scores, systems x segments or one column; `testset` has the outputs."""

    table: ScoreMatrix
    testset: TestSet | None = None
    read_annotations: Callable[[], Mapping[tuple[str, str], ErrorAnnotations]] = dict

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

    def texts(self) -> Texts:
        if self.testset is None:
            return {}
        return {
            (system, str(n + 1)): segment
            for system in self.testset.systems
            for n, segment in enumerate(self.testset.segments(system))
        }

    def labels(self) -> Mapping[str, Mapping[str, str]]:
        if self.testset is None:
            return {}
        documents = {"document": self.testset.documents} if self.testset.documents else {}
        return {
            name: {str(n): label for n, label in enumerate(labels, start=1)}
            for name, labels in {**self.testset.columns, **documents}.items()
        }

    def translations(self, level: str = "segment") -> list[tuple[str, Segment]]:
        return [(system, segment) for (system, _), segment in self.texts().items()]

    def to_score_matrix(self, values: FloatArray, name: str, level: str = "segment") -> ScoreMatrix:
        systems = tuple(self.testset.systems) if self.testset is not None else ()
        return ScoreMatrix(name, systems, values.reshape(len(systems), -1))
