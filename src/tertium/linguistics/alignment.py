"""The best alignment of each node of one sentence to one node of another, or to nothing.

Score of an alignment a of hypothesis nodes h to premise nodes (Pado et al. 2009, section 3.1):

    sum_h  w(h) (similarity(h, a(h)) - THRESHOLD)  +  sum_(h, parent of h)  edge(a(h), a(parent))

with nothing scoring 0. Two hypothesis nodes may share a premise node. Because the hypothesis is a
tree, the score decomposes along its edges and its maximum is found exactly by dynamic programming
from the leaves up (max-product), in time linear in the nodes; no sampling is needed. Exact means
over all candidates: premise nodes with some similarity that no equal lays claim to, of which a node
keeps the best `WIDEST` (only texts of hundreds of words have more).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from heapq import nlargest
from operator import itemgetter

import numpy as np

from tertium.arrays import products
from tertium.linguistics.graph import ROOT, Node
from tertium.linguistics.numbers import same_quantity
from tertium.linguistics.sentence import Sentence
from tertium.linguistics.similarity import (
    CHANCE,
    FLIPPED,
    STRENGTHS,
    UNLIKE,
    Likeness,
    distributional,
    relate,
    relate_function_words,
    relate_mixed,
)

NOTHING = -1
THRESHOLD = 0.4  # a partner less alike is worse than none
FUNCTION_WEIGHT = 0.4  # of a word of grammar, where a word of content counts 1
DRIFT = 0.04  # what a change of relative position from one end to the other costs
WIDEST = 12
ALIKE, CLOSE = 0.95, 0.75  # a node with an equal goes to no one who is not even close

# edge of the hypothesis -> what holds between the premise nodes of its two ends
SAME_EDGE, SAME_HEAD, NEAR, REVERSED, FAR, MERGED = 0.25, 0.1, 0.03, -0.05, -0.08, -0.2

# (premise node, similarity, relation)
Candidate = tuple[int, float, str]


@dataclass(frozen=True, slots=True, eq=False)
class WordAlignment:
    """Where each hypothesis node went.

    For node i of the hypothesis: `targets[i]` is a premise node or `NOTHING`, `similarity[i]` and
    `relations[i]` how alike they are and why, `edges[i]` what became of the edge to its parent
    (same, head, near, reversed, far, merged, or empty where an end is not aligned).
    """

    targets: tuple[int, ...]
    similarity: tuple[float, ...]
    relations: tuple[str, ...]
    edges: tuple[str, ...]
    score: float


def align_both(left: Sentence, right: Sentence) -> tuple[WordAlignment, WordAlignment]:
    """The alignments of left to right and of right to left, comparing each pair of words once.

    >>> from tertium.linguistics.parse import load_parser
    >>> from tertium.linguistics.sentence import build_sentence
    >>> texts = ["India acquires arms.", "India buys 1,000 tanks."]
    >>> h, p = map(build_sentence, load_parser().analyse(texts))
    >>> a, _ = align_both(h, p)
    >>> [p.nodes[t].text for t in a.targets[:2]], a.relations[:2]
    (['India', 'buys'], ('same', 'hyponym'))
    """
    forward = candidates(left, right)
    backward = _turn_round(forward, len(right.nodes))
    return solve(left, right, forward), solve(right, left, backward)


def _turn_round(found: Sequence[list[Candidate]], size: int) -> list[list[Candidate]]:
    """The same likenesses for each premise node; nodes that all words are equally alike to share
    one list, as those of one word do in what was found."""
    owners: dict[int, list[int]] = {}
    for i, row in enumerate(found):
        owners.setdefault(id(row), []).append(i)
    sides: list[list[tuple[int, float, str]]] = [[] for _ in range(size)]  # first owners of rows
    for first, *_ in owners.values():
        for j, strength, relation in found[first]:
            sides[j].append((first, strength, relation))
    known: dict[object, list[Candidate]] = {}
    for side in sides:
        if (key := tuple(side)) not in known:
            turned = [
                (i, strength, FLIPPED.get(relation, relation))
                for first, strength, relation in side
                for i in owners[id(found[first])]
            ]
            known[key] = sorted(turned, key=itemgetter(0))
    return [known[tuple(side)] for side in sides]


def candidates(hypothesis: Sentence, premise: Sentence) -> list[list[Candidate]]:
    """For each hypothesis node the premise nodes it has any likeness to.

    Content words are compared with content words, words of grammar with words of grammar; only
    those that can stand for content (pronouns, connectives) are compared across.
    """
    found: list[list[Candidate]] = [[] for _ in hypothesis.nodes]
    cosines = products(hypothesis.vectors, premise.vectors).tolist()
    h, p, heads = hypothesis.nodes, premise.nodes, {*hypothesis.initials.values()}
    known: dict[object, list[Candidate]] = {}  # a word that comes again is alike to the same words
    for i in hypothesis.contents:
        node, row = h[i], cosines[i]
        word = id(hypothesis.profiles[i]), node.text.lower(), node.lemma, node.quantity
        key = word, hypothesis.vectors[i].tobytes(), i if i in heads else NOTHING
        if key not in known:
            options = known[key] = []
            for j in premise.contents:
                strength, relation = compare_contents(hypothesis, node, premise, p[j], row[j])
                if strength > 0.0:
                    options.append((j, strength, relation))
        found[i] = known[key]
    for i in hypothesis.grammar:
        node = h[i]
        if (kind := (node.kind, node.text.lower(), node.lemma)) not in known:
            options = known[kind] = []
            for j in premise.grammar:
                strength, relation = compare_grammar(node, p[j])
                if strength > 0.0:
                    options.append((j, strength, relation))
        found[i] = known[kind]
    _compare_across(found, hypothesis, premise)
    return found


def _compare_across(found: list[list[Candidate]], hypothesis: Sentence, premise: Sentence) -> None:
    """Add the likenesses of words of grammar to content words."""
    for ours, theirs in (
        (hypothesis.bridges, premise.contents),
        (hypothesis.contents, premise.bridges),
    ):
        for i in ours:
            a, more = hypothesis.nodes[i], []
            for j in theirs:
                b = premise.nodes[j]
                strength, relation = relate_mixed(a.lemma, a.kind, b.lemma, b.kind)
                if strength > 0.0:
                    more.append((j, strength, relation))
            if more:
                found[i] = [*found[i], *more]  # other nodes share the list


def compare_contents(left: Sentence, a: Node, right: Sentence, b: Node, cosine: float) -> Likeness:
    """How alike two content nodes are, by the strongest of all sources."""
    if a.quantity is not None or b.quantity is not None:
        return _compare_quantities(a, b)
    if a.lemma == b.lemma:
        return _SAME if a.text.lower() == b.text.lower() else _LEMMA
    likeness = relate(left.profiles[a.index], right.profiles[b.index])
    if likeness.relation == "none" and (
        left.initials.get(b.lemma) == a.index or right.initials.get(a.lemma) == b.index
    ):
        return _ACRONYM
    if cosine > CHANCE:
        strength = distributional(cosine)
        if likeness.relation == "none":
            return Likeness(strength, "distributional")
        if strength > likeness.strength:
            return Likeness(strength, likeness.relation)
    return likeness


def compare_grammar(a: Node, b: Node) -> Likeness:
    """How alike two words of grammar are."""
    if a.lemma == b.lemma and a.text.lower() == b.text.lower():
        return _SAME
    return relate_function_words(a.lemma, a.kind, b.lemma, b.kind)


_SAME = Likeness(STRENGTHS["same"], "same")
_LEMMA = Likeness(STRENGTHS["lemma"], "lemma")
_ACRONYM = Likeness(STRENGTHS["spelling"], "spelling")
_NUMBER = Likeness(STRENGTHS["number"], "number")
_OTHER_NUMBER = Likeness(STRENGTHS["other number"], "other number")


def _compare_quantities(a: Node, b: Node) -> Likeness:
    if a.quantity is None or b.quantity is None:
        return UNLIKE
    if same_quantity(a.quantity, b.quantity):
        return _NUMBER
    return _OTHER_NUMBER if a.quantity.kind == b.quantity.kind else UNLIKE


def solve(
    hypothesis: Sentence, premise: Sentence, found: Sequence[list[Candidate]]
) -> WordAlignment:
    """The alignment of highest score among the candidates of each node."""
    options = _find_states(hypothesis, premise, drop_claimed(found))
    parents = [node.parent for node in premise.nodes]
    roles = [node.role for node in premise.nodes]
    order = sorted(range(len(options)), key=lambda i: -hypothesis.nodes[i].depth)
    # totals[i][k]: the best score of the subtree of node i when it takes its option k
    totals = [[state[1] for state in states] for states in options]
    choices: list[list[int]] = [[] for _ in options]
    score = 0.0
    for i in order:
        node = hypothesis.nodes[i]
        if node.parent == ROOT:
            score += max(totals[i])
            continue
        above = totals[node.parent]
        if len(options[i]) == 1:
            choices[i] = [0] * len(above)
            if totals[i][0]:
                above[:] = [value + totals[i][0] for value in above]
            continue
        for k, state in enumerate(options[node.parent]):
            best, choice = _best(options[i], totals[i], state[0], node.role, parents, roles)
            above[k] += best
            choices[i].append(choice)
    return _trace(hypothesis, options, totals, choices, reversed(order), parents, roles, score)


def drop_claimed(found: Sequence[list[Candidate]]) -> list[list[Candidate]]:
    """The candidates without those a better one stands against.

    A premise node that has its like in the hypothesis is not lent to a mere relative of it.
    """
    best: dict[int, float] = {}
    rows = {id(row): row for row in found}  # nodes of one word share theirs
    for row in rows.values():
        for j, strength, _ in row:
            if strength > best.get(j, 0.0):
                best[j] = strength
    kept = {
        name: [option for option in row if option[1] >= CLOSE or best[option[0]] < ALIKE]
        for name, row in rows.items()
    }
    return [kept[id(row)] for row in found]


# (premise node, node score, similarity, relation)
State = tuple[int, float, float, str]


def _find_states(
    hypothesis: Sentence, premise: Sentence, rows: Sequence[list[Candidate]]
) -> list[list[State]]:
    """Each node's options with their own scores, nothing first."""
    size, crowds = len(premise.nodes), dict[tuple[int, float], _Crowd]()
    found: list[list[State]] = []
    for i, row in enumerate(rows):
        weight = 1.0 if hypothesis.nodes[i].content else FUNCTION_WEIGHT
        place = i / len(hypothesis.nodes)
        if len(row) > WIDEST:
            if (key := (id(row), weight)) not in crowds:  # nodes of one word share theirs
                crowds[key] = _Crowd(row, weight, size)
            states = crowds[key].best(place)
        else:
            states = [
                (j, weight * (likeness - THRESHOLD) - DRIFT * abs(place - j / size), likeness, name)
                for j, likeness, name in row
            ]
        found.append([(NOTHING, 0.0, 0.0, "none"), *states])
    return found


