"""Structural alignment (28): who did what to whom, on both sides?

Arguments are deep: the agent of a passive is compared with the subject of an active verb. Main
verbs, arguments, modifiers, embedded clauses and the words near the top of the tree are asked for
their counterparts; the last features notice a hypothesis that is no sentence.
"""

from __future__ import annotations

from collections.abc import Callable

from tertium.linguistics.alignment import NOTHING
from tertium.linguistics.graph import ROOT, Graph
from tertium.metrics.regression.entailment.feature import Feature, Match, Pair, Quality, merit

POOR = 0.6  # of a similarity: below it partners are relatives at best
_CLAUSES = frozenset({"clause", "relative clause", "adverbial clause"})
_FINITE = frozenset({"VBD", "VBZ", "VBP", "MD"})


def argument(graph: Graph, predicate: int, role: str) -> int:
    """The node that fills a role of a predicate, or nothing.

    A verb without a subject of its own has that of the verb it is joined to or controlled by.
    """
    for child in graph.children[predicate]:
        if graph.nodes[child].role == role:
            return child
    node = graph.nodes[predicate]
    controlled = role == "subject" and node.parent != ROOT and node.label in ("conj", "xcomp")
    if controlled and graph.nodes[node.parent].kind == "verb":
        return argument(graph, node.parent, role)
    return NOTHING


def _argument_matches(
    role: str, test: Callable[[Pair, int, int], bool]
) -> Callable[[Pair], list[Match]]:
    """Arguments of aligned predicates, (own, the premise's in that role), that pass a test."""

    def find(pair: Pair) -> list[Match]:
        found = []
        for i, j in pair.predicates:
            own = argument(pair.hypothesis.graph, i, role)
            other = argument(pair.premise.graph, j, role)
            if (own != NOTHING or other != NOTHING) and test(pair, own, other):
                found.append((own, other))
        return found

    return find


def _is_match(pair: Pair, own: int, other: int) -> bool:
    return NOTHING not in (own, other) and pair.targets[own] == other


def _differs(pair: Pair, own: int, other: int) -> bool:
    return NOTHING not in (own, other) and pair.targets[own] != other


def _of_arguments(role: str) -> tuple[Feature, ...]:
    """Whether aligned predicates have the same argument in a role, another one, or none."""
    return (
        merit(
            f"{role}.kept",
            _argument_matches(role, _is_match),
            f"the {role} is the same: {{hypothesis}}",
        ),
        Feature(
            f"{role}.changed",
            _argument_matches(role, _differs),
            f"the {role} differs: {{hypothesis}} for {{reference}}",
        ),
        Feature(
            f"{role}.missing",
            _argument_matches(role, lambda pair, own, other: own == NOTHING),
            f"one side has no {role} {{words}}",
        ),
    )


def _swaps(pair: Pair) -> list[Match]:
    """A subject whose partner is the object of the aligned verb, or the reverse."""
    found = []
    for i, j in pair.predicates:
        for role, opposite in (("subject", "object"), ("object", "subject")):
            own = argument(pair.hypothesis.graph, i, role)
            other = argument(pair.premise.graph, j, opposite)
            if _is_match(pair, own, other):
                found.append((own, other))
    return found


def _voices(pair: Pair, kept: bool) -> list[Match]:
    """Aligned verbs of different voice whose arguments are (`kept`) or are not the same."""
    found = []
    for i, j in pair.predicates:
        if pair.h_marks[i].passive != pair.p_marks[j].passive:
            roles = ("subject", "object")
            ends = [
                (argument(pair.hypothesis.graph, i, r), argument(pair.premise.graph, j, r))
                for r in roles
            ]
            shared = [(a, b) for a, b in ends if NOTHING not in (a, b)]
            if kept == (bool(shared) and all(_is_match(pair, a, b) for a, b in shared)):
                found.append((i, j))
    return found


def _roots(test: Callable[[Pair, int, int], bool]) -> Callable[[Pair], list[Match]]:
    """The main word with its partner, where it has one and they pass a test."""

    def find(pair: Pair) -> list[Match]:
        tops = [n.index for n in pair.h if n.parent == ROOT]
        ends = [(i, pair.targets[i]) for i in tops]
        return [(i, j) for i, j in ends if j != NOTHING and test(pair, i, j)]

    return find


def _root_other_kind(pair: Pair) -> list[Match]:
    """One main word is a verb, the other is not."""
    own, other = pair.hypothesis.graph.roots, pair.premise.graph.roots
    if not own or not other:
        return []
    i, j = own[0], other[0]
    return [(i, j)] if (pair.h[i].kind == "verb") != (pair.p[j].kind == "verb") else []


def _verbs(pair: Pair) -> list[Match]:
    """Full verbs with a close verb as partner."""
    similarity = pair.similarity
    return [(i, j) for i, j in pair.predicates if pair.h[i].content and similarity[i] > 0.8]


def _role_edges(roles: frozenset[str], *edges: str) -> Callable[[Pair], list[Match]]:
    """Aligned nodes in one of these roles whose relation to their parent became one of `edges`."""

    def find(pair: Pair) -> list[Match]:
        became = pair.edges
        return [(i, j) for i, j in pair.aligned if became[i] in edges and pair.h[i].role in roles]

    return find


