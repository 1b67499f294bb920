"""The edits of TER: insertions, deletions, substitutions and block shifts.

Snover et al. (2006): shifts are chosen greedily, each time the one that lowers the word edit
distance most, until no shift helps; the remaining differences are insertions, deletions and
substitutions. Candidates, limits and tie-breaking are those of Tercom and sacrebleu: with unit
costs the number of edits equals sacrebleu's on every input.

No shift can lower the distance below the cost of the differing words; one that reaches it ends the
search. Searches with several costs run together.

The tables of word edit distances can be updated after some words have moved. Row i is the
hypothesis up to word i, column j the reference up to word j. TER only uses cells within a beam
around the diagonal. `BitTable` stores a row of the matrix in two integers, one bit per reference
word (Myers 1999, simplified by Hyyrö 2003); it supports unit costs without a beam. `BeamTable` does
the same within the beam. `CostTable` fills the matrix cell by cell with any costs, vectorized over
several costs and shifts.

After a shift, the matrix is computed from the first moved word on. Within the beam it is computed
only to the first row, after the last moved word, where all cells have changed by the same amount:
then so have all cells below.

A path from (0, 0) to the end is a string of operations that turn the hypothesis into the reference.
Ties are resolved backwards from the end: match or substitution first, then deletion.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import astuple, dataclass
from functools import cached_property, lru_cache
from typing import NamedTuple

import numpy as np

from tertium.core.arrays import IntArray

# The limits of sacrebleu; other values would change the number of edits.
MAX_BLOCK = 10
MAX_SHIFT_DISTANCE = 50
MAX_CANDIDATES = 1000

COST_STEPS = 20  # costs are multiples of 1/20


@dataclass(frozen=True, kw_only=True)
class Costs:
    """The cost of each kind of edit, a multiple of 0.05."""

    insertion: float = 1.0
    deletion: float = 1.0
    substitution: float = 1.0
    shift: float = 1.0

    @cached_property
    def steps(self) -> tuple[int, ...]:
        """The costs as integers, for exact sums."""
        return tuple(round(COST_STEPS * cost) for cost in astuple(self))


UNIT_COSTS = (1, 1, 1, 1)


class Edits(NamedTuple):
    """The number of edits of each kind that turn a hypothesis into a reference."""

    insertions: int = 0
    deletions: int = 0
    substitutions: int = 0
    shifts: int = 0

    @property
    def total(self) -> int:
        return sum(self)

    def cost(self, costs: Costs) -> float:
        return math.fsum(n * cost for n, cost in zip(self, astuple(costs), strict=True))


def count_edits(hypothesis: Sequence[Hashable], reference: Sequence[Hashable]) -> Edits:
    """Count the edits that turn one list of words into another, with TER's greedy search.

    TER is the total divided by the reference length.

    >>> count_edits("on the mat sat a cat".split(), "a cat sat on the mat".split())
    Edits(insertions=0, deletions=0, substitutions=0, shifts=2)
    >>> count_edits("a cat sat".split(), "a black cat sits".split())
    Edits(insertions=1, deletions=0, substitutions=1, shifts=0)
    """
    return count_edits_for_costs((), hypothesis, reference)[0]


def count_edits_for_costs(
    costs: Sequence[Costs], hypothesis: Sequence[Hashable], reference: Sequence[Hashable]
) -> list[Edits]:
    """Count edits with each of several costs, much faster than one by one; `()` is unit costs.

    A shift is made if it lowers the cost of the other edits by at least its own cost.

    >>> words = "a cat sat".split(), "a black cat sits".split()
    >>> count_edits_for_costs([Costs(substitution=3.0)], *words)
    [Edits(insertions=2, deletions=1, substitutions=0, shifts=0)]
    """
    count = len(costs) or 1
    if not hypothesis or not reference:
        return [Edits(insertions=len(reference), deletions=len(hypothesis))] * count
    codes: dict[Hashable, int] = {}
    target = tuple(codes.setdefault(word, len(codes)) for word in reference)
    words = tuple(codes.setdefault(word, len(codes)) for word in hypothesis)
    if words == target:
        return [Edits()] * count
    integers = [choice.steps for choice in costs]
    table = CostTable(target, words, integers) if costs else unit_table(target, words)
    searches = [_ShiftSearch(words, target, row) for row in integers or [UNIT_COSTS]]
    _shift_until_best(table, searches)
    return [search.edits for search in searches]


_Block = tuple[int, int, int]  # length, -start, -destination


@dataclass(eq=False)
class _ShiftSearch:
    """The greedy search for shifts with one set of costs: the current words and edits."""

    words: Words
    target: Words
    costs: tuple[int, ...]
    _path: str = ""
    _shifts: int = 0
    _candidate_count: int = 0
    _distance: int = 0
    _is_over: bool = False

    def __post_init__(self) -> None:
        self._lower_bound = _lower_bound(self.words, self.target, self.costs)
        self._min_gain = max(self.costs[3], 1)  # of a shift

    @property
    def edits(self) -> Edits:
        """The edits of the current path, and the shifts made so far."""
        insertions, deletions, substitutions = map(
            self._path.count, (INSERTION, DELETION, SUBSTITUTION)
        )
        return Edits(insertions, deletions, substitutions, self._shifts)

    def propose(self, table: EditTable, owner: int) -> list[Shift]:
        """Return the candidate shifts in order of preference; none when the search is over."""
        if self._is_over:
            return []
        self._path = table.path(owner)
        self._distance = table.distances[owner]
        blocks: tuple[_Block, ...] = ()
        if self._distance - self._lower_bound >= self._min_gain:
            limit = MAX_CANDIDATES - self._candidate_count
            blocks = _candidates(self.words, self.target, self._path, limit)
            self._candidate_count += len(blocks)
        if self._candidate_count >= MAX_CANDIDATES:
            blocks = ()
        return [_shift(*block) for block in blocks]

    def choose(self, shifts: Sequence[Shift], distances: Iterator[int]) -> Shift | None:
        """Make the best shift, if one helps, given the distance after each, and return it.

        The largest gain wins, then the longest block, the earliest block, the earliest destination.
        """
        best: Shift | None = None
        best_gain = self._min_gain - 1
        for shift, distance in zip(shifts, distances, strict=True):
            gain = self._distance - distance
            if gain > best_gain:
                best = shift
                best_gain = gain
                if self._distance - gain == self._lower_bound:
                    break
        if best is None:
            self._is_over = True
            return None
        self.words = best(self.words)
        self._shifts += 1
        return best


def unit_table(reference: Words, hypothesis: Words) -> BitTable:
    """Return the fastest exact table within the beam, for unit costs."""
    table = BitTable(reference, hypothesis)
    if beam_is_inert(len(hypothesis), len(reference), table.distances[0]):
        return table
    return BeamTable(reference, hypothesis)


def _shift_until_best(table: EditTable, searches: Sequence[_ShiftSearch]) -> None:
    """Make the best shift in every search until none helps; update the table."""
    while True:
        proposed = [search.propose(table, owner) for owner, search in enumerate(searches)]
        if not any(proposed):
            return
        measured = table.distances_after(proposed)
        rounds = zip(searches, proposed, measured, strict=True)
        table.update([search.choose(shifts, distances) for search, shifts, distances in rounds])


def _lower_bound(words: Words, target: Words, costs: tuple[int, ...]) -> int:
    """Compute the cost in the best word order: of differing and of extra words."""
    insertion, deletion, substitution, _ = costs
    surplus = (Counter(words) - Counter(target)).total()
    lacking = len(target) - len(words) + surplus
    pairs = min(surplus, lacking)
    swap = min(substitution, insertion + deletion)
    return pairs * swap + (surplus - pairs) * deletion + (lacking - pairs) * insertion


@lru_cache(maxsize=64)
def _candidates(words: Words, target: Words, path: str, limit: int) -> tuple[_Block, ...]:
    """Return the shifts that Tercom tries, in order of preference; stop soon after `limit`.

    A block is a candidate if it occurs in the reference within the maximum distance, contains an
    error at its origin and its destination, and really moves. Its destination is before, inside or
    after the aligned reference words. Results are cached, because searches with other costs often
    reach the same state.
    """
    positions: dict[int, list[int]] = {}
    for position, word in enumerate(target):
        positions.setdefault(word, []).append(position)
    align, word_error, target_error = _alignment(path)
    blocks: list[_Block] = []
    for start, word in enumerate(words):
        if word_error[start] > MAX_BLOCK:
            continue
        for position in _within_reach(positions.get(word, []), start):
            shortest = max(word_error[start], target_error[position])
            gap = align[position] - start
            longest = min(MAX_BLOCK, len(words) - start, len(target) - position)
            if 0 <= gap < longest:
                longest = gap
            if shortest > longest:
                continue
            destinations = [align[position - 1] + 1 if position else 0]
            for length in range(1, longest + 1):
                if words[start + length - 1] != target[position + length - 1]:
                    break
                destination = align[position + length - 1] + 1
                if destination != destinations[-1]:
                    destinations.append(destination)
                if length >= shortest:
                    blocks += [(length, -start, -destination) for destination in destinations]
            if len(blocks) >= limit:
                return tuple(blocks)
    return tuple(sorted(blocks, reverse=True))


def _within_reach(positions: list[int], start: int) -> list[int]:
    """Select the sorted positions that a shift may reach."""
    low = bisect_left(positions, start - MAX_SHIFT_DISTANCE)
    return positions[low : bisect_right(positions, start + MAX_SHIFT_DISTANCE, low)]


def _alignment(path: str) -> tuple[list[int], list[int], list[int]]:
    """Return the last hypothesis word at or before each reference word, and error distances.

    An error distance is the number of words, from a word of the hypothesis or the reference on, up
    to and including the next error.

    >>> _alignment(" sd i")
    ([0, 1, 3, 3], [2, 1, 1, 12], [2, 1, 2, 1])
    """
    align: list[int] = []
    word = len(path) - path.count(INSERTION) - 1
    beyond = MAX_BLOCK + 1
    word_error = [beyond]
    target_error = [beyond]
    for step in reversed(path):
        wrong = step != MATCH
        if step != DELETION:
            align.append(word)
            target_error.append(1 if wrong else target_error[-1] + 1)
        if step != INSERTION:
            word -= 1
            word_error.append(1 if wrong else word_error[-1] + 1)
    return align[::-1], word_error[:0:-1], target_error[:0:-1]


def _shift(length: int, minus_start: int, minus_destination: int) -> Shift:
    """Move a block to before its destination; a destination inside the block means as far after it.

    >>> _shift(2, -3, -1)
    Shift(start=1, middle=3, end=5)
    >>> _shift(2, 0, -4)
    Shift(start=0, middle=2, end=4)
    """
    start = -minus_start
    destination = -minus_destination
    end = start + length
    if destination < start:
        return Shift(destination, start, end)
    return Shift(start, end, destination if destination > end else destination + length)


MATCH = " "
SUBSTITUTION = "s"
DELETION = "d"
INSERTION = "i"

BEAM_WIDTH = 25  # as in Tercom and sacrebleu
SHIFT_BATCH = 256  # shifts evaluated together; more would need memory and save no time

Words = tuple[int, ...]


class Shift(NamedTuple):
    """A block move: words[start:middle] and words[middle:end] are exchanged.

    >>> Shift(1, 3, 5)((0, 1, 2, 3, 4))
    (0, 3, 4, 1, 2)
    """

    start: int
    middle: int
    end: int

    def __call__(self, words: Words) -> Words:
        start, middle, end = self
        return words[:start] + words[middle:end] + words[start:middle] + words[end:]


_Row = tuple[int, int, int, int, int, int]


class BitTable:
    """Unit costs without a beam: differences between neighboring cells as bits of integers.

    `_rows[i]` has one bit per column j: where D[i][j] - D[i][j-1] is +1, where it is -1, and for
    paths where the words are equal, where D[i][j] = D[i-1][j-1], and where D[i][j] - D[i-1][j] is
    +1. The last number is only used with a beam.

    >>> table = BitTable([1, 2, 3, 4], [1, 3, 5, 4])
    >>> table.distances, table.path()
    ([2], ' ss ')
    >>> [[*row] for row in table.distances_after([[Shift(2, 3, 4), Shift(0, 1, 2)]])]
    [[2, 3]]
    """

    def __init__(self, reference: Words, hypothesis: Words) -> None:
        self._positions: dict[int, int] = {}
        for column, word in enumerate(reference):
            self._positions[word] = self._positions.get(word, 0) | 1 << column
        self._width = len(reference)
        self._full = (1 << self._width) - 1
        self._rows: list[_Row] = [(self._full, 0, 0, 0, 0, self._width)]
        self._words = tuple(hypothesis)
        self.distances = [self._fill(self._words, 0, 0, self._rows)]

    def update(self, shifts: Sequence[Shift | None]) -> None:
        """Apply a shift to the hypothesis, or none."""
        [shift] = shifts
        if shift is not None:
            self._words = shift(self._words)
            del self._rows[shift.start + 1 :]
            self.distances = [self._fill(self._words, shift.start, shift.end, self._rows)]

    def distances_after(self, shifts: Sequence[Sequence[Shift]]) -> list[Iterator[int]]:
        """Compute lazily the distance after each shift of each hypothesis."""
        [own] = shifts
        words = self._words
        return [(self._fill(shift(words), shift.start, shift.end, None) for shift in own)]

    def _fill(self, words: Sequence[int], start: int, end: int, rows: list[_Row] | None) -> int:
        """Compute the distance from row `start` on; append the new rows to `rows`.

        The words from `end` on are those of the stored rows.
        """
        full = self._full
        positions = self._positions
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
        """Return the operations that turn a hypothesis into the reference."""

        def last_step(row: int, column: int) -> str:
            _, _, matches, diagonal, down, _ = self._rows[row]
            bit = 1 << (column - 1)
            if matches & bit or not diagonal & bit:
                return MATCH if matches & bit else SUBSTITUTION
            return DELETION if down & bit else INSERTION

        return walk_back(len(self._rows) - 1, self._width, last_step)


class BeamTable(BitTable):
    """Unit costs within a beam: cells outside the beam are too expensive for any path.

    Left of the beam, a cell costs one more than its right neighbor; right of it, one more than its
    left neighbor; no words match there. The last number of a row is D[i][j] of the last column.

    >>> reference, hypothesis = [*range(-30, 60)], [*range(60), *range(90, 120)]
    >>> BitTable(reference, hypothesis).distances, BeamTable(reference, hypothesis).distances
    ([60], [90])
    """

    def __init__(self, reference: Words, hypothesis: Words) -> None:
        self._masks = _beam_masks(len(hypothesis), len(reference))
        super().__init__(reference, hypothesis)

    def _fill(self, words: Sequence[int], start: int, end: int, rows: list[_Row] | None) -> int:
        full = self._full
        positions = self._positions
        last = 1 << self._width >> 1
        plus = self._rows[start][0]
        minus = self._rows[start][1]
        value = self._rows[start][5]
        steps = zip(words[start:], self._masks[start:], strict=True)
        for row, (word, (left, right, span, beyond)) in enumerate(steps, start + 1):
            matches = positions.get(word, 0) & span
            plus = plus & ~left
            minus = minus | left
            diagonal = ((((matches & plus) + plus) ^ plus) | matches | minus) & full
            down = minus | (full ^ (diagonal | plus))
            up = diagonal & plus
            value += bool(down & last) - bool(up & last)
            shifted = (down << 1) | 1
            minus = shifted & diagonal
            plus = ((up << 1) | ~(shifted | diagonal)) & full
            value += (right & ~plus).bit_count() + (right & minus).bit_count()
            plus = plus | right
            minus = minus & ~right
            if rows is not None:
                rows.append((plus, minus, matches, diagonal | beyond, down, value))
            elif row >= end and (plus, minus) == self._rows[row][:2]:
                return self.distances[0] + value - self._rows[row][5]
        return value


def _beam_masks(rows: int, columns: int) -> list[tuple[int, int, int, int]]:
    """Return four bit masks per row; column j is bit j - 1.

    They are the columns left of the beam, right of it, reachable by a diagonal step from the row
    above, and beyond those.
    """
    full = (1 << columns) - 1
    masks = []
    low = 0
    high = columns + 1
    for next_low, next_high in beam(rows, columns):
        left = (1 << max(next_low - 1, low)) - 1
        right = full & ~((1 << (next_high - 1)) - 1)
        reached = full & ((1 << high) - 1)
        masks.append((left, right, reached & ~((1 << low) - 1), full & ~reached))
        low = next_low
        high = next_high
    return masks


class CostTable:
    """Any costs within a beam, vectorized over several costs and shifts.

        D[i][j] = min(D[i-1][j-1] + substitution unless equal, D[i-1][j] + deletion,
                      D[i][j-1] + insertion)

    Stored is D[i][j] - i * deletion - j * insertion. A step down or to the right is then free, and
    a row is the running minimum of values from above. Only cells inside the beam are stored, so
    memory grows with hypothesis length times beam width. Each of `costs` is (insertion, deletion,
    substitution, shift) in integers, so that sums are exact; each has its own hypothesis.

    >>> table = CostTable([1, 2, 3, 4], [1, 3, 5, 4], [(1, 1, 1, 1), (1, 1, 3, 1)])
    >>> table.distances, table.path(0), table.path(1)
    ([2, 2], ' ss ', ' i d ')
    """

    def __init__(
        self,
        reference: Words,
        hypothesis: Words,
        costs: Sequence[tuple[int, ...]],
    ) -> None:
        self._spans = [(0, len(reference) + 1), *beam(len(hypothesis), len(reference))]
        self._infinity = 8 * (1 + max(map(max, costs))) * (len(reference) + len(hypothesis))
        insertion, deletion, substitution, _ = np.array(costs, dtype=np.int64).T
        self._match_cost = -insertion - deletion
        self._mismatch_cost = substitution - insertion - deletion
        self._offset = len(hypothesis) * deletion + len(reference) * insertion
        self._reference = np.array([-1, *reference])  # by column; column 0 has no word
        self._rows = [np.zeros((len(costs), len(reference) + 1), dtype=np.int64)]
        self._words = np.array([hypothesis] * len(costs), dtype=np.int64)  # (costs, words)
        self._fill(0)

    def update(self, shifts: Sequence[Shift | None]) -> None:
        """Apply one shift to each hypothesis, or none."""
        moves = [(owner, shift) for owner, shift in enumerate(shifts) if shift is not None]
        for owner, shift in moves:
            self._words[owner] = shift(tuple(self._words[owner]))
        self._fill(min((shift.start for _, shift in moves), default=len(self._rows) - 1))

    def _fill(self, start: int) -> None:
        del self._rows[start + 1 :]
        owners = np.arange(len(self._words))
        self._rows += [row.copy() for row in self._fill_rows(self._words, owners, start)]
        self.distances = (self._offset + self._rows[-1][:, -1]).tolist()

    def distances_after(self, shifts: Sequence[Sequence[Shift]]) -> list[Iterator[int]]:
        owned = [(owner, shift) for owner, row in enumerate(shifts) for shift in row]
        in_order = sorted(range(len(owned)), key=lambda number: owned[number][1].start)
        distances = np.zeros(len(owned), dtype=np.int64)
        for first in range(0, len(owned), SHIFT_BATCH):
            batch = in_order[first : first + SHIFT_BATCH]
            distances[batch] = self._measure([owned[number] for number in batch])
        following = iter(distances.tolist())
        return [iter([next(following) for _ in row]) for row in shifts]

    def _measure(self, shifts: Sequence[tuple[int, Shift]]) -> IntArray:
        """Compute the distance after each (owner, shift)."""
        owners = np.array([owner for owner, _ in shifts])
        moved = self._words[owners]  # (shifts, words)
        for row, (_, (start, middle, end)) in zip(moved, shifts, strict=True):
            row[start:end] = np.concatenate([row[middle:end], row[start:middle]])
        first = min(shift.start for _, shift in shifts)
        end = max(shift.end for _, shift in shifts)
        last = len(self._rows) - 1
        for number, cells in enumerate(self._fill_rows(moved, owners, first), first + 1):
            if number >= min(end, last):
                change = cells - self._rows[number][owners]
                if number == last or (change == change[:, -1:]).all():
                    break
        distances: IntArray = np.array(self.distances)[owners] + change[:, -1]
        return distances

    def _fill_rows(self, words: IntArray, owners: IntArray, start: int) -> Iterator[IntArray]:
        """Yield the rows below `start`, (hypotheses, width); each is valid until the next.

        `words` is (hypotheses, words); `owners` are the indices of their costs. All rows use one
        buffer, where column j is at j + 1.
        """
        equal = self._match_cost[owners, None]
        other = self._mismatch_cost[owners, None]
        low, high = self._spans[start]
        cells = np.full((len(words), len(self._reference) + 1), self._infinity)
        cells[:, low + 1 : high + 1] = self._rows[start][owners]
        for row, (low, high) in enumerate(self._spans[start + 1 :], start):
            matches = words[:, row, None] == self._reference[low:high]
            diagonal = cells[:, low:high] + np.where(matches, equal, other)
            here = cells[:, low + 1 : high + 1]
            np.minimum.accumulate(np.minimum(diagonal, here), axis=1, out=here)
            cells[:, low] = self._infinity  # no longer in the beam
            if not row:
                cells[:, high + 1 :] = self._infinity
            yield here

    def path(self, owner: int = 0) -> str:
        rows = [row[owner].tolist() for row in self._rows]
        words = self._words[owner].tolist()
        reference = self._reference.tolist()
        step = {True: self._match_cost[owner], False: self._mismatch_cost[owner]}

        def cell(row: int, column: int) -> int:
            low, high = self._spans[row]
            return rows[row][column - low] if low <= column < high else self._infinity

        def last_step(row: int, column: int) -> str:
            here = cell(row, column)
            equal = words[row - 1] == reference[column]
            if here == cell(row - 1, column - 1) + step[equal]:
                return MATCH if equal else SUBSTITUTION
            return DELETION if here == cell(row - 1, column) else INSERTION

        return walk_back(len(words), len(reference) - 1, last_step)


def walk_back(row: int, column: int, last_step: Callable[[int, int], str]) -> str:
    """Trace the path to a cell backwards; `last_step` returns the operation that reached a cell."""
    steps: list[str] = []
    while row and column:
        step = last_step(row, column)
        steps.append(step)
        row -= step != INSERTION
        column -= step != DELETION
    return DELETION * row + INSERTION * column + "".join(reversed(steps))


EditTable = BitTable | CostTable


def beam(rows: int, columns: int) -> list[tuple[int, int]]:
    """Return the columns [low, high) of the beam for each row after the first.

    The beam follows the diagonal and reaches the end in the last row. It is wider for a hypothesis
    much shorter than its reference, so that rows overlap.

    >>> beam(3, 60)
    [(0, 45), (15, 61), (35, 61)]
    """
    ratio = columns / max(1, rows)
    half = math.ceil(ratio / 2 + BEAM_WIDTH) if ratio / 2 > BEAM_WIDTH else BEAM_WIDTH
    middles = [math.floor(row * ratio) for row in range(1, rows + 1)]
    return [(max(0, middle - half), min(columns + 1, middle + half)) for middle in middles]


def beam_is_inert(rows: int, columns: int, distance: int) -> bool:
    """Tell whether no path of at most `distance` (with unit costs) can leave the beam.

    A path through (i, j) costs at least |j - i| + |(columns - j) - (rows - i)|, so cheap paths stay
    near the diagonal. Then the beam changes neither the distance nor the choice between ties.
    """
    longer = columns - rows
    below = (distance - longer) // 2
    above = (distance + longer) // 2
    # The beam center differs from i by 0 to `longer`; float rounding may lower it by one.
    return max(0, longer) + below <= BEAM_WIDTH and above - min(0, longer) <= BEAM_WIDTH - 2
