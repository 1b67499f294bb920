"""An analysis becomes a tree of nodes that bear meaning."""

from __future__ import annotations

from tertium.linguistics.graph import build_graph
from tertium.linguistics.parse import load_parser


def test_passive_and_active_share_their_deep_relations() -> None:
    roles = []
    texts = ["Pirates kidnapped workers.", "Workers were kidnapped by pirates."]
    for analysis in load_parser().analyse(texts):
        nodes = build_graph(analysis).nodes
        roles.append({n.lemma: n.role for n in nodes if n.content})
    assert roles[0] == roles[1] == {"pirate": "subject", "kidnap": "root", "worker": "object"}


def test_prepositions_hang_below_their_objects() -> None:
    [analysis] = load_parser().analyse(["He came out of the house on 5 May 2016."])
    graph = build_graph(analysis)
    nodes = {node.text: node for node in graph.nodes}
    assert graph.nodes[nodes["house"].parent].text == "came"
    assert nodes["house"].marker == "out_of"
    assert nodes["5 May 2016"].role == "adjunct"
    assert graph.phrase(nodes["house"].index) == "out of the house"
