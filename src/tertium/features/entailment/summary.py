"""What fired, in sentences a person can read: one for each word that matters, the most telling.

Several features may fire on one word ("drops the noun", "drops the agent"). A summary keeps the one
that says most, and leaves out words of grammar inside a phrase that is reported already.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from tertium.features.entailment.feature import FORWARD, AnyFeature, Feature
from tertium.features.entailment.pair import Match, Pair
from tertium.linguistics.alignment import NOTHING
from tertium.linguistics.graph import ROOT

# Features of one family that fire on the same word, the most telling first.
_TELLING = (
    "unaligned.agent", "unaligned.negation", "person.missing", "place.missing", "date.missing",
    "amount.missing", "unaligned.subject", "unaligned.object", "unaligned.time", "unaligned.place",
    "unaligned.apposition", "unaligned.adjunct", "unaligned.modifier", "unaligned.clause",
    "unaligned.name", "unaligned.number", "unaligned.verb", "unaligned.noun", "unaligned.quality",
)  # fmt: skip
_SILENT = frozenset(
    {
        "unaligned.root", "unaligned.unknown", "unaligned.phrase", "unaligned.function",
        "polarity.negations", "organisation.lost", "modality.gained", "modality.strength",
        "modality.condition", "alignment.score",
    }
)  # fmt: skip


class Remark(NamedTuple):
    """One sentence about a pair, the feature behind it and whether it speaks for the hypothesis."""

    sentence: str
    feature: str
    good: bool


def remarks(
    pairs: tuple[Pair, Pair], features: Sequence[AnyFeature], directions: Sequence[str]
) -> list[Remark]:
    """What is worth saying of a hypothesis and its reference, faults first, nothing twice."""
    found = [
        Remark(feature._say(pair, match, direction), feature.name, feature.good)
        for pair, direction in zip(pairs, directions, strict=True)
        for feature, match in _telling(pair, features)
    ]
    first: dict[str, Remark] = {}
    for remark in found:
        first.setdefault(remark.sentence, remark)
    return sorted(first.values(), key=lambda remark: remark.good)


def _telling(pair: Pair, features: Sequence[AnyFeature]) -> Iterable[tuple[Feature, Match]]:
    """The features that fired with their matches, the less telling of one word left out."""
    claimed: dict[int, int] = {}
    fired: list[tuple[Feature, Match]] = []
    for feature in features:
        if not isinstance(feature, Feature) or feature.name in _SILENT:
            continue
        for match in feature.find(pair):
            fired.append((feature, match))
            if feature.name in _TELLING:
                rank = _TELLING.index(feature.name)
                claimed[match[0]] = min(rank, claimed.get(match[0], rank))
    for feature, match in fired:
        told = feature.name not in _TELLING or (
            _TELLING.index(feature.name) == claimed[match[0]] and not _is_inside(pair, match[0])
        )
        if told:
            yield feature, match


def _is_inside(pair: Pair, i: int) -> bool:
    """Whether a word belongs to a larger phrase that has no partner either."""
    parent = pair.h[i].parent
    if i == NOTHING or parent == ROOT:
        return False
    return pair.targets[parent] == NOTHING and pair.h[parent].content and pair.h[parent].depth > 0


def direction_name(direction: str) -> str:
    """What a direction asks."""
    return (
        "does the hypothesis follow from the reference?"
        if direction == FORWARD
        else "does the reference follow from the hypothesis?"
    )
