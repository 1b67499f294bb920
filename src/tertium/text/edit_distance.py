"""Word edit distances as tables of which a part can be computed anew, when some words have moved.

Row i is the hypothesis up to word i, column j the reference up to word j; TER looks at cells within
a beam around the diagonal alone. `BitTable` holds a row of the matrix in two integers, one bit for
each reference word (Myers 1999, as simplified by Hyyrö 2003), so that a row costs a dozen integer
operations; it knows unit costs and no beam. `BeamTable` does the same within the beam. `CostTable`
fills the matrix cell by cell, under any costs; several costs, and all shifts under each, go side by
side. `edit_table` takes the quickest that is exact.

A path from (0, 0) to the end is a string of operations that turn the hypothesis into the reference;
where several are equally cheap, it is read from the end backwards and prefers a match or
substitution, then a deletion.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from typing import NamedTuple

import numpy as np

from tertium.arrays import IntArray

MATCH, SUBSTITUTION, DELETION, INSERTION = " ", "s", "d", "i"

BEAM_WIDTH = 25  # Tercom's and sacrebleu's
SHIFT_BATCH = 256  # shifts that are measured together: more would take memory and no less time

Words = tuple[int, ...]


class Shift(NamedTuple):
    """A block of words moves: the two parts of a stretch, that meet in the middle, change places.

    >>> Shift(1, 3, 5)((0, 1, 2, 3, 4))
    (0, 3, 4, 1, 2)
    """

    start: int
    middle: int
    end: int

    def __call__(self, words: Words) -> Words:
        """The words after it."""
        start, middle, end = self
        return words[:start] + words[middle:end] + words[start:middle] + words[end:]


_Row = tuple[int, int, int, int, int, int]


class BitTable:
    """Unit costs, no beam: differences between neighboring cells as bits of integers.

    `_rows[i]` holds, one bit for each j, where D[i][j] - D[i][j-1] is +1 and where it is -1, and
    what a path needs: where the words are equal, where D[i][j] = D[i-1][j-1], and where
    D[i][j] - D[i-1][j] is +1. The last number is for tables with a beam.

    >>> table = BitTable([1, 2, 3, 4], [1, 3, 5, 4])
    >>> table.distances, table.path()
    ([2], ' ss ')
    >>> [[*some] for some in table.distances_after([[Shift(2, 3, 4), Shift(0, 1, 2)]])]
    [[2, 3]]
    """

    bounded = True  # moving n words changes the distance by at most n deletions and n insertions

    def __init__(self, reference: Words, hypothesis: Words) -> None:
        self._positions: dict[int, int] = {}
        for column, word in enumerate(reference):
            self._positions[word] = self._positions.get(word, 0) | 1 << column
        self._width = len(reference)
        self._full = (1 << self._width) - 1
        self._rows: list[_Row] = [(self._full, 0, 0, 0, 0, self._width)]
        self.update([hypothesis], 0)

    def update(self, words: Sequence[Words], start: int) -> None:
        """Replace the hypotheses, here the only one; the first `start` words stay as they are."""
        [self._words] = words
        del self._rows[start + 1 :]
        self.distances = [self._fill(self._words, start, self._rows)]

    def distances_after(self, shifts: Sequence[Sequence[Shift]]) -> list[Iterator[int]]:
        """The distance after each shift of each hypothesis, measured as it is asked for."""
        words = self._words
        return [(self._fill(shift(words), shift.start, None) for shift in some) for some in shifts]

    def _fill(self, words: Sequence[int], start: int, rows: list[_Row] | None) -> int:
        """The distance, from the row at `start` on; the rows after it are kept in `rows`."""
        full, positions = self._full, self._positions
        plus, minus = self._rows[start][:2]
        for word in words[start:]:
            matches = positions.get(word, 0)
            diagonal = ((((matches & plus) + plus) ^ plus) | matches | minus) & full
            down = minus | (full ^ (diagonal | plus))
            shifted = (down << 1) | 1
            minus = shifted & diagonal
            plus = (((diagonal & plus) << 1) | ~(shifted | diagonal)) & full
            if rows is not None:
                rows.append((plus, minus, matches, diagonal, down, 0))
        return len(words) + plus.bit_count() - minus.bit_count()

    def path(self, owner: int = 0) -> str:
        """The operations that turn a hypothesis into the reference."""

        def last_step(row: int, column: int) -> str:
            _, _, matches, diagonal, down, _ = self._rows[row]
            bit = 1 << (column - 1)
            if matches & bit or not diagonal & bit:
                return MATCH if matches & bit else SUBSTITUTION
            return DELETION if down & bit else INSERTION

        return _walk_back(len(self._rows) - 1, self._width, last_step)


class BeamTable(BitTable):
    """Unit costs within a beam: cells outside it are made so dear that no path gains by them.

    To the left of the beam a cell is worse by one than its right neighbor, to the right by one
    than its left neighbor, and there no words are equal. The last number of a row is D[i][j] at
    the last column under this rule.

    >>> reference, hypothesis = [*range(-30, 60)], [*range(60), *range(90, 120)]
    >>> BitTable(reference, hypothesis).distances, BeamTable(reference, hypothesis).distances
    ([60], [90])
    """

    bounded = False

    def __init__(self, reference: Words, hypothesis: Words) -> None:
        self._masks = _masks(len(hypothesis), len(reference))
        super().__init__(reference, hypothesis)

    def _fill(self, words: Sequence[int], start: int, rows: list[_Row] | None) -> int:
        full, positions, last = self._full, self._positions, 1 << self._width >> 1
        plus, minus, value = self._rows[start][0], self._rows[start][1], self._rows[start][5]
        for word, (left, right, span, beyond) in zip(
            words[start:], self._masks[start:], strict=True
        ):
            matches = positions.get(word, 0) & span
            plus, minus = plus & ~left, minus | left
            diagonal = ((((matches & plus) + plus) ^ plus) | matches | minus) & full
            down, up = minus | (full ^ (diagonal | plus)), diagonal & plus
            value += bool(down & last) - bool(up & last)
            shifted = (down << 1) | 1
            minus, plus = shifted & diagonal, ((up << 1) | ~(shifted | diagonal)) & full
            value += (right & ~plus).bit_count() + (right & minus).bit_count()
            plus, minus = plus | right, minus & ~right
            if rows is not None:
                rows.append((plus, minus, matches, diagonal | beyond, down, value))
        return value


def _masks(rows: int, columns: int) -> list[tuple[int, int, int, int]]:
    """For each row the columns left and right of its beam, those that a diagonal step from the row
    above can reach, and those beyond it; column j is bit j - 1."""
    full = (1 << columns) - 1
    masks = []
    low, high = 0, columns + 1
    for next_low, next_high in beam(rows, columns):
        left = (1 << max(next_low - 1, low)) - 1
        right = full & ~((1 << (next_high - 1)) - 1)
        reached = full & ((1 << high) - 1)
        masks.append((left, right, reached & ~((1 << low) - 1), full & ~reached))
        low, high = next_low, next_high
    return masks


class CostTable:
    """Any costs, within a beam: cell by cell, but side by side for several costs and shifts.

        D[i][j] = min(D[i-1][j-1] + substitution unless equal, D[i-1][j] + deletion,
                      D[i][j-1] + insertion)

    What is kept is D[i][j] - i * deletion - j * insertion: a step down or to the right is then
    free, and a row the running minimum of what comes from above. Cells outside the beam are never
    entered and not kept: memory grows with the length of the hypothesis times the width of the
    beam. Each of `costs` holds those of an insertion, a deletion and a substitution, in whole
    units, so that sums are exact; under each the hypothesis goes its own way.

    >>> table = CostTable([1, 2, 3, 4], [1, 3, 5, 4], [(1, 1, 1), (1, 1, 3)])
    >>> table.distances, table.path(0), table.path(1)
    ([2, 2], ' ss ', ' i d ')
    """

    bounded = False  # a beam may hide what a shift brings into it

    def __init__(
        self,
        reference: Words,
        hypothesis: Words,
        costs: Sequence[tuple[int, int, int]],
    ) -> None:
        self._spans = [(0, len(reference) + 1), *beam(len(hypothesis), len(reference))]
        self._infinity = 8 * (1 + max(map(max, costs))) * (len(reference) + len(hypothesis))
        # costs may be of any size: what numpy cannot add goes through Python
        kind = np.int64 if self._infinity < 1 << 61 else object
        insertion, deletion, substitution = np.array(costs, dtype=kind).T
        self._equal, self._other = -insertion - deletion, substitution - insertion - deletion
        self._all = len(hypothesis) * deletion + len(reference) * insertion
        self._reference = np.array([-1, *reference])  # by column; the first has no word
        self._rows = [np.zeros((len(costs), len(reference) + 1), dtype=kind)]
        self.update([hypothesis] * len(costs), 0)

    @property
    def size(self) -> int:
        """The number of cells that are kept."""
        return sum(row.size for row in self._rows)

    def update(self, words: Sequence[Words], start: int) -> None:
        self._words = np.array(words, dtype=np.int64)  # (costs, words)
        del self._rows[start + 1 :]
        everyone = np.arange(len(words))
        self._rows += [row.copy() for row in self._below(self._words, everyone, start)]
        self.distances = (self._all + self._rows[-1][:, -1]).tolist()

    def distances_after(self, shifts: Sequence[Sequence[Shift]]) -> list[Iterator[int]]:
        owned = [(owner, shift) for owner, some in enumerate(shifts) for shift in some]
        parts = (owned[n : n + SHIFT_BATCH] for n in range(0, len(owned), SHIFT_BATCH))
        distances = chain.from_iterable(map(self._measure, parts))
        return [iter([next(distances) for _ in some]) for some in shifts]

    def _measure(self, shifts: Sequence[tuple[int, Shift]]) -> list[int]:
        """The distance after each shift of the hypothesis of its owner."""
        owners = np.array([owner for owner, _ in shifts])
        moved = self._words[owners]  # (shifts, words)
        for row, (_, (start, middle, end)) in zip(moved, shifts, strict=True):
            row[start:end] = np.concatenate([row[middle:end], row[start:middle]])
        *_, last = self._below(moved, owners, min(shift.start for _, shift in shifts))
        distances: list[int] = (self._all[owners] + last[:, -1]).tolist()
        return distances

    def _below(self, words: IntArray, owners: IntArray, start: int) -> Iterator[IntArray]:
        """The rows below one, (hypotheses, width); each holds until the next.

        `words` are those of hypotheses, (hypotheses, words), `owners` say which costs are theirs.
        All rows are made in one place, of which column j is at j + 1.
        """
        equal, other = self._equal[owners, None], self._other[owners, None]
        low, high = self._spans[start]
        shape, kind = (len(words), len(self._reference) + 1), self._equal.dtype
        cells = np.full(shape, self._infinity, dtype=kind)
        cells[:, low + 1 : high + 1] = self._rows[start][owners]
        for row, (low, high) in enumerate(self._spans[start + 1 :], start):
            matches = words[:, row, None] == self._reference[low:high]
            diagonal = cells[:, low:high] + np.where(matches, equal, other)
            here = cells[:, low + 1 : high + 1]
            np.minimum.accumulate(np.minimum(diagonal, here), axis=1, out=here)
            cells[:, low] = self._infinity  # no longer within the beam
            if not row:
                cells[:, high + 1 :] = self._infinity
            yield here

    def path(self, owner: int = 0) -> str:
        rows = [row[owner].tolist() for row in self._rows]
        words, reference = self._words[owner].tolist(), self._reference.tolist()
        step = {True: self._equal[owner], False: self._other[owner]}

        def cell(row: int, column: int) -> int:
            low, high = self._spans[row]
            return rows[row][column - low] if low <= column < high else self._infinity

        def last_step(row: int, column: int) -> str:
            here, equal = cell(row, column), words[row - 1] == reference[column]
            if here == cell(row - 1, column - 1) + step[equal]:
                return MATCH if equal else SUBSTITUTION
            return DELETION if here == cell(row - 1, column) else INSERTION

        return _walk_back(len(words), len(reference) - 1, last_step)


def _walk_back(row: int, column: int, last_step: Callable[[int, int], str]) -> str:
    """The path to a cell, of which each cell tells the last step."""
    steps: list[str] = []
    while row and column:
        step = last_step(row, column)
        steps.append(step)
        row -= step != INSERTION
        column -= step != DELETION
    return DELETION * row + INSERTION * column + "".join(reversed(steps))


EditTable = BitTable | CostTable


def edit_table(
    reference: Words, hypothesis: Words, costs: Sequence[tuple[int, int, int]]
) -> EditTable:
    """The quickest table that is exact: within the beam, under each of some costs."""
    if [*costs] != [(1, 1, 1)]:
        return CostTable(reference, hypothesis, costs)
    table = BitTable(reference, hypothesis)
    if beam_is_inert(len(hypothesis), len(reference), table.distances[0]):
        return table
    return BeamTable(reference, hypothesis)


def beam(rows: int, columns: int) -> list[tuple[int, int]]:
    """The columns [low, high) that each row after the first may enter.

    They lie around the straight line between the corners of the matrix, and in the last row reach
    its end; a hypothesis far shorter than its reference gets a wider beam, so that rows overlap.

    >>> beam(3, 60)
    [(0, 45), (15, 61), (35, 61)]
    """
    ratio = columns / rows if rows else 1.0
    width = math.ceil(ratio / 2 + BEAM_WIDTH) if ratio / 2 > BEAM_WIDTH else BEAM_WIDTH
    middles = [math.floor(row * ratio) for row in range(1, rows + 1)]
    spans = [(max(0, m - width), min(columns + 1, m + width)) for m in middles]
    if spans:
        spans[-1] = (spans[-1][0], columns + 1)
    return spans


def beam_is_inert(rows: int, columns: int, distance: int) -> bool:
    """Whether no path that costs at most `distance` (in unit costs) can leave the beam.

    A path through (i, j) costs at least |j - i| + |(columns - j) - (rows - i)|, so cheap paths stay
    near the diagonal; then the beam changes neither the distance nor the choice among equals.
    """
    longer = columns - rows
    below, above = (distance - longer) // 2, (distance + longer) // 2
    # The middle of a beam is off i by between 0 and `longer`; floats may round it one down.
    return max(0, longer) + below <= BEAM_WIDTH and above - min(0, longer) <= BEAM_WIDTH - 2
