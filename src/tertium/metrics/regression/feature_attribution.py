"""Explain a regression score: contributions of features, word alignment and remarks.

Contributions are differences to the score of the reference as its own translation:

    score = perfect + sum of the contributions

so a perfect translation has none.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tertium.core.segment import Segment
from tertium.metrics.base.explanation import (
    SCALE_BOUNDS,
    Contribution,
    Explanation,
    FeatureAttribution,
    WordMatch,
    add_bounds,
)
from tertium.metrics.linguistics.dependency_graph import ROOT
from tertium.metrics.linguistics.word_alignment import UNALIGNED
from tertium.metrics.regression.entailment.feature_extraction import DIRECTIONS, EntailmentFeatures
from tertium.metrics.regression.entailment.feature_types import Feature, Match, Pair

if TYPE_CHECKING:
    from tertium.metrics.regression.linear_metric import Regression


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
    fired, details = _find_entailment(entailment, options[best]) if entailment else ({}, {})
    contributions = [
        Contribution(
            feature=name,
            group=metric.feature_family(name),
            value=float(value),
            contribution=float(difference),
            fired=fired.get(name, ()),
        )
        for name, value, difference in zip(linear.names, rows[best], differences, strict=True)
        if difference != 0.0 or name in fired
    ]
    predicted = linear.predict(np.vstack([rows[best], perfect[0]]))
    beyond = float((scores[best] - predicted[0]) - (perfect_scores[best] - predicted[1]))
    groups: dict[str, float] = defaultdict(float)
    for item in contributions:
        groups[item.group] += item.contribution
    if beyond:
        groups[SCALE_BOUNDS] = beyond
    attribution = FeatureAttribution(
        hypothesis=segment.hypothesis,
        reference=reference,
        perfect=float(perfect_scores[best]),
        groups=dict(groups),
        contributions=add_bounds(contributions, beyond),
        **details,
    )
    return Explanation(metric=metric.spec, score=float(scores[best]), attribution=attribution)


def _find_entailment(
    entailment: EntailmentFeatures, segment: Segment
) -> tuple[dict[str, tuple[str, ...]], dict[str, Any]]:
    """Return sentences by fired feature; and aligned words, entailment by direction, remarks."""
    [pairs], features = entailment.pairs([segment]), entailment.features
    directions = dict(zip(DIRECTIONS, pairs, strict=True))
    fired = {
        f"{direction}.{feature.name}": tuple(sentences)
        for direction, pair in directions.items()
        for feature in features
        if (sentences := feature.describe(pair, direction))
    }
    remarks = select_remarks(pairs, features)
    details = {
        "alignment": _list_word_matches(pairs),
        "follows": {name: is_entailed(pair, features) for name, pair in directions.items()},
        "faults": tuple(text for text, feature in remarks if not feature.is_positive),
        "merits": tuple(text for text, feature in remarks if feature.is_positive),
    }
    return fired, details


def _list_word_matches(pairs: tuple[Pair, Pair]) -> tuple[WordMatch, ...]:
    """List each hypothesis word with its match, then the unaligned words of the reference."""
    forward, backward = pairs
    alignment = forward.alignment
    matches = [
        WordMatch(
            hypothesis=node.text,
            reference=forward.p[j].text if j != UNALIGNED else "",
            relation=alignment.relations[node.index],
            similarity=alignment.similarity[node.index],
        )
        for node, j in zip(forward.h, forward.targets, strict=True)
    ]
    missing = [
        WordMatch(hypothesis="", reference=node.text, relation="none", similarity=0.0)
        for node in backward.unaligned
    ]
    return (*matches, *missing)


def is_entailed(pair: Pair, features: Sequence[Feature]) -> bool:
    """Check that no feature contradicts that the hypothesis follows from the premise."""
    return bool(pair.h) and not any(f.find(pair) for f in features if f.blocks_entailment)


def select_remarks(
    pairs: tuple[Pair, Pair], features: Sequence[Feature]
) -> list[tuple[str, Feature]]:
    """Select the sentences to show for a hypothesis and its reference, without repetition.

    Several features may fire on one word ("drops the noun", "drops the agent"): only the most
    specific one is used. Words inside an unaligned phrase are skipped. Negative remarks come first,
    and among them those that block entailment.
    """
    remarks: dict[str, Feature] = {}
    for pair, reverse, direction in zip(pairs, reversed(pairs), DIRECTIONS, strict=True):
        for feature, match in _select_matches(pair, reverse, features):
            sentence = feature.describe_match(pair, match, direction)
            remarks.setdefault(sentence, feature)
    return sorted(
        remarks.items(), key=lambda item: (item[1].is_positive, not item[1].blocks_entailment)
    )


def _select_matches(
    pair: Pair, reverse: Pair, features: Sequence[Feature]
) -> Iterator[tuple[Feature, Match]]:
    """Yield fired features and their matches; of several for a word only the most specific."""
    fired = [(f, match) for f in features if f.is_reported for match in f.find(pair)]
    best_ranks: dict[int, int] = {}
    for feature, (i, _) in fired:
        if feature.rank:
            best_ranks[i] = min(feature.rank, best_ranks.get(i, feature.rank))
    for feature, (i, j) in fired:
        if feature.rank:
            is_useful = feature.rank == best_ranks[i] and not _is_in_unaligned_phrase(pair, i)
        elif i == UNALIGNED:  # a missing argument: reported as dropped, unless it is elsewhere
            is_useful = reverse.targets[j] != UNALIGNED
        elif feature.is_positive and j != UNALIGNED and feature.name != "passive.kept":
            is_useful = pair.h[i].text.lower() != pair.p[j].text.lower()
        else:
            is_useful = True
        if is_useful:
            yield feature, (i, j)


def _is_in_unaligned_phrase(pair: Pair, i: int) -> bool:
    parent = pair.h[i].parent
    if parent == ROOT:
        return False
    return (
        pair.targets[parent] == UNALIGNED and pair.h[parent].is_content and pair.h[parent].depth > 0
    )
