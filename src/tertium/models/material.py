"""What is learned from: sets of scores and of comparisons, checked, without what is held out."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeVar

import numpy as np

from tertium.data.judgements import JudgementSet
from tertium.data.leaks import drop_shared
from tertium.data.preferences import ItemTexts, PairJudgement, RankingSet, gather
from tertium.errors import DataError
from tertium.models.examples import JudgedSets
from tertium.segment import Judgement, Preference, Segment

Judged = TypeVar("Judged", JudgementSet, RankingSet)
TrainingData = Iterable[JudgementSet | RankingSet | Judgement | Preference]


def judged_sets(
    metric: str, data: TrainingData, dev: TrainingData, needs: frozenset[str]
) -> tuple[JudgedSets, JudgedSets]:
    """What to train on and what to choose on, checked, and without what they share."""
    held = JudgedSets(*_usable(*training_sets(dev), needs))
    scores, rankings = without_leaks(*training_sets(data), held.all)
    sets = JudgedSets(*_usable(scores, rankings, needs))
    check_needs(metric, [*sets.all, *held.all], needs)
    return sets, held


def _usable(
    scores: list[JudgementSet], rankings: list[RankingSet], needs: frozenset[str]
) -> tuple[list[JudgementSet], list[RankingSet]]:
    """The same without single translations that lack the reference which others have."""
    if "references" not in needs:
        return scores, rankings
    return [one.with_references() for one in scores], rankings


def training_sets(data: TrainingData) -> tuple[list[JudgementSet], list[RankingSet]]:
    """Sets and single verdicts, sorted into sets of scores and sets of comparisons."""
    if isinstance(data, JudgementSet | RankingSet):
        data = [data]
    scores: list[JudgementSet] = []
    rankings: list[RankingSet] = []
    judgements: list[Judgement] = []
    preferences: list[Preference] = []
    for entry in data:
        if isinstance(entry, JudgementSet):
            scores.append(entry)
        elif isinstance(entry, RankingSet):
            rankings.append(entry)
        elif isinstance(entry, Judgement):
            judgements.append(entry)
        else:
            preferences.append(entry)
    if judgements:
        scores.append(JudgementSet(name="judgements", judgements=tuple(judgements)))
    if preferences:
        rankings.append(_ranking_set(preferences))
    return scores, rankings


def _ranking_set(preferences: Sequence[Preference]) -> RankingSet:
    """Single comparisons as a set: an item for each distinct source and references."""
    texts: dict[str, ItemTexts] = {}
    comparisons = []
    for p in preferences:
        item = repr((p.item, p.left.source, p.left.references))
        names = (p.left_system or p.left.hypothesis, p.right_system or p.right.hypothesis)
        outputs = dict(zip(names, (p.left.hypothesis, p.right.hypothesis), strict=True))
        known = texts[item].outputs if item in texts else {}
        texts[item] = ItemTexts({**known, **outputs}, p.left.source, p.left.references)
        comparisons.append(PairJudgement(item, *names, p.verdict, p.judge))
    return gather(comparisons, texts, name="preferences")


def without_leaks(
    scores: Sequence[JudgementSet],
    rankings: Sequence[RankingSet],
    held_out: Sequence[JudgementSet | RankingSet],
) -> tuple[list[JudgementSet], list[RankingSet]]:
    """Training sets without what shares a reference with held-out sets."""
    if not held_out:
        return list(scores), list(rankings)
    references = dict.fromkeys((s.references, s.source) for one in held_out for s in one.segments)
    rows = tuple(Judgement(Segment("", s, r), 0.0) for r, s in references)
    held = [JudgementSet(name="held out", judgements=rows)]
    return (
        [_without_shared(one, held) for one in scores],
        [_without_shared(one, held) for one in rankings],
    )


def _without_shared(one: Judged, held: Sequence[JudgementSet]) -> Judged:
    try:
        return drop_shared(one, held)
    except DataError:
        raise DataError(
            f"{one.name} {one.lp}: every reference of it occurs in the data held out for choosing "
            "or testing, so nothing is left to train on"
        ) from None


def check_needs(
    metric: str, sets: Sequence[JudgementSet | RankingSet], needs: frozenset[str]
) -> None:
    """Refuse training data whose segments lack what the metric compares with."""
    for one in sets:
        used = one.is_compared if isinstance(one, RankingSet) else np.ones(len(one), dtype=bool)
        for number in np.flatnonzero(used):
            segment = one.segments[number]
            missing = [
                *(["references"] if "references" in needs and not segment.references else []),
                *(["a source"] if "source" in needs and segment.source is None else []),
            ]
            if missing:
                raise DataError(
                    f"{metric} learns from {' and '.join(sorted(needs))}, and segment "
                    f"{number + 1} of {one.name} {one.lp}".rstrip()
                    + f" has no {' and no '.join(m.removeprefix('a ') for m in missing)}"
                )
