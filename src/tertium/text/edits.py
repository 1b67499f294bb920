"""The edits of TER: what turns a hypothesis into a reference when blocks of words may move.

Snover et al. (2006): shifts are chosen greedily, each the one that lowers the word edit distance
most, until none does; insertions, deletions and substitutions do the rest. Which shifts are tried,
and which of equally good ones is made, is settled as in Tercom and, with its limits, in sacrebleu:
under unit costs the number of edits is sacrebleu's on every input.

It is fast because few shifts are measured: none can lower the distance below what the differing
words alone require, nor gain more than the words it moves. Each is measured from the first word
that moved, for distances are tables of which a part can be computed anew. `BitTable` holds a row of
the distance matrix in two integers, one bit for each reference word (Myers 1999, as simplified by
Hyyrö 2003), so that a row costs a dozen integer operations; it knows unit costs only. `BeamTable`
does the same within TER's beam around the diagonal. `CostTable` fills the matrix cell by cell,
under any costs and within the beam; several costs, and all shifts under each, go side by side.

Row i is the hypothesis up to word i, column j the reference up to word j. A path from (0, 0) to the
end is a string of operations that turn the hypothesis into the reference; where several are equally
cheap, it is read from the end backwards and prefers a match or substitution, then a deletion.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import astuple, dataclass
from functools import cache, lru_cache
from itertools import chain
from typing import NamedTuple

import numpy as np

from tertium.arrays import IntArray
from tertium.errors import UsageError

MATCH, SUBSTITUTION, DELETION, INSERTION = " ", "s", "d", "i"

BEAM_WIDTH = 25  # Tercom's and sacrebleu's
AT_ONCE = 256  # shifts that are measured together: more would take memory and no less time

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
    """Unit costs, no beam: differences between neighbouring cells as bits of integers.

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
        row, column = len(self._rows) - 1, self._width
        steps: list[str] = []
        while row and column:
            _, _, matches, diagonal, down, _ = self._rows[row]
            bit = 1 << (column - 1)
            if matches & bit or not diagonal & bit:
                steps.append(MATCH if matches & bit else SUBSTITUTION)
                row -= 1
                column -= 1
            elif down & bit:
                steps.append(DELETION)
                row -= 1
            else:
                steps.append(INSERTION)
                column -= 1
        return DELETION * row + INSERTION * column + "".join(reversed(steps))


