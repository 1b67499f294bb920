"""What rows of packed parts are: kinds of judgments and tags, documents, outputs of systems."""

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
LONGEST = 300  # pieces of a hypothesis that is joined to be measured
HELD_OUT_LINES = 200  # the last of FLORES: damage is measured on them


def row_texts(store: Store, row: int) -> Texts:
    columns = store.columns
    return tuple(store.text(int(columns[c][row])) for c in ("hypothesis", "source", "reference"))


@dataclass(frozen=True)
class Shares:
    """How often rows of a set are drawn, against one row of a plain modern set."""

    factors: dict[str, float]
    other: float = 1.0

    def of(self, name: str) -> float:
        return next((f for key, f in self.factors.items() if name.startswith(key)), self.other)


class Documents:
    """Judged rows with their neighbors in a document."""

    def __init__(self, store: Store) -> None:
        self.store, self.lengths = store, store.lengths()
        columns = store.columns
        self.order = np.lexsort((columns["order"], columns["document"]))
        self.rank = np.empty_like(self.order)
        self.rank[self.order] = np.arange(len(self.order))

    def neighbors(self, row: int, most: int) -> list[int]:
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

    def join(self, rows: Sequence[int]) -> tuple[Texts, float]:
        """A paragraph: texts joined, scores averaged by the length of the hypotheses."""
        columns = self.store.columns
        sizes = np.maximum(self.lengths[columns["hypothesis"][rows]], 1)
        texts: Texts = tuple(
            None if any(part is None for part in parts) else np.concatenate(parts)
            for parts in zip(*(row_texts(self.store, row) for row in rows), strict=True)
        )
        return texts, float(np.average(columns["score"][rows], weights=sizes))


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


def material_of(texts: Texts, other: NDArray[np.int32], foreign: NDArray[np.int32]) -> Material:
    """What an output can be damaged with; outputs have a text and a source."""
    text, source, *_ = texts
    assert text is not None
    assert source is not None
    return Material(text, source, other, foreign)
