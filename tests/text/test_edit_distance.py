"""Edit tables compared with the textbook recurrence, and with each other inside the beam."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tertium.text.ter_edits import (
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

words = st.lists(st.integers(0, 4), max_size=14).map(tuple)
costs = st.tuples(*[st.integers(0, 5)] * 3)


def textbook_distance(reference: Words, hypothesis: Words, prices: tuple[int, int, int]) -> int:
    """Compute the weighted edit distance with the plain recurrence."""
    insertion, deletion, substitution = prices
    row = [j * insertion for j in range(len(reference) + 1)]
    for word in hypothesis:
        above, row = row, [row[0] + deletion]
        for j, expected in enumerate(reference):
            keep = above[j] + (0 if word == expected else substitution)
            row.append(min(keep, above[j + 1] + deletion, row[j] + insertion))
    return row[-1]


def replay(path: str, reference: Words, hypothesis: Words) -> Words:
    """Apply a path to the hypothesis and return the result; check its matches."""
    result: list[int] = []
    position = 0
    for step in path:
        if step == MATCH:
            assert hypothesis[position] == reference[len(result)]
        if step != DELETION:
            result.append(reference[len(result)])
        if step != INSERTION:
            position += 1
    assert position == len(hypothesis)
    return tuple(result)


@settings(deadline=None)
@given(words, words, costs)
def test_the_cost_table_equals_the_textbook_recurrence(
    reference: Words, hypothesis: Words, prices: tuple[int, int, int]
) -> None:
    table = CostTable(reference, hypothesis, [(*prices, 1)])
    assert table.distances[0] == textbook_distance(reference, hypothesis, prices)
    path = table.path()
    steps = zip((INSERTION, DELETION, SUBSTITUTION), prices, strict=True)
    assert sum(path.count(step) * price for step, price in steps) == table.distances[0]
    assert replay(path, reference, hypothesis) == reference


@settings(deadline=None)
@given(words.filter(bool), words.filter(bool))
def test_all_tables_choose_the_same_path(reference: Words, hypothesis: Words) -> None:
    path = BitTable(reference, hypothesis).path()
    assert BeamTable(reference, hypothesis).path() == path
    assert CostTable(reference, hypothesis, [(1, 1, 1, 1)]).path() == path


def unit_cells(reference: Words, hypothesis: Words) -> EditTable:
    return CostTable(reference, hypothesis, [(1, 1, 1, 1)])


@pytest.mark.parametrize("build", [BitTable, BeamTable, unit_cells])
@settings(deadline=None)
@given(reference=words.filter(bool), hypothesis=words.filter(bool), data=st.data())
def test_a_shift_is_computed_from_the_first_moved_word(
    build: Callable[[Words, Words], EditTable],
    reference: Words,
    hypothesis: Words,
    data: st.DataObject,
) -> None:
    start = data.draw(st.integers(0, len(hypothesis) - 1))
    later = st.integers(start, len(hypothesis))
    shift = Shift(start, *sorted(data.draw(st.tuples(later, later))))
    shifted = shift(hypothesis)
    table, expected = build(reference, hypothesis), build(reference, shifted)
    before = table.distances
    assert [[*row] for row in table.distances_after([[shift]])] == [expected.distances]
    assert table.distances == before
    table.update([shift])
    assert (table.distances, table.path()) == (expected.distances, expected.path())


sizes = st.integers(1, 70) | st.integers(1, 4) | st.integers(100, 200)


@settings(max_examples=60, deadline=None)
@given(sizes, sizes, st.sampled_from([2, 9, 50]), st.integers(0, 10**6))
def test_bits_and_cells_agree_within_the_beam(
    rows: int, columns: int, vocabulary: int, seed: int
) -> None:
    rng = Random(seed)
    reference = tuple(rng.randrange(vocabulary) for _ in range(columns))
    start = rng.randrange(columns)
    random_words = tuple(rng.randrange(vocabulary) for _ in range(rows))
    hypothesis = (reference[start:] + random_words)[:rows]
    cells = CostTable(reference, hypothesis, [(1, 1, 1, 1)])
    beamed, bits = BeamTable(reference, hypothesis), BitTable(reference, hypothesis)
    assert (beamed.distances, beamed.path()) == (cells.distances, cells.path())
    assert bits.distances <= cells.distances
    if beam_is_inert(rows, columns, bits.distances[0]):
        assert (bits.distances, bits.path()) == (cells.distances, cells.path())