_MODIFIERS = frozenset({"modifier", "number", "adverbial"})
_ADJUNCTS = frozenset({"adjunct", "genitive", "recipient"})
_EVERY = frozenset(
    {"subject", "object", "predicate", "genitive", "modifier", "adjunct", "conjunct", "apposition"}
)


def _other_preposition(pair: Pair) -> list[Match]:
    """Aligned nodes that hang by different prepositions."""
    return [
        (i, j)
        for i, j in pair.contents
        if pair.h[i].marker and pair.p[j].marker and pair.h[i].marker != pair.p[j].marker
    ]


def _clauses(pair: Pair, same: bool) -> list[Match]:
    """Embedded predicates whose partner is embedded too (`same`), or is not."""
    return [
        (i, j)
        for i, j in pair.predicates
        if pair.h[i].role in _CLAUSES and (pair.p[j].role in _CLAUSES) == same
    ]


def _prominence(pair: Pair) -> float:
    """The share of words at the top of the tree whose partner is near the top too."""
    top = [n for n in pair.h if n.depth < 2 and n.content]
    kept = [n for n in top if (j := pair.targets[n.index]) != NOTHING and pair.p[j].depth < 3]
    return len(kept) / len(top) if top else 1.0


def _demotions(pair: Pair) -> list[Match]:
    """Words near the top whose partner is three levels deeper, or the reverse."""
    return [(i, j) for i, j in pair.contents if abs(pair.h[i].depth - pair.p[j].depth) > 2]


def _no_verb(pair: Pair) -> list[Match]:
    """No finite verb here, but there."""

    def finite(nodes: tuple[object, ...]) -> bool:
        return any(getattr(n, "tag", "") in _FINITE for n in nodes)

    tops = pair.hypothesis.graph.roots
    return [(tops[0], NOTHING)] if tops and finite(pair.p) and not finite(pair.h) else []


def _loose_words(pair: Pair) -> list[Match]:
    """Words the parser could not attach by any known relation."""
    return [(n.index, NOTHING) for n in pair.h if n.role == "loose"]


def _splits(pair: Pair) -> list[Match]:
    """Main words beyond the number the premise has: a sentence that fell apart."""
    own, other = pair.hypothesis.graph.roots, pair.premise.graph.roots
    return [(i, NOTHING) for i in own[max(1, len(other)) :]]


FEATURES: tuple[Feature | Quality, ...] = (
    merit(
        "root.kept",
        _roots(lambda pair, i, j: pair.p[j].parent == ROOT),
        "main words agree: {hypothesis}",
    ),
    Feature(
        "root.elsewhere",
        _roots(lambda pair, i, j: pair.p[j].parent != ROOT),
        "the main word {words} is below another",
    ),
    Feature(
        "root.poor",
        _roots(lambda pair, i, j: pair.similarity[i] < POOR),
        "main words are far apart: {hypothesis}, {reference}",
    ),
    Feature("root.kind", _root_other_kind, "only one side's main word is a verb: {hypothesis}"),
    merit("verb.kept", _verbs, "the verb {hypothesis} stands for {reference}"),
    *_of_arguments("subject"),
    *_of_arguments("object"),
    Feature("argument.swapped", _swaps, "subject and object are swapped: {words}"),
    merit(
        "passive.kept",
        lambda pair: _voices(pair, True),
        "{hypothesis} for {reference}: active and passive with the same arguments",
    ),
    Feature(
        "passive.wrong",
        lambda pair: _voices(pair, False),
        "{hypothesis} for {reference}: active and passive with different arguments",
    ),
    merit("adjunct.kept", _role_edges(_ADJUNCTS, "same"), "{words} belongs to the same word"),
    Feature(
        "adjunct.moved",
        _role_edges(_ADJUNCTS, "near", "far", "merged", "reversed"),
        "{words} belongs to another word",
    ),
    Feature("preposition.differs", _other_preposition, "{words} has another preposition"),
    merit("modifier.kept", _role_edges(_MODIFIERS, "same"), "{words} modifies the same word"),
    Feature(
        "modifier.moved",
        _role_edges(_MODIFIERS, "near", "far", "merged", "reversed"),
        "{words} modifies another word",
    ),
    Feature(
        "relation.changed",
        _role_edges(_EVERY, "head"),
        "{words} has another relation to the same word",
    ),
    Feature(
        "relation.reversed", _role_edges(_EVERY, "reversed"), "{words} governs what governed it"
    ),
    merit(
        "conjunct.kept",
        _role_edges(frozenset({"conjunct"}), "same"),
        "{words} is joined to the same word",
    ),
    merit(
        "clause.kept",
        lambda pair: _clauses(pair, True),
        "the clause of {words} is embedded on both sides",
    ),
    Feature(
        "clause.promoted",
        lambda pair: _clauses(pair, False),
        "the clause of {words} is embedded on one side only",
    ),
    Quality("prominent.kept", _prominence, "{value:.0%} of {side}'s main words stay main words"),
    Feature("prominent.moved", _demotions, "{words} is far more prominent on one side"),
    Feature("broken.no_verb", _no_verb, "one side has no finite verb"),
    Feature(
        "broken.loose",
        lambda pair: [*_loose_words(pair), *_splits(pair)],
        "{words} is not tied to the sentence",
    ),
)
