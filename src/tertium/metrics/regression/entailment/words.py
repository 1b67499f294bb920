"""What becomes of the words: aligned how well (8), left without partner (20), naming whom (16).

With the reference as premise, words without a partner are insertions of the translation; with the
translation as premise they are what it drops. For each sort of entity (people, places,
organisations, dates, numbers) three questions: is a mention matched by the same one, by another of
its sort, or by nothing at all? Names agree when their words do, in whatever order or case.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

from tertium.linguistics.alignment import FUNCTION_WEIGHT, NOTHING, SAME_EDGE, THRESHOLD
from tertium.linguistics.graph import ROOT, Node
from tertium.linguistics.lexicons import NEGATIONS, PRONOUNS
from tertium.metrics.regression.entailment.feature import Feature, Match, Pair, Quality, merit

_WEIGHTS = {"root": 2.0, "subject": 1.5, "object": 1.5, "predicate": 1.5}
_NAME_WEIGHT = 1.5  # a wrong name or number misleads more than another word


def score(pair: Pair) -> float:
    """The alignment's score, of what a perfect one of the same hypothesis has."""
    best = 0.0
    for node in pair.h:
        best += (1.0 if node.content else FUNCTION_WEIGHT) * (1.0 - THRESHOLD)
        best += SAME_EDGE if node.parent != ROOT else 0.0
    return pair.alignment.score / best if best else 0.0


def content(pair: Pair) -> float:
    """The mean similarity of content words, 0 for those left over."""
    similarity = pair.similarity
    return sum(similarity[i] for i, _ in pair.contents) / pair.size


def prominence(pair: Pair) -> float:
    """The same, weighted: main verbs, arguments and names count more, deep words less."""
    similarity = pair.similarity
    total = found = 0.0
    for node in pair.h:
        if node.content:
            weight = _WEIGHTS.get(node.role, 1.0) / (1.0 + 0.2 * node.depth)
            weight *= _NAME_WEIGHT if node.kind in ("name", "number") else 1.0
            total += weight
            found += weight * similarity[node.index]
    return found / total if total else 0.0


def function(pair: Pair) -> float:
    """The share of words of grammar that found a partner."""
    words = [node.index for node in pair.h if not node.content]
    return sum(pair.targets[i] != NOTHING for i in words) / len(words) if words else 1.0


def identical(pair: Pair) -> float:
    """The share of all nodes that stand in the premise in the same form."""
    return sum(r == "same" for r in pair.relations) / max(1, len(pair.h))


def edges(pair: Pair) -> float:
    """The share of relations between words that hold in the premise as well."""
    total = sum(node.parent != ROOT for node in pair.h)
    return sum(e == "same" for e in pair.edges) / total if total else 1.0


def order(pair: Pair) -> float:
    """The share of neighboring aligned nodes that are neighbors in the premise too."""
    steps = [b[1] - a[1] for a, b in pairwise(pair.aligned)]
    return sum(0 <= step <= 2 for step in steps) / len(steps) if steps else float(len(pair.h) < 2)


def shared_share(pair: Pair) -> float:
    """The share of content nodes that must share their premise node with another."""
    return sum(pair.takers[j] > 1 for _, j in pair.contents) / pair.size


ALIGNMENT = (
    Quality("alignment.score", score, "{side} reaches {value:.0%} of a perfect alignment"),
    Quality("alignment.content", content, "content words of {side} are {value:.0%} alike"),
    Quality("alignment.prominence", prominence, "main words of {side} are {value:.0%} alike"),
    Quality("alignment.function", function, "{value:.0%} of {side}'s grammar has a partner"),
    Quality("alignment.identical", identical, "{value:.0%} of {side}'s words are on both sides"),
    Quality("alignment.edges", edges, "{value:.0%} of {side}'s relations hold on both sides"),
    Quality("alignment.order", order, "{value:.0%} of {side}'s words keep their order"),
    Quality(
        "alignment.shared", shared_share, "{value:.0%} of {side}'s words share a partner", False
    ),
)


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


def _unlisted_words(pair: Pair) -> list[Match]:
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


def _added(kind: str, what: str, test: Callable[[Node], bool]) -> Feature:
    """What stands on one side alone: words of a kind, or phrases around them."""
    return Feature(f"unaligned.{kind}", additions(test), f"the hypothesis {{adds}} the {what}")


