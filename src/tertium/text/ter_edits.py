"""The edits of TER: insertions, deletions, substitutions and block shifts.

Snover et al. (2006): shifts are chosen greedily, each time the one that lowers the word edit
distance most, until no shift helps; the remaining differences are insertions, deletions and
substitutions. Candidates, limits and tie-breaking are those of Tercom and sacrebleu: with unit
costs the number of edits equals sacrebleu's on every input.

No shift can lower the distance below the cost of the differing words; one that reaches it ends the
search. Searches with several costs run together (`text/edit_distance.py`).
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import astuple, dataclass
from functools import cache, lru_cache
from typing import NamedTuple

from tertium.core.errors import UsageError
from tertium.text.edit_distance import (
    DELETION,
    INSERTION,
    MATCH,
    SUBSTITUTION,
    BeamTable,
    BitTable,
    CostTable,
    EditTable,
    Shift,
    Words,
    beam_is_inert,
)

# The limits of sacrebleu; other values would change the number of edits.
MAX_BLOCK = 10
MAX_SHIFT_DISTANCE = 50
MAX_CANDIDATES = 1000


@dataclass(frozen=True, kw_only=True)
class Costs:
    """The cost of each kind of edit, to four decimal positions."""

    insertion: float = 1.0
    deletion: float = 1.0
    substitution: float = 1.0
    shift: float = 1.0

    def __post_init__(self) -> None:
        for cost in astuple(self):
            if not (math.isfinite(cost) and cost >= 0):
                raise UsageError(f"edit cost {cost} in {self}: expected a number of at least 0")


UNIT_COSTS = Costs()


class Edits(NamedTuple):
    """The number of edits of each kind that turn a hypothesis into a reference."""

    insertions: int = 0
    deletions: int = 0
    substitutions: int = 0
    shifts: int = 0

    @property
    def total(self) -> int:
        return sum(self)

    def cost(self, costs: Costs = UNIT_COSTS) -> float:
        return math.fsum(n * cost for n, cost in zip(self, astuple(costs), strict=True))


def count_edits(
    hypothesis: Sequence[Hashable], reference: Sequence[Hashable], costs: Costs = UNIT_COSTS
) -> Edits:
    """Count the edits that turn one list of words into another, with TER's greedy search.

    A shift is made if it lowers the cost of the other edits by at least its own cost. With unit
    costs, TER is the total divided by the reference length.

    >>> count_edits("on the mat sat a cat".split(), "a cat sat on the mat".split())
    Edits(insertions=0, deletions=0, substitutions=0, shifts=2)
    >>> count_edits("a cat sat".split(), "a black cat sits".split())
    Edits(insertions=1, deletions=0, substitutions=1, shifts=0)
    >>> count_edits("a cat sat".split(), "a black cat sits".split(), Costs(substitution=3.0))
    Edits(insertions=2, deletions=1, substitutions=0, shifts=0)
    """
    return count_edits_for_costs((costs,), hypothesis, reference)[0]


def count_edits_for_costs(
    costs: Sequence[Costs], hypothesis: Sequence[Hashable], reference: Sequence[Hashable]
) -> list[Edits]:
    """Count edits with each of several costs, much faster than one by one."""
    if not hypothesis or not reference:
        return [Edits(insertions=len(reference), deletions=len(hypothesis))] * len(costs)
    codes: dict[Hashable, int] = {}
    target = tuple(codes.setdefault(word, len(codes)) for word in reference)
    words = tuple(codes.setdefault(word, len(codes)) for word in hypothesis)
    if words == target:
        return [Edits()] * len(costs)
    searches = [_ShiftSearch(words, target, _integer_costs(c)) for c in costs]
    table = edit_table(target, words, [search.costs[:3] for search in searches])
    _shift_until_best(table, searches)
    return [search.edits for search in searches]


class _IntegerCosts(NamedTuple):
    """Costs as integers, for exact sums; (1, 1, 1, n) if all costs except shifts are equal."""

    insertion: int
    deletion: int
    substitution: int
    shift: int


@cache
def _integer_costs(costs: Costs) -> _IntegerCosts:
    *edits, shift = scaled = [round(cost * 10_000) for cost in astuple(costs)]
    if len({*edits}) == 1 and edits[0]:  # every gain is a multiple of this cost
        return _IntegerCosts(1, 1, 1, -(-shift // edits[0]))
    unit = math.gcd(*scaled) or 1
    return _IntegerCosts(*(cost // unit for cost in scaled))


_Block = tuple[int, int, int]  # length, -start, -destination


@dataclass(eq=False)
class _ShiftSearch:
    """The greedy search for shifts with one set of costs: the current words and edits."""

    words: Words
    target: Words
    costs: _IntegerCosts
    _path: str = ""
    _shifts: int = 0
    _candidate_count: int = 0
    _distance: int = 0
    _is_over: bool = False

    def __post_init__(self) -> None:
        self._lower_bound = _lower_bound(self.words, self.target, self.costs)
        self._min_gain = max(self.costs.shift, 1)  # of a shift

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
                best, best_gain = shift, gain
                if self._distance - gain == self._lower_bound:
                    break
        if best is None:
            self._is_over = True
            return None
        self.words = best(self.words)
        self._shifts += 1
        return best


def edit_table(
    reference: Words, hypothesis: Words, costs: Sequence[tuple[int, int, int]]
) -> EditTable:
    """Return the fastest exact table within the beam, for each of `costs`."""
    if [*costs] != [(1, 1, 1)]:
        return CostTable(reference, hypothesis, costs)
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


def _lower_bound(words: Words, target: Words, costs: _IntegerCosts) -> int:
    """Compute the cost in the best word order: of differing and of extra words."""
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
    swap = min(costs.substitution, costs.insertion + costs.deletion)
    unpaired = (surplus - pairs) * costs.deletion + (lacking - pairs) * costs.insertion
    return pairs * swap + unpaired


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


def _shift(length: int, minus_start: int, minus_destination: int) -> Shift:
    """Move a block to before its destination; a destination inside the block means as far after it.

    >>> _shift(2, -3, -1)
    Shift(start=1, middle=3, end=5)
    >>> _shift(2, 0, -4)
    Shift(start=0, middle=2, end=4)
    """
    start, destination = -minus_start, -minus_destination
    end = start + length
    if destination < start:
        return Shift(destination, start, end)
    return Shift(start, end, destination if destination > end else destination + length)
