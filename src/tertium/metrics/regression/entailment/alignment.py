"""Alignment quality (8): how well the hypothesis can be put upon the premise as a whole."""

from __future__ import annotations

from itertools import pairwise

from tertium.linguistics.alignment import FUNCTION_WEIGHT, NOTHING, SAME_EDGE, THRESHOLD
from tertium.linguistics.graph import ROOT
from tertium.metrics.regression.entailment.feature import Pair, Quality

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
    """The share of neighbouring aligned nodes that are neighbours in the premise too."""
    steps = [b[1] - a[1] for a, b in pairwise(pair.aligned)]
    return sum(0 <= step <= 2 for step in steps) / len(steps) if steps else float(len(pair.h) < 2)


def shared_share(pair: Pair) -> float:
    """The share of content nodes that must share their premise node with another."""
    return sum(pair.takers[j] > 1 for _, j in pair.contents) / pair.size


FEATURES = (
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
