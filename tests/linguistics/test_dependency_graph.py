"""Dependency graphs: deep roles and prepositions."""

from __future__ import annotations

from tertium.metrics.linguistics.dependency_graph import build_graph
from tertium.metrics.linguistics.dependency_parser import load_parser


def test_passive_and_active_have_the_same_deep_roles() -> None:
    roles = []
    texts = ["Pirates kidnapped workers.", "Workers were kidnapped by pirates."]
    for analysis in load_parser().analyze(texts):
        nodes = build_graph(analysis).nodes
        roles.append({n.lemma: n.role for n in nodes if n.is_content})
    assert roles[0] == roles[1] == {"pirate": "subject", "kidnap": "root", "worker": "object"}


def test_prepositions_are_below_their_objects() -> None:
    [analysis] = load_parser().analyze(["He came out of the house on 5 May 2016."])
    graph = build_graph(analysis)
    nodes = {node.text: node for node in graph.nodes}
    assert graph.nodes[nodes["house"].parent].text == "came"
    assert nodes["house"].marker == "out_of"
    assert nodes["5 May 2016"].role == "adjunct"
    assert graph.phrase_text(nodes["house"].index) == "out of the house"
