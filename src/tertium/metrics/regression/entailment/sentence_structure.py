"""Structure features (28): do both sides say who did what to whom?

Arguments are deep: the agent of a passive is compared with the subject of an active verb. The
features compare main verbs, arguments, modifiers, embedded clauses and the words near the root.
The last ones detect a hypothesis that is not a sentence.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from tertium.metrics.linguistics.dependency_graph import CLAUSE_ROLES, ROOT, Graph, Node
from tertium.metrics.linguistics.lexicons import word_set
from tertium.metrics.linguistics.word_alignment import UNALIGNED
from tertium.metrics.regression.entailment.feature_types import Find, Match, Pair, Rule

LOW_SIMILARITY = 0.6  # words with a lower similarity are only loosely related
_FINITE_TAGS = word_set("VBD VBZ VBP MD")
_MODIFIERS = word_set("modifier number adverbial")
_ADJUNCTS = word_set("adjunct genitive recipient")
_ALL_ROLES = word_set("subject object predicate genitive modifier adjunct conjunct apposition")
_MOVED_EDGES = ("near", "far", "merged", "reversed")

# (pair, hypothesis node, premise node) -> whether a feature fires
Test = Callable[[Pair, int, int], bool]


def find_argument(graph: Graph, predicate: int, role: str) -> int:
    """Return the node that fills a role of a predicate, or `UNALIGNED`.

    A verb without a subject takes the subject of the verb it is coordinated with or controlled by.
    """
    for child in graph.child_nodes(predicate):
        if child.role == role:
            return child.index
    node = graph.nodes[predicate]
    is_controlled = role == "subject" and node.parent != ROOT and node.label in ("conj", "xcomp")
    if is_controlled and graph.nodes[node.parent].kind == "verb":
        return find_argument(graph, node.parent, role)
    return UNALIGNED


def _find_arguments(pair: Pair, match: Match, role: str, premise_role: str) -> Match:
    """Return the arguments of two aligned predicates in a role of the hypothesis and premise."""
    own = find_argument(pair.hypothesis.graph, match[0], role)
    return own, find_argument(pair.premise.graph, match[1], premise_role)


def _argument_matches(role: str, test: Test) -> Find:
    """Find arguments of aligned predicates in the same role that pass a test."""

    def find(pair: Pair) -> list[Match]:
        arguments = [_find_arguments(pair, match, role, role) for match in pair.predicate_matches]
        return [
            (own, other)
            for own, other in arguments
            if (own != UNALIGNED or other != UNALIGNED) and test(pair, own, other)
        ]

    return find


def _is_aligned(pair: Pair, own: int, other: int) -> bool:
    return UNALIGNED not in (own, other) and pair.targets[own] == other


def _is_different(pair: Pair, own: int, other: int) -> bool:
    return UNALIGNED not in (own, other) and pair.targets[own] != other


def _argument_rules(role: str) -> Mapping[str, Find]:
    """Return the rules of the same, a different or a missing argument of aligned predicates."""
    return {
        f"{role}.kept": _argument_matches(role, _is_aligned),
        f"{role}.changed": _argument_matches(role, _is_different),
        f"{role}.missing": _argument_matches(role, lambda pair, own, other: own == UNALIGNED),
    }


def _swapped_arguments(pair: Pair) -> list[Match]:
    """Find subjects aligned with the object of the aligned verb, and the reverse."""
    arguments = (
        _find_arguments(pair, match, role, premise_role)
        for match in pair.predicate_matches
        for role, premise_role in (("subject", "object"), ("object", "subject"))
    )
    return [(own, other) for own, other in arguments if _is_aligned(pair, own, other)]


def _voice_changes(has_same_arguments: bool) -> Find:
    """Find aligned verbs of different voice whose arguments are (or are not) the same."""

    def find(pair: Pair) -> list[Match]:
        matches = []
        for i, j in pair.predicate_matches:
            if pair.h_attributes[i].is_passive != pair.p_attributes[j].is_passive:
                roles = ("subject", "object")
                arguments = [_find_arguments(pair, (i, j), role, role) for role in roles]
                filled = [(a, b) for a, b in arguments if UNALIGNED not in (a, b)]
                is_same = bool(filled) and all(_is_aligned(pair, a, b) for a, b in filled)
                if is_same == has_same_arguments:
                    matches.append((i, j))
        return matches

    return find


def _root_matches(test: Test) -> Find:
    """Find aligned roots that pass a test together with their targets."""

    def find(pair: Pair) -> list[Match]:
        roots = [(n.index, pair.targets[n.index]) for n in pair.h if n.parent == ROOT]
        return [(i, j) for i, j in roots if j != UNALIGNED and test(pair, i, j)]

    return find


def _root_kind_differs(pair: Pair) -> list[Match]:
    """Compare the main roots: one is a verb and the other is not."""
    own, other = pair.hypothesis.graph.roots, pair.premise.graph.roots
    if not own or not other:
        return []
    i, j = own[0], other[0]
    return [(i, j)] if (pair.h[i].kind == "verb") != (pair.p[j].kind == "verb") else []


def _similar_verbs(pair: Pair) -> list[Match]:
    """Find full verbs aligned with a similar verb."""
    similarity = pair.similarity
    return [
        (i, j) for i, j in pair.predicate_matches if pair.h[i].is_content and similarity[i] > 0.8
    ]


def _matches_with_edge(roles: frozenset[str], *edges: str) -> Find:
    """Find aligned nodes in one of these roles whose edge is one of `edges` in the premise."""
    return lambda pair: [
        (i, j) for i, j in pair.aligned if pair.edges[i] in edges and pair.h[i].role in roles
    ]


def _preposition_differs(pair: Pair) -> list[Match]:
    return [
        (i, j)
        for i, j in pair.content_matches
        if pair.h[i].marker and pair.p[j].marker and pair.h[i].marker != pair.p[j].marker
    ]


def _embedded_predicates(is_embedded_too: bool) -> Find:
    """Find embedded predicates whose target is (or is not) embedded too."""
    return lambda pair: [
        (i, j)
        for i, j in pair.predicate_matches
        if pair.h[i].role in CLAUSE_ROLES and (pair.p[j].role in CLAUSE_ROLES) == is_embedded_too
    ]


def _prominent_words_kept(pair: Pair) -> float:
    """Compute the share of content words near the root whose target is near the root too."""
    targets = [pair.targets[n.index] for n in pair.h if n.depth < 2 and n.is_content]
    near_root = sum(j != UNALIGNED and pair.p[j].depth < 3 for j in targets)
    return near_root / len(targets) if targets else 1.0


def _depth_changes(pair: Pair) -> list[Match]:
    """Find words that are at least three levels higher on one side."""
    return [(i, j) for i, j in pair.content_matches if abs(pair.h[i].depth - pair.p[j].depth) > 2]


def _missing_finite_verb(pair: Pair) -> list[Match]:
    """Return the main root if only the premise has a finite verb."""
    roots = pair.hypothesis.graph.roots
    is_missing = roots and _has_finite_verb(pair.p) and not _has_finite_verb(pair.h)
    return [(roots[0], UNALIGNED)] if is_missing else []


def _has_finite_verb(nodes: tuple[Node, ...]) -> bool:
    return any(node.tag in _FINITE_TAGS for node in nodes)


def _unattached_words(pair: Pair) -> list[Match]:
    """Find words without a known relation, and roots in excess of those of the premise."""
    own, other = pair.hypothesis.graph.roots, pair.premise.graph.roots
    unattached = [n.index for n in pair.h if n.role == "loose"]
    return [(i, UNALIGNED) for i in (*unattached, *own[max(1, len(other)) :])]


RULES: Mapping[str, Rule] = {
    "root.kept": _root_matches(lambda pair, i, j: pair.p[j].parent == ROOT),
    "root.elsewhere": _root_matches(lambda pair, i, j: pair.p[j].parent != ROOT),
    "root.poor": _root_matches(lambda pair, i, j: pair.similarity[i] < LOW_SIMILARITY),
    "root.kind": _root_kind_differs,
    "verb.kept": _similar_verbs,
    **_argument_rules("subject"),
    **_argument_rules("object"),
    "argument.swapped": _swapped_arguments,
    "passive.kept": _voice_changes(True),
    "passive.wrong": _voice_changes(False),
    "adjunct.kept": _matches_with_edge(_ADJUNCTS, "same"),
    "adjunct.moved": _matches_with_edge(_ADJUNCTS, *_MOVED_EDGES),
    "preposition.differs": _preposition_differs,
    "modifier.kept": _matches_with_edge(_MODIFIERS, "same"),
    "modifier.moved": _matches_with_edge(_MODIFIERS, *_MOVED_EDGES),
    "relation.changed": _matches_with_edge(_ALL_ROLES, "head"),
    "relation.reversed": _matches_with_edge(_ALL_ROLES, "reversed"),
    "conjunct.kept": _matches_with_edge(frozenset({"conjunct"}), "same"),
    "clause.kept": _embedded_predicates(True),
    "clause.promoted": _embedded_predicates(False),
    "prominent.kept": _prominent_words_kept,
    "prominent.moved": _depth_changes,
    "broken.no_verb": _missing_finite_verb,
    "broken.loose": _unattached_words,
}
