"""Human comparisons of two translations, stored as index arrays over shared segments.

Every translation is one `Segment`. A comparison is a pair of row numbers with a verdict, so a
statistic is one vector expression, for example of `scores[left] - scores[right]` and `verdicts`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tertium.core.arrays import FloatArray, IntArray, divide
from tertium.core.errors import DataError, UsageError
from tertium.core.scores import ScoreMatrix
from tertium.core.segment import Preference, Segment
from tertium.data.human_data import HumanData, Translation, reasons
from tertium.data.segment_lookup import NO_SEGMENT, UNKNOWN_SYSTEM
from tertium.data.testset import TestSet

SAME_SYSTEM = "a system compared with itself"


class PairwiseJudgment(NamedTuple):
    """One human comparison by name; `verdict` as in `Preference`."""

    item: str
    left: str
    right: str
    verdict: float
    judge: str = ""


@dataclass(frozen=True, slots=True)
class ItemTexts:
    """The outputs of all systems for one item."""

    outputs: Mapping[str, str]
    source: str | None = None
    references: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class RankingSet(HumanData):
    """Comparisons of one language pair, and the translations that were compared.

    `left` and `right` are rows of `segments`. `item_indices` and `system_indices` give the item and
    the system of each segment. `verdicts` are 1 (left is better), 0 (right) or 0.5 (tie).
    `judge_indices` are -1 if the judge is unknown. Repeated comparisons are kept: they measure the
    consistency of judges, and WMT counts them. `published_scores` are system scores that were
    published with the comparisons, `documents` those of the items, if known.
    """

    segments: tuple[Segment, ...]
    items: tuple[str, ...]
    systems: tuple[str, ...]
    item_indices: IntArray  # (segments,)
    system_indices: IntArray  # (segments,)
    left: IntArray  # (comparisons,)
    right: IntArray  # (comparisons,)
    verdicts: FloatArray  # (comparisons,)
    judges: tuple[str, ...] = ()
    judge_indices: IntArray = field(default_factory=lambda: np.zeros(0, np.int64))  # (comparisons,)
    published_scores: Mapping[str, float] = field(default_factory=dict)
    documents: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not len(self.verdicts):
            raise DataError(f"{self.name}: no usable comparison{reasons(self.excluded_counts)}")
        check_verdicts(self.verdicts, self.name)

    def __len__(self) -> int:
        return len(self.verdicts)

    def __iter__(self) -> Iterator[Preference]:
        """Iterate over the comparisons as `Preference` objects with shared segments."""
        for n, (left, right) in enumerate(zip(self.left, self.right, strict=True)):
            judge = self.judge_indices[n]
            yield Preference(
                left=self.segments[left],
                right=self.segments[right],
                verdict=float(self.verdicts[n]),
                item=self.items[self.item_indices[left]],
                left_system=self.systems[self.system_indices[left]],
                right_system=self.systems[self.system_indices[right]],
                judge=self.judges[judge] if judge >= 0 else "",
                lp=self.lp,
            )

    @property
    def ties(self) -> int:
        """The number of ties."""
        return int((self.verdicts == 0.5).sum())

    @property
    def compared_mask(self) -> NDArray[np.bool_]:
        """Which segments occur in a comparison, (segments,)."""
        mask = np.zeros(len(self.segments), dtype=bool)
        mask[self.left] = mask[self.right] = True
        return mask

    def select(self, rows: NDArray[np.bool_] | IntArray) -> RankingSet:
        """Return the comparisons of a mask or indices, over the same segments."""
        return replace(
            self,
            left=self.left[rows],
            right=self.right[rows],
            verdicts=self.verdicts[rows],
            judge_indices=self.judge_indices[rows],
        )

    def without_ties(self) -> RankingSet:
        """Return the comparisons that are not ties; ties are added to `excluded_counts`."""
        counted = {**self.excluded_counts, "tie": self.ties} if self.ties else self.excluded_counts
        return replace(self, excluded_counts=counted).select(self.verdicts != 0.5)

    def rows(self, level: str = "segment") -> list[Translation]:
        """Return all translations at system level, otherwise those that were compared."""
        return [
            (
                self.systems[self.system_indices[n]],
                self.items[self.item_indices[n]],
                self.segments[n],
            )
            for n in np.flatnonzero(self.compared_mask | (level == "system"))
        ]

    def labels(self) -> Mapping[str, Mapping[str, str]]:
        return {"document": self.documents} if self.documents else {}

    def system_scores(self) -> Mapping[str, float]:
        return self.published_scores

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
    comparisons: Iterable[PairwiseJudgment],
    texts: Mapping[str, ItemTexts] | None = None,
    *,
    name: str,
    lp: str = "",
    excluded_counts: Mapping[str, int] | None = None,
) -> RankingSet:
    """Build a set from comparisons by name.

    With `texts`, every output of every item becomes a segment; comparisons of unknown items or
    systems are excluded and counted. Without `texts`, the segments are empty, which is sufficient
    for system scores and annotator agreement.
    """
    table = _SegmentTable(texts)
    counts: Counter[str] = Counter(excluded_counts or {})
    judges: dict[str, int] = {}
    rows: list[tuple[int, int, int]] = []
    verdicts: list[float] = []
    for item, left, right, verdict, judge in comparisons:
        if left == right:
            counts[SAME_SYSTEM] += 1
            continue
        a, b = table.find(item, left), table.find(item, right)
        if a is None or b is None:
            counts[table.exclusion_reason(item)] += 1
            continue
        rows.append((a, b, judges.setdefault(judge, len(judges)) if judge else -1))
        verdicts.append(verdict)
    index = np.array(rows, dtype=np.int64).reshape(-1, 3)
    return RankingSet(
        name=name,
        lp=lp,
        segments=tuple(table.segments),
        items=tuple(table.items),
        systems=tuple(table.systems),
        item_indices=np.array(table.item_indices, np.int64),
        system_indices=np.array(table.system_indices, np.int64),
        left=index[:, 0],
        right=index[:, 1],
        verdicts=np.array(verdicts),
        judges=tuple(judges),
        judge_indices=index[:, 2],
        excluded_counts=dict(counts),
    )


def texts_by_item(
    testset: TestSet,
    comparisons: Iterable[PairwiseJudgment],
    documents: Mapping[str, str] | None = None,
) -> dict[str, ItemTexts]:
    """Return the texts of a test set by the item names that the comparisons use."""
    return {
        item: ItemTexts(
            outputs={system: outputs[n] for system, outputs in testset.systems.items()},
            source=testset.sources[n] if testset.sources else None,
            references=tuple(testset.references[n]) if testset.references else (),
        )
        for n, item in enumerate(testset.match_item_names((c.item for c in comparisons), documents))
    }


class _SegmentTable:
    """Assigns indices to segments, items and systems in order of appearance."""

    def __init__(self, texts: Mapping[str, ItemTexts] | None) -> None:
        self.is_open = texts is None  # whether unknown segments may be added
        self.rows: dict[tuple[str, str], int] = {}
        self.items: dict[str, int] = {}
        self.systems: dict[str, int] = {}
        self.segments: list[Segment] = []
        self.item_indices: list[int] = []
        self.system_indices: list[int] = []
        for item, entry in (texts or {}).items():
            for system, text in entry.outputs.items():
                self._add(item, system, Segment(text, entry.source, entry.references))

    def find(self, item: str, system: str) -> int | None:
        row = self.rows.get((item, system))
        if row is None and self.is_open:
            return self._add(item, system, Segment(""))
        return row

    def exclusion_reason(self, item: str) -> str:
        return UNKNOWN_SYSTEM if item in self.items else NO_SEGMENT

    def _add(self, item: str, system: str, segment: Segment) -> int:
        row = self.rows[item, system] = len(self.segments)
        self.segments.append(segment)
        self.item_indices.append(self.items.setdefault(item, len(self.items)))
        self.system_indices.append(self.systems.setdefault(system, len(self.systems)))
        return row


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
