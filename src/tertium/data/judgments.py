"""Human scores of single translations, read row by row.

Rows of one (system, item) are kept apart here and averaged only where a matrix is made. Columns go
by any of their aliases.
"""

from __future__ import annotations

import logging
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from numbers import Real
from typing import Any

import numpy as np

from tertium.arrays import FloatArray, divide
from tertium.data.formats import Records, default_name, read_records
from tertium.data.human import Evidence, Texts, reasons
from tertium.data.items import check_counting, name_items
from tertium.data.markings import MARKED, markings_from
from tertium.data.records import (
    ANNOTATOR_NAMES,
    DOCUMENT_NAMES,
    HYPOTHESIS_NAMES,
    ITEM_NAMES,
    LP_NAMES,
    SYSTEM_NAMES,
    first,
    labels_in,
    lower_names,
    read_score,
    segment_from_record,
    text_of,
)
from tertium.data.testset import FindSegment, TestSet, find_in
from tertium.errors import DataError, LengthError, UsageError, one_line
from tertium.scores import ScoreMatrix
from tertium.segment import Judgment, Segment, place_segments
from tertium.spans import (
    ESA_WEIGHTS,
    MQM_WEIGHTS,
    Markings,
    count_overlaps,
    merge_markings,
)

logger = logging.getLogger(__name__)

NO_REFERENCE = "no reference"


