"""Rows of packed parts to look at the frozen tertium-multi with: sets, paragraphs, damage."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recipes.multi.damage import Damager
from recipes.multi.e5 import Pieces
from recipes.multi.evaluate import iter_damage_pairs, sample_rows, truncate
from recipes.multi.network import Texts
from recipes.multi.packed_rows import Documents, Outputs, row_texts
from recipes.multi.readouts import PARAGRAPH_PREFIX
from recipes.multi.store import Store, prepare, read_lines, write_pieces

Strings = tuple[str, str | None, str | None]
LOW_QUANTILE = 0.25


@dataclass
class Rows:
    """Rows of one kind: their set, people's score, texts by pieces and as strings."""

    names: list[str] = field(default_factory=list)
    human: list[float] = field(default_factory=list)
    texts: list[Texts] = field(default_factory=list)
    strings: list[Strings] = field(default_factory=list)
    keys: list[int] = field(default_factory=list)  # the row of the store, or the pair of damage

    def add(self, name: str, human: float, texts: Texts, strings: Strings, key: int) -> None:
        self.names.append(name)
        self.human.append(human)
        self.texts.append(truncate(texts))
        self.strings.append(strings)
        self.keys.append(key)

    def extend(self, others: Rows, prefix: str) -> None:
        """Takes others in, whose sets are called by a prefix."""
        self.names += [prefix + name for name in others.names]
        self.human += others.human
        self.texts += others.texts
        self.strings += others.strings
        self.keys += others.keys

    def save(self, path: Path, **columns: Any) -> None:
        kinds = list(dict.fromkeys(self.names))
        np.savez_compressed(
            path,
            allow_pickle=False,
            names=np.array(kinds),
            set=np.array([kinds.index(n) for n in self.names], np.int16),
            human=np.array(self.human, np.float32),
            key=np.array(self.keys, np.int64),
            **columns,
        )


def row_strings(store: Store, lines: list[str], rows: Sequence[int]) -> Strings:
    """The texts of a row, or of neighbors joined."""
    found = []
    for column in ("hypothesis", "source", "reference"):
        numbers = store.columns[column][list(rows)]
        found.append(None if (numbers < 0).any() else " ".join(lines[n] for n in numbers))
    return tuple(found)  # type: ignore[return-value]


def sample_sets(store: Store, lines: list[str], part: str, most: int) -> Rows:
    rows = Rows()
    compared = set(store.columns["comparisons"][:, 2].tolist())
    for number, name in enumerate(store.names):
        if name.startswith(part) and number not in compared:
            for row in sample_rows(store, number, most):
                human = float(store.columns["score"][row])
                rows.add(
                    name, human, row_texts(store, row), row_strings(store, lines, [row]), int(row)
                )
    return rows


def sample_comparisons(store: Store, lines: list[str], most: int) -> tuple[Rows, NDArray[np.int64]]:
    """Rows of some strict comparisons, and these: left, right (places in rows), set, outcome."""
    every = store.columns["comparisons"]
    every = every[every[:, 3] != 0]
    rng, rows, place, kept = np.random.default_rng(5), Rows(), dict[int, int](), []
    for number in np.unique(every[:, 2]):
        for left, right, which, outcome in rng.permutation(every[every[:, 2] == number])[:most]:
            for row in (left, right):
                if int(row) not in place:
                    place[int(row)] = len(rows.names)
                    strings = row_strings(store, lines, [row])
                    rows.add(store.names[which], 0.0, row_texts(store, row), strings, int(row))
            kept.append((place[int(left)], place[int(right)], which, outcome))
    return rows, np.array(kept)


def sample_paragraphs(store: Store, lines: list[str], part: str, most: int) -> Rows:
    """Neighbors joined as `measure_paragraphs` does for sets that choose."""
    documents, rows = Documents(store), Rows()
    for number, name in enumerate(store.names):
        if not name.startswith(part):
            continue
        own = [r for r in sample_rows(store, number, None) if store.columns["document"][r] >= 0]
        done, count = set[int](), 0
        for row in sorted(own, key=lambda r: documents.rank[r]):
            if row in done or count == most:
                continue
            group = documents.neighbors(int(row), 10)
            done.update(group)
            if len(group) > 2:
                texts, human = documents.join(group)
                rows.add(name, human, texts, row_strings(store, lines, group), int(row))
                count += 1
    return rows


