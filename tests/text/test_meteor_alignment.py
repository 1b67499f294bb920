"""METEOR's alignment: its preferences, and that no word is used twice."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tertium.text import meteor_long_search
from tertium.text.meteor_alignment import (
    MeteorAlignment,
    align,
    count_chunks,
    exact_matches,
    stem_matches,
    synonym_matches,
)
from tertium.text.meteor_long_search import choose_long_matches, group_matches
from tertium.text.meteor_search import BEAM, Match, choose_matches

WORDS = st.lists(st.sampled_from(["a", "b", "as", "bs", "c"]), max_size=8)


def stem(word: str) -> str:
    return word.rstrip("s")


def positions(alignment: MeteorAlignment) -> list[tuple[int, int]]:
    return [(m.hypothesis_start, m.reference_start) for m in alignment.matches]


def test_identical_texts_are_one_chunk() -> None:
    alignment = align(list("abcab"), list("abcab"))
    assert positions(alignment) == [(n, n) for n in range(5)]
    assert alignment.chunks == 1


def test_more_words_win_over_fewer_chunks() -> None:
    alignment = align(["b", "a"], ["a", "b"])
    assert len(alignment.matches) == 2
    assert alignment.chunks == 2


def test_fewer_chunks_win_among_equal_cover() -> None:
    # The second "the" of the hypothesis continues the chunk; the first would break it.
    alignment = align(["the", "big", "the", "cat"], ["the", "cat"])
    assert positions(alignment) == [(2, 0), (3, 1)]
    assert alignment.chunks == 1


def test_a_contested_stem_alone_is_not_worth_a_chunk() -> None:
    """As METEOR 1.5: half a word rounds to zero, so a match that only adds a chunk is skipped."""
    free = align(["x", "cats"], ["cat", "y"], stem=stem)
    contested = align(["cats", "x", "cats"], ["cat", "y"], stem=stem)
    assert len(free.matches) == 1
    assert contested.matches == ()


def test_exact_is_preferred_to_stem() -> None:
    alignment = align(["cats", "cat"], ["cat"], stem=stem)
    assert alignment.matches == (Match("exact", 1, 1, 0, 1),)


def test_stages_can_be_skipped() -> None:
    senses = {"car": frozenset({1}), "auto": frozenset({1, 2})}
    words = ["cars", "auto"], ["car", "car"]
    assert align(*words).matches == ()
    assert [m.stage for m in align(["cars"], ["car"], stem=stem).matches] == ["stem"]
    matches = align(["auto"], ["car"], senses=lambda w: senses.get(w, frozenset())).matches
    assert [m.stage for m in matches] == ["synonym"]


def test_paraphrases_take_several_words() -> None:
    def table(hypothesis: Sequence[str], reference: Sequence[str]) -> list[Match]:
        return [Match("paraphrase", 1, 2, 1, 1)]

    words = ["he", "took", "part", "today"], ["he", "participated", "today"]
    alignment = align(*words, paraphrases=table)
    assert [m.stage for m in alignment.matches] == ["exact", "paraphrase", "exact"]
    assert alignment.chunks == 1


def test_chunks_by_hand() -> None:
    matches = [Match("exact", 2, 1, 0, 1), Match("exact", 3, 2, 1, 1), Match("exact", 0, 1, 2, 1)]
    assert count_chunks(matches) == 2
    assert count_chunks([]) == 0


@given(WORDS, WORDS)
def test_no_word_is_used_twice(hypothesis: list[str], reference: list[str]) -> None:
    alignment = align(hypothesis, reference, stem=stem)
    starts = positions(alignment)
    assert len({j for j, _ in starts}) == len({i for _, i in starts}) == len(starts)
    for match in alignment.matches:
        left, right = hypothesis[match.hypothesis_start], reference[match.reference_start]
        assert (left == right) == (match.stage == "exact")
        assert stem(left) == stem(right)


@settings(max_examples=60)
@given(st.lists(st.sampled_from("ab"), max_size=5), st.lists(st.sampled_from("ab"), max_size=5))
def test_the_search_finds_the_best(hypothesis: list[str], reference: list[str]) -> None:
    """Compare with all alignments of exact matches, by covered words and chunks."""
    candidates = exact_matches(hypothesis, reference)
    matches = choose_matches(candidates, len(hypothesis), len(reference), beam=10_000)
    best = min((-len(chosen), count_chunks(chosen)) for chosen in _all_alignments(candidates, 0, 0))
    assert (-len(matches), count_chunks(matches)) == best


def _all_alignments(matches: list[Match], left: int, right: int) -> list[tuple[Match, ...]]:
    if not matches:
        return [()]
    first, *remaining = matches
    without = _all_alignments(remaining, left, right)
    j, i = 1 << first.hypothesis_start, 1 << first.reference_start
    if left & j or right & i:
        return without
    return without + [(first, *more) for more in _all_alignments(remaining, left | j, right | i)]


SENSES = {"a": frozenset({1, 2}), "b": frozenset({2}), "c": frozenset({3}), "as": frozenset({3})}


@given(
    st.lists(st.sampled_from(["a", "b", "as", "bs", "c"]), max_size=24),
    st.lists(st.sampled_from(["a", "b", "as", "bs", "c"]), max_size=24),
    st.lists(st.tuples(*[st.integers(0, 23), st.integers(1, 3)] * 2), max_size=4),
    st.sampled_from([1, 2, 40]),
)
def test_the_search_for_long_texts_gives_the_same_alignment(
    hypothesis: list[str],
    reference: list[str],
    spans: list[tuple[int, int, int, int]],
    beam: int,
) -> None:
    """Compare the search for long texts with the one that tries every match."""
    phrases = [
        Match("paraphrase", start, length, at, extent)
        for start, length, at, extent in spans
        if start + length <= len(hypothesis) and at + extent <= len(reference)
    ]

    def senses(word: str) -> frozenset[int]:
        return SENSES.get(word, frozenset())

    all_matches = [
        *exact_matches(hypothesis, reference),
        *stem_matches(hypothesis, reference, stem),
        *synonym_matches(hypothesis, reference, senses),
        *phrases,
    ]
    groups = group_matches(hypothesis, reference, stem, senses)
    assert choose_long_matches(reference, groups, phrases, len(hypothesis), beam) == choose_matches(
        all_matches, len(hypothesis), len(reference), beam
    )


def test_the_steps_of_a_long_repetition_grow_with_its_length(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """At each word, at most as many matches are tried as there are paths."""
    attempts = 0
    make_item = meteor_long_search._Step._item

    def count_item(step: Any, *position: Any) -> Any:
        nonlocal attempts
        attempts += 1
        return make_item(step, *position)

    monkeypatch.setattr(meteor_long_search._Step, "_item", count_item)
    alignment = align(["word"] * 300, ["word"] * 290)
    assert len(alignment.matches) == 290
    assert alignment.chunks == 1
    assert attempts <= 290 * 2 * (BEAM + 1)


def test_a_very_long_repetition_is_searched_with_a_narrower_beam(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    widths: list[int] = []
    best = meteor_long_search._Step.best

    def record(step: Any, beam: int) -> Any:
        widths.append(beam)
        return best(step, beam)

    monkeypatch.setattr(meteor_long_search._Step, "best", record)
    alignment = align(["word"] * 20_000, ["word"] * 19_000)
    assert (len(alignment.matches), alignment.chunks) == (19_000, 1)
    assert {*widths} == {2}
