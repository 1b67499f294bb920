"""A sentence ready to be compared: its graph, what holds of its nodes, and what its words bring."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from tertium.arrays import Float32Array
from tertium.linguistics.graph import Graph, Node, build_graph
from tertium.linguistics.interpretation import Marks, interpret
from tertium.linguistics.parse import Analysis
from tertium.linguistics.similarity import BRIDGES, WordProfile, profile

# a unit vector for each node of a graph, zeros where it has none, (nodes, dim)
NodeVectors = Callable[[Graph], Float32Array]


@dataclass(frozen=True, slots=True, eq=False)
class Sentence:
    """A text as features see it.

    `marks[i]` and `profiles[i]` belong to `graph.nodes[i]`; row i of `vectors` (nodes, dim) is the
    unit vector of its word, zeros where it has none; `initials` leads from the first letters of
    each name of several words to the node at its head. `contents` and `grammar` number the nodes of
    either sort; `bridges` are those of grammar that can stand for content.
    """

    graph: Graph
    marks: tuple[Marks, ...]
    profiles: tuple[WordProfile, ...]
    vectors: Float32Array
    initials: dict[str, int]
    contents: tuple[int, ...]
    grammar: tuple[int, ...]
    bridges: tuple[int, ...]

    @property
    def text(self) -> str:
        return self.graph.analysis.text

    @property
    def nodes(self) -> tuple[Node, ...]:
        return self.graph.nodes


def build_sentence(analysis: Analysis, vectors: NodeVectors | None = None) -> Sentence:
    """Everything about one analysed text that a comparison needs; without vectors, all are zero."""
    graph = build_graph(analysis)
    rows = vectors(graph) if vectors else np.zeros((len(graph.nodes), 1), dtype=np.float32)
    return Sentence(
        graph,
        interpret(graph),
        tuple(profile(node.lemma, node.kind) for node in graph.nodes),
        rows,
        _initials(graph),
        tuple(n.index for n in graph.nodes if n.content),
        tuple(n.index for n in graph.nodes if not n.content),
        tuple(n.index for n in graph.nodes if not n.content and n.lemma in BRIDGES),
    )


def _initials(graph: Graph) -> dict[str, int]:
    tokens = graph.analysis.tokens
    found: dict[str, int] = {}
    for span in graph.analysis.entities:
        words = [t.text for t in tokens[span.start : span.end] if t.pos != "DET"]
        letters = [word[0] for word in words if word[0].isupper()]
        if len(letters) > 1:
            inside = [n for n in graph.nodes if span.start <= n.head < span.end]
            if inside:
                found["".join(letters).lower()] = min(inside, key=lambda n: n.depth).index
    return found
