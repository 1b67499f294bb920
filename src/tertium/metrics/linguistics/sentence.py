"""A parsed sentence with all properties that an alignment needs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from tertium.core.arrays import Float32Array
from tertium.metrics.linguistics.analysis import Analysis
from tertium.metrics.linguistics.dependency_graph import Graph, Node, build_graph
from tertium.metrics.linguistics.semantic_attributes import (
    SemanticAttributes,
    extract_attributes,
)
from tertium.metrics.linguistics.word_similarity import (
    CROSS_CLASS_WORDS,
    WordProfile,
    build_profile,
)

# graph -> one unit vector per node, zeros for nodes without a vector, (nodes, dim)
NodeVectorizer = Callable[[Graph], Float32Array]


@dataclass(frozen=True, slots=True, eq=False)
class Sentence:
    """A dependency graph with node attributes, word profiles and word vectors.

    `attributes[i]`, `profiles[i]` and row i of `vectors` (nodes, dim) belong to `graph.nodes[i]`.
    `acronyms` maps the initials of each multi-word name to its head node. `content_nodes` and
    `function_nodes` are node indices; `cross_class_nodes` are function words that can match a
    content word.
    """

    graph: Graph
    attributes: tuple[SemanticAttributes, ...]
    profiles: tuple[WordProfile, ...]
    vectors: Float32Array
    acronyms: dict[str, int]
    content_nodes: tuple[int, ...]
    function_nodes: tuple[int, ...]
    cross_class_nodes: tuple[int, ...]

    @property
    def nodes(self) -> tuple[Node, ...]:
        return self.graph.nodes


def build_sentence(analysis: Analysis, vectorize: NodeVectorizer | None = None) -> Sentence:
    """Build a sentence from an analysis; without `vectorize`, all vectors are zero."""
    graph = build_graph(analysis)
    vectors = vectorize(graph) if vectorize else np.zeros((len(graph.nodes), 1), dtype=np.float32)
    function_nodes = [node for node in graph.nodes if not node.is_content]
    return Sentence(
        graph,
        extract_attributes(graph),
        tuple(build_profile(node.lemma, node.kind) for node in graph.nodes),
        vectors,
        _find_acronyms(graph),
        tuple(node.index for node in graph.nodes if node.is_content),
        tuple(node.index for node in function_nodes),
        tuple(node.index for node in function_nodes if node.lemma in CROSS_CLASS_WORDS),
    )


def _find_acronyms(graph: Graph) -> dict[str, int]:
    tokens = graph.analysis.tokens
    acronyms: dict[str, int] = {}
    for span in graph.analysis.entities:
        words = [t.text for t in tokens[span.start : span.end] if t.pos != "DET"]
        letters = [word[0] for word in words if word[0].isupper()]
        if len(letters) > 1:
            inside = [n for n in graph.nodes if span.start <= n.head < span.end]
            if inside:
                acronyms["".join(letters).lower()] = min(inside, key=lambda n: n.depth).index
    return acronyms
