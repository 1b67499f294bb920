"""What holds of a node beyond its word: negated or not, possible or actual, past or future.

A predicate's polarity counts the negations that reach it (its own, a negative subject or object, a
governing "fail to" or "without"): an even number is none. Modality comes from auxiliaries, adverbs
and governing words; monotonicity from negation, conditions and quantifiers (MacCartney and Manning
2008): under them "an animal" no longer follows from "a dog".
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tertium.linguistics import lexicons as words
from tertium.linguistics.graph import ROOT, Graph, Node

_ARGUMENTS = frozenset({"subject", "object", "recipient", "predicate", "adjunct", "adverbial"})
_NOMINAL = frozenset({"noun", "name", "number", "pronoun"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Marks:
    """What holds of one node; fields that do not apply to it are empty or false.

    `attitude` is the class of the word a clause depends on (factive, report, belief, wish, positive
    and negative implicative); `downward` whether the node stands in a downward monotone context.
    """

    negated: bool = False
    modality: str = "actual"
    tense: str = ""
    perfect: bool = False
    progressive: bool = False
    passive: bool = False
    attitude: str = ""
    downward: bool = False
    quantifier: str = ""
    definite: str = ""
    degree: str = ""
    number: str = ""


def interpret(graph: Graph) -> tuple[Marks, ...]:
    """The marks of each node.

    >>> from tertium.linguistics.graph import build_graph
    >>> from tertium.linguistics.parse import load_parser
    >>> [a] = load_parser().analyse(["Nobody could have known."])
    >>> m = interpret(build_graph(a))[-1]
    >>> m.negated, m.modality, m.perfect
    (True, 'possible', True)
    """
    negated = [_is_negated(graph, node) for node in graph.nodes]
    modality = [_modality(graph, node) for node in graph.nodes]
    downward = _downward(graph, negated)
    return tuple(
        Marks(
            negated=negated[i],
            modality=modality[i],
            attitude=_attitude(graph, node),
            downward=downward[i],
            **_verb_marks(graph, node),
            **_noun_marks(graph, node, node.parent != ROOT and negated[node.parent]),
        )
        for i, node in enumerate(graph.nodes)
    )


def _is_negated(graph: Graph, node: Node) -> bool:
    """Whether an odd number of negations reaches a predicate, or a noun has one of its own."""
    below = [graph.nodes[c] for c in graph.children[node.index]]
    count = sum(child.role == "negation" or child.lemma == "no_longer" for child in below)
    if node.kind != "verb":
        own = [c for c in below if c.role == "determiner" and c.lemma in words.NEGATIVE_DETERMINERS]
        return (count + len(own) + (node.marker == "without")) % 2 == 1
    for child in below:
        if child.role in _ARGUMENTS and _is_negative(graph, child):
            count += 1
    if node.role == "clause" and node.parent != ROOT:
        count += words.ATTITUDES.get(graph.nodes[node.parent].lemma) == "negative"
    return (count + (node.marker == "without")) % 2 == 1


def _is_negative(graph: Graph, node: Node) -> bool:
    if node.lemma in words.NEGATIVE_PRONOUNS or node.lemma in ("never", "nowhere", "hardly"):
        return True
    return any(
        graph.nodes[c].role in ("determiner", "modifier")
        and graph.nodes[c].lemma in words.NEGATIVE_DETERMINERS
        for c in graph.children[node.index]
    )


def _modality(graph: Graph, node: Node) -> str:
    if node.kind != "verb":
        return "actual"
    found = "actual"
    for c in graph.children[node.index]:
        child = graph.nodes[c]
        if child.lemma in words.MODAL_ADVERBS and child.role in ("adverbial", "predicate"):
            return words.MODAL_ADVERBS[child.lemma]
        if child.role == "marker" and child.lemma in words.CONDITIONALS:
            return "hypothetical"
        if child.role == "auxiliary" and child.lemma in words.MODAL_VERBS:
            found = words.MODAL_VERBS[child.lemma]
    if found == "actual" and node.role == "clause" and node.parent != ROOT:
        return _governing_modality(graph, node)
    return found


def _governing_modality(graph: Graph, node: Node) -> str:
    """The modality an infinitive has from "have to", "able to", "likely to" ..."""
    parent = graph.nodes[node.parent]
    if parent.kind not in ("verb", "adjective") or node.label != "xcomp":
        return "actual"
    return words.SEMI_MODALS.get(parent.lemma, "actual")


def _attitude(graph: Graph, node: Node) -> str:
    if node.parent == ROOT or node.role not in ("clause", "relative clause"):
        return ""
    parent = graph.nodes[node.parent]
    if node.role == "relative clause" and parent.lemma not in ("fact", "belief", "statement"):
        return ""
    return words.ATTITUDES.get(parent.lemma, "")


def _downward(graph: Graph, negated: list[bool]) -> list[bool]:
    """Whether the nearest scope above each node turns inference around."""
    result = [False] * len(graph.nodes)
    for i in sorted(range(len(graph.nodes)), key=lambda i: graph.nodes[i].depth):
        node = graph.nodes[i]
        below = [graph.nodes[c] for c in graph.children[i]]
        opens = (
            negated[i]
            or node.marker == "without"
            or any(c.role == "marker" and c.lemma in words.CONDITIONALS for c in below)
            or any(c.role == "determiner" and c.lemma in words.DOWNWARD for c in below)
        )
        above = node.parent != ROOT and result[node.parent]
        fresh = node.role in ("clause", "relative clause", "adverbial clause")
        inherited = above and not (fresh and node.kind == "verb" and not opens)
        result[i] = opens or inherited
    return result


def _verb_marks(graph: Graph, node: Node) -> dict[str, Any]:
    if node.kind != "verb":
        return {}
    helpers = [
        graph.nodes[c] for c in graph.children[node.index] if graph.nodes[c].role == "auxiliary"
    ]
    lemmas = {helper.lemma for helper in helpers}
    passive = any(h.label == "auxpass" for h in helpers) or (
        node.tag == "VBN" and not helpers and node.role == "relative clause"
    )
    return {
        "tense": _tense(graph, node, helpers),
        "perfect": "have" in lemmas,
        "progressive": node.tag == "VBG" and "be" in lemmas,
        "passive": passive,
    }


_TENSES = {"VBD": "past", "VBZ": "present", "VBP": "present"}


def _tense(graph: Graph, node: Node, helpers: list[Node]) -> str:
    for helper in helpers:
        if helper.text.lower() in words.FUTURE_AUXILIARIES:
            return "future"
        if helper.tag in _TENSES:
            future = helper.lemma == "be" and node.lemma == "go" and _has_infinitive(graph, node)
            return "future" if future else _TENSES[helper.tag]
        if helper.tag == "MD":
            return "past" if helper.lemma in ("could", "would", "might") else "present"
    if node.tag in _TENSES:
        return _TENSES[node.tag]
    if node.role == "clause" and node.parent != ROOT and node.tag == "VB":
        return _TENSES.get(graph.nodes[node.parent].tag, "")
    return ""


def _has_infinitive(graph: Graph, node: Node) -> bool:
    return any(graph.nodes[c].label == "xcomp" for c in graph.children[node.index])


_NUMBERS = {"NN": "singular", "NNP": "singular", "NNS": "plural", "NNPS": "plural"}
_DEGREES = {"JJR": "comparative", "RBR": "comparative", "JJS": "superlative", "RBS": "superlative"}
_DEFINITE = frozenset({"the", "this", "that", "these", "those"})


def _noun_marks(graph: Graph, node: Node, negated_clause: bool) -> dict[str, Any]:
    marks: dict[str, Any] = {"degree": _DEGREES.get(node.tag, "")}
    if node.kind in ("adjective", "adverb") and not marks["degree"]:
        lemmas = {graph.nodes[c].lemma for c in graph.children[node.index]}
        marks["degree"] = "comparative" if lemmas & {"more", "less"} else ""
        marks["degree"] = "superlative" if lemmas & {"most", "least"} else marks["degree"]
    if node.kind not in _NOMINAL:
        return marks
    marks["number"] = _NUMBERS.get(node.tag, "")
    marks["quantifier"] = words.QUANTIFIERS.get(node.lemma, "")
    if negated_clause and node.lemma.startswith("any"):
        marks["quantifier"] = "none"  # not ... anybody: nobody
    for c in graph.children[node.index]:
        child = graph.nodes[c]
        if child.role in ("determiner", "modifier", "number") and not marks["quantifier"]:
            marks["quantifier"] = words.QUANTIFIERS.get(child.lemma, "")
            if negated_clause and child.lemma == "any":
                marks["quantifier"] = "none"
        if child.role == "determiner" and child.lemma in _DEFINITE:
            marks["definite"] = "definite"
        elif child.role == "determiner" and child.lemma in ("a", "an"):
            marks["definite"] = "indefinite"
        elif child.role == "genitive" and child.label == "poss":
            marks["definite"] = "definite"
    return marks
