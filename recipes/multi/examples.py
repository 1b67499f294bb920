"""Streams of training batches: comparisons, judgements, paragraphs, damage and teachers' scores.

A `Unit` is what must stay in one batch: a judged row, the outputs of a segment with the comparisons
among them, or a translation with its damaged copy. Units are drawn at random, given a view (source,
reference or both), sorted by length within a pool, and cut into batches of about equal cost.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recipes.multi.damage import FATAL, Damager, Material
from recipes.multi.network import SCALES, Texts, lay_out
from recipes.multi.store import Store

Array = NDArray[np.int32]
Generator = np.random.Generator
Mark = tuple[int, int, int, int, float]  # first piece, end, severity, category, share of raters
VIEWS = {"source": (True, False), "reference": (False, True), "both": (True, True)}
VIEW_SHARES = (0.4, 0.25, 0.35)
DA, MQM, ESA, QE = range(4)
NO_TAGS, MQM_TAGS, ESA_TAGS, WORD_TAGS = range(4)
TAGS_OF = {DA: NO_TAGS, MQM: MQM_TAGS, ESA: ESA_TAGS, QE: WORD_TAGS}
LONGEST = 300  # pieces of a text in training; the positions reach further
HELD_LINES = 200  # the last of FLORES: damage is measured on them
POOL = 16  # batches whose units are sorted together


@dataclass
class Example:
    """One row: its three texts, what is known of it, and how much that counts."""

    texts: Texts
    targets: tuple[float, ...] = (np.nan, np.nan, np.nan)
    weight: float = 1.0
    tags: int = NO_TAGS
    marks: Sequence[Mark] = ()
    clean: int = -1

    @property
    def own_size(self) -> int:
        """The pieces of its hypothesis."""
        return 0 if self.texts[0] is None else len(self.texts[0])

    def cost(self) -> int:
        return sum(len(text) + 2 for text in self.texts if text is not None)


@dataclass
class Unit:
    examples: list[Example]
    pairs: list[tuple[int, int, float, float]] = field(default_factory=list)
    """(better, worse, share of judges who say so, weight)"""
    margins: list[tuple[int, int, float]] = field(default_factory=list)
    """(whole, damaged, what the damage costs at least)"""

    def cost(self) -> int:
        return sum(example.cost() for example in self.examples)


Source = Callable[[Generator], Unit | None]


def choose_view(texts: Texts, rng: Generator, shares: Sequence[float] = VIEW_SHARES) -> Texts:
    """The texts with the source, the reference or neither hidden; what is absent stays so."""
    hypothesis, source, reference = (None if t is None else t[:LONGEST] for t in texts)
    if source is None or reference is None:
        return hypothesis, source, reference
    seen = list(VIEWS.values())[int(rng.choice(3, p=shares))]
    return hypothesis, source if seen[0] else None, reference if seen[1] else None


def show(texts: Texts, like: Texts) -> Texts:
    """The texts cut to the view of others."""
    return tuple(
        None if model is None or text is None else text[:LONGEST]
        for text, model in zip(texts, like, strict=True)
    )


def row_texts(store: Store, row: int) -> Texts:
    columns = store.columns
    return tuple(store.text(int(columns[c][row])) for c in ("hypothesis", "source", "reference"))


class Comparisons:
    """Segments with their outputs and the net result of all judges on each pair."""

    def __init__(self, store: Store, most: int = 8) -> None:
        self.store, self.most = store, most
        left, right, _, outcome = store.columns["comparisons"].T
        better, worse = np.where(outcome > 0, left, right), np.where(outcome > 0, right, left)
        votes: dict[tuple[int, int], list[int]] = {}
        for b, w in zip(better.tolist(), worse.tolist(), strict=True):
            low, high = min(b, w), max(b, w)
            votes.setdefault((low, high), [0, 0])[int(b == high)] += 1
        segments: dict[tuple[int, int], list[tuple[int, int, int, int]]] = {}
        source, reference = store.columns["source"], store.columns["reference"]
        for (low, high), (first, second) in votes.items():
            key = (int(source[low]), int(reference[low]))
            segments.setdefault(key, []).append((low, high, first, second))
        self.segments = list(segments.values())
        sizes = np.array([len(pairs) for pairs in self.segments])
        self._shares = np.sqrt(sizes) / np.sqrt(sizes).sum()
        self._cumulative = np.cumsum(self._shares)

    def __call__(self, rng: Generator) -> Unit | None:
        pairs = self.segments[int(np.searchsorted(self._cumulative, rng.random() * 0.999999))]
        rows = list({row for low, high, _, _ in pairs for row in (low, high)})
        if len(rows) > self.most:
            rows = [rows[n] for n in rng.choice(len(rows), self.most, replace=False)]
        place = {row: n for n, row in enumerate(rows)}
        seen = choose_view(row_texts(self.store, rows[0]), rng)
        examples = [Example(show(row_texts(self.store, row), seen)) for row in rows]
        kept = [
            (place[low], place[high], first / (first + second), float(np.sqrt(first + second)))
            for low, high, first, second in pairs
            if low in place and high in place
        ]
        return Unit(examples, kept) if kept else None


@dataclass(frozen=True)
class Shares:
    """How often rows of a set are drawn, against one row of a plain modern set."""

    factors: dict[str, float]
    other: float = 1.0

    def of(self, name: str) -> float:
        return next((f for key, f in self.factors.items() if name.startswith(key)), self.other)


class Judgements:
    """Judged rows, drawn by shares; `paragraphs` of them are joined neighbours of a document."""

    def __init__(
        self, store: Store, shares: Shares, *, paragraphs: float = 0.12, tags: float = 1.0
    ) -> None:
        self.store, self.paragraphs, self.tags = store, paragraphs, tags
        columns = store.columns
        factor = np.array([shares.of(name) for name in store.names])[columns["set"]]
        # a human reference among the systems is no output; judges of some sets rate it low
        factor = factor * np.where(columns["human"] > 0, 0.5, 1.0)
        self._cumulative = np.cumsum(factor / factor.sum())
        self.marks: dict[int, list[Mark]] = {}
        for row, start, end, severity, category, share in columns["marks"]:
            mark = (int(start), int(end), int(severity), int(category), float(share))
            self.marks.setdefault(int(row), []).append(mark)
        self.lengths = store.lengths()
        self.order = np.lexsort((columns["order"], columns["document"]))
        self.rank = np.empty_like(self.order)
        self.rank[self.order] = np.arange(len(self.order))

    def __call__(self, rng: Generator) -> Unit | None:
        row = int(np.searchsorted(self._cumulative, rng.random() * 0.999999))
        if self.store.columns["document"][row] >= 0 and rng.random() < self.paragraphs:
            joined = self._paragraph(row, int(rng.integers(2, 9)))
            if joined is not None:
                example = joined
                example.texts = choose_view(example.texts, rng)
                return Unit([example])
        example = self.example(row)
        example.texts = choose_view(example.texts, rng)
        return Unit([example])

    def example(self, row: int) -> Example:
        columns = self.store.columns
        kind = int(columns["kind"][row])
        targets = [np.nan] * len(SCALES)
        targets[{DA: 0, QE: 0, MQM: 1, ESA: 2}[kind]] = float(columns["score"][row].clip(-4, 3))
        tags = TAGS_OF[kind] if columns["marked"][row] else NO_TAGS
        return Example(
            row_texts(self.store, row),
            tuple(targets),
            1.0,
            tags,
            self.marks.get(row, ()),
            int(columns["clean"][row]),
        )

    def _paragraph(self, row: int, most: int) -> Example | None:
        rows = self.neighbours(row, most)
        return join_rows([self.example(r) for r in rows]) if len(rows) > 1 else None

    def neighbours(self, row: int, most: int) -> list[int]:
        """The row and those after it in its document, by the same system, as long as they fit."""
        columns, found, room = self.store.columns, [row], LONGEST
        lengths = self.lengths
        for place in range(int(self.rank[row]) + 1, len(self.order)):
            following = int(self.order[place])
            room -= int(lengths[int(columns["hypothesis"][found[-1]])])
            if (
                columns["document"][following] != columns["document"][row]
                or len(found) == most
                or columns["order"][following] - columns["order"][found[-1]] > 2
                or (columns["reference"][following] < 0) != (columns["reference"][row] < 0)
                or lengths[int(columns["hypothesis"][following])] > room
            ):
                break
            found.append(following)
        return found


def join_rows(examples: list[Example]) -> Example:
    """A paragraph: texts joined, scores averaged by the length of the hypotheses, marks moved."""
    sizes = np.array([max(e.own_size, 1) for e in examples], np.float64)
    texts = tuple(
        None if any(part is None for part in parts) else np.concatenate(parts)
        for parts in zip(*(e.texts for e in examples), strict=True)
    )
    targets = tuple(float(t) for t in sizes @ np.array([e.targets for e in examples]) / sizes.sum())
    marks, at = [], 0
    for example in examples:
        marks += [(s + at, e + at, *rest) for s, e, *rest in example.marks]
        at += len(example.texts[0])  # type: ignore[arg-type]
    tags = examples[0].tags if len({e.tags for e in examples}) == 1 else NO_TAGS
    clean = min(e.clean for e in examples)
    return Example(texts, targets, 1.5, tags, marks, clean)  # type: ignore[arg-type]


class Outputs:
    """Outputs of many systems on FLORES: line n of every language and system lies together."""

    def __init__(self, folder: Path) -> None:
        self.names: list[str] = json.loads((folder / "outputs.json").read_text())
        self.pieces = np.load(folder / "pieces.npy")
        self.offsets = np.load(folder / "offsets.npy")
        self.lines = (len(self.offsets) - 1) // len(self.names)
        self.column = {name: n for n, name in enumerate(self.names)}
        self.languages = [name for name in self.names if "-" not in name]
        self.systems = [
            (self.column[name], self.column[source], self.column[target])
            for name in self.names
            if "-" in name
            for source, target in [name.split(".")[0].split("-")]
            if source in self.column and target in self.column
        ]

    def text(self, line: int, column: int) -> Array:
        number = line * len(self.names) + column
        return self.pieces[self.offsets[number] : self.offsets[number + 1]]

    def texts(self, line: int, system: int) -> Texts:
        return tuple(self.text(line, column) for column in self.systems[system])

    def sample(self, count: int, rng: Generator) -> NDArray[np.int64]:
        """(line, system) of rows without repetition."""
        size = (self.lines - HELD_LINES) * len(self.systems)
        chosen = rng.permutation(size)[: min(count, size)]
        return np.stack([chosen // len(self.systems), chosen % len(self.systems)], 1)


def material_of(texts: Texts, other: NDArray[np.int32], foreign: NDArray[np.int32]) -> Material:
    """What an output can be damaged with; outputs have a text and a source."""
    text, source, *_ = texts
    assert text is not None
    assert source is not None
    return Material(text, source, other, foreign)


class Damages:
    """An output or a reference as it is, beside a damaged copy that must score lower."""

    def __init__(self, outputs: Outputs, damager: Damager) -> None:
        self.outputs, self.damager = outputs, damager

    def __call__(self, rng: Generator) -> Unit | None:
        outputs = self.outputs
        lines = outputs.lines - HELD_LINES
        line, system = int(rng.integers(lines)), int(rng.integers(len(outputs.systems)))
        own, source, target = outputs.systems[system]
        texts = outputs.texts(line, system)
        if rng.random() < 0.3:  # the reference itself, judged by its source
            texts = (texts[2], texts[1], None)
        other_line = int(rng.integers(lines))
        third = outputs.column[outputs.languages[int(rng.integers(len(outputs.languages)))]]
        if third in (source, target):
            return None
        material = material_of(texts, outputs.text(other_line, own), outputs.text(line, third))
        damaged = self.damager.damage(material, rng)
        if damaged is None:
            return None
        seen = choose_view(texts, rng)
        marks = [(start, end, 2, 0, 1.0) for start, end in damaged.spans]
        # a piece that is left out leaves no place to mark; tags of such rows teach nothing
        tags = MQM_TAGS if marks else NO_TAGS
        worst = (-2.5,) * 3 if damaged.cost >= FATAL else (np.nan,) * 3
        whole = Example(seen, weight=0.0)
        broken = Example((damaged.text[:LONGEST], *seen[1:]), worst, 0.5, tags, marks, 0)
        return Unit([whole, broken], margins=[(0, 1, damaged.cost)])


class Taught:
    """Rows with the scores of teachers, (rows, scales), in any view."""

    def __init__(
        self,
        texts: Callable[[int], Texts],
        scores: NDArray[np.float32],
        weight: float = 1.0,
        shares: Sequence[float] = (0.45, 0.3, 0.25),
    ) -> None:
        self.texts, self.scores, self.weight, self.shares = texts, scores, weight, shares

    def __call__(self, rng: Generator) -> Unit | None:
        row = int(rng.integers(len(self.scores)))
        seen = choose_view(self.texts(row), rng, self.shares)
        return Unit([Example(seen, tuple(map(float, self.scores[row])), self.weight)])


def collate(units: Sequence[Unit]) -> dict[str, Any]:
    """The arrays of a batch: its layout and everything the losses want."""
    examples: list[Example] = []
    pairs, margins = [], []
    for unit in units:
        at = len(examples)
        examples += unit.examples
        pairs += [(a + at, b + at, share, weight) for a, b, share, weight in unit.pairs]
        margins += [(a + at, b + at, cost) for a, b, cost in unit.margins]
    layout = lay_out([example.texts for example in examples])
    width = int(layout["size0"].max())
    shares = np.zeros((len(examples), width, 3), np.float32)  # minor, major, bad
    categories = np.zeros((len(examples), width), np.int64)
    for n, example in enumerate(examples):
        for start, end, severity, category, share in example.marks:
            shares[n, 1 + start : 1 + end, severity - 1] += share
            categories[n, 1 + start : 1 + end] = category
    return {
        "layout": layout,
        "targets": np.array([e.targets for e in examples], np.float32),
        "weights": np.array([e.weight for e in examples], np.float32),
        "clean": np.array([e.clean for e in examples], np.float32),
        "tags": np.array([e.tags for e in examples], np.int64),
        "shares": shares.clip(0, 1),
        "categories": categories,
        "pairs": np.array(pairs, np.float32).reshape(-1, 4),
        "margins": np.array(margins, np.float32).reshape(-1, 3),
    }


def stream(
    sources: Sequence[tuple[float, Source]], budget: int, rng: Generator
) -> Iterator[dict[str, Any]]:
    """Batches of about `budget` pieces; sources are drawn by their shares of units."""
    shares = np.array([share for share, _ in sources])
    shares = shares / shares.sum()
    while True:
        pool: list[Unit] = []
        cost = 0
        while cost < POOL * budget:
            unit = sources[int(rng.choice(len(sources), p=shares))][1](rng)
            if unit is not None:
                pool.append(unit)
                cost += unit.cost()
        longest = [max(e.cost() for e in unit.examples) for unit in pool]
        batches: list[list[Unit]] = [[]]
        room = budget
        for n in np.argsort(longest, kind="stable"):
            if room < 0:
                batches.append([])
                room = budget
            batches[-1].append(pool[n])
            room -= pool[n].cost()
        # the last one may be small: its units would weigh too much
        for n in rng.permutation(max(len(batches) - 1, 1)):
            yield collate(batches[n])
