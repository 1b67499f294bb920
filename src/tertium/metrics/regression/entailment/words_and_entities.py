"""Features of words: alignment quality (8), unaligned words (20), entities and pronouns (16).

With the reference as premise, unaligned words are insertions of the translation. With the
translation as premise, they are omissions. Entity features test for each type (persons, places,
organizations, dates, numbers) whether a mention is matched by the same entity, by another one, or
not at all. Names agree if their words do, in any order or case.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import pairwise

from tertium.metrics.linguistics.dependency_graph import CLAUSE_ROLES, ROOT, Node
from tertium.metrics.linguistics.lexicons import NEGATIONS, PRONOUNS, word_set
from tertium.metrics.linguistics.word_alignment import (
    EDGE_SCORES,
    FUNCTION_WORD_WEIGHT,
    MIN_SIMILARITY,
    UNALIGNED,
)
from tertium.metrics.regression.entailment.feature_types import Find, Match, Pair, Rule

_ROLE_WEIGHTS = {"root": 2.0, "subject": 1.5, "object": 1.5, "predicate": 1.5}
_NAME_WEIGHT = 1.5  # a wrong name or number is more misleading than another wrong word


def alignment_score(pair: Pair) -> float:
    """Divide the score of the alignment by the score of a perfect alignment."""
    best = 0.0
    for node in pair.h:
        best += (1.0 if node.is_content else FUNCTION_WORD_WEIGHT) * (1.0 - MIN_SIMILARITY)
        best += EDGE_SCORES["same"] if node.parent != ROOT else 0.0
    return pair.alignment.score / best if best else 0.0


def content_similarity(pair: Pair) -> float:
    """Compute the mean similarity of content words; unaligned words count 0."""
    return sum(pair.similarity[i] for i, _ in pair.content_matches) / pair.content_count


def weighted_similarity(pair: Pair) -> float:
    """Compute the same, with higher weights for main verbs, arguments and names near the root."""
    weight_sum = weighted = 0.0
    for node in pair.h:
        if node.is_content:
            weight = _ROLE_WEIGHTS.get(node.role, 1.0) / (1.0 + 0.2 * node.depth)
            weight *= _NAME_WEIGHT if node.kind in ("name", "number") else 1.0
            weight_sum += weight
            weighted += weight * pair.similarity[node.index]
    return weighted / weight_sum if weight_sum else 0.0


def aligned_function_words(pair: Pair) -> float:
    """Compute the share of function words that are aligned."""
    words = [node.index for node in pair.h if not node.is_content]
    return sum(pair.targets[i] != UNALIGNED for i in words) / len(words) if words else 1.0


def identical_words(pair: Pair) -> float:
    """Compute the share of nodes aligned with the same word form."""
    return sum(r == "same" for r in pair.relations) / max(1, len(pair.h))


def same_edges(pair: Pair) -> float:
    """Compute the share of dependency relations that also hold in the premise."""
    total = sum(node.parent != ROOT for node in pair.h)
    return sum(e == "same" for e in pair.edges) / total if total else 1.0


def same_order(pair: Pair) -> float:
    """Compute the share of neighboring aligned nodes that are neighbors in the premise too."""
    steps = [b[1] - a[1] for a, b in pairwise(pair.aligned)]
    return sum(0 <= step <= 2 for step in steps) / len(steps) if steps else float(len(pair.h) < 2)


def shared_targets(pair: Pair) -> float:
    """Compute the share of content words whose target is aligned with another word too."""
    return sum(pair.target_counts[j] > 1 for _, j in pair.content_matches) / pair.content_count


TIME_ENTITIES = frozenset({"DATE", "TIME"})
PLACE_ENTITIES = word_set("GPE LOC FAC")
NodeTest = Callable[[Node], bool]


def _find_unaligned(test: NodeTest) -> Find:
    """Find unaligned nodes that pass a test."""
    return lambda pair: [(i, UNALIGNED) for i in pair.unaligned if test(pair.h[i])]


def _is_agent(node: Node) -> bool:
    return node.label == "agent"


def _is_time(node: Node) -> bool:
    if node.quantity is not None:
        return node.quantity.kind in ("date", "time")
    return node.entity in TIME_ENTITIES or (node.label == "npadvmod" and node.kind == "noun")


def _is_place(node: Node) -> bool:
    return node.role == "adjunct" and node.entity in PLACE_ENTITIES


def _is_adjunct(node: Node) -> bool:
    return node.role == "adjunct" and node.is_content and not (_is_place(node) or _is_time(node))


def _only_function_words(pair: Pair) -> list[Match]:
    """Find unaligned function words, if no content word is unaligned."""
    if any(pair.h[i].is_content for i in pair.unaligned):
        return []
    return [(i, UNALIGNED) for i in pair.unaligned]


def _unaligned_modifiers(pair: Pair) -> list[Match]:
    """Find unaligned modifiers of an aligned word."""
    return [
        (i, UNALIGNED)
        for i in pair.unaligned
        if pair.h[i].role in ("modifier", "adverbial")
        and pair.h[i].is_content
        and pair.h[i].parent != ROOT
        and pair.targets[pair.h[i].parent] != UNALIGNED
    ]


def _words_not_in_wordnet(pair: Pair) -> list[Match]:
    """Find unaligned content words that are not in WordNet: names, or untranslated words."""
    profiles = pair.hypothesis.profiles
    return [
        (i, UNALIGNED)
        for i in pair.unaligned
        if pair.h[i].is_content and pair.h[i].quantity is None and not profiles[i].in_wordnet
    ]


def _unaligned_phrases(pair: Pair) -> list[Match]:
    """Find phrases of at least three nodes, all unaligned."""
    graph = pair.hypothesis.graph
    matches = []
    for i in pair.unaligned:
        node = pair.h[i]
        is_top = node.parent == ROOT or pair.targets[node.parent] != UNALIGNED
        if is_top and node.is_content:
            subtree = graph.subtree(i)
            if len(subtree) > 2 and all(pair.targets[k] == UNALIGNED for k in subtree):
                matches.append((i, UNALIGNED))
    return matches


PERSON_ENTITIES = frozenset({"PERSON"})
ORGANIZATION_ENTITIES = word_set("ORG NORP PRODUCT EVENT WORK_OF_ART LAW")

_SAME_RELATIONS = word_set("same lemma number spelling synonym part")
_DATE_KINDS = frozenset({"date", "time"})
_AMOUNT_KINDS = word_set("number percent money ordinal")


def _is_entity(kinds: frozenset[str]) -> NodeTest:
    return lambda node: node.is_content and node.entity in kinds and node.quantity is None


def _is_quantity(kinds: frozenset[str]) -> NodeTest:
    return lambda node: node.quantity is not None and node.quantity.kind in kinds


def _find_mentions(test: NodeTest, is_same: bool) -> Find:
    """Find mentions aligned with the same entity, or with another word."""
    return lambda pair: [
        (i, j)
        for i, j in pair.content_matches
        if test(pair.h[i]) and (pair.relations[i] in _SAME_RELATIONS) == is_same
    ]


def _find_lost_mentions(test: NodeTest) -> Find:
    """Find mentions aligned with another word, or unaligned."""
    find_changed, find_missing = _find_mentions(test, is_same=False), _find_unaligned(test)
    return lambda pair: [*find_changed(pair), *find_missing(pair)]


def _mention_rules(name: str, test: NodeTest) -> Mapping[str, Find]:
    return {
        f"{name}.kept": _find_mentions(test, is_same=True),
        f"{name}.changed": _find_mentions(test, is_same=False),
        f"{name}.missing": _find_unaligned(test),
    }


def _same_pronouns(pair: Pair) -> list[Match]:
    return [
        (i, j)
        for i, j in pair.aligned
        if pair.h[i].kind == pair.p[j].kind == "pronoun"
        and pair.h[i].lemma in PRONOUNS
        and _pronouns_agree(pair.h[i].text, pair.p[j].text)
    ]


def _different_pronouns(pair: Pair) -> list[Match]:
    """Find aligned pronouns that differ in person, number or gender."""
    return [
        (i, j)
        for i, j in pair.aligned
        if pair.h[i].lemma in PRONOUNS
        and pair.p[j].lemma in PRONOUNS
        and not _pronouns_agree(pair.h[i].text, pair.p[j].text)
    ]


def _pronouns_agree(left: str, right: str) -> bool:
    left_features, right_features = PRONOUNS.get(left.lower()), PRONOUNS.get(right.lower())
    if left_features is None or right_features is None:
        return left.lower() == right.lower()
    pairs = zip(left_features, right_features, strict=True)
    return all(a == b or not a or not b for a, b in pairs)


_is_organization = _is_entity(ORGANIZATION_ENTITIES)

RULES: Mapping[str, Rule] = {
    "alignment.score": alignment_score,
    "alignment.content": content_similarity,
    "alignment.prominence": weighted_similarity,
    "alignment.function": aligned_function_words,
    "alignment.identical": identical_words,
    "alignment.edges": same_edges,
    "alignment.order": same_order,
    "alignment.shared": shared_targets,
    "unaligned.noun": _find_unaligned(lambda n: n.kind == "noun" and n.is_content),
    "unaligned.name": _find_unaligned(lambda n: n.kind == "name"),
    "unaligned.verb": _find_unaligned(lambda n: n.kind == "verb" and n.is_content),
    "unaligned.quality": _find_unaligned(
        lambda n: n.kind in ("adjective", "adverb") and n.is_content
    ),
    "unaligned.number": _find_unaligned(lambda n: n.kind == "number"),
    "unaligned.unknown": _words_not_in_wordnet,
    "unaligned.function": _find_unaligned(lambda n: not n.is_content),
    "unaligned.only_function": _only_function_words,
    "unaligned.root": _find_unaligned(lambda n: n.parent == ROOT),
    "unaligned.subject": _find_unaligned(lambda n: n.role == "subject" and not _is_agent(n)),
    "unaligned.agent": _find_unaligned(_is_agent),
    "unaligned.object": _find_unaligned(lambda n: n.role in ("object", "recipient", "predicate")),
    "unaligned.time": _find_unaligned(_is_time),
    "unaligned.place": _find_unaligned(_is_place),
    "unaligned.adjunct": _find_unaligned(_is_adjunct),
    "unaligned.modifier": _unaligned_modifiers,
    "unaligned.apposition": _find_unaligned(lambda n: n.role == "apposition"),
    "unaligned.clause": _find_unaligned(lambda n: n.role in CLAUSE_ROLES and n.kind == "verb"),
    "unaligned.negation": _find_unaligned(lambda n: n.lemma in NEGATIONS),
    "unaligned.phrase": _unaligned_phrases,
    **_mention_rules("person", _is_entity(PERSON_ENTITIES)),
    **_mention_rules("place", _is_entity(PLACE_ENTITIES)),
    "organisation.kept": _find_mentions(_is_organization, is_same=True),
    "organisation.lost": _find_lost_mentions(_is_organization),
    **_mention_rules("date", _is_quantity(_DATE_KINDS)),
    **_mention_rules("amount", _is_quantity(_AMOUNT_KINDS)),
    "pronoun.kept": _same_pronouns,
    "pronoun.changed": _different_pronouns,
}
