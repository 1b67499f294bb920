"""Indexed n-grams compared with n-grams as tuples in dictionaries."""

from __future__ import annotations

from collections import Counter

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from tertium.text.ngram_index import ABSENT, NgramIndex, clipped_matches

texts = st.lists(st.lists(st.sampled_from("abc"), max_size=7), max_size=5)
some_texts = texts.filter(lambda drawn: any(drawn))


def tuples(text: list[str], n: int) -> list[tuple[str, ...]]:
    return [tuple(text[p : p + n]) for p in range(len(text) - n + 1)]


@settings(deadline=None)
@given(some_texts, texts)
def test_equal_ngrams_have_equal_numbers(
    indexed: list[list[str]], queried: list[list[str]]
) -> None:
    index = NgramIndex.of(indexed, order=4)
    located = index.locate(queried)
    for n in range(1, 5):
        indexed_grams = {gram for text in indexed for gram in tuples(text, n)}
        names: dict[int, tuple[str, ...]] = {}
        position = 0
        for text in queried:
            grams = tuples(text, n)
            for p in range(len(text)):
                number = int(located.numbers[n - 1][position])
                if p < len(grams) and grams[p] in indexed_grams:
                    assert names.setdefault(number, grams[p]) == grams[p]
                else:
                    assert number == ABSENT
                position += 1
        assert len(set(names.values())) == len(names)


@settings(deadline=None)
@given(some_texts)
def test_counts_and_parents(indexed: list[list[str]]) -> None:
    index = NgramIndex.of(indexed, order=3)
    located = index.locate(indexed)
    counts = index.counts(located)
    for n in range(1, 4):
        expected = Counter(gram for text in indexed for gram in tuples(text, n))
        assert sorted(counts[n - 1].tolist()) == sorted(expected.values())
    for n in (2, 3):
        longer, shorter = located.numbers[n - 1], located.numbers[n - 2]
        present = longer != ABSENT
        assert (index.parents(n)[longer[present]] == shorter[present]).all()


@settings(deadline=None)
@given(texts.filter(bool), st.data())
def test_counts_are_clipped_as_in_bleu(hypotheses: list[list[str]], data: st.DataObject) -> None:
    size = len(hypotheses)
    references = data.draw(st.lists(texts.filter(bool), min_size=size, max_size=size))
    flat = [text for group in references for text in group]
    groups = np.repeat(np.arange(size), [len(group) for group in references])
    index = NgramIndex.of(flat, order=3)
    left, right = index.locate(hypotheses), index.locate(flat)
    for n in range(1, 4):
        ours, theirs = left.numbers[n - 1], right.numbers[n - 1]
        mask = clipped_matches(ours, left.owner, theirs, right.owner, groups)
        matches = np.bincount(left.owner[mask], minlength=size)
        for row, (text, group) in enumerate(zip(hypotheses, references, strict=True)):
            max_counts: Counter[tuple[str, ...]] = Counter()
            for reference in group:
                max_counts |= Counter(tuples(reference, n))
            assert matches[row] == (Counter(tuples(text, n)) & max_counts).total()


def test_no_words_at_all() -> None:
    index = NgramIndex.of([[], []], order=3)
    located = index.locate([["a", "b"], []])
    assert [numbers.tolist() for numbers in located.numbers] == [[ABSENT, ABSENT]] * 3
    assert [count.tolist() for count in index.counts(located)] == [[], [], []]