INSERTIONS = (
    _added("noun", "noun {words}", lambda n: n.kind == "noun" and n.content),
    _added("name", "name {words}", lambda n: n.kind == "name"),
    _added("verb", "verb {words}", lambda n: n.kind == "verb" and n.content),
    _added("quality", "quality {words}", lambda n: n.kind in ("adjective", "adverb") and n.content),
    _added("number", "number {words}", lambda n: n.kind == "number"),
    Feature("unaligned.unknown", _unlisted_words, "the hypothesis {adds} the unknown word {words}"),
    _added("function", "function word {words}", lambda n: not n.content),
    merit(
        "unaligned.only_function", _only_function, "only function words have no partner: {words}"
    ),
    Feature(
        "unaligned.root",
        additions(lambda n: n.parent == ROOT),
        "the main word {words} has no partner",
    ),
    _added("subject", "subject {phrase}", lambda n: n.role == "subject" and not _is_agent(n)),
    _added("agent", "agent {phrase}", _is_agent),
    _added("object", "object {phrase}", lambda n: n.role in ("object", "recipient", "predicate")),
    _added("time", "time {phrase}", _is_time),
    _added("place", "place {phrase}", _is_place),
    _added("adjunct", "adjunct {phrase}", _is_adjunct),
    Feature("unaligned.modifier", _modifiers, "the hypothesis {adds} the modifier {phrase}"),
    _added("apposition", "apposition {phrase}", lambda n: n.role == "apposition"),
    _added("clause", "clause around {words}", lambda n: n.role in _CLAUSES and n.kind == "verb"),
    _added("negation", "negation {words}", lambda n: n.lemma in NEGATIONS),
    Feature("unaligned.phrase", _subtrees, "the hypothesis {adds} the phrase {phrase}"),
)


PEOPLE = frozenset({"PERSON"})
ORGANISATIONS = frozenset({"ORG", "NORP", "PRODUCT", "EVENT", "WORK_OF_ART", "LAW"})

_SAME = frozenset({"same", "lemma", "number", "spelling", "synonym", "part"})
_DATES = frozenset({"date", "time"})
_AMOUNTS = frozenset({"number", "percent", "money", "ordinal"})


def _mentions(kinds: frozenset[str]) -> Callable[[Node], bool]:
    return lambda node: node.content and node.entity in kinds and node.quantity is None


def _quantities(kinds: frozenset[str]) -> Callable[[Node], bool]:
    return lambda node: node.quantity is not None and node.quantity.kind in kinds


def _same(test: Callable[[Node], bool]) -> Callable[[Pair], list[Match]]:
    """Mentions that stand in the premise as well."""
    return lambda pair: [
        (i, j) for i, j in pair.contents if test(pair.h[i]) and pair.relations[i] in _SAME
    ]


def _others(test: Callable[[Node], bool]) -> Callable[[Pair], list[Match]]:
    """Mentions whose partner in the premise is another of the sort, or another thing."""
    return lambda pair: [
        (i, j) for i, j in pair.contents if test(pair.h[i]) and pair.relations[i] not in _SAME
    ]


def _losses(test: Callable[[Node], bool]) -> Callable[[Pair], list[Match]]:
    """Mentions without a partner, or with another thing for one."""
    return lambda pair: [*_others(test)(pair), *additions(test)(pair)]


def _pronouns(pair: Pair) -> list[Match]:
    return [
        (i, j)
        for i, j in pair.aligned
        if pair.h[i].kind == pair.p[j].kind == "pronoun"
        and pair.h[i].lemma in PRONOUNS
        and _same_pronoun(pair.h[i].text, pair.p[j].text)
    ]


def _other_pronouns(pair: Pair) -> list[Match]:
    """Pronouns whose partner differs in person, number or gender."""
    return [
        (i, j)
        for i, j in pair.aligned
        if pair.h[i].lemma in PRONOUNS
        and pair.p[j].lemma in PRONOUNS
        and not _same_pronoun(pair.h[i].text, pair.p[j].text)
    ]


def _same_pronoun(a: str, b: str) -> bool:
    one, other = PRONOUNS.get(a.lower()), PRONOUNS.get(b.lower())
    if one is None or other is None:
        return a.lower() == b.lower()
    return all(x == y or not x or not y for x, y in zip(one, other, strict=True))


_person, _place, _group = _mentions(PEOPLE), _mentions(PLACES), _mentions(ORGANISATIONS)
_date, _amount = _quantities(_DATES), _quantities(_AMOUNTS)

REFERENCE = (
    merit("person.kept", _same(_person), "both speak of the person {words}"),
    Feature("person.changed", _others(_person), "the person {reference} became {hypothesis}"),
    Feature("person.missing", additions(_person), "the hypothesis {adds} the person {words}"),
    merit("place.kept", _same(_place), "both speak of the place {words}"),
    Feature("place.changed", _others(_place), "the place {reference} became {hypothesis}"),
    Feature("place.missing", additions(_place), "the hypothesis {adds} the place {words}"),
    merit("organisation.kept", _same(_group), "both speak of the group {words}"),
    Feature("organisation.lost", _losses(_group), "the group {words} is on one side only"),
    merit("date.kept", _same(_date), "both give the date {words}"),
    Feature("date.changed", _others(_date), "the date {reference} became {hypothesis}"),
    Feature("date.missing", additions(_date), "the hypothesis {adds} the date {words}"),
    merit("amount.kept", _same(_amount), "both give the number {words}"),
    Feature("amount.changed", _others(_amount), "the number {reference} became {hypothesis}"),
    Feature("amount.missing", additions(_amount), "the hypothesis {adds} the number {words}"),
    merit("pronoun.kept", _pronouns, "{hypothesis} and {reference} point to the same"),
    Feature(
        "pronoun.changed",
        _other_pronouns,
        "{hypothesis} for {reference}: another person, number or gender",
    ),
)
