"""What fired, in sentences a person can read, and whether one text follows from the other.

Several features may fire on one word ("drops the noun", "drops the agent"). A summary keeps the one
that says most, and leaves out what is said of a larger phrase already, and what is no news.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from tertium.linguistics.alignment import NOTHING
from tertium.linguistics.graph import ROOT
from tertium.metrics.regression.entailment.feature import AnyFeature, Feature
from tertium.metrics.regression.entailment.pair import Match, Pair

# Features that fire on a word without a partner, the most telling first.
TELLING = (
    "unaligned.agent", "unaligned.negation", "person.missing", "place.missing", "date.missing",
    "amount.missing", "unaligned.subject", "unaligned.object", "unaligned.time", "unaligned.place",
    "unaligned.apposition", "unaligned.adjunct", "unaligned.modifier", "unaligned.clause",
    "unaligned.name", "unaligned.number", "unaligned.verb", "unaligned.noun", "unaligned.quality",
)  # fmt: skip

# Said already by another feature, or of no interest to a reader.
SILENT = frozenset(
    {
        "unaligned.root", "unaligned.unknown", "unaligned.phrase", "unaligned.function",
        "polarity.negations", "organisation.lost", "modality.gained", "modality.lost",
        "modality.strength", "modality.condition", "broken.loose",
    }
)  # fmt: skip

# Each is enough to say that the hypothesis does not follow from the premise.
BREAKING = frozenset(
    {
        "modality.root", "modality.lost", "modality.strength", "factivity.asserted",
        "factivity.implicative", "polarity.root", "polarity.other", "polarity.unlicensed",
        "quantifier.opposed", "lexical.antonym", "lexical.sibling", "lexical.distributional",
        "unaligned.noun", "unaligned.name", "unaligned.verb", "unaligned.quality",
        "unaligned.number", "unaligned.agent", "unaligned.negation", "person.changed",
        "place.changed", "date.changed", "amount.changed", "pronoun.changed", "argument.swapped",
        "passive.wrong", "subject.changed", "object.changed", "relation.reversed",
    }
)  # fmt: skip


class Remark(NamedTuple):
    """One sentence about a pair, the feature behind it and whether it speaks for the hypothesis."""

    sentence: str
    feature: str
    good: bool


def follows(pair: Pair, features: Sequence[AnyFeature]) -> bool:
    """Whether the hypothesis of a pair follows from its premise, as far as the features can see."""
    return bool(pair.h) and not any(f.find(pair) for f in features if f.name in BREAKING)


def remarks(
    pairs: tuple[Pair, Pair], features: Sequence[AnyFeature], directions: Sequence[str]
) -> list[Remark]:
    """What is worth saying of a hypothesis and its reference, nothing twice.

    Faults come first, and among them those that break entailment.
    """
    first: dict[str, Remark] = {}
    for pair, reverse, direction in zip(pairs, reversed(pairs), directions, strict=True):
        for feature, match in _telling(pair, reverse, features):
            sentence = feature.say(pair, match, direction)
            first.setdefault(sentence, Remark(sentence, feature.name, feature.good))
    return sorted(first.values(), key=lambda r: (r.good, not r.good and r.feature not in BREAKING))


def _telling(
    pair: Pair, reverse: Pair, features: Sequence[AnyFeature]
) -> Iterator[tuple[Feature, Match]]:
    """The features that fired with their matches, the less telling of one word left out."""
    fired = [
        (feature, match)
        for feature in features
        if isinstance(feature, Feature) and feature.name not in SILENT
        for match in feature.find(pair)
    ]
    claimed: dict[int, int] = {}
    for feature, (i, _) in fired:
        if feature.name in TELLING:
            rank = TELLING.index(feature.name)
            claimed[i] = min(rank, claimed.get(i, rank))
    for feature, match in fired:
        if _is_news(pair, reverse, feature, match, claimed):
            yield feature, match


def _is_news(
    pair: Pair, reverse: Pair, feature: Feature, match: Match, claimed: dict[int, int]
) -> bool:
    i, j = match
    if feature.name in TELLING:
        return TELLING.index(feature.name) == claimed[i] and not _is_inside(pair, i)
    if i == NOTHING:  # a missing argument: told where it is dropped, unless it stands elsewhere
        return reverse.targets[j] != NOTHING
    if feature.good and j != NOTHING and feature.name != "passive.kept":
        return pair.h[i].text.lower() != pair.p[j].text.lower()
    return True


def _is_inside(pair: Pair, i: int) -> bool:
    """Whether a word belongs to a larger phrase that has no partner either."""
    parent = pair.h[i].parent
    if parent == ROOT:
        return False
    return pair.targets[parent] == NOTHING and pair.h[parent].content and pair.h[parent].depth > 0
