"""Human scores of single translations, as a set of judgements (`data.rows` reads them from files).

A set never forgets what it did not use: `left_out` counts every row that was read and dropped, by
reason. Rows of one (system, item) are kept apart here and averaged only where a matrix is made.
"""

from __future__ import annotations

import logging
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from tertium.arrays import FloatArray, divide
from tertium.errors import DataError, LengthError
from tertium.scores import ScoreMatrix
from tertium.segment import Judgement, Segment, place_segments

logger = logging.getLogger(__name__)


NO_REFERENCE = "no reference"


@dataclass(frozen=True, kw_only=True)
class JudgementSet:
    """Judgements of one language pair (or of several, where `lp` is empty).

    `left_out` counts rows of the file that are not among `judgements`, by reason. `columns` hold
    what else the file says of an item, such as its domain, by language pair and item.

    >>> yes = Judgement(Segment("fine"), 80.0, item="1", system="A")
    >>> no = Judgement(Segment("bad"), 20.0, item="1", system="B")
    >>> JudgementSet(name="demo", judgements=(yes, no)).matrix().values
    array([[80.],
           [20.]])
    """

    name: str
    judgements: tuple[Judgement, ...]
    lp: str = ""
    left_out: Mapping[str, int] = field(default_factory=dict)
    columns: Mapping[str, Mapping[tuple[str, str], str]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not self.judgements:
            raise DataError(f"{self.name}: no usable judgement{reasons(self.left_out)}")

    def __len__(self) -> int:
        return len(self.judgements)

    @cached_property
    def segments(self) -> tuple[Segment, ...]:
        """What was judged, one for each judgement."""
        return tuple(j.segment for j in self.judgements)

    @cached_property
    def scores(self) -> FloatArray:
        """The human scores, (judgements,)."""
        return np.array([j.score for j in self.judgements], dtype=np.float64)

    @cached_property
    def items(self) -> tuple[str, ...]:
        """The distinct items, in order of first appearance."""
        return tuple(dict.fromkeys(j.item for j in self.judgements))

    @cached_property
    def systems(self) -> tuple[str, ...]:
        """The distinct systems; `a+b` counts as a and b (see `arrange`)."""
        names = dict.fromkeys(j.system for j in self.judgements)
        return tuple(dict.fromkeys(part for name in names for part in self._parts(name)))

    @property
    def has_texts(self) -> bool:
        """Whether the translations are known, so that a metric can score them."""
        return any(j.segment.hypothesis for j in self.judgements)

    def matrix(self, *, split_joint: bool = False) -> ScoreMatrix:
        """The human scores as systems x items, NaN where nobody judged."""
        return self.arrange(self.scores, "human", split_joint=split_joint)

    def arrange(self, values: FloatArray, name: str, *, split_joint: bool = False) -> ScoreMatrix:
        """One value a judgement to systems x items; several of one cell are averaged.

        A metric's scores of `segments` and the human `scores` so get the same shape. WMT17 names
        two systems that gave the same text `a+b`. At segment level that is one judgement, and
        keeps a row of its own; for the scores of systems say `split_joint=True`, and it counts for
        a and for b (only where each part is also a system by itself, so that a name with a plus
        sign stays whole). Where no system was published the matrix has one row and a column for
        each judgement.
        """
        if len(values) != len(self):
            raise LengthError(f"{self.name}: {len(values)} values for {len(self)} judgements")
        if self.systems == ("",):
            labels = _number_repeats([j.item for j in self.judgements])
            return ScoreMatrix(name, ("",), np.asarray(values, np.float64)[None, :], labels)
        split = self._parts if split_joint else lambda system: (system,)
        cells = [(s, j.item, n) for n, j in enumerate(self.judgements) for s in split(j.system)]
        systems = tuple(dict.fromkeys(s for s, _, _ in cells))
        row = {s: n for n, s in enumerate(systems)}
        column = {item: n for n, item in enumerate(self.items)}
        where = np.array([[row[s], column[i]] for s, i, _ in cells]).T  # (2, cells)
        totals, counts = np.zeros((2, len(systems), len(self.items)))
        np.add.at(totals, tuple(where), np.asarray(values, np.float64)[[n for _, _, n in cells]])
        np.add.at(counts, tuple(where), 1.0)
        return ScoreMatrix(name, systems, divide(totals, counts), self.items)

    def with_references(self) -> JudgementSet:
        """The same without translations that lack a reference where others have one, counted.

        Human translations among the systems are often the reference themselves, and have no other.
        """
        kept = tuple(j for j in self.judgements if j.segment.references)
        lacking = len(self) - len(kept)
        if not kept or not lacking:
            return self
        name = f"{self.name} {self.lp}".rstrip()
        logger.warning("%s: %d of %d translations have no reference", name, lacking, len(self))
        left_out = {**self.left_out, NO_REFERENCE: self.left_out.get(NO_REFERENCE, 0) + lacking}
        return replace(self, judgements=kept, left_out=left_out)

    def by_lp(self) -> dict[str, JudgementSet]:
        """One set for each language pair; what was left out stays counted with the whole."""
        groups: dict[str, list[Judgement]] = {}
        for judgement in self.judgements:
            groups.setdefault(judgement.lp, []).append(judgement)
        return {
            lp: replace(self, lp=lp, judgements=tuple(group), left_out={})
            for lp, group in groups.items()
        }

    @cached_property
    def _plain_systems(self) -> frozenset[str]:
        return frozenset(j.system for j in self.judgements)

    def _parts(self, system: str) -> tuple[str, ...]:
        parts = tuple(system.split("+"))
        joint = len(parts) > 1 and all(part in self._plain_systems for part in parts)
        return parts if joint else (system,)


@dataclass(frozen=True, kw_only=True)
class SystemScores:
    """What people make of whole systems: a score for each, higher is better.

    >>> SystemScores(name="demo", scores={"A": 1.0, "B": 0.5}).of(["B", "A", "C"])
    array([0.5, 1. , nan])
    """

    name: str
    scores: Mapping[str, float]
    lp: str = ""
    left_out: Mapping[str, int] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.scores)

    def of(self, systems: Sequence[str]) -> FloatArray:
        """The scores of some systems, (systems,); NaN where people gave none."""
        return np.array([self.scores.get(system, math.nan) for system in systems])


