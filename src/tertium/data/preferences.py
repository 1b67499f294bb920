"""Human comparisons of two translations: index arrays over shared texts, and the readers of them.

Half a million comparisons are a few arrays here, not half a million objects: every translation is
one `Segment`, and a comparison is a pair of row numbers with a verdict, so that any statistic over
them is one vector expression: `scores[left] - scores[right]` against `verdicts`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tertium.arrays import FloatArray, IntArray, divide
from tertium.data.formats import PathLike, read_records
from tertium.data.human import Evidence, Texts, reasons
from tertium.data.items import begin_anew
from tertium.data.records import (
    ANNOTATOR_NAMES,
    DOCUMENT_NAMES,
    ITEM_NAMES,
    LP_NAMES,
    lower_names,
    references_from,
    source_from,
)
from tertium.data.testset import NO_SEGMENT, UNKNOWN_SYSTEM, TestSet
from tertium.errors import DataError, LengthError, UsageError
from tertium.frames import printed
from tertium.scores import ScoreMatrix
from tertium.segment import Preference, Segment

SAME_SYSTEM = "a system compared with itself"
LEFT_NAMES = ("system_a", "left", "left_system", "system_1", "system1", "system1id", "a")
RIGHT_NAMES = ("system_b", "right", "right_system", "system_2", "system2", "system2id", "b")
VERDICT_NAMES = ("preference", "verdict", "winner", "better")
LEFT_TEXTS = ("hypothesis_a", "translation_a", "output_a", "mt_a", "text_a")
RIGHT_TEXTS = ("hypothesis_b", "translation_b", "output_b", "mt_b", "text_b")
VERDICTS = {
    **dict.fromkeys(("a", "left", "first"), 1.0),
    **dict.fromkeys(("b", "right", "second"), 0.0),
    **dict.fromkeys(("tie", "equal", "same", "both", "="), 0.5),
}


class PairJudgement(NamedTuple):
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
        return replace(self.select(self.verdicts != 0.5), left_out=counted)

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
    comparisons: Iterable[PairJudgement],
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


def read_preferences(
    path: PathLike,
    *,
    texts: Mapping[str, ItemTexts] | TestSet | None = None,
    name: str = "",
    lp: str = "",
    fields: Sequence[str] | None = None,
) -> RankingSet:
    """Read comparisons: a CSV, TSV or JSONL file with a row for each.

    Columns: item; the two systems (`system_a`, `system_b`); the verdict (`a`, `b`, `tie`, or the
    name of the better system); optionally the judge, and the document: where items begin anew in
    each, they are DOCUMENT:NAME. Texts come from `texts` or from columns of
    their own (`hypothesis_a`, `hypothesis_b`, source, reference).
    """
    comparisons: list[PairJudgement] = []
    documents: list[str] = []
    pairs: list[str] = []
    rows = []
    for where, record in read_records(path, fields):
        columns = _columns(tuple(record))
        with _at(where):
            comparisons.append(_comparison(record, columns))
        documents.append(_cell(record, columns.document))
        pairs.append(_cell(record, columns.lp))
        holds_texts = texts is None and columns.left_text and columns.right_text
        rows.append((where, record) if holds_texts else None)
    comparisons = _name_items(comparisons, documents)
    _refuse_pairs(path, comparisons, pairs)
    homes = {c.item: home for c, home in zip(comparisons, documents, strict=True) if home}
    if isinstance(texts, TestSet):
        texts = texts_of(texts, comparisons, homes)
    elif texts is None:
        texts = _texts_in(rows, comparisons)
    gathered = gather(
        comparisons,
        texts,
        name=name or Path(path).name.split(".")[0],
        lp=lp or (pairs[0] if len(set(pairs)) == 1 else ""),
    )
    return replace(gathered, documents=homes)


@contextmanager
def _at(where: str) -> Iterator[None]:
    """Say where the data are that an error is about."""
    try:
        yield
    except DataError as error:
        raise DataError(f"{where}: {error}") from None


def _texts_in(
    rows: Iterable[tuple[str, Mapping[str, Any]] | None], comparisons: Sequence[PairJudgement]
) -> dict[str, ItemTexts] | None:
    """The texts that rows of comparisons hold, of which some may hold none."""
    found: dict[str, ItemTexts] = {}
    for row, comparison in zip(rows, comparisons, strict=True):
        if row is not None:
            where, record = row
            with _at(where):
                _note_texts(found, record, _columns(tuple(record)), comparison)
    return found or None


def _name_items(comparisons: list[PairJudgement], documents: Sequence[str]) -> list[PairJudgement]:
    """Comparisons whose items are DOCUMENT:NAME where names begin anew, as those of judgements."""
    if not begin_anew(zip((c.item for c in comparisons), documents, strict=True)):
        return comparisons
    named = zip(comparisons, documents, strict=True)
    return [c._replace(item=f"{home}:{c.item}") for c, home in named]


def _refuse_pairs(
    path: PathLike, comparisons: Sequence[PairJudgement], pairs: Sequence[str]
) -> None:
    """Refuse names of items that begin anew in each language pair: a set is of one."""
    if begin_anew((c.item, lp) for c, lp in zip(comparisons, pairs, strict=True) if lp):
        named = ", ".join(filter(None, dict.fromkeys(pairs)))
        raise DataError(
            f"{path}: items of several language pairs ({named}) have the same names; give each "
            "pair a file of its own"
        )


def texts_of(
    testset: TestSet,
    comparisons: Iterable[PairJudgement],
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


class _Columns(NamedTuple):
    """Which column holds what; None where none does."""

    item: str | None
    left: str | None
    right: str | None
    verdict: str | None
    judge: str | None
    left_text: str | None
    right_text: str | None
    document: str | None
    lp: str | None


@lru_cache(maxsize=256)
def _columns(header: tuple[str, ...]) -> _Columns:
    """The columns of a header by their aliases; looked up once a file, not once a row."""
    known = {name.lower(): name for name in header} | {name: name for name in header}
    wanted = (ITEM_NAMES, LEFT_NAMES, RIGHT_NAMES, VERDICT_NAMES, ANNOTATOR_NAMES)
    every = (*wanted, LEFT_TEXTS, RIGHT_TEXTS, DOCUMENT_NAMES, LP_NAMES)
    return _Columns(*(next((known[n] for n in names if n in known), None) for names in every))


def _cell(record: Mapping[str, Any], column: str | None) -> str:
    """A name under a column, empty where there is none."""
    value = None if column is None else record[column]
    return "" if value is None else printed(value)


def _comparison(record: Mapping[str, Any], columns: _Columns) -> PairJudgement:
    cells = [_cell(record, column) for column in columns[:4]]
    if not all(cells):
        raise DataError(
            f"a comparison needs an item ({', '.join(ITEM_NAMES)}), two systems (system_a, "
            f"system_b) and a preference; found {', '.join(record) or 'nothing'}"
        )
    item, left, right, said = cells
    verdict = {left: 1.0, right: 0.0}.get(said, VERDICTS.get(said.lower()))
    if verdict is None:
        raise DataError(f"preference {said!r} is none of a, b, tie, {left!r}, {right!r}")
    return PairJudgement(item, left, right, verdict, _cell(record, columns.judge))


def _note_texts(
    found: dict[str, ItemTexts], record: Mapping[str, Any], columns: _Columns, pair: PairJudgement
) -> None:
    """Keep the texts a row carries; one that differs from an earlier row's is refused."""
    sides = {
        pair.left: _text(record, columns.left_text or ""),
        pair.right: _text(record, columns.right_text or ""),
    }
    lowered = lower_names(record)
    where = f"item {pair.item!r}"
    source, references = source_from(lowered, where), references_from(lowered, where)
    entry = found.setdefault(pair.item, ItemTexts(sides, source, references))
    both = ((entry.source, source), (entry.references, references))
    if any(first and other and first != other for first, other in both):
        raise DataError(
            f"another source or reference for {where}; where names begin anew in each document, "
            "name it in a column `document`"
        )
    for system, text in sides.items():
        if entry.outputs.get(system, text) != text:
            raise DataError(f"another text for system {system!r} of {where}")
    found[pair.item] = ItemTexts(
        outputs={**entry.outputs, **sides},
        source=source if entry.source is None else entry.source,
        references=entry.references or references,
    )


def _text(record: Mapping[str, Any], column: str) -> str:
    text = record[column]
    if text is None:
        raise DataError(f'{column} is null; an empty translation is ""')
    if not isinstance(text, str):
        raise DataError(f"{column}: expected text, got {text!r}")
    return text


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
