"""The edits of TER: what turns a hypothesis into a reference when blocks of words may move.

Snover et al. (2006): shifts are chosen greedily, each the one that lowers the word edit distance
most, until none does; insertions, deletions and substitutions do the rest. Which shifts are tried,
and which of equally good ones is made, is settled as in Tercom and, with its limits, in sacrebleu:
under unit costs the number of edits is sacrebleu's on every input.

It is fast because few shifts are measured: none can lower the distance below what the differing
words alone require, nor gain more than the words it moves. Each is measured from the first word
that moved.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Hashable, Sequence
from dataclasses import astuple, dataclass
from functools import cache
from typing import NamedTuple

from tertium.errors import UsageError
from tertium.text.distance import (
    DELETION,
    INSERTION,
    MATCH,
    SUBSTITUTION,
    BeamTable,
    BitTable,
    CostTable,
    EditTable,
    beam_is_inert,
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
