"""Align the nodes of two dependency graphs (Pado et al. 2009, section 3.1).

Each node h of the hypothesis is aligned with at most one node a(h) of the premise. The alignment
maximizes

    sum_h  w(h) (similarity(h, a(h)) - MIN_SIMILARITY)
        +  sum_(h, parent of h)  edge(a(h), a(parent))

where an unaligned node scores 0. Several hypothesis nodes may share a premise node. The hypothesis
is a tree, so the score decomposes along its edges. Dynamic programming from the leaves up finds the
exact maximum over all candidates, in time linear in the number of nodes. Candidates are premise
nodes with a positive similarity, at most `MAX_CANDIDATES` per node; only texts of hundreds of words
have more.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from heapq import nlargest
from operator import itemgetter

from tertium.core.arrays import exact_dot_products
from tertium.metrics.linguistics.dependency_graph import ROOT, Node
from tertium.metrics.linguistics.quantity_matching import quantities_agree
from tertium.metrics.linguistics.semantic_attributes import Sentence
from tertium.metrics.linguistics.word_similarity import (
    INVERSE_RELATIONS,
    MIN_COSINE,
    NO_SIMILARITY,
    SIMILARITIES,
    WordSimilarity,
    cosine_to_strength,
    relate_content_words,
    relate_function_words,
    relate_mixed_words,
)

UNALIGNED = -1  # target of a node without a match
MIN_SIMILARITY = 0.4  # below it, a node is better left unaligned
FUNCTION_WORD_WEIGHT = 0.4  # a content word has weight 1
POSITION_PENALTY = 0.04  # for a move from one end of the sentence to the other
MAX_CANDIDATES = 12
# A premise node with an exact match is no candidate for nodes that are not a close match.
EXACT_MATCH = 0.95
CLOSE_MATCH = 0.75

# Scores of a hypothesis edge, by the relation of the premise nodes its two ends are aligned with.
EDGE_SCORES: Mapping[str, float] = {
    "same": 0.25,
    "head": 0.1,
    "near": 0.03,
    "reversed": -0.05,
    "far": -0.08,
    "merged": -0.2,
    "": 0.0,
}

# (premise node, similarity, relation)
Candidate = tuple[int, float, str]
# (premise node, node score, similarity, relation)
State = tuple[int, float, float, str]


@dataclass(frozen=True, slots=True, eq=False)
class WordAlignment:
    """An alignment of hypothesis nodes with premise nodes.

    For node i of the hypothesis, `targets[i]` is a premise node or `UNALIGNED`. `similarity[i]` and
    `relations[i]` describe the match. `edges[i]` compares the edge to its parent with the premise:
    same, head, near, reversed, far, merged, or empty if an end is unaligned.
    """

    targets: tuple[int, ...]
    similarity: tuple[float, ...]
    relations: tuple[str, ...]
    edges: tuple[str, ...]
    score: float


def align_both_directions(left: Sentence, right: Sentence) -> tuple[WordAlignment, WordAlignment]:
    """Align left with right and right with left; each pair of words is compared once.

    >>> from tertium.metrics.linguistics.dependency_graph import build_graph
    >>> from tertium.metrics.linguistics.dependency_parser import load_parser
    >>> from tertium.metrics.linguistics.semantic_attributes import build_sentence
    >>> texts = ["India acquires arms.", "India buys 1,000 tanks."]
    >>> h, p = (build_sentence(build_graph(one)) for one in load_parser().analyze(texts))
    >>> a, _ = align_both_directions(h, p)
    >>> [p.nodes[t].text for t in a.targets[:2]], a.relations[:2]
    (['India', 'buys'], ('same', 'hyponym'))
    """
    forward = find_candidates(left, right)
    backward = _reverse_candidates(forward, len(right.nodes))
    return find_best_alignment(left, right, forward), find_best_alignment(right, left, backward)


def _reverse_candidates(rows: Sequence[list[Candidate]], size: int) -> list[list[Candidate]]:
    """Invert candidate lists: for each of `size` premise nodes, the similar hypothesis nodes."""
    inverted: list[list[Candidate]] = [[] for _ in range(size)]
    for i, row in enumerate(rows):
        for j, strength, relation in row:
            inverted[j].append((i, strength, INVERSE_RELATIONS.get(relation, relation)))
    return inverted


def find_candidates(hypothesis: Sentence, premise: Sentence) -> list[list[Candidate]]:
    """List for each hypothesis node the premise nodes with a positive similarity.

    Content words are compared with content words and function words with function words. Only
    pronouns, connectives and the like (`cross_class_nodes`) are compared across the classes.
    """
    rows: list[list[Candidate]] = []
    cosines = exact_dot_products(hypothesis.vectors, premise.vectors).tolist()
    p = premise.nodes
    for i, node in enumerate(hypothesis.nodes):
        mixed: Sequence[int] = ()
        if node.is_content:
            row = [
                (j, *compare_content_words(hypothesis, node, premise, p[j], cosines[i][j]))
                for j in premise.content_nodes
            ]
            mixed = premise.cross_class_nodes
        else:
            row = [(j, *compare_function_words(node, p[j])) for j in premise.function_nodes]
            if i in hypothesis.cross_class_nodes:
                mixed = premise.content_nodes
        for j in mixed:
            row.append((j, *relate_mixed_words(node.lemma, node.kind, p[j].lemma, p[j].kind)))
        rows.append([candidate for candidate in row if candidate[1] > 0.0])
    return rows


def compare_content_words(
    left: Sentence, a: Node, right: Sentence, b: Node, cosine: float
) -> WordSimilarity:
    """Compute the similarity of two content nodes: the strongest of all sources."""
    if a.quantity is not None or b.quantity is not None:
        return _compare_quantities(a, b)
    if a.lemma == b.lemma:
        return SIMILARITIES["same" if a.text.lower() == b.text.lower() else "lemma"]
    similarity = relate_content_words(left.profiles[a.index], right.profiles[b.index])
    if similarity.relation == "none" and (
        left.acronyms.get(b.lemma) == a.index or right.acronyms.get(a.lemma) == b.index
    ):
        return SIMILARITIES["spelling"]  # an acronym
    if cosine > MIN_COSINE:
        strength = cosine_to_strength(cosine)
        if similarity.relation == "none":
            return WordSimilarity(strength, "distributional")
        if strength > similarity.strength:
            return WordSimilarity(strength, similarity.relation)
    return similarity


def compare_function_words(a: Node, b: Node) -> WordSimilarity:
    """Compute the similarity of two function words."""
    if a.lemma == b.lemma and a.text.lower() == b.text.lower():
        return SIMILARITIES["same"]
    return relate_function_words(a.lemma, a.kind, b.lemma, b.kind)


def _compare_quantities(a: Node, b: Node) -> WordSimilarity:
    if a.quantity is None or b.quantity is None:
        return NO_SIMILARITY
    if quantities_agree(a.quantity, b.quantity):
        return SIMILARITIES["number"]
    return SIMILARITIES["other number" if a.quantity.kind == b.quantity.kind else "none"]


def find_best_alignment(
    hypothesis: Sentence, premise: Sentence, rows: Sequence[list[Candidate]]
) -> WordAlignment:
    """Find the alignment with the highest score among the candidates `rows` of each node."""
    options = _score_candidates(hypothesis, premise, prune_candidates(rows))
    nodes = hypothesis.nodes
    premise_nodes = premise.nodes
    leaves_first = sorted(range(len(nodes)), key=lambda i: -nodes[i].depth)
    # totals[i][k]: the best score of the subtree of node i if it takes its option k
    totals = [[state[1] for state in states] for states in options]
    choices: list[list[int]] = [[] for _ in nodes]  # the best option for each option of the parent
    score = 0.0
    for i in leaves_first:
        parent = nodes[i].parent
        role = nodes[i].role
        if parent == ROOT:
            score += max(totals[i])
            continue
        for k, (b, *_) in enumerate(options[parent]):
            edges = (compare_edge(premise_nodes, a, b, role) for a, *_ in options[i])
            values = [total + EDGE_SCORES[e] for total, e in zip(totals[i], edges, strict=True)]
            best = max(values)
            totals[parent][k] += best
            choices[i].append(values.index(best))
    chosen = [0] * len(nodes)
    edge_names = [""] * len(nodes)
    for i in reversed(leaves_first):
        parent = nodes[i].parent
        role = nodes[i].role
        if parent == ROOT:
            chosen[i] = totals[i].index(max(totals[i]))
            continue
        chosen[i] = choices[i][chosen[parent]]
        a = options[i][chosen[i]][0]
        b = options[parent][chosen[parent]][0]
        edge_names[i] = compare_edge(premise_nodes, a, b, role)
    states = [states[k] for states, k in zip(options, chosen, strict=True)]
    return WordAlignment(
        tuple(s[0] for s in states),
        tuple(s[2] for s in states),
        tuple(s[3] for s in states),
        tuple(edge_names),
        score,
    )


def prune_candidates(rows: Sequence[list[Candidate]]) -> list[list[Candidate]]:
    """Drop weak candidates whose premise node is an exact match of another hypothesis node."""
    best: dict[int, float] = {}
    for row in rows:
        for j, strength, _ in row:
            best[j] = max(strength, best.get(j, 0.0))
    return [
        [option for option in row if option[1] >= CLOSE_MATCH or best[option[0]] < EXACT_MATCH]
        for row in rows
    ]


def _score_candidates(
    hypothesis: Sentence, premise: Sentence, rows: Sequence[list[Candidate]]
) -> list[list[State]]:
    """Score the best options of each node; the first option is to stay unaligned."""
    positions = [j / len(premise.nodes) for j in range(len(premise.nodes))]
    options: list[list[State]] = []
    for i, row in enumerate(rows):
        weight = 1.0 if hypothesis.nodes[i].is_content else FUNCTION_WORD_WEIGHT
        position = i / len(hypothesis.nodes)
        states = []
        for j, similarity, relation in row:
            penalty = POSITION_PENALTY * abs(position - positions[j])
            score = weight * (similarity - MIN_SIMILARITY) - penalty
            states.append((j, score, similarity, relation))
        if len(states) > MAX_CANDIDATES:
            states = nlargest(MAX_CANDIDATES, states, key=itemgetter(1))
        options.append([(UNALIGNED, 0.0, 0.0, "none"), *states])
    return options


def compare_edge(nodes: Sequence[Node], a: int, b: int, role: str) -> str:
    """Compare an edge with the premise; its child is aligned with node a, its parent with b.

    The result is a key of `EDGE_SCORES`, empty if an end is unaligned.
    """
    if UNALIGNED in (a, b):
        return ""
    head = nodes[a].parent
    if head == b:
        return "same" if nodes[a].role == role else "head"
    if a == b:
        return "merged"
    if head != ROOT and nodes[head].parent == b:
        return "near"
    return "reversed" if nodes[b].parent == a else "far"
