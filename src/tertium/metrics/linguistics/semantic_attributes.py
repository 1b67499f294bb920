"""Parsed sentences, and the semantic attributes of their nodes: polarity, modality, tense, ...

The polarity of a predicate counts the negations that reach it: its own, a negative subject or
object, a governing "fail to" or "without". An even number cancels out. Modality comes from
auxiliaries, adverbs and governing lexicons. Monotonicity comes from negation, conditions and
quantifiers: in a downward monotone context, "an animal" does not follow from "a dog" (MacCartney
and Manning 2008).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from tertium.core.arrays import Float32Array
from tertium.metrics.linguistics import lexicons
from tertium.metrics.linguistics.dependency_graph import (
    CLAUSE_ROLES,
    NOMINAL_KINDS,
    ROOT,
    Graph,
    Node,
)
from tertium.metrics.linguistics.word_similarity import (
    CROSS_CLASS_WORDS,
    WordProfile,
    build_profile,
)

_ARGUMENTS = lexicons.word_set("subject object recipient predicate adjunct adverbial")


@dataclass(frozen=True, slots=True, kw_only=True)
class SemanticAttributes:
    """Semantic attributes of one node; fields that do not apply are empty or false.

    `attitude` is the class of the word that governs a clause: factive, report, belief, wish,
    positive or negative (implicative). `is_downward` marks nodes in a downward monotone context.
    """

    is_negated: bool = False
    modality: str = "actual"
    tense: str = ""
    is_perfect: bool = False
    is_progressive: bool = False
    is_passive: bool = False
    attitude: str = ""
    is_downward: bool = False
    quantifier: str = ""
    definiteness: str = ""
    degree: str = ""
    number: str = ""


def extract_attributes(graph: Graph) -> tuple[SemanticAttributes, ...]:
    """Extract the attributes of each node.

    >>> from tertium.metrics.linguistics.dependency_graph import build_graph
    >>> from tertium.metrics.linguistics.dependency_parser import load_parser
    >>> [analysis] = load_parser().analyze(["Nobody could have known."])
    >>> known = extract_attributes(build_graph(analysis))[-1]
    >>> known.is_negated, known.modality, known.is_perfect
    (True, 'possible', True)
    """
    negated = [_is_negated(graph, node) for node in graph.nodes]
    downward = _find_downward_nodes(graph, negated)
    return tuple(
        SemanticAttributes(
            is_negated=negated[i],
            modality=_modality(graph, node),
            attitude=_attitude(graph, node),
            is_downward=downward[i],
            **_verb_attributes(graph, node),
            **_noun_attributes(graph, node, node.parent != ROOT and negated[node.parent]),
        )
        for i, node in enumerate(graph.nodes)
    )


def _is_negated(graph: Graph, node: Node) -> bool:
    """Check for an odd number of negations of a predicate, or of other words by their own."""
    children = graph.child_nodes(node.index)
    count = (node.marker == "without") + sum(
        child.role == "negation" or child.lemma == "no_longer" for child in children
    )
    if node.kind != "verb":
        count += sum(
            child.role == "determiner" and child.lemma in lexicons.NEGATIVE_DETERMINERS
            for child in children
        )
        return count % 2 == 1
    count += sum(child.role in _ARGUMENTS and _is_negative(graph, child) for child in children)
    if node.role == "clause" and node.parent != ROOT:
        count += lexicons.ATTITUDES.get(graph.nodes[node.parent].lemma) == "negative"
    return count % 2 == 1


def _is_negative(graph: Graph, node: Node) -> bool:
    if node.lemma in lexicons.NEGATIVE_PRONOUNS or node.lemma in ("never", "nowhere", "hardly"):
        return True
    return any(
        child.role in ("determiner", "modifier") and child.lemma in lexicons.NEGATIVE_DETERMINERS
        for child in graph.child_nodes(node.index)
    )


def _modality(graph: Graph, node: Node) -> str:
    if node.kind != "verb":
        return "actual"
    modality = "actual"
    for child in graph.child_nodes(node.index):
        if child.lemma in lexicons.MODAL_ADVERBS and child.role in ("adverbial", "predicate"):
            return lexicons.MODAL_ADVERBS[child.lemma]
        if child.role == "marker" and child.lemma in lexicons.CONDITIONALS:
            return "hypothetical"
        if child.role == "auxiliary" and child.lemma in lexicons.MODAL_VERBS:
            modality = lexicons.MODAL_VERBS[child.lemma]
    if modality == "actual" and node.role == "clause" and node.parent != ROOT:
        return _governing_modality(graph, node)
    return modality


def _governing_modality(graph: Graph, node: Node) -> str:
    """Return the modality of an infinitive after "have to", "able to", "likely to" and so on."""
    parent = graph.nodes[node.parent]
    if parent.kind not in ("verb", "adjective") or node.label != "xcomp":
        return "actual"
    return lexicons.SEMI_MODALS.get(parent.lemma, "actual")


def _attitude(graph: Graph, node: Node) -> str:
    if node.parent == ROOT or node.role not in ("clause", "relative clause"):
        return ""
    parent = graph.nodes[node.parent]
    if node.role == "relative clause" and parent.lemma not in ("fact", "belief", "statement"):
        return ""
    return lexicons.ATTITUDES.get(parent.lemma, "")


def _find_downward_nodes(graph: Graph, negated: list[bool]) -> list[bool]:
    """Check for each node whether the nearest scope above it is downward monotone."""
    downward = [False] * len(graph.nodes)
    for i in sorted(range(len(graph.nodes)), key=lambda i: graph.nodes[i].depth):
        node = graph.nodes[i]
        children = graph.child_nodes(i)
        opens_scope = (
            negated[i]
            or node.marker == "without"
            or any(c.role == "marker" and c.lemma in lexicons.CONDITIONALS for c in children)
            or any(c.role == "determiner" and c.lemma in lexicons.DOWNWARD for c in children)
        )
        is_inherited = node.parent != ROOT and downward[node.parent]
        is_clause = node.role in CLAUSE_ROLES and node.kind == "verb"  # ends the scope above
        downward[i] = opens_scope or (is_inherited and not is_clause)
    return downward


def _verb_attributes(graph: Graph, node: Node) -> dict[str, Any]:
    if node.kind != "verb":
        return {}
    auxiliaries = [child for child in graph.child_nodes(node.index) if child.role == "auxiliary"]
    lemmas = {auxiliary.lemma for auxiliary in auxiliaries}
    is_participle = node.tag == "VBN" and not auxiliaries and node.role == "relative clause"
    return {
        "tense": _tense(graph, node, auxiliaries),
        "is_perfect": "have" in lemmas,
        "is_progressive": node.tag == "VBG" and "be" in lemmas,
        "is_passive": is_participle or any(a.label == "auxpass" for a in auxiliaries),
    }


_TENSES = {"VBD": "past", "VBZ": "present", "VBP": "present"}


def _tense(graph: Graph, node: Node, auxiliaries: list[Node]) -> str:
    for auxiliary in auxiliaries:
        if auxiliary.text.lower() in lexicons.FUTURE_AUXILIARIES:
            return "future"
        if auxiliary.tag in _TENSES:
            is_going_to = (
                auxiliary.lemma == "be"
                and node.lemma == "go"
                and any(child.label == "xcomp" for child in graph.child_nodes(node.index))
            )
            return "future" if is_going_to else _TENSES[auxiliary.tag]
        if auxiliary.tag == "MD":
            return "past" if auxiliary.lemma in ("could", "would", "might") else "present"
    if node.tag in _TENSES:
        return _TENSES[node.tag]
    if node.role == "clause" and node.parent != ROOT and node.tag == "VB":
        return _TENSES.get(graph.nodes[node.parent].tag, "")
    return ""


_NUMBERS = {"NN": "singular", "NNP": "singular", "NNS": "plural", "NNPS": "plural"}
_DEGREES = {"JJR": "comparative", "RBR": "comparative", "JJS": "superlative", "RBS": "superlative"}
_DEFINITE = lexicons.word_set("the this that these those")


def _noun_attributes(graph: Graph, node: Node, is_clause_negated: bool) -> dict[str, Any]:
    children = graph.child_nodes(node.index)
    degree = _DEGREES.get(node.tag, "")
    if node.kind in ("adjective", "adverb") and not degree:
        lemmas = {child.lemma for child in children}
        degree = "comparative" if lemmas & {"more", "less"} else ""
        degree = "superlative" if lemmas & {"most", "least"} else degree
    if node.kind not in NOMINAL_KINDS:
        return {"degree": degree}
    definiteness = ""
    quantifier = lexicons.QUANTIFIERS.get(node.lemma, "")
    if is_clause_negated and node.lemma.startswith("any"):
        quantifier = "none"  # "not ... anybody" means "nobody"
    for child in children:
        if child.role in ("determiner", "modifier", "number") and not quantifier:
            quantifier = lexicons.QUANTIFIERS.get(child.lemma, "")
            if is_clause_negated and child.lemma == "any":
                quantifier = "none"
        if child.role == "determiner" and child.lemma in _DEFINITE:
            definiteness = "definite"
        elif child.role == "determiner" and child.lemma in ("a", "an"):
            definiteness = "indefinite"
        elif child.role == "genitive" and child.label == "poss":
            definiteness = "definite"
    return {
        "degree": degree,
        "number": _NUMBERS.get(node.tag, ""),
        "quantifier": quantifier,
        "definiteness": definiteness,
    }


NO_VECTORS = {"": np.zeros(1, dtype=np.float32)}


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


def vector_word(node: Node) -> str:
    """Return the word whose vector a node has; empty for function words and numbers."""
    if not node.is_content or node.quantity is not None:
        return ""
    return node.lemma if "_" in node.lemma else node.text.lower()


def build_sentence(graph: Graph, vectors: Mapping[str, Float32Array] = NO_VECTORS) -> Sentence:
    """Build a sentence from a graph and the unit vectors of words; that of "" is zero."""
    zero = vectors[""]
    rows = [vectors.get(vector_word(node), zero) for node in graph.nodes]
    function_nodes = [node for node in graph.nodes if not node.is_content]
    return Sentence(
        graph,
        extract_attributes(graph),
        tuple(build_profile(node.lemma, node.kind) for node in graph.nodes),
        np.array(rows, dtype=np.float32).reshape(len(rows), len(zero)),
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