def _number_repeats(items: Sequence[str]) -> tuple[str, ...]:
    """Distinct labels for items that may repeat: the second `x` becomes `x#2`."""
    seen: Counter[str] = Counter()
    labels = []
    for item in items:
        seen[item] += 1
        labels.append(item if seen[item] == 1 else f"{item}#{seen[item]}")
    return tuple(labels)


def reasons(left_out: Mapping[str, int]) -> str:
    """What was left out and why, for the end of an error.

    >>> reasons({"no score": 2})
    ' (2 left out; no score: 2)'
    """
    if not left_out:
        return ""
    counts = ", ".join(f"{reason}: {count}" for reason, count in left_out.items())
    return f" ({sum(left_out.values())} left out; {counts})"


def name_items(judgements: Sequence[Judgement]) -> list[Judgement]:
    """Judgements whose items are told apart: where numbers begin anew with each document.

    There an item is DOCUMENT:NUMBER, and a number that stands for two sources is #2 at its second.
    """
    homes: dict[tuple[str, str], set[str]] = {}
    for j in judgements:
        homes.setdefault((j.lp, j.item), set()).add(j.document)
    if all(len(documents) == 1 for documents in homes.values()):
        return list(judgements)
    sources: dict[tuple[str, str], dict[str | None, str]] = {}
    renamed = []
    for j in judgements:
        item = f"{j.document}:{j.item}"
        own = sources.setdefault((j.lp, item), {})
        suffix = own.setdefault(j.segment.source, f"#{len(own) + 1}" if own else "")
        renamed.append(replace(j, item=item + suffix))
    return renamed


def place_judgements(judgements: Sequence[Judgement]) -> list[Judgement]:
    """Judgements with the context of their segments, where documents are known.

    The context of a translation is what its system made of the other items that were judged.
    """
    rows: dict[tuple[str, str], dict[str, int]] = {}  # by language pair and system: item, first row
    for n, j in enumerate(judgements):
        if j.document and j.segment.hypothesis:
            rows.setdefault((j.lp, j.system), {}).setdefault(j.item, n)
    contexts: dict[tuple[str, str, str], Segment] = {}
    for (lp, system), items in rows.items():
        own = [judgements[n] for n in items.values()]
        placed = place_segments([j.segment for j in own], [j.document for j in own])
        contexts |= {(lp, system, j.item): s for j, s in zip(own, placed, strict=True)}
    return [
        replace(j, segment=placed) if placed == j.segment else j
        for j in judgements
        for placed in [contexts.get((j.lp, j.system, j.item))]
    ]
