"""What holds of a word is read from the nodes around it."""

from __future__ import annotations

import pytest

from tertium.linguistics.graph import build_graph
from tertium.linguistics.interpretation import interpret
from tertium.linguistics.parse import load_parser


@pytest.mark.parametrize(
    ("text", "word", "expected"),
    [
        ("The virus did not infect anybody.", "infect", {"negated": True, "tense": "past"}),
        ("No one was infected by the virus.", "infected", {"negated": True, "passive": True}),
        ("Nobody did not come.", "come", {"negated": False}),
        ("He failed to come.", "come", {"negated": True, "attitude": "negative"}),
        ("There are no tunnels.", "are", {"negated": True}),
        ("He left without eating.", "eating", {"negated": True}),
        ("He might leave.", "leave", {"modality": "possible"}),
        ("He has to leave.", "leave", {"modality": "necessary"}),
        ("Peter is certainly from Lincolnshire.", "is", {"modality": "certain"}),
        ("If it rains, we leave.", "rains", {"modality": "hypothetical", "downward": True}),
        ("We will have been sleeping.", "sleeping", {"tense": "future", "perfect": True}),
        ("She is going to leave.", "going", {"tense": "future"}),
        ("He knows that she left.", "left", {"attitude": "factive", "tense": "past"}),
        ("All dogs sleep.", "dogs", {"quantifier": "all", "number": "plural", "downward": True}),
        ("A dog sleeps.", "dog", {"definite": "indefinite", "number": "singular"}),
        ("My dog is bigger.", "bigger", {"degree": "comparative"}),
        ("My dog sleeps.", "dog", {"definite": "definite"}),
    ],
)
def test_what_holds_of_a_word(text: str, word: str, expected: dict[str, object]) -> None:
    [analysis] = load_parser().analyse([text])
    graph = build_graph(analysis)
    [marks] = [m for n, m in zip(graph.nodes, interpret(graph), strict=True) if n.text == word]
    assert {name: getattr(marks, name) for name in expected} == expected
