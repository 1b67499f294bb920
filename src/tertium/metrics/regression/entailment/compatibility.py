"""Semantic compatibility (34): do aligned words mean the same, here, in their context?

Modality, factivity, polarity and monotonicity, quantifiers, lexical relations, tense and aspect,
number and degree. Matches of predicates are judged by what holds of them (`Marks`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from tertium.linguistics.alignment import NOTHING
from tertium.linguistics.interpretation import Marks
from tertium.linguistics.lexicons import NEGATIONS, QUANTIFIER_ORDER
from tertium.metrics.regression.entailment.feature import Feature, Match, Pair, merit

_WEAK = frozenset({"possible", "probable", "hypothetical"})
_FIRM = frozenset({"actual", "certain"})
_UNSURE = frozenset({"belief", "report", "wish"})
_RANK: Mapping[str, int] = {name: rank for rank, name in enumerate(QUANTIFIER_ORDER)}


def _predicates(test: Callable[[Marks, Marks], bool]) -> Callable[[Pair], list[Match]]:
    """The matches of predicates whose marks (hypothesis, premise) pass a test."""
    return lambda pair: _filter(pair, pair.predicates, test)


def _nominals(test: Callable[[Marks, Marks], bool]) -> Callable[[Pair], list[Match]]:
    """The matches of nouns, names and pronouns whose marks pass a test."""
    return lambda pair: _filter(pair, pair.nominals, test)


def _filter(
    pair: Pair, matches: Sequence[Match], test: Callable[[Marks, Marks], bool]
) -> list[Match]:
    h, p = pair.h_marks, pair.p_marks
    return [(i, j) for i, j in matches if test(h[i], p[j])]


def _of_roots(find: Callable[[Pair], list[Match]], both: bool) -> Callable[[Pair], list[Match]]:
    """Only matches of a main predicate (`both`), or only the others."""
    return lambda pair: [
        (i, j) for i, j in find(pair) if both == (pair.h[i].depth == 0 or pair.p[j].depth == 0)
    ]


def _stronger_or_weaker(h: Marks, p: Marks) -> bool:
    pair = {h.modality, p.modality}
    return bool(pair & {"possible", "probable"}) and bool(pair & {"necessary", "certain"})


def _attitude_differs(h: Marks, p: Marks) -> bool:
    return (h.attitude == "factive") != (p.attitude == "factive") and bool(
        {h.attitude, p.attitude} & _UNSURE
    )


def _negations(pair: Pair) -> list[Match]:
    """The negation words one side has more of."""
    own = [n.index for n in pair.h if n.lemma in NEGATIONS]
    other = [n.index for n in pair.p if n.lemma in NEGATIONS]
    return [(i, NOTHING) for i in own[len(other) :]]


def _changes(pair: Pair, sound: bool) -> list[Match]:
    """A more general word where generalising is sound, a more special one under negation."""
    # relation of the hypothesis word to the premise word: hyponym says that the premise's is below
    return [
        (i, j)
        for i, j in pair.matches_by("hypernym", "hyponym")
        if sound == ((pair.relations[i] == "hyponym") != pair.h_marks[i].downward)
    ]


def _is_weaker(h: Marks, p: Marks) -> bool:
    if not (h.quantifier and p.quantifier):
        return False
    return 0 < _RANK[h.quantifier] < _RANK[p.quantifier]


def _is_opposed(h: Marks, p: Marks) -> bool:
    return bool(h.quantifier and p.quantifier) and (h.quantifier == "none") != (
        p.quantifier == "none"
    )


def _by_relation(*relations: str) -> Callable[[Pair], list[Match]]:
    return lambda pair: pair.matches_by(*relations)


def _other_kind(pair: Pair) -> list[Match]:
    """Content words whose partner is of another part of speech."""
    return [
        (i, j)
        for i, j in pair.contents
        if pair.h[i].kind != pair.p[j].kind and {pair.h[i].kind, pair.p[j].kind} != {"noun", "name"}
    ]


def _degree_differs(pair: Pair) -> list[Match]:
    h, p = pair.h_marks, pair.p_marks
    return [(i, j) for i, j in pair.contents if h[i].degree != p[j].degree]


_modality = _predicates(
    lambda h, p: h.modality != p.modality and {h.modality, p.modality} != {"actual", "certain"}
)
_polarity = _predicates(lambda h, p: h.negated != p.negated)
_tense = _predicates(lambda h, p: h.tense != p.tense and bool(h.tense) and bool(p.tense))

FEATURES = (
    merit(
        "modality.same",
        _predicates(lambda h, p: h.modality == p.modality != "actual"),
        "{hypothesis} and {reference} have the same modality",
    ),
    Feature(
        "modality.root",
        _of_roots(_modality, True),
        "main clauses differ in modality: {hypothesis} is {hypothesis_modality} in the hypothesis, "
        "{reference_modality} in the reference",
    ),
    Feature(
        "modality.other",
        _of_roots(_modality, False),
        "{hypothesis} is {hypothesis_modality} in the hypothesis, {reference_modality} in the "
        "reference",
    ),
    Feature(
        "modality.lost",
        _predicates(lambda h, p: p.modality in _WEAK and h.modality in _FIRM),
        "what is possible on one side is a fact on the other: {hypothesis} for {reference}",
    ),
    Feature(
        "modality.gained",
        _predicates(lambda h, p: h.modality in _WEAK and p.modality in _FIRM),
        "what is a fact on one side is only possible on the other: {hypothesis} for {reference}",
    ),
    Feature(
        "modality.strength",
        _predicates(_stronger_or_weaker),
        "{hypothesis} and {reference}: possible on one side, certain or necessary on the other",
    ),
    Feature(
        "modality.condition",
        _predicates(lambda h, p: (h.modality == "hypothetical") != (p.modality == "hypothetical")),
        "{hypothesis} is under a condition on one side only",
    ),
    merit(
        "factivity.same",
        _predicates(lambda h, p: h.attitude == p.attitude != ""),
        "{hypothesis} and {reference} are embedded alike",
    ),
    Feature(
        "factivity.differs",
        _predicates(_attitude_differs),
        "{words} is known on one side, only said or believed on the other",
    ),
    Feature(
        "factivity.asserted",
        _predicates(lambda h, p: p.attitude in _UNSURE and not h.attitude),
        "{words} is asserted on one side, only said, believed or wished on the other",
    ),
    Feature(
        "factivity.implicative",
        _predicates(lambda h, p: (h.attitude == "negative") != (p.attitude == "negative")),
        "{words} happens on one side and fails to on the other",
    ),
    merit(
        "polarity.same",
        _predicates(lambda h, p: h.negated and p.negated),
        "{hypothesis} and {reference} are both negated",
    ),
    Feature(
        "polarity.root",
        _of_roots(_polarity, True),
        "main clauses differ in polarity: one of {hypothesis} and {reference} is negated",
    ),
    Feature(
        "polarity.other",
        _of_roots(_polarity, False),
        "one of {hypothesis} and {reference} is negated",
    ),
    Feature("polarity.negations", _negations, "the hypothesis {adds} the negation {words}"),
    merit(
        "polarity.licensed",
        lambda pair: _changes(pair, True),
        "{words} follows from {premise} in its context",
    ),
    Feature(
        "polarity.unlicensed",
        lambda pair: _changes(pair, False),
        "{words} does not follow from {premise} in its context",
    ),
    merit(
        "quantifier.same",
        _nominals(lambda h, p: h.quantifier == p.quantifier != ""),
        "{hypothesis} and {reference} are quantified alike",
    ),
    Feature(
        "quantifier.weaker",
        _nominals(_is_weaker),
        "{words} is quantified less strongly on one side",
    ),
    Feature(
        "quantifier.opposed", _nominals(_is_opposed), "{words}: none on one side, some on the other"
    ),
    Feature(
        "quantifier.missing",
        _nominals(lambda h, p: bool(h.quantifier) and not p.quantifier),
        "the hypothesis {adds} the quantifier of {words}",
    ),
    Feature(
        "definiteness.differs",
        _nominals(lambda h, p: h.definite != p.definite and bool(h.definite) and bool(p.definite)),
        "{words} is definite on one side only",
    ),
    merit(
        "lexical.synonym",
        _by_relation("synonym", "marker"),
        "{hypothesis} is a synonym of {reference}",
    ),
    Feature("lexical.antonym", _by_relation("antonym"), "{hypothesis} is opposed to {reference}"),
    merit(
        "lexical.derivation",
        _by_relation("derivation"),
        "{hypothesis} is derived from {reference} or the reverse",
    ),
    Feature(
        "lexical.sibling",
        _by_relation("sibling", "entailment"),
        "{hypothesis} is a relative of {reference}, not the same",
    ),
    Feature(
        "lexical.distributional",
        _by_relation("distributional"),
        "{hypothesis} is used like {reference}, no more is known",
    ),
    merit(
        "lexical.inflection", _by_relation("lemma"), "{hypothesis} is another form of {reference}"
    ),
    Feature("lexical.kind", _other_kind, "{hypothesis} is another part of speech than {reference}"),
    Feature("tense.root", _of_roots(_tense, True), "main clauses differ in tense: {hypothesis}"),
    Feature("tense.other", _of_roots(_tense, False), "{hypothesis} differs in tense"),
    Feature(
        "tense.aspect",
        _predicates(lambda h, p: (h.perfect, h.progressive) != (p.perfect, p.progressive)),
        "{hypothesis} differs in aspect",
    ),
    Feature(
        "number.differs",
        _nominals(lambda h, p: h.number != p.number and bool(h.number) and bool(p.number)),
        "{hypothesis} for {reference}: singular on one side, plural on the other",
    ),
    Feature(
        "degree.differs", _degree_differs, "{hypothesis} for {reference}: compared on one side only"
    ),
)
