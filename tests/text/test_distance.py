"""The tables against the textbook recurrence, and against each other inside the beam."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tertium.text.edits import (
    BEAM_WIDTH,
    DELETION,
    INSERTION,
    MATCH,
    SUBSTITUTION,
    BeamTable,
    BitTable,
    CostTable,
    EditTable,
    beam,
    beam_is_inert,
)

words = st.lists(st.integers(0, 4), max_size=14)
costs = st.tuples(*[st.integers(0, 5)] * 3)


def textbook(reference: list[int], hypothesis: list[int], prices: tuple[int, int, int]) -> int:
    """The weighted edit distance by the recurrence as it is written."""
    insertion, deletion, substitution = prices
    row = [j * insertion for j in range(len(reference) + 1)]
    for word in hypothesis:
        above, row = row, [row[0] + deletion]
        for j, expected in enumerate(reference):
            keep = above[j] + (0 if word == expected else substitution)
            row.append(min(keep, above[j + 1] + deletion, row[j] + insertion))
    return row[-1]


def replay(path: str, reference: list[int], hypothesis: list[int]) -> list[int]:
    """The words that a path makes of the hypothesis; a match must be one."""
    made: list[int] = []
    place = 0
    for step in path:
        if step == MATCH:
            assert hypothesis[place] == reference[len(made)]
        if step != DELETION:
            made.append(reference[len(made)])
        if step != INSERTION:
            place += 1
    assert place == len(hypothesis)
    return made


@settings(deadline=None)
@given(words, words)
def test_bit_table_is_the_textbook(reference: list[int], hypothesis: list[int]) -> None:
    table = BitTable(reference, hypothesis)
    assert table.distance == textbook(reference, hypothesis, (1, 1, 1))
    path = table.path()
    assert len(path) - path.count(MATCH) == table.distance
    assert replay(path, reference, hypothesis) == reference


@settings(deadline=None)
@given(words, words, costs)
def test_cost_table_is_the_textbook(
    reference: list[int], hypothesis: list[int], prices: tuple[int, int, int]
) -> None:
    table = CostTable(reference, hypothesis, prices)
    assert table.bounded
    assert table.distance == textbook(reference, hypothesis, prices)
    path = table.path()
    steps = zip((INSERTION, DELETION, SUBSTITUTION), prices, strict=True)
    assert sum(path.count(step) * price for step, price in steps) == table.distance
    assert replay(path, reference, hypothesis) == reference


@settings(deadline=None)
@given(words.filter(bool), words.filter(bool))
def test_all_tables_choose_the_same_path(reference: list[int], hypothesis: list[int]) -> None:
    path = BitTable(reference, hypothesis).path()
    assert BeamTable(reference, hypothesis).path() == path
    assert CostTable(reference, hypothesis, (1, 1, 1)).path() == path


def unit_cells(reference: list[int], hypothesis: list[int]) -> EditTable:
    return CostTable(reference, hypothesis, (1, 1, 1))


@pytest.mark.parametrize("build", [BitTable, BeamTable, unit_cells])
@settings(deadline=None)
@given(reference=words.filter(bool), hypothesis=words, data=st.data())
def test_a_changed_ending_is_computed_from_where_it_changed(
    build: Callable[[list[int], list[int]], EditTable],
    reference: list[int],
    hypothesis: list[int],
    data: st.DataObject,
) -> None:
    start = data.draw(st.integers(0, len(hypothesis)))
    changed = hypothesis[:start] + data.draw(st.permutations(hypothesis[start:]))
    table, fresh = build(reference, hypothesis), build(reference, changed)
    before = table.distance
    assert table.distance_to(changed, start) == fresh.distance
    assert table.distance == before
    table.update(changed, start)
    assert (table.distance, table.path()) == (fresh.distance, fresh.path())


sizes = st.integers(1, 70) | st.integers(1, 4) | st.integers(100, 200)


@settings(max_examples=150, deadline=None)
@given(sizes, sizes, st.sampled_from([2, 9, 50]), st.integers(0, 10**6))
def test_bits_and_cells_agree_within_the_beam(
    rows: int, columns: int, vocabulary: int, seed: int
) -> None:
    rng = Random(seed)
    reference = [rng.randrange(vocabulary) for _ in range(columns)]
    start = rng.randrange(columns)
    hypothesis = (reference[start:] + [rng.randrange(vocabulary) for _ in range(rows)])[:rows]
    cells = CostTable(reference, hypothesis, (1, 1, 1))
    beamed, bits = BeamTable(reference, hypothesis), BitTable(reference, hypothesis)
    assert (beamed.distance, beamed.path()) == (cells.distance, cells.path())
    assert bits.distance <= cells.distance
    if beam_is_inert(rows, columns, bits.distance):
        assert (bits.distance, bits.path()) == (cells.distance, cells.path())


def test_the_beam_can_hide_the_shortest_path() -> None:
    # The words that agree lie 30 off the diagonal, out of reach of a beam of 25.
    reference = [*range(100, 130), *range(60)]
    hypothesis = [*range(60), *range(200, 230)]
    cells = CostTable(reference, hypothesis, (1, 1, 1))
    assert BitTable(reference, hypothesis).distance == 60
    assert BeamTable(reference, hypothesis).distance == cells.distance == 90
    assert not beam_is_inert(90, 90, 60)
    assert not cells.bounded


def test_beam_spans_are_those_of_the_definition() -> None:
    assert beam(0, 5) == []
    assert beam(4, 4) == [(0, 5)] * 4
    # 120 reference words for one: 25 + 60 on either side of the middle, and the last row's end.
    assert beam(1, 120) == [(35, 121)]


def test_a_table_keeps_the_beam_alone() -> None:
    words = [place * 7 % 300 for place in range(5_000)]
    table = CostTable(words, words[::-1], (1, 20, 20))
    first_row = len(words) + 1
    assert table.size <= first_row + len(words) * 2 * (BEAM_WIDTH + 1)
