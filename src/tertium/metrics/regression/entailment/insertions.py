"""Insertions and deletions (20): what of the hypothesis has no partner, and how much that matters.

With the reference as premise these are insertions of the translation; with the translation as
premise they are what it drops.
"""

from __future__ import annotations

from collections.abc import Callable

from tertium.linguistics.alignment import NOTHING
from tertium.linguistics.graph import ROOT, Node
from tertium.linguistics.lexicons import NEGATIONS
from tertium.metrics.regression.entailment.feature import Feature, Match, Pair

TIMES = frozenset({"DATE", "TIME"})
PLACES = frozenset({"GPE", "LOC", "FAC"})
_CLAUSES = frozenset({"clause", "adverbial clause", "relative clause"})


def additions(test: Callable[[Node], bool]) -> Callable[[Pair], list[Match]]:
    """The nodes without a partner that pass a test."""
    return lambda pair: [(i, NOTHING) for i in pair.unaligned if test(pair.h[i])]


def _is_agent(node: Node) -> bool:
    return node.label == "agent"


def _is_time(node: Node) -> bool:
    if node.quantity is not None:
        return node.quantity.kind in ("date", "time")
    return node.entity in TIMES or (node.label == "npadvmod" and node.kind == "noun")


def _is_place(node: Node) -> bool:
    return node.role == "adjunct" and node.entity in PLACES


def _is_adjunct(node: Node) -> bool:
    return node.role == "adjunct" and node.content and not (_is_place(node) or _is_time(node))


def _only_function(pair: Pair) -> list[Match]:
    """Something is left over, and all of it is words of grammar."""
    if not pair.unaligned or any(pair.h[i].content for i in pair.unaligned):
        return []
    return [(i, NOTHING) for i in pair.unaligned]


def _modifiers(pair: Pair) -> list[Match]:
    """Modifiers without a partner on a word that has one."""
    return [
        (i, NOTHING)
        for i in pair.unaligned
        if pair.h[i].role in ("modifier", "adverbial")
        and pair.h[i].content
        and pair.h[i].parent != ROOT
        and pair.targets[pair.h[i].parent] != NOTHING
    ]


def _unknown(pair: Pair) -> list[Match]:
    """Content words that no dictionary lists: names, or words left in the source language."""
    profiles = pair.hypothesis.profiles
    return [
        (i, NOTHING)
        for i in pair.unaligned
        if pair.h[i].content and pair.h[i].quantity is None and not profiles[i].known
    ]


def _subtrees(pair: Pair) -> list[Match]:
    """Phrases of three nodes or more of which nothing has a partner."""
    graph = pair.hypothesis.graph
    found = []
    for i in pair.unaligned:
        node = pair.h[i]
        top = node.parent == ROOT or pair.targets[node.parent] != NOTHING
        if top and node.content and len(graph.children[i]) > 0:
            below = graph.below(i)
            if len(below) > 2 and all(pair.targets[b] == NOTHING for b in below):
                found.append((i, NOTHING))
    return found


FEATURES = (
    Feature(
        "unaligned.noun",
        additions(lambda n: n.kind == "noun" and n.content),
        "the hypothesis {adds} the noun {words}",
    ),
    Feature(
        "unaligned.name",
        additions(lambda n: n.kind == "name"),
        "the hypothesis {adds} the name {words}",
    ),
    Feature(
        "unaligned.verb",
        additions(lambda n: n.kind == "verb" and n.content),
        "the hypothesis {adds} the verb {words}",
    ),
    Feature(
        "unaligned.quality",
        additions(lambda n: n.kind in ("adjective", "adverb") and n.content),
        "the hypothesis {adds} the quality {words}",
    ),
    Feature(
        "unaligned.number",
        additions(lambda n: n.kind == "number"),
        "the hypothesis {adds} the number {words}",
    ),
    Feature("unaligned.unknown", _unknown, "the hypothesis {adds} the unknown word {words}"),
    Feature(
        "unaligned.function",
        additions(lambda n: not n.content),
        "the hypothesis {adds} the function word {words}",
    ),
    Feature(
        "unaligned.only_function",
        _only_function,
        "only function words have no partner: {words}",
        good=True,
    ),
    Feature(
        "unaligned.root",
        additions(lambda n: n.parent == ROOT),
        "the main word {words} has no partner",
    ),
    Feature(
        "unaligned.subject",
        additions(lambda n: n.role == "subject" and not _is_agent(n)),
        "the hypothesis {adds} the subject {phrase}",
    ),
    Feature("unaligned.agent", additions(_is_agent), "the hypothesis {adds} the agent {phrase}"),
    Feature(
        "unaligned.object",
        additions(lambda n: n.role in ("object", "recipient", "predicate")),
        "the hypothesis {adds} the object {phrase}",
    ),
    Feature("unaligned.time", additions(_is_time), "the hypothesis {adds} the time {phrase}"),
    Feature("unaligned.place", additions(_is_place), "the hypothesis {adds} the place {phrase}"),
    Feature(
        "unaligned.adjunct", additions(_is_adjunct), "the hypothesis {adds} the adjunct {phrase}"
    ),
    Feature("unaligned.modifier", _modifiers, "the hypothesis {adds} the modifier {phrase}"),
    Feature(
        "unaligned.apposition",
        additions(lambda n: n.role == "apposition"),
        "the hypothesis {adds} the apposition {phrase}",
    ),
    Feature(
        "unaligned.clause",
        additions(lambda n: n.role in _CLAUSES and n.kind == "verb"),
        "the hypothesis {adds} the clause around {words}",
    ),
    Feature(
        "unaligned.negation",
        additions(lambda n: n.lemma in NEGATIONS),
        "the hypothesis {adds} the negation {words}",
    ),
    Feature("unaligned.phrase", _subtrees, "the hypothesis {adds} the phrase {phrase}"),
)
