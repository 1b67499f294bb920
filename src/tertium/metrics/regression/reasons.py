"""Why a regression gave its score: the alignment, what fired, what each feature cost or gained.

Contributions are measured from the score of the reference itself as its own translation, so that

    score = perfect + sum of the contributions

and a perfect translation has none.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from tertium.arrays import FloatArray
from tertium.linguistics.alignment import NOTHING
from tertium.metrics.base.explanation import Contribution, Explanation, Reasons, WordMatch
from tertium.metrics.regression.entailment.featurizer import DIRECTIONS, EntailmentFeatures
from tertium.metrics.regression.entailment.pair import Pair
from tertium.metrics.regression.entailment.summary import follows, remarks
from tertium.segment import Segment

if TYPE_CHECKING:
    from tertium.metrics.regression.metric import Regression

LIMIT = "ends of the scale"  # the difference between a score and what the weights say


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
    pairs = entailment.pairs([chosen])[0] if entailment else None
    groups = [metric.family(name) for name in linear.names]
    fired = _firing_sentences(entailment, pairs)
    parts = _contributions(linear.names, groups, rows[best], difference, fired)
    said_of = linear.predict(np.vstack([rows[best], perfect[0]]))
    if beyond := float((scores[best] - said_of[0]) - (limits[best] - said_of[1])):
        parts.append(Contribution(feature=LIMIT, group=LIMIT, value=beyond, contribution=beyond))
    said = remarks(pairs, entailment.features, DIRECTIONS) if entailment and pairs else []
    reasons = Reasons(
        hypothesis=segment.hypothesis,
        reference=reference,
        perfect=float(limits[best]),
        groups=_sum_groups(parts),
        contributions=tuple(sorted(parts, key=lambda part: -abs(part.contribution))),
        alignment=_matches(pairs) if pairs else (),
        follows=_verdicts(entailment, pairs),
        faults=tuple(remark.sentence for remark in said if not remark.good),
        merits=tuple(remark.sentence for remark in said if remark.good),
        warnings=tuple(metric.warnings([segment])),
    )
    return Explanation(metric=metric.label, score=float(scores[best]), reasons=reasons)


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


def _firing_sentences(
    entailment: EntailmentFeatures | None, pairs: tuple[Pair, Pair] | None
) -> dict[str, tuple[str, ...]]:
    """The sentences of every feature that fired, by column."""
    if entailment is None or pairs is None:
        return {}
    return {
        f"{direction}.{feature.name}": tuple(feature.sentences(pair, direction))
        for direction, pair in zip(DIRECTIONS, pairs, strict=True)
        for feature in entailment.features
        if feature.find(pair)
    }


def _verdicts(
    entailment: EntailmentFeatures | None, pairs: tuple[Pair, Pair] | None
) -> dict[str, bool]:
    if entailment is None or pairs is None:
        return {}
    return {
        direction: follows(pair, entailment.features)
        for direction, pair in zip(DIRECTIONS, pairs, strict=True)
    }


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
