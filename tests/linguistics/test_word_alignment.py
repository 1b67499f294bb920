"""Word alignment: the search is exact, and words with the same meaning are aligned."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np
import pytest

from tertium.metrics.linguistics import word_alignment
from tertium.metrics.linguistics.dependency_graph import ROOT, build_graph
from tertium.metrics.linguistics.dependency_parser import load_parser
from tertium.metrics.linguistics.semantic_attributes import Sentence, build_sentence
from tertium.metrics.linguistics.word_alignment import (
    EDGE_SCORES,
    UNALIGNED,
    Candidate,
    WordAlignment,
    align_both_directions,
    compare_edge,
    find_best_alignment,
    find_candidates,
    prune_candidates,
)
from tertium.metrics.linguistics.word_similarity import (
    INVERSE_RELATIONS,
    build_profile,
    relate_content_words,
)

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


def parse_sentence(text: str) -> Sentence:
    [analysis] = load_parser().analyze([text])
    return build_sentence(build_graph(analysis))


def align(hypothesis: Sentence, premise: Sentence) -> WordAlignment:
    """Align one direction only."""
    return find_best_alignment(hypothesis, premise, find_candidates(hypothesis, premise))


def aligned_words(hypothesis: str, premise: str) -> dict[str, str]:
    h, p = parse_sentence(hypothesis), parse_sentence(premise)
    targets = align(h, p).targets
    return {
        n.text: p.nodes[t].text if (t := targets[n.index]) != UNALIGNED else "" for n in h.nodes
    }


def score_alignment(
    hypothesis: Sentence,
    premise: Sentence,
    rows: Sequence[list[Candidate]],
    targets: Sequence[int],
) -> float:
    """Score any alignment; -inf if a node has no such candidate."""
    total = 0.0
    options = word_alignment._score_candidates(hypothesis, premise, prune_candidates(rows))
    for i, target in enumerate(targets):
        states = {s[0]: s[1] for s in options[i]}
        if target not in states:
            return float("-inf")
        total += states[target]
        node = hypothesis.nodes[i]
        if node.parent != ROOT and UNALIGNED not in (target, targets[node.parent]):
            edge = compare_edge(premise.nodes, target, targets[node.parent], node.role)
            total += EDGE_SCORES[edge]
    return total


def best_score_by_enumeration(h: Sentence, p: Sentence) -> float:
    rows = find_candidates(h, p)
    options = [[UNALIGNED, *(c[0] for c in row)] for row in prune_candidates(rows)]
    return max(score_alignment(h, p, rows, choice) for choice in itertools.product(*options))


@pytest.mark.parametrize(("hypothesis", "premise"), SMALL)
def test_search_is_exact(hypothesis: str, premise: str) -> None:
    for left, right in ((hypothesis, premise), (premise, hypothesis)):
        h, p = parse_sentence(left), parse_sentence(right)
        result = align(h, p)
        assert result.score == pytest.approx(best_score_by_enumeration(h, p), abs=1e-9)
        rescored = score_alignment(h, p, find_candidates(h, p), result.targets)
        assert result.score == pytest.approx(rescored, abs=1e-9)


def test_search_is_exact_on_random_word_orders() -> None:
    rng = np.random.default_rng(7)
    words = "the old cat saw a dog and it ran home".split()
    for _ in range(15):
        h, p = (parse_sentence(" ".join(rng.choice(words, size=5))) for _ in range(2))
        assert align(h, p).score == pytest.approx(best_score_by_enumeration(h, p), abs=1e-9)


LONG = ("the old cat saw a dog and it ran home ." * 15, "a dog ran to the cats , it saw one ." * 17)


@pytest.mark.parametrize(("hypothesis", "premise"), [*SMALL, LONG])
def test_joint_alignment_equals_each_direction_alone(hypothesis: str, premise: str) -> None:
    h, p = parse_sentence(hypothesis), parse_sentence(premise)
    for joint, alone in zip(align_both_directions(h, p), (align(h, p), align(p, h)), strict=True):
        for name in ("targets", "relations", "edges"):
            assert getattr(joint, name) == getattr(alone, name)


def test_text_is_aligned_with_itself() -> None:
    s = parse_sentence("Scottish boards need to improve checks for staff, a watchdog has said.")
    result = align(s, s)
    assert result.targets == tuple(range(len(s.nodes)))
    assert set(result.edges) == {"same", ""}


@pytest.mark.parametrize(
    ("hypothesis", "premise", "expected"),
    [  # Pado et al. 2009, figure 1 and example 1, an acronym, a number
        (
            "The virus did not infect anybody.",
            "No one was infected by the virus.",
            {"virus": "virus", "infect": "infected", "anybody": "No one"},
        ),
        (
            "However, this was declared terrorism by observers and witnesses.",
            "Nevertheless, commentators as well as eyewitnesses are terming it terrorism.",
            {"However": "Nevertheless", "observers": "commentators", "and": "as well as"},
        ),
        (
            "The NHS failed.",
            "The National Health Service failed.",
            {"NHS": "Service"},
        ),
        ("He sold 1,000 cars.", "He sold a thousand cars.", {"1,000": "a thousand"}),
    ],
)
def test_words_of_the_same_meaning_are_aligned(
    hypothesis: str, premise: str, expected: dict[str, str]
) -> None:
    assert expected.items() <= aligned_words(hypothesis, premise).items()


def test_structure_decides_between_equal_words() -> None:
    result = align(
        h := parse_sentence("The dog saw the cat."),
        p := parse_sentence("The cat was seen by the dog."),
    )
    for node in h.nodes:
        if node.text.lower() == "the":
            target = p.nodes[result.targets[node.index]]
            assert p.nodes[target.parent].text == h.nodes[node.parent].text


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
def test_relation_of_two_words(a: str, b: str, kind: str, relation: str) -> None:
    left, right = build_profile(a, kind), build_profile(b, kind)
    assert relate_content_words(left, right).relation == relation
    inverse = INVERSE_RELATIONS.get(relation, relation)
    assert relate_content_words(right, left).relation == inverse


def test_derivation_crosses_parts_of_speech() -> None:
    profiles = build_profile("invade", "verb"), build_profile("invasion", "noun")
    assert relate_content_words(*profiles).relation == "derivation"
