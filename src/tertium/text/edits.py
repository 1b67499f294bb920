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
under any costs and within the beam.

Row i is the hypothesis up to word i, column j the reference up to word j. A path from (0, 0) to the
end is a string of operations that turn the hypothesis into the reference; where several are equally
cheap, it is read from the end backwards and prefers a match or substitution, then a deletion.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Hashable, Sequence
from dataclasses import astuple, dataclass
from functools import cache
from typing import NamedTuple

from tertium.errors import UsageError

MATCH, SUBSTITUTION, DELETION, INSERTION = " ", "s", "d", "i"

BEAM_WIDTH = 25  # Tercom's and sacrebleu's
_INFINITY = 1 << 60


_Row = tuple[int, int, int, int, int, int]


class BitTable:
    """Unit costs, no beam: differences between neighbouring cells as bits of integers.

    `_rows[i]` holds, one bit for each j, where D[i][j] - D[i][j-1] is +1 and where it is -1, and
    what a path needs: where the words are equal, where D[i][j] = D[i-1][j-1], and where
    D[i][j] - D[i-1][j] is +1. The last number is for tables with a beam.

    >>> table = BitTable([1, 2, 3, 4], [1, 3, 5, 4])
    >>> table.distance, table.path()
    (2, ' ss ')
    >>> table.distance_to([1, 3, 4, 5], start=2)
    2
    """

    bounded = True  # moving n words changes the distance by at most n deletions and n insertions

    def __init__(self, reference: Sequence[int], hypothesis: Sequence[int]) -> None:
        self._positions: dict[int, int] = {}
        for column, word in enumerate(reference):
            self._positions[word] = self._positions.get(word, 0) | 1 << column
        self._width = len(reference)
        self._full = (1 << self._width) - 1
        self._rows: list[_Row] = [(self._full, 0, 0, 0, 0, self._width)]
        self.update(hypothesis, 0)

    def update(self, words: Sequence[int], start: int) -> None:
        """Replace the hypothesis, whose first `start` words stay as they are."""
        del self._rows[start + 1 :]
        self.distance = self._fill(words, start, self._rows)

    def distance_to(self, words: Sequence[int], start: int) -> int:
        """The distance of another hypothesis with the same first `start` words."""
        return self._fill(words, start, None)

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

    def path(self) -> str:
        """The operations that turn the hypothesis into the reference."""
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
    >>> BitTable(reference, hypothesis).distance, BeamTable(reference, hypothesis).distance
    (60, 90)
    """

    bounded = False

    def __init__(self, reference: Sequence[int], hypothesis: Sequence[int]) -> None:
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
    """Any costs, within a beam: cell by cell.

        D[i][j] = min(D[i-1][j-1] + substitution unless equal, D[i-1][j] + deletion,
                      D[i][j-1] + insertion)

    Cells outside the beam are never entered and not kept: memory grows with the length of the
    hypothesis times the width of the beam. `costs` are those of an insertion, a deletion and a
    substitution, in whole units, so that sums are exact.

    >>> CostTable([1, 2, 3, 4], [1, 3, 5, 4], (1, 1, 1)).path()
    ' ss '
    >>> CostTable([1, 2, 3, 4], [1, 3, 5, 4], (1, 1, 3)).path()
    ' i d '
    """

    def __init__(
        self, reference: Sequence[int], hypothesis: Sequence[int], costs: tuple[int, int, int]
    ) -> None:
        self._reference = reference
        self._insertion, self._deletion, self._substitution = costs
        whole = (0, len(reference) + 1)
        self._spans = [whole, *beam(len(hypothesis), len(reference))]
        self.bounded = all(span == whole for span in self._spans)
        self._rows = [[j * self._insertion for j in range(len(reference) + 1)]]
        self.update(hypothesis, 0)

    @property
    def size(self) -> int:
        """The number of cells that are kept."""
        return sum(map(len, self._rows))

    def update(self, words: Sequence[int], start: int) -> None:
        self._words = words
        del self._rows[start + 1 :]
        for row in range(start, len(words)):
            self._rows.append(self._next(self._rows[-1], row, words[row]))
        self.distance = self._rows[-1][-1]

    def distance_to(self, words: Sequence[int], start: int) -> int:
        above = self._rows[start]
        for row in range(start, len(words)):
            above = self._next(above, row, words[row])
        return above[-1]

    def _next(self, above: list[int], row: int, word: int) -> list[int]:
        """The cells below those of a row, for the word that comes next."""
        insertion, deletion, substitution = self._insertion, self._deletion, self._substitution
        first, (low, high) = self._spans[row][0], self._spans[row + 1]
        cells, left = [], _INFINITY
        if low == 0:
            left = above[0] + deletion
            cells.append(left)
            low = 1
        # The row above from column low - 1 on; rows never begin before the one above them.
        before = [_INFINITY] * (first - low + 1) + above[max(low - 1 - first, 0) : high - first]
        before += [_INFINITY] * (high - low + 1 - len(before))
        expected = self._reference[low - 1 : high - 1]
        for best, up, target in zip(before, before[1:], expected, strict=False):
            if word != target:
                best += substitution
            if up + deletion < best:
                best = up + deletion
            left += insertion
            if best < left:
                left = best
            cells.append(left)
        return cells

    def _cell(self, row: int, column: int) -> int:
        low, high = self._spans[row]
        return self._rows[row][column - low] if low <= column < high else _INFINITY

    def path(self) -> str:
        row, column = len(self._rows) - 1, len(self._reference)
        steps: list[str] = []
        while row and column:
            here = self._cell(row, column)
            equal = self._words[row - 1] == self._reference[column - 1]
            swap = 0 if equal else self._substitution
            if here == self._cell(row - 1, column - 1) + swap:
                steps.append(MATCH if equal else SUBSTITUTION)
                row -= 1
                column -= 1
            elif here == self._cell(row - 1, column) + self._deletion:
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
    if not hypothesis or not reference:
        return Edits(insertions=len(reference), deletions=len(hypothesis))
    codes: dict[Hashable, int] = {}
    target = [codes.setdefault(word, len(codes)) for word in reference]
    words = [codes.setdefault(word, len(codes)) for word in hypothesis]
    if words == target:
        return Edits()
    prices = _whole(costs)
    table = _table(words, target, prices)
    shifts = _shift_until_best(table, words, target, prices)
    path = table.path()
    return Edits(path.count(INSERTION), path.count(DELETION), path.count(SUBSTITUTION), shifts)


class _Prices(NamedTuple):
    """Costs in whole units, which add up exactly; (1, 1, 1, 1) where all are equal."""

    insertion: int
    deletion: int
    substitution: int
    shift: int


@cache
def _whole(costs: Costs) -> _Prices:
    scaled = [round(cost * 10_000) for cost in astuple(costs)]
    unit = math.gcd(*scaled) or 1
    return _Prices(*(cost // unit for cost in scaled))


def _table(words: list[int], target: list[int], prices: _Prices) -> EditTable:
    """The quickest of the tables that are exact."""
    if prices != (1, 1, 1, 1):
        return CostTable(target, words, prices[:3])
    table = BitTable(target, words)
    if beam_is_inert(len(words), len(target), table.distance):
        return table
    return BeamTable(target, words)


def _shift_until_best(
    table: EditTable, words: list[int], target: list[int], prices: _Prices
) -> int:
    """Make the best shift as long as one helps; the number of shifts. The table follows."""
    least = max(prices.shift, 1)
    floor = _floor(words, target, prices)
    places: dict[int, list[int]] = {}
    for place, word in enumerate(target):
        places.setdefault(word, []).append(place)
    shifts = tried = 0
    while table.distance - floor >= least:
        candidates = _candidates(words, target, places, table.path(), MAX_CANDIDATES - tried)
        tried += len(candidates)
        if tried >= MAX_CANDIDATES:
            break
        gain_of_word = prices.insertion + prices.deletion if table.bounded else table.distance
        best = _best_shift(table, words, candidates, (least, table.distance - floor), gain_of_word)
        if best is None:
            break
        words, start = best
        table.update(words, start)
        shifts += 1
    return shifts


def _floor(words: list[int], target: list[int], prices: _Prices) -> int:
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


def _candidates(
    words: list[int], target: list[int], places: dict[int, list[int]], path: str, limit: int
) -> list[tuple[int, int, int]]:
    """The shifts that Tercom tries, as (length, -start, -new place); stops soon after `limit`.

    A block is shifted if it occurs in the reference, not too far off, has an error where it stands
    and where it would go, and would leave where it stands. It goes before, into or behind the words
    that the reference has there, as they are aligned now.
    """
    align, word_error, target_error = _alignment(path)
    found: list[tuple[int, int, int]] = []
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
                return found
    return found


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


def _best_shift(
    table: EditTable,
    words: list[int],
    candidates: list[tuple[int, int, int]],
    gains: tuple[int, int],
    gain_of_word: int,
) -> tuple[list[int], int] | None:
    """The words after the best shift and the first place where they differ, if a shift helps.

    Most gain wins, then the longest block, the earliest, the earliest new place. `gains` are the
    least that is worth a shift and the most that is possible.
    """
    best, most = gains[0] - 1, gains[1]
    found: tuple[list[int], int] | None = None
    for length, minus_start, minus_goal in sorted(candidates, reverse=True):
        if best >= min(most, length * gain_of_word):
            break
        start, goal = -minus_start, -minus_goal
        moved = _shift(words, start, length, goal)
        first = min(start, goal)
        gain = table.distance - table.distance_to(moved, first)
        if gain > best:
            best, found = gain, (moved, first)
    return found


def _shift(words: list[int], start: int, length: int, goal: int) -> list[int]:
    """The words with a block moved to before `goal`; a goal inside the block lies as far behind it.

    >>> _shift([0, 1, 2, 3, 4], start=3, length=2, goal=1)
    [0, 3, 4, 1, 2]
    >>> _shift([0, 1, 2, 3, 4], start=0, length=2, goal=4)
    [2, 3, 0, 1, 4]
    """
    end = start + length
    if goal < start:
        return words[:goal] + words[start:end] + words[goal:start] + words[end:]
    behind = goal if goal > end else goal + length
    return words[:start] + words[end:behind] + words[start:end] + words[behind:]
