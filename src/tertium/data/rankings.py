"""Human comparisons of two translations as index arrays over shared texts.

Half a million comparisons are a few arrays here, not half a million objects: every translation is
one `Segment`, and a comparison is a pair of row numbers with a verdict, so that any statistic over
them is one vector expression: `scores[left] - scores[right]` against `verdicts`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tertium.arrays import FloatArray, IntArray, divide
from tertium.data.human import Evidence, Texts, reasons
from tertium.data.testset import NO_SEGMENT, UNKNOWN_SYSTEM, TestSet
from tertium.errors import DataError, LengthError, UsageError
from tertium.scores import ScoreMatrix
from tertium.segment import Preference, Segment

SAME_SYSTEM = "a system compared with itself"


class PairJudgment(NamedTuple):
    """One human comparison by name; `verdict` as in `Preference`."""

    item: str
    left: str
    right: str
    verdict: float
    judge: str = ""


@dataclass(frozen=True, slots=True)
class ItemTexts:
    """What every system made of one item."""

    outputs: Mapping[str, str]
    source: str | None = None
    references: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class RankingSet(Evidence):
    """Comparisons of one language pair over the distinct translations they are about.

    `segments` holds the texts, `item_of` and `system_of` say whose each is (indices into `items`
    and `systems`); `left` and `right` are rows of `segments`, `verdicts` 1 for left, 0 for right,
    0.5 for a tie; `judge_of` indexes `judges`, -1 where the judge is not known. A comparison made
    twice stays twice: repeats are how judges are checked, and what WMT counts. `standings` are
    scores of systems that were published beside, `documents` those of items, where they are known.
    """

    segments: tuple[Segment, ...]
    items: tuple[str, ...]
    systems: tuple[str, ...]
    item_of: IntArray  # (segments,)
    system_of: IntArray  # (segments,)
    left: IntArray  # (comparisons,)
    right: IntArray  # (comparisons,)
    verdicts: FloatArray  # (comparisons,)
    judges: tuple[str, ...] = ()
    judge_of: IntArray = field(default_factory=lambda: np.zeros(0, np.int64))  # (comparisons,)
    standings: Mapping[str, float] = field(default_factory=dict)
    documents: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not len(self.verdicts):
            raise DataError(f"{self.name}: no usable comparison{reasons(self.left_out)}")
        check_verdicts(self.verdicts, self.name)

    def __len__(self) -> int:
        return len(self.verdicts)

    def __iter__(self) -> Iterator[Preference]:
        """The comparisons as values; their segments are shared."""
        for n, (left, right) in enumerate(zip(self.left, self.right, strict=True)):
            judge = self.judge_of[n]
            yield Preference(
                left=self.segments[left],
                right=self.segments[right],
                verdict=float(self.verdicts[n]),
                item=self.items[self.item_of[left]],
                left_system=self.systems[self.system_of[left]],
                right_system=self.systems[self.system_of[right]],
                judge=self.judges[judge] if judge >= 0 else "",
                lp=self.lp,
            )

    @property
    def has_texts(self) -> bool:
        """Whether the translations are known, so that a metric can score them."""
        return any(segment.hypothesis for segment in self.segments)

    @property
    def ties(self) -> int:
        """How many comparisons are ties."""
        return int((self.verdicts == 0.5).sum())

    @property
    def is_compared(self) -> NDArray[np.bool_]:
        """Which segments occur in a comparison, (segments,)."""
        mask = np.zeros(len(self.segments), dtype=bool)
        mask[self.left] = mask[self.right] = True
        return mask

    def select(self, rows: NDArray[np.bool_] | IntArray) -> RankingSet:
        """Some of the comparisons (a mask or indices) over the same texts."""
        return replace(
            self,
            left=self.left[rows],
            right=self.right[rows],
            verdicts=self.verdicts[rows],
            judge_of=self.judge_of[rows],
        )

    def drop_ties(self) -> RankingSet:
        """The comparisons in which people preferred one side; the others are counted."""
        counted = {**self.left_out, "tie": self.ties} if self.ties else self.left_out
        return replace(self, left_out=counted).select(self.verdicts != 0.5)

    def texts(self) -> Texts:
        rows = zip(self.system_of.tolist(), self.item_of.tolist(), self.segments, strict=True)
        return {(self.systems[s], self.items[i]): segment for s, i, segment in rows}

    def _rows_used(self, level: str) -> IntArray:
        """The texts that count: those compared, and for scores of systems all."""
        return np.flatnonzero(self.is_compared | (level == "system"))

    def translations(self, level: str = "segment") -> list[tuple[str, Segment]]:
        rows = self._rows_used(level).tolist() if self.has_texts else []
        return [(self.systems[self.system_of[n]], self.segments[n]) for n in rows]

    def arrange(self, values: FloatArray, name: str, level: str = "segment") -> ScoreMatrix:
        """One score a translation to systems x items, NaN where a system has none."""
        rows = self._rows_used(level)
        if len(values) != len(rows):
            raise LengthError(f"{self.name}: {len(values)} scores for {len(rows)} segments")
        table = np.full((len(self.systems), len(self.items)), np.nan)
        table[self.system_of[rows], self.item_of[rows]] = values
        return ScoreMatrix(name, self.systems, table, self.items)

    def labels(self) -> Mapping[str, Mapping[str, str]]:
        return {"document": self.documents} if self.documents else {}

    def system_scores(self) -> Mapping[str, float]:
        return self.standings

    def segment_scores(self) -> ScoreMatrix:
        """The share of its comparisons that each translation won, a tie being half a win."""
        won, counted = np.zeros((2, len(self.segments)))
        for side, verdicts in ((self.left, self.verdicts), (self.right, 1 - self.verdicts)):
            np.add.at(won, side, verdicts)
            np.add.at(counted, side, 1.0)
        return self.arrange(divide(won, counted), "human", "system")


def check_verdicts(verdicts: FloatArray, whose: str) -> None:
    """Refuse numbers that are no verdict as `Preference` has it."""
    strange = verdicts[~np.isin(verdicts, (0.0, 0.5, 1.0))]
    if len(strange):
        raise DataError(
            f"{whose}: {len(strange)} verdicts are not 1 (left is better), 0 (right) or "
            f"0.5 (a tie), the first is {strange[0]:g}"
        )


def gather(
    comparisons: Iterable[PairJudgment],
    texts: Mapping[str, ItemTexts] | None = None,
    *,
    name: str,
    lp: str = "",
    left_out: Mapping[str, int] | None = None,
) -> RankingSet:
    """Comparisons by name to a set.

    With `texts` every output of every item becomes a segment, and comparisons that name an item or
    a system without text are left out and counted; without, the segments are empty but for whose
    they are, which is enough for scores of systems and agreement of judges.
    """
    table = _SegmentTable(texts)
    counts: Counter[str] = Counter(left_out or {})
    judges: dict[str, int] = {}
    rows: list[tuple[int, int, int]] = []
    verdicts: list[float] = []
    for item, left, right, verdict, judge in comparisons:
        if left == right:
            counts[SAME_SYSTEM] += 1
            continue
        a, b = table.find(item, left), table.find(item, right)
        if a is None or b is None:
            counts[table.reason(item)] += 1
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
        item_of=np.array(table.item_of, np.int64),
        system_of=np.array(table.system_of, np.int64),
        left=index[:, 0],
        right=index[:, 1],
        verdicts=np.array(verdicts),
        judges=tuple(judges),
        judge_of=index[:, 2],
        left_out=dict(counts),
    )


def texts_of(
    testset: TestSet,
    comparisons: Iterable[PairJudgment],
    documents: Mapping[str, str] | None = None,
) -> dict[str, ItemTexts]:
    """The texts of a test set by item, as the comparisons of them call it.

    `documents` are those of the items, where they are known.
    """
    return {
        item: ItemTexts(
            outputs={system: outputs[n] for system, outputs in testset.systems.items()},
            source=testset.sources[n] if testset.sources else None,
            references=tuple(testset.references[n]) if testset.references else (),
        )
        for n, item in enumerate(testset.items_among((c.item for c in comparisons), documents))
    }


class _SegmentTable:
    """Numbers segments, items and systems as they are met."""

    def __init__(self, texts: Mapping[str, ItemTexts] | None) -> None:
        self.open = texts is None
        self.rows: dict[tuple[str, str], int] = {}
        self.items: dict[str, int] = {}
        self.systems: dict[str, int] = {}
        self.segments: list[Segment] = []
        self.item_of: list[int] = []
        self.system_of: list[int] = []
        for item, entry in (texts or {}).items():
            for system, text in entry.outputs.items():
                self._add(item, system, Segment(text, entry.source, entry.references))

    def find(self, item: str, system: str) -> int | None:
        row = self.rows.get((item, system))
        if row is None and self.open:
            return self._add(item, system, Segment(""))
        return row

    def reason(self, item: str) -> str:
        return UNKNOWN_SYSTEM if item in self.items else NO_SEGMENT

    def _add(self, item: str, system: str, segment: Segment) -> int:
        row = self.rows[item, system] = len(self.segments)
        self.segments.append(segment)
        self.item_of.append(self.items.setdefault(item, len(self.items)))
        self.system_of.append(self.systems.setdefault(system, len(self.systems)))
        return row


def sample_comparisons(
    sets: Sequence[RankingSet], count: int, generator: np.random.Generator
) -> list[RankingSet]:
    """`count` comparisons drawn from all sets together; sets without any are not returned."""
    ends = np.cumsum([len(rankings) for rankings in sets])
    if not 0 < count <= ends[-1]:
        raise UsageError(f"{count} comparisons cannot be drawn from {ends[-1]}")
    chosen = np.sort(generator.choice(int(ends[-1]), count, replace=False))
    parts = np.split(chosen, np.searchsorted(chosen, ends[:-1]))
    starts = (0, *ends[:-1])
    return [
        rankings.select(rows - start)
        for rankings, rows, start in zip(sets, parts, starts, strict=True)
        if len(rows)
    ]
