"""Why a regression gave its score: the alignment, what fired, what each feature cost or gained.

Contributions are measured from the score of the reference itself as its own translation, so that

    score = perfect + sum of the contributions

and a perfect translation has none.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from tertium.arrays import FloatArray
from tertium.linguistics.alignment import NOTHING
from tertium.linguistics.graph import ROOT
from tertium.metrics.base.explanation import Contribution, Explanation, Reasons, WordMatch
from tertium.metrics.regression.entailment.feature import AnyFeature, Feature, Match, Pair
from tertium.metrics.regression.entailment.featurizer import DIRECTIONS, EntailmentFeatures
from tertium.segment import Segment

if TYPE_CHECKING:
    from tertium.metrics.regression.metric import Regression

LIMIT = "ends of the scale"  # the difference between a score and what the weights say
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


def explain(metric: Regression, segment: Segment) -> Explanation:
    """Take a segment's score apart, against the reference that gives the best one."""
    metric.check([segment])
    trained = metric.trained
    linear = trained.linear
    options = [Segment(segment.hypothesis, segment.source, (r,)) for r in segment.references]
    rows = metric.features(options, trained.information)
    scores, limits = metric.predictions(options, trained)
    best = int(np.argmax(scores))
    chosen, reference = options[best], options[best].references[0]
    perfect = metric.features([Segment(reference, None, (reference,))], trained.information)
    difference = (linear.contributions(rows[[best]]) - linear.contributions(perfect))[0]
    entailment: EntailmentFeatures | None = getattr(metric, "entailment", None)
    found = _find(entailment, chosen) if entailment else Findings()
    groups = [metric.family(name) for name in linear.names]
    parts = _contributions(linear.names, groups, rows[best], difference, found.fired)
    said_of = linear.predict(np.vstack([rows[best], perfect[0]]))
    if beyond := float((scores[best] - said_of[0]) - (limits[best] - said_of[1])):
        parts.append(Contribution(feature=LIMIT, group=LIMIT, value=beyond, contribution=beyond))
    reasons = Reasons(
        hypothesis=segment.hypothesis,
        reference=reference,
        perfect=float(limits[best]),
        groups=_sum_groups(parts),
        contributions=tuple(sorted(parts, key=lambda part: -abs(part.contribution))),
        alignment=found.alignment,
        follows=found.follows,
        faults=tuple(remark.sentence for remark in found.remarks if not remark.good),
        merits=tuple(remark.sentence for remark in found.remarks if remark.good),
    )
    return Explanation(metric=metric.spec, score=float(scores[best]), reasons=reasons)


def _contributions(
    names: Sequence[str],
    groups: Sequence[str],
    values: FloatArray,
    difference: FloatArray,
    fired: Mapping[str, tuple[str, ...]],
) -> list[Contribution]:
    return [
        Contribution(
            feature=name,
            group=group,
            value=float(value),
            contribution=float(part),
            fired=fired.get(name, ()),
        )
        for name, group, value, part in zip(names, groups, values, difference, strict=True)
        if part != 0.0 or name in fired
    ]


def _sum_groups(parts: Sequence[Contribution]) -> dict[str, float]:
    totals: dict[str, float] = {}
    for part in parts:
        totals[part.group] = totals.get(part.group, 0.0) + part.contribution
    return totals


class Findings(NamedTuple):
    """What entailment says of a pair: sentences of every column that fired, matches, verdicts."""

    fired: Mapping[str, tuple[str, ...]] = {}
    alignment: tuple[WordMatch, ...] = ()
    follows: Mapping[str, bool] = {}
    remarks: Sequence[Remark] = ()


def _find(entailment: EntailmentFeatures, segment: Segment) -> Findings:
    [pairs], features = entailment.pairs([segment]), entailment.features
    directions = dict(zip(DIRECTIONS, pairs, strict=True))
    return Findings(
        fired={
            f"{direction}.{feature.name}": tuple(feature.sentences(pair, direction))
            for direction, pair in directions.items()
            for feature in features
            if feature.find(pair)
        },
        alignment=_matches(pairs),
        follows={direction: follows(pair, features) for direction, pair in directions.items()},
        remarks=remarks(pairs, features, DIRECTIONS),
    )


def _matches(pairs: tuple[Pair, Pair]) -> tuple[WordMatch, ...]:
    """Each word of the hypothesis with its partner, then the reference's words without one."""
    forward, backward = pairs
    found = [
        WordMatch(
            hypothesis=node.text,
            reference=forward.p[j].text if (j := forward.targets[node.index]) != NOTHING else "",
            relation=forward.relations[node.index],
            similarity=forward.similarity[node.index],
        )
        for node in forward.h
    ]
    missing = [
        WordMatch(hypothesis="", reference=backward.h[i].text, relation="none", similarity=0.0)
        for i in backward.unaligned
    ]
    return (*found, *missing)


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

    Several features may fire on one word ("drops the noun", "drops the agent"): the one that says
    most is kept, and what is said of a larger phrase already, or is no news, left out. Faults come
    first, and among them those that break entailment.
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
