"""Edit tables compared with the textbook recurrence, and with each other inside the beam."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

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
@given(words, words)
def test_bit_table_equals_the_textbook_recurrence(reference: Words, hypothesis: Words) -> None:
    table = BitTable(reference, hypothesis)
    assert table.distances == [textbook_distance(reference, hypothesis, (1, 1, 1))]
    path = table.path()
    assert len(path) - path.count(MATCH) == table.distances[0]
    assert replay(path, reference, hypothesis) == reference


@settings(deadline=None)
@given(words, words, costs)
def test_the_cost_table_equals_the_textbook_recurrence(
    reference: Words, hypothesis: Words, prices: tuple[int, int, int]
) -> None:
    table = CostTable(reference, hypothesis, [prices])
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
    assert CostTable(reference, hypothesis, [(1, 1, 1)]).path() == path


def unit_cells(reference: Words, hypothesis: Words) -> EditTable:
    return CostTable(reference, hypothesis, [(1, 1, 1)])


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


@settings(max_examples=8, deadline=None)
@given(st.integers(60, 110), st.sampled_from([0.6, 1.0, 1.7, 55.0]), st.integers(0, 10**6))
def test_shifts_of_long_texts_equal_new_tables(rows: int, ratio: float, seed: int) -> None:
    """The rows below a shift are not computed once they have all changed by the same amount."""
    rng = Random(seed)
    reference = tuple(rng.randrange(40) for _ in range(int(rows * ratio)))
    hypothesis = (*reference[: rows // 2], *rng.sample(range(60), 40), *reference[rows // 2 :])
    prices = [(1, 1, 1), (1, 20, 20), (4, 4, 1)]
    bits, cells = BeamTable(reference, hypothesis), CostTable(reference, hypothesis, prices)
    shifts = []
    for _ in range(6):
        start = rng.randrange(rows)
        shifts.append(Shift(start, start + rng.randrange(9), start + 9 + rng.randrange(30)))
    [bit_distances] = bits.distances_after([shifts])
    cell_distances = cells.distances_after([shifts] * 3)
    for shift in shifts:
        moved = shift(hypothesis)
        assert next(bit_distances) == BeamTable(reference, moved).distances[0]
        expected = CostTable(reference, moved, prices).distances
        assert [next(distances) for distances in cell_distances] == expected
    cells.update([shifts[0], None, shifts[1]])
    for owner, words in enumerate((shifts[0](hypothesis), hypothesis, shifts[1](hypothesis))):
        expected_table = CostTable(reference, words, prices)
        assert cells.distances[owner] == expected_table.distances[owner]
        assert cells.path(owner) == expected_table.path(owner)


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
    cells = CostTable(reference, hypothesis, [(1, 1, 1)])
    beamed, bits = BeamTable(reference, hypothesis), BitTable(reference, hypothesis)
    assert (beamed.distances, beamed.path()) == (cells.distances, cells.path())
    assert bits.distances <= cells.distances
    if beam_is_inert(rows, columns, bits.distances[0]):
        assert (bits.distances, bits.path()) == (cells.distances, cells.path())
