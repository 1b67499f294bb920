"""What people said of one language pair of one test set, in one of three forms.

They scored translations one by one, compared them with each other, or are known by a table of
scores, of segments or whole systems. Whoever reads judgements asks the same questions of all three.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from tertium.arrays import FloatArray
from tertium.data.judgements import JudgementSet
from tertium.data.preferences import RankingSet
from tertium.data.ratings import average, standardise
from tertium.data.testset import TestSet
from tertium.errors import DataError, UsageError
from tertium.scores import ScoreMatrix
from tertium.segment import Judgement, Segment
from tertium.spans import Markings

Texts = dict[tuple[str, str], Segment]  # by system and item


@dataclass(frozen=True, kw_only=True, eq=False)
class Evidence(ABC):
    """What the three forms have in common; `left_out` counts by reason what was read in vain.

    `level` is "segment" or "system": at the latter, a judgement of two systems that gave the same
    text counts for both of them.
    """

    name: str
    lp: str = ""
    left_out: Mapping[str, int] = field(default_factory=dict)

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

    def columns(self) -> Mapping[str, Mapping[str, str]]:
        """What else is known of items, such as their domain: labels by column and item."""
        return {}

    def matrix(self, level: str = "segment") -> ScoreMatrix | None:
        """The scores people gave to segments; None where they gave none."""
        return None

    def rankings(self) -> RankingSet | None:
        """The comparisons people made; None where they made none."""
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

    def score_files(self) -> tuple[Path, ...]:
        """Files of metrics' scores that lie beside what people said."""
        return ()

    def standardise(self) -> Evidence:
        """The same with z-scores of each annotator, averaged."""
        raise UsageError(f"{self.name}: --standardise goes with ratings that name annotators")


@dataclass(frozen=True, kw_only=True, eq=False)
class ScoredTranslations(Evidence):
    """People scored translations one by one."""

    judgements: JudgementSet

    def matrix(self, level: str = "segment") -> ScoreMatrix:
        return self.judgements.matrix(split_joint=level == "system")

    def texts(self) -> Texts:
        return {key: j.segment for key, j in self._rows() if j.segment.hypothesis}

    def markings(self) -> Mapping[tuple[str, str], Markings]:
        return {key: j.markings for key, j in self._rows() if j.markings is not None}

    def _rows(self) -> list[tuple[tuple[str, str], Judgement]]:
        """Each judgement under its system and item, as the matrix names them."""
        rows = zip(self.judgements.judgements, self._items(), strict=True)
        return [((j.system, item), j) for j, item in rows]

    def columns(self) -> Mapping[str, Mapping[str, str]]:
        judged = [*zip(self.judgements.judgements, self._items(), strict=True)]
        return {
            name: {item: labels.get((j.lp, j.item), "") for j, item in judged}
            for name, labels in self.judgements.columns.items()
        }

    def _items(self) -> Sequence[str]:
        """The name of each judgement's column in `matrix`."""
        if self.judgements.systems == ("",):
            return self.matrix().items
        return [j.item for j in self.judgements.judgements]

    def translations(self, level: str = "segment") -> list[tuple[str, Segment]]:
        if not self.judgements.has_texts:
            return []
        return [(j.system, j.segment) for j in self.judgements.judgements]

    def arrange(self, values: FloatArray, name: str, level: str = "segment") -> ScoreMatrix:
        return self.judgements.arrange(values, name, split_joint=level == "system")

    def standardise(self) -> ScoredTranslations:
        judged = average(standardise(self.judgements))
        return replace(self, judgements=judged, left_out=judged.left_out)


@dataclass(frozen=True, kw_only=True, eq=False)
class ComparedTranslations(Evidence):
    """People compared translations; `systems` are scores of systems published beside."""

    comparisons: RankingSet
    systems: Mapping[str, float] = field(default_factory=dict)

    def rankings(self) -> RankingSet:
        return self.comparisons

    def system_scores(self) -> Mapping[str, float]:
        return self.systems

    def segment_scores(self) -> ScoreMatrix:
        return self.comparisons.win_shares()

    def texts(self) -> Texts:
        return {
            (self.comparisons.systems[system], self.comparisons.items[item]): segment
            for system, item, segment in zip(
                self.comparisons.system_of.tolist(),
                self.comparisons.item_of.tolist(),
                self.comparisons.segments,
                strict=True,
            )
        }

    def translations(self, level: str = "segment") -> list[tuple[str, Segment]]:
        if not self.comparisons.has_texts:
            return []
        owners, segments = self.comparisons.system_of, self.comparisons.segments
        return [(self.comparisons.systems[owners[n]], segments[n]) for n in self._rows_used(level)]

    def arrange(self, values: FloatArray, name: str, level: str = "segment") -> ScoreMatrix:
        every = np.full(len(self.comparisons.segments), np.nan)
        every[self._rows_used(level)] = values
        return self.comparisons.arrange(every, name)

    def _rows_used(self, level: str) -> list[int]:
        """The texts that count: those compared, and for scores of systems all."""
        used = self.comparisons.is_compared | (level == "system")
        return [int(row) for row in np.flatnonzero(used)]


@dataclass(frozen=True, kw_only=True, eq=False)
class ScoreTable(Evidence):
    """A table of people's scores, systems x segments, or of whole systems where it has one column.

    `testset` holds the outputs where they lie beside, `files` are metrics' scores of them.
    """

    table: ScoreMatrix
    testset: TestSet | None = None
    files: tuple[Path, ...] = ()
    marks: Mapping[tuple[str, str], Markings] = field(default_factory=dict)

    def markings(self) -> Mapping[tuple[str, str], Markings]:
        return self.marks

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

    def columns(self) -> Mapping[str, Mapping[str, str]]:
        if self.testset is None:
            return {}
        documents = {"document": self.testset.documents} if self.testset.documents else {}
        return {
            name: {str(n): label for n, label in enumerate(labels, start=1)}
            for name, labels in {**self.testset.columns, **documents}.items()
        }

    def translations(self, level: str = "segment") -> list[tuple[str, Segment]]:
        return [(system, segment) for (system, _), segment in self.texts().items()]

    def arrange(self, values: FloatArray, name: str, level: str = "segment") -> ScoreMatrix:
        systems = tuple(self.testset.systems) if self.testset is not None else ()
        return ScoreMatrix(name, systems, values.reshape(len(systems), -1))

    def score_files(self) -> tuple[Path, ...]:
        return self.files