class BeamTable(BitTable):
    """Unit costs within a beam: cells outside it are made so dear that no path gains by them.

    To the left of the beam a cell is worse by one than its right neighbour, to the right by one
    than its left neighbour, and there no words are equal. The last number of a row is D[i][j] at
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
        parts = (owned[n : n + AT_ONCE] for n in range(0, len(owned), AT_ONCE))
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

        row, column = len(words), len(reference) - 1
        steps: list[str] = []
        while row and column:
            here, equal = cell(row, column), words[row - 1] == reference[column]
            if here == cell(row - 1, column - 1) + step[equal]:
                steps.append(MATCH if equal else SUBSTITUTION)
                row -= 1
                column -= 1
            elif here == cell(row - 1, column):
                steps.append(DELETION)
                row -= 1
            else:
                steps.append(INSERTION)
                column -= 1
        return DELETION * row + INSERTION * column + "".join(reversed(steps))


EditTable = BitTable | CostTable


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


# Tercom's limits as sacrebleu has them: with others the number of edits would be another.
MAX_BLOCK = 10
MAX_SHIFT_DISTANCE = 50
MAX_CANDIDATES = 1000


@dataclass(frozen=True, kw_only=True)
class Costs:
    """What each kind of edit costs, to four decimal places."""

    insertion: float = 1.0
    deletion: float = 1.0
    substitution: float = 1.0
    shift: float = 1.0

    def __post_init__(self) -> None:
        for cost in astuple(self):
            if not (math.isfinite(cost) and cost >= 0):
                raise UsageError(f"edits cost a number from 0 up each, not {cost}: {self}")


UNIT_COSTS = Costs()


class Edits(NamedTuple):
    """How often each kind of edit is needed to turn a hypothesis into a reference.

    An insertion adds a word that the hypothesis lacks, a deletion removes one that it has too many;
    a shift moves a block of words, however long.
    """

    insertions: int = 0
    deletions: int = 0
    substitutions: int = 0
    shifts: int = 0

    @property
    def total(self) -> int:
        """The number of edits of all kinds."""
        return sum(self)

    def cost(self, costs: Costs = UNIT_COSTS) -> float:
        """What the edits cost together."""
        return math.fsum(n * cost for n, cost in zip(self, astuple(costs), strict=True))


def count_edits(
    hypothesis: Sequence[Hashable], reference: Sequence[Hashable], costs: Costs = UNIT_COSTS
) -> Edits:
    """The edits that turn one list of words into another, by TER's greedy search.

    A shift is made when it lowers the cost of the other edits, and by at least its own cost. Under
    unit costs TER is the total over the reference length.

    >>> count_edits("on the mat sat a cat".split(), "a cat sat on the mat".split())
    Edits(insertions=0, deletions=0, substitutions=0, shifts=2)
    >>> count_edits("a cat sat".split(), "a black cat sits".split())
    Edits(insertions=1, deletions=0, substitutions=1, shifts=0)
    >>> count_edits("a cat sat".split(), "a black cat sits".split(), Costs(substitution=3.0))
    Edits(insertions=2, deletions=1, substitutions=0, shifts=0)
    """
    return count_edits_under((costs,), hypothesis, reference)[0]


def count_edits_under(
    costs: Sequence[Costs], hypothesis: Sequence[Hashable], reference: Sequence[Hashable]
) -> list[Edits]:
    """The same under each of several costs, in far less time than one by one."""
    if not hypothesis or not reference:
        return [Edits(insertions=len(reference), deletions=len(hypothesis))] * len(costs)
    codes: dict[Hashable, int] = {}
    target = tuple(codes.setdefault(word, len(codes)) for word in reference)
    words = tuple(codes.setdefault(word, len(codes)) for word in hypothesis)
    if words == target:
        return [Edits()] * len(costs)
    searches = [_Search(words, target, _whole(some)) for some in costs]
    prices = [search.prices[:3] for search in searches]
    if len(prices) == 1 and prices[0] == (1, 1, 1):
        table: EditTable = _bits(target, words)
    else:
        table = CostTable(target, words, prices)
    _shift_until_best(table, searches)
    return [search.edits for search in searches]


class _Prices(NamedTuple):
    """Costs in whole units, which add up exactly; (1, 1, 1, n) where all but shifts are equal."""

    insertion: int
    deletion: int
    substitution: int
    shift: int


@cache
def _whole(costs: Costs) -> _Prices:
    *edits, shift = scaled = [round(cost * 10_000) for cost in astuple(costs)]
    if len({*edits}) == 1 and edits[0]:  # every gain is a multiple of it
        return _Prices(1, 1, 1, -(-shift // edits[0]))
    unit = math.gcd(*scaled) or 1
    return _Prices(*(cost // unit for cost in scaled))


def _bits(target: Words, words: Words) -> BitTable:
    """The quicker of the tables of unit costs that are exact."""
    table = BitTable(target, words)
    if beam_is_inert(len(words), len(target), table.distances[0]):
        return table
    return BeamTable(target, words)


_Block = tuple[int, int, int]  # its length, - its start, - its new place


@dataclass(eq=False)
class _Search:
    """The search for shifts under one list of prices: the words after them, and what is left."""

    words: Words
    target: Words
    prices: _Prices
    _path: str = ""
    _shifts: int = 0
    _tried: int = 0
    _blocks: tuple[_Block, ...] | None = None  # to try; none once the search is over

    def __post_init__(self) -> None:
        self._floor = _floor(self.words, self.target, self.prices)
        self._least = max(self.prices.shift, 1)  # that a shift has to gain

    @property
    def edits(self) -> Edits:
        """Those of the path that is left, and the shifts before it."""
        insertions, deletions, substitutions = map(
            self._path.count, (INSERTION, DELETION, SUBSTITUTION)
        )
        return Edits(insertions, deletions, substitutions, self._shifts)

    def propose(self, table: EditTable, owner: int) -> list[Shift]:
        """What may help, the first of equals first; nothing once the search is over."""
        if self._blocks == ():
            return []
        self._path = table.path(owner)
        blocks: tuple[_Block, ...] = ()
        if table.distances[owner] - self._floor >= self._least:
            limit = MAX_CANDIDATES - self._tried
            blocks = _candidates(self.words, self.target, self._path, limit)
            self._tried += len(blocks)
        self._blocks = blocks if self._tried < MAX_CANDIDATES else ()
        return [_shift(*block) for block in self._blocks]

    def choose(
        self, shifts: list[Shift], distance: int, after: Iterator[int], *, bounded: bool
    ) -> int:
        """Make the best of some shifts, if one helps; the first place that changes.

        `after` are the distances after each. Most gain wins, then the longest block, the earliest,
        the earliest new place.
        """
        gain_of_word = self.prices.insertion + self.prices.deletion if bounded else distance
        best, most, found = self._least - 1, distance - self._floor, None
        for (length, _, _), shift in zip(self._blocks or (), shifts, strict=True):
            if best >= min(most, length * gain_of_word):
                break
            gain = distance - next(after)
            if gain > best:
                best, found = gain, shift
        if found is None:
            self._blocks = ()
            return len(self.words)
        self.words = found(self.words)
        self._shifts += 1
        return found.start


def _shift_until_best(table: EditTable, searches: Sequence[_Search]) -> None:
    """Make the best shift in every search as long as one helps. The table follows."""
    while any(shifts := [search.propose(table, n) for n, search in enumerate(searches)]):
        measured = table.distances_after(shifts)
        starts = [
            search.choose(some, distance, after, bounded=table.bounded)
            for search, some, distance, after in zip(
                searches, shifts, table.distances, measured, strict=True
            )
        ]
        table.update([search.words for search in searches], min(starts))


def _floor(words: Words, target: Words, prices: _Prices) -> int:
    """What remains to pay in the best order of words: those that differ, and those too many."""
    spare: dict[int, int] = {}
    for word in target:
        spare[word] = spare.get(word, 0) + 1
    surplus = 0
    for word in words:
        if spare.get(word):
            spare[word] -= 1
        else:
            surplus += 1
    lacking = len(target) - len(words) + surplus
    pairs = min(surplus, lacking)
    swap = min(prices.substitution, prices.insertion + prices.deletion)
    rest = (surplus - pairs) * prices.deletion + (lacking - pairs) * prices.insertion
    return pairs * swap + rest


@lru_cache(maxsize=64)
def _candidates(words: Words, target: Words, path: str, limit: int) -> tuple[_Block, ...]:
    """The shifts that Tercom tries, the first of equals first; stops soon after `limit`.

    A block is shifted if it occurs in the reference, not too far off, has an error where it stands
    and where it would go, and would leave where it stands. It goes before, into or behind the words
    that the reference has there, as they are aligned now. What was found is kept for a moment:
    searches under other costs often stand at the same place.
    """
    places: dict[int, list[int]] = {}
    for place, word in enumerate(target):
        places.setdefault(word, []).append(place)
    align, word_error, target_error = _alignment(path)
    found: list[_Block] = []
    for start, word in enumerate(words):
        if word_error[start] > MAX_BLOCK:
            continue
        for place in _near(places.get(word, []), start):
            shortest = max(word_error[start], target_error[place])
            gap = align[place] - start
            longest = min(MAX_BLOCK, len(words) - start, len(target) - place)
            if 0 <= gap < longest:
                longest = gap
            if shortest > longest:
                continue
            goals = [align[place - 1] + 1 if place else 0]
            for length in range(1, longest + 1):
                if words[start + length - 1] != target[place + length - 1]:
                    break
                goal = align[place + length - 1] + 1
                if goal != goals[-1]:
                    goals.append(goal)
                if length >= shortest:
                    found += [(length, -start, -goal) for goal in goals]
            if len(found) >= limit:
                return tuple(found)
    return tuple(sorted(found, reverse=True))


def _near(places: list[int], start: int) -> list[int]:
    """Those of some sorted places that a shift may reach; a word may stand in thousands."""
    low = bisect_left(places, start - MAX_SHIFT_DISTANCE)
    return places[low : bisect_right(places, start + MAX_SHIFT_DISTANCE, low)]


def _alignment(path: str) -> tuple[list[int], list[int], list[int]]:
    """The last hypothesis word at or before each reference word, and how far errors are.

    The distances say, for each word of the hypothesis and of the reference, how many words from it
    on one must take to include one that is wrong.

    >>> _alignment(" sd i")
    ([0, 1, 3, 3], [2, 1, 1, 12], [2, 1, 2, 1])
    """
    align: list[int] = []
    word = len(path) - path.count(INSERTION) - 1
    beyond = MAX_BLOCK + 1
    word_error, target_error = [beyond], [beyond]
    for step in reversed(path):
        wrong = step != MATCH
        if step != DELETION:
            align.append(word)
            target_error.append(1 if wrong else target_error[-1] + 1)
        if step != INSERTION:
            word -= 1
            word_error.append(1 if wrong else word_error[-1] + 1)
    return align[::-1], word_error[:0:-1], target_error[:0:-1]


def _shift(length: int, minus_start: int, minus_goal: int) -> Shift:
    """A block moved to before its goal; a goal inside the block lies as far behind it.

    >>> _shift(2, -3, -1)
    Shift(start=1, middle=3, end=5)
    >>> _shift(2, 0, -4)
    Shift(start=0, middle=2, end=4)
    """
    start, goal = -minus_start, -minus_goal
    end = start + length
    if goal < start:
        return Shift(goal, start, end)
    return Shift(start, end, goal if goal > end else goal + length)
