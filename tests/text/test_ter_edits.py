"""TER edits equal sacrebleu's on any words; other costs change the choice of edits."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sacrebleu.metrics.lib_ter import translation_edit_rate

from tertium.text.ter_edits import Costs, Edits, count_edits, count_edits_for_costs


def vocabulary(size: int) -> st.SearchStrategy[list[str]]:
    return st.lists(st.sampled_from([chr(97 + n) for n in range(size)]), max_size=14)


@st.composite
def rearranged(draw: st.DrawFn) -> tuple[list[str], list[str]]:
    """Draw a reference, and a hypothesis made from it by moving, dropping and adding words."""
    reference = draw(st.lists(st.sampled_from("abcdefghijkl"), min_size=1, max_size=25))
    words = list(reference)
    for _ in range(draw(st.integers(0, 5))):
        start, length = draw(st.integers(0, len(words))), draw(st.integers(1, 12))
        block, remaining = words[start : start + length], words[:start] + words[start + length :]
        position = draw(st.integers(0, len(remaining)))
        inserted = block if draw(st.booleans()) else block[1:]
        words = [*remaining[:position], *inserted, *remaining[position:]]
    return words, reference


def expected(hypothesis: list[str], reference: list[str]) -> int:
    edits, _ = translation_edit_rate(hypothesis, reference)
    return int(edits)


def check(hypothesis: list[str], reference: list[str]) -> None:
    edits = count_edits(hypothesis, reference)
    assert edits.total == expected(hypothesis, reference)
    assert min(edits) >= 0
    assert len(hypothesis) + edits.insertions - edits.deletions == len(reference)


@settings(max_examples=80, deadline=None)
@given(rearranged())
def test_edits_equal_sacrebleus_on_moved_blocks(pair: tuple[list[str], list[str]]) -> None:
    check(*pair)


# Sizes where the beam cuts paths or is widened, and where the search reaches its limits:
# blocks of 10 words, shifts over 50 words, 1,000 candidates.
@pytest.mark.parametrize(
    ("rows", "columns", "size"),
    [
        (1, 1, 2),
        (1, 130, 5),
        (130, 1, 5),
        (2, 160, 3),
        (3, 300, 40),
        (300, 3, 40),
        (60, 61, 400),
        (80, 40, 60),
        (90, 95, 900),
        (300, 290, 3000),
    ],
)
def test_edits_equal_sacrebleus_on_long_texts(rows: int, columns: int, size: int) -> None:
    rng = random.Random(rows * columns)
    reference = [str(rng.randrange(size)) for _ in range(columns)]
    check([str(rng.randrange(size)) for _ in range(rows)], reference)


def noisy_copy(reference: list[str], edits: int) -> list[str]:
    """Move blocks of words, and substitute, drop and insert others."""
    rng, words = random.Random(len(reference)), list(reference)
    for n in range(edits):
        start = rng.randrange(len(words) - 30)
        block = words[start : start + rng.randrange(1, 5)]
        if n % 2:
            del words[start : start + len(block)]
            position = start + rng.randrange(25)
            words[position:position] = block
        else:
            words[start : start + 1] = rng.choice([[], ["new"], [words[start], block[-1]]])
    return words


@pytest.mark.parametrize(("length", "edits"), [(90, 8), (450, 8)])
def test_edits_of_long_texts_equal_sacrebleus(length: int, edits: int) -> None:
    rng = random.Random(length)
    reference = [str(int(rng.paretovariate(0.7))) for _ in range(length)]
    hypothesis = noisy_copy(reference, edits)
    check(hypothesis, reference)
    assert count_edits(hypothesis, reference).shifts >= 2


def test_the_search_stops_at_a_thousand_candidates_as_sacrebleu_does(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    reference = list("abcdefghijklmnopqrstuvwxyzABCDEFGHIJ")
    hypothesis = reference[18:] + reference[:18]
    limited = count_edits(hypothesis, reference)
    assert limited.total == expected(hypothesis, reference)
    monkeypatch.setattr("tertium.text.ter_edits.MAX_CANDIDATES", 10**9)
    assert count_edits(hypothesis, reference).total < limited.total


def test_edits_by_kind() -> None:
    # By hand; the last is the example of Snover et al. (2006): one shift, two substitutions and one
    # insertion, for "this week" out of place, "the saudis" and the missing "american".
    assert count_edits([], []) == Edits()
    assert count_edits([], ["a", "b"]) == Edits(insertions=2)
    assert count_edits(["a", "b"], []) == Edits(deletions=2)
    assert count_edits(list("abcd"), list("dabc")) == Edits(shifts=1)
    assert count_edits(list("abc"), list("axcd")) == Edits(insertions=1, substitutions=1)
    reference = "saudi arabia denied this week information published in the american new york times"
    hypothesis = "this week the saudis denied information published in the new york times"
    edits = count_edits(hypothesis.split(), reference.split())
    assert edits == Edits(insertions=1, deletions=0, substitutions=2, shifts=1)


def edits_for(costs: Costs, left: list[str], right: list[str]) -> Edits:
    [edits] = count_edits_for_costs([costs], left, right)
    return edits


prices = st.sampled_from([0.0, 0.1, 0.25, 0.5, 1.0, 1.5, 2.0, 3.0])


@settings(deadline=None)
@given(
    vocabulary(4),
    vocabulary(4),
    st.builds(Costs, insertion=prices, deletion=prices, substitution=prices, shift=prices),
)
def test_shifts_never_cost_more_than_they_save(
    left: list[str], right: list[str], costs: Costs
) -> None:
    edits = edits_for(costs, left, right)
    assert len(left) + edits.insertions - edits.deletions == len(right)
    assert edits.cost(costs) <= plain_cost(left, right, costs) + 1e-9


@settings(deadline=None)
@given(
    rearranged(),
    st.lists(
        st.builds(Costs, insertion=prices, deletion=prices, substitution=prices, shift=prices),
        min_size=1,
        max_size=4,
    ),
)
def test_several_costs_together_equal_each_alone(
    pair: tuple[list[str], list[str]], many: list[Costs]
) -> None:
    many = [Costs(), *many]
    together = count_edits_for_costs(many, *pair)
    assert together == [edits_for(costs, *pair) for costs in many]
    assert together[0] == count_edits(*pair)  # by bits


def test_more_shifts_than_one_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = random.Random(3)
    reference = [str(rng.randrange(40)) for _ in range(50)]
    hypothesis = reference[25:] + reference[:25]
    many = [Costs(), Costs(insertion=0.05), Costs(substitution=0.5, shift=0.25)]
    together = count_edits_for_costs(many, hypothesis, reference)
    monkeypatch.setattr("tertium.text.ter_edits.SHIFT_BATCH", 3)
    assert count_edits_for_costs(many, hypothesis, reference) == together
    assert together[0].total == expected(hypothesis, reference)


def plain_cost(left: list[str], right: list[str], costs: Costs) -> float:
    """Compute the weighted edit distance without shifts by the textbook recurrence."""
    row = [j * costs.insertion for j in range(len(right) + 1)]
    for word in left:
        above, row = row, [row[0] + costs.deletion]
        for j, expected_word in enumerate(right):
            keep = above[j] + (0.0 if word == expected_word else costs.substitution)
            row.append(min(keep, above[j + 1] + costs.deletion, row[j] + costs.insertion))
    return row[-1]


def test_costs_decide_between_edits() -> None:
    left, right = list("xab"), list("aby")
    # A substitution at each place costs 3; deleting x and inserting y costs 2.
    assert count_edits(left, right) == Edits(insertions=1, deletions=1)
    # Deleting and inserting for 0.55 together is cheaper than a shift.
    moved, order = list("ba"), list("ab")
    assert count_edits(moved, order) == Edits(shifts=1)
    assert edits_for(Costs(insertion=0.05, deletion=0.5), moved, order) == Edits(1, 1, 0, 0)
    assert edits_for(Costs(shift=5.0), moved, order).shifts == 0