class _Crowd:
    """More candidates than are kept, as arrays: a word that comes often meets them everywhere."""

    def __init__(self, row: list[Candidate], weight: float, size: int) -> None:
        # beyond what a change of position can make up for
        least = nlargest(WIDEST, map(itemgetter(1), row))[-1] - 1.01 * DRIFT / weight
        self.row = [option for option in row if option[1] >= least]
        self.places = np.array([j for j, _, _ in self.row]) / size
        self.scores = weight * (np.array([likeness for _, likeness, _ in self.row]) - THRESHOLD)

    def best(self, place: float) -> list[State]:
        """The best `WIDEST` for a node at a relative place, of equals the first."""
        scores = self.scores - DRIFT * np.abs(place - self.places)
        first = np.argsort(-scores, kind="stable")[:WIDEST].tolist()
        return [(self.row[n][0], float(scores[n]), *self.row[n][1:]) for n in first]


def _best(
    options: list[State],
    totals: list[float],
    b: int,
    role: str,
    parents: list[int],
    roles: list[str],
) -> tuple[float, int]:
    """The best total of a child, and its option, when its parent goes to premise node b."""
    if b == NOTHING:
        best = max(totals)
        return best, totals.index(best)
    best, choice = totals[0], 0
    for k in range(1, len(options)):
        # edge_score, written out: this is the innermost loop of the search
        a = options[k][0]
        above = parents[a]
        if above == b:
            value = totals[k] + (SAME_EDGE if roles[a] == role else SAME_HEAD)
        elif a == b:
            value = totals[k] + MERGED
        elif above != ROOT and parents[above] == b:
            value = totals[k] + NEAR
        else:
            value = totals[k] + (REVERSED if parents[b] == a else FAR)
        if value > best:
            best, choice = value, k
    return best, choice


