"""The edits of TER: what turns a hypothesis into a reference when blocks of words may move.

Snover et al. (2006): shifts are chosen greedily, each the one that lowers the word edit distance
most, until none does; insertions, deletions and substitutions do the rest. Which shifts are tried,
and which of equally good ones is made, is settled as in Tercom and, with its limits, in sacrebleu:
under unit costs the number of edits is sacrebleu's on every input.

It is fast because few shifts are measured: none can lower the distance below what the differing
words alone require, nor gain more than the words it moves. Each is measured from the first word
that moved (`text/edit_distance.py`), and searches under several costs go on together.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import astuple, dataclass
from functools import cache, lru_cache
from typing import NamedTuple

from tertium.errors import UsageError
from tertium.text.edit_distance import (
    DELETION,
    INSERTION,
    MATCH,
    SUBSTITUTION,
    EditTable,
    Shift,
    Words,
    edit_table,
)

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
    return count_edits_for_costs((costs,), hypothesis, reference)[0]


def count_edits_for_costs(
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
    table = edit_table(target, words, [search.prices[:3] for search in searches])
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