def sample_damage(parts: Path, pieces: Pieces, each: int) -> Rows:
    """Damaged copies of outputs, each behind the whole: the last lines of FLORES."""
    outputs, damager = Outputs(parts / "outputs"), Damager(pieces.names)
    rows, count = Rows(), Counter[str]()

    def decode(text: NDArray[np.int32] | None) -> str:
        return "".join(pieces.names[n] for n in text).replace("▁", " ").strip()  # type: ignore[union-attr]

    for kind, whole, broken in iter_damage_pairs(outputs, damager, each):
        for texts in (whole, broken):
            rows.add(kind, 0.0, texts, tuple(decode(t) for t in texts), count[kind])  # type: ignore[arg-type]
        count[kind] += 1
    return rows


def sample_references(store: Store, lines: list[str], part: str, most: int) -> Rows:
    """Human references as hypotheses by the source, each before an output of its segment.

    People put that into the lowest quarter of its set.
    """
    rows, columns = Rows(), store.columns
    compared = set(columns["comparisons"][:, 2].tolist())
    for number, name in enumerate(store.names):
        own = np.flatnonzero((columns["set"] == number) & (columns["human"] == 0))
        there = columns["reference"][own]
        own = own[(there >= 0) & (there != columns["hypothesis"][own])]
        if not name.startswith(part) or number in compared or not len(own):
            continue
        low = own[columns["score"][own] <= np.quantile(columns["score"][own], LOW_QUANTILE)]
        for row in np.sort(np.random.default_rng(7).permutation(low)[:most]):
            texts, strings = row_texts(store, row), row_strings(store, lines, [row])
            for role in (2, 0):  # the reference, then the output
                shown = (strings[role] or "", strings[1], None)
                rows.add(name, 0.0, (texts[role], texts[1], None), shown, int(row))
    return rows


def open_part(folder: Path, pieces: Pieces) -> tuple[Store, list[str]]:
    """A packed part with its lines, in pieces the first time."""
    lines = read_lines(folder / "texts.xz")
    if not (folder / "offsets.npy").exists():
        write_pieces(folder, lines, pieces)
    return Store.open(folder), lines


def iter_samples(
    parts: Path, most: dict[str, Any], pieces: Pieces
) -> Iterator[tuple[str, Rows, dict[str, Any]]]:
    """Names of samples, their rows, and what is saved with them; those that test last."""
    store, lines = open_part(parts / "judgements", pieces)
    read = sample_sets(store, lines, "", most["read"])
    read.extend(sample_paragraphs(store, lines, "", most["joined"]), PARAGRAPH_PREFIX)
    yield "read", read, {}
    held, held_lines = open_part(parts / "held-out", pieces)
    yield "dev", sample_sets(held, held_lines, "dev:", most["dev"]), {}
    yield "dev-paragraphs", sample_paragraphs(held, held_lines, "dev:", most["paragraphs"]), {}
    yield "references", sample_references(held, held_lines, "dev:", most["references"]), {}
    if not (parts / "outputs/READY").exists():
        prepare(parts / "outputs", pieces)
    yield "damage", sample_damage(parts, pieces, most["damage"]), {}
    yield "test", sample_sets(held, held_lines, "test:", most["test"]), {}
    rows, comparisons = sample_comparisons(held, held_lines, most["compared"])
    yield "test-compared", rows, {"comparisons": comparisons}


DEFAULT_LIMITS = {  # rows of a set, paragraphs, pairs with references, kinds of damage, comparisons of a pair
    "read": 8000,
    "joined": 600,
    "dev": 3000,
    "paragraphs": 1500,
    "references": 400,
    "damage": 100,
    "test": 10**9,
    "compared": 1500,
}