def edge_score(a: int, b: int, role: str, parents: Sequence[int], roles: Sequence[str]) -> float:
    """How well a premise pair (a below b, one hopes) keeps an edge with this role."""
    above = parents[a]
    if above == b:
        return SAME_EDGE if roles[a] == role else SAME_HEAD
    if a == b:
        return MERGED
    if above != ROOT and parents[above] == b:
        return NEAR
    return REVERSED if parents[b] == a else FAR


_EDGE_NAMES = {
    SAME_EDGE: "same",
    SAME_HEAD: "head",
    NEAR: "near",
    REVERSED: "reversed",
    FAR: "far",
    MERGED: "merged",
}


def _trace(
    hypothesis: Sentence,
    options: Sequence[list[State]],
    totals: Sequence[list[float]],
    choices: Sequence[list[int]],
    order: Iterable[int],
    parents: list[int],
    roles: list[str],
    score: float,
) -> WordAlignment:
    picked = [0] * len(options)
    edges = [""] * len(options)
    for i in order:
        node = hypothesis.nodes[i]
        if node.parent == ROOT:
            picked[i] = max(range(len(totals[i])), key=totals[i].__getitem__)
            continue
        picked[i] = choices[i][picked[node.parent]]
        a, b = options[i][picked[i]][0], options[node.parent][picked[node.parent]][0]
        if NOTHING not in (a, b):
            edges[i] = _EDGE_NAMES[edge_score(a, b, node.role, parents, roles)]
    taken = [states[k] for states, k in zip(options, picked, strict=True)]
    return WordAlignment(
        tuple(s[0] for s in taken),
        tuple(s[2] for s in taken),
        tuple(s[3] for s in taken),
        tuple(edges),
        score,
    )
