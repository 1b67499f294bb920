"""Explain a regression score: contributions of features, word alignment and remarks.

Contributions are differences to the score of the reference as its own translation:

    score = perfect + sum of the contributions

so a perfect translation has none.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from tertium.core.segment import Segment
from tertium.metrics.base.explanation import (
    SCALE_BOUNDS,
    Contribution,
    Explanation,
    FeatureAttribution,
    WordMatch,
)
from tertium.metrics.linguistics.dependency_graph import ROOT
from tertium.metrics.linguistics.word_alignment import UNALIGNED
from tertium.metrics.regression.entailment.feature_extraction import DIRECTIONS, EntailmentFeatures
from tertium.metrics.regression.entailment.feature_types import AnyFeature, Feature, Match, Pair

if TYPE_CHECKING:
    from tertium.metrics.regression.linear_metric import Regression

# Features that fire on unaligned words, the most specific first. One of them is reported per word.
BY_SPECIFICITY = (
    "unaligned.agent", "unaligned.negation", "person.missing", "place.missing", "date.missing",
    "amount.missing", "unaligned.subject", "unaligned.object", "unaligned.time", "unaligned.place",
    "unaligned.apposition", "unaligned.adjunct", "unaligned.modifier", "unaligned.clause",
    "unaligned.name", "unaligned.number", "unaligned.verb", "unaligned.noun", "unaligned.quality",
)  # fmt: skip

# Not reported: another feature reports the same, or readers do not need it.
NOT_REPORTED = frozenset(
    {
        "unaligned.root", "unaligned.unknown", "unaligned.phrase", "unaligned.function",
        "polarity.negations", "organisation.lost", "modality.gained", "modality.lost",
        "modality.strength", "modality.condition", "broken.loose",
    }
)  # fmt: skip

# If one of these fires, the hypothesis does not follow from the premise.
BLOCKS_ENTAILMENT = frozenset(
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
    """A sentence about a pair, the feature behind it, and whether it is positive."""

    sentence: str
    feature: str
    is_positive: bool


class EntailmentFindings(NamedTuple):
    """Fired features with their sentences, aligned words, entailment per direction, remarks."""

    fired: Mapping[str, tuple[str, ...]] = {}
    alignment: tuple[WordMatch, ...] = ()
    follows: Mapping[str, bool] = {}
    remarks: Sequence[Remark] = ()


def explain_score(metric: Regression, segment: Segment) -> Explanation:
    """Explain the score of a segment, compared with the reference that gives the best score."""
    metric.check([segment])
    fitted = metric.fitted
    linear = fitted.linear
    options = [Segment(segment.hypothesis, segment.source, (r,)) for r in segment.references]
    rows = metric.compute_features(options, fitted.information)
    scores, perfect_scores = metric.predict_scores(options, fitted)
    best = int(np.argmax(scores))
    reference = options[best].references[0]
    perfect = metric.compute_features([Segment(reference, None, (reference,))], fitted.information)
    differences = (linear.contributions(rows[[best]]) - linear.contributions(perfect))[0]
    entailment: EntailmentFeatures | None = getattr(metric, "entailment", None)
    findings = _find_entailment(entailment, options[best]) if entailment else EntailmentFindings()
    contributions = [
        Contribution(
            feature=name,
            group=metric.feature_family(name),
            value=float(value),
            contribution=float(difference),
            fired=findings.fired.get(name, ()),
        )
        for name, value, difference in zip(linear.names, rows[best], differences, strict=True)
        if difference != 0.0 or name in findings.fired
    ]
    predicted = linear.predict(np.vstack([rows[best], perfect[0]]))
    if beyond := float((scores[best] - predicted[0]) - (perfect_scores[best] - predicted[1])):
        contributions.append(
            Contribution(
                feature=SCALE_BOUNDS, group=SCALE_BOUNDS, value=beyond, contribution=beyond
            )
        )
    attribution = FeatureAttribution(
        hypothesis=segment.hypothesis,
        reference=reference,
        perfect=float(perfect_scores[best]),
        groups=_sum_by_group(contributions),
        contributions=tuple(sorted(contributions, key=lambda c: -abs(c.contribution))),
        alignment=findings.alignment,
        follows=findings.follows,
        faults=tuple(remark.sentence for remark in findings.remarks if not remark.is_positive),
        merits=tuple(remark.sentence for remark in findings.remarks if remark.is_positive),
    )
    return Explanation(metric=metric.spec, score=float(scores[best]), attribution=attribution)


def _sum_by_group(contributions: Sequence[Contribution]) -> dict[str, float]:
    totals: dict[str, float] = {}
    for item in contributions:
        totals[item.group] = totals.get(item.group, 0.0) + item.contribution
    return totals


def _find_entailment(entailment: EntailmentFeatures, segment: Segment) -> EntailmentFindings:
    [pairs], features = entailment.pairs([segment]), entailment.features
    directions = dict(zip(DIRECTIONS, pairs, strict=True))
    return EntailmentFindings(
        fired={
            f"{direction}.{feature.name}": tuple(sentences)
            for direction, pair in directions.items()
            for feature in features
            if isinstance(feature, Feature) and (sentences := feature.describe(pair, direction))
        },
        alignment=_list_word_matches(pairs),
        follows={direction: is_entailed(pair, features) for direction, pair in directions.items()},
        remarks=select_remarks(pairs, features),
    )


def _list_word_matches(pairs: tuple[Pair, Pair]) -> tuple[WordMatch, ...]:
    """List each hypothesis word with its match, then the unaligned words of the reference."""
    forward, backward = pairs
    matches = [
        WordMatch(
            hypothesis=node.text,
            reference=forward.p[j].text if (j := forward.targets[node.index]) != UNALIGNED else "",
            relation=forward.relations[node.index],
            similarity=forward.similarity[node.index],
        )
        for node in forward.h
    ]
    missing = [
        WordMatch(hypothesis="", reference=backward.h[i].text, relation="none", similarity=0.0)
        for i in backward.unaligned
    ]
    return (*matches, *missing)


def is_entailed(pair: Pair, features: Sequence[AnyFeature]) -> bool:
    """Check that no feature contradicts that the hypothesis follows from the premise."""
    return bool(pair.h) and not any(f.find(pair) for f in features if f.name in BLOCKS_ENTAILMENT)


def select_remarks(pairs: tuple[Pair, Pair], features: Sequence[AnyFeature]) -> list[Remark]:
    """Select the sentences to show for a hypothesis and its reference, without repetition.

    Several features may fire on one word ("drops the noun", "drops the agent"): only the most
    specific one is used. Words inside an unaligned phrase are skipped. Negative remarks come first,
    and among them those that block entailment.
    """
    remarks: dict[str, Remark] = {}
    for pair, reverse, direction in zip(pairs, reversed(pairs), DIRECTIONS, strict=True):
        for feature, match in _select_matches(pair, reverse, features):
            sentence = feature.describe_match(pair, match, direction)
            remarks.setdefault(sentence, Remark(sentence, feature.name, feature.is_positive))
    return sorted(
        remarks.values(),
        key=lambda r: (r.is_positive, not r.is_positive and r.feature not in BLOCKS_ENTAILMENT),
    )


def _select_matches(
    pair: Pair, reverse: Pair, features: Sequence[AnyFeature]
) -> Iterator[tuple[Feature, Match]]:
    """Yield fired features and their matches; of several for a word only the most specific."""
    fired = [
        (feature, match)
        for feature in features
        if isinstance(feature, Feature) and feature.name not in NOT_REPORTED
        for match in feature.find(pair)
    ]
    best_ranks: dict[int, int] = {}
    for feature, (i, _) in fired:
        if feature.name in BY_SPECIFICITY:
            rank = BY_SPECIFICITY.index(feature.name)
            best_ranks[i] = min(rank, best_ranks.get(i, rank))
    for feature, match in fired:
        if _should_report(pair, reverse, feature, match, best_ranks):
            yield feature, match


def _should_report(
    pair: Pair, reverse: Pair, feature: Feature, match: Match, best_ranks: dict[int, int]
) -> bool:
    i, j = match
    if feature.name in BY_SPECIFICITY:
        is_best = BY_SPECIFICITY.index(feature.name) == best_ranks[i]
        return is_best and not _is_in_unaligned_phrase(pair, i)
    if i == UNALIGNED:  # a missing argument: reported as dropped, unless it is elsewhere
        return reverse.targets[j] != UNALIGNED
    if feature.is_positive and j != UNALIGNED and feature.name != "passive.kept":
        return pair.h[i].text.lower() != pair.p[j].text.lower()
    return True


def _is_in_unaligned_phrase(pair: Pair, i: int) -> bool:
    parent = pair.h[i].parent
    if parent == ROOT:
        return False
    return (
        pair.targets[parent] == UNALIGNED and pair.h[parent].is_content and pair.h[parent].depth > 0
    )
