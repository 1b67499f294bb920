"""Sample rows of packed parts for the frozen tertium-multi: datasets, paragraphs, damage."""

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
    """Sampled rows: dataset, human score, and texts as pieces and as strings."""

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

    def extend(self, new_rows: Rows, prefix: str) -> None:
        """Append other rows; their dataset names get a prefix."""
        self.names += [prefix + name for name in new_rows.names]
        self.human += new_rows.human
        self.texts += new_rows.texts
        self.strings += new_rows.strings
        self.keys += new_rows.keys

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
    """Return the texts of a row, or of several rows joined."""
    texts = []
    for column in ("hypothesis", "source", "reference"):
        numbers = store.columns[column][list(rows)]
        texts.append(None if (numbers < 0).any() else " ".join(lines[n] for n in numbers))
    return tuple(texts)  # type: ignore[return-value]


def sample_sets(store: Store, lines: list[str], part: str, limit: int) -> Rows:
    """Sample rows of every dataset of a part."""
    rows = Rows()
    compared = set(store.columns["comparisons"][:, 2].tolist())
    for number, name in enumerate(store.names):
        if name.startswith(part) and number not in compared:
            for row in sample_rows(store, number, limit):
                human = float(store.columns["score"][row])
                rows.add(
                    name, human, row_texts(store, row), row_strings(store, lines, [row]), int(row)
                )
    return rows


def sample_comparisons(
    store: Store, lines: list[str], limit: int
) -> tuple[Rows, NDArray[np.int64]]:
    """Return rows of some strict comparisons and (left, right, set, outcome)."""
    strict = store.columns["comparisons"]
    strict = strict[strict[:, 3] != 0]
    rng, rows, place, comparisons = np.random.default_rng(5), Rows(), dict[int, int](), []
    for number in np.unique(strict[:, 2]):
        for left, right, judge, outcome in rng.permutation(strict[strict[:, 2] == number])[:limit]:
            for row in (left, right):
                if int(row) not in place:
                    place[int(row)] = len(rows.names)
                    strings = row_strings(store, lines, [row])
                    rows.add(store.names[judge], 0.0, row_texts(store, row), strings, int(row))
            comparisons.append((place[int(left)], place[int(right)], judge, outcome))
    return rows, np.array(comparisons)


def sample_paragraphs(store: Store, lines: list[str], part: str, limit: int) -> Rows:
    """Join neighboring rows as `measure_paragraphs` does."""
    documents, rows = Documents(store), Rows()
    for number, name in enumerate(store.names):
        if not name.startswith(part):
            continue
        rows_of_set = [
            r for r in sample_rows(store, number, None) if store.columns["document"][r] >= 0
        ]
        used, count = set[int](), 0
        for row in sorted(rows_of_set, key=lambda r: documents.rank[r]):
            if row in used or count == limit:
                continue
            group = documents.neighbors(int(row), 10)
            used.update(group)
            if len(group) > 2:
                texts, human = documents.join(group)
                rows.add(name, human, texts, row_strings(store, lines, group), int(row))
                count += 1
    return rows


def sample_damage(parts: Path, pieces: Pieces, count_per_kind: int) -> Rows:
    """Return outputs of the held-out FLORES lines, each followed by a damaged version."""
    outputs, damager = Outputs(parts / "outputs"), Damager(pieces.names)
    rows, count = Rows(), Counter[str]()

    def decode(text: NDArray[np.int32] | None) -> str:
        return "".join(pieces.names[n] for n in text).replace("▁", " ").strip()  # type: ignore[union-attr]

    for kind, intact, damaged in iter_damage_pairs(outputs, damager, count_per_kind):
        for texts in (intact, damaged):
            rows.add(kind, 0.0, texts, tuple(decode(t) for t in texts), count[kind])  # type: ignore[arg-type]
        count[kind] += 1
    return rows


def sample_references(store: Store, lines: list[str], part: str, limit: int) -> Rows:
    """Return human references as source-only hypotheses, each before a poor output.

    Poor outputs have a human score in the lowest quarter of their dataset.
    """
    rows, columns = Rows(), store.columns
    compared = set(columns["comparisons"][:, 2].tolist())
    for number, name in enumerate(store.names):
        rows_of_set = np.flatnonzero((columns["set"] == number) & (columns["human"] == 0))
        references = columns["reference"][rows_of_set]
        rows_of_set = rows_of_set[
            (references >= 0) & (references != columns["hypothesis"][rows_of_set])
        ]
        if not name.startswith(part) or number in compared or not len(rows_of_set):
            continue
        low = rows_of_set[
            columns["score"][rows_of_set]
            <= np.quantile(columns["score"][rows_of_set], LOW_QUANTILE)
        ]
        for row in np.sort(np.random.default_rng(7).permutation(low)[:limit]):
            texts, strings = row_texts(store, row), row_strings(store, lines, [row])
            for role in (2, 0):  # the reference, then the output
                visible_texts = (strings[role] or "", strings[1], None)
                rows.add(name, 0.0, (texts[role], texts[1], None), visible_texts, int(row))
    return rows


def open_part(folder: Path, pieces: Pieces) -> tuple[Store, list[str]]:
    """Open a packed part with its lines; tokenize it the first time."""
    lines = read_lines(folder / "texts.xz")
    if not (folder / "offsets.npy").exists():
        write_pieces(folder, lines, pieces)
    return Store.open(folder), lines


def iter_samples(
    parts: Path, limits: dict[str, Any], pieces: Pieces
) -> Iterator[tuple[str, Rows, dict[str, Any]]]:
    """Yield the name, rows and extra columns of each sample; test sets come last."""
    store, lines = open_part(parts / "judgements", pieces)
    read = sample_sets(store, lines, "", limits["read"])
    read.extend(sample_paragraphs(store, lines, "", limits["joined"]), PARAGRAPH_PREFIX)
    yield "read", read, {}
    held_out, held_lines = open_part(parts / "held-out", pieces)
    yield "dev", sample_sets(held_out, held_lines, "dev:", limits["dev"]), {}
    yield (
        "dev-paragraphs",
        sample_paragraphs(held_out, held_lines, "dev:", limits["paragraphs"]),
        {},
    )
    yield "references", sample_references(held_out, held_lines, "dev:", limits["references"]), {}
    if not (parts / "outputs/READY").exists():
        prepare(parts / "outputs", pieces)
    yield "damage", sample_damage(parts, pieces, limits["damage"]), {}
    yield "test", sample_sets(held_out, held_lines, "test:", limits["test"]), {}
    rows, comparisons = sample_comparisons(held_out, held_lines, limits["compared"])
    yield "test-compared", rows, {"comparisons": comparisons}


DEFAULT_LIMITS = {
    "read": 8000,  # training rows per dataset, for readouts
    "joined": 600,  # training paragraphs per dataset
    "dev": 3000,  # rows per development set
    "paragraphs": 1500,  # paragraphs per development set
    "references": 400,  # pairs of a reference and a poor output per dataset
    "damage": 100,  # texts per kind of damage
    "test": 10**9,  # rows per test set
    "compared": 1500,  # comparisons per language pair
}
