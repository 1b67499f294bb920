"""Semantic compatibility features (34): do aligned words mean the same in their context?

They compare modality, factivity, polarity and monotonicity, quantifiers, lexical relations, tense
and aspect, number and degree. Matches are tested by their `SemanticAttributes`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from tertium.metrics.linguistics.lexicons import NEGATIONS, QUANTIFIER_ORDER, word_set
from tertium.metrics.linguistics.semantic_attributes import SemanticAttributes
from tertium.metrics.linguistics.word_alignment import UNALIGNED
from tertium.metrics.regression.entailment.feature_types import Find, Match, Pair, Rule

# attributes of (hypothesis node, premise node) -> whether a feature fires
Test = Callable[[SemanticAttributes, SemanticAttributes], bool]

_UNCERTAIN_MODALITIES = word_set("possible probable hypothetical")
_CERTAIN_MODALITIES = frozenset({"actual", "certain"})
_NON_FACTIVE_ATTITUDES = word_set("belief report wish")
_QUANTIFIER_RANK: Mapping[str, int] = {name: rank for rank, name in enumerate(QUANTIFIER_ORDER)}


def _predicates(test: Test) -> Find:
    """Find matches of predicates whose attributes pass a test."""
    return lambda pair: [
        (i, j)
        for i, j in pair.predicate_matches
        if test(pair.h_attributes[i], pair.p_attributes[j])
    ]


def _nominals(test: Test) -> Find:
    """Find matches of nouns, names, numbers and pronouns whose attributes pass a test."""
    return lambda pair: [
        (i, j) for i, j in pair.nominal_matches if test(pair.h_attributes[i], pair.p_attributes[j])
    ]


def _in_main_clause(find: Find, expected: bool) -> Find:
    """Select matches that have (or do not have) a node at the top of its tree."""
    return lambda pair: [
        (i, j) for i, j in find(pair) if expected == (pair.h[i].depth == 0 or pair.p[j].depth == 0)
    ]


def _both_set_but_differ(left: str, right: str) -> bool:
    return left != right and bool(left) and bool(right)


def _modality_strength_differs(h: SemanticAttributes, p: SemanticAttributes) -> bool:
    modalities = {h.modality, p.modality}
    return bool(modalities & {"possible", "probable"}) and bool(
        modalities & {"necessary", "certain"}
    )


def _attitude_differs(h: SemanticAttributes, p: SemanticAttributes) -> bool:
    return (h.attitude == "factive") != (p.attitude == "factive") and bool(
        {h.attitude, p.attitude} & _NON_FACTIVE_ATTITUDES
    )


def _added_negations(pair: Pair) -> list[Match]:
    """Find negation words of the hypothesis in excess of those of the premise."""
    own = [n.index for n in pair.h if n.lemma in NEGATIONS]
    other = [n.index for n in pair.p if n.lemma in NEGATIONS]
    return [(i, UNALIGNED) for i in own[len(other) :]]


def _generalizations(is_valid: bool) -> Find:
    """Find words replaced by a more general or more specific one, where that is (not) valid.

    A more general word is valid in an upward, a more specific one in a downward monotone context.
    """
    find = _with_relation("hypernym", "hyponym")
    # "hyponym": the premise word is a hyponym of the hypothesis word, which is more general
    return lambda pair: [
        (i, j)
        for i, j in find(pair)
        if is_valid == ((pair.relations[i] == "hyponym") != pair.h_attributes[i].is_downward)
    ]


def _is_weaker(h: SemanticAttributes, p: SemanticAttributes) -> bool:
    if not (h.quantifier and p.quantifier):
        return False
    return 0 < _QUANTIFIER_RANK[h.quantifier] < _QUANTIFIER_RANK[p.quantifier]


def _only_one_is_none(h: SemanticAttributes, p: SemanticAttributes) -> bool:
    return bool(h.quantifier and p.quantifier) and (h.quantifier == "none") != (
        p.quantifier == "none"
    )


def _with_relation(*relations: str) -> Find:
    """Find matches of content words with one of these lexical relations."""
    return lambda pair: [(i, j) for i, j in pair.content_matches if pair.relations[i] in relations]


def _part_of_speech_differs(pair: Pair) -> list[Match]:
    return [
        (i, j)
        for i, j in pair.content_matches
        if pair.h[i].kind != pair.p[j].kind and {pair.h[i].kind, pair.p[j].kind} != {"noun", "name"}
    ]


def _degree_differs(pair: Pair) -> list[Match]:
    h, p = pair.h_attributes, pair.p_attributes
    return [(i, j) for i, j in pair.content_matches if h[i].degree != p[j].degree]


_modality = _predicates(
    lambda h, p: h.modality != p.modality and {h.modality, p.modality} != {"actual", "certain"}
)
_polarity = _predicates(lambda h, p: h.is_negated != p.is_negated)
_tense = _predicates(lambda h, p: _both_set_but_differ(h.tense, p.tense))

RULES: Mapping[str, Rule] = {
    "modality.same": _predicates(lambda h, p: h.modality == p.modality != "actual"),
    "modality.root": _in_main_clause(_modality, True),
    "modality.other": _in_main_clause(_modality, False),
    "modality.lost": _predicates(
        lambda h, p: p.modality in _UNCERTAIN_MODALITIES and h.modality in _CERTAIN_MODALITIES
    ),
    "modality.gained": _predicates(
        lambda h, p: h.modality in _UNCERTAIN_MODALITIES and p.modality in _CERTAIN_MODALITIES
    ),
    "modality.strength": _predicates(_modality_strength_differs),
    "modality.condition": _predicates(
        lambda h, p: (h.modality == "hypothetical") != (p.modality == "hypothetical")
    ),
    "factivity.same": _predicates(lambda h, p: h.attitude == p.attitude != ""),
    "factivity.differs": _predicates(_attitude_differs),
    "factivity.asserted": _predicates(
        lambda h, p: p.attitude in _NON_FACTIVE_ATTITUDES and not h.attitude
    ),
    "factivity.implicative": _predicates(
        lambda h, p: (h.attitude == "negative") != (p.attitude == "negative")
    ),
    "polarity.same": _predicates(lambda h, p: h.is_negated and p.is_negated),
    "polarity.root": _in_main_clause(_polarity, True),
    "polarity.other": _in_main_clause(_polarity, False),
    "polarity.negations": _added_negations,
    "polarity.licensed": _generalizations(True),
    "polarity.unlicensed": _generalizations(False),
    "quantifier.same": _nominals(lambda h, p: h.quantifier == p.quantifier != ""),
    "quantifier.weaker": _nominals(_is_weaker),
    "quantifier.opposed": _nominals(_only_one_is_none),
    "quantifier.missing": _nominals(lambda h, p: bool(h.quantifier) and not p.quantifier),
    "definiteness.differs": _nominals(
        lambda h, p: _both_set_but_differ(h.definiteness, p.definiteness)
    ),
    "lexical.synonym": _with_relation("synonym", "marker"),
    "lexical.antonym": _with_relation("antonym"),
    "lexical.derivation": _with_relation("derivation"),
    "lexical.sibling": _with_relation("sibling", "entailment"),
    "lexical.distributional": _with_relation("distributional"),
    "lexical.inflection": _with_relation("lemma"),
    "lexical.kind": _part_of_speech_differs,
    "tense.root": _in_main_clause(_tense, True),
    "tense.other": _in_main_clause(_tense, False),
    "tense.aspect": _predicates(
        lambda h, p: (h.is_perfect, h.is_progressive) != (p.is_perfect, p.is_progressive)
    ),
    "number.differs": _nominals(lambda h, p: _both_set_but_differ(h.number, p.number)),
    "degree.differs": _degree_differs,
}
