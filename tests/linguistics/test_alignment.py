"""The alignment search finds the best alignment there is, and aligns what a reader would."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np
import pytest

from tertium.linguistics import alignment
from tertium.linguistics.alignment import (
    NOTHING,
    Candidate,
    WordAlignment,
    align_both,
    candidates,
    drop_claimed,
    edge_score,
    solve,
)
from tertium.linguistics.graph import ROOT
from tertium.linguistics.parse import load_parser
from tertium.linguistics.sentence import Sentence, build_sentence
from tertium.linguistics.similarity import FLIPPED, profile, relate

SMALL = [
    ("India acquires arms.", "India buys 1,000 tanks."),
    ("The virus did not infect anybody.", "No one was infected by the virus."),
    ("The dog bit the man.", "The man bit the dog."),
    ("Today I will face this reality.", "I shall face that fact today."),
    ("the the the the", "the cat saw the dog the"),
    ("A cat saw a dog.", "The dog saw the cat and a bird."),
    ("Word salad the eats quickly.", "Quickly he eats the salad."),
    ("", "Something."),
    ("Something.", ""),
]


def sentence_of(text: str) -> Sentence:
    [analysis] = load_parser().analyse([text])
    return build_sentence(analysis)


def align(hypothesis: Sentence, premise: Sentence) -> WordAlignment:
    """One direction by itself."""
    return solve(hypothesis, premise, candidates(hypothesis, premise))


def partners(hypothesis: str, premise: str) -> dict[str, str]:
    h, p = sentence_of(hypothesis), sentence_of(premise)
    targets = align(h, p).targets
    return {n.text: p.nodes[t].text if (t := targets[n.index]) != NOTHING else "" for n in h.nodes}


def score_of(
    hypothesis: Sentence,
    premise: Sentence,
    found: Sequence[list[Candidate]],
    targets: Sequence[int],
) -> float:
    """The score of any alignment, -inf where a node has no such candidate."""
    parents = [node.parent for node in premise.nodes]
    roles = [node.role for node in premise.nodes]
    total = 0.0
    options = alignment._find_states(hypothesis, premise, drop_claimed(found))
    for i, target in enumerate(targets):
        states = {s[0]: s[1] for s in options[i]}
        if target not in states:
            return float("-inf")
        total += states[target]
        node = hypothesis.nodes[i]
        if node.parent != ROOT and NOTHING not in (target, targets[node.parent]):
            total += edge_score(target, targets[node.parent], node.role, parents, roles)
    return total


def best_by_enumeration(h: Sentence, p: Sentence) -> float:
    found = candidates(h, p)
    options = [[NOTHING, *(c[0] for c in row)] for row in drop_claimed(found)]
    return max(score_of(h, p, found, choice) for choice in itertools.product(*options))


@pytest.mark.parametrize(("hypothesis", "premise"), SMALL)
def test_the_search_is_exact(hypothesis: str, premise: str) -> None:
    for left, right in ((hypothesis, premise), (premise, hypothesis)):
        h, p = sentence_of(left), sentence_of(right)
        found = align(h, p)
        assert found.score == pytest.approx(best_by_enumeration(h, p), abs=1e-9)
        own = score_of(h, p, candidates(h, p), found.targets)
        assert found.score == pytest.approx(own, abs=1e-9)


def test_the_search_is_exact_on_random_word_orders() -> None:
    rng = np.random.default_rng(7)
    words = "the old cat saw a dog and it ran home".split()
    for _ in range(15):
        h, p = (sentence_of(" ".join(rng.choice(words, size=5))) for _ in range(2))
        assert align(h, p).score == pytest.approx(best_by_enumeration(h, p), abs=1e-9)


LONG = ("the old cat saw a dog and it ran home ." * 15, "a dog ran to the cats , it saw one ." * 17)


def test_of_many_candidates_the_best_are_kept() -> None:
    """By a loop: at each place the best of all, of equals the first."""
    h, p = map(sentence_of, LONG)
    rows = drop_claimed(candidates(h, p))
    for i, states in enumerate(alignment._find_states(h, p, rows)):
        weight = 1.0 if h.nodes[i].content else alignment.FUNCTION_WEIGHT
        every = []
        for j, likeness, relation in rows[i]:
            drift = alignment.DRIFT * abs(i / len(h.nodes) - j / len(p.nodes))
            every.append((j, weight * (likeness - alignment.THRESHOLD) - drift, likeness, relation))
        if len(every) > alignment.WIDEST:
            every = sorted(every, key=lambda state: -state[1])[: alignment.WIDEST]
        assert states[1:] == every
    assert max(map(len, rows)) > alignment.WIDEST


@pytest.mark.parametrize(("hypothesis", "premise"), [*SMALL, LONG])
def test_both_directions_equal_each_alone(hypothesis: str, premise: str) -> None:
    h, p = sentence_of(hypothesis), sentence_of(premise)
    for joint, alone in zip(align_both(h, p), (align(h, p), align(p, h)), strict=True):
        assert isinstance(joint, WordAlignment)
        assert (joint.targets, joint.relations, joint.edges) == (
            alone.targets,
            alone.relations,
            alone.edges,
        )


def test_a_text_is_aligned_with_itself() -> None:
    s = sentence_of("Scottish boards need to improve checks for staff, a watchdog has said.")
    found = align(s, s)
    assert found.targets == tuple(range(len(s.nodes)))
    assert set(found.edges) == {"same", ""}


def test_the_papers_passive_is_aligned_by_meaning() -> None:
    # Pado et al. 2009, figure 1
    found = partners("The virus did not infect anybody.", "No one was infected by the virus.")
    assert found["virus"] == "virus"
    assert found["infect"] == "infected"
    assert found["anybody"] == "No one"


def test_the_papers_paraphrase_is_aligned_by_meaning() -> None:
    # Pado et al. 2009, example 1
    found = partners(
        "However, this was declared terrorism by observers and witnesses.",
        "Nevertheless, commentators as well as eyewitnesses are terming it terrorism.",
    )
    assert found["However"] == "Nevertheless"
    assert found["observers"] == "commentators"
    assert found["and"] == "as well as"
    assert found["witnesses"] == "eyewitnesses"


def test_structure_decides_between_equal_words() -> None:
    found = align(
        h := sentence_of("The dog saw the cat."), p := sentence_of("The cat was seen by the dog.")
    )
    for node in h.nodes:
        if node.text.lower() == "the":
            target = p.nodes[found.targets[node.index]]
            assert p.nodes[target.parent].text == h.nodes[node.parent].text


def test_an_acronym_finds_its_name() -> None:
    found = partners("The NHS failed.", "The National Health Service failed.")
    assert found["NHS"] == "Service"


def test_numbers_align_by_value() -> None:
    assert partners("He sold 1,000 cars.", "He sold a thousand cars.")["1,000"] == "a thousand"


def test_long_texts_are_aligned_in_bounded_time() -> None:
    h, p = sentence_of("the old cat saw the dog " * 80), sentence_of("a dog saw the cat . " * 80)
    assert len(align(h, p).targets) == len(h.nodes)


@pytest.mark.parametrize(
    ("a", "b", "kind", "relation"),
    [
        ("car", "automobile", "noun", "synonym"),
        ("dog", "animal", "noun", "hypernym"),
        ("animal", "dog", "noun", "hyponym"),
        ("hot", "cold", "adjective", "antonym"),
        ("snore", "sleep", "verb", "entailment"),
        ("dog", "parliament", "noun", "none"),
        ("abuzar", "abuzer", "name", "spelling"),
        ("rasheed", "merkel", "name", "none"),
        ("aid_worker", "worker", "noun", "part"),
    ],
)
def test_words_are_related(a: str, b: str, kind: str, relation: str) -> None:
    assert relate(profile(a, kind), profile(b, kind)).relation == relation
    assert relate(profile(b, kind), profile(a, kind)).relation == FLIPPED.get(relation, relation)


def test_derivation_crosses_parts_of_speech() -> None:
    assert relate(profile("invade", "verb"), profile("invasion", "noun")).relation == "derivation"
