"""Word edit distance of long texts: time and memory grow with the length, not with its square.

TER evaluates up to 1,000 shifts per pair of texts. `LongTable` evaluates a shift from its first to
its last moved word only, and gives the results of the tables in `text/edit_distance.py`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain

import numpy as np

from tertium.arrays import IntArray
from tertium.text.edit_distance import (
    DELETION,
    INSERTION,
    MATCH,
    SHIFT_BATCH,
    SUBSTITUTION,
    Shift,
    Words,
    beam_middles,
    walk_back,
)

_DIAGONAL = np.array([ord(MATCH), ord(SUBSTITUTION)], dtype=np.uint8)
_STRAIGHT = np.array([ord(DELETION), ord(INSERTION)], dtype=np.uint8)


class LongTable:
    """Any costs within a beam, as `CostTable`, with distances from the start and to the end.

    Both are stored less `deletion` for each row and `insertion` for each column on the way. The
    distance after a shift is the least sum of a distance from the start, with the words that moved,
    and one to the end. After a shift is made, rows are filled until all cells of a row have changed
    by the same amount; this is the change of all rows beyond.

    >>> table = LongTable([1, 2, 3, 4], [1, 3, 5, 4], [(1, 1, 1), (1, 1, 3)])
    >>> table.distances, table.path(0), table.path(1)
    ([2, 2], ' ss ', ' i d ')
    """

    batch_size = SHIFT_BATCH

    def __init__(
        self,
        reference: Words,
        hypothesis: Words,
        costs: Sequence[tuple[int, int, int]],
    ) -> None:
        rows, columns = len(hypothesis), len(reference)
        middles, half = beam_middles(rows, columns)
        # Row 0 has all columns that row 1 reads; the last column of other rows is not in the beam.
        self._width = width = 2 * half + 1
        first = middles[0] - half - 1 if middles else columns + 1 - width
        self._lows = np.array([first, *(middle - half for middle in middles)])
        self._steps = np.diff(self._lows, prepend=first)
        # Each row has cells left and right of the beam that the next or the last row may read.
        self._pad = pad = max(1, int(self._steps.max()))
        cells = self._lows[:, None] + np.arange(-pad, width + pad)
        self._codes = np.array([-1, *reference, -1], dtype=np.int32)[np.clip(cells, 0, columns + 1)]
        self._is_inside = (cells >= 0) & (cells <= columns)
        self._is_inside[:, :pad] = self._is_inside[:, pad + width :] = False
        self._is_inside[1:, pad + width - 1] = False
        self._infinity = 8 * (1 + max(map(max, costs))) * (columns + rows)
        # Costs of any size are supported: Python integers where int64 would overflow.
        kind = next(
            (k for k in (np.int32, np.int64) if self._infinity < np.iinfo(k).max // 4), object
        )
        insertion, deletion, substitution = np.array(costs, dtype=kind).T
        self._match_cost = -insertion - deletion
        self._mismatch_cost = substitution - insertion - deletion
        self._offset = rows * deletion + columns * insertion
        self._words = np.array([hypothesis] * len(costs), dtype=np.int64)  # (costs, words)
        self._last_cell = pad + columns - int(self._lows[-1])
        self._from_start = np.full((len(costs), *cells.shape), self._infinity, dtype=kind)
        self._from_start[:, 0, self._is_inside[0]] = 0
        self._to_end: IntArray | None = None
        self._last_steps = np.zeros((len(costs), rows + 1, width), dtype=np.uint8)
        self._fill(slice(None), range(1, rows + 1), rows)

    @property
    def distances(self) -> list[int]:
        distances: list[int] = (self._offset + self._from_start[:, -1, self._last_cell]).tolist()
        return distances

    @property
    def size(self) -> int:
        """The number of stored cells."""
        return self._from_start.size + (0 if self._to_end is None else self._to_end.size)

    def update(self, shifts: Sequence[Shift | None]) -> None:
        """Apply one shift to each hypothesis, or none."""
        rows = self._words.shape[1]
        for owner, shift in enumerate(shifts):
            if shift is not None:
                self._words[owner] = shift(tuple(self._words[owner]))
                start, _, end = shift
                own = slice(owner, owner + 1)
                self._fill(own, range(start + 1, rows + 1), end)
                if self._to_end is not None:
                    self._fill_back(self._to_end, own, range(min(end, rows) - 1, -1, -1), start)

    def distances_after(self, shifts: Sequence[Sequence[Shift]]) -> list[Iterator[int]]:
        if self._to_end is None:
            rows = self._words.shape[1]
            self._to_end = np.full_like(self._from_start, self._infinity)
            self._to_end[:, -1, self._is_inside[-1]] = 0
            self._fill_back(self._to_end, slice(None), range(rows - 1, -1, -1), 0)
        owned = [(owner, shift) for owner, row in enumerate(shifts) for shift in row]
        batches = [owned[n : n + SHIFT_BATCH] for n in range(0, len(owned), SHIFT_BATCH)]
        to_end = self._to_end
        distances = chain.from_iterable(self._measure(batch, to_end) for batch in batches)
        return [iter([next(distances) for _ in row]) for row in shifts]

    def max_gains(self, owner: int, blocks: Sequence[tuple[int, int]]) -> Sequence[int]:
        """Return no bounds: a shift may bring words into the beam."""
        return [self.distances[owner]] * len(blocks)

    def _measure(self, shifts: Sequence[tuple[int, Shift]], to_end: IntArray) -> list[int]:
        """Compute the distance after each (owner, shift), all from their first moved word on."""
        owners = np.array([owner for owner, _ in shifts])
        starts, _, ends = np.array([shift for _, shift in shifts]).T
        ends = np.minimum(ends, len(self._lows) - 1)  # a block may be moved beyond the last word
        moved = np.full((len(shifts), int((ends - starts).max())), -2)
        for row, (owner, (start, middle, end)) in zip(moved, shifts, strict=True):
            words = self._words[owner]
            block = np.concatenate([words[middle:end], words[start:middle]])
            row[: len(block)] = block
        each, beam_cells = np.arange(len(shifts))[:, None], np.arange(self._width) + self._pad
        equal, other = self._match_cost[owners, None], self._mismatch_cost[owners, None]
        cells = self._from_start[owners, starts]
        best = cells + to_end[owners, starts]
        for n, words in enumerate(moved.T, 1):
            rows = np.minimum(starts + n, len(self._lows) - 1)
            above = beam_cells + self._steps[rows][:, None]
            costs = np.where(self._codes[rows][:, beam_cells] == words[:, None], equal, other)
            here = np.minimum(cells[each, above - 1] + costs, cells[each, above])
            self._beam(cells)[:] = np.minimum.accumulate(here, axis=1)
            cells[:, self._pad + self._width - 1] = self._infinity
            done = ends == starts + n
            best[done] = cells[done] + to_end[owners[done], ends[done]]
        distances: list[int] = (self._offset[owners] + best.min(axis=1)).tolist()
        return distances

    def _fill(self, owners: slice, rows: Iterable[int], end: int) -> None:
        """Compute distances from the start in `rows`; words after row `end` have not changed."""
        table, pad, width = self._from_start, self._pad, self._width
        equal, other = self._match_cost[owners, None], self._mismatch_cost[owners, None]
        for row in rows:
            left, before = pad + self._steps[row], table[owners, row - 1]
            words = self._words[owners, row - 1, None]
            is_match, above = self._beam(self._codes[row]) == words, before[:, left : left + width]
            diagonal = before[:, left - 1 : left - 1 + width] + np.where(is_match, equal, other)
            here = np.minimum.accumulate(np.minimum(diagonal, above), axis=1)
            self._last_steps[owners, row] = np.where(
                here == diagonal,
                np.where(is_match, *_DIAGONAL),
                np.where(here == above, *_STRAIGHT),
            )
            here[:, -1] = self._infinity
            change = self._change(table, owners, row, here) if row > end else None
            self._beam(table)[owners, row] = here
            if change is not None:
                table[owners, row + 1 :] += change
                return

    def _fill_back(self, table: IntArray, owners: slice, rows: Iterable[int], start: int) -> None:
        """Compute distances to the end, as `_fill`; words before row `start` have not changed."""
        pad, width = self._pad, self._width
        equal, other = self._match_cost[owners, None], self._mismatch_cost[owners, None]
        for row in rows:
            left, below = pad - self._steps[row + 1], table[owners, row + 1]
            words = self._words[owners, row, None]
            diagonal = below + np.where(self._codes[row + 1] == words, equal, other)
            here = diagonal[:, left + 1 : left + 1 + width]
            here = np.minimum(here, below[:, left : left + width])
            if row:
                here[:, -1] = self._infinity
            here = np.minimum.accumulate(here[:, ::-1], axis=1)[:, ::-1]
            change = self._change(table, owners, row, here) if row < start else None
            self._beam(table)[owners, row] = here
            if change is not None:
                table[owners, :row] += change
                return

    def _beam(self, cells: IntArray) -> IntArray:
        return cells[..., self._pad : self._pad + self._width]

    def _change(self, table: IntArray, owners: slice, row: int, cells: IntArray) -> IntArray | None:
        """Return by how much a row changes, (owners, 1, 1), if it is the same in all its cells."""
        change = cells - self._beam(table)[owners, row]
        middle = change[:, self._width // 2, None]
        if ((change == middle) | ~self._is_inside[row, self._pad : self._pad + self._width]).all():
            return middle[:, None]
        return None

    def path(self, owner: int = 0) -> str:
        steps: str = self._last_steps[owner].tobytes().decode("ascii")
        starts = (np.arange(len(self._lows)) * self._width - self._lows).tolist()

        def last_step(row: int, column: int) -> str:
            return steps[starts[row] + column]

        columns = self._last_cell - self._pad + int(self._lows[-1])
        return walk_back(len(starts) - 1, columns, last_step)
