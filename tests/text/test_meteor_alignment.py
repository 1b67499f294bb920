"""METEOR's alignment: its preferences, and that no word is used twice."""

from __future__ import annotations

import random
from collections.abc import Callable
from itertools import product
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tertium.text.meteor_alignment import (
    CHUNK,
    Match,
    MeteorAlignment,
    Path,
    align,
    choose_matches,
    count_chunks,
    find_matches,
)

WORDS = st.lists(st.sampled_from(["a", "b", "as", "bs", "c"]), max_size=8)


def stem(word: str) -> str:
    return word.rstrip("s")


def positions(alignment: MeteorAlignment) -> list[tuple[int, int]]:
    return [(m.hypothesis_start, m.reference_start) for m in alignment.matches]


def test_a_contested_stem_alone_is_not_worth_a_chunk() -> None:
    """As METEOR 1.5: half a word rounds to zero, so a match that only adds a chunk is skipped."""
    free = align(["x", "cats"], ["cat", "y"], stem=stem)
    contested = align(["cats", "x", "cats"], ["cat", "y"], stem=stem)
    assert len(free.matches) == 1
    assert contested.matches == ()


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
    candidates, _ = find_matches(hypothesis, reference)
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


SENSES = {
    word: frozenset(numbers)
    for word, numbers in {"a": (1, 2), "b": (2,), "c": (3,), "as": (3,)}.items()
}


def senses(word: str) -> frozenset[int]:
    return SENSES.get(word, frozenset())


@given(WORDS, WORDS)
def test_all_pairs_of_matching_words_are_candidates(
    hypothesis: list[str], reference: list[str]
) -> None:
    expected: dict[str, Callable[[str, str], bool]] = {
        "exact": lambda left, right: left == right,
        "stem": lambda left, right: left != right and stem(left) == stem(right),
        "synonym": lambda left, right: left != right and not senses(left).isdisjoint(senses(right)),
    }
    matches, is_limited = find_matches(hypothesis, reference, stem, senses)
    assert not is_limited
    assert matches == [
        Match(stage, j, 1, i, 1)
        for stage, matches_in_stage in expected.items()
        for i, j in product(range(len(reference)), range(len(hypothesis)))
        if matches_in_stage(hypothesis[j], reference[i])
    ]


def test_texts_of_400_words_are_compared_in_full() -> None:
    matches, is_limited = find_matches(["word"] * 400, ["word"] * 400)
    assert (len(matches), is_limited) == (160_000, False)
    matches, is_limited = find_matches(["word"] * 410, ["word"] * 400)
    assert (len(matches), is_limited) == (205 * 400, True)


def test_a_frequent_word_of_a_long_text_matches_nearby_words() -> None:
    reference = ["word"] * 2_000
    matches, is_limited = find_matches(["rare", *reference, "rare"], [*reference, "rare"])
    assert is_limited
    assert len(matches) <= 160_000
    assert max(abs(m.hypothesis_start - m.reference_start) for m in matches[2_000:-2_000]) < 80
    assert [m.hypothesis_start for m in matches[-2:]] == [0, 2_001]


@pytest.mark.parametrize("count", [410, 3_000])
def test_a_long_repetition_is_one_chunk(count: int) -> None:
    alignment = align(["word"] * count, ["word"] * (count - 50))
    assert len(alignment.matches) == count - 50
    assert alignment.chunks == 1


def extend_all(paths: list[Path], candidates: Any, position: int, beam: int) -> list[Path]:
    """Extend each path in every way, as METEOR does."""
    extended: list[Path] = []
    for path in paths:
        rank, words, undecided, end, last = path
        if undecided > position:
            extended.append(path)
            continue
        chunk = CHUNK if end >= 0 else 0
        for match, match_words, cost, start, stop, reference_end, distance in candidates:
            if not words & match_words:
                own = rank + cost + (0 if start == end else chunk)
                extended.append((own, words | match_words, reference_end, stop, (match, last)))
                rank += distance
        extended.append((rank + chunk, words, position + 1, -1, last))
    return extended


@settings(max_examples=50, deadline=None)
@given(st.integers(0, 10**6), st.sampled_from([1, 2, 5, 40]))
def test_paths_that_are_left_out_could_not_win(seed: int, beam: int) -> None:
    rng = random.Random(seed)
    hypothesis, reference = rng.choices("abcdefg", k=50), rng.choices("abcdefg", k=40)
    phrases = [
        Match("paraphrase", rng.randrange(46), rng.randrange(1, 4), start, rng.randrange(1, 4))
        for start in range(0, 37, 2)
    ]
    candidates = [*find_matches(hypothesis, reference, None, senses)[0], *phrases]
    chosen = choose_matches(candidates, 50, 40, beam)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("tertium.text.meteor_alignment._extend", extend_all)
        assert choose_matches(candidates, 50, 40, beam) == chosen