@dataclass(frozen=True, kw_only=True, repr=False)
class JudgmentSet(Evidence):
    """Scores of single translations, of one language pair (or of several, where `lp` is empty).

    `columns` hold what else the file says of an item, such as its domain, by language pair and
    item.

    >>> yes = Judgment(Segment("fine"), 80.0, item="1", system="A")
    >>> no = Judgment(Segment("bad"), 20.0, item="1", system="B")
    >>> JudgmentSet(name="demo", judgments=(yes, no)).matrix().values
    array([[80.],
           [20.]])
    """

    judgments: tuple[Judgment, ...]
    columns: Mapping[str, Mapping[tuple[str, str], str]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not self.judgments:
            raise DataError(f"{self.name}: no usable judgment{reasons(self.left_out)}")
        strangers = [j for j in self.judgments if not isinstance(j, Judgment)]
        if strangers:
            raise UsageError(
                f"{self.name}: expected judgments, got {one_line(strangers[0], 60)}: "
                'Judgment(Segment("a translation"), 80.0, item="1", system="A") is one, and '
                "read_judgments reads them from files and frames"
            )
        texts = [j.score for j in self.judgments if not isinstance(j.score, Real)]
        if texts:
            raise UsageError(f"{self.name}: the score {one_line(texts[0])} is not a number")
        object.__setattr__(self, "judgments", tuple(self.judgments))

    def __len__(self) -> int:
        return len(self.judgments)

    @cached_property
    def segments(self) -> tuple[Segment, ...]:
        """What was judged, one for each judgment."""
        return tuple(j.segment for j in self.judgments)

    @cached_property
    def scores(self) -> FloatArray:
        """The human scores, (judgments,)."""
        return np.array([j.score for j in self.judgments], dtype=np.float64)

    @cached_property
    def items(self) -> tuple[str, ...]:
        """The distinct items, in order of first appearance."""
        return tuple(dict.fromkeys(j.item for j in self.judgments))

    @cached_property
    def systems(self) -> tuple[str, ...]:
        """The distinct systems; `a+b` counts as a and b (see `arrange`)."""
        names = dict.fromkeys(j.system for j in self.judgments)
        return tuple(dict.fromkeys(part for name in names for part in self._parts(name)))

    @property
    def has_texts(self) -> bool:
        """Whether the translations are known, so that a metric can score them."""
        return any(j.segment.hypothesis for j in self.judgments)

    def texts(self) -> Texts:
        return {key: j.segment for key, j in self._cells() if j.segment.hypothesis}

    def markings(self) -> Mapping[tuple[str, str], Markings]:
        marked: dict[tuple[str, str], list[Judgment]] = {}
        for key, judgment in self._cells():
            marked.setdefault(key, []).append(judgment)
        merged = {key: merge_marks(own) for key, own in marked.items()}
        return {key: marks for key, marks in merged.items() if marks is not None}

    def labels(self) -> Mapping[str, Mapping[str, str]]:
        return {
            name: {item: labels.get((j.lp, j.item), "") for (_, item), j in self._cells()}
            for name, labels in self.columns.items()
        }

    def _cells(self) -> list[tuple[tuple[str, str], Judgment]]:
        """Each judgment under its system and item, as the matrix names them."""
        items = self._column_names or [j.item for j in self.judgments]
        return [((j.system, item), j) for j, item in zip(self.judgments, items, strict=True)]

    @property
    def _column_names(self) -> tuple[str, ...]:
        """Where no system was published, a name for each judgment: the second `x` is `x#2`."""
        if self.systems != ("",):
            return ()
        seen: Counter[str] = Counter()
        names = []
        for judgment in self.judgments:
            item = judgment.item
            seen[item] += 1
            names.append(item if seen[item] == 1 else f"{item}#{seen[item]}")
        return tuple(names)

    def translations(self, level: str = "segment") -> list[tuple[str, Segment]]:
        return [(j.system, j.segment) for j in self.judgments] if self.has_texts else []

    def matrix(self, level: str = "segment") -> ScoreMatrix:
        """The human scores as systems x items, NaN where nobody judged."""
        return self.arrange(self.scores, "human", level)

    def arrange(self, values: FloatArray, name: str, level: str = "segment") -> ScoreMatrix:
        """One value a judgment to systems x items; several of one cell are averaged.

        WMT17 names two systems that gave the same text `a+b`. At segment level that is one
        judgment, and keeps a row of its own; at system level it counts for a and for b (only
        where each part is also a system by itself, so that a name with a plus sign stays whole).
        Where no system was published the matrix has one row and a column for each judgment.
        """
        if len(values) != len(self):
            raise LengthError(f"{self.name}: {len(values)} values for {len(self)} judgments")
        if names := self._column_names:
            return ScoreMatrix(name, ("",), np.asarray(values, np.float64)[None, :], names)
        split = self._parts if level == "system" else lambda system: (system,)
        cells = [(s, j.item, n) for n, j in enumerate(self.judgments) for s in split(j.system)]
        systems = tuple(dict.fromkeys(s for s, _, _ in cells))
        row = {s: n for n, s in enumerate(systems)}
        column = {item: n for n, item in enumerate(self.items)}
        where = np.array([[row[s], column[i]] for s, i, _ in cells]).T  # (2, cells)
        totals, counts = np.zeros((2, len(systems), len(self.items)))
        np.add.at(totals, tuple(where), np.asarray(values, np.float64)[[n for _, _, n in cells]])
        np.add.at(counts, tuple(where), 1.0)
        return ScoreMatrix(name, systems, divide(totals, counts), self.items)

    def with_references(self) -> JudgmentSet:
        """The same without translations that lack a reference where others have one, counted.

        Human translations among the systems are often the reference themselves, and have no other.
        """
        kept = tuple(j for j in self.judgments if j.segment.references)
        lacking = len(self) - len(kept)
        if not kept or not lacking:
            return self
        logger.warning(
            "%s: %d of %d translations have no reference", self.title, lacking, len(self)
        )
        left_out = {**self.left_out, NO_REFERENCE: self.left_out.get(NO_REFERENCE, 0) + lacking}
        return replace(self, judgments=kept, left_out=left_out)

    def by_lp(self) -> dict[str, JudgmentSet]:
        """One set for each language pair; what was left out stays counted with the whole."""
        groups: dict[str, list[Judgment]] = {}
        for judgment in self.judgments:
            groups.setdefault(judgment.lp, []).append(judgment)
        return {
            lp: replace(self, lp=lp, judgments=tuple(group), left_out={})
            for lp, group in groups.items()
        }

    @cached_property
    def _plain_systems(self) -> frozenset[str]:
        return frozenset(j.system for j in self.judgments)

    def _parts(self, system: str) -> tuple[str, ...]:
        parts = tuple(system.split("+"))
        joint = len(parts) > 1 and all(part in self._plain_systems for part in parts)
        return parts if joint else (system,)


def merge_marks(ratings: Sequence[Judgment]) -> Markings | None:
    """All that was marked in one translation, by whom; None where nobody looked.

    Several who have no names are told apart by their numbers.
    """
    looked = [(r.annotator, r.markings) for r in ratings if r.markings is not None]
    own = []
    for number, (annotator, marks) in enumerate(looked, start=1):
        name = annotator or (str(number) if len(looked) > 1 else "")
        spans = tuple(replace(s, rater=s.rater or name) for s in marks.spans)
        missing = tuple(replace(e, rater=e.rater or name) for e in marks.missing)
        own.append(replace(marks, spans=spans, missing=missing))
    return merge_markings(own) if own else None


def place_judgments(judgments: Sequence[Judgment]) -> list[Judgment]:
    """Judgments with the context of their segments, where documents are known.

    The context of a translation is what its system made of the other items that were judged; one
    that a test set gave knows those that were not.
    """
    rows: dict[tuple[str, str], dict[str, int]] = {}  # by language pair and system: item, first row
    for n, j in enumerate(judgments):
        if j.document and j.segment.hypothesis and j.segment.context is None:
            rows.setdefault((j.lp, j.system), {}).setdefault(j.item, n)
    contexts: dict[tuple[str, str, str], Segment] = {}
    for (lp, system), items in rows.items():
        own = [judgments[n] for n in items.values()]
        placed = place_segments([j.segment for j in own], [j.document for j in own])
        contexts |= {(lp, system, j.item): s for j, s in zip(own, placed, strict=True)}
    return [
        replace(j, segment=placed) if placed == j.segment and j.segment.context is None else j
        for j in judgments
        for placed in [contexts.get((j.lp, j.system, j.item))]
    ]


SCORE_NAMES = ("score", "human", "rating", "raw", "z", "z_mean", "da")
NO_LABELS = (*ITEM_NAMES, *SCORE_NAMES, *ANNOTATOR_NAMES, *LP_NAMES)
DUPLICATE = "duplicate row"
NO_SCORE = "no score"
_WEIGHTS = {**ESA_WEIGHTS, **MQM_WEIGHTS}  # of files that have spans and no score


def read_judgments(
    path: Records,
    *,
    testset: TestSet | None = None,
    name: str = "",
    lp: str = "",
    fields: Sequence[str] | None = None,
    score: str | None = None,
    repeats: bool = False,
) -> JudgmentSet:
    """Read one's own judgments: a CSV, TSV, JSONL or Parquet file with a row for each, or a frame.

    Columns go by any of their aliases, the first that is there: the score (or the one `score`
    names); item, system, annotator, language pair; the texts, unless `testset` holds them, whose
    segments then are items 1, 2, ... Rows without a score, rows equal to an earlier one (unless
    `repeats` says that they are separate ratings), and rows that name no segment or system of the
    test set are left out and counted. A score that is not a number is an error. Marked errors
    (`spans` and the other names) are kept, and are the score where there is no other.
    """
    find = find_in(testset) if testset is not None else None
    names = (score.lower(),) if score else SCORE_NAMES
    collector = Collector(find=find, score_names=names, repeats=repeats)
    asked = set()
    for where, record in read_records(path, fields):
        row = lower_names(record)
        asked.add(text_of(row, ITEM_NAMES))
        collector.add(row, where)
    if testset is not None:
        check_counting(testset.items, asked, "segments of the test set")
    return collector.finish(name or default_name(path, "judgments"), lp)


class Collector:
    """Gathers judgments row by row and counts what it leaves out."""

    def __init__(
        self,
        *,
        find: FindSegment | None = None,
        score_names: Sequence[str] = SCORE_NAMES,
        repeats: bool = False,
    ) -> None:
        self.find, self.score_names, self.repeats = find, tuple(score_names), repeats
        self.kept: list[Judgment] = []
        self.left_out: Counter[str] = Counter()
        self.overlaps = 0
        self._scored, self._unscored = False, ""  # whether any row has a score; the first without
        self._seen: set[Judgment] = set()
        self._labels: list[tuple[Judgment, Mapping[str, str]]] = []

    def add(self, record: Mapping[str, Any], where: str) -> None:
        """Take one row whose keys are lower case."""
        marked = any(record.get(name) is not None for name in MARKED)
        if any(name in record for name in self.score_names):
            self._scored = True
        elif (not marked or self.score_names != SCORE_NAMES) and not self._unscored:
            # JSON may leave out what is missing in one row
            wanted, found = ", ".join(self.score_names), ", ".join(record)
            self._unscored = f"{where}: no score (looked for {wanted}; found {found})"
        score = read_score(first(record, self.score_names), where)
        if math.isnan(score) and not marked:
            self.left_out[NO_SCORE] += 1
            return
        item, system = text_of(record, ITEM_NAMES), text_of(record, SYSTEM_NAMES)
        segment = self._segment(record, item, system, where)
        if isinstance(segment, str):
            self.left_out[segment] += 1
            return
        markings = markings_from(record, segment, where) if marked else None
        if markings is not None:
            self.overlaps += count_overlaps(markings.spans)
            score = markings.score(_WEIGHTS) if math.isnan(score) else score
        annotator, lp = text_of(record, ANNOTATOR_NAMES), text_of(record, LP_NAMES)
        document = text_of(record, DOCUMENT_NAMES)
        judgment = Judgment(segment, score, item, system, annotator, lp, document, markings)
        self._label(record, judgment)
        self.keep(judgment)

    def _label(self, record: Mapping[str, Any], judgment: Judgment) -> None:
        labels = labels_in(record, NO_LABELS)
        if judgment.document:
            labels = labels | {"document": judgment.document}
        self._labels.append((judgment, labels))

    def _columns(self, renamed: Sequence[Judgment]) -> dict[str, dict[tuple[str, str], str]]:
        """What columns say of each item; one that says two things of one item is left out."""
        names = {j: (r.lp, r.item) for j, r in zip(self.kept, renamed, strict=True)}
        columns: dict[str, dict[tuple[str, str], str]] = {}
        ambiguous = set()
        for judgment, labels in self._labels:
            item = names[judgment]
            for name, value in labels.items():
                if columns.setdefault(name, {}).setdefault(item, value) != value:
                    ambiguous.add(name)
        return {name: own for name, own in columns.items() if name not in ambiguous}

    def keep(self, judgment: Judgment) -> None:
        """Take one judgment; an equal one is counted, not taken again."""
        if judgment in self._seen and not self.repeats:
            self.left_out[DUPLICATE] += 1
            return
        self._seen.add(judgment)
        self.kept.append(judgment)

    def finish(self, name: str, lp: str = "") -> JudgmentSet:
        """The set; a language pair that all rows share is its own."""
        if self._unscored and not self._scored:
            raise DataError(self._unscored)
        pairs = {j.lp for j in self.kept}
        lp = lp or (pairs.pop() if len(pairs) == 1 else "")
        if self.overlaps:
            where = f"{name} {lp}".rstrip()
            said = "1 span overlaps" if self.overlaps == 1 else f"{self.overlaps:,} spans overlap"
            logger.warning("%s: %s another of their rater", where, said)
        renamed = name_items(self.kept)
        return JudgmentSet(
            name=name,
            lp=lp,
            judgments=tuple(place_judgments(renamed)),
            left_out=dict(self.left_out),
            columns=self._columns(renamed),
        )

    def _segment(
        self, record: Mapping[str, Any], item: str, system: str, where: str
    ) -> Segment | str:
        if self.find is not None:
            return self.find(item, system, text_of(record, DOCUMENT_NAMES))
        if any(record.get(alias) is not None for alias in HYPOTHESIS_NAMES):
            return segment_from_record(record, where)
        if not (item and system):
            raise DataError(
                f"{where}: neither a translation ({', '.join(HYPOTHESIS_NAMES)}) nor both an item "
                f"and a system to look one up; found {', '.join(record)}"
            )
        return Segment("")
