"""Rows of packed parts: judgment and tag kinds, documents, and system outputs on FLORES."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from recipes.multi.damage import Material
from recipes.multi.network import Texts
from recipes.multi.store import Store

Array = NDArray[np.int32]
INPUT_MODES = {"source": (True, False), "reference": (False, True), "both": (True, True)}
MODE_SHARES = (0.4, 0.25, 0.35)
DA, MQM, ESA, QE = range(4)
NO_TAGS, MQM_TAGS, ESA_TAGS, WORD_TAGS = range(4)
TAGS_OF = {DA: NO_TAGS, MQM: MQM_TAGS, ESA: ESA_TAGS, QE: WORD_TAGS}
MAX_PARAGRAPH_PIECES = 300  # of a joined hypothesis in evaluation
HELD_OUT_LINES = 200  # last lines of FLORES, on which damage is measured


def row_texts(store: Store, row: int) -> Texts:
    """Return the pieces of hypothesis, source and reference of a row."""
    columns = store.columns
    return tuple(store.text(int(columns[c][row])) for c in ("hypothesis", "source", "reference"))


@dataclass(frozen=True)
class Shares:
    """Relative sampling rates of datasets, by name prefix."""

    factors: dict[str, float]
    default: float = 1.0

    def factor(self, name: str) -> float:
        return next((f for key, f in self.factors.items() if name.startswith(key)), self.default)


class Documents:
    """Judged rows with their neighbors in a document."""

    def __init__(self, store: Store) -> None:
        self.store, self.lengths = store, store.lengths()
        columns = store.columns
        self.order = np.lexsort((columns["order"], columns["document"]))
        self.rank = np.empty_like(self.order)
        self.rank[self.order] = np.arange(len(self.order))

    def neighbors(self, row: int, limit: int) -> list[int]:
        """Return the row and its successors in the document by the same system.

        Stops at `limit` rows or when the joined hypotheses would be too long.
        """
        columns, rows, pieces_left = self.store.columns, [row], MAX_PARAGRAPH_PIECES
        lengths = self.lengths
        for place in range(int(self.rank[row]) + 1, len(self.order)):
            following = int(self.order[place])
            pieces_left -= int(lengths[int(columns["hypothesis"][rows[-1]])])
            if (
                columns["document"][following] != columns["document"][row]
                or len(rows) == limit
                or columns["order"][following] - columns["order"][rows[-1]] > 2
                or (columns["reference"][following] < 0) != (columns["reference"][row] < 0)
                or lengths[int(columns["hypothesis"][following])] > pieces_left
            ):
                break
            rows.append(following)
        return rows

    def join(self, rows: Sequence[int]) -> tuple[Texts, float]:
        """Join rows to a paragraph; its score is the mean weighted by hypothesis length."""
        columns = self.store.columns
        sizes = np.maximum(self.lengths[columns["hypothesis"][rows]], 1)
        texts: Texts = tuple(
            None if any(part is None for part in parts) else np.concatenate(parts)
            for parts in zip(*(row_texts(self.store, row) for row in rows), strict=True)
        )
        return texts, float(np.average(columns["score"][rows], weights=sizes))


class Outputs:
    """Outputs of many systems on FLORES; line n of all languages and systems is stored together."""

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


def material_of(
    texts: Texts, same_language: NDArray[np.int32], other_language: NDArray[np.int32]
) -> Material:
    """Return the texts that damage of an output can use."""
    text, source, *_ = texts
    assert text is not None
    assert source is not None
    return Material(text, source, same_language, other_language)
