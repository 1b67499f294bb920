"""Preservation of reference (16): the same people, places, organisations, dates and numbers?

For each sort of entity three questions: is a mention matched by the same one, by another of its
sort, or by nothing at all? Names agree when their words do, in whatever order or case.
"""

from __future__ import annotations

from collections.abc import Callable

from tertium.linguistics.graph import Node
from tertium.linguistics.lexicons import PRONOUNS
from tertium.metrics.regression.entailment.feature import Feature, Match, Pair
from tertium.metrics.regression.entailment.insertions import PLACES, additions

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

FEATURES = (
    Feature("person.kept", _same(_person), "both speak of the person {words}", good=True),
    Feature("person.changed", _others(_person), "the person {reference} became {hypothesis}"),
    Feature("person.missing", additions(_person), "the hypothesis {adds} the person {words}"),
    Feature("place.kept", _same(_place), "both speak of the place {words}", good=True),
    Feature("place.changed", _others(_place), "the place {reference} became {hypothesis}"),
    Feature("place.missing", additions(_place), "the hypothesis {adds} the place {words}"),
    Feature("organisation.kept", _same(_group), "both speak of the group {words}", good=True),
    Feature("organisation.lost", _losses(_group), "the group {words} is on one side only"),
    Feature("date.kept", _same(_date), "both give the date {words}", good=True),
    Feature("date.changed", _others(_date), "the date {reference} became {hypothesis}"),
    Feature("date.missing", additions(_date), "the hypothesis {adds} the date {words}"),
    Feature("amount.kept", _same(_amount), "both give the number {words}", good=True),
    Feature("amount.changed", _others(_amount), "the number {reference} became {hypothesis}"),
    Feature("amount.missing", additions(_amount), "the hypothesis {adds} the number {words}"),
    Feature("pronoun.kept", _pronouns, "{hypothesis} and {reference} point to the same", good=True),
    Feature(
        "pronoun.changed",
        _other_pronouns,
        "{hypothesis} for {reference}: another person, number or gender",
    ),
)
