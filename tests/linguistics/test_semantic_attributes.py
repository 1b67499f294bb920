"""Semantic attributes of nodes: polarity, modality, tense, quantifiers."""

from __future__ import annotations

import pytest

from tertium.metrics.linguistics.dependency_graph import build_graph
from tertium.metrics.linguistics.dependency_parser import load_parser
from tertium.metrics.linguistics.semantic_attributes import extract_attributes


@pytest.mark.parametrize(
    ("text", "word", "expected"),
    [
        ("The virus did not infect anybody.", "infect", {"is_negated": True, "tense": "past"}),
        ("No one was infected by the virus.", "infected", {"is_negated": True, "is_passive": True}),
        ("Nobody did not come.", "come", {"is_negated": False}),
        ("He failed to come.", "come", {"is_negated": True, "attitude": "negative"}),
        ("There are no tunnels.", "are", {"is_negated": True}),
        ("He left without eating.", "eating", {"is_negated": True}),
        ("He might leave.", "leave", {"modality": "possible"}),
        ("He has to leave.", "leave", {"modality": "necessary"}),
        ("Peter is certainly from Lincolnshire.", "is", {"modality": "certain"}),
        ("If it rains, we leave.", "rains", {"modality": "hypothetical", "is_downward": True}),
        ("We will have been sleeping.", "sleeping", {"tense": "future", "is_perfect": True}),
        ("She is going to leave.", "going", {"tense": "future"}),
        ("He knows that she left.", "left", {"attitude": "factive", "tense": "past"}),
        ("All dogs sleep.", "dogs", {"quantifier": "all", "number": "plural", "is_downward": True}),
        ("A dog sleeps.", "dog", {"definiteness": "indefinite", "number": "singular"}),
        ("My dog is bigger.", "bigger", {"degree": "comparative"}),
        ("My dog sleeps.", "dog", {"definiteness": "definite"}),
    ],
)
def test_attributes_of_a_word(text: str, word: str, expected: dict[str, object]) -> None:
    [analysis] = load_parser().analyze([text])
    graph = build_graph(analysis)
    [attributes] = [
        m for n, m in zip(graph.nodes, extract_attributes(graph), strict=True) if n.text == word
    ]
    assert {name: getattr(attributes, name) for name in expected} == expected
