"""The rules of all entailment features: on which matches of nodes does a feature fire?

- Alignment (8): how well are the nodes aligned?
- Insertions (20): which words are unaligned? With the reference as premise, these are insertions of
  the translation. With the translation as premise, they are omissions.
- Reference (16): is a mention of a person, a place, an organization, a date, a number or a pronoun
  matched by the same entity, by another one, or not at all?
- Compatibility (34): do aligned words mean the same in their context? They are compared in
  modality, factivity, polarity and monotonicity, quantifiers, lexical relations, tense and aspect,
  number and degree.
- Structure (28): do both sides say who did what to whom? Arguments are deep: the agent of a passive
  is compared with the subject of an active verb. The last rules detect a hypothesis that is not a
  sentence.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise

from tertium.metrics.linguistics.dependency_graph import CLAUSE_ROLES, ROOT, Graph, Node
from tertium.metrics.linguistics.lexicons import NEGATIONS, PRONOUNS, QUANTIFIER_ORDER, word_set
from tertium.metrics.linguistics.semantic_attributes import SemanticAttributes
from tertium.metrics.linguistics.word_alignment import (
    EDGE_SCORES,
    FUNCTION_WORD_WEIGHT,
    MIN_SIMILARITY,
    UNALIGNED,
)
from tertium.metrics.regression.entailment.feature_types import (
    AlignedNodes,
    Find,
    Match,
    Pair,
    Rule,
)

NodeTest = Callable[[Node], bool]
# attributes of (hypothesis node, premise node) -> whether a feature fires
AttributeTest = Callable[[SemanticAttributes, SemanticAttributes], bool]
# (pair, hypothesis node, premise node) -> whether a feature fires
ArgumentTest = Callable[[Pair, int, int], bool]


def select(kind: str, test: Callable[[AlignedNodes], bool]) -> Find:
    """Find the aligned nodes of a kind (see `Pair.nodes`) that pass a test."""
    return lambda pair: [nodes.match for nodes in pair.nodes[kind] if test(nodes)]


def unaligned(test: NodeTest) -> Find:
    """Find unaligned nodes that pass a test."""
    return lambda pair: [(node.index, UNALIGNED) for node in pair.unaligned if test(node)]


def _share(flags: Sequence[bool], default: float = 1.0) -> float:
    return sum(flags) / len(flags) if flags else default


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
    return sum(nodes.similarity for nodes in pair.nodes["content"]) / pair.content_count


def weighted_similarity(pair: Pair) -> float:
    """Compute the same, with higher weights for main verbs, arguments and names near the root."""
    weight_sum = weighted = 0.0
    for node in pair.h:
        if node.is_content:
            weight = _ROLE_WEIGHTS.get(node.role, 1.0) / (1.0 + 0.2 * node.depth)
            weight *= _NAME_WEIGHT if node.kind in ("name", "number") else 1.0
            weight_sum += weight
            weighted += weight * pair.alignment.similarity[node.index]
    return weighted / weight_sum if weight_sum else 0.0


def aligned_function_words(pair: Pair) -> float:
    """Compute the share of function words that are aligned."""
    return _share([pair.targets[n.index] != UNALIGNED for n in pair.h if not n.is_content])


def identical_words(pair: Pair) -> float:
    """Compute the share of nodes aligned with the same word form."""
    return _share([relation == "same" for relation in pair.alignment.relations], 0.0)


def same_edges(pair: Pair) -> float:
    """Compute the share of dependency relations that also hold in the premise."""
    edges = pair.alignment.edges
    return _share([edges[node.index] == "same" for node in pair.h if node.parent != ROOT])


def same_order(pair: Pair) -> float:
    """Compute the share of neighboring aligned nodes that are neighbors in the premise too."""
    targets = [nodes.p.index for nodes in pair.nodes["all"]]
    return _share([0 <= b - a <= 2 for a, b in pairwise(targets)], float(len(pair.h) < 2))


def shared_targets(pair: Pair) -> float:
    """Compute the share of content words whose target is aligned with another word too."""
    counts = Counter(pair.targets)
    return sum(counts[n.p.index] > 1 for n in pair.nodes["content"]) / pair.content_count


_TIME_ENTITIES = frozenset({"DATE", "TIME"})
_PERSON_ENTITIES = frozenset({"PERSON"})
_PLACE_ENTITIES = word_set("GPE LOC FAC")
_ORGANIZATION_ENTITIES = word_set("ORG NORP PRODUCT EVENT WORK_OF_ART LAW")
_SAME_RELATIONS = word_set("same lemma number spelling synonym part")
_DATE_KINDS = frozenset({"date", "time"})
_AMOUNT_KINDS = word_set("number percent money ordinal")


def _is_agent(node: Node) -> bool:
    return node.label == "agent"


def _is_time(node: Node) -> bool:
    if node.quantity is not None:
        return node.quantity.kind in _DATE_KINDS
    return node.entity in _TIME_ENTITIES or (node.label == "npadvmod" and node.kind == "noun")


def _is_place(node: Node) -> bool:
    return node.role == "adjunct" and node.entity in _PLACE_ENTITIES


def _is_adjunct(node: Node) -> bool:
    return node.role == "adjunct" and node.is_content and not (_is_place(node) or _is_time(node))


def _only_function_words(pair: Pair) -> list[Match]:
    """Find unaligned function words, if no content word is unaligned."""
    if any(node.is_content for node in pair.unaligned):
        return []
    return [(node.index, UNALIGNED) for node in pair.unaligned]


def _unaligned_modifiers(pair: Pair) -> list[Match]:
    """Find unaligned modifiers of an aligned word."""
    modifiers = unaligned(lambda n: n.role in ("modifier", "adverbial") and n.is_content)(pair)
    return [
        (i, j)
        for i, j in modifiers
        if pair.h[i].parent != ROOT and pair.targets[pair.h[i].parent] != UNALIGNED
    ]


def _words_not_in_wordnet(pair: Pair) -> list[Match]:
    """Find unaligned content words that are not in WordNet: names, or untranslated words."""
    words = unaligned(lambda node: node.is_content and node.quantity is None)(pair)
    return [(i, j) for i, j in words if not pair.hypothesis.profiles[i].in_wordnet]


def _unaligned_phrases(pair: Pair) -> list[Match]:
    """Find phrases of at least three nodes, all unaligned."""
    matches = []
    for node in pair.unaligned:
        is_top = node.parent == ROOT or pair.targets[node.parent] != UNALIGNED
        if is_top and node.is_content:
            subtree = pair.hypothesis.graph.subtree(node.index)
            if len(subtree) > 2 and all(pair.targets[k] == UNALIGNED for k in subtree):
                matches.append((node.index, UNALIGNED))
    return matches


def _is_entity(kinds: frozenset[str]) -> NodeTest:
    return lambda node: node.is_content and node.entity in kinds and node.quantity is None


def _is_quantity(kinds: frozenset[str]) -> NodeTest:
    return lambda node: node.quantity is not None and node.quantity.kind in kinds


def _mention_rules(name: str, test: NodeTest) -> dict[str, Find]:
    """Return rules of mentions aligned with the same entity, with another word, or unaligned."""
    return {
        f"{name}.kept": select("content", lambda n: test(n.h) and n.relation in _SAME_RELATIONS),
        f"{name}.changed": select(
            "content", lambda n: test(n.h) and n.relation not in _SAME_RELATIONS
        ),
        f"{name}.missing": unaligned(test),
    }


def _pronouns_agree(nodes: AlignedNodes) -> bool:
    """Whether two pronouns do not differ in person, number or gender."""
    left = nodes.h.text.lower()
    right = nodes.p.text.lower()
    if left not in PRONOUNS or right not in PRONOUNS:
        return left == right
    pairs = zip(PRONOUNS[left], PRONOUNS[right], strict=True)
    return all(a == b or not a or not b for a, b in pairs)


_organizations = _mention_rules("organisation", _is_entity(_ORGANIZATION_ENTITIES))

WORD_RULES: Mapping[str, Rule] = {
    "alignment.score": alignment_score,
    "alignment.content": content_similarity,
    "alignment.prominence": weighted_similarity,
    "alignment.function": aligned_function_words,
    "alignment.identical": identical_words,
    "alignment.edges": same_edges,
    "alignment.order": same_order,
    "alignment.shared": shared_targets,
    "unaligned.noun": unaligned(lambda n: n.kind == "noun" and n.is_content),
    "unaligned.name": unaligned(lambda n: n.kind == "name"),
    "unaligned.verb": unaligned(lambda n: n.kind == "verb" and n.is_content),
    "unaligned.quality": unaligned(lambda n: n.kind in ("adjective", "adverb") and n.is_content),
    "unaligned.number": unaligned(lambda n: n.kind == "number"),
    "unaligned.unknown": _words_not_in_wordnet,
    "unaligned.function": unaligned(lambda n: not n.is_content),
    "unaligned.only_function": _only_function_words,
    "unaligned.root": unaligned(lambda n: n.parent == ROOT),
    "unaligned.subject": unaligned(lambda n: n.role == "subject" and not _is_agent(n)),
    "unaligned.agent": unaligned(_is_agent),
    "unaligned.object": unaligned(lambda n: n.role in ("object", "recipient", "predicate")),
    "unaligned.time": unaligned(_is_time),
    "unaligned.place": unaligned(_is_place),
    "unaligned.adjunct": unaligned(_is_adjunct),
    "unaligned.modifier": _unaligned_modifiers,
    "unaligned.apposition": unaligned(lambda n: n.role == "apposition"),
    "unaligned.clause": unaligned(lambda n: n.role in CLAUSE_ROLES and n.kind == "verb"),
    "unaligned.negation": unaligned(lambda n: n.lemma in NEGATIONS),
    "unaligned.phrase": _unaligned_phrases,
    **_mention_rules("person", _is_entity(_PERSON_ENTITIES)),
    **_mention_rules("place", _is_entity(_PLACE_ENTITIES)),
    "organisation.kept": _organizations["organisation.kept"],
    "organisation.lost": lambda pair: [
        *_organizations["organisation.changed"](pair),
        *_organizations["organisation.missing"](pair),
    ],
    **_mention_rules("date", _is_quantity(_DATE_KINDS)),
    **_mention_rules("amount", _is_quantity(_AMOUNT_KINDS)),
    "pronoun.kept": select(
        "all",
        lambda n: (
            n.h.kind == n.p.kind == "pronoun" and n.h.lemma in PRONOUNS and _pronouns_agree(n)
        ),
    ),
    "pronoun.changed": select(
        "all",
        lambda n: n.h.lemma in PRONOUNS and n.p.lemma in PRONOUNS and not _pronouns_agree(n),
    ),
}

_UNCERTAIN_MODALITIES = word_set("possible probable hypothetical")
_CERTAIN_MODALITIES = frozenset({"actual", "certain"})
_STRENGTHS = ({"possible", "probable"}, {"necessary", "certain"})  # weak and strong modalities
_NON_FACTIVE_ATTITUDES = word_set("belief report wish")


def _compare(kind: str, test: AttributeTest) -> Find:
    """Find the aligned nodes of a kind whose attributes pass a test."""
    return select(kind, lambda nodes: test(nodes.h_attributes, nodes.p_attributes))


def _split_by_clause(name: str, test: AttributeTest) -> dict[str, Find]:
    """Return the rules of predicates at the top of a tree, and of all others."""

    def find(expected: bool) -> Find:
        return select(
            "predicate",
            lambda n: (
                expected == (n.h.depth == 0 or n.p.depth == 0)
                and test(n.h_attributes, n.p_attributes)
            ),
        )

    return {f"{name}.root": find(True), f"{name}.other": find(False)}


def _differ(left: str, right: str) -> bool:
    """Whether both are known and differ."""
    return left != right and bool(left) and bool(right)


def _only_one(value: str, left: str, right: str) -> bool:
    return (left == value) != (right == value)


def _with_relation(*relations: str) -> Find:
    """Find matches of content words with one of these lexical relations."""
    return select("content", lambda nodes: nodes.relation in relations)


def _generalizations(is_valid: bool) -> Find:
    """Find words replaced by a more general or more specific one, where that is (not) valid.

    A more general word is valid in an upward, a more specific one in a downward monotone context.
    """
    # "hyponym": the premise word is a hyponym of the hypothesis word, which is more general
    return select(
        "content",
        lambda nodes: (
            nodes.relation in ("hypernym", "hyponym")
            and is_valid == ((nodes.relation == "hyponym") != nodes.h_attributes.is_downward)
        ),
    )


def _added_negations(pair: Pair) -> list[Match]:
    """Find negation words of the hypothesis in excess of those of the premise."""
    own, other = ([n.index for n in side if n.lemma in NEGATIONS] for side in (pair.h, pair.p))
    return [(i, UNALIGNED) for i in own[len(other) :]]


def _is_weaker(h: SemanticAttributes, p: SemanticAttributes) -> bool:
    if not (h.quantifier and p.quantifier):
        return False
    ranks = QUANTIFIER_ORDER.index(h.quantifier), QUANTIFIER_ORDER.index(p.quantifier)
    return 0 < ranks[0] < ranks[1]


COMPATIBILITY_RULES: Mapping[str, Rule] = {
    "modality.same": _compare("predicate", lambda h, p: h.modality == p.modality != "actual"),
    **_split_by_clause(
        "modality",
        lambda h, p: h.modality != p.modality and {h.modality, p.modality} != {"actual", "certain"},
    ),
    "modality.lost": _compare(
        "predicate",
        lambda h, p: p.modality in _UNCERTAIN_MODALITIES and h.modality in _CERTAIN_MODALITIES,
    ),
    "modality.gained": _compare(
        "predicate",
        lambda h, p: h.modality in _UNCERTAIN_MODALITIES and p.modality in _CERTAIN_MODALITIES,
    ),
    "modality.strength": _compare(
        "predicate",
        lambda h, p: all({h.modality, p.modality} & strength for strength in _STRENGTHS),
    ),
    "modality.condition": _compare(
        "predicate", lambda h, p: _only_one("hypothetical", h.modality, p.modality)
    ),
    "factivity.same": _compare("predicate", lambda h, p: h.attitude == p.attitude != ""),
    "factivity.differs": _compare(
        "predicate",
        lambda h, p: (
            _only_one("factive", h.attitude, p.attitude)
            and not _NON_FACTIVE_ATTITUDES.isdisjoint({h.attitude, p.attitude})
        ),
    ),
    "factivity.asserted": _compare(
        "predicate", lambda h, p: p.attitude in _NON_FACTIVE_ATTITUDES and not h.attitude
    ),
    "factivity.implicative": _compare(
        "predicate", lambda h, p: _only_one("negative", h.attitude, p.attitude)
    ),
    "polarity.same": _compare("predicate", lambda h, p: h.is_negated and p.is_negated),
    **_split_by_clause("polarity", lambda h, p: h.is_negated != p.is_negated),
    "polarity.negations": _added_negations,
    "polarity.licensed": _generalizations(True),
    "polarity.unlicensed": _generalizations(False),
    "quantifier.same": _compare("nominal", lambda h, p: h.quantifier == p.quantifier != ""),
    "quantifier.weaker": _compare("nominal", _is_weaker),
    "quantifier.opposed": _compare(
        "nominal",
        lambda h, p: (
            bool(h.quantifier and p.quantifier) and _only_one("none", h.quantifier, p.quantifier)
        ),
    ),
    "quantifier.missing": _compare("nominal", lambda h, p: bool(h.quantifier) and not p.quantifier),
    "definiteness.differs": _compare(
        "nominal", lambda h, p: _differ(h.definiteness, p.definiteness)
    ),
    "lexical.synonym": _with_relation("synonym", "marker"),
    "lexical.antonym": _with_relation("antonym"),
    "lexical.derivation": _with_relation("derivation"),
    "lexical.sibling": _with_relation("sibling", "entailment"),
    "lexical.distributional": _with_relation("distributional"),
    "lexical.inflection": _with_relation("lemma"),
    "lexical.kind": select(
        "content", lambda n: n.h.kind != n.p.kind and {n.h.kind, n.p.kind} != {"noun", "name"}
    ),
    **_split_by_clause("tense", lambda h, p: _differ(h.tense, p.tense)),
    "tense.aspect": _compare(
        "predicate",
        lambda h, p: (h.is_perfect, h.is_progressive) != (p.is_perfect, p.is_progressive),
    ),
    "number.differs": _compare("nominal", lambda h, p: _differ(h.number, p.number)),
    "degree.differs": _compare("content", lambda h, p: h.degree != p.degree),
}

LOW_SIMILARITY = 0.6  # words with a lower similarity are only loosely related
_FINITE_TAGS = word_set("VBD VBZ VBP MD")
_MODIFIERS = word_set("modifier number adverbial")
_ADJUNCTS = word_set("adjunct genitive recipient")
_ALL_ROLES = word_set("subject object predicate genitive modifier adjunct conjunct apposition")
_MOVED_EDGES = ("near", "far", "merged", "reversed")


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


def _arguments(test: ArgumentTest, *roles: tuple[str, str]) -> Find:
    """Find arguments of aligned predicates that pass a test, in roles on either side."""

    def find(pair: Pair) -> list[Match]:
        arguments = [
            _find_arguments(pair, nodes.match, role, premise_role)
            for nodes in pair.nodes["predicate"]
            for role, premise_role in roles
        ]
        return [(own, other) for own, other in arguments if test(pair, own, other)]

    return find


def _is_aligned(pair: Pair, own: int, other: int) -> bool:
    return UNALIGNED not in (own, other) and pair.targets[own] == other


def _is_different(pair: Pair, own: int, other: int) -> bool:
    return UNALIGNED not in (own, other) and pair.targets[own] != other


def _is_missing(pair: Pair, own: int, other: int) -> bool:
    return own == UNALIGNED != other


def _voice_changes(has_same_arguments: bool) -> Find:
    """Find aligned verbs of different voice whose arguments are (or are not) the same."""

    def find(pair: Pair) -> list[Match]:
        matches = []
        for nodes in pair.nodes["predicate"]:
            if nodes.h_attributes.is_passive != nodes.p_attributes.is_passive:
                roles = ("subject", "object")
                arguments = [_find_arguments(pair, nodes.match, role, role) for role in roles]
                filled = [(a, b) for a, b in arguments if UNALIGNED not in (a, b)]
                is_same = bool(filled) and all(_is_aligned(pair, a, b) for a, b in filled)
                if is_same == has_same_arguments:
                    matches.append(nodes.match)
        return matches

    return find


def _root_kind_differs(pair: Pair) -> list[Match]:
    """Compare the main roots: one is a verb and the other is not."""
    own = pair.hypothesis.graph.roots[:1]
    other = pair.premise.graph.roots[:1]
    return [
        (i, j)
        for i, j in zip(own, other, strict=False)
        if (pair.h[i].kind == "verb") != (pair.p[j].kind == "verb")
    ]


def _with_edge(roles: frozenset[str], *edges: str) -> Find:
    """Find aligned nodes in one of these roles whose edge is one of `edges` in the premise."""
    return select("all", lambda nodes: nodes.edge in edges and nodes.h.role in roles)


def _prominent_words_kept(pair: Pair) -> float:
    """Compute the share of content words near the root whose target is near the root too."""
    targets = [pair.targets[n.index] for n in pair.h if n.depth < 2 and n.is_content]
    return _share([j != UNALIGNED and pair.p[j].depth < 3 for j in targets])


def _missing_finite_verb(pair: Pair) -> list[Match]:
    """Return the main root if only the premise has a finite verb."""
    own, other = (any(node.tag in _FINITE_TAGS for node in side) for side in (pair.h, pair.p))
    return [(i, UNALIGNED) for i in pair.hypothesis.graph.roots[:1] if other and not own]


def _unattached_words(pair: Pair) -> list[Match]:
    """Find words without a known relation, and roots in excess of those of the premise."""
    own = pair.hypothesis.graph.roots
    other = pair.premise.graph.roots
    unattached = [n.index for n in pair.h if n.role == "loose"]
    return [(i, UNALIGNED) for i in (*unattached, *own[max(1, len(other)) :])]


STRUCTURE_RULES: Mapping[str, Rule] = {
    "root.kept": select("all", lambda n: n.h.parent == n.p.parent == ROOT),
    "root.elsewhere": select("all", lambda n: n.h.parent == ROOT != n.p.parent),
    "root.poor": select("all", lambda n: n.h.parent == ROOT and n.similarity < LOW_SIMILARITY),
    "root.kind": _root_kind_differs,
    "verb.kept": select("predicate", lambda n: n.h.is_content and n.similarity > 0.8),
    "subject.kept": _arguments(_is_aligned, ("subject", "subject")),
    "subject.changed": _arguments(_is_different, ("subject", "subject")),
    "subject.missing": _arguments(_is_missing, ("subject", "subject")),
    "object.kept": _arguments(_is_aligned, ("object", "object")),
    "object.changed": _arguments(_is_different, ("object", "object")),
    "object.missing": _arguments(_is_missing, ("object", "object")),
    "argument.swapped": _arguments(_is_aligned, ("subject", "object"), ("object", "subject")),
    "passive.kept": _voice_changes(True),
    "passive.wrong": _voice_changes(False),
    "adjunct.kept": _with_edge(_ADJUNCTS, "same"),
    "adjunct.moved": _with_edge(_ADJUNCTS, *_MOVED_EDGES),
    "preposition.differs": select("content", lambda n: _differ(n.h.marker, n.p.marker)),
    "modifier.kept": _with_edge(_MODIFIERS, "same"),
    "modifier.moved": _with_edge(_MODIFIERS, *_MOVED_EDGES),
    "relation.changed": _with_edge(_ALL_ROLES, "head"),
    "relation.reversed": _with_edge(_ALL_ROLES, "reversed"),
    "conjunct.kept": _with_edge(frozenset({"conjunct"}), "same"),
    "clause.kept": select(
        "predicate", lambda n: n.h.role in CLAUSE_ROLES and n.p.role in CLAUSE_ROLES
    ),
    "clause.promoted": select(
        "predicate", lambda n: n.h.role in CLAUSE_ROLES and n.p.role not in CLAUSE_ROLES
    ),
    "prominent.kept": _prominent_words_kept,
    "prominent.moved": select("content", lambda n: abs(n.h.depth - n.p.depth) > 2),
    "broken.no_verb": _missing_finite_verb,
    "broken.loose": _unattached_words,
}
